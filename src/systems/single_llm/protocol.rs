//! One question, asked of one model once or several times, and the vote over what it said.

use serde::Deserialize;
use serde_json::Value;

use super::messages::Messages;
use super::parse::parse;
use super::settings::Settings;
use crate::data::{Item, Question};
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet};
use crate::record::{ItemLine, RoundLine, Stage};
use crate::systems::case::{Ask, Verdict, value};
use crate::systems::form::{self, STEPS};
use crate::systems::vote::round_line;
use crate::systems::{Opening, System, Task};

/// The one seat's agent.
pub const AGENT: &str = "solo";

/// What of a call's record the vote counts.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Counted {
    answer: String,
    /// The answer as it was written, where the harness counts that.
    written: String,
    thought: Option<String>,
}

/// A model on its own.
pub struct SingleLlm {
    settings: Settings,
    messages: Messages,
}

impl SingleLlm {
    /// # Errors
    /// When an overridden prompt lost what is filled in.
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<SingleLlm, PromptError> {
        Ok(SingleLlm { settings: settings.clone(), messages: Messages::new(prompts, settings)? })
    }
}

impl System for SingleLlm {
    /// Draws every sample at once and takes the most common answer.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.question()?;
        let question = case.item;
        let letters: Vec<char> = question.letters().collect();
        let thought = self.thought(question);
        let asks = (0..self.settings.samples).map(|sample| Ask {
            member: 0,
            agent: AGENT.to_owned(),
            stage: Stage::Initial,
            round: 0,
            purpose: "initial",
            sample,
            messages: self.messages.of(case.dataset(), question),
            grammar: match self.settings.method.reasons() {
                true => form::record(thought.clone()),
                false => form::letter(question),
            },
            max_tokens: self.max_tokens(&thought),
        });
        let calls = case.ask_all(asks.collect(), &|text, finish_reason| {
            let reading = parse(text, finish_reason, &self.settings, &letters);
            (reading.record(self.settings.mab_compat), reading.parse)
        })?;
        let readings: Vec<Counted> = calls.iter().map(value).collect::<Result<_, _>>()?;
        let verdict = verdict(&readings, self.settings.mab_compat);
        let agents = vec![AGENT.to_owned(); readings.len()];
        let answers = readings.into_iter().map(|one| one.answer).collect();
        let round = RoundLine {
            aggregate: verdict.answer.clone(),
            ..round_line(0, Stage::Initial, agents, answers, String::new())
        };
        Ok(case.close(vec![round], verdict).into())
    }

    fn opening(&self, dataset: &str, item: &Item) -> Vec<Opening> {
        let Item::Question(question) = item else {
            return Vec::new();
        };
        vec![Opening::new(0, self.messages.of(dataset, question))]
    }
}

impl SingleLlm {
    /// The fields of a reasoned answer, as the prompt spells them.
    fn thought(&self, question: &Question) -> Vec<(&'static str, Value)> {
        vec![
            ("Thought", form::string(STEPS * self.settings.decoding.record_chars)),
            ("Answer", form::answer(question)),
        ]
    }

    /// No tokenizer needs more tokens than bytes. A free text may say more than the letter that it was asked for, so that all methods
    /// share one bound.
    fn max_tokens(&self, thought: &[(&'static str, Value)]) -> Option<usize> {
        let longest = form::longest(&form::root(thought.to_vec()));
        self.settings.decoding.bound(longest)
    }
}

/// The most common letter, the first seen of equally common ones; empty answers have no vote. The harness counts answers as they were
/// written, and reads the letter from the one that won.
fn verdict(readings: &[Counted], mab_compat: bool) -> Verdict {
    let (answer, tie) = match mab_compat {
        true => {
            let written: Vec<&str> = readings.iter().map(|one| one.written.as_str()).collect();
            let (winner, tie) = most_common(&written);
            let won = readings.iter().find(|one| one.written == winner);
            (won.map_or("", |one| &one.answer), tie)
        }
        false => {
            let answers = readings.iter().map(|one| one.answer.as_str());
            most_common(&answers.filter(|answer| !answer.is_empty()).collect::<Vec<_>>())
        }
    };
    let supporters = || readings.iter().filter(|one| one.answer == answer);
    let thoughts = supporters().filter_map(|one| one.thought.as_deref());
    let rationale: Vec<&str> = thoughts.filter(|thought| !thought.is_empty()).collect();
    Verdict {
        answer: answer.to_owned(),
        team_confidence: match answer {
            "" => 0.0,
            _ => supporters().count() as f64 / readings.len() as f64,
        },
        rationale: rationale.join("\n"),
        tie,
    }
}

/// The most common text, the first seen of equally common ones, and whether there were any such.
fn most_common<'a>(texts: &[&'a str]) -> (&'a str, bool) {
    let count = |text: &str| texts.iter().filter(|other| **other == text).count();
    let most = texts.iter().map(|text| count(text)).max();
    let mut winners = texts.iter().filter(|text| Some(count(text)) == most);
    let winner = winners.next().copied().unwrap_or_default();
    (winner, winners.any(|other| *other != winner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::scripted::Script;
    use crate::record::AnswerLine;
    use crate::record::{CallLine, Parse};
    use crate::systems::SystemConfig;
    use crate::systems::scripted::{answer, question, settings};
    use crate::systems::single_llm::settings::Method;

    /// What a system makes of samples that say these texts, in order.
    fn run(name: &str, pairs: &[&str], said: &[&str]) -> (AnswerLine, Vec<CallLine>) {
        let samples = format!("samples={}", said.len());
        let pairs = [pairs, &[samples.as_str()]].concat();
        let protocol = SystemConfig::parse(name, &pairs).unwrap();
        let said: Vec<String> = said.iter().map(|text| text.to_string()).collect();
        let script = Script::new(move |key, _| said[key.sample as usize].clone());
        answer(&protocol, &question(5), script)
    }

    fn vote(name: &str, pairs: &[&str], said: &[&str]) -> (String, bool) {
        let (item, _) = run(name, pairs, said);
        (item.answer, item.tie)
    }

    #[test]
    fn every_method_makes_as_many_calls_as_it_has_samples() {
        for (name, calls) in
            [("zero-shot", 1), ("few-shot", 1), ("cot", 1), ("self-consistency", 5), ("cot-sc", 3)]
        {
            let protocol = SystemConfig::named(name).unwrap();
            let (item, made) = answer(&protocol, &question(5), Script::new(|_, _| "B".into()));
            assert_eq!((item.calls, made.len()), (calls, calls as usize), "{name}");
            let samples: Vec<u32> = made.iter().map(|call| call.sample).collect();
            assert_eq!(samples, (0..calls).collect::<Vec<_>>());
            assert_eq!((item.answer.as_str(), item.correct), ("B", Some(true)));
            assert_eq!((item.rounds.len(), item.rounds_run), (1, 0));
            assert_eq!(item.rounds[0].answers, vec!["B"; calls as usize]);
            assert_eq!(item.rounds[0].agents, vec!["solo"; calls as usize]);
        }
    }

    #[test]
    fn samples_are_draws_of_one_prompt() {
        let (_, calls) = run("cot-sc", &[], &["B", "B", "B"]);
        for call in &calls {
            assert_eq!((call.stage, call.purpose.as_str()), (Stage::Initial, "initial"));
            assert_eq!(call.messages, calls[0].messages);
        }
    }

    #[test]
    fn the_most_common_letter_wins_and_of_equals_the_first_seen() {
        let vote = |said: &[&str]| vote("self-consistency", &[], said);
        assert_eq!(vote(&["C", "B", "B"]), ("B".into(), false));
        assert_eq!(vote(&["C", "B", "B", "C", "D"]), ("C".into(), true));
        assert_eq!(vote(&["D", "B", "C"]), ("D".into(), true));
        // However it is written.
        assert_eq!(vote(&["C", "C", "B", "b", "(B)"]), ("B".into(), false));
    }

    #[test]
    fn empty_answers_have_no_vote() {
        let vote = |said: &[&str]| vote("self-consistency", &[], said);
        assert_eq!(vote(&["", "?", "D"]), ("D".into(), false));
        assert_eq!(vote(&["", "", ""]), ("".into(), false));
        let (item, _) = run("self-consistency", &[], &["", "", ""]);
        assert_eq!((item.correct, item.team_confidence), (Some(false), 0.0));
    }

    #[test]
    fn a_letter_beyond_the_options_is_no_answer_and_its_letter_is_kept() {
        let (item, calls) = run("zero-shot", &[], &["J"]);
        assert_eq!((item.answer.as_str(), item.correct), ("", Some(false)));
        assert_eq!(calls[0].record["not_an_option"], "J");
    }

    #[test]
    fn the_team_is_as_sure_as_its_share_of_votes_and_says_why() {
        let said = [
            r#"{"Thought": "rash", "Answer": "B"}"#,
            r#"{"Thought": "fever", "Answer": "C"}"#,
            r#"{"Thought": "cough", "Answer": "B"}"#,
            "I refuse.",
        ];
        let (item, calls) = run("cot-sc", &[], &said);
        assert_eq!(item.rounds[0].answers, ["B", "C", "B", ""]);
        assert_eq!((item.answer.as_str(), item.team_confidence), ("B", 0.5));
        assert_eq!(item.rationale, "rash\ncough");
        assert_eq!(calls[1].record["thought"], "fever");
        assert_eq!(calls[3].parse, Parse::Fallback);
    }

    #[test]
    fn the_harness_counts_what_was_written_and_reads_the_winner_wrong() {
        let said = ["B", "b.", "B.", "The diagnosis is C", "The diagnosis is C"];
        assert_eq!(vote("self-consistency", &[], &said), ("B".into(), false));
        let (item, calls) = run("self-consistency", &["mab_compat=on"], &said);
        assert_eq!((item.answer.as_str(), item.tie), ("A", false));
        assert_eq!(item.rounds[0].answers, ["B", "B", "B", "A", "A"]);
        assert_eq!((item.rounds[0].aggregate.as_str(), item.team_confidence), ("A", 0.4));
        assert_eq!(calls[3].record["answer"], "A");
    }

    #[test]
    fn the_harness_lets_empty_answers_vote() {
        let said = ["{}", "{}", r#"{"Answer": "B"}"#];
        assert_eq!(vote("cot-sc", &["mab_compat=on"], &said), ("".into(), false));
        assert_eq!(vote("cot-sc", &["mab_compat=on"], &["x", "y"]), ("".into(), false));
    }

    #[test]
    fn few_shot_shows_the_examples_of_the_cases_dataset() {
        let (_, calls) = run("few-shot", &[], &["B"]);
        assert!(calls[0].messages[1].content.contains("Nitrofurantoin"));
        let prompts = PromptSet::embedded();
        let system =
            SingleLlm::new(&Settings { method: Method::FewShot, ..Settings::default() }, &prompts)
                .unwrap();
        let item = question(3).into();
        let opening = |dataset| system.opening(dataset, &item).remove(0);
        assert_eq!(opening("medqa").member, 0);
        assert_eq!(opening("medqa").messages.len(), calls[0].messages.len());
        assert_ne!(opening("pubmedqa"), opening("medqa"));
    }

    #[test]
    fn a_completion_is_bounded_unless_it_thinks() {
        let bound = |pairs: &[&str]| {
            let settings: Settings = settings(pairs);
            let system = SingleLlm::new(&settings, &PromptSet::embedded()).unwrap();
            system.max_tokens(&system.thought(&question(5)))
        };
        // Eight strings of ten characters of four bytes.
        let around = r#"{"Thought": "", "Answer": "A"}"#.len();
        assert_eq!(bound(&["record_chars=10"]), Some(8 * 10 * 4 + around));
        assert_eq!(bound(&["thinking=on"]), None);
        assert_eq!(bound(&["thinking=on", "max_tokens=7"]), Some(7));
        assert_eq!(bound(&["max_tokens=7"]), Some(7));
    }
}
