//! What a run on notes came to: its figures, its tables, and how it was made.

use super::{Results, all_runs};
use crate::analysis::Outcomes;
use crate::analysis::health::{self, ParseHealth};
use crate::analysis::metrics::over_runs::plain;
use crate::analysis::notes::{CorrectionScorer, NoteFigures, tables};
use crate::experiment::contents::Contents;
use crate::experiment::plan::Plan;
use crate::record::{Language, NoteLine};

pub fn results(contents: &Contents, scorer: &CorrectionScorer) -> Results {
    let outcomes = Outcomes::of(contents);
    let figures = NoteFigures::of(&outcomes, scorer);
    let notes: Vec<&NoteLine> = contents.notes().into_values().collect();
    let health = ParseHealth::of(&contents.calls.records);
    let entries = [all_runs(&figures, health)];
    let about = figures.localisation.as_ref().map(|found| {
        let percent = |share: f64| plain(100.0 * share, 1);
        format!(
            "Right: whether the note has an error. The sentence was right in {} % by similarity, in {} % word for word.",
            percent(found.accuracy.mean),
            percent(found.accuracy_exact.mean)
        )
    });
    let mut tables = tables(&entries);
    tables.extend(health::table(&entries));
    Results {
        about: about.into_iter().collect(),
        method: method(&contents.plan, &notes),
        tables,
        ..Results::default()
    }
}

/// MEDEC's test notes as the paper takes them: MS and UW.
const PAPER_NOTES: usize = 925;
/// Those of MS, which anybody may have.
const MS_NOTES: usize = 597;

/// What a plan does not say by itself: how exemplars and languages are put, and which published figures are comparable.
fn method(plan: &Plan, notes: &[&NoteLine]) -> Vec<String> {
    let sentences = [
        plan.without_reasons().map(|told| format!("Exemplars: {told}.")),
        languages(plan, notes),
        beside(plan),
    ];
    sentences.into_iter().flatten().collect()
}

/// Table 15's prompts are English.
fn languages(plan: &Plan, notes: &[&NoteLine]) -> Option<String> {
    let others = [(Language::Arabic, "Arabic"), (Language::Chinese, "Chinese")];
    let there =
        others.iter().filter(|(language, _)| notes.iter().any(|note| note.language == *language));
    let names: Vec<&str> = there.map(|(_, name)| *name).collect();
    let is_told = plan.prompts.is_none() && !names.is_empty();
    let names = names.join(" and ");
    is_told.then(|| format!("The {names} notes were given to the English prompts, unchanged."))
}

/// Of a dataset of the paper's, whether its figures may stand beside ours.
fn beside(plan: &Plan) -> Option<String> {
    let n = plan.dataset.items.len();
    let is_test = plan.dataset.items.iter().all(|item| item.starts_with("ms-test"));
    Some(match plan.dataset.format.as_str() {
        "medec" if is_test => {
            let part = match n {
                MS_NOTES => String::new(),
                _ => format!(", of which this run takes {n}"),
            };
            format!(
                "The notes are MEDEC-MS, {MS_NOTES} of the paper's {PAPER_NOTES}{part}. MedGuards' published figures are not comparable: they are over MS and UW, by larger models."
            )
        }
        "medec" => {
            "The notes are MEDEC-MS, but not the paper's test notes: its figures are not comparable.".to_owned()
        }
        "mederrbench" => format!(
            "The notes are MedErrBench's, {n} of them, on which MedGuards reports English, Arabic and Chinese by larger models (Table 3)."
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::notes::{note, plan};

    #[test]
    fn says_how_the_paper_stands_to_these_notes() {
        let mut plan = plan();
        let told = method(&plan, &[]).join(" ");
        assert!(
            told.contains("MEDEC-MS, 597 of the paper's 925, of which this run takes"),
            "{told}"
        );
        plan.dataset.items = (0..597).map(|id| format!("ms-test-{id}")).collect();
        let beside = |plan: &Plan| beside(plan).unwrap_or_default();
        assert!(
            beside(&plan)
                .contains("MS, 597 of the paper's 925. MedGuards' published figures are not")
        );
        plan.dataset.items = vec!["ms-val-1".into()];
        assert!(
            beside(&plan).contains("not the paper's test notes: its figures are not comparable")
        );
        plan.dataset.format = "notes".into();
        assert_eq!(beside(&plan), "");
    }

    #[test]
    fn says_that_other_languages_are_put_to_english_prompts() {
        let mut plan = plan();
        let [mut arabic, mut chinese] = [note("x"), note("y")];
        arabic.language = Language::Arabic;
        chinese.language = Language::Chinese;
        let english = note("z");
        assert_eq!(languages(&plan, &[&english]), None);
        assert_eq!(
            languages(&plan, &[&arabic, &english, &chinese]).as_deref(),
            Some("The Arabic and Chinese notes were given to the English prompts, unchanged.")
        );
        plan.prompts = Some("/prompts/arabic".into());
        assert_eq!(languages(&plan, &[&arabic]), None);
    }
}
