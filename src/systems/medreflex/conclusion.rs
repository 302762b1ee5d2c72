//! The log line of a note from its answer: flag, sentence, correction, and the evidence for it: its new words, whether passages contain them,
//! and passages that leak the note's text.

use std::collections::HashSet;

use itertools::Itertools;

use super::protocol::{Outcome, Work};
use crate::record::{Flag, NoteLine, SearchLine};
use crate::systems::opinion::{Opinion, Settled, note_line};

/// A passage that shares as many consecutive words with the note counts as a leak.
const LEAK_WORDS: usize = 8;
/// Shorter words without a digit are not counted as new.
const SHORTEST: usize = 4;

impl Work<'_> {
    pub(super) fn conclude(self, (answer, basis): Outcome) -> NoteLine {
        let Work { system, case, mut trajectory, searched, .. } = self;
        let note = case.item;
        let opinion = Opinion {
            flag: Flag::on(basis, answer.is_error),
            sentence_id: answer.sentence_id,
            correction: answer.correction.clone(),
        };
        let heard = vec![("parser".to_owned(), opinion.clone())];
        let mut line = note_line(&case, Settled { opinion, heard });
        if let (Some(detection), Some(_)) = (&mut line.detection, &system.reviewing) {
            let decided = trajectory.turns.last().filter(|turn| turn.accepted);
            let mean = decided.and_then(|turn| turn.mean_hundredths);
            detection.agents = vec!["eval".to_owned()];
            detection.confidences = vec![mean.map(|mean| f64::from(mean) / 500.0)];
        }
        trajectory.mismatch = answer.mismatch;
        trajectory.unchanged = answer.unchanged;
        trajectory.leaks = leaks(&note.text, &searched);
        if let (Some(correction), Some(id)) = (&answer.correction, answer.sentence_id) {
            let new = new_words(&note.sentences[id], correction);
            let lacking = missing(&new, &searched);
            trajectory.grounded = (!new.is_empty()).then_some(lacking.is_empty());
            trajectory.ungrounded = lacking;
        }
        line.search = Some(trajectory);
        line
    }
}

/// The words of a text: runs of letters and digits, in lower case.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The words of a correction that its sentence lacks, each once, of four characters or more or with a digit.
fn new_words(sentence: &str, correction: &str) -> Vec<String> {
    let old: HashSet<String> = words(sentence).into_iter().collect();
    let says_something =
        |word: &str| word.chars().count() >= SHORTEST || word.chars().any(|c| c.is_ascii_digit());
    let is_new = |word: &String| says_something(word) && !old.contains(word);
    words(correction).into_iter().filter(is_new).unique().collect()
}

/// The words of `wanted` that no passage of `searches` contains, in its title or its text.
fn missing(wanted: &[String], searches: &[SearchLine]) -> Vec<String> {
    let passages = searches.iter().flat_map(|search| &search.shown);
    let found: HashSet<String> = passages
        .flat_map(|passage| [passage.title.as_str(), passage.text.as_deref().unwrap_or_default()])
        .flat_map(words)
        .collect();
    wanted.iter().filter(|word| !found.contains(*word)).cloned().collect()
}

/// The number of shown passages that share eight consecutive words with the note, each chunk counted once.
fn leaks(note: &str, searches: &[SearchLine]) -> u32 {
    let of_note = words(note);
    let rows: HashSet<&[String]> = of_note.windows(LEAK_WORDS).collect();
    let mut chunks = HashSet::new();
    for passage in searches.iter().flat_map(|search| &search.shown) {
        let of_passage = words(passage.text.as_deref().unwrap_or_default());
        if of_passage.windows(LEAK_WORDS).any(|row| rows.contains(row)) {
            chunks.insert(&passage.chunk);
        }
    }
    chunks.len() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Passage;

    fn shown(text: &str) -> SearchLine {
        let passage = Passage {
            chunk: format!("a/{}#0", text.len()),
            source: "a".into(),
            title: "Asthma".into(),
            paragraph: 0,
            score: 1.0,
            sha256: String::new(),
            text: Some(text.into()),
            ..Passage::default()
        };
        SearchLine { shown: vec![passage], ..SearchLine::default() }
    }

    #[test]
    fn the_words_that_are_brought_in_stand_in_a_passage_or_not() {
        let new = new_words("Give 5 mg of aspirin.", "Give 10 mg of Salbutamol now, salbutamol.");
        assert_eq!(new, ["10", "salbutamol"]);
        let searches = [shown("Inhaled salbutamol helps.")];
        assert_eq!(missing(&new, &searches), ["10"]);
        assert_eq!(missing(&["asthma".to_owned()], &searches), [""; 0]);
    }

    #[test]
    fn a_passage_that_repeats_the_note_is_a_leak() {
        let note = "A 30-year-old woman came with wheezing after a long run in the cold.";
        let repeats = "… woman came with wheezing after a long run, they say";
        let searches = [shown(repeats), shown(repeats), shown("A woman came with wheezing.")];
        assert_eq!(leaks(note, &searches), 1);
    }
}
