//! `data reasons`: has a model explain why each exemplar is right or wrong; it is given the gold annotation and must not mention it.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};

use super::asking::AskFlags;
use super::sandboxed::Paths;
use crate::cli::exit::Failure;
use crate::console;
use crate::data::Note;
use crate::experiment::exemplars::ReasonsFile;
use crate::experiment::whole_file;
use crate::prompts::{PromptSet, fill};
use crate::record::{Parse, Stage};
use crate::systems::case::Step;
use crate::systems::decoding::Decoding;
use crate::systems::messages::{messages, numbered};
use crate::systems::reading::reply::passage;

const AGENT: &str = "reasons";

/// Style of the reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Style {
    /// What follows "contains an error because", as knowlab shows it
    Reason,
    /// As a physician solves a case, as IKIM's chains of thought
    Solve,
}

#[derive(Debug, Args)]
pub struct Reasons {
    /// Style of the reasons
    #[arg(long, value_enum)]
    style: Style,
    #[command(flatten)]
    ask: AskFlags,
}

impl Reasons {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        self.ask.within(given)?.enter()?;
        let style = self.style.to_possible_value();
        let style = style.map_or(String::new(), |value| value.get_name().to_owned());
        let prompts = PromptSet::embedded();
        let template = prompts.get(&format!("reasons/{style}"), &["note", "gold"])?;
        let wrong = prompts.get("reasons/gold-wrong", &["id", "wrong", "corrected"])?;
        let right = prompts.get("reasons/gold-right", &[])?;
        let gold = |note: &Note| match note.error() {
            None => right.clone(),
            Some(error) => {
                let id = error.sentence_id.map(|id| id.to_string()).unwrap_or_default();
                let kind = error.kind.as_deref().unwrap_or("not given");
                let [sentence, correction] = [&error.sentence, &error.correction]
                    .map(|text| text.as_deref().unwrap_or_default().trim());
                let values = [
                    ("id", id.as_str()),
                    ("wrong", sentence),
                    ("corrected", correction),
                    ("kind", kind),
                ];
                fill(&wrong, &values)
            }
        };
        let found = self.ask.ask(
            AGENT,
            |note| note.gold.is_some(),
            |case| {
                let values = [("note", numbered(case.item)), ("gold", gold(case.item))];
                let grammar = Decoding::default().passage();
                let step = Step::new(Stage::Aside, 0, "reason", grammar);
                let call = case.call(&step, 0, AGENT, messages("", fill(&template, &values)));
                let asked = case.ask(call, |text, _| passage(text))?;
                let is_read = !matches!(asked.call.parse, Parse::Refused | Parse::Unread);
                Ok(Some(asked.value.said).filter(|text| is_read && !mentions_gold(text)))
            },
        )?;
        let total = found.len();
        let reasons: BTreeMap<String, String> =
            found.into_iter().filter_map(|(id, reason)| Some((id, reason?))).collect();
        let without = total - reasons.len();
        let file = ReasonsFile { style, reasons };
        let text = serde_json::to_string_pretty(&file).map_err(std::io::Error::from)?;
        whole_file::write_private(&self.ask.out, format!("{text}\n").as_bytes())?;
        console::note(format!(
            "{total} notes; {without} without a reason, or with one that mentions the gold annotation"
        ));
        Ok(console::say(self.ask.out.display().to_string())?)
    }
}

/// Whether a reason reveals that the model was given the answer.
fn mentions_gold(text: &str) -> bool {
    const WORDS: [&str; 10] = [
        "i was told",
        "we are told",
        "what is known",
        "gold",
        "the given correction",
        "the provided correction",
        "correction provided",
        "correction given",
        "as indicated by the correction",
        "the corrected sentence",
    ];
    let text = text.to_lowercase();
    WORDS.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_mentions_its_gold_is_told() {
        assert!(mentions_gold("The provided correction names artesunate."));
        assert!(!mentions_gold("Severe malaria calls for artesunate, not aspirin."));
    }
}
