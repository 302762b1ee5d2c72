//! A silent trial: the cases that an audit trail keeps, as runs that can be rated.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, from_value};

use super::draw::{Selection, draw_from};
use super::key::{Key, KeyRun};
use super::runs::{Rated, Source};
use super::sheet::Sheet;
use crate::audit::kept::{self, Kept};
use crate::diagnosis::Failure;
use crate::record::{ItemLine, ItemText, SearchLine};

/// One case of a trail.
struct Case {
    /// Its system as a run; in place of a plan's digest that of the system, its models and its settings.
    run: KeyRun,
    text: ItemText,
    line: ItemLine,
    searches: Vec<SearchLine>,
}

/// Whether a directory is that of an audit trail.
pub fn is_trail(directory: &Path) -> bool {
    crate::audit::survey::is_trail(directory)
}

/// Draws from the cases whose texts are kept, as from runs: a system is a run. Of a text that was sent again the first case is
/// rated. Where several systems worked, what all of them worked on is rated, or what `system` worked on.
///
/// # Errors
/// A trail that cannot be read, or was changed; nothing that can be rated.
pub fn draw(
    directory: &Path,
    system: Option<&str>,
    selection: &Selection,
) -> Result<(Sheet, Key), Failure> {
    let path = directory.display().to_string();
    let kept = kept::read(directory, "rate export", &[])?.kept;
    let cases = kept.into_iter().filter_map(|kept| case(&path, kept));
    let is_wanted = |case: &Case| system.is_none_or(|system| system == case.run.system);
    let cases: Vec<Case> = cases.filter(is_wanted).collect();
    if cases.is_empty() {
        return Err(Failure::usage(
            format!(
                "the audit trail {} keeps no text of a finished case{}",
                directory.display(),
                system.map(|system| format!(" of {system}")).unwrap_or_default()
            ),
            "cases are kept with --audit-content full, until they are deleted",
        ));
    }
    let mut items: BTreeMap<&str, &ItemText> = BTreeMap::new();
    let mut runs: Vec<Rated<'_>> = Vec::new();
    for case in &cases {
        items.entry(case.text.item()).or_insert(&case.text);
        let is_own = |run: &Rated<'_>| run.key.plan_sha256 == case.run.plan_sha256;
        let place = runs.iter().position(is_own).unwrap_or_else(|| {
            let (key, finished, searches) = (case.run.clone(), BTreeMap::new(), Vec::new());
            runs.push(Rated { key, finished, searches });
            runs.len() - 1
        });
        let run = &mut runs[place];
        if let std::collections::btree_map::Entry::Vacant(entry) =
            run.finished.entry(case.text.item())
        {
            entry.insert(&case.line);
            run.searches.extend(&case.searches);
        }
    }
    let source = Source {
        items: items.into_values().collect(),
        runs,
        dataset: "audit".to_owned(),
        dataset_sha256: String::new(),
    };
    let nothing = || {
        Failure::usage(
            "no text was worked on by every system of the trail",
            "give --system NAME to rate one of them",
        )
    };
    draw_from(source, selection)?.ok_or_else(nothing)
}

/// The case of a line and its texts; `None` where they cannot be read as one.
fn case(path: &str, kept: Kept) -> Option<Case> {
    let Kept { line, mut texts } = kept;
    let mut outcome = texts["line"].take();
    for name in ["prev", "hash"] {
        outcome.as_object_mut()?.insert(name.to_owned(), Value::from(""));
    }
    let seats = texts["seats"].as_array().into_iter().flatten();
    let mut models: Vec<String> = Vec::new();
    for model in seats.filter_map(|seat| seat["model"].as_str()) {
        if !models.iter().any(|known| known == model) {
            models.push(model.to_owned());
        }
    }
    let outcome: ItemLine = from_value(outcome).ok()?;
    let run = KeyRun {
        path: path.to_owned(),
        system: line.text("system").to_owned(),
        models,
        plan_sha256: line.text("fingerprint").to_owned(),
        run: outcome.run(),
        synthetic: texts["synthetic"] == true,
    };
    let text = from_value(texts["input"].take()).ok()?;
    let searches = from_value(texts["searches"].take()).unwrap_or_default();
    Some(Case { run, text, line: outcome, searches })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::audit::Line;
    use crate::experiment::fixtures::{item, texts};

    #[test]
    fn a_key_names_every_model_once_whatever_the_order_of_the_seats() {
        let seats = ["a", "b", "a"].map(|model| json!({"agent": "x", "model": model}));
        let kept = Kept {
            line: Line::default(),
            texts: json!({
                "line": ItemLine::from(item("q1", 1)), "seats": seats, "input": texts(&["q1"])[0], "searches": [],
            }),
        };
        assert_eq!(case("trail", kept).unwrap().run.models, ["a", "b"]);
    }
}
