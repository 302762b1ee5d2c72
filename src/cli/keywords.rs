//! `data keywords`: has a model extract, for each note with an error, the keywords that a correction must name, from the erroneous and the
//! corrected sentence (MedGuards, A.1).

use clap::Args;
use serde_json::json;

use super::asking::AskFlags;
use super::sandboxed::Paths;
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::whole_file;
use crate::prompts::{PromptSet, fill};
use crate::record::{Parse, Stage};
use crate::systems::case::{One, Step};
use crate::systems::decoding::Decoding;
use crate::systems::form;
use crate::systems::mediqa_corr::words;
use crate::systems::messages::messages;

/// The most keywords of a note.
const MOST: usize = 8;
const AGENT: &str = "keywords";

#[derive(Debug, Args)]
pub struct Keywords {
    #[command(flatten)]
    ask: AskFlags,
}

impl Keywords {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        self.ask.within(given)?.enter()?;
        let prompts = PromptSet::embedded();
        let template = prompts.get("keywords/keywords", &["wrong", "corrected"])?;
        let found = self.ask.ask(
            AGENT,
            |note| note.error().is_some(),
            |case| {
                let Some(error) = case.item.error() else { return Ok(Vec::new()) };
                let [wrong, corrected] = [&error.sentence, &error.correction]
                    .map(|text| text.as_deref().unwrap_or_default());
                let values = [("wrong", wrong), ("corrected", corrected)];
                let decoding = Decoding {
                    record_chars: corrected.chars().count().max(1),
                    ..Decoding::default()
                };
                let keywords = form::array(decoding.string(), 1, MOST);
                let grammar = form::record(vec![("keywords", keywords)]);
                let step = Step::new(Stage::Aside, 0, "keywords", grammar);
                let call = case.call(&step, 0, AGENT, messages("", fill(&template, &values)));
                let asked = case.ask(call, |text, finish_reason| {
                    One::of("words", words(text, finish_reason, "keywords", MOST))
                })?;
                Ok(match asked.call.parse {
                    Parse::Refused | Parse::Unread => Vec::new(),
                    // A keyword must occur in the gold correction.
                    Parse::Ok | Parse::Repaired | Parse::Fallback => {
                        named(&asked.value.said, corrected)
                    }
                })
            },
        )?;
        let empty = found.values().filter(|named| named.is_empty()).count();
        let out = &self.ask.out;
        whole_file::write_private(out, format!("{:#}\n", json!(found)).as_bytes())?;
        console::note(format!(
            "{} notes with an error; {empty} without a keyword that occurs in the gold correction",
            found.len()
        ));
        Ok(console::say(out.display().to_string())?)
    }
}

/// The keywords that occur in the gold correction, each once.
fn named(keywords: &[String], correction: &str) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for keyword in keywords {
        if correction.contains(keyword) && !named.contains(keyword) {
            named.push(keyword.clone());
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_stand_in_the_gold_correction_each_once() {
        let given = ["artesunate", "artesunate", "aspirin", "IV"].map(str::to_owned);
        assert_eq!(named(&given, "Give IV artesunate."), ["artesunate", "IV"]);
    }
}
