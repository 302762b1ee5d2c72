//! What a reply's words say where no record was kept to: a list of items, consent, one of a few words, a confidence.

use super::confidence::converted;
use super::{agreed, plain, sentences};
use crate::text::Pattern;

/// Whether words name something, rather than say something about it.
pub fn is_name(words: &str) -> bool {
    (1..=6).contains(&words.split_whitespace().count()) && !words.ends_with(['.', '?', '!'])
}

/// The parts of a list in one line: `Cardiology, Nephrology and Genetics`.
pub fn parts(line: &str) -> Vec<&str> {
    let parts = line.split([',', ';', '|', '、', '\n']).flat_map(|part| part.split(" and "));
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// The items of a numbered or bulleted list, a line each, without their marks.
pub fn list_items(text: &str) -> Vec<&str> {
    static ITEM: Pattern = Pattern::new(r"(?m)^\s*(?:(\*\*)?\d{1,2}[.):]|[-*•])\s+(\S.*?)\s*$");
    let items = ITEM.captures_iter(text).filter_map(|item| {
        let said = item.get(2)?.as_str();
        // «**1. First**» is bold as a whole.
        let is_bold = item.get(1).is_some() && said.matches("**").count() == 1;
        Some(if is_bold { said.trim_end_matches('*') } else { said })
    });
    items.collect()
}

/// Whether a text consents: by a first sentence or line that is a yes or a no, by sentences that begin with «I agree» or «I disagree», and by
/// what it calls its vote. `None` where it says neither, or both.
pub fn consents(text: &str) -> Option<bool> {
    static VOTE: Pattern = Pattern::new(concat!(
        r"(?i)(?:\A\W*(?:(?:so|therefore|thus|hence),? )?|\b(?:vote|verdict|decision|conclusion|agree)(?: is)?\W+)",
        r"(?:((?:yes|true|agreed?)\s*(?:[,.;:!*\x22`)–—-]|\z)|(?:yes\W+)?(?:i|we) (?:fully |mostly |largely |strongly |do )?(?:agree|concur)\b)",
        r"|(?:no|false|disagree)\s*(?:[,.;:!*\x22`)–—-]|\z)|(?:no\W+)?(?:i|we) (?:\w+ )?(?:disagree|(?:do|can) ?not agree|don['’]t agree)\b)",
    ));
    let lines = text.lines().flat_map(|line| sentences(line).map(move |one| (line.trim(), one)));
    agreed(lines.enumerate().filter_map(|(at, (line, sentence))| {
        let vote = VOTE.captures(sentence)?;
        let word = plain(sentence);
        let first = word.split_whitespace().next();
        let is_word = matches!(first, Some("yes" | "no" | "true" | "false"));
        let is_aside = at > 0 && line != sentence && is_word && word.trim().contains(' ');
        (!is_aside).then(|| vote.get(1).is_some())
    }))
}

/// How sure a text says it is, from 0 to 1, behind the word confidence; `None` where it says so twice and differently.
pub fn said_confidence(text: &str) -> Option<f64> {
    static NAMED: Pattern = Pattern::new(
        r"(?i)\bconfidence(?:\s+(?:level|score|of|is|in this))*[^\d\p{L}]{0,8}(\d+(?:[.,]\d+)?(?:-\d+)?\s*(?:[%％]|percent\b|(?:/|out of)\s*\d+\b)?|very high\b|high\b|moderate\b|medium\b|low\b|very low\b)",
    );
    agreed(NAMED.captures_iter(text).map(|found| converted(&found[1])))?
}

/// The number that a text is, alone or behind the word sentence: «5», «Sentence #5.».
pub fn number_in(text: &str) -> Option<usize> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut words = words.filter(|word| !["sentence", "number", "no", "id"].contains(word));
    let number = words.next()?.parse().ok();
    number.filter(|_| words.next().is_none())
}

/// The one of `words` that stands in a text as a word, in any case of letters; `None` where several do.
pub fn one_of<'a>(text: &str, words: &[&'a str]) -> Option<&'a str> {
    let said = text.split(|c: char| !c.is_alphanumeric());
    agreed(said.filter_map(|word| words.iter().copied().find(|one| one.eq_ignore_ascii_case(word))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consent_is_said_in_a_sentence_of_its_own() {
        for said in [
            "yes",
            "Yes.",
            "Yes, it is right.",
            "I agree with the report.",
            "My vote: YES",
            "agree: true",
            "Yes, I fully agree",
        ] {
            assert_eq!(consents(said), Some(true), "{said}");
        }
        for said in [
            "no",
            "No, the dose is wrong.",
            "I do not agree.",
            "It lacks a point. I disagree with it.",
            "I don't agree",
            "My decision is no.",
        ] {
            assert_eq!(consents(said), Some(false), "{said}");
        }
        for said in [
            "",
            "yes or no",
            "Yes. No.",
            "There is no reason to think so.",
            "I cannot say whether I agree.",
            "No objections.",
            "The report is thorough.",
            "The answer is no.",
        ] {
            assert_eq!(consents(said), None, "{said}");
        }
    }

    #[test]
    fn a_confidence_is_said_once() {
        assert_eq!(said_confidence("Confidence: 85%"), Some(0.85));
        assert_eq!(said_confidence("**Confidence score:** high"), Some(0.85));
        assert_eq!(said_confidence("Confidence: 0.5. Confidence: 0.7"), None);
        assert_eq!(said_confidence("The confidence is 1-100."), None);
        assert_eq!(said_confidence("85 patients"), None);
    }
}
