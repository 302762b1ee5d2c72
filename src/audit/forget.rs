//! Deleting kept texts: a line says which, who asked and why, then the files go. The lines stay.

use std::collections::BTreeSet;

use serde_json::json;

use super::filter::Filter;
use super::line::Event;
use super::survey::Survey;
use super::trail::Trail;
use super::{content, user};
use crate::diagnosis::Failure;

/// Texts that one line names at most.
const NAMED: usize = 1000;

/// Deletes the texts of these lines; where none is named, of those that `filter` wants. Gives how many there were.
///
/// # Errors
/// A trail that cannot be read or written; a line without a text; a name that several have.
pub fn forget(trail: &Trail, filter: &Filter, lines: &[u64], why: &str) -> Result<usize, Failure> {
    let directory = &trail.options().directory;
    let (mut wanted, mut identities) = (Vec::new(), BTreeSet::new());
    let survey = Survey::read(directory, &[], |line| {
        let is_named =
            if lines.is_empty() { filter.wants(line) } else { lines.contains(&line.seq) };
        if is_named && !line.text("content").is_empty() {
            wanted.push((line.seq, line.text("content").to_owned()));
            identities.insert(line.text("identity").to_owned());
        }
    })?;
    if let Some(other) = lines.iter().find(|seq| wanted.iter().all(|(own, _)| own != *seq)) {
        return Err(Failure::usage(
            format!("the trail keeps no text in line {other}; nothing was deleted"),
            "`wardround audit show` lists the lines",
        ));
    }
    if let Some(name) = filter.actor.as_deref().filter(|_| identities.len() > 1) {
        let all = Vec::from_iter(identities).join(", ");
        return Err(Failure::usage(
            format!("`{name}` is the name of several: {all}; nothing was deleted"),
            "give --identity with one of them",
        ));
    }
    wanted.retain(|(_, sum)| !survey.forgotten.contains(sum));
    let (actor, identity) = user();
    for texts in wanted.chunks(NAMED) {
        let sums: Vec<&str> = texts.iter().map(|(_, sum)| sum.as_str()).collect();
        let event = Event::new("forget")
            .with("actor", actor.as_str())
            .with("identity", identity.as_str())
            .with("why", why)
            .with("count", sums.len())
            .with("forgotten", json!(sums));
        trail.write(event)?;
        for sum in sums {
            content::remove(directory, sum)?;
        }
    }
    Ok(wanted.len())
}
