//! Exam questions with their answers, ranked by similarity to a note. MEDEC's notes are made from such questions, so showing them leaks
//! answers; every table of results says so.

use super::cluster::first_greatest;
use super::terms::TfIdf;
use crate::data::{Note, Question};

/// Questions with their correct answers.
pub struct Leak {
    texts: Vec<String>,
    index: TfIdf,
}

impl Leak {
    /// Those of these questions that have a correct answer.
    pub fn new<'a>(questions: impl IntoIterator<Item = &'a Question>) -> Leak {
        let text = |question: &Question| {
            let answer = question.option(question.gold?)?;
            Some(format!("{}\nAnswer: {answer}", question.question.trim()))
        };
        let texts: Vec<String> = questions.into_iter().filter_map(text).collect();
        let index = TfIdf::new(texts.iter().map(String::as_str));
        Leak { texts, index }
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The question most similar to a note, the first of several.
    pub fn nearest(&self, note: &Note) -> &str {
        let scores = self.index.scores(&note.text);
        first_greatest(scores.into_iter().enumerate()).map_or("", |best| &self.texts[best])
    }
}
