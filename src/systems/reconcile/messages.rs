//! What the agents are asked: the question alone, then the question and everybody's answers, grouped by letter.

use super::settings::Settings;
use super::vote::Opinion;
use crate::data::Question;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::Message;
use crate::systems::step::Templates;
use crate::systems::text::{option_lines, truncate};

/// The prompts of a run.
pub struct Messages {
    initial: Templates,
    discussion: Templates,
    group: String,
    truncate_chars: usize,
}

impl Messages {
    /// # Errors
    /// An overridden prompt that lost a placeholder.
    pub fn new(prompts: &PromptSet, settings: &Settings) -> Result<Messages, PromptError> {
        let case = ["question", "options"];
        let discussed = ["question", "options", "groups"];
        let group = ["answer", "supporters", "confidence", "explanations"];
        Ok(Messages {
            initial: Templates::new(prompts, "reconcile/initial", &[], &case)?,
            discussion: Templates::new(prompts, "reconcile/discussion", &[], &discussed)?,
            group: prompts.get("reconcile/group.txt", &group)?.to_owned(),
            truncate_chars: settings.truncate_chars,
        })
    }

    pub fn initial(&self, question: &Question) -> Vec<Message> {
        let options = option_lines(question);
        self.initial.fill(&[("question", &question.question), ("options", &options)])
    }

    pub fn discussion(&self, question: &Question, groups: &str) -> Vec<Message> {
        let options = option_lines(question);
        self.discussion.fill(&[
            ("question", &question.question),
            ("options", &options),
            ("groups", groups),
        ])
    }

    /// The answers of a round by letter, in the order in which letters were first given; no names.
    pub fn groups(&self, opinions: &[Opinion]) -> String {
        let mut letters: Vec<&str> = Vec::new();
        for opinion in opinions {
            if !letters.contains(&opinion.answer.as_str()) {
                letters.push(&opinion.answer);
            }
        }
        let groups: Vec<String> =
            letters.into_iter().map(|letter| self.group(letter, opinions)).collect();
        groups.join("\n\n")
    }

    fn group(&self, letter: &str, opinions: &[Opinion]) -> String {
        let supporters: Vec<&Opinion> =
            opinions.iter().filter(|opinion| opinion.answer == letter).collect();
        let sum: f64 = supporters.iter().map(|opinion| opinion.confidence).sum();
        let explanations: Vec<String> = supporters
            .iter()
            .map(|opinion| format!("- {}", truncate(&opinion.reasoning, self.truncate_chars)))
            .collect();
        let values = [
            ("answer", if letter.is_empty() { "none" } else { letter }),
            ("supporters", &supporters.len().to_string()),
            ("confidence", &format!("{:.2}", sum / supporters.len() as f64)),
            ("explanations", &explanations.join("\n")),
        ];
        fill(&self.group, &values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_grouped_by_letter_in_the_order_they_came() {
        let settings = Settings { truncate_chars: 6, ..Settings::default() };
        let messages = Messages::new(&PromptSet::embedded(), &settings).unwrap();
        let opinion = |answer: &str, confidence, reasoning: &str| Opinion {
            answer: answer.into(),
            confidence,
            reasoning: reasoning.into(),
        };
        let groups = messages.groups(&[
            opinion("C", 0.9, "fever and chills"),
            opinion("", 0.0, "{answer}"),
            opinion("C", 0.65, "rash"),
        ]);
        let expected = "\
Answer: C
Supporters: 2
Average confidence: 0.78
Explanations:
- fever …
- rash

Answer: none
Supporters: 1
Average confidence: 0.00
Explanations:
- {answe…";
        assert_eq!(groups, expected);
    }
}
