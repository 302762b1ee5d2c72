//! `ratings.json` in a run directory: what raters said of that run, for its report. It is no part of the run's chains, and names
//! the plan, so that a copy in another run's directory is found out.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::key::{Key, KeyRun};
use super::rater::{not_read, read_json};
use super::scores::{CitationCounts, Mos, Rated, RaterPair};
use super::tables;
use crate::analysis::table::Table;
use crate::diagnosis::Failure;
use crate::experiment::contents::Contents;
use crate::experiment::whole_file;
use crate::record::Schema;

/// The file's name in the run directory.
pub const FILE: &str = "ratings.json";
const KIND: &str = "wardround-run-ratings";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRatings {
    kind: String,
    schema: Schema,
    pub sheet: String,
    pub gold_shown: bool,
    pub run: KeyRun,
    pub raters: Vec<String>,
    /// Of this run.
    pub entries: Vec<Rated>,
    /// Over the whole sheet.
    pub pairs: Vec<RaterPair>,
}

impl RunRatings {
    /// What the raters said of the run in `contents`.
    ///
    /// # Errors
    /// A run that the key does not list.
    pub fn of(
        contents: &Contents,
        key: &Key,
        raters: &[String],
        entries: &[Rated],
        pairs: &[RaterPair],
    ) -> Result<RunRatings, Failure> {
        let mut runs = key.runs.iter();
        let place = runs.position(|run| run.plan_sha256 == contents.plan_sha256);
        let Some(place) = place else {
            return Err(Failure::usage(
                format!("{} is none of the runs that were rated", contents.path.display()),
                "`--join` takes the run directories that were exported",
            ));
        };
        let own = entries.iter().filter(|entry| entry.run == place);
        Ok(RunRatings {
            kind: KIND.to_owned(),
            schema: Schema,
            sheet: key.sheet.clone(),
            gold_shown: key.gold_shown,
            run: key.runs[place].clone(),
            raters: raters.to_vec(),
            entries: own.cloned().collect(),
            pairs: pairs.to_vec(),
        })
    }

    /// What an earlier scoring of the same sheet left in the run's directory may be replaced, if its raters are among these.
    ///
    /// # Errors
    /// Ratings of another sheet, or of other raters, that are there.
    pub fn refuse_others(&self, contents: &Contents) -> Result<(), Failure> {
        let Some(before) = RunRatings::read(contents)? else { return Ok(()) };
        let path = contents.path.join(FILE);
        if before.sheet != self.sheet {
            return Err(Failure::usage(
                format!("{} holds the ratings of another sheet, {}", path.display(), before.sheet),
                "move it away to join these ratings",
            ));
        }
        let mut raters = before.raters;
        raters.retain(|rater| !self.raters.contains(rater));
        if raters.is_empty() {
            return Ok(());
        }
        let (path, raters) = (path.display(), raters.join(", "));
        Err(Failure::usage(
            format!("{path} holds the ratings of {raters} too, which would be lost"),
            "score the files of all raters together",
        ))
    }

    /// Writes it into the run's directory.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, contents: &Contents) -> Result<(), Failure> {
        let path = contents.path.join(FILE);
        let text = serde_json::to_string_pretty(self).map_err(io::Error::from)?;
        Ok(whole_file::write_private(&path, (text + "\n").as_bytes())?)
    }

    /// `None` where the run was not rated.
    ///
    /// # Errors
    /// A file that cannot be read, or of another run.
    pub fn read(contents: &Contents) -> Result<Option<RunRatings>, Failure> {
        let path: &Path = &contents.path.join(FILE);
        if !fs_err::exists(path)? {
            return Ok(None);
        }
        let what = "file of a run's ratings";
        let ratings: RunRatings = read_json(path, KIND, what)?;
        let n_raters = ratings.raters.len();
        let is_whole = |entry: &Rated| {
            entry.scores.len() == n_raters
                && entry.comments.len() == n_raters
                && (entry.citations.is_empty() || entry.citations.len() == n_raters)
        };
        if !ratings.entries.iter().all(is_whole) {
            let reason = "an entry has not a score and a comment for each rater";
            return Err(not_read(path, what, reason));
        }
        match ratings.run.plan_sha256 == contents.plan_sha256 {
            true => Ok(Some(ratings)),
            false => Err(Failure::usage(
                format!("{} holds the ratings of another run", path.display()),
                "remove it, and join its own ratings",
            )),
        }
    }

    /// As the run's report shows them.
    pub fn tables(&self) -> Vec<Table> {
        let entries: Vec<&Rated> = self.entries.iter().collect();
        let mos = Mos::of(&entries, self.raters.len());
        let mut scores = tables::scores(&self.raters, &[(&self.run, mos)]);
        scores.notes.push(format!(
            "Raters did not know which run they rated; the gold was {}shown to them. Sheet {}, the run's repetition {}.",
            if self.gold_shown { "" } else { "not " },
            self.sheet,
            self.run.run
        ));
        let mut tables = vec![scores];
        tables.extend(tables::citations(&[(&self.run, CitationCounts::of(&entries))]));
        if !self.pairs.is_empty() {
            tables.push(tables::agreement(&self.pairs));
        }
        tables.push(tables::rated(&self.raters, &self.entries));
        tables
    }
}
