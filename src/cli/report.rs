//! `report`: the page of a run or of a recipe, from what lies on disk; or their tables.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::console;
use crate::exit::Failure;
use crate::rating::joined::RunRatings;
use crate::recipe::Recipe;
use crate::recipe::begun::Begun;
use crate::recipe::cells::{Cell, cells};
use crate::recipe::error::RecipeError;
use crate::recipe::results::RecipeResults;
use crate::report::recipe::tables;
use crate::report::table::Table;
use crate::run::contents::Contents;
use crate::run::private_file;

/// The page's name in the run directory, and in a recipe's folder.
pub const FILE: &str = "report.html";

#[derive(Debug, Args)]
pub struct Report {
    /// The run directory, or the folder of a recipe
    directory: PathBuf,
    /// Print the tables instead of writing the page
    #[arg(long, env = "WARDROUND_REPORT_FORMAT", value_enum)]
    format: Option<TableFormat>,
    /// Print this table alone: accuracy, netgain, paired, collapse, cases, calibration, cost, ratings, raters, rated
    #[arg(
        long,
        env = "WARDROUND_REPORT_TABLE",
        value_name = "NAME",
        requires = "format"
    )]
    table: Option<String>,
}

/// How tables are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum TableFormat {
    /// Markdown, rounded
    Md,
    /// A line a row, every digit; before each of several tables a line with # and its name
    Csv,
    /// One object with all tables, every digit
    Json,
}

impl Report {
    pub fn run(self) -> Result<(), Failure> {
        let begun = Begun::read(&self.directory)?;
        match (&self.format, begun) {
            (None, Some(begun)) => self.write_recipe(&begun)?,
            (None, None) => write(&Contents::read(&self.directory)?, &self.directory)?,
            (Some(format), begun) => {
                let tables = self.tables(begun.as_ref())?;
                return print(&tables, *format);
            }
        }
        Ok(console::say(
            self.directory.join(FILE).display().to_string(),
        )?)
    }

    fn write_recipe(&self, begun: &Begun) -> Result<(), Failure> {
        let results = self.results(begun)?;
        let runs = cells(&begun.recipe, &begun.settings)?
            .into_iter()
            .map(|cell| {
                let contents = Contents::read(&cell.directory(&self.directory))?;
                Ok((cell, contents))
            });
        let runs = runs.collect::<Result<Vec<_>, Failure>>()?;
        write_recipe(&begun.recipe, &results, &runs, &self.directory)
    }

    fn results(&self, begun: &Begun) -> Result<RecipeResults, Failure> {
        let results = RecipeResults::read(&self.directory)?;
        Ok(results.ok_or_else(|| RecipeError::Unfinished {
            path: self.directory.clone(),
            name: begun.name.clone(),
        })?)
    }

    /// All tables, or the one that was asked for.
    fn tables(&self, begun: Option<&Begun>) -> Result<Vec<Table>, Failure> {
        let tables = match begun {
            Some(begun) => tables::all(&begun.recipe, &self.results(begun)?),
            None => {
                let contents = Contents::read(&self.directory)?;
                let answers = contents.answers().into_values();
                let records = &contents.calls.records;
                let mut tables = crate::report::tables(&contents.plan, answers, records)?;
                tables.extend(ratings(&contents)?);
                tables
            }
        };
        let Some(name) = &self.table else {
            return Ok(tables);
        };
        let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
        let hint = format!("it has {}", names.join(", "));
        let chosen = tables.into_iter().find(|table| table.name == name);
        let missing = || {
            let directory = self.directory.display();
            Failure::usage(format!("{directory} has no table {name}"), &hint)
        };
        Ok(vec![chosen.ok_or_else(missing)?])
    }
}

/// Prints tables to stdout.
pub(super) fn print(tables: &[Table], format: TableFormat) -> Result<(), Failure> {
    let separate = |print: &dyn Fn(&Table) -> String| {
        let printed: Vec<String> = tables.iter().map(print).collect();
        printed.join("\n")
    };
    let text = match (format, tables) {
        (TableFormat::Md, _) => separate(&Table::markdown),
        (TableFormat::Csv, [table]) => table.csv(),
        (TableFormat::Csv, _) => separate(&|table| format!("# {}\n{}", table.name, table.csv())),
        (TableFormat::Json, _) => {
            let tables: Vec<_> = tables.iter().map(Table::json).collect();
            format!("{:#}\n", json!({ "tables": tables }))
        }
    };
    Ok(console::write(&text)?)
}

/// Writes the page of a run, finished or not, into its directory.
pub fn write(contents: &Contents, directory: &Path) -> Result<(), Failure> {
    let answers = contents.answers().into_values();
    let (plan, records) = (&contents.plan, &contents.calls.records);
    let page = crate::report::render(plan, answers, records, &ratings(contents)?)?;
    Ok(private_file::write(&directory.join(FILE), page.as_bytes())?)
}

/// What clinicians said of a run, where any did.
fn ratings(contents: &Contents) -> Result<Vec<Table>, Failure> {
    let ratings = RunRatings::read(contents)?;
    Ok(ratings.map_or(Vec::new(), |ratings| ratings.tables()))
}

/// Writes the page of a recipe, all of whose cells have run, into its folder.
pub fn write_recipe(
    recipe: &Recipe,
    results: &RecipeResults,
    cells: &[(Cell<'_>, Contents)],
    folder: &Path,
) -> Result<(), Failure> {
    let page = crate::report::recipe::render(recipe, results, cells)?;
    Ok(private_file::write(&folder.join(FILE), page.as_bytes())?)
}
