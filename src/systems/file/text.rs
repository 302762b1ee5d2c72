//! A text that prompts quote by its name: which of its words the settings choose, and what is filled in.

use super::ask::Staged;
use super::schema::{BY, Text, YES_NO};
use super::settings::Settings;
use super::transcript::Transcript;
use crate::data::{Item, Question};
use crate::prompts::{fill, has_placeholder};
use crate::systems::messages::fill_question;

pub struct NamedText {
    pub name: String,
    pub text: String,
    /// For questions of yes, no and maybe, where there is another.
    yes_no: Option<String>,
}

impl NamedText {
    /// The text that the settings choose.
    pub fn new((name, text): (String, Text), settings: &Settings) -> NamedText {
        match text {
            Text::One(text) => NamedText { name, text, yes_no: None },
            Text::By(mut words) => {
                let word = words.get(BY).map(|by| settings.word(by)).unwrap_or_default();
                let text = words.remove(&word).unwrap_or_default();
                NamedText { name, text, yes_no: words.remove(&(word + YES_NO)) }
            }
        }
    }

    /// With the question and what was `said` filled in; nothing, where one of these that it quotes is empty.
    fn of_question(&self, question: &Question, said: &[(&str, String)]) -> String {
        let text = self.yes_no.as_ref().filter(|_| is_yes_or_no(question)).unwrap_or(&self.text);
        let quoted = said.iter().filter(|(name, _)| has_placeholder(text, name));
        let quoted: Vec<(&str, &str)> =
            quoted.map(|(name, value)| (*name, value.as_str())).collect();
        match quoted.iter().any(|(_, value)| value.is_empty()) {
            true => String::new(),
            false => fill_question(text, question, &quoted),
        }
    }
}

impl Staged {
    /// A text, with the item and what was `said` filled in.
    pub(super) fn filled(
        &self,
        named: &NamedText,
        item: &Item,
        (transcript, said): (&Transcript, &[(&str, String)]),
    ) -> String {
        let note = match item {
            Item::Question(question) => return named.of_question(question, said),
            Item::Note(note) => note,
        };
        let mut values = Vec::new();
        if has_placeholder(&named.text, "question") {
            let leak = self.exemplars.leak.as_ref();
            values.push(("question", leak.map_or("", |leak| leak.nearest(note)).to_owned()));
        }
        if has_placeholder(&named.text, "opinions") {
            values.push(("opinions", self.exemplars.opinions(note, &self.expert)));
        }
        if has_placeholder(&named.text, "span") {
            let span = transcript.quoted.as_ref().map(|quoted| quoted.words.clone());
            values.push(("span", span.unwrap_or_default()));
        }
        match values.iter().any(|(_, value)| value.is_empty()) {
            true => String::new(),
            false => fill(&named.text, &values),
        }
    }
}

/// Whether a question's options are those of PubMedQA.
fn is_yes_or_no(question: &Question) -> bool {
    let mut options = question.options.iter().map(|option| option.text.trim().to_lowercase());
    options.all(|option| ["yes", "no", "maybe"].contains(&option.as_str()))
}
