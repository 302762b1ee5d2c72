//! Deleting kept texts: a chained line says which, who asked and why, then the files go. The rest of the trail stays.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::json;

use super::files::Line;
use super::read::{self, Filter};
use super::trail::Trail;
use super::{Event, content};
use crate::console;
use crate::diagnosis::Failure;

/// Texts that one line names at most.
const NAMED: usize = 1000;
const DAY: u64 = 24 * 60 * 60;
/// A file that no line names may be about to be named for so long.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// The identity of lines that tell none.
const NO_IDENTITY: &str = "none";

/// Which texts are to go.
#[derive(Clone, Debug)]
pub enum Selection {
    /// Those of these lines: by number or by id of the text.
    Ids(Vec<String>),
    /// Those from before a time, as in `2026-03-01`, in UTC.
    Before(String),
    OlderThan {
        days: u32,
    },
    /// Those of a key or user. Where several have the name, of the one with this `identity`.
    Actor {
        name: String,
        identity: Option<String>,
    },
}

/// What is to be deleted, who asks, and why.
#[derive(Clone, Debug)]
pub struct Request {
    pub selection: Selection,
    pub why: String,
    pub actor: Option<String>,
}

/// What was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    pub texts: usize,
    /// Files that belonged to no line: their process was killed before it wrote one.
    pub strays: usize,
}

impl Selection {
    fn wants(&self, line: &Line) -> bool {
        match self {
            Selection::Ids(ids) => names(line).iter().any(|name| ids.contains(name)),
            Selection::Before(time) => line.text("at_utc") < time.as_str(),
            Selection::OlderThan { days } => {
                let age = Duration::from_secs(u64::from(*days) * DAY);
                let limit = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
                line.text("at_utc") < humantime::format_rfc3339_seconds(limit).to_string().as_str()
            }
            Selection::Actor { name, identity } => {
                let is_it = |wanted: &String| wanted == identity_of(line);
                line.text("actor") == name && identity.as_ref().is_none_or(is_it)
            }
        }
    }

    fn ids(&self) -> &[String] {
        match self {
            Selection::Ids(ids) => ids,
            _ => &[],
        }
    }

    /// As the line says it.
    fn words(&self) -> String {
        match self {
            Selection::Ids(ids) => format!("{} ids", ids.len()),
            Selection::Before(time) => format!("before {time}"),
            Selection::OlderThan { days } => format!("older than {days} days"),
            Selection::Actor { name, identity: None } => format!("of {name}"),
            Selection::Actor { name, identity: Some(identity) } => {
                format!("of {name}, {identity}")
            }
        }
    }

    /// Refuses a name that several have: a key's and a user's, or those of two keys.
    fn refuse_several(&self, identities: &BTreeSet<String>) -> Result<(), Failure> {
        match self {
            Selection::Actor { name, identity: None } if identities.len() > 1 => {
                let all: Vec<String> = identities.iter().map(|one| console::plain(one)).collect();
                Err(Failure::usage(
                    format!(
                        "`{name}` is the name of several: {}; nothing was deleted",
                        all.join(", ")
                    ),
                    "give --identity with one of them",
                ))
            }
            _ => Ok(()),
        }
    }
}

/// Who a line's actor is.
fn identity_of(line: &Line) -> &str {
    match line.text("identity") {
        "" => NO_IDENTITY,
        identity => identity,
    }
}

/// What a line's text may be asked for by: the line's number, and the text's id.
fn names(line: &Line) -> [String; 2] {
    [line.seq().to_string(), line.text("content").to_owned()]
}

/// Deletes the texts that are asked for, and files that belong to no line.
///
/// # Errors
/// A trail that cannot be read or written, or names what is no text; an id that no text has; an actor's name that several have; a file
/// that cannot be deleted, which the next attempt deletes.
pub fn forget(trail: &Trail, request: &Request) -> Result<Forgotten, Failure> {
    let directory = trail.options().directory.as_path();
    let (mut wanted, mut named, mut forgotten) = (Vec::new(), HashSet::new(), HashSet::new());
    let mut unknown = request.selection.ids().to_vec();
    read::lines(directory, &Filter::default(), |line| {
        let id = line.text("content");
        let own = Some(id.to_owned()).filter(|id| !id.is_empty());
        for id in own.into_iter().chain(ids(&line)) {
            content::refuse_strange(&id)
                .map_err(|error| Failure::mismatch(format!("line {}: {error}", line.seq())))?;
        }
        if !id.is_empty() {
            named.insert(id.to_owned());
            unknown.retain(|one| !names(&line).contains(one));
            if request.selection.wants(&line) {
                wanted.push((id.to_owned(), identity_of(&line).to_owned()));
            }
        }
        forgotten.extend(ids(&line));
        Ok(())
    })?;
    if let Some(unknown) = unknown.first() {
        return Err(Failure::usage(
            format!("the trail keeps no text under `{unknown}`; nothing was deleted"),
            "name a line's number or its text's id, as `audit export` shows them",
        ));
    }
    wanted.retain(|(id, _)| !forgotten.contains(id));
    let (wanted, identities): (Vec<String>, BTreeSet<String>) = wanted.into_iter().unzip();
    request.selection.refuse_several(&identities)?;
    for ids in wanted.chunks(NAMED) {
        let event = Event::new("forget")
            .with("actor", request.actor.as_deref())
            .with("selection", request.selection.words())
            .with("why", request.why.as_str())
            .with("count", ids.len())
            .with("forgotten", json!(ids));
        trail.write(event)?;
    }
    // Those said to be gone before may still be there: that attempt was cut short.
    for id in wanted.iter().chain(&forgotten) {
        content::remove(directory, id)?;
    }
    Ok(Forgotten { texts: wanted.len(), strays: remove_strays(directory, &named)? })
}

/// The ids that a `forget` line names.
pub(super) fn ids(line: &Line) -> impl Iterator<Item = String> + '_ {
    let ids = line.fields["forgotten"].as_array().into_iter().flatten();
    ids.filter_map(|id| Some(id.as_str()?.to_owned()))
}

fn remove_strays(directory: &Path, named: &HashSet<String>) -> Result<usize, Failure> {
    let mut removed = 0;
    for path in content::list(directory)? {
        let is_named = content::id(&path).is_some_and(|id| named.contains(id));
        let age = fs_err::metadata(&path)?.modified()?.elapsed().unwrap_or_default();
        if !is_named && age >= FRESH {
            content::erase(&path)?;
            removed += 1;
        }
    }
    Ok(removed)
}
