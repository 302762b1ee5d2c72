//! Two sentences word by word: what one has and the other has not.

use serde::Serialize;

use crate::text::{Edit, Language, SequenceMatcher, chinese_words, split_words};

/// Pieces in order, with what stands between them.
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
            let mut push = |change, words: &[&str]| pieces.push((change, words.join(gap)));
            match opcode.edit {
                Edit::Equal => push("kept", &after[opcode.b]),
                Edit::Delete => push("dropped", &before[opcode.a]),
                Edit::Insert => push("added", &after[opcode.b]),
                Edit::Replace => {
                    push("dropped", &before[opcode.a]);
                    push("added", &after[opcode.b]);
                }
            }
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
