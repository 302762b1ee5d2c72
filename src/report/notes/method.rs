//! How a run on notes was made, in sentences: the system and its switches, models, prompts, seed, and what figures it may stand beside.

use crate::data::Format;
use crate::experiment::plan::Plan;
use crate::record::Language;
use crate::record::NoteLine;

/// MEDEC's test notes as the paper takes them: MS and UW.
const PAPER_NOTES: usize = 925;
/// Those of MS, which anybody may have.
const MS_NOTES: usize = 597;

pub fn method(plan: &Plan, notes: &[&NoteLine]) -> Vec<String> {
    let sentences = [
        system(plan),
        models(plan),
        Some(prompts(plan)),
        languages(plan, notes),
        Some(beside(plan)),
    ];
    sentences.into_iter().flatten().collect()
}

fn system(plan: &Plan) -> Option<String> {
    let setting = |name: &str| {
        let value = plan.settings.get(name);
        value.map_or_else(String::new, |value| match value.as_str() {
            Some(text) => text.to_owned(),
            None => value.to_string(),
        })
    };
    let agents = || match setting("agents").as_str() {
        "1" => "one agent detects, locates and corrects in one call",
        "2" => "one agent detects and locates in one call, one corrects",
        "3" => "one agent detects, one locates, one corrects",
        "4" => {
            "two agents detect and a third settles what they differ in; one locates and corrects in one call"
        }
        "7" => {
            "two agents detect, two locate, a third of each kind settles what they differ in, one corrects: the paper's structure"
        }
        "8" => {
            "two agents detect, two locate, a third of each kind settles what they differ in, one corrects and another checks the correction"
        }
        _ => "agents detect, locate and correct",
    };
    match plan.system.as_str() {
        "medguards" => Some(format!(
            "MedGuards (Algorithm 1): {}. Who differ are settled by {}; sentences are named by {}. The arbiter of detection reads reasons: {}, confidence: {}; that of localisation reads reasons: {}, confidence: {}. Outputs are read {}.",
            agents(),
            match setting("arbitration").as_str() {
                "vote" => "the majority with a third who reads neither (vote)",
                _ => "a third who reads both (in-context learning)",
            },
            match setting("localisation").as_str() {
                "hard" => "their number".to_owned(),
                _ => format!(
                    "their words, aligned with the note's sentences by {}",
                    setting("aligner")
                ),
            },
            setting("det_reasoning"),
            setting("det_confidence"),
            setting("loc_reasoning"),
            setting("loc_confidence"),
            match setting("release_compat").as_str() {
                "on" => "as the published code reads them, with its mistakes",
                _ => "as the paper describes them",
            },
        )),
        "base-llm" => Some(format!(
            "A base model alone: asked once with MEDEC's prompt {} in our words, and once more where its answer cannot be read.",
            setting("prompt"),
        )),
        _ => None,
    }
}

fn models(plan: &Plan) -> Option<String> {
    let mut names: Vec<&str> = plan.panel.iter().map(|one| one.backbone.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let text = match plan.free {
        true => "free text",
        false => "text under a grammar",
    };
    (!names.is_empty()).then(|| {
        let models = names.join(", ");
        format!("Models: {models}; seed {}; {text}. Weights, decoding and settings stand under “How it was made”.", plan.seed)
    })
}

fn prompts(plan: &Plan) -> String {
    let hash = &plan.prompts_sha256;
    let short = hash.get(..12).unwrap_or(hash);
    match &plan.prompts {
        None => format!("Prompts: those in the binary, sha256 {short}."),
        Some(directory) => {
            format!("Prompts: those in the binary, overridden by {directory}, sha256 {short}.")
        }
    }
}

/// Table 15's prompts are English.
fn languages(plan: &Plan, notes: &[&NoteLine]) -> Option<String> {
    let others = [(Language::Arabic, "Arabic"), (Language::Chinese, "Chinese")];
    let there = others
        .iter()
        .filter(|(language, _)| notes.iter().any(|note| note.language == *language));
    let names: Vec<&str> = there.map(|(_, name)| *name).collect();
    if names.is_empty() {
        return None;
    }
    let names = names.join(" and ");
    Some(match plan.prompts {
        None => format!("The {names} notes were put to the English prompts, unchanged."),
        Some(_) => format!("The notes are {names}; the prompts are as the directory has them."),
    })
}

/// What the notes are, and whether the paper's figures may stand beside ours.
fn beside(plan: &Plan) -> String {
    let n = plan.dataset.items.len();
    let is_test = plan
        .dataset
        .items
        .iter()
        .all(|item| item.starts_with("ms-test"));
    match plan.dataset.format.parse() {
        Ok(Format::Medec) if is_test => {
            let part = match n {
                MS_NOTES => String::new(),
                _ => format!("; this run takes {n} of them"),
            };
            format!(
                "The notes are MEDEC's: MS, {MS_NOTES} of the paper's {PAPER_NOTES} notes: not comparable{part}. MedGuards' published figures are over MS and UW together, by larger models."
            )
        }
        Ok(Format::Medec) => {
            "The notes are MEDEC's: MS, and not the paper's test notes: not comparable.".to_owned()
        }
        Ok(Format::Mederrbench) => format!(
            "The notes are MedErrBench's, {n} of them, on which MedGuards reports English, Arabic and Chinese by larger models (Table 3)."
        ),
        _ => format!("The notes are your own, {n} of them; no paper reports on them."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::notes::fixtures::{note, plan};

    #[test]
    fn says_how_the_paper_stands_to_these_notes() {
        let mut plan = plan();
        let told = method(&plan, &[]).join(" ");
        assert!(
            told.contains("MS, 597 of the paper's 925 notes: not comparable; this run takes"),
            "{told}"
        );
        plan.dataset.items = (0..597).map(|id| format!("ms-test-{id}")).collect();
        assert!(
            beside(&plan).contains("MS, 597 of the paper's 925 notes: not comparable. MedGuards")
        );
        plan.dataset.items = vec!["ms-val-1".into()];
        assert!(beside(&plan).contains("not the paper's test notes: not comparable"));
        plan.dataset.format = "notes".into();
        assert!(beside(&plan).contains("your own"));
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
            Some("The Arabic and Chinese notes were put to the English prompts, unchanged.")
        );
        plan.prompts = Some("/prompts/arabic".into());
        assert!(!languages(&plan, &[&arabic]).unwrap().contains("unchanged"));
    }

    #[test]
    fn every_switch_of_the_structure_is_told() {
        let mut plan = plan();
        let told = system(&plan).unwrap();
        assert!(
            told.contains("the paper's structure") && told.contains("(in-context learning)"),
            "{told}"
        );
        plan.settings.insert("arbitration".into(), "vote".into());
        plan.settings.insert("agents".into(), 8.into());
        plan.settings.insert("localisation".into(), "hard".into());
        let told = system(&plan).unwrap();
        for words in ["checks the correction", "reads neither", "their number"] {
            assert!(told.contains(words), "{told}");
        }
        plan.system = "something-else".into();
        assert_eq!(system(&plan), None);
    }
}
