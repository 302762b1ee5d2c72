//! Runs a recipe: every cell that has not run yet, one after another without a pause between them.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use itertools::Itertools;

use super::built_in::ids;
use super::cells::{Cell, methods};
use super::file::DatasetEntry;
use super::manifest::RecipeManifest;
use crate::data::subset::Subset;
use crate::diagnosis::Failure;
use crate::experiment::appender;
use crate::experiment::contents::Contents;
use crate::experiment::driver::{Driver, Executed, Observer};
use crate::experiment::hardware::Hardware;
use crate::experiment::library::Shared;
use crate::experiment::models::Models;
use crate::experiment::plan::{self, Plan};
use crate::experiment::queued::Queued;
use crate::experiment::results;
use crate::experiment::run::Run;
use crate::experiment::spec::{DEFAULT_SEED, Spec};
use crate::experiment::verify::read_finished;
use crate::experiment::whole_file;
use crate::hub::HubOptions;
use crate::outside;

/// What running a recipe takes besides its manifest.
#[derive(Clone)]
pub struct RecipeRun {
    pub manifest: RecipeManifest,
    pub out: PathBuf,
    pub hardware: Hardware,
    pub hub: HubOptions,
}

/// A recipe with everything resolved.
pub struct ResolvedRecipe<'a> {
    /// Each with its run.
    pub cells: Vec<(Cell<'a>, Run)>,
    /// Of all cells together.
    pub models: Models,
}

/// Cells that have finished, each with its run.
pub type Finished<'a> = Vec<(Cell<'a>, Contents)>;

impl RecipeRun {
    /// What every cell asks for, before anything of it is read.
    ///
    /// # Errors
    /// A recipe whose cells do not fit together.
    pub fn specs(&self) -> Result<Vec<Spec>, Failure> {
        let methods = methods(&self.manifest)?;
        let cells = self.manifest.recipe.cells().zip(methods.iter().cycle());
        Ok(cells.map(|(cell, method)| self.spec(cell.dataset, method)).collect())
    }

    /// Reads what every cell names, and resolves it.
    ///
    /// # Errors
    /// Whatever is missing or malformed.
    pub fn resolve(&self) -> Result<ResolvedRecipe<'_>, Failure> {
        let specs = self.specs()?;
        let cells = || self.manifest.recipe.cells();
        let mut shared = Shared::default();
        let inputs = cells()
            .zip(&specs)
            .map(|(cell, spec)| spec.read(&mut shared).map_err(|error| error.about(&cell.title())));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let names: Vec<Vec<&String>> = specs.iter().map(Spec::slot_models).try_collect()?;
        let contexts = specs.iter().map(|spec| spec.roomy_hardware().context());
        let context = contexts.max().or(self.hardware.context);
        let hardware = Hardware { context, ..self.hardware.clone() };
        let models = Models::describe(names.concat(), &hardware, &self.hub, |devices| {
            shared.open(&specs, devices)
        })?;
        let mut resolved = Vec::new();
        for (cell, (spec, inputs)) in cells().zip(specs.into_iter().zip(inputs)) {
            // A shard may have none of a cell's items.
            if self.manifest.shard.is_none() || !inputs.dataset().items.is_empty() {
                let run = spec.resolve(inputs, &models, &mut shared);
                resolved.push((cell, run.map_err(|error| error.about(&cell.title()))?));
            }
        }
        Ok(ResolvedRecipe { cells: resolved, models })
    }

    /// A method on a dataset, on this machine.
    fn spec(&self, dataset: &DatasetEntry, method: &Spec) -> Spec {
        let RecipeManifest { data_dir, data, limit, recipe, .. } = &self.manifest;
        let below = || Path::new(data_dir).join(&dataset.file);
        Spec {
            data: data.as_ref().map_or_else(below, PathBuf::from),
            format: dataset.format,
            subset: match dataset.ids.as_deref().and_then(|name| Some((name, ids(name)?))) {
                Some((name, list)) => {
                    let listed = list.lines().filter(|line| !line.starts_with('#'));
                    let listed = listed.take(limit.unwrap_or(usize::MAX));
                    let path = format!("recipes/ids/{name}.txt").into();
                    let listed = Some((path, listed.map(str::to_owned).collect()));
                    Subset { listed, ..Subset::default() }
                }
                None => Subset {
                    limit: limit.iter().chain(&dataset.sample).min().copied(),
                    sample_seed: dataset.sample.map(|_| DEFAULT_SEED),
                    ..Subset::default()
                },
            },
            hardware: Hardware {
                context: self.hardware.context.or(recipe.context),
                ..self.hardware.clone()
            },
            hub: self.hub.clone(),
            ..method.clone()
        }
    }

    /// Executes every cell that is not finished, each handed to `on_cell` as it ends; gives those that are with their runs, in order, and
    /// what stopped the others.
    ///
    /// # Errors
    /// A folder that holds another recipe.
    pub fn execute<'a>(
        &self,
        resolved: ResolvedRecipe<'a>,
        observer: Arc<dyn Observer>,
        stop: Arc<AtomicBool>,
        on_cell: impl Fn(&Cell<'_>, &Executed) -> Result<(), Failure> + Sync,
    ) -> Result<(Finished<'a>, Option<Failure>), Failure> {
        let _alone = self.lock()?;
        self.manifest.begin(&self.out)?;
        let total = resolved.cells.len();
        let (mut cells, mut finished) = (Vec::new(), Vec::new());
        let (mut places, mut queued) = (Vec::new(), Vec::new());
        for (place, (cell, run)) in resolved.cells.into_iter().enumerate() {
            let directory = cell.directory(&self.out);
            finished.push(finished_run(&directory, &run.plan)?);
            if finished[place].is_none() {
                let (method, dataset) = (&cell.method.label, &cell.dataset.label);
                let title = format!("cell {} of {total}: {method} on {dataset}", place + 1);
                places.push(place);
                queued.push(Queued::among(run, directory, title));
            }
            cells.push(cell);
        }
        let ended = Mutex::new(finished);
        let run = || {
            let (loaded, folder) = (resolved.models.start()?, self.out.clone());
            for contents in lock(&ended).iter().flatten() {
                contents.calls.records.iter().for_each(|call| loaded.calls.learn(call));
            }
            Driver { loaded, observer, stop, folder }.execute_all(&queued, |number, elapsed_ms| {
                let cell = &cells[places[number]];
                let contents = Contents::read(&cell.directory(&self.out))?;
                let executed = Executed { contents, elapsed_ms };
                on_cell(cell, &executed)?;
                lock(&ended)[places[number]] = Some(executed.contents);
                Ok(())
            })
        };
        let stopped = if queued.is_empty() { None } else { run().err() };
        let finished = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        let finished = cells.into_iter().zip(finished);
        Ok((finished.filter_map(|(cell, run)| Some((cell, run?))).collect(), stopped))
    }

    /// Keeps other processes out of the folder until what comes back is dropped; a file system without locks forgoes the guard.
    fn lock(&self) -> Result<fs_err::File, Failure> {
        if !fs_err::exists(&self.out)? {
            whole_file::create_private_directory(&self.out)?;
        }
        let folder = outside::open_directory(&self.out)?;
        appender::lock(&folder, &self.out)?;
        Ok(folder)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The run in `directory`, where it is finished without errors and by this plan.
fn finished_run(directory: &Path, plan: &Plan) -> Result<Option<Contents>, Failure> {
    if !fs_err::exists(directory.join(results::FILE))? {
        return Ok(None);
    }
    let (contents, results) = read_finished(directory)?;
    plan.keep_to(&contents.plan, &directory.join(plan::FILE), true)?;
    Ok((results.n_errors == 0).then_some(contents))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures::{plan, write_finished};

    fn run_of(name: &str, hardware: Hardware) -> RecipeRun {
        RecipeRun {
            manifest: RecipeManifest::plain(name),
            out: PathBuf::new(),
            hardware,
            hub: HubOptions::capture().unwrap(),
        }
    }

    /// Ten steps with all their passages are some 64,000 tokens: more than a run that searches holds where nothing is said.
    #[test]
    fn every_cell_has_the_context_of_its_recipe_unless_a_flag_says() {
        let contexts = |name: &str, flag: Option<usize>| {
            let hardware = Hardware { context: flag, ..Hardware::default() };
            let specs = run_of(name, hardware).specs().unwrap();
            specs.iter().map(|spec| spec.roomy_hardware().context).collect::<Vec<_>>()
        };
        assert_eq!(contexts("medreact-table2", None), [Some(65_536); 3]);
        assert_eq!(contexts("medreact-table2", Some(8192)), [Some(8192); 3]);
        assert_eq!(contexts("medreact-competition", None), [Some(32_768)]);
        assert!(contexts("table4", None).iter().all(Option::is_none));
    }

    #[test]
    fn a_finished_cell_whose_results_were_changed_is_no_result() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("cell");
        let is_finished = || finished_run(&path, &plan()).map(|found| found.is_some());
        assert!(!is_finished().unwrap());
        write_finished(&path);
        assert!(is_finished().unwrap());
        let file = path.join(results::FILE);
        let text = fs_err::read_to_string(&file).unwrap();
        fs_err::write(&file, text.replace("\"calls\": 12", "\"calls\": 13")).unwrap();
        let error = is_finished().unwrap_err().to_string();
        assert!(error.contains("results.json, line "), "{error}");
    }
}
