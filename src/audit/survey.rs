//! All that the lines of a trail say of what lies beside them; whether it still is as they say.

use std::collections::{BTreeMap, HashSet};
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use super::content;
use super::key::{self, TrailKey};
use super::line::Line;
use crate::diagnosis::Failure;
use crate::experiment::chain::{self, Chain};
use crate::experiment::link::Link;
use crate::experiment::whole_file;
use crate::outside;

/// A trail whose every line was checked, and its head.
pub struct Survey {
    /// Where it ends; without its lines.
    pub chain: Chain<Line>,
    /// The lines whose texts are kept, by the texts' sums.
    pub texts: BTreeMap<String, u64>,
    /// The sums of texts that were deleted.
    pub forgotten: HashSet<String>,
    /// Calls that were begun, and whose end no line tells.
    pub open: HashSet<String>,
}

/// What was found of the texts of a trail.
pub struct Verified {
    pub survey: Survey,
    pub kept: usize,
    pub deleted: usize,
    /// Texts that are not there, though no line says that they were deleted.
    pub missing: usize,
    /// Files that no line names, of a process that was killed; the next start deletes them.
    pub strays: usize,
}

/// The head of a trail, its last line's number and hash: its file, and what the first line is chained to. Kept elsewhere, it proves that no
/// line was cut off since.
pub(super) const HEAD: &str = "trail.head";
pub(super) const ANCHOR: &str = "0000000000000000000000000000000000000000000000000000000000000000";

pub(super) fn write_head(directory: &Path, words: &str) -> std::io::Result<()> {
    whole_file::write_private(&directory.join(HEAD), words.as_bytes())
}

/// The hash of the head beside a trail; `None` where there is none.
pub(super) fn head(directory: &Path) -> Result<Option<String>, Failure> {
    let bytes = outside::if_there(outside::bytes(&directory.join(HEAD), 1 << 10))?;
    let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(text.map(|text| text.split_whitespace().next_back().unwrap_or_default().to_owned()))
}

impl Survey {
    /// Reads a trail, and hands its lines to `take`. The head beside it and those of `heads` must be hashes of its lines.
    ///
    /// # Errors
    /// A trail that was changed, cut or made anew, or has lost its key.
    pub fn read(
        directory: &Path,
        heads: &[String],
        mut take: impl FnMut(&Line),
    ) -> Result<Survey, Failure> {
        refuse_links(directory)?;
        let path = directory.join(Line::FILE);
        if !path.exists() {
            let hint = "name the directory that --audit has";
            return Err(Failure::missing(
                format!("{} holds no audit trail", directory.display()),
                hint,
            ));
        }
        let beside = head(directory)?;
        let has_head = beside.is_some();
        let mut told: HashSet<String> = heads.iter().cloned().chain(beside).collect();
        told.remove(ANCHOR);
        let key = TrailKey::read(directory)?;
        let (mut texts, mut forgotten, mut open) =
            (BTreeMap::new(), HashSet::new(), HashSet::new());
        let file = BufReader::with_capacity(1 << 20, outside::open(&path)?);
        let chain = chain::read_each(&path, file, ANCHOR, &key.0, |line: &Line| {
            told.remove(&line.hash);
            let named = line.fields.get("forgotten").and_then(Value::as_array);
            forgotten
                .extend(named.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
            match line.text("event") {
                "begun" => open.insert(line.text("call").to_owned()),
                _ => open.remove(line.text("call")),
            };
            if !line.text("content").is_empty() {
                texts.insert(line.text("content").to_owned(), line.seq);
            }
            take(line);
            false
        });
        let wrong = |why: String| {
            Failure::missing(
                format!("the audit trail {} is not as it was: {why}", directory.display()),
                "keep it as it is and find out who did it; --audit with another directory begins a new one",
            )
        };
        let chain = chain.map_err(|error| wrong(error.to_string()))?;
        if !has_head {
            return Err(wrong(format!("{HEAD} is missing, which is written before any line")));
        }
        match told.iter().next() {
            None => Ok(Survey { chain, texts, forgotten, open }),
            Some(head) => Err(wrong(format!(
                "it ends with line {}, and no line of it has the head {head}: its end was cut off, or it was made anew",
                chain.lines
            ))),
        }
    }

    /// The lines of a trail; where the `wardround.request` of an answer is given, those of that answer.
    ///
    /// # Errors
    /// What [`Survey::read`] refuses.
    pub fn lines(directory: &Path, request: Option<&str>) -> Result<Vec<Line>, Failure> {
        let key = TrailKey::read(directory)?;
        let sum = request.map(|digest| key.sum(digest));
        let is_wanted = |line: &Line| sum.as_deref().is_none_or(|sum| line.text("request") == sum);
        let mut lines = Vec::new();
        Survey::read(directory, &[], |line| lines.extend(is_wanted(line).then(|| line.clone())))?;
        Ok(lines)
    }

    /// Deletes what a process that was killed left: texts of no line, and those that a line says are deleted.
    pub(super) fn clean(&self, directory: &Path) -> Result<(), Failure> {
        for sum in content::list(directory)? {
            if !self.texts.contains_key(&sum) || self.forgotten.contains(&sum) {
                content::remove(directory, &sum)?;
            }
        }
        Ok(())
    }
}

/// Checks a trail, and every text that it keeps. `heads` are hashes that were told and kept elsewhere.
///
/// # Errors
/// What [`Survey::read`] refuses; a text that was changed, or was to be deleted and is there.
pub fn verify(directory: &Path, heads: &[String]) -> Result<Verified, Failure> {
    let survey = Survey::read(directory, heads, |_| ())?;
    let key = TrailKey::read(directory)?;
    let mut there = content::list(directory)?;
    let (mut kept, mut deleted, mut missing) = (0, 0, 0);
    for (sum, seq) in &survey.texts {
        match (survey.forgotten.contains(sum), there.remove(sum)) {
            (true, true) => {
                let problem = format!("the text of line {seq} was to be deleted, and is there");
                return Err(Failure::mismatch(problem));
            }
            (true, false) => deleted += 1,
            (false, true) => {
                content::read(directory, &key, sum, *seq)?;
                kept += 1;
            }
            (false, false) => missing += 1,
        }
    }
    Ok(Verified { survey, kept, deleted, missing, strays: there.len() })
}

/// Refuses links among a trail's files: their lines, keys and texts would be another's.
fn refuse_links(directory: &Path) -> Result<(), Failure> {
    let names = [Line::FILE, HEAD, key::FILE, content::FOLDER];
    let mut paths = names.iter().map(|name| directory.join(name));
    match paths.find(|path| path.is_symlink()) {
        None => Ok(()),
        Some(path) => Err(Failure::mismatch(format!(
            "{} is a link, which an audit trail does not make",
            path.display()
        ))),
    }
}

/// Refuses what others than its owner and group may read or write: volumes and log shippers come with a group.
pub(super) fn refuse_open(path: &Path) -> Result<(), Failure> {
    let mode = fs_err::metadata(path)?.permissions().mode() & 0o777;
    match mode & 0o007 {
        0 => Ok(()),
        _ => Err(Failure::usage(
            format!("{} has mode {mode:03o}: others may read or write it", path.display()),
            &format!(
                "find out who could; `chmod o= {}` closes it, and a key that others have read is no secret",
                path.display()
            ),
        )),
    }
}
