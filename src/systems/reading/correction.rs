//! The sentence that a text gives as a correction, without what announces it or is said about it.

use super::standing::plain;
use crate::text::Pattern;

/// A correction without what announces it («Corrected Sentence: …», «it should read "…"»), the sentence's number, and what it was
/// before («old -> new»). Of announcements the first counts where the text begins with it, else the last.
pub fn corrected(text: &str) -> &str {
    static ANNOUNCED: Pattern = Pattern::new(
        r"(?im)^[\s*_>#-]*(?:(?:sure|certainly|of course|okay|ok)\W+)?(?:(?:here(?:['’]s| is)\s+)?(?:the\s+|my\s+)?(?:corrected|correct|revised|fixed)(?:\s+(?:sentence|version|text))?|correction|the\s+sentence|(?:修改|更正|纠正|修正)后?的?句子)(?:\s+(?:is|should be|should read|would be|reads))?[\s*_]*[:：][\s*_>]*",
    );
    static READS: Pattern = Pattern::new(
        r#"(?is)\b(?:(?:should|must|ought to|would|to)\s+(?:\w+\s+)?(?:read|be|say|state)|(?:corrected|correct|revised) sentence (?:is|reads))\b[^"“\n]{0,30}["“](.{8,}?)["”](?:\s|[.,;]|$)"#,
    );
    /// A block quote: «the sentence ought to read:», then «> …».
    static QUOTED: Pattern =
        Pattern::new(r"(?im)\b(?:read|be|say|state)s?[\s*_]*[:：][\s*_]*\n\s*>\s*(\S[^\n]*)$");
    /// The line that a diff adds, and what is struck through.
    static ADDED: Pattern = Pattern::new(r"(?m)^- \S.*\n+\+ (\S.*)$");
    static STRUCK: Pattern = Pattern::new(r"\A\s*~~[^~]+~~\s*(\S.*)\z");
    static NUMBERED: Pattern = Pattern::new(r"\A\s*\d{1,2}[.):]?\s+(\p{Lu})");
    let first = ANNOUNCED.find(text).filter(|first| first.start() == 0);
    let text = match first.or_else(|| ANNOUNCED.find_iter(text).last()) {
        // What follows in another paragraph explains it.
        Some(announced) => text[announced.end()..].split("\n\n").next().unwrap_or_default(),
        None => {
            let read = [&QUOTED, &READS].into_iter().find_map(|one| one.captures(text)?.get(1));
            read.map_or(text, |new| new.as_str())
        }
    };
    let new = [&ADDED, &STRUCK].into_iter().find_map(|one| one.captures(text)?.get(1));
    let text = new.map_or(text, |new| new.as_str());
    let text = ["->", "→", "=>"]
        .iter()
        .find_map(|arrow| text.split_once(arrow))
        .map_or(text, |(_, new)| new);
    let sentence = NUMBERED.captures(text).and_then(|numbered| numbered.get(1));
    let text = sentence.map_or(text, |sentence| &text[sentence.start()..]);
    without_marks(text)
}

/// Whether a text speaks of a sentence instead of giving one: that nothing need be changed, or the prompts' own words for what should
/// stand there.
pub fn is_remark(text: &str) -> bool {
    static REMARK: Pattern = Pattern::new(
        r"(?i)\A\W*(?:(?:replace|change|substitute)\b[^\n]*[\x22“][^\n]*\b(?:with|to|by|for)\b|(?:i|we) (?:cannot|can['’]t|could not|am not able|am unable|do not|don['’]t|would need|['’]d need)\b|no (?:further )?(?:correction|change|revision)s? (?:is |are )?(?:needed|required|necessary)|(?:the|this) (?:original |given |proposed |above )?(?:sentence|proposal|proposed correction|correction|statement|text|note) (?:is|was|seems|appears) (?:\w+ )?(?:correct|right|accurate|fine|acceptable)\b)",
    );
    /// As prompts write them: `<result>the corrected sentence</result>`.
    const SHOWN: [&str; 7] = [
        "the corrected sentence",
        "corrected sentence",
        "the error sentence",
        "error sentence",
        "the erroneous sentence",
        "the sentence",
        "ensure you have results here",
    ];
    REMARK.is_match(text) || SHOWN.contains(&plain(text).trim())
}

/// A text without the marks or quotes around it.
pub fn without_marks(text: &str) -> &str {
    const PAIRS: [(&str, &str); 7] =
        [("**", "**"), ("*", "*"), ("`", "`"), ("\"", "\""), ("“", "”"), ("'", "'"), ("«", "»")];
    PAIRS.iter().fold(text.trim(), |text, (open, close)| {
        let inner = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        inner.map_or(text, str::trim)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_is_what_is_announced() {
        for text in [
            "Give B.",
            "**Corrected Sentence:** Give B.\n\nSince A harms.",
            "Original: Give A.\nCorrected: \"Give B.\"",
            "4. Give B.",
            "Give A. -> Give B.",
            "Here's the corrected sentence:\n\n\"Give B.\"\n\nA was wrong.",
            "Correction: Give B.",
        ] {
            assert_eq!(corrected(text), "Give B.", "{text}");
        }
        assert_eq!(corrected("It should read \"Give B now.\" as A harms."), "Give B now.");
        assert_eq!(corrected("It ought to read:\n\n> Give B.\n\nA harms."), "Give B.");
    }

    #[test]
    fn a_remark_is_no_sentence_of_a_note() {
        for text in ["No correction needed.", "The proposal is right.", "[Corrected sentence]"] {
            assert!(is_remark(text), "{text}");
        }
        for text in ["The sentence was passed by the court.", "No change in weight was seen.", ""] {
            assert!(!is_remark(text), "{text}");
        }
    }
}
