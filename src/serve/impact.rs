//! What a new version or other weights change of the requests and cases of an audit trail.
//!
//! A trail keeps what came out, and of a case what each agent said, not what it was asked: another prompt shows in what is said.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::error::Code;
use super::models::Loaded;
use super::replay::{Repeated, replay};
use crate::audit::files::Line;
use crate::audit::kept::Retained;
use crate::diagnosis::Failure;
use crate::experiment::compare::Change;
use crate::experiment::difference::{FieldDifference, differences};
use crate::experiment::impact::{CallChange, Case, Kept, answer_in_words, note_in_words};
use crate::experiment::versions::THIS;

/// Repeats the lines of a trail that have their texts on what `load` loads.
///
/// # Errors
/// As [`replay`]; what cannot be loaded.
pub fn impact(
    directory: &Path,
    lines: Vec<Retained>,
    load: impl FnOnce() -> Result<Loaded, Failure>,
) -> Result<Kept, Failure> {
    let (mut names, mut changed) = (Vec::new(), Vec::new());
    let mut differs = |field: String, left: &str, right: &str| {
        let one = FieldDifference { field, left: left.to_owned(), right: right.to_owned() };
        if left != right && !changed.contains(&one) {
            changed.push(one);
        }
    };
    let (mut wanted, mut cases) = (Vec::new(), Vec::new());
    for Retained { kept, lacks, version, .. } in lines {
        differs("version".to_owned(), &version, THIS);
        if !names.contains(&name(&kept.line)) {
            names.push(name(&kept.line));
        }
        match lacks {
            None => wanted.push(kept),
            Some(why) => {
                let line = kept.line.seq();
                let case = Case::not_comparable(format!("line {line}"), why);
                cases.push(Case { line: Some(line), ..case });
            }
        }
    }
    if !wanted.is_empty() {
        for repeated in replay(load()?, wanted, true)? {
            let line = &repeated.kept.line;
            if let Ok((_, now)) = &repeated.now {
                differs(format!("fingerprint of {}", name(line)), line.text("fingerprint"), now);
            }
            cases.push(classify(repeated));
        }
    }
    cases.sort_by_key(|case| case.line);
    Ok(Kept { path: directory.to_owned(), system: names.join(", "), changed, cases })
}

/// What answered.
fn name(line: &Line) -> String {
    ["model", "system"].map(|name| line.text(name)).concat()
}

fn classify(repeated: Repeated) -> Case {
    let line = &repeated.kept.line;
    let (name, then) = (format!("line {}", line.seq()), &repeated.kept.texts["output"]);
    let case = match repeated.now {
        // What is asked for is not loaded, or was not kept: nothing was generated.
        Err(error) if matches!(error.code, Code::ModelNotFound | Code::MissingParameter) => {
            Case::not_comparable(name, error.message)
        }
        Err(error) => {
            let words = [in_words(then), format!("errored: {}", error.message)];
            Case::of(name, words, Vec::new(), differences(then, &error.json()))
        }
        Ok((now, _)) => {
            let (mut calls, mut outcome) = (BTreeMap::<usize, Vec<_>>::new(), Vec::new());
            for one in differences(then, &now) {
                // What an agent said, or a choice of a completion; all else is the outcome.
                let place = one.field.trim_start_matches("agents").strip_prefix('[');
                let place = place.and_then(|rest| rest.split_once(']'));
                let Some((place, field)) = place else {
                    outcome.push(one);
                    continue;
                };
                let (place, field) = (place.parse().unwrap_or(0), field.trim_start_matches('.'));
                // Which model it is, its fingerprint says.
                if field != "backbone" {
                    let field = field.to_owned();
                    calls.entry(place).or_default().push(FieldDifference { field, ..one });
                }
            }
            let calls = calls.into_iter().filter_map(|(place, fields)| {
                let said = &then["agents"][place];
                let stage = said["stage"].as_str().or(said["place"].as_str()).unwrap_or_default();
                let agent = said["agent"].as_str().map(|agent| format!("{agent}, {stage}"));
                let call = agent.unwrap_or_else(|| format!("answer {place}"));
                CallChange::of(call, Change::Fields(fields))
            });
            Case::of(name, [in_words(then), in_words(&now)], calls.collect(), outcome)
        }
    };
    Case { line: Some(line.seq()), ..case }
}

/// An output as the trail has it, in words.
fn in_words(output: &Value) -> String {
    if let Some(choices) = output.as_array() {
        let texts = choices.iter().filter_map(|choice| choice["text"].as_str());
        return texts.collect::<Vec<_>>().join("\n");
    }
    match output.get("has_error") {
        None => answer_in_words(output["answer"].as_str().unwrap_or_default()),
        Some(has_error) => {
            let sentence = output["sentence_id"].as_u64().map(|id| id as usize);
            note_in_words(has_error.as_bool(), sentence, output["correction"].as_str())
        }
    }
}
