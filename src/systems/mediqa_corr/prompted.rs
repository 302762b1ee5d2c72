//! The systems that ask one few-shot prompt, once or several times, and vote.

use serde::{Deserialize, Serialize};

use super::{Design, Finding, Kit, Request, Solve, Solver, With};
use crate::data::Note;
use crate::diagnosis::Failure;
use crate::panel::PanelError;
use crate::prompts::PromptSet;
use crate::record::{self, Message};
use crate::systems::System;
use crate::systems::case::Case;
use crate::systems::config::{SOLO, Slot, SystemConfig};
use crate::systems::exemplars::prompt::Prompt;
use crate::systems::exemplars::reply::Field::{Correction, Flag, Id, Reason, Sentence};
use crate::systems::exemplars::reply::{Form, Style};
use crate::systems::exemplars::{Choice, Kinds, Opinion};
use crate::systems::settings::{SettingsError, whole};
use crate::systems::table::Entry;

/// What distinguishes one of these systems.
#[derive(Debug, PartialEq)]
pub struct Method {
    /// The name of its files under `prompts/mediqa_corr/`.
    prompt: &'static str,
    form: &'static Form,
    kinds: Kinds,
    drawn_from: Option<usize>,
    temperature: f32,
    count: Count,
}

/// How several answers become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    /// The most common flag and the most common sentence, voted on separately, 0 on a tie; the first correction.
    Apart,
    /// The most common pair of flag and sentence, the first on a tie; the first correction that came with it.
    Together,
}

pub(in crate::systems) const JUDGEMENT: Form = Form {
    style: Style::Json,
    fields: &[
        ("is_error", Flag(["false", "true"])),
        ("reasoning", Reason),
        ("sentence_id", Id),
        ("error_sentence", Sentence),
        ("corrected_sentence", Correction),
    ],
};

/// PromptMind's, and HSE NLP's.
pub const REASONED: Form = Form {
    style: Style::Json,
    fields: &[
        ("reasoning", Reason),
        ("error", Flag(["no", "yes"])),
        ("sentence_id", Id),
        ("corrected_sentence", Correction),
    ],
};

/// KU-DMIS'.
pub(in crate::systems) const RATIONALE: Form = Form {
    style: Style::Lines,
    fields: &[
        ("Rationale", Reason),
        ("Error sentence", Sentence),
        ("Corrected sentence", Correction),
    ],
};

/// MediFact's.
pub(in crate::systems) const PAIR: Form =
    Form { style: Style::Json, fields: &[("sentence_id", Id), ("corrected_sentence", Correction)] };

/// The few-shot baseline of the MedReAct'N'MedReFlex paper, after Medprompt.
pub const MEDPROMPT: Method = Method {
    prompt: "medprompt",
    form: &JUDGEMENT,
    kinds: Kinds::BalancedIfEven,
    drawn_from: None,
    temperature: 0.0,
    count: Count::Together,
};

/// KU-DMIS: the prompt for the teacher model of its fine-tuned one.
pub const KU_DMIS: Method = Method {
    prompt: "ku-dmis",
    form: &RATIONALE,
    kinds: Kinds::Any,
    drawn_from: None,
    temperature: 1.0,
    count: Count::Together,
};

/// PromptMind: one prompt for all three tasks, sent several times to each model.
pub const PROMPTMIND: Method = Method {
    prompt: "promptmind",
    form: &REASONED,
    kinds: Kinds::Balanced,
    drawn_from: None,
    temperature: 0.7,
    count: Count::Together,
};

/// knowlab_AIMed's System 2: examples first, then the reasons of all of them.
pub const KNOWLAB_REASON: Method = Method {
    prompt: "knowlab-reason",
    form: &super::knowlab::OUTPUT,
    kinds: Kinds::Balanced,
    drawn_from: Some(super::knowlab::NEIGHBOURS),
    temperature: 0.7,
    count: Count::Apart,
};

/// MediFact as a prompt: the training set's wrong sentences that are most like the note's, with their corrections.
pub const MEDIFACT: Method = Method {
    prompt: "medifact",
    form: &PAIR,
    kinds: Kinds::Wrong,
    drawn_from: None,
    temperature: 0.0,
    count: Count::Together,
};

/// The settings of all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Samples of each member.
    #[serde(deserialize_with = "whole::<1, 100, _, _>")]
    pub samples: u32,
    /// The number of models.
    #[serde(deserialize_with = "whole::<1, 3, _, _>")]
    pub members: u32,
    /// Determined by the system's name.
    #[serde(skip)]
    method: &'static Method,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { samples: 1, members: 1, method: &MEDPROMPT }
    }
}

/// The system of this method, with the settings that are given.
///
/// # Errors
/// An unknown setting, or a value that it cannot have.
pub fn configure(
    entry: &'static Entry,
    given: Vec<(String, toml::Value)>,
    method: &'static Method,
) -> Result<SystemConfig, SettingsError> {
    let finish = |With { own, common }| With { own: Settings { method, ..own }, common };
    SystemConfig::new::<With<Settings>>(entry, given, finish)
}

impl Design for Settings {
    fn agents(&self) -> Vec<Slot> {
        match self.members {
            1 => vec![Slot::new(SOLO, 0)],
            members => Slot::in_order((1..=members).map(|one| format!("{SOLO}-{one}")), &[]),
        }
    }

    fn calls(&self) -> u32 {
        self.samples * self.members
    }

    fn solver(&self, prompts: &PromptSet, kit: Kit) -> Result<Box<dyn System>, Failure> {
        let Method { prompt, form, kinds, drawn_from, .. } = *self.method;
        Ok(Box::new(Solver(Prompted {
            settings: self.clone(),
            prompt: Prompt::new(prompts, prompt, Some(prompt), form)?,
            choice: Choice { drawn_from, ..kit.choice(kinds) },
            kit,
        })))
    }
}

struct Prompted {
    settings: Settings,
    prompt: Prompt,
    choice: Choice,
    kit: Kit,
}

impl Solve for Prompted {
    fn solve(&self, case: &Case<'_, Note>) -> Result<Finding, PanelError> {
        let messages = self.first(case.item)?;
        let method = self.settings.method;
        let agents = self.settings.agents();
        let agents = agents.iter().map(|slot| (slot.model, slot.agent.clone()));
        let requests = agents.flat_map(|(member, agent)| {
            let messages = messages.clone();
            (0..self.settings.samples).map(move |sample| Request {
                member,
                agent: agent.clone(),
                sample,
                ..Request::new("answer", method.temperature, messages.clone())
            })
        });
        let said = self.kit.judge_all(case, requests.collect(), method.form)?.into_iter();
        let heard: Vec<(String, Opinion)> =
            said.map(|asked| (asked.call.agent.clone(), Opinion::from(&asked))).collect();
        let opinions: Vec<&Opinion> = heard.iter().map(|(_, opinion)| opinion).collect();
        let opinion = match method.count {
            Count::Apart => apart(&opinions),
            Count::Together => together(&opinions),
        };
        Ok(Finding { opinion, heard })
    }

    fn first(&self, note: &Note) -> Result<Vec<Message>, PanelError> {
        let shots = self.kit.exemplars.shots(note, &self.choice)?;
        Ok(self.prompt.messages(&shots, note, &[]))
    }
}

/// The most common value, the first of several, with its count; `None` of nothing.
fn most<T: PartialEq + Copy>(values: &[T]) -> Option<(T, usize)> {
    let count = |value: &T| values.iter().filter(|one| *one == value).count();
    let counts = values.iter().map(|value| (*value, count(value)));
    counts.reduce(|best, one| if one.1 > best.1 { one } else { best })
}

/// Votes as knowlab_AIMed's code does: on a tie the flag is 0, and so is the sentence's number.
pub fn apart(said: &[&Opinion]) -> Opinion {
    let read: Vec<&&Opinion> = said.iter().filter(|one| one.flag.is_read()).collect();
    let flags: Vec<record::Flag> = read.iter().map(|one| one.flag).collect();
    // −1 where there is none.
    let ids: Vec<Option<usize>> = read.iter().map(|one| one.sentence_id).collect();
    let is_tied = |most: usize, all: usize| 2 * most <= all;
    let Some((flag, votes)) = most(&flags) else { return Opinion::default() };
    let has_error = flag.has_error() && !is_tied(votes, flags.len());
    let flag = record::Flag::on(flag.basis(), Some(has_error));
    let sentence_id = most(&ids).and_then(|(id, votes)| match is_tied(votes, ids.len()) {
        true => Some(0),
        false => id,
    });
    let correction = read.iter().find_map(|one| one.correction.clone());
    match has_error {
        true => Opinion { flag, sentence_id, correction },
        false => Opinion { flag, ..Opinion::default() },
    }
}

/// The most common opinion by flag and sentence, without those that could not be parsed.
pub fn together(said: &[&Opinion]) -> Opinion {
    let read: Vec<&&Opinion> = said.iter().filter(|one| one.flag.is_read()).collect();
    let pairs: Vec<_> = read.iter().map(|one| (one.flag, one.sentence_id)).collect();
    let Some((pair, _)) = most(&pairs) else { return Opinion::default() };
    let same = read.iter().filter(|one| (one.flag, one.sentence_id) == pair);
    let correction = same.filter_map(|one| one.correction.clone()).next();
    Opinion { flag: pair.0, sentence_id: pair.1, correction }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::scripted::Script;
    use crate::record::{NoteLine, Source};
    use crate::systems::scripted::{check, note};

    fn opinion(flag: bool, sentence_id: Option<usize>, correction: &str) -> Opinion {
        let correction = Some(correction.to_owned()).filter(|text| !text.is_empty());
        Opinion { flag: Some(flag).into(), sentence_id, correction }
    }

    #[test]
    fn knowlab_counts_flags_and_sentences_apart_and_a_tie_is_0() {
        let (a, b) = (opinion(true, Some(1), "x"), opinion(true, Some(2), "y"));
        let (none, unread) = (opinion(false, None, ""), Opinion::default());
        assert_eq!(apart(&[&a, &none, &a]), a);
        // Two say that there is an error, and each names another sentence: sentence 0.
        assert_eq!(apart(&[&b, &a, &none]), opinion(true, Some(0), "y"));
        assert_eq!(apart(&[&a, &none, &unread]), none);
        assert_eq!(apart(&[&none, &none, &a]), none);
        assert_eq!(apart(&[&unread, &unread]), unread);
    }

    #[test]
    fn promptmind_counts_pairs_and_the_first_wins() {
        let (a, b) = (opinion(true, Some(1), "x"), opinion(true, Some(2), "y"));
        let (c, unread) = (opinion(true, Some(2), "z"), Opinion::default());
        assert_eq!(together(&[&a, &b, &c]), b);
        assert_eq!(together(&[&unread, &a, &b]), a);
        assert_eq!(together(&[&opinion(true, Some(2), ""), &c]), c);
        assert_eq!(together(&[&unread]), unread);
    }

    fn run(name: &str, pairs: &[&str], reply: fn(&str, u32) -> String) -> (NoteLine, Vec<String>) {
        let config = SystemConfig::parse(name, pairs).unwrap();
        let script = Script::new(move |key, _| reply(&key.agent, key.sample));
        let (line, calls) = check(&config, &note(), script);
        assert!(calls.len() <= config.max_calls() as usize);
        let prompts = calls.iter().map(|call| {
            call.messages
                .iter()
                .map(|message| message.content.clone())
                .collect::<Vec<_>>()
                .join("\n")
        });
        (line, prompts.collect())
    }

    #[test]
    fn medprompt_shows_balanced_notes_with_reasons_and_takes_the_answer() {
        let wrong = |_: &str, _| {
            r#"{"is_error": true, "reasoning": "r", "sentence_id": 1, "error_sentence": "NA", "corrected_sentence": "Beta agonists were given for the attack."}"#.to_owned()
        };
        let (line, prompts) = run("medprompt", &["shots=2"], wrong);
        assert_eq!((line.flag.said(), line.sentence_id), (Some(true), Some(1)));
        assert_eq!(line.correction.as_deref(), Some("Beta agonists were given for the attack."));
        assert_eq!(line.detection.unwrap().source, Source::Single);
        assert!(prompts[0].contains("\"is_error\": true, \"reasoning\": \"The note has an error"));
        assert!(prompts[0].contains("\"is_error\": false, \"reasoning\": \"Every statement"));
        let (line, prompts) = run("medprompt", &["shots=0"], |_, _| "hm".to_owned());
        assert_eq!(line.flag.said(), None);
        assert!(!prompts[0].contains("ms-train") && !prompts[0].contains("Patient 2"));
    }

    #[test]
    fn knowlabs_second_system_is_asked_three_times() {
        let (line, prompts) = run("knowlab-reason", &["choice=bm25"], |_, sample| match sample {
            0 => "garbage".to_owned(),
            1 => "Error Flag: 1\nError Sentence ID: 1\nCorrected Sentence: First.".to_owned(),
            _ => "Error Flag: 1\nError Sentence ID: 1\nCorrected Sentence: Second.".to_owned(),
        });
        assert_eq!((line.flag.said(), line.sentence_id, line.calls), (Some(true), Some(1), 3));
        assert_eq!(line.correction.as_deref(), Some("First."));
        let detection = line.detection.unwrap();
        assert_eq!(
            (detection.source, detection.flags),
            (Source::Vote, vec![None, Some(true), Some(true)])
        );
        for part in [
            "Error Flag: 0\nError Sentence ID: -1\nCorrected Sentence: NA",
            "Example 4 contains",
            "Reasons",
        ] {
            assert!(prompts[0].contains(part), "{part} is not in {}", prompts[0]);
        }
    }

    #[test]
    fn promptmind_asks_every_member_and_ku_dmis_reads_its_closing_lines() {
        let (line, _) = run("promptmind", &["members=2", "samples=2"], |agent, sample| {
            let id = if agent == "solo-1" && sample == 0 { 0 } else { 1 };
            format!(
                r#"{{"reasoning": "r", "error": "yes", "sentence_id": {id}, "corrected_sentence": "{agent}."}}"#
            )
        });
        assert_eq!((line.calls, line.sentence_id), (4, Some(1)));
        assert_eq!(line.correction.as_deref(), Some("solo-1."));
        let said = |_: &str, _| {
            "Rationale: so\nError sentence: Beta blockers were given for the attack\nCorrected sentence: Beta agonists were given.".to_owned()
        };
        let (line, _) = run("ku-dmis", &["choice=tfidf"], said);
        assert_eq!((line.flag.said(), line.sentence_id), (Some(true), Some(1)));
        let none =
            |_: &str, _| "Rationale: so\nError sentence: None\nCorrected sentence: None".to_owned();
        assert_eq!(run("ku-dmis", &["choice=tfidf"], none).0.flag.said(), Some(false));
    }

    #[test]
    fn medifact_shows_wrong_sentences_like_the_notes_own() {
        let none = |_: &str, _| r#"{"sentence_id": -1, "corrected_sentence": "NA"}"#.to_owned();
        let (line, prompts) = run("medifact", &["shots=1"], none);
        assert_eq!(line.flag.said(), Some(false));
        assert!(prompts[0].contains("Beta agonists were given for asthma."));
        assert!(!prompts[0].contains("malaria") && !prompts[0].contains("syphilis"));
    }
}
