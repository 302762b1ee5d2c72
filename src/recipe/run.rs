//! Runs a recipe: every cell that has not run yet, one after another.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use itertools::Itertools;

use super::built_in::ids;
use super::cells::{Cell, methods};
use super::file::DatasetEntry;
use super::manifest::RecipeManifest;
use crate::calls::{Kept, store_key};
use crate::data::subset::Subset;
use crate::diagnosis::Failure;
use crate::experiment::appender;
use crate::experiment::contents::Contents;
use crate::experiment::directory::Directory;
use crate::experiment::driver::{Driver, Executed, Observer};
use crate::experiment::hardware::Hardware;
use crate::experiment::library::Shared;
use crate::experiment::models::{Loaded, Models};
use crate::experiment::plan::{self, Plan};
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

    /// Executes every cell that is not finished, in order, each handed to `on_cell`; gives those that are with their runs, and what stopped the
    /// one after them.
    ///
    /// # Errors
    /// A folder that holds another recipe.
    pub fn execute<'a>(
        &self,
        resolved: ResolvedRecipe<'a>,
        observer: Arc<dyn Observer>,
        stop: Arc<AtomicBool>,
        on_cell: impl Fn(&Cell<'_>, &Executed) -> Result<(), Failure>,
    ) -> Result<(Finished<'a>, Option<Failure>), Failure> {
        let _alone = self.lock()?;
        self.manifest.begin(&self.out)?;
        let total = resolved.cells.len();
        let mut unloaded = Some(resolved.models);
        let mut driver = Driver {
            loaded: Loaded::default(),
            observer: observer.clone(),
            stop,
            folder: self.out.clone(),
        };
        let (mut dataset, mut finished) = (None, Vec::new());
        let mut made = Vec::<(String, Kept)>::new();
        let mut ahead: u64 = resolved.cells.iter().map(|(_, run)| run.calls()).sum();
        for (number, (cell, run)) in (1..).zip(resolved.cells) {
            ahead -= run.calls();
            observer.after(ahead);
            let directory = cell.directory(&self.out);
            if dataset.replace(cell.dataset) != Some(cell.dataset) {
                // Cells of one dataset share their calls, and none with those of another.
                made.clear();
                driver.loaded.calls.forget();
            }
            let ran = || {
                if let Some(contents) = finished_run(&directory, &run.plan)? {
                    return Ok(contents);
                }
                let (method, dataset) = (&cell.method.label, &cell.dataset.label);
                observer.say(&format!("cell {number} of {total}: {method} on {dataset}"));
                let begun = Directory::begin(&directory, &run.plan, &run.items)?;
                if let Some(models) = unloaded.take() {
                    driver.loaded = models.start()?;
                }
                made.drain(..).for_each(|(key, kept)| driver.loaded.calls.learn(key, kept));
                let executed = driver.execute(run, begun, &directory)?;
                on_cell(&cell, &executed)?;
                Ok(executed.contents)
            };
            match ran() {
                Ok(contents) => {
                    // A call of a member elsewhere has no request that fixes its text.
                    let local = contents.calls.records.iter();
                    let local = local.filter(|call| !call.request.is_empty());
                    made.extend(local.map(|call| (store_key(&call.request, None), call.into())));
                    finished.push((cell, contents));
                }
                Err(stopped) => return Ok((finished, Some(stopped))),
            }
        }
        Ok((finished, None))
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
