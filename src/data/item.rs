//! The items that systems work on: questions to answer and clinical notes to check.

use serde::{Deserialize, Serialize};

use super::cross_reference::speaks_of_others;
use super::{running_text, script, sentences};
use crate::random::sample;
use crate::record::{GoldLine, Language};

/// An item, and a line of `dataset.jsonl`, where a run keeps it as the system was given it; `kind` tells questions from notes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Item {
    Question(Question),
    Note(Note),
}

impl Item {
    /// Unique within its file.
    pub fn id(&self) -> &str {
        match self {
            Item::Question(question) => &question.id,
            Item::Note(note) => &note.id,
        }
    }

    pub fn question(&self) -> Option<&Question> {
        match self {
            Item::Question(question) => Some(question),
            Item::Note(_) => None,
        }
    }

    pub fn note(&self) -> Option<&Note> {
        match self {
            Item::Question(_) => None,
            Item::Note(note) => Some(note),
        }
    }
}

/// The kind of all items of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ItemKind {
    Questions,
    Notes,
}

impl From<Question> for Item {
    fn from(question: Question) -> Item {
        Item::Question(question)
    }
}

impl From<Note> for Item {
    fn from(note: Note) -> Item {
        Item::Note(note)
    }
}

/// One question of multiple choice. Those without options, which earlier versions asked, have a reference besides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Question {
    /// Unique within its file.
    #[serde(rename = "item")]
    pub id: String,
    pub question: String,
    /// In the file's order; 2 to 10 of them, lettered A, B, C, … without gaps.
    #[serde(with = "by_letter")]
    #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, String>"))]
    pub options: Vec<Choice>,
    /// The letter of the correct option; `None` if the file has none.
    #[serde(rename = "answer")]
    pub gold: Option<char>,
    /// The file or URL of an image, which earlier versions showed to endpoints.
    pub image: Option<String>,
}

impl Question {
    pub fn letters(&self) -> impl Iterator<Item = char> {
        self.options.iter().map(|choice| choice.letter)
    }

    /// Puts the options in an order drawn from `seed`, and letters them anew. A question stays as it is where an option speaks of others,
    /// as "none of the above" and "A and B" do: then it says so.
    #[must_use]
    pub fn permute_options(&mut self, seed: u64) -> bool {
        if self.options.iter().any(|option| speaks_of_others(&option.text)) {
            return false;
        }
        let count = self.options.len();
        let drawn = sample(count, count, seed).into_iter().map(|from| &self.options[from]);
        let drawn: Vec<(char, &Choice)> = self.letters().zip(drawn).collect();
        let right = drawn.iter().find(|(_, choice)| Some(choice.letter) == self.gold);
        self.gold = right.map(|(letter, _)| *letter);
        let choice =
            |(letter, Choice { text, .. }): (char, &Choice)| Choice { letter, text: text.clone() };
        self.options = drawn.into_iter().map(choice).collect();
        true
    }

    /// What an answer is counted as, a letter or none: of options of one text the right one's letter, else the first one's.
    pub fn counted(&self, answer: &str) -> String {
        let named = self.options.iter().find(|option| answer == option.letter.to_string());
        let Some(named) = named else { return answer.to_owned() };
        // But for blanks; `Mg` is not `mg`.
        let words = || named.text.split_whitespace();
        let equal = self.options.iter().filter(|one| one.text.split_whitespace().eq(words()));
        let mut letters: Vec<char> = equal.map(|option| option.letter).collect();
        letters.sort_by_key(|letter| Some(*letter) != self.gold);
        letters.first().map(char::to_string).unwrap_or_default()
    }

    /// The text of the option with this letter; `None` for a letter that no option has.
    pub fn option(&self, letter: char) -> Option<&str> {
        let choice = self.options.iter().find(|choice| choice.letter == letter)?;
        Some(&choice.text)
    }
}

/// One option of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub letter: char,
    pub text: String,
}

/// Options as an object from letters to texts.
mod by_letter {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::Choice;

    pub fn serialize<S: Serializer>(options: &[Choice], to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(options.iter().map(|one| (one.letter, &one.text)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Choice>, D::Error> {
        let texts = BTreeMap::deserialize(from)?.into_iter();
        Ok(texts.map(|(letter, text)| Choice { letter, text }).collect())
    }
}

/// One clinical note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// Unique within its file.
    #[serde(rename = "item")]
    pub id: String,
    pub language: Language,
    /// The text as in the file.
    pub text: String,
    /// At least one. A sentence's id is its index.
    pub sentences: Vec<String>,
    /// `None` if the file has none.
    pub gold: Option<GoldLine>,
}

impl Note {
    /// A note of this text without gold, cut into its sentences.
    pub fn new(id: String, text: &str) -> Note {
        let sentences = sentences::numbered_or(text, running_text::split).into_iter();
        Note {
            id,
            language: script::language(text),
            text: text.to_owned(),
            sentences: sentences.map(running_text::one_line).collect(),
            gold: None,
        }
    }

    /// The gold annotation of its error; `None` of a note that is correct, or of which it is not known.
    pub fn error(&self) -> Option<&GoldLine> {
        self.gold.as_ref().filter(|gold| gold.flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(options: [&str; 4]) -> Question {
        let options = options
            .iter()
            .zip('A'..)
            .map(|(text, letter)| Choice { letter, text: (*text).to_owned() });
        Question {
            id: "1".into(),
            question: "Which?".into(),
            options: options.collect(),
            gold: Some('C'),
            ..Question::default()
        }
    }

    #[test]
    fn options_are_lettered_anew_and_the_right_one_stays_right() {
        let written = question(["iron", "zinc", "copper", "lead"]);
        let mut places = [0; 4];
        for seed in 0..400 {
            let mut permuted = written.clone();
            assert!(permuted.permute_options(seed));
            assert_eq!(permuted.letters().collect::<String>(), "ABCD");
            let gold = permuted.gold.unwrap();
            assert_eq!(permuted.option(gold), Some("copper"));
            places[gold as usize - 'A' as usize] += 1;
        }
        // 100 expected, standard deviation 9.
        assert!(places.iter().all(|count| (65..135).contains(count)), "{places:?}");
        let mut without_gold = Question { gold: None, ..written };
        assert!(without_gold.permute_options(3));
        assert_eq!(without_gold.gold, None);
    }

    #[test]
    fn either_letter_of_an_option_that_stands_twice_counts_as_its_text() {
        let mut twice = question(["zinc", "iron  salts", "copper", "iron salts"]);
        let counted = |question: &Question| {
            ["A", "B", "C", "D", "E", ""].map(|answer| question.counted(answer))
        };
        assert_eq!(counted(&twice), ["A", "B", "C", "B", "E", ""]);
        twice.gold = Some('D');
        assert_eq!(counted(&twice), ["A", "D", "C", "D", "E", ""]);
        assert_eq!(question(["Mg", "mg", "a", "b"]).counted("B"), "B");
    }

    #[test]
    fn options_that_speak_of_others_stay_where_they_are() {
        let written = question(["iron", "zinc", "copper", "Both (a) and (b)"]);
        for seed in 0..20 {
            let mut permuted = written.clone();
            assert!(!permuted.permute_options(seed));
            assert_eq!(permuted, written);
        }
    }
}
