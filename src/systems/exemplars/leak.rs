//! Exam questions with their answers, by how alike they are to a note. MEDEC's notes are made of such questions: whoever is shown them is
//! shown answers, and every table says so.

use super::terms::TfIdf;
use crate::data::{Note, Question};

/// Questions with their right answers.
pub struct Leak {
    texts: Vec<String>,
    index: TfIdf,
}

impl Leak {
    /// Of these questions those with a right answer.
    pub fn new<'a>(questions: impl IntoIterator<Item = &'a Question>) -> Leak {
        let text = |question: &Question| {
            let answer = question.option(question.gold?)?;
            Some(format!("{}\nAnswer: {answer}", question.question.trim()))
        };
        let texts: Vec<String> = questions.into_iter().filter_map(text).collect();
        let index = TfIdf::new(texts.iter().map(String::as_str));
        Leak { texts, index }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The one that is most like a note; of equals the first.
    pub fn nearest(&self, note: &Note) -> &str {
        let scores = self.index.scores(&note.text);
        let best =
            (0..scores.len()).rev().max_by(|one, other| scores[*one].total_cmp(&scores[*other]));
        best.map_or("", |best| &self.texts[best])
    }
}
