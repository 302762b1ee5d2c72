//! The proposed correction compared with the gold one, word by word.

use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::Serialize;

use crate::analysis::notes::{Measure, ScoresByPair, quality};
use crate::record::NoteLine;
use crate::text::{Language, SequenceMatcher, chinese_words, split_words};

/// `None` where neither side corrects.
pub fn correction(note: &NoteLine, neural: &ScoresByPair) -> Option<Value> {
    let gold = note.gold.as_ref();
    let wanted = gold.and_then(|gold| gold.correction.as_deref());
    let given = note.correction.as_deref();
    wanted.or(given)?;
    let wrong = gold.and_then(|gold| gold.sentence.as_deref()).unwrap_or_default();
    let both = wanted.zip(given);
    let same = both.is_some_and(|(wanted, given)| wanted == given);
    let quality = quality(note, neural);
    let scores = Measure::of_texts().filter_map(|measure| {
        Some((measure.label(), format!("{:.4}", quality.as_ref()?.get(measure)?)))
    });
    let diff = |before: &str, after: &str| Serde(Diff::of(note.language, before, after));
    Some(context! {
        // From the located sentence to the proposed one.
        proposed => given.map(|given| diff(&note.sentence, given)),
        // From the gold sentence to the gold correction.
        gold => wanted.map(|wanted| diff(wrong, wanted)),
        // From the gold correction to the proposed one, where both are and differ.
        between => both.filter(|_| !same).map(|(wanted, given)| diff(wanted, given)),
        same,
        // Whether the note has gold at all.
        is_graded => gold.is_some(),
        // Measures of the pair, as the tables round them.
        scores => Serde(scores.collect::<Vec<_>>()),
    })
}

/// Two sentences word by word: pieces in order, with what stands between them.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// Nothing in Chinese, which is written without blanks.
    gap: &'static str,
    /// Each with what became of it: kept, dropped or added.
    pieces: Vec<(&'static str, String)>,
}

impl Diff {
    pub fn of(language: Language, before: &str, after: &str) -> Diff {
        let (before, after) = (words(language, before), words(language, after));
        let gap = match language {
            Language::Chinese => "",
            Language::English | Language::Arabic => " ",
        };
        let mut pieces = Vec::new();
        for opcode in SequenceMatcher::new(&after).opcodes(&before) {
            let (old, new) = (&before[opcode.a], &after[opcode.b]);
            let changes = match opcode.is_equal {
                true => vec![("kept", new)],
                false => vec![("dropped", old), ("added", new)],
            };
            let changes = changes.into_iter().filter(|(_, words)| !words.is_empty());
            pieces.extend(changes.map(|(change, words)| (change, words.join(gap))));
        }
        Diff { gap, pieces }
    }
}

fn words(language: Language, text: &str) -> Vec<&str> {
    match language {
        Language::Chinese => chinese_words(text.trim()),
        Language::English | Language::Arabic => split_words(text).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::notes::{gold, note};

    #[test]
    fn either_side_may_be_missing() {
        let mut judged = note("x");
        let of = |note: &NoteLine| {
            let shown = correction(note, &ScoresByPair::new());
            shown.map(|shown| serde_json::to_value(shown).unwrap())
        };
        assert!(of(&judged).is_none());
        judged.gold = Some(gold(Some(1)));
        let missed = of(&judged).unwrap();
        assert!(missed["proposed"].is_null() && missed["between"].is_null());
        assert!(!missed["gold"].is_null());
        assert_eq!(missed["scores"], serde_json::json!([]));
        judged.flag = Some(true).into();
        judged.correction = judged.gold.as_ref().unwrap().correction.clone();
        let equal = of(&judged).unwrap();
        assert!(equal["same"] == true && equal["between"].is_null());
        // Four of the package `rouge`, four with stems; no neural measure without its weights.
        let values: Vec<_> =
            equal["scores"].as_array().unwrap().iter().map(|one| one[1].clone()).collect();
        assert_eq!(values, ["1.0000"; 8]);
        judged.correction = Some("Something else.".into());
        assert!(!of(&judged).unwrap()["between"].is_null());
    }
}

#[cfg(test)]
mod diff_tests {
    use super::*;

    /// `[-dropped-]` and `{+added+}`, as `wdiff` writes them.
    fn told(language: Language, before: &str, after: &str) -> String {
        let diff = Diff::of(language, before, after);
        let pieces = diff.pieces.iter().map(|(change, text)| match *change {
            "dropped" => format!("[-{text}-]"),
            "added" => format!("{{+{text}+}}"),
            _ => text.clone(),
        });
        pieces.collect::<Vec<_>>().join(diff.gap)
    }

    #[test]
    fn words_are_kept_dropped_and_added() {
        let told = |before, after| told(Language::English, before, after);
        assert_eq!(
            told("He was given aspirin daily.", "He was given  warfarin daily."),
            "He was given [-aspirin-] {+warfarin+} daily."
        );
        assert_eq!(told("Give it now.", "Give it."), "Give [-it now.-] {+it.+}");
        assert_eq!(told("same words", "same words"), "same words");
        assert_eq!(told("", "all new"), "{+all new+}");
        assert_eq!(told("all old", ""), "[-all old-]");
        assert_eq!(told("", ""), "");
    }

    #[test]
    fn chinese_is_cut_into_words_and_joined_without_blanks() {
        assert_eq!(
            told(Language::Chinese, "患者诊断为肺炎。", "患者诊断为肺癌。"),
            "患者诊断为[-肺炎-]{+肺癌+}。"
        );
    }

    #[test]
    fn arabic_keeps_the_order_of_its_words() {
        assert_eq!(
            told(Language::Arabic, "أعطي المريض الأسبرين يوميا", "أعطي المريض الوارفارين يوميا"),
            "أعطي المريض [-الأسبرين-] {+الوارفارين+} يوميا"
        );
    }
}
