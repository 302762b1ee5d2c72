//! `report`: writes the page of a run or a recipe from its files, or prints its tables.

use std::path::{Path, PathBuf};

use clap::Args;

use super::options::{OutputFormat, ScorerFlags};
use super::sandboxed::Paths;
use super::terminal::print_tables;
use crate::analysis::notes::CorrectionScorer;
use crate::analysis::table::Table;
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::contents::Contents;
use crate::experiment::whole_file;
use crate::recipe::Recipe;
use crate::recipe::cells::Cell;
use crate::recipe::manifest::RecipeManifest;
use crate::recipe::results::RecipeResults;
use crate::recipe::tables as recipe_tables;

/// The page's file name in a run directory or a recipe's folder.
pub const FILE: &str = "report.html";

#[derive(Debug, Args)]
pub struct Report {
    /// Run directory, or directory of a recipe
    directory: PathBuf,
    /// Print tables in this format instead of writing the page
    #[arg(long, value_enum)]
    format: Option<OutputFormat>,
    /// Print only this table; another name lists those that there are
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    #[command(flatten)]
    scorers: ScorerFlags,
}

impl Report {
    /// How tables are printed, where they are.
    fn printed(&self) -> Option<OutputFormat> {
        self.format.or(self.table.as_ref().map(|_| OutputFormat::Text))
    }

    pub fn run(self, given: Paths) -> Result<(), Failure> {
        let paths = match self.printed() {
            Some(_) => given,
            None => given.write_in(&self.directory),
        };
        paths.enter()?;
        let begun = RecipeManifest::read(&self.directory)?;
        if let Some(shard) = begun.as_ref().and_then(|begun| begun.shard) {
            return Err(Failure::usage(
                format!("{} is shard {shard} of a recipe", self.directory.display()),
                "run the recipe without --shard, from the same --calls: it has the table",
            ));
        }
        if let Some(format) = self.printed() {
            return print_tables(&self.tables(begun.as_ref())?, format);
        }
        match begun {
            Some(begun) => self.write_recipe(&begun)?,
            None => {
                let contents = Contents::read(&self.directory)?;
                let scorer = self.scorers.correction_scorer([&contents])?;
                write(&contents, &scorer)?;
            }
        }
        Ok(console::say(self.directory.join(FILE).display().to_string())?)
    }

    fn write_recipe(&self, begun: &RecipeManifest) -> Result<(), Failure> {
        let results = self.results(begun)?;
        let told = results.heads(&self.directory);
        let cells = begun.recipe.cells();
        let cells = cells.map(|cell| (cell.directory(&self.directory), cell));
        let runs = cells.filter(|(directory, _)| told.contains_key(directory));
        let runs = runs.map(|(directory, cell)| Ok((cell, Contents::read(&directory)?)));
        let runs = runs.collect::<Result<Vec<_>, Failure>>()?;
        write_recipe(&begun.recipe, &results, &runs, &self.directory)
    }

    /// What the recipe's last command has written.
    fn results(&self, begun: &RecipeManifest) -> Result<RecipeResults, Failure> {
        let results = RecipeResults::read(&self.directory)?;
        let mut results = results.ok_or_else(|| {
            let (path, name) = (self.directory.display(), &begun.name);
            Failure::usage(
                format!("{path}: recipe {name} was stopped, so there are no results yet"),
                &format!("run what is missing: wardround resume {path}"),
            )
        })?;
        let told = results.heads(&self.directory);
        for gone in told.keys().filter(|cell| !cell.is_dir()) {
            let name = gone.display().to_string();
            results
                .warnings
                .push(format!("Warning: {name} is gone; its figures stand as they were."));
            results.missing.push(name);
        }
        Ok(results)
    }

    /// All tables, or the one that was asked for.
    fn tables(&self, begun: Option<&RecipeManifest>) -> Result<Vec<Table>, Failure> {
        let (mut tables, remarks) = match begun {
            Some(begun) => {
                let results = self.results(begun)?;
                if !results.missing.is_empty() {
                    // CSV has no notes.
                    results.warnings.iter().for_each(console::note);
                }
                (recipe_tables::all(&begun.recipe, &results), recipe_tables::remarks(&results))
            }
            None => {
                let contents = Contents::read(&self.directory)?;
                let scorer = self.scorers.correction_scorer([&contents])?;
                let (tables, mut remarks) = crate::report::tables(&contents, &scorer);
                remarks.extend(say_unfinished(&contents));
                (tables, remarks)
            }
        };
        if let Some(name) = &self.table {
            let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
            let hint = format!("it has {}", names.join(", "));
            tables.retain(|table| table.name == name);
            tables.truncate(1);
            if tables.is_empty() {
                let directory = self.directory.display();
                return Err(Failure::usage(format!("{directory} has no table {name}"), &hint));
            }
        }
        if let Some(last) = tables.last_mut() {
            last.notes.extend(remarks);
        }
        Ok(tables)
    }
}

/// That a run is unfinished; once on stderr too, for CSV has no notes.
fn say_unfinished(contents: &Contents) -> Option<String> {
    let plan = &contents.plan;
    let (n, planned) = (contents.outcomes().len(), plan.dataset.items.len() * plan.runs as usize);
    let note = format!(
        "Not finished: {n} of {planned} planned cases have a record; the figures cover only these."
    );
    (n != planned).then(|| {
        console::note(format!("note: {note}"));
        note
    })
}

/// Writes the page of a run, finished or not, into its directory; the scorer is of notes.
pub fn write(contents: &Contents, scorer: &CorrectionScorer) -> Result<(), Failure> {
    let directory = &contents.path;
    let pages = crate::report::render(contents, scorer)?;
    // report.html is the first of them and written last: where it is, all are.
    for (file, page) in pages.iter().rev() {
        whole_file::write_private(&directory.join(file), page.as_bytes())?;
    }
    // Of a run that had more pages before.
    for number in pages.len() + 1.. {
        let path = directory.join(crate::report::run_page(number));
        if !fs_err::exists(&path)? {
            return Ok(());
        }
        fs_err::remove_file(path)?;
    }
    Ok(())
}

/// Writes the page of a recipe, of the cells that have run, into its folder.
pub fn write_recipe(
    recipe: &Recipe,
    results: &RecipeResults,
    cells: &[(Cell<'_>, Contents)],
    folder: &Path,
) -> Result<(), Failure> {
    let page = crate::report::recipe::render(recipe, results, cells)?;
    Ok(whole_file::write_private(&folder.join(FILE), page.as_bytes())?)
}
