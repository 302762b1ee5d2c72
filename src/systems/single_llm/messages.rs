//! The messages of a call: a medical expert as the system, the question with the method's words as the user.

use super::settings::{Method, Settings};
use crate::data::Question;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::record::Message;
use crate::systems::case::messages;
use crate::systems::text::option_lines;

/// The prompts of a run.
#[derive(Clone, Debug)]
pub struct Messages {
    system: String,
    user: String,
    few_shot: Option<FewShot>,
}

/// What few-shot puts after the zero-shot prompt.
#[derive(Clone, Debug)]
struct FewShot {
    frame: String,
    medqa: String,
    pubmedqa: String,
}

impl Messages {
    /// # Errors
    /// [`PromptError`] where an overridden prompt lost a placeholder.
    pub fn new(prompts: &PromptSet, settings: &Settings) -> Result<Messages, PromptError> {
        let text = |name: &str, placeholders: &[&str]| -> Result<String, PromptError> {
            let name = format!("single_llm/{name}.txt");
            Ok(prompts.get(&name, placeholders)?.to_owned())
        };
        let user = match settings.method.reasons() {
            true => "cot",
            false => "zero-shot",
        };
        let few_shot = match settings.method {
            Method::FewShot => Some(FewShot {
                frame: text("few-shot", &["zero_shot", "examples"])?,
                medqa: text("examples-medqa", &[])?,
                pubmedqa: text("examples-pubmedqa", &[])?,
            }),
            _ => None,
        };
        Ok(Messages {
            system: text("system", &[])?,
            user: text(user, &["question", "options"])?,
            few_shot,
        })
    }

    /// What the model is asked. The examples are those of the dataset, by its name, or else MedQA's.
    pub fn of(&self, dataset: &str, question: &Question) -> Vec<Message> {
        let options = option_lines(question);
        let values = [("question", question.question.as_str()), ("options", &options)];
        let user = fill(&self.user, &values);
        let user = match &self.few_shot {
            None => user,
            Some(few_shot) => {
                let examples = match dataset.starts_with("pubmedqa") {
                    true => &few_shot.pubmedqa,
                    false => &few_shot.medqa,
                };
                fill(&few_shot.frame, &[("zero_shot", &user), ("examples", examples)])
            }
        };
        messages(&self.system, user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::scripted::question;

    fn user(method: Method, dataset: &str) -> String {
        let messages =
            Messages::new(&PromptSet::embedded(), &Settings { method, ..Settings::default() })
                .unwrap();
        let sent = messages.of(dataset, &question(3));
        let roles: Vec<&str> = sent.iter().map(|message| message.role.as_str()).collect();
        assert_eq!(roles, ["system", "user"]);
        sent[1].content.clone()
    }

    #[test]
    fn options_stand_a_line_each_after_the_question() {
        let asked = "Which one {examples}?\n\nOptions:\nA: option A\nB: option B\nC: option C\n\n";
        for method in [Method::ZeroShot, Method::FewShot, Method::Cot] {
            assert!(user(method, "medqa").starts_with(asked), "{method:?}");
        }
    }

    #[test]
    fn few_shot_is_zero_shot_and_two_examples_after_it() {
        let zero_shot = user(Method::ZeroShot, "medqa");
        let few_shot = user(Method::FewShot, "medqa");
        let after = few_shot.strip_prefix(&zero_shot).unwrap();
        assert_eq!(after.matches("\nAnswer: ").count(), 2);
        assert!(zero_shot.ends_with("nothing else."), "{zero_shot}");
    }

    #[test]
    fn examples_are_the_datasets_or_else_those_of_medqa() {
        let answers = |dataset| -> Vec<String> {
            let user = user(Method::FewShot, dataset);
            let lines = user.lines();
            lines.filter_map(|line| line.strip_prefix("Answer: ")).map(str::to_owned).collect()
        };
        assert_eq!(answers("medqa"), ["E", "A"]);
        assert_eq!(answers("pubmedqa"), ["B", "A"]);
        assert_eq!(answers("mmlu-pro"), ["E", "A"]);
        assert_eq!(user(Method::FewShot, "mmlu-pro"), user(Method::FewShot, "medqa"));
        let nitrofurantoin = |dataset| user(Method::FewShot, dataset).contains("E: Nitrofurantoin");
        assert!(nitrofurantoin("medqa") && !nitrofurantoin("pubmedqa"));
    }

    #[test]
    fn self_consistency_asks_as_zero_shot_and_cot_sc_as_cot() {
        let asked = |method| user(method, "medqa");
        assert_eq!(asked(Method::SelfConsistency), asked(Method::ZeroShot));
        assert_eq!(asked(Method::CotSc), asked(Method::Cot));
        assert!(asked(Method::Cot).contains("{\n  \"Thought\": "));
        assert_ne!(asked(Method::Cot), asked(Method::ZeroShot));
    }
}
