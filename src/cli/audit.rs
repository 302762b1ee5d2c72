//! `audit`: reads an audit trail, and deletes the texts that it keeps.

pub mod flags;
pub mod watched;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;

use self::flags::{begin, user};
use super::summary::count;
use crate::audit::files::Line;
use crate::audit::forget::{Request, Selection, forget};
use crate::audit::read::{Filter, lines, time};
use crate::audit::{Accepted, AuditOptions, Event};
use crate::cli::exit::Failure;
use crate::console;
use crate::text::spreadsheet::cell;

/// The columns of the table and of CSV files.
const COLUMNS: [&str; 14] = [
    "seq",
    "at_utc",
    "event",
    "actor",
    "role",
    "from",
    "model",
    "system",
    "status",
    "seed",
    "prompt_tokens",
    "completion_tokens",
    "elapsed_ms",
    "content",
];

/// The widths of the columns in the table.
const WIDTHS: [usize; COLUMNS.len()] = [5, 24, 8, 8, 8, 9, 10, 10, 6, 10, 13, 17, 10, 16];

#[derive(Debug, Subcommand)]
pub enum AuditVerb {
    /// Show the lines of a trail
    Show(Show),
    /// Write the lines of a trail to stdout; the trail logs the export
    Export(Export),
    /// Delete texts that a trail keeps; its lines stay, and another says who deleted what and why
    Forget(Forget),
    /// Go on with a trail that was cut off or written again; a line says who did, why, and what its head was
    Accept(Accept),
}

#[derive(Debug, Args)]
pub struct Show {
    /// The directory of the trail
    directory: PathBuf,
    /// Output format [default: a table]
    #[arg(long, value_enum)]
    format: Option<Format>,
    #[command(flatten)]
    filter: Filter,
}

#[derive(Debug, Args)]
pub struct Export {
    /// The directory of the trail
    directory: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "jsonl")]
    format: Format,
    #[command(flatten)]
    filter: Filter,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// The lines as they are
    Jsonl,
    /// A table of the main fields
    Csv,
}

#[derive(Debug, Args)]
pub struct Forget {
    /// The directory of the trail
    directory: PathBuf,
    /// Texts to delete: numbers of lines or ids of texts
    #[arg(value_name = "ID", required_unless_present_any = ["before", "actor"])]
    ids: Vec<String>,
    /// Delete all texts from before this time, in UTC
    #[arg(long, value_name = "TIME", conflicts_with_all = ["ids", "actor"], value_parser = time)]
    before: Option<String>,
    /// Delete all texts of this key or user
    #[arg(long, value_name = "NAME", conflicts_with = "ids")]
    actor: Option<String>,
    /// Of several keys or users with the name of --actor, the one that the lines call so: key:… or none
    #[arg(long, value_name = "IDENTITY", requires = "actor")]
    identity: Option<String>,
    /// The reason, which the trail keeps; write no name into it
    #[arg(long, value_name = "TEXT", default_value = "")]
    why: String,
}

#[derive(Debug, Args)]
pub struct Accept {
    /// The directory of the trail
    directory: PathBuf,
    /// The reason, which the trail keeps
    #[arg(long, value_name = "TEXT")]
    why: String,
}

impl Show {
    fn run(self) -> Result<(), Failure> {
        refuse_unknown(&self.directory, &self.filter)?;
        let filter = self.filter.keyed(&self.directory)?;
        match self.format {
            Some(format) => format.write(&self.directory, &filter),
            None => show_table(&self.directory, &filter),
        }
    }
}

impl Accept {
    fn run(self) -> Result<(), Failure> {
        let accepted = Some(Accepted { actor: user(), why: self.why });
        let options = AuditOptions { accepted, ..AuditOptions::new(&self.directory) };
        let trail = begin(&options, "audit accept", None)?;
        Ok(trail.finish(Event::new("stop").with("actor", user()))?)
    }
}

run_each!(AuditVerb: Show, Export, Forget, Accept);

impl Export {
    fn run(self) -> Result<(), Failure> {
        let Export { directory, format, filter } = self;
        refuse_unknown(&directory, &filter)?;
        let filter = filter.keyed(&directory)?;
        // Logged first, so that no export is missing in the trail.
        let trail = begin(&AuditOptions::new(&directory), "audit export", None)?;
        trail.finish(Event::new("export").with("actor", user()))?;
        format.write(&directory, &filter)
    }
}

impl Format {
    /// Writes the lines of a trail to stdout.
    fn write(self, directory: &Path, filter: &Filter) -> Result<(), Failure> {
        if let Format::Csv = self {
            console::write(&csv_row(&COLUMNS)?)?;
        }
        lines(directory, filter, |line| {
            let text = match self {
                Format::Jsonl => line.text + "\n",
                Format::Csv => csv_row(&cells(&line))?,
            };
            Ok(console::write(&text)?)
        })
    }
}

impl Forget {
    fn run(self) -> Result<(), Failure> {
        let Forget { directory, ids, before, actor, identity, why } = self;
        refuse_unknown(&directory, &Filter { actor: actor.clone(), ..Filter::default() })?;
        let selection = match (before, actor) {
            (Some(time), _) => Selection::Before(time),
            (None, Some(name)) => Selection::Actor { name, identity },
            (None, None) => Selection::Ids(ids),
        };
        let trail = begin(&AuditOptions::new(&directory), "audit forget", None)?;
        let forgotten = forget(&trail, &Request { selection, why, actor: Some(user()) })?;
        trail.finish(Event::new("stop").with("actor", user()))?;
        let mut text = format!("{} deleted", count(forgotten.texts, "text"));
        if forgotten.strays > 0 {
            text += &format!(", {} that belonged to no line", forgotten.strays);
        }
        Ok(console::say(text)?)
    }
}

/// Refuses a directory without a trail, so that a mistyped one does not become a new trail, and an event or an actor that no line of it has.
fn refuse_unknown(directory: &Path, filter: &Filter) -> Result<(), Failure> {
    crate::audit::files::all(directory)?;
    for (name, wanted) in [("event", &filter.event), ("actor", &filter.actor)] {
        let Some(wanted) = wanted else { continue };
        let mut known = BTreeSet::new();
        lines(directory, &Filter::default(), |line| {
            known.insert(line.text(name).to_owned());
            Ok(())
        })?;
        if !known.contains(wanted) {
            let known = known.iter().filter(|one| !one.is_empty());
            let known: Vec<String> = known.map(|one| console::plain(one)).collect();
            let message = format!("no line of {} has the {name} {wanted}", directory.display());
            let hint = format!("its lines have the {name}s {}", known.join(", "));
            return Err(Failure::usage(message, &hint));
        }
    }
    Ok(())
}

fn cells(line: &Line) -> [String; COLUMNS.len()] {
    let cell = |name: &&str| {
        let fields = &line.fields;
        match fields.get(*name).unwrap_or(&fields["usage"][*name]) {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    };
    COLUMNS.each_ref().map(cell)
}

/// Prints the lines under the names of their columns, as wide as the columns' usual values.
fn show_table(directory: &Path, filter: &Filter) -> Result<(), Failure> {
    let say = |cells: [String; COLUMNS.len()]| {
        let padded = cells.iter().zip(WIDTHS).map(|(cell, width)| format!("{cell:width$}"));
        let row: Vec<String> = padded.collect();
        console::say(row.join("  ").trim_end())
    };
    let mut is_empty = true;
    lines(directory, filter, |line| {
        if std::mem::take(&mut is_empty) {
            say(COLUMNS.map(str::to_owned))?;
        }
        let shown = |cell: String| match cell.is_empty() {
            true => "-".to_owned(),
            false => console::plain(&cell),
        };
        Ok(say(cells(&line).map(shown))?)
    })?;
    if is_empty {
        console::note(format!("note: no line of {} matches", directory.display()));
    }
    Ok(())
}

fn csv_row(cells: &[impl AsRef<str>]) -> Result<String, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let cells = cells.iter().map(|it| cell(it.as_ref()).into_owned());
    writer.write_record(cells).map_err(std::io::Error::from)?;
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::experiment::line::seal;

    /// Lines of a trail may be forged, and what a user is called comes from outside.
    #[test]
    fn no_cell_of_a_forged_line_is_obeyed_by_a_terminal_or_computed_by_a_spreadsheet() {
        let text = "\u{1b}[2J\r\u{9b}1m\u{7}\u{7f}";
        let forged = json!({"seq": 1, "at_utc": text, "event": format!("a{text}"), "actor": "=1+1", "role": "@SUM(A1)",
            "from": "\t=1", "model": format!("{text}=1"), "seed": -7, "usage": {"prompt_tokens": [text]}});
        let fields = forged.to_string();
        let (line, _) = seal(&fields[1..fields.len() - 1]);
        let line = Line::open(line.as_bytes()).unwrap();
        let row = csv_row(&cells(&line)).unwrap();
        assert!(!row.trim_end().contains(|c: char| c.is_control() && c != '\t'), "{row:?}");
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(row.as_bytes());
        let read = reader.records().next().unwrap().unwrap();
        let cell = |name: &str| &read[COLUMNS.iter().position(|column| *column == name).unwrap()];
        let shown = "\\u001b[2J\\u000d\\u009b1m\\u0007\\u007f";
        assert_eq!((cell("at_utc"), cell("event")), (shown, &*format!("a{shown}")));
        assert_eq!((cell("actor"), cell("role"), cell("from")), ("'=1+1", "'@SUM(A1)", "'\t=1"));
        assert_eq!((cell("model"), cell("seed")), (&*format!("{shown}=1"), "-7"));
    }
}
