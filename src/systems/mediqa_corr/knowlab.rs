//! knowlab_AIMed: up to three chain-of-thought prompts in sequence (System 1), and their combination with System 2, which shows reasons.

use serde::{Deserialize, Serialize};

use super::{Design, Finding, Kit, Request, Solve, Solver};
use crate::data::Note;
use crate::diagnosis::Failure;
use crate::panel::PanelError;
use crate::prompts::PromptSet;
use crate::record::Message;
use crate::systems::System;
use crate::systems::case::Case;
use crate::systems::exemplars::prompt::Prompt;
use crate::systems::exemplars::reply::Field::{Correction, Flag, Id, Reason};
use crate::systems::exemplars::reply::{Form, Style};
use crate::systems::exemplars::{Choice, Kinds, Opinion};

/// The number of most similar notes from which System 2's exemplars are drawn.
pub const NEIGHBOURS: usize = 20;

/// The last fields of an answer in both systems.
pub const OUTPUT: Form = Form {
    style: Style::Lines,
    fields: &[
        ("Error Flag", Flag(["0", "1"])),
        ("Error Sentence ID", Id),
        ("Corrected Sentence", Correction),
    ],
};

pub(in crate::systems) const THOUGHT: Form = Form {
    style: Style::Lines,
    fields: &[
        ("Reasoning", Reason),
        ("Error Flag", Flag(["0", "1"])),
        ("Error Sentence ID", Id),
        ("Corrected Sentence", Correction),
    ],
};

/// The kinds of error that System 1 looks for in turn; they name its prompts and the purposes of its calls.
const FAMILIES: [&str; 3] = ["diagnosis", "intervention", "management"];
const TEMPERATURE: f32 = 0.7;

/// The settings of System 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CotSettings {}

/// The settings of both systems combined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {}

impl Design for CotSettings {
    fn calls(&self) -> u32 {
        FAMILIES.len() as u32
    }

    fn solver(&self, prompts: &PromptSet, kit: Kit) -> Result<Box<dyn System>, Failure> {
        Ok(Box::new(Solver(Chains::new(prompts, kit)?)))
    }
}

impl Design for Settings {
    fn calls(&self) -> u32 {
        FAMILIES.len() as u32 + 2
    }

    fn solver(&self, prompts: &PromptSet, kit: Kit) -> Result<Box<dyn System>, Failure> {
        let prompt = |name: &str| Prompt::new(prompts, name, Some("knowlab-reason"), &OUTPUT);
        Ok(Box::new(Solver(Knowlab {
            reason: prompt("knowlab-reason")?,
            place: prompt("knowlab-place")?,
            chains: Chains::new(prompts, kit)?,
        })))
    }
}

/// System 1: one prompt after another, until one finds an error.
struct Chains {
    prompts: Vec<Prompt>,
    choice: Choice,
    kit: Kit,
}

impl Chains {
    fn new(prompts: &PromptSet, kit: Kit) -> Result<Chains, Failure> {
        let prompt = |family: &&str| {
            Prompt::new(prompts, &format!("knowlab-{family}"), Some("knowlab-cot"), &THOUGHT)
        };
        let prompts = FAMILIES.iter().map(prompt).collect::<Result<_, _>>()?;
        let choice = kit.choice(Kinds::Balanced);
        Ok(Chains { prompts, choice, kit })
    }

    /// The first opinion that finds an error, else the last that could be parsed.
    fn ask(&self, case: &Case<'_, Note>) -> Result<Opinion, PanelError> {
        let shots = self.kit.exemplars.shots(case.item, &self.choice)?;
        let mut last = Opinion::default();
        for (prompt, purpose) in self.prompts.iter().zip(FAMILIES) {
            let messages = prompt.messages(&shots, case.item, &[]);
            let request = Request::new(purpose, TEMPERATURE, messages);
            let said = Opinion::from(&self.kit.judge(case, request, &THOUGHT)?);
            if said.flag.has_error() {
                return Ok(said);
            }
            if said.flag.is_read() {
                last = said;
            }
        }
        Ok(last)
    }
}

impl Solve for Chains {
    fn solve(&self, case: &Case<'_, Note>) -> Result<Finding, PanelError> {
        Ok(Finding::alone(self.ask(case)?))
    }

    fn first(&self, note: &Note) -> Result<Vec<Message>, PanelError> {
        let shots = self.kit.exemplars.shots(note, &self.choice)?;
        Ok(self.prompts[0].messages(&shots, note, &[]))
    }
}

/// System 1 decides whether there is an error and in which sentence; the correction is System 2's where it names the same sentence, else
/// that of another call whose prompt names the sentence.
struct Knowlab {
    chains: Chains,
    reason: Prompt,
    place: Prompt,
}

impl Solve for Knowlab {
    fn solve(&self, case: &Case<'_, Note>) -> Result<Finding, PanelError> {
        let (note, kit) = (case.item, &self.chains.kit);
        let first = self.chains.ask(case)?;
        let mut finding = Finding::alone(first.clone());
        if !first.flag.has_error() {
            return Ok(finding);
        }
        let choice = Choice { drawn_from: Some(NEIGHBOURS), ..self.chains.choice };
        let messages = self.reason.messages(&kit.exemplars.shots(note, &choice)?, note, &[]);
        let request = Request::new("reason", TEMPERATURE, messages);
        let second = kit.judge(case, request, &OUTPUT)?.value;
        let found = match (second.sentence_id, first.sentence_id) {
            (Some(id), Some(own)) if id == own => second.correction,
            (_, Some(own)) => {
                let choice = Choice { kinds: Kinds::Wrong, ..choice };
                let shots = kit.exemplars.shots(note, &choice)?;
                let messages = self.place.messages(&shots, note, &[("id", &own.to_string())]);
                let request = Request::new("place", TEMPERATURE, messages);
                kit.judge(case, request, &OUTPUT)?.value.correction
            }
            (_, None) => None,
        };
        // Without another correction System 1's stays.
        finding.opinion.correction = found.or(finding.opinion.correction);
        Ok(finding)
    }

    fn first(&self, note: &Note) -> Result<Vec<Message>, PanelError> {
        self.chains.first(note)
    }
}

#[cfg(test)]
mod tests {
    use crate::panel::scripted::Script;
    use crate::record::NoteLine;
    use crate::systems::SystemConfig;
    use crate::systems::scripted::{check, note};

    const NONE: &str =
        "Reasoning: fine\nError Flag: 0\nError Sentence ID: -1\nCorrected Sentence: NA";
    const FOUND: &str =
        "Reasoning: no\nError Flag: 1\nError Sentence ID: 1\nCorrected Sentence: One.";

    /// What comes of replies by purpose, and the purposes of the calls.
    fn run(name: &str, reply: fn(&str) -> &'static str) -> (NoteLine, Vec<String>) {
        let config = SystemConfig::parse(name, &["choice=bm25"]).unwrap();
        let script = Script::new(move |key, _| reply(&key.purpose).to_owned());
        let (line, calls) = check(&config, &note(), script);
        assert!(calls.len() <= config.max_calls() as usize);
        (line, calls.into_iter().map(|call| call.purpose).collect())
    }

    #[test]
    fn the_next_chain_is_asked_where_the_last_found_nothing() {
        let (line, asked) = run("knowlab-cot", |_| NONE);
        assert_eq!((line.flag.said(), asked.len()), (Some(false), 3));
        let (line, asked) = run("knowlab-cot", |purpose| match purpose {
            "intervention" => FOUND,
            _ => NONE,
        });
        assert_eq!((line.flag.said(), line.sentence_id), (Some(true), Some(1)));
        assert_eq!(
            (line.correction.as_deref(), asked),
            (Some("One."), vec!["diagnosis".into(), "intervention".into()])
        );
        let (line, asked) = run("knowlab-cot", |_| "hm");
        assert_eq!((line.flag.said(), asked.len()), (None, 3));
    }

    #[test]
    fn the_second_systems_correction_counts_where_it_names_the_same_sentence() {
        let corrected = |reply: fn(&str) -> &'static str| {
            let (line, asked) = run("knowlab", reply);
            assert_eq!((line.flag.said(), line.sentence_id), (Some(true), Some(1)));
            (line.correction.unwrap(), asked.last().unwrap().clone())
        };
        let same = corrected(|purpose| match purpose {
            "reason" => "Error Flag: 1\nError Sentence ID: 1\nCorrected Sentence: Two.",
            _ => FOUND,
        });
        assert_eq!(same, ("Two.".into(), "reason".into()));
        let other = corrected(|purpose| match purpose {
            "reason" => "Error Flag: 1\nError Sentence ID: 2\nCorrected Sentence: Two.",
            "place" => "Error Flag: 1\nError Sentence ID: 1\nCorrected Sentence: Three.",
            _ => FOUND,
        });
        assert_eq!(other, ("Three.".into(), "place".into()));
        let failed = corrected(|purpose| match purpose {
            "reason" | "place" => "hm",
            _ => FOUND,
        });
        assert_eq!(failed, ("One.".into(), "place".into()));
        let (line, asked) = run("knowlab", |_| NONE);
        assert_eq!((line.flag.said(), asked.len()), (Some(false), 3));
    }
}
