//! Whether a reply repeats its prompt: such a reply, where no record was made of it, says nothing.

use std::collections::HashSet;

use super::{plain, sentences};
use crate::record::Message;

/// Words from which on a sentence that stands in the prompt too is a repetition, not a chance.
const FEWEST: usize = 5;
/// Whether a reply has a sentence of its prompt's instructions or examples, or tells as a brief does what others said. What is the item's own,
/// or an earlier reply's, may be repeated.
pub fn is_echo(reply: &str, messages: &[Message], own: &[String]) -> bool {
    let own: HashSet<String> = own.iter().flat_map(|text| units(text)).collect();
    let prompt = || messages.iter().map(|one| one.content.as_str());
    let prompted: HashSet<String> =
        prompt().flat_map(units).filter(|unit| !own.contains(unit)).collect();
    // «[Doctor A] -> …», «doctor-1: no answer»
    let tells = |text: &str| text.contains("] -> ") || text.contains(": no answer");
    units(reply).any(|unit| prompted.contains(&unit)) || tells(reply) && prompt().any(tells)
}

/// The words of every long sentence of a text, without a number or label before them.
fn units(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(['\n', '"', '“', '”', '<', '>']).flat_map(sentences);
    let units = parts.map(|one| {
        let said = one.split_once(':').map_or(one, |(_, rest)| rest);
        plain(said).trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit()).to_owned()
    });
    units.filter(|unit| unit.split_whitespace().count() >= FEWEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echoes(reply: &str, prompt: &str, own: &[&str]) -> bool {
        let own: Vec<String> = own.iter().map(|text| (*text).to_owned()).collect();
        is_echo(reply, &[Message::new("user", prompt)], &own)
    }

    #[test]
    fn a_sentence_of_the_instructions_is_an_echo_and_one_of_the_item_is_none() {
        let item = "He was given a litre of saline at once.";
        let prompt = format!("Check every sentence of the text. Return one word.\n\n1 {item}");
        assert!(echoes("Check every sentence of the text. INCORRECT", &prompt, &[item]));
        assert!(echoes("I will: check every sentence of the text", &prompt, &[item]));
        for said in
            [item, "2 He was given a litre of saline at once.", "INCORRECT", "Return one word."]
        {
            assert!(!echoes(said, &prompt, &[item]), "{said}");
        }
        // What an earlier reply said may be said again.
        let draft = "It was far too much saline for him.";
        assert!(!echoes(draft, &format!("The draft:\n{draft}"), &[draft]));
        let record = format!(r#"{{"reason": "{draft}", "answer": "B"}}"#);
        assert!(!echoes(draft, &format!("The draft:\n{draft}"), &[&record]));
    }

    #[test]
    fn an_example_and_a_line_of_a_brief_are_echoes() {
        let prompt = "Example 1\nDo antibiotics shorten the common cold in otherwise healthy adults?\nA: Yes\nC: A cushion that holds him\nAnswer: B";
        for said in [
            "Do antibiotics shorten the common cold in otherwise healthy adults?\nAnswer: B",
            "The answer is C: A cushion that holds him",
        ] {
            assert!(echoes(said, prompt, &[]), "{said}");
        }
        assert!(!echoes("Answer: B", prompt, &[]));
        assert!(!echoes("C: A cushion that holds him", prompt, &["A cushion that holds him"]));
        let brief = "Others said:\n[Doctor A] -> Answer: A\n[Doctor B] -> Answer: C";
        assert!(echoes("1. [Doctor A] -> Answer: C", brief, &[]));
        assert!(!echoes("[Doctor A] -> Answer: C", "Answer.", &[]));
        let round = "The discussion so far:\n\ndoctor-1: no answer\n\ndoctor-2: Answer: A";
        assert!(echoes("doctor-1: no answer\n\ndoctor-2: answer: A", round, &[round]));
        assert!(!echoes("doctor-1: no answer", "Answer.", &[]));
    }
}
