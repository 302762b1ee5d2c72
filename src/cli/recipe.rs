//! `run --recipe`: every cell of a paper's table or figure that is not there yet, then the table.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::crew::Crew;
use super::interrupt;
use super::options::{MachineFlags, ScorerFlags};
use super::order::{Order, Share};
use super::prepare::Prepared;
use super::summary::{self, count};
use super::workplace::Workplace;
use crate::analysis::recipe::results::RecipeResults;
use crate::cli::exit::{Failure, Interrupted};
use crate::console;
use crate::data::subset::Subset;
use crate::encoder::Encoder;
use crate::experiment::contents::Contents;
use crate::experiment::directory::Directory;
use crate::experiment::error::RunError;
use crate::experiment::plan::{self, Plan};
use crate::experiment::recipe::begun::Begun;
use crate::experiment::recipe::cells::{Cell, cells};
use crate::experiment::recipe::file::{Analysis, ids};
use crate::experiment::results;
use crate::hub::HubOptions;
use crate::record::CallLine;
use crate::report::recipe::tables::markdown;

/// What running a recipe takes beside what it was begun with.
pub struct RecipeRun {
    pub begun: Begun,
    pub out: PathBuf,
    pub machine: MachineFlags,
    pub max_in_flight: Option<usize>,
    pub hub: HubOptions,
    /// The folder of all-MiniLM-L6-v2.
    pub encoder: Option<PathBuf>,
    pub scorers: ScorerFlags,
    pub dry_run: bool,
    pub quiet: bool,
}

impl RecipeRun {
    /// # Errors
    /// What stopped a cell; items that errored, once everything else is done.
    pub fn run(self) -> Result<(), Failure> {
        let recipe = &self.begun.recipe;
        let cells = cells(recipe, &self.begun.settings)?;
        let orders = cells
            .iter()
            .map(|cell| self.order(cell))
            .collect::<Result<Vec<_>, Failure>>()?;
        let inputs = orders.iter().map(Order::read);
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let names = orders.iter().map(Order::seat_models);
        let names = names.collect::<Result<Vec<_>, _>>()?.concat();
        let crew = Crew::describe(names, &self.machine, &self.hub)?;
        let prepared = orders
            .into_iter()
            .zip(inputs)
            .map(|(order, inputs)| order.prepare(inputs, &crew))
            .collect::<Result<Vec<_>, _>>()?;
        if self.dry_run {
            return Ok(self.announce(&cells, &prepared, &crew)?);
        }
        let encoder = self.open_encoder()?;
        self.begun.begin(&self.out)?;
        let finished = self.work(cells, prepared, crew)?;
        let scorer = self
            .scorers
            .correction_scorer(finished.iter().map(|(_, run)| run))?;
        let results = RecipeResults::of(
            &self.begun.name,
            recipe,
            &finished,
            encoder.as_ref(),
            &scorer,
        )?;
        results.write(&self.out)?;
        super::report::write_recipe(recipe, &results, &finished, &self.out)?;
        console::say(markdown(recipe, &results).trim_end())?;
        console::note(format!(
            "report     {}",
            self.out.join(super::report::FILE).display()
        ));
        let errors: usize = results.cells.iter().map(|cell| cell.n_errors).sum();
        match errors {
            0 => Ok(()),
            errors => Err(Failure::outcome(
                format!("{} errored", count(errors, "item")),
                Some("the same command tries them again".to_owned()),
            )),
        }
    }

    fn order(&self, cell: &Cell<'_>) -> Result<Order, Failure> {
        let begun = &self.begun;
        let dataset = cell.dataset;
        Ok(Order {
            data: Path::new(&begun.data_dir).join(&dataset.file),
            format: dataset.format,
            subset: match (dataset.ids.as_deref().and_then(ids), begun.limit) {
                (Some(list), limit) => Subset::Ids {
                    path: format!("recipes/ids/{}.txt", dataset.ids.as_deref().unwrap_or(""))
                        .into(),
                    ids: list
                        .lines()
                        .filter(|line| !line.starts_with('#'))
                        .take(limit.unwrap_or(usize::MAX))
                        .map(str::to_owned)
                        .collect(),
                },
                (None, Some(limit)) => Subset::First { limit },
                (None, None) => Subset::All,
            },
            share: begun.shard.map_or(Share::All, Share::Shard),
            runs: begun.recipe.runs,
            panel: cell.panel.clone(),
            slots: cell.slots.clone(),
            protocol: cell.protocol.clone(),
            seed: begun.seed,
            free: begun.recipe.free,
            prompts: begun.prompts.clone().map(PathBuf::from),
            machine: self.machine.clone(),
            max_in_flight: self.max_in_flight,
            hub: self.hub.clone(),
        })
    }

    /// `None`, and a note, where the recipe measures similarity and nothing was given to measure it by.
    fn open_encoder(&self) -> Result<Option<Encoder>, Failure> {
        let analyses = &self.begun.recipe.analyses;
        let wants = analyses.contains(&Analysis::SimilarityInitial)
            || analyses.contains(&Analysis::SimilarityRounds);
        match (&self.encoder, wants) {
            (Some(folder), true) => Ok(Some(Encoder::open(folder)?)),
            (None, true) => {
                console::note(
                    "note: no --encoder: similarity is left out; give the folder of all-MiniLM-L6-v2, now or once all cells have run",
                );
                Ok(None)
            }
            (_, false) => Ok(None),
        }
    }

    /// Runs every cell that is not finished, in order; gives them all with their runs.
    fn work<'a>(
        &self,
        cells: Vec<Cell<'a>>,
        prepared: Vec<Prepared>,
        crew: Crew,
    ) -> Result<Vec<(Cell<'a>, Contents)>, Failure> {
        let total = cells.len();
        let mut open = Some(crew);
        let mut workplace: Option<Workplace> = None;
        let mut calls = Shared::default();
        let mut finished = Vec::new();
        for (number, (cell, prepared)) in (1..).zip(cells.into_iter().zip(prepared)) {
            let directory = cell.directory(&self.out);
            calls.enter(&cell.dataset.name);
            let contents = match finished_run(&directory, &prepared.plan)? {
                Some(contents) => contents,
                None => {
                    if !self.quiet {
                        let (method, dataset) = (&cell.method.label, &cell.dataset.label);
                        console::note(format!("cell {number} of {total}: {method} on {dataset}"));
                    }
                    let begun = Directory::resume(&directory, &prepared.plan, &prepared.texts)
                        .or_else(|error| begin(error, &directory, &prepared))?;
                    if let Some(crew) = open.take() {
                        workplace = Some(Workplace {
                            crew: crew.start()?,
                            stop: interrupt::watch(),
                            shared: Arc::default(),
                            quiet: self.quiet,
                        });
                    }
                    let Some(workplace) = &mut workplace else {
                        break;
                    };
                    workplace.shared = calls.share();
                    let ended = workplace.work(prepared, begun, &directory);
                    // Whoever adds calls has them to himself, and copies none.
                    workplace.shared = Arc::default();
                    ended.map_err(|error| self.in_this_folder(error))?.1
                }
            };
            calls.add(&contents);
            finished.push((cell, contents));
        }
        Ok(finished)
    }

    /// A cell that was interrupted goes on with the whole recipe.
    fn in_this_folder(&self, error: Failure) -> Failure {
        match error.downcast_ref::<Interrupted>() {
            Some(&Interrupted { items, total, .. }) => Failure::from(Interrupted {
                items,
                total,
                directory: self.out.clone(),
            }),
            None => error,
        }
    }

    fn announce(
        &self,
        cells: &[Cell<'_>],
        prepared: &[Prepared],
        crew: &Crew,
    ) -> std::io::Result<()> {
        let (title, free) = (&self.begun.recipe.title, self.begun.recipe.free);
        let text = if free { "free" } else { "constrained" };
        console::say(format!("recipe     {title}, {text} text"))?;
        let mut all = 0;
        for (cell, prepared) in cells.iter().zip(prepared) {
            let plan = &prepared.plan;
            let answers = prepared.items.len() as u64 * u64::from(plan.runs);
            let calls = answers * u64::from(prepared.protocol.max_calls());
            all += calls;
            console::say(format!(
                "cell       {} on {}: {}, {}, at most {calls} calls",
                cell.method.label,
                cell.dataset.label,
                count(prepared.items.len(), "item"),
                count(plan.runs as usize, "run"),
            ))?;
        }
        console::say(format!("calls      at most {all}, less what cells share"))?;
        summary::tell_memory(crew)
    }
}

/// The calls that cells of one dataset made, by their requests.
#[derive(Default)]
struct Shared {
    dataset: String,
    calls: Arc<HashMap<String, CallLine>>,
}

impl Shared {
    /// Cells of another dataset share nothing.
    fn enter(&mut self, dataset: &str) {
        if self.dataset != dataset {
            self.calls = Arc::default();
            self.dataset = dataset.to_owned();
        }
    }

    fn add(&mut self, contents: &Contents) {
        // A call of a member elsewhere has no request that fixes its text.
        let calls = contents.calls.records.iter();
        let known = Arc::make_mut(&mut self.calls);
        for call in calls.filter(|call| !call.request.is_empty()) {
            known
                .entry(call.request.clone())
                .or_insert_with(|| call.clone());
        }
    }

    fn share(&self) -> Arc<HashMap<String, CallLine>> {
        self.calls.clone()
    }
}

/// The run in `directory`, where it is finished without errors and by this plan.
fn finished_run(directory: &Path, plan: &Plan) -> Result<Option<Contents>, Failure> {
    if !fs_err::exists(directory.join(results::FILE))? {
        return Ok(None);
    }
    let contents = Contents::read(directory)?;
    super::run::check_promise(&directory.join(plan::FILE), &contents.plan, plan)?;
    let errors = contents
        .outcomes()
        .values()
        .any(|item| item.error().is_some());
    Ok((!errors).then_some(contents))
}

/// A cell that was never begun is no error.
fn begin(
    error: RunError,
    directory: &Path,
    prepared: &Prepared,
) -> Result<(Directory, crate::experiment::directory::Finished), RunError> {
    match error {
        RunError::NoPlan { .. } => {
            let directory = Directory::create(directory, &prepared.plan, &prepared.texts)?;
            Ok((directory, Default::default()))
        }
        other => Err(other),
    }
}
