//! `recipe`: runs the missing cells of a paper's table or figure, then prints it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use itertools::Itertools;

use super::forecast::{announce, file};
use super::options::{ExecutionFlags, ScorerFlags};
use super::progress::Terminal;
use super::sandboxed::Paths;
use super::summary;
use super::{report, terminal};
use crate::analysis::metrics::significance::foreseen;
use crate::analysis::notes::GivenKeywords;
use crate::cli::exit::{Failure, on_interrupt};
use crate::console;
use crate::corpus::open_encoder;
use crate::data::Format;
use crate::diagnosis::Blame;
use crate::encoder::Encoder;
use crate::experiment::compare;
use crate::experiment::contents::Contents;
use crate::experiment::driver::{Executed, Observer, refuse_failed};
use crate::experiment::hardware::Hardware;
use crate::experiment::run::absolute;
use crate::experiment::spec::{MOST_RUNS, Set, Shard, Spec};
use crate::panel::remote::Address;
use crate::recipe::Recipe;
use crate::recipe::built_in::{self, of_paper};
use crate::recipe::cells::{Cell, refuse_unused_files};
use crate::recipe::file::Analysis;
use crate::recipe::manifest::RecipeManifest;
use crate::recipe::results::RecipeResults;
use crate::recipe::run::RecipeRun;
use crate::recipe::tables;
use crate::record::{Schema, count};
use crate::retrieval::CorpusSpec;

#[derive(Clone, Debug, Args)]
pub struct RecipeVerb {
    /// The table or figure: table1, figure5, …, or a file; or all of a paper: medmad-paper, medguards-paper, medreact-paper
    #[arg(required = true, value_parser = known)]
    name: Option<String>,
    /// Directory of the recipe's datasets, as medqa/us_5opt_test.jsonl, pubmedqa/ori_pqal.json, medec/MEDEC-MS-TestSet-with-GroundTruth-and-ErrorType.csv
    #[arg(long, value_name = "DIR", required_unless_present = "data")]
    data_dir: Option<PathBuf>,
    /// Your own questions, or notes, in place of the recipe's datasets
    #[arg(long, value_name = "FILE", requires = "format")]
    data: Option<PathBuf>,
    /// Format of that file
    #[arg(long, value_enum, requires = "data")]
    format: Option<Format>,
    /// Maximum number of items of each dataset: the first N
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Only every Nth item from the Ith on, counted from 1
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Runs over the same items [default: the recipe's]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RUNS)))]
    runs: Option<u32>,
    #[command(flatten)]
    spec: Spec,
    #[command(flatten)]
    execution: ExecutionFlags,
    /// Show what would run, and run nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: RecipeOutput,
    /// The recipe's folder; existing cells are kept [default: wardround-NAME]. Of a paper it holds one for each recipe, and the store of
    /// calls that they share
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// A name that no recipe has is told before what else is missing.
fn known(name: &str) -> Result<String, String> {
    let is_own = of_paper(name).is_some() || built_in::text(name).is_some();
    let unknown = || Recipe::unknown(name).hint().unwrap_or_default();
    let is_file = name.ends_with(".toml") || Path::new(name).is_file();
    (is_own || is_file).then(|| name.to_owned()).ok_or_else(unknown)
}

impl RecipeVerb {
    /// Absent only beside a subcommand.
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// The recipe, or all of a paper.
    fn recipes(&self) -> Result<Vec<RecipeRun>, Failure> {
        if let Some(names) = of_paper(self.name()) {
            return self.paper(names);
        }
        let recipe = self.recipe()?;
        refuse_unused_files(&recipe.manifest)?;
        Ok(vec![recipe])
    }

    pub fn run(self, given: Paths) -> Result<(), Failure> {
        let recipes = self.recipes()?;
        if self.dry_run {
            let paths = recipes.iter().cloned().try_fold(given, |paths, mut recipe| {
                recipe.hardware.calls = None;
                recipe.hub = recipe.hub.local();
                self.output.within(paths, &recipe)
            })?;
            paths.enter()?;
            return each(&recipes, |recipe| announce(recipe, &self.output.scorers));
        }
        let paths = recipes.iter().try_fold(given, |paths, recipe| {
            self.output.within(paths, recipe)?.write(&recipe.out)
        })?;
        paths.enter()?;
        self.output.run(&recipes, &self.execution)
    }

    /// The recipes of a paper, with one store of calls.
    fn paper(&self, names: impl Iterator<Item = &'static str>) -> Result<Vec<RecipeRun>, Failure> {
        let folder = || PathBuf::from(format!("wardround-{}", self.name()));
        let folder = self.out.clone().unwrap_or_else(folder);
        let mut verb = self.clone();
        verb.spec.hardware.calls.get_or_insert(folder.join("calls"));
        let recipe = |name: &str| {
            verb.name = Some(name.to_owned());
            verb.out = Some(folder.join(name));
            verb.recipe()
        };
        names.map(recipe).collect()
    }

    /// What the flags ask for.
    pub(super) fn recipe(&self) -> Result<RecipeRun, Failure> {
        let stem = Path::new(self.name()).file_stem().unwrap_or_default();
        let default = || PathBuf::from(format!("wardround-{}", stem.to_string_lossy()));
        Ok(RecipeRun {
            manifest: self.manifest()?,
            out: self.out.clone().unwrap_or_else(default),
            hardware: self.spec.hardware.clone(),
            hub: self.execution.hub_options()?,
        })
    }

    fn manifest(&self) -> Result<RecipeManifest, Failure> {
        let mut recipe = Recipe::find(self.name())?;
        let data_dir = self.data_dir.as_deref().unwrap_or(Path::new("."));
        let spec = &self.spec;
        recipe.runs = self.runs.unwrap_or(recipe.runs);
        recipe.decoding = spec.decoding.unwrap_or(recipe.decoding);
        if !spec.panel.is_empty() {
            recipe.panel.clone_from(&spec.panel);
        } else if let Some(endpoint) = recipe.panel.iter().find(|model| Address::is_meant_by(model))
            && built_in::text(self.name()).is_none()
        {
            // Whose file it is, is not known: where the items are sent to is for the command to say.
            let message = format!("{} sends the items to {endpoint}", self.name());
            let hint = format!("where that is meant, name it: --panel {}", recipe.panel.join(","));
            return Err(Failure::usage(message, &hint));
        }
        let data = self.data.as_deref().map(absolute).transpose()?;
        if let (Some(file), Some(format)) = (&data, self.format) {
            recipe.put(Path::new(file), format);
        }
        let set = Set::of(&spec.set)?;
        let exemplars = recipe.exemplars.as_ref();
        let exemplars = exemplars.map(|one| (data_dir.join(&one.file), one.format));
        Ok(RecipeManifest {
            schema: Schema,
            name: self.name().to_owned(),
            seed: spec.seed,
            limit: self.limit,
            shard: self.shard,
            data_dir: absolute(data_dir)?,
            data,
            prompts: spec.prompts.as_deref().map(absolute).transpose()?,
            settings: set.settings,
            slots: set.models,
            sampling: spec.sampling,
            slot_sampling: set.sampling,
            corpus: spec.corpus.clone().map(CorpusSpec::whole).transpose()?,
            exemplars: spec.exemplars.clone().whole(exemplars)?,
            machine: Hardware::default().with_kept(&spec.hardware),
            recipe,
        })
    }
}

/// The models that a recipe's metrics need.
#[derive(Clone, Debug, Args)]
pub struct RecipeOutput {
    /// Directory of all-MiniLM-L6-v2, for recipes that measure the similarity of texts
    #[arg(long, env = "WARDROUND_ENCODER", value_name = "DIR")]
    pub encoder: Option<PathBuf>,
    #[command(flatten)]
    pub scorers: ScorerFlags,
}

impl RecipeOutput {
    /// Runs the missing cells of recipes one after another, and writes and prints the table of each.
    ///
    /// # Errors
    /// As [`each`].
    pub fn run(&self, recipes: &[RecipeRun], execution: &ExecutionFlags) -> Result<(), Failure> {
        let observer = execution.observer();
        each(recipes, |recipe| {
            execution.progress.loading(&recipe.specs()?)?;
            self.run_one(recipe, observer.clone())
        })
    }

    fn run_one(&self, recipe: &RecipeRun, observer: Arc<Terminal>) -> Result<(), Failure> {
        let keywords = self.keywords(&recipe.manifest)?;
        let resolved = recipe.resolve()?;
        let encoder = self.open_encoder(&recipe.manifest.recipe)?;
        let cells = resolved.cells.iter().filter(|_| recipe.manifest.shard.is_none());
        for (_, run) in cells.dedup_by(|(one, _), (next, _)| one.dataset == next.dataset) {
            observer.say(&foreseen(&run.plan.dataset.name, &run.items));
        }
        let ended = |cell: &Cell<'_>, run: &Executed| {
            let (results, figures) = summary::write(run)?;
            observer.say(&summary::of_cell(&cell.title(), &results, &figures, run));
            Ok(())
        };
        let (finished, stopped) =
            recipe.execute(resolved, observer.clone(), on_interrupt(), ended)?;
        for (_, contents) in &finished {
            summary::write_missing_page(contents)?;
        }
        match recipe.manifest.shard {
            Some(shard) => console::note(format!(
                "shard {shard}: {} run; the table comes once the recipe runs whole, without --shard, from the same --calls",
                count(finished.len(), "cell")
            )),
            None => self.write(recipe, &finished, encoder.as_ref(), keywords)?,
        }
        let failed = |(cell, run): &(Cell<'_>, Contents)| {
            refuse_failed(run).map_err(|error| error.about(&cell.title()))
        };
        stopped.map_or_else(|| finished.iter().try_for_each(failed), Err)
    }

    /// What the cells and their metrics read.
    pub fn within(&self, paths: Paths, recipe: &RecipeRun) -> Result<Paths, Failure> {
        let ScorerFlags { scorers, keywords, .. } = &self.scorers;
        let figures = [&self.encoder, scorers, keywords];
        let paths = paths.read(figures.into_iter().flatten());
        let keywords = recipe.manifest.keyword_files();
        let paths = paths.read(keywords.iter().filter(|file| file.is_file()));
        recipe.specs()?.iter().try_fold(paths, Paths::run)
    }

    /// The keywords that corrections must name: those of --keywords, else of the files that the recipe names and that are there.
    /// They are read before the first call.
    pub fn keywords(&self, manifest: &RecipeManifest) -> Result<GivenKeywords, Failure> {
        let mut given = GivenKeywords::default();
        let files = match &self.scorers.keywords {
            Some(file) => vec![file.clone()],
            None => manifest.keyword_files(),
        };
        for path in files {
            match self.scorers.keywords.is_some() || path.is_file() {
                true => given.read(&path)?,
                false => console::note(format!(
                    "note: KPCS takes the words that gold corrections change, for there is no {}",
                    file(&path)
                )),
            }
        }
        Ok(given)
    }

    /// Writes the results and the page of a recipe of which a cell has run, and prints its table.
    fn write(
        &self,
        recipe: &RecipeRun,
        finished: &[(Cell<'_>, Contents)],
        encoder: Option<&Encoder>,
        keywords: GivenKeywords,
    ) -> Result<(), Failure> {
        if finished.is_empty() {
            return Ok(());
        }
        let RecipeRun { manifest: RecipeManifest { name, recipe, .. }, out, .. } = recipe;
        let mut scorer = self.scorers.correction_scorer(finished.iter().map(|(_, run)| run))?;
        scorer.keywords = keywords;
        let results = RecipeResults::of(name, recipe, finished, encoder, &scorer)?;
        results.write(out)?;
        report::write_recipe(recipe, &results, finished, out)?;
        terminal::show(&[tables::main(recipe, &results)])?;
        let page = out.join(report::FILE);
        console::say(format!(
            "\nThe other tables and all cases are on the page {}.",
            page.display()
        ))?;
        if results.missing.is_empty() {
            let digest = |(cell, run): &(Cell<'_>, Contents)| {
                let folder = cell.directory(Path::new(""));
                Ok(format!("{} {}", folder.display(), compare::digest(run)?))
            };
            let digests = finished.iter().map(digest).collect::<Result<_, Failure>>()?;
            console::note(format!("digest     {}", compare::digest_of_cells(digests)));
        }
        Ok(())
    }

    /// The encoder, if the recipe measures similarity; `None` with a note if none was given.
    pub fn open_encoder(&self, recipe: &Recipe) -> Result<Option<Encoder>, Failure> {
        match (&self.encoder, recipe.analyses.contains(&Analysis::Similarity)) {
            (Some(folder), true) => Ok(Some(open_encoder(folder)?)),
            (None, true) => {
                console::note(
                    "note: no --encoder: similarity is left out; give the folder of all-MiniLM-L6-v2, now or once all cells have run",
                );
                Ok(None)
            }
            (_, false) => Ok(None),
        }
    }
}

/// Does it with one recipe after another: what one of several lacks ends none of those after it.
///
/// # Errors
/// What stops all of them; the first that stopped one alone, once all were tried.
fn each(
    recipes: &[RecipeRun],
    act: impl Fn(&RecipeRun) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut first = None;
    for recipe in recipes {
        match act(recipe) {
            Err(error)
                if recipes.len() > 1
                    && !matches!(error.blame(), Blame::Machine | Blame::Interrupted) =>
            {
                let error = error.about(&recipe.manifest.name);
                console::note(format!("error: {error}"));
                first.get_or_insert(error);
            }
            other => other?,
        }
    }
    first.map_or(Ok(()), Err)
}
