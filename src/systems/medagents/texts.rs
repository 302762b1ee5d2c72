//! Parses the replies of the original protocol, which are prose with labels rather than JSON.

use serde::Serialize;

use crate::data::Choice;
use crate::record::{FinishReason, Parse};
use crate::systems::case::Record;
use crate::systems::reading::answer::of_text;
use crate::systems::reading::reply::{Agreement, Explained, Passage};
use crate::systems::reading::without_thinking;
use crate::systems::reading::words::{consents, is_name, list_items, parts};

/// The field of an expert for whom none was named.
const GENERAL: &str = "General Medicine";
const ANALYSIS_MARK: &str = "Total Analysis:";
const FIELD_MARK: &str = "Medical Field:";
const ADVICE_MARK: &str = "Revisions:";
/// A disclaimer with which models begin.
const DISCLAIMER: &str = "as an ai language model";

/// The medical fields that the gatherer names.
#[derive(Serialize)]
pub struct Domains {
    domains: Vec<String>,
}

impl Record for Domains {}

impl Domains {
    /// The first `count`; where there is none, `GENERAL` as many times.
    pub fn first(&self, count: usize) -> Vec<String> {
        match self.domains.is_empty() {
            true => vec![GENERAL.to_owned(); count],
            false => self.domains.iter().take(count).cloned().collect(),
        }
    }
}

/// Parses what follows the last colon on its line, separated by ` | `; else the items of a list.
pub fn read_domains(text: &str, finish_reason: FinishReason) -> (Domains, Parse) {
    let text = without_thinking(text);
    let list = text.rsplit(':').next().unwrap_or("").trim();
    // One per line, each after the label.
    let marked: Vec<&str> =
        text.lines().filter_map(|line| line.trim().strip_prefix(FIELD_MARK)).collect();
    let items = list_items(text);
    let mut names: Vec<&str> = match items.is_empty() {
        true if marked.len() > 1 => marked,
        true => list.lines().next().unwrap_or("").split(" | ").collect(),
        false => items,
    };
    if let [line] = names[..] {
        names = parts(line);
    }
    for name in &mut names {
        let numbered = name.trim_start_matches(|c: char| c.is_whitespace() || c == '*');
        let after = numbered.trim_start_matches(|c: char| c.is_ascii_digit());
        let without = after.strip_prefix(['.', ')']).filter(|_| after.len() < numbered.len());
        *name =
            without.unwrap_or(name).trim_matches(|c: char| c.is_whitespace() || "*.".contains(c));
    }
    // The prompt's placeholders, such as «Field1».
    let is_shown = |name: &str| {
        name.strip_prefix("Field").is_some_and(|digit| digit.chars().all(|c| c.is_ascii_digit()))
    };
    names.retain(|name| is_name(name) && !is_shown(name));
    let domains: Vec<String> = names.into_iter().map(str::to_owned).collect();
    let parse = parse(text.contains(':'), finish_reason).if_read(!domains.is_empty());
    (Domains { domains }, parse)
}

/// Parses an analysis: without a last sentence that was cut short, and without a disclaimer.
pub fn read_analysis(text: &str, finish_reason: FinishReason) -> (Passage, Parse) {
    let text = without_thinking(text).trim();
    let analysis = without_disclaimer(whole_sentences(text));
    let parse = parse(true, finish_reason).if_read(!analysis.is_empty());
    (Passage { text: analysis.to_owned() }, parse)
}

/// Parses a report: the text between the first `Total Analysis:` and the next, without the label all of it. The key knowledge before it is
/// dropped, as in the authors' code.
pub fn read_report(text: &str, finish_reason: FinishReason) -> (Passage, Parse) {
    marked(text, finish_reason, |text| text.split(ANALYSIS_MARK).nth(1))
}

/// Parses a vote; a reply that says neither counts as agreement. The authors' code takes the first "yes" or "no" anywhere, even within other
/// words.
pub fn read_vote(text: &str, finish_reason: FinishReason) -> (Agreement, Parse) {
    let said = consents(without_thinking(text).trim());
    let agree = said.unwrap_or(true);
    (Agreement { agree }, parse(true, finish_reason).if_read(said.is_some()))
}

/// Parses advice: the text after `Revisions:`, without the label all of it.
pub fn read_advice(text: &str, finish_reason: FinishReason) -> (Passage, Parse) {
    marked(text, finish_reason, |text| Some(text.split_once(ADVICE_MARK)?.1))
}

fn marked(
    text: &str,
    finish_reason: FinishReason,
    find: impl Fn(&str) -> Option<&str>,
) -> (Passage, Parse) {
    let text = without_thinking(text).trim();
    let marked = find(text).map(str::trim);
    let text = marked.unwrap_or(text).to_owned();
    let parse = parse(marked.is_some(), finish_reason).if_read(!text.is_empty());
    (Passage { text }, parse)
}

/// Parses the decision's letter; the authors' code takes the first of A to E after the last colon.
pub fn read_answer(
    text: &str,
    finish_reason: FinishReason,
    options: &[Choice],
) -> (Explained, Parse) {
    let text = without_thinking(text).trim();
    let answer = of_text(text, options);
    let parse = parse(text.contains(':'), finish_reason).if_read(!answer.is_empty());
    (Explained { explanation: text.to_owned(), answer, written: None }, parse)
}

/// The outcome of parsing: `Ok` for a complete text with the label that was asked for.
fn parse(is_marked: bool, finish_reason: FinishReason) -> Parse {
    if is_marked && finish_reason != FinishReason::Length { Parse::Ok } else { Parse::Fallback }
}

/// The text up to the end of its last complete sentence; all of it where there is none.
fn whole_sentences(text: &str) -> &str {
    let mut ends = text.char_indices().filter(|&(at, c)| {
        let after = &text[at + c.len_utf8()..];
        let parts = after.chars().next().is_none_or(char::is_whitespace);
        matches!(c, '.' | '!' | '?') && parts
    });
    match ends.next_back() {
        Some((end, _)) if !text.ends_with('.') => &text[..=end],
        _ => text,
    }
}

/// The text after a disclaimer.
fn without_disclaimer(text: &str) -> &str {
    // ASCII lower case keeps every byte's position.
    match text.to_ascii_lowercase().find(DISCLAIMER) {
        Some(at) => {
            text[at + DISCLAIMER.len()..].trim_matches(|c: char| c == ',' || c.is_whitespace())
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::scripted::question;

    fn stop<T>(read: fn(&str, FinishReason) -> (T, Parse), text: &str) -> (T, Parse) {
        read(text, FinishReason::Stop)
    }

    fn passage(text: &str, parse: Parse) -> (Passage, Parse) {
        (Passage { text: text.to_owned() }, parse)
    }

    #[test]
    fn domains_stand_behind_the_last_colon() {
        let (record, parse) = stop(read_domains, "Sure: Medical Field: Cardiology | Nephrology | ");
        assert_eq!(
            (record.first(5), parse),
            (vec!["Cardiology".into(), "Nephrology |".into()], Parse::Ok)
        );
        assert_eq!(record.first(1), ["Cardiology"]);
        let (none, parse) = stop(read_domains, "Medical Field:");
        assert_eq!(parse, Parse::Unread);
        assert_eq!(none.first(2), [GENERAL, GENERAL]);
        let (prose, parse) = stop(read_domains, "Cardiology");
        assert_eq!((prose.first(5), parse), (vec!["Cardiology".into()], Parse::Fallback));
    }

    #[test]
    fn a_sentence_that_was_cut_short_goes_and_so_does_a_disclaimer() {
        let text = |text: &str| stop(read_analysis, text).0.text;
        assert_eq!(text("Fever of 38.5 degrees. It points to an inf"), "Fever of 38.5 degrees.");
        assert_eq!(text("Fever. Rash."), "Fever. Rash.");
        assert_eq!(text("Only one, and cut"), "Only one, and cut");
        assert_eq!(text("Well. As an AI language model, I think Ä fits."), "I think Ä fits.");
        assert_eq!(text("<think>no.</think> Rash."), "Rash.");
        assert_eq!(stop(read_analysis, " ").1, Parse::Unread);
        let cut = read_analysis("Fever. Ra", FinishReason::Length);
        assert_eq!(cut, passage("Fever.", Parse::Fallback));
    }

    #[test]
    fn a_report_is_what_its_mark_says() {
        let marked = "Key Knowledge: k\nTotal Analysis: the whole\nTotal Analysis: again";
        assert_eq!(stop(read_report, marked), passage("the whole", Parse::Ok));
        assert_eq!(stop(read_report, "prose"), passage("prose", Parse::Fallback));
        assert_eq!(stop(read_advice, "Revisions: more"), passage("more", Parse::Ok));
        assert_eq!(stop(read_advice, "more"), passage("more", Parse::Fallback));
    }

    #[test]
    fn a_vote_is_what_the_text_consents_to_and_silence_agrees() {
        let agrees = |text: &str| stop(read_vote, text).0.agree;
        assert!(agrees("YES"));
        assert!(!agrees("No, yes"));
        assert!(agrees("Yes, not no"));
        assert!(!agrees("I disagree with it"));
        assert!(agrees("I do not object"));
        assert!(agrees("hm"));
        assert_eq!(stop(read_vote, "hm").1, Parse::Unread);
    }

    #[test]
    fn an_answer_is_what_the_text_says() {
        let answer = |text: &str| {
            let (record, parse) = read_answer(text, FinishReason::Stop, &question(5).options);
            (record.answer, parse)
        };
        assert_eq!(answer("A fits. Option: [C]"), ("C".into(), Parse::Ok));
        // Whether the question has that option is not asked here.
        assert_eq!(answer("Option: [J]"), ("J".into(), Parse::Ok));
        assert_eq!(answer("B"), ("B".into(), Parse::Fallback));
        assert_eq!(answer("Option:"), ("".into(), Parse::Unread));
        assert_eq!(answer(""), ("".into(), Parse::Unread));
    }
}
