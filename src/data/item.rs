//! The items that systems work on: questions to answer and clinical notes to check.

use std::fmt;

use super::cross_reference::speaks_of_others;
use crate::random::sample;
use crate::record::{GoldLine, ItemText, Language, NoteText, QuestionText};

#[derive(Clone, Debug, PartialEq, Eq)]
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

/// A line of `dataset.jsonl`.
impl From<&Item> for ItemText {
    fn from(item: &Item) -> ItemText {
        match item {
            Item::Question(question) => ItemText::Question(QuestionText {
                item: question.id.clone(),
                question: question.question.clone(),
                options: question
                    .options
                    .iter()
                    .map(|option| (option.letter, option.text.clone()))
                    .collect(),
                answer: question.gold.map(String::from),
                reference: None,
                image: question.image.clone(),
            }),
            Item::Note(note) => ItemText::Note(NoteText {
                item: note.id.clone(),
                language: note.language,
                text: note.text.clone(),
                sentences: note.sentences.clone(),
                gold: note.gold.as_ref().map(GoldLine::from),
            }),
        }
    }
}

/// The kind of all items of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    Questions,
    Notes,
}

impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ItemKind::Questions => "questions",
            ItemKind::Notes => "notes",
        })
    }
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

/// One question of multiple choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Unique within its file.
    pub id: String,
    pub question: String,
    /// In the file's order; 2 to 10 of them, lettered A, B, C, … without gaps.
    pub options: Vec<Choice>,
    /// The letter of the correct option; `None` if the file has none.
    pub gold: Option<char>,
    /// The file or URL of the question's image, if it has one; only a remote member can be shown it.
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
        let letters: Vec<char> = self.letters().collect();
        let order = sample(count, count, seed);
        let gold = self.gold;
        let choices = letters.iter().zip(&order).map(|(letter, &from)| {
            let text = self.options[from].text.clone();
            (Choice { letter: *letter, text }, gold == Some(self.options[from].letter))
        });
        let choices: Vec<(Choice, bool)> = choices.collect();
        let right = choices.iter().find(|(_, is_gold)| *is_gold);
        self.gold = right.map(|(choice, _)| choice.letter);
        self.options = choices.into_iter().map(|(choice, _)| choice).collect();
        true
    }

    /// What an answer is counted as, a letter or none: of options of one text the right one's letter, else the first one's.
    pub fn counted(&self, answer: &str) -> String {
        let named = self.options.iter().find(|option| answer == option.letter.to_string());
        let Some(named) = named else { return answer.to_owned() };
        let equal = self.options.iter().filter(|option| option.reads_as(named));
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

impl Choice {
    /// Whether both say the same, but for blanks. `Mg` is not `mg`.
    pub fn reads_as(&self, other: &Choice) -> bool {
        self.text.split_whitespace().eq(other.text.split_whitespace())
    }
}

/// One clinical note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Unique within its file.
    pub id: String,
    /// The text as in the file.
    pub text: String,
    /// At least one. A sentence's id is its index.
    pub sentences: Vec<String>,
    pub language: Language,
    /// `None` if the file has none.
    pub gold: Option<NoteGold>,
}

/// The gold annotation that a note is scored against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteGold {
    /// The note's one error; `None` for a correct note.
    pub error: Option<NoteError>,
}

impl NoteGold {
    pub fn is_wrong(&self) -> bool {
        self.error.is_some()
    }
}

impl From<&NoteGold> for GoldLine {
    fn from(gold: &NoteGold) -> GoldLine {
        let error = gold.error.as_ref();
        GoldLine {
            flag: error.is_some(),
            sentence_id: error.map(|error| error.sentence_id),
            sentence: error.map(|error| error.sentence.clone()),
            correction: error.map(|error| error.correction.clone()),
            kind: error.and_then(|error| error.kind.clone()),
            keywords: error.map_or(Vec::new(), |error| error.keywords.clone()),
        }
    }
}

/// The error of a note according to its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteError {
    /// The id of one of the note's sentences.
    pub sentence_id: usize,
    /// The erroneous sentence as in its own column; whitespace, an apostrophe or the last full stop may differ from the
    /// note's.
    pub sentence: String,
    pub correction: String,
    /// The error type as in the file, such as `diagnosis`.
    pub kind: Option<String>,
    /// The keywords that a correction must name.
    pub keywords: Vec<String>,
    /// Such as `Hard`.
    pub difficulty: Option<String>,
    /// Such as `Multi-hop`.
    pub reasoning: Option<String>,
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
