//! What a reply's words say where no record was kept to: a list of items, consent, one of a few words.

use super::confidence::converted;
use crate::text::Pattern;

/// The words of an item or line: without marks, and without the reasons behind a dash or colon.
pub fn named_item(item: &str) -> &str {
    let ends = [" - ", " – ", " — ", ": ", ":**"].iter().filter_map(|end| item.find(end)).min();
    item[..ends.unwrap_or(item.len())]
        .trim_matches(|c: char| c.is_whitespace() || "*_`\"“”.,;".contains(c))
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

/// Whether a text consents: by what it calls its vote at its end, or by a YES or NO in capitals there; by its first word, where that is yes or
/// no in any of a few languages; else by the first «yes», «no», «agree», «do not agree» or «disagree» in it. `None` where none is there.
pub fn consents(text: &str) -> Option<bool> {
    static VOTE: Pattern = Pattern::new(
        r"(?i)\b(?:(?:vote|verdict|decision|answer|conclusion)(?: (?:is|remains|must be|would be))?(?: an?)?|so|therefore|hence|thus)\W{1,6}(?:(yes)|no)\W*\z",
    );
    static LAST: Pattern = Pattern::new(r"[.:!\n—–-][\s*_\x22(]*(?:(YES)|NO)\W*\z");
    static FIRST: Pattern = Pattern::new(
        r"(?i)\A\W*(?:(yes|true|agreed?|no (?:\w+ )?(?:objection|concern|reservation|disagreement)s?|是|同意|oui|sí|ja|نعم)|(?:no|false|disagree|否|不|non|nein|لا))(?:\P{Alphabetic}|\z|\p{Han})",
    );
    static INSIDE: Pattern = Pattern::new(
        r"(?i)\b(?:(yes|no (?:\w+ )?(?:objection|concern|reservation|disagreement)s?|(?:I|we) (?:fully |mostly |largely )?(?:agree|concur))|no|disagree|(?:do|can) ?not (?:fully |entirely )?(?:agree|concur)|(?:don|can)['’]t agree)\b",
    );
    static EITHER: Pattern = Pattern::new(
        r"(?i)\A\W*(?:yes\W+or\W+no|no\W+or\W+yes|yes\s*/\s*no)\W*\z|\A\W*yes and no\b",
    );
    if EITHER.is_match(text) {
        return None;
    }
    let ladder = [&VOTE, &LAST, &FIRST, &INSIDE];
    let found = ladder.into_iter().find_map(|pattern| pattern.captures(text))?;
    Some(found.get(1).is_some())
}

/// How sure a text says it is, from 0 to 1: what stands behind the word confidence in any of a few languages, or before «sure».
pub fn said_confidence(text: &str) -> Option<f64> {
    static NAMED: Pattern = Pattern::new(
        r"(?i)(?:confidence|confianza|confiance|konfidenz|置信度|信心|الثقة)(?:\s+(?:level|score|of|is|at|in this|about|around|approximately|roughly))*[^\d\p{L}]{0,8}(\d+(?:[.,]\d+)?\s*(?:[%％]|percent\b|(?:/|out of)\s*\d+\b)?|very high\b|high\b|moderate\b|medium\b|low\b|very low\b)",
    );
    static SURE: Pattern = Pattern::new(
        r"(?i)(\d{1,3}\s*(?:[%％]|percent))\s*(?:confident|sure|certain|sûr|seguro|sicher)\b",
    );
    let found = |pattern: &Pattern| {
        // The last is the model's own, of those before some are quoted.
        let found = pattern.captures_iter(text).last()?.get(1)?;
        converted(&found.as_str().into())
    };
    found(&NAMED).or_else(|| found(&SURE))
}

/// The one number that a few words name, in digits or spelled: «5», «Sentence #5.», «number five».
pub fn number_in(text: &str) -> Option<usize> {
    const SPELLED: [&str; 11] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let number = |word: &str| {
        let spelled = SPELLED.iter().position(|one| *one == word);
        word.parse().ok().or(spelled)
    };
    let is_short = words.clone().count() <= 6;
    let mut numbers = words.filter_map(number);
    numbers.next().filter(|_| is_short && numbers.next().is_none())
}

/// The one of `words` that a text ends with behind a colon, or begins with, else the only one that stands in it as a word and is not denied; in
/// any case of letters.
pub fn one_of<'a>(text: &str, words: &[&'a str]) -> Option<&'a str> {
    let conclusion =
        text.rsplit_once(':').map(|(_, last)| last.trim_matches(|c: char| !c.is_alphanumeric()));
    if let Some(word) =
        words.iter().find(|word| conclusion.is_some_and(|last| word.eq_ignore_ascii_case(last)))
    {
        return Some(word);
    }
    let lower = text.to_lowercase();
    let said = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let said: Vec<&str> = said.collect();
    let find = |word: &str| words.iter().copied().find(|one| one.eq_ignore_ascii_case(word));
    if let Some(word) = find(said.first()?) {
        // «basic | intermediate», «basic or advanced»
        let next = said[1..].iter().find(|word| **word != "or").and_then(|other| find(other));
        return Some(word).filter(|_| next.is_none_or(|other| other == word));
    }
    // «not a basic question»
    let is_denied = |at: usize| {
        let before = &said[at.saturating_sub(2)..at];
        before.iter().any(|word| matches!(*word, "not" | "no" | "neither" | "nor" | "isn"))
    };
    let mut others = said
        .iter()
        .enumerate()
        .filter(|(at, _)| !is_denied(*at))
        .filter_map(|(_, word)| find(word));
    let only = others.next()?;
    others.all(|other| other == only).then_some(only)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_stand_a_line_each() {
        let text = "Here are they:\n1. First?\n 2) Second - b\n* **Third**\nnone\n- a-b\n3.5 mg\n";
        assert_eq!(list_items(text), ["First?", "Second - b", "**Third**", "a-b"]);
    }

    #[test]
    fn consent_is_the_first_word_or_what_is_said() {
        for text in [
            "Yes",
            "**YES**, mostly",
            "是",
            "是，同意",
            "true",
            "I agree with it.",
            "Agree: yes",
            "No objections.",
            "I have no major concerns. YES",
            "No statement in it would be disputed: YES",
            "There is no mistake that I would object to. So yes.",
        ] {
            assert_eq!(consents(text), Some(true), "{text}");
        }
        for text in [
            "No.",
            "no, yes",
            "I do not agree.",
            "I disagree",
            "不同意",
            "We can't agree",
            "Yes, the drug is named. The dose is not, so my vote is NO.",
        ] {
            assert_eq!(consents(text), Some(false), "{text}");
        }
        for text in
            ["", "Yes and no.", "Nothing is said.", "It is known.", "partially", "Yesterday"]
        {
            assert_eq!(consents(text), None, "{text}");
        }
        assert_eq!(consents("Nothing contradicts it, so yes."), Some(true));
    }

    #[test]
    fn confidence_is_found_in_prose() {
        for (text, share) in [
            ("**Confidence: 0.82**", 0.82),
            ("with a confidence of 0.95.", 0.95),
            ("Confiance : 95 %", 0.95),
            ("Confianza: 0,9", 0.9),
            ("<confidence>0.94</confidence>", 0.94),
            ("My confidence level is high.", 0.85),
            ("I am 90% sure.", 0.9),
        ] {
            assert_eq!(said_confidence(text), Some(share), "{text}");
        }
        for text in ["the 95 % confidence interval", "confidence", "0.4% and 0.5%"] {
            assert_eq!(said_confidence(text), None, "{text}");
        }
    }

    #[test]
    fn the_first_word_or_the_only_one() {
        let words = ["basic", "intermediate", "advanced"];
        assert_eq!(one_of("**Intermediate**: it is not advanced", &words), Some("intermediate"));
        assert_eq!(one_of("This is a basic question.", &words), Some("basic"));
        assert_eq!(one_of("Basic would do less.\nLevel: **advanced**", &words), Some("advanced"));
        assert_eq!(one_of("It is basic or advanced", &words), None);
        assert_eq!(one_of("no level", &words), None);
        assert_eq!(one_of("\"basic\" | \"intermediate\" | \"advanced\"", &words), None);
    }
}
