//! A text that prompts quote by its name: which of its words the settings choose, and what is filled in.

use super::schema::{BY, Text, YES_NO};
use super::settings::Settings;
use crate::data::{Item, Question};
use crate::prompts::has_placeholder;
use crate::systems::messages::fill_question;

pub struct NamedText {
    pub name: String,
    text: String,
    /// For questions of yes, no and maybe, where there is another.
    yes_no: Option<String>,
}

impl NamedText {
    /// The text that the settings choose.
    pub fn new((name, text): (&String, &Text), settings: &Settings) -> NamedText {
        let (text, yes_no) = match text {
            Text::One(text) => (text.clone(), None),
            Text::By(words) => {
                let word = words.get(BY).map(|by| settings.word(by)).unwrap_or_default();
                let text = words.get(&word).cloned().unwrap_or_default();
                (text, words.get(&(word + YES_NO)).cloned())
            }
        };
        NamedText { name: name.clone(), text, yes_no }
    }

    /// Of a question with that and what was `said` filled in; nothing, where one of these that it quotes is empty. Texts of notes quote nothing.
    pub fn filled(&self, item: &Item, said: &[(&str, String)]) -> String {
        let Item::Question(question) = item else { return self.text.clone() };
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

/// Whether a question's options are those of PubMedQA.
fn is_yes_or_no(question: &Question) -> bool {
    let mut options = question.options.iter().map(|option| option.text.trim().to_lowercase());
    options.all(|option| ["yes", "no", "maybe"].contains(&option.as_str()))
}
