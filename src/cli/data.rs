//! `data`: fetches, lists and verifies the datasets of recipes, and has a model write reasons for exemplars.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::models::tell_checks;
use super::options::ExecutionFlags;
use super::reasons::Reasons;
use super::sandboxed::{Paths, folder_of};
use super::terminal;
use crate::analysis::table::{Cell, Table};
use crate::cli::exit::Failure;
use crate::console;
use crate::data::{self, Dataset, Format, Question};
use crate::hub::{self, DatasetCard};

/// The name for all datasets that have a card.
const ALL: &str = "all";

#[derive(Debug, Subcommand)]
pub enum Data {
    /// Download datasets into a directory, in the layout that --data-dir of recipes expects
    Fetch(Fetch),
    /// List the known datasets
    Ls(List),
    /// Check a directory's datasets against their checksums, and say what is odd in them
    Verify(Verify),
    /// Have a model that knows the gold explain why exemplars are right or wrong (input of --exemplar-reasons)
    Reasons(Box<Reasons>),
}

#[derive(Debug, Args)]
pub struct Fetch {
    /// Datasets by their cards, as `data ls` lists them, or all; or files of cards
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Directory to write to; existing files with the right checksum are kept
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    #[command(flatten)]
    execution: ExecutionFlags,
}

#[derive(Debug, Args)]
pub struct List {}

#[derive(Debug, Args)]
pub struct Verify {
    /// Directory that datasets were fetched into; with --format a file of your own
    directory: PathBuf,
    /// Format of a file of your own, to be read as `run` reads it
    #[arg(long, value_enum)]
    format: Option<Format>,
}

run_each!(Data: Fetch, Ls, Verify, Reasons);

impl Fetch {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.fetch()?.enter()?;
        let options = self.execution.hub_options()?;
        // A mistake in a name is reported before anything is fetched.
        let mut cards = Vec::new();
        for name in &self.names {
            match name.as_str() {
                ALL => cards.extend(DatasetCard::all().iter().cloned()),
                name => cards.push(DatasetCard::open(name)?),
            }
        }
        // One publisher that cannot be reached keeps back no other's files.
        let mut failed: Option<Failure> = None;
        for card in &cards {
            match hub::fetch_dataset(card, &self.to, &options) {
                Ok(paths) => {
                    for path in paths {
                        console::say(path.display().to_string())?;
                    }
                }
                Err(error) => {
                    console::note(format!("{}: {error}", card.name));
                    failed.get_or_insert(error.into());
                    continue;
                }
            }
            let shared = if card.redistribute { "" } else { "; it lets no copies be handed on" };
            console::note(format!("{}: licence {}{shared}", card.name, card.licence.name));
            if let Some(note) = &card.note {
                console::note(format!("note: {}: {note}", card.name));
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

impl List {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let megabytes = |card: &DatasetCard| Some(Cell::Number(card.size_bytes()? as f64 / 1e6, 1));
        let table = Table::of("datasets", "Datasets of cards", DatasetCard::all())
            .text("dataset", |card| &card.name)
            .number("MB", megabytes)
            .text("holds", |card| format!("{}: {}", card.title, card.records))
            .text("licence", |card| &card.licence.name);
        terminal::show(&[table.build()])
    }
}

impl Verify {
    fn run(self, given: Paths) -> Result<(), Failure> {
        // The one file that is read beside a file of questions.
        let beside = self.format.and_then(Format::beside);
        given.read(beside.map(|name| folder_of(&self.directory).join(name))).enter()?;
        if let Some(format) = self.format {
            let own = tell_notices(&self.directory, format)?;
            let (path, items) = (self.directory.display(), own.items.len());
            return Ok(console::say(format!(
                "{} {path}  {items} items, read as {format}",
                own.sha256
            ))?);
        }
        if self.directory.is_file() {
            return Err(Failure::usage(
                format!("{} is a file, and its format is not given", self.directory.display()),
                "give --format, or the directory that datasets were fetched into",
            ));
        }
        let checks = hub::verify_datasets(&self.directory)?;
        for file in DatasetCard::all().iter().flat_map(|card| &card.files) {
            let path = self.directory.join(&file.path);
            // A file that is no longer as it was is told below.
            if let Some(format) = file.format.filter(|_| path.is_file())
                && let Err(error) = tell_notices(&path, format)
            {
                console::note(error.to_string());
            }
        }
        tell_checks(&checks, &self.directory)
    }
}

/// Reads a file, and says what is odd about its questions or notes.
fn tell_notices(path: &Path, format: Format) -> Result<Dataset, Failure> {
    let dataset = data::load(path, format)?;
    for notice in dataset.notices.iter().chain(&oddities(&dataset.questions())) {
        console::note(format!("{}: {notice}", path.display()));
    }
    Ok(dataset)
}

/// What is odd about questions and read all the same: of two that are equal with other answers, one must be wrong.
fn oddities(questions: &[&Question]) -> Vec<String> {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut twice, mut contradicting) = (Vec::new(), Vec::new());
    let mut answers = HashMap::new();
    for question in questions {
        let mut options: Vec<String> =
            question.options.iter().map(|one| plain(&one.text)).collect();
        options.sort();
        if options.windows(2).any(|pair| pair[0] == pair[1]) {
            twice.push(question.id.as_str());
        }
        if let Some(gold) = question.gold.and_then(|gold| question.option(gold)).map(plain) {
            let asked = (plain(&question.question), question.image.as_deref(), options);
            if *answers.entry(asked).or_insert_with(|| gold.clone()) != gold {
                contradicting.push(question.id.as_str());
            }
        }
    }
    let told = |what: &str, ids: Vec<&str>| {
        let first = ids.first()?;
        Some(format!("{what}, the first {first}: {} of {}", ids.len(), questions.len()))
    };
    let twice = told("questions with an option that stands twice", twice);
    let contradicting = told("questions that come again with another right answer", contradicting);
    twice.into_iter().chain(contradicting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Choice;

    #[test]
    fn equal_questions_of_other_answers_and_options_that_stand_twice_are_told() {
        let question = |id: &str, options: [&str; 2], gold| Question {
            id: id.to_owned(),
            question: "Which?".to_owned(),
            options: ('A'..)
                .zip(options)
                .map(|(letter, text)| Choice { letter, text: text.to_owned() })
                .collect(),
            gold: Some(gold),
            ..Question::default()
        };
        let of = |questions: &[Question]| oddities(&questions.iter().collect::<Vec<_>>());
        let mut questions = vec![
            question("1", ["iron", "zinc"], 'A'),
            // The same answer at another letter, and another question.
            question("2", ["zinc", " iron"], 'B'),
            question("3", ["Mg", "mg"], 'B'),
        ];
        assert!(of(&questions).is_empty());
        questions.push(question("4", ["iron", "zinc "], 'B'));
        questions.push(question("5", [" iron\nsalts", "iron salts"], 'B'));
        assert_eq!(
            of(&questions),
            [
                "questions with an option that stands twice, the first 5: 1 of 5",
                "questions that come again with another right answer, the first 4: 1 of 5"
            ]
        );
    }
}
