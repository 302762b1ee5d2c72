//! What a reply repeats of the instructions of its own prompt, which says nothing: sentences word for word, and placeholders in quotes or tags.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::plain;
use crate::record::Message;

/// Words from which on a sentence that stands in the prompt too is a repetition, not a chance.
const SENTENCE: usize = 6;
/// Words from which on a text in quotes, tags or brackets is.
const ENCLOSED: usize = 3;
/// Words from which on what a reply encloses is, where the prompt describes a field by it: `- "Thought": your reasoning, step by step`.
const COPIED: usize = 5;
/// Words from which on a text of the item is cut out of the prompt wherever it stands.
const TEXT: usize = 4;
/// Where a text of the item was cut out.
const CUT: &str = "\u{0}";

/// A reply without what it repeats of its prompt's instructions. All of a prompt is instructions but `own`: the item's texts, and what earlier
/// replies said.
///
/// A sentence of a few words is a repetition only where the prompt has it behind the one before: «Answer: E» at the end of an example.
pub fn without_echo(reply: &str, messages: &[Message], own: &[String]) -> String {
    let prompt: Vec<Unit> = messages.iter().flat_map(|one| instructions(one, own)).collect();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (at, unit) in prompt.iter().enumerate() {
        places.entry(&unit.words).or_insert(at);
    }
    let mut kept = String::with_capacity(reply.len());
    let (mut end, mut before) = (0, None);
    for unit in units(reply).into_iter().filter(|unit| !unit.words.is_empty()) {
        let follows = before
            .map(|at| at + 1)
            .filter(|at| prompt.get(*at).is_some_and(|next: &Unit| next.words == unit.words));
        let stands = || {
            let at = *places.get(unit.words.as_str())?;
            let needed = match (unit.is_enclosed, prompt[at].is_enclosed) {
                (true, true) => ENCLOSED,
                (true, false) => COPIED,
                (false, _) => SENTENCE,
            };
            (unit.words.split(' ').count() >= needed).then_some(at)
        };
        before = follows.or_else(stands);
        // The key of a field is a part of the format that was asked for.
        let mut rest = reply[unit.place.end..].chars();
        let is_key = unit.is_enclosed
            && rest.next().is_some_and(|quote| quote != '<')
            && rest.as_str().trim_start().starts_with(':');
        if before.is_some() && !is_key {
            kept += &reply[end..unit.place.start];
            end = unit.place.end;
        }
    }
    without_lines_of_others(&(kept + &reply[end..]), messages, own)
}

/// A text without the options of other questions, wherever it writes them (an example's, behind «The answer is»), and without lines that
/// say as the prompt does what others said: `[Doctor B] -> Answer: C`.
fn without_lines_of_others(text: &str, messages: &[Message], own: &[String]) -> String {
    let own: Vec<String> = own.iter().map(|text| plain(text)).collect();
    let lines = || messages.iter().flat_map(|one| one.content.lines()).map(str::trim);
    let options = lines().filter(|line: &&str| {
        let marked = line.strip_prefix(|c: char| c.is_ascii_uppercase());
        let option = marked.and_then(|rest| rest.strip_prefix([':', '.', ')']));
        option.is_some_and(|option| {
            let words = plain(option);
            words.split_whitespace().count() >= ENCLOSED
                && !own.iter().any(|own| own.contains(&words))
        })
    });
    let text = options.fold(text.to_owned(), |text, option| text.replace(option, ""));
    let names: HashSet<&str> = lines().filter_map(name).collect();
    let is_others = |line: &&str| name(line).is_some_and(|name| names.contains(name));
    text.split_inclusive('\n').filter(|line| !is_others(line)).collect()
}

/// Whose answer a line tells: `1. [Doctor B] -> …`.
fn name(line: &str) -> Option<&str> {
    let (before, _) = line.split_once(" -> ")?;
    let start = before.find('[').filter(|_| before.ends_with(']'))?;
    Some(&before[start..])
}

/// A sentence, a line, or what stands between quotes or tags.
struct Unit {
    place: Range<usize>,
    words: String,
    is_enclosed: bool,
}

/// The units of a message; one of the item's or of an earlier reply has words that no reply has.
fn instructions(message: &Message, own: &[String]) -> Vec<Unit> {
    let is_long = |text: &&String| text.split_whitespace().count() >= TEXT;
    let content = own.iter().filter(is_long).fold(message.content.clone(), |content, text| {
        content.replace(text.as_str(), &format!("\n{CUT}\n"))
    });
    let brief: HashSet<String> =
        own.iter().flat_map(|text| units(text)).map(|unit| unit.words).collect();
    let own: Vec<String> = own.iter().map(|text| plain(text)).collect();
    let units = units(&content)
        .into_iter()
        .filter(|unit| !unit.words.is_empty() || content[unit.place.clone()].contains(CUT));
    let units = units.map(|unit| {
        let words = format!(" {} ", unit.words);
        // A word or two of the instructions stand in many a text: «CORRECT» is what another has said, too. A brief sentence is a text's own
        // where it is one there as well.
        let is_said = || match unit.words.split(' ').count() {
            TEXT.. => own.iter().any(|own| own.contains(&words)),
            ENCLOSED.. => brief.contains(&unit.words),
            _ => false,
        };
        let is_own = unit.words.is_empty() || is_said();
        Unit { words: if is_own { CUT.to_owned() } else { unit.words }, ..unit }
    });
    units.collect()
}

/// The units of a text, in their order.
fn units(text: &str) -> Vec<Unit> {
    let (mut units, mut start, mut opened) = (Vec::new(), 0, '\n');
    for (at, c) in text.char_indices().chain([(text.len(), '\n')]) {
        let follows = text[at..].chars().nth(1);
        let is_stop = matches!(c, '.' | '!' | '?') && follows.is_none_or(char::is_whitespace);
        let begins_name = follows.is_some_and(|next| next.is_alphabetic() || next == '/');
        let is_tag = c == '<' && begins_name || c == '>' && opened == '<';
        if !is_stop && !is_tag && !matches!(c, '\n' | '"' | '“' | '”') {
            continue;
        }
        let after = text.len().min(at + c.len_utf8());
        let place = start..if is_stop { after } else { at };
        let said = &text[place.clone()];
        let is_enclosed = matches!((opened, c), ('"' | '“', '"' | '”') | ('>', '<'))
            || said.trim_start().starts_with('[');
        // The name of a tag is a part of the format that was asked for.
        let is_name = (opened, c) == ('<', '>');
        let words = if is_name { String::new() } else { plain(said).trim().to_owned() };
        units.push(Unit { place, words, is_enclosed });
        (start, opened) = (after, c);
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(reply: &str, prompt: &str, own: &[&str]) -> String {
        let own: Vec<String> = own.iter().map(|text| (*text).to_owned()).collect();
        without_echo(reply, &[Message::new("user", prompt)], &own)
    }

    #[test]
    fn a_word_of_the_instructions_that_an_earlier_reply_says_is_taken_out_with_the_rest() {
        let verdict =
            "If the note holds an error, return the single word \"INCORRECT\". Also say so.";
        assert_eq!(left(verdict, verdict, &["Which of these is INCORRECT ?"]), "\"\".");
        let list = "{'option': 'A', 'pros': string, 'cons': string, 'fit_score': 1-5},\n{'option': 'B', ...}, ... for ALL options";
        assert!(!left(list, list, &["I would take option B here."]).contains('B'));
    }

    #[test]
    fn sentences_of_the_prompt_are_taken_out_and_the_items_are_not() {
        let prompt = "Check every sentence of the text. If the text is correct return one word.\n\nHe was given a litre of saline at once.";
        let item = "He was given a litre of saline at once.";
        let found = left(&format!("{prompt}\nIt is fine."), prompt, &[item]);
        assert_eq!(found.trim(), format!("{item}\nIt is fine."));
        assert_eq!(left(item, prompt, &[item]), item);
        assert_eq!(left("INCORRECT", prompt, &[item]), "INCORRECT");
        let quoted = "The step: {\"sentence\": \"She went home.\"}";
        let answer = "{\"sentence\": \"She went home.\"}";
        assert_eq!(left(answer, quoted, &["She was well. She went home."]), answer);
        assert_ne!(left(answer, quoted, &["He went home."]), answer);
        // What an earlier reply said may be said again.
        let draft = "It was far too much saline for him.";
        assert_eq!(left(draft, &format!("The draft:\n{draft}"), &[draft]), draft);
    }

    #[test]
    fn placeholders_are_empty_and_keys_stay() {
        let prompt = "Reply with JSON:\n{\n  \"Thought\": \"your reasoning, step by step\",\n  \"Answer\": \"the letter of the right option\"\n}\nGive <result>the corrected sentence</result>.";
        assert_eq!(
            left(r#"{"Thought": "the letter of the right option", "Answer": "B"}"#, prompt, &[]),
            r#"{"Thought": "", "Answer": "B"}"#
        );
        assert_eq!(
            left(
                r#"{"Thought": "your reasoning, step by step", "Answer": "the letter of the right option"}"#,
                prompt,
                &[]
            ),
            r#"{"Thought": "", "Answer": ""}"#
        );
        assert_eq!(
            left("<result>the corrected sentence</result>", prompt, &[]),
            "<result></result>"
        );
    }

    #[test]
    fn an_example_goes_with_its_answer() {
        let prompt = "Example 1\nDo antibiotics shorten the common cold in otherwise healthy adults?\nOptions:\nA: Yes\nB: No\nAnswer: B\n\nExample 2\nDoes giving up smoking lower the mortality of men?\nAnswer: A";
        let echo = "Do antibiotics shorten the common cold in otherwise healthy adults?\nOptions:\nA: Yes\nB: No\nAnswer: B";
        assert_eq!(left(echo, prompt, &[]).trim(), "");
        assert_eq!(left("Answer: B", prompt, &[]), "Answer: B");
        let brief = "Others said:\n[Doctor A] -> Answer: A\n[Doctor B] -> Answer: C";
        assert_eq!(left("[Doctor A] -> Answer: A\n", brief, &[]), "\n");
        let changed = "1. [Doctor A] -> Answer: C\n2. [Doctor B] -> Answer: C";
        assert!(!left(changed, brief, &[]).contains('C'));
        assert_eq!(left("[Doctor C] -> Answer: C", brief, &[]), "[Doctor C] -> Answer: C");
        // An example's option, whatever stands before it.
        let shown = "Example 1\nHow should he sleep?\nC: A cushion that holds him\nAnswer: A\n\nWhich drug is it?\nC: A beta blocker at night";
        let own = ["Which drug is it?", "A beta blocker at night"];
        assert_eq!(
            left("The answer is C: A cushion that holds him", shown, &own),
            "The answer is "
        );
        let answer = "The answer is C: A beta blocker at night";
        assert_eq!(left(answer, shown, &own), answer);
    }
}
