//! The systems with several stages: HSE NLP (entities, then experts) and WangLab (detect, locate, correct).

use serde::{Deserialize, Serialize};

use super::prompted::REASONED;
use super::{Design, Finding, Kit, Request, Solve, Solver};
use crate::data::Note;
use crate::diagnosis::Failure;
use crate::panel::PanelError;
use crate::prompts::{PromptSet, fill};
use crate::record::Message;
use crate::systems::System;
use crate::systems::case::Case;
use crate::systems::exemplars::prompt::Prompt;
use crate::systems::exemplars::reply::Field::{Correction, Flag, Id, Reason};
use crate::systems::exemplars::reply::{Form, Style};
use crate::systems::exemplars::{Choice, Kinds, Opinion};
use crate::systems::messages::{messages, numbered};

pub(in crate::systems) const DETECTION: Form =
    Form { style: Style::Json, fields: &[("reasoning", Reason), ("error", Flag(["no", "yes"]))] };
pub(in crate::systems) const PLACE: Form =
    Form { style: Style::Json, fields: &[("reasoning", Reason), ("sentence_id", Id)] };
pub(in crate::systems) const SENTENCE: Form =
    Form { style: Style::Json, fields: &[("corrected_sentence", Correction)] };
/// Entities of a note at most.
const ENTITIES: usize = 12;

/// How the opinions of earlier runs are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ensemble {
    /// The prompt shows them as experts, each with its accuracy on other notes.
    #[default]
    Trust,
    /// The prompt says that there is an error only where all of them found one.
    And,
}

/// HSE NLP's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HseSettings {
    pub ensemble: Ensemble,
}

/// Whether prompts show exam questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leaked {
    #[default]
    Off,
    /// The question of MedQA that is most similar to the note, as in WangLab's system; MEDEC's notes are made from such questions.
    Medqa,
}

/// WangLab's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WangLabSettings {
    pub leak: Leaked,
}

impl Design for HseSettings {
    fn calls(&self) -> u32 {
        2
    }

    fn solver(&self, prompts: &PromptSet, kit: Kit) -> Result<Box<dyn System>, Failure> {
        let get =
            |name: &str, must: &[&str]| prompts.get(&format!("mediqa_corr/hse-nlp-{name}"), must);
        let experts = match self.ensemble {
            Ensemble::Trust => get("experts", &["opinions"])?,
            Ensemble::And => get("agreement", &["opinions"])?,
        };
        Ok(Box::new(Solver(Hse {
            entities: get("entities", &["note"])?,
            experts,
            expert: get("expert", &["opinion"])?,
            answer: Prompt::new(prompts, "hse-nlp", Some("hse-nlp"), &REASONED)?,
            choice: kit.choice(Kinds::Balanced),
            kit,
        })))
    }
}

impl Design for WangLabSettings {
    fn calls(&self) -> u32 {
        3
    }

    fn solver(&self, prompts: &PromptSet, kit: Kit) -> Result<Box<dyn System>, Failure> {
        if self.leak == Leaked::Medqa && kit.exemplars.leak.is_none() {
            return Err(Failure::usage(
                "leak=medqa shows questions of MedQA, and none were given",
                "give --leak-questions FILE, or --set leak=off",
            ));
        }
        let prompt = |name: &str, form| {
            Prompt::new(prompts, &format!("wanglab-{name}"), Some("wanglab"), form)
        };
        let leak = prompts.get("mediqa_corr/wanglab-leak", &["question"])?;
        Ok(Box::new(Solver(WangLab {
            detect: prompt("detect", &DETECTION)?,
            locate: prompt("locate", &PLACE)?,
            correct: prompt("correct", &SENTENCE)?,
            leak: Some(leak).filter(|_| self.leak == Leaked::Medqa),
            choice: kit.choice(Kinds::Balanced),
            kit,
        })))
    }
}

struct Hse {
    entities: String,
    experts: String,
    expert: String,
    answer: Prompt,
    choice: Choice,
    kit: Kit,
}

impl Hse {
    /// The experts' opinions of a note, as the prompt shows them; empty where there are no experts.
    fn opinions(&self, note: &Note) -> String {
        let experts = (1_u32..).zip(&self.kit.exemplars.experts);
        let lines: Vec<String> = experts
            .map(|(number, expert)| {
                let trust = expert.trust.as_deref().unwrap_or("not measured");
                let opinion = expert.opinions.get(&note.id).map_or("no opinion".to_owned(), shown);
                let values =
                    [("number", &*number.to_string()), ("trust", trust), ("opinion", &opinion)];
                fill(&self.expert, &values)
            })
            .collect();
        match lines.is_empty() {
            true => String::new(),
            false => fill(&self.experts, &[("opinions", &lines.join("\n"))]),
        }
    }
}

/// An expert's opinion in words.
fn shown(opinion: &Opinion) -> String {
    let place = match (opinion.flag.said(), opinion.sentence_id) {
        (None, _) => return "no opinion".to_owned(),
        (Some(false), _) => return "no error".to_owned(),
        (Some(true), None) => "an error".to_owned(),
        (Some(true), Some(id)) => format!("an error in sentence {id}"),
    };
    match &opinion.correction {
        Some(correction) => format!("{place}, which should be: {correction}"),
        None => place,
    }
}

impl Solve for Hse {
    fn solve(&self, case: &Case<'_, Note>) -> Result<Finding, PanelError> {
        let note = case.item;
        let request = Request::new("entities", 0.0, self.first(note)?);
        let entities = self.kit.words(case, request, "entities", ENTITIES)?.value.words.join(", ");
        let shots = self.kit.exemplars.shots(note, &self.choice)?;
        let opinions = self.opinions(note);
        let more = [("entities", entities.as_str()), ("experts", &opinions)];
        let messages = self.answer.messages(&shots, note, &more);
        let said = self.kit.judge(case, Request::new("answer", 0.0, messages), &REASONED)?;
        Ok(Finding::alone(&said))
    }

    fn first(&self, note: &Note) -> Result<Vec<Message>, PanelError> {
        Ok(messages("", fill(&self.entities, &[("note", &numbered(note))])))
    }
}

struct WangLab {
    detect: Prompt,
    locate: Prompt,
    correct: Prompt,
    /// The template that shows an exam question; `None` where none is shown.
    leak: Option<String>,
    choice: Choice,
    kit: Kit,
}

impl WangLab {
    /// The exam question most similar to a note, as the prompt shows it; empty where none is shown.
    fn leaked(&self, note: &Note) -> String {
        match (&self.leak, &self.kit.exemplars.leak) {
            (Some(template), Some(leak)) => fill(template, &[("question", leak.nearest(note))]),
            _ => String::new(),
        }
    }
}

impl Solve for WangLab {
    fn solve(&self, case: &Case<'_, Note>) -> Result<Finding, PanelError> {
        let (note, kit) = (case.item, &self.kit);
        let detected =
            kit.judge(case, Request::new("detection", 0.0, self.first(note)?), &DETECTION)?;
        let mut finding = Finding::alone(&detected);
        if !finding.opinion.flag.has_error() {
            return Ok(finding);
        }
        let choice = Choice { kinds: Kinds::Wrong, ..self.choice };
        let shots = kit.exemplars.shots(note, &choice)?;
        let leaked = self.leaked(note);
        let messages = self.locate.messages(&shots, note, &[("leak", &leaked)]);
        let request = Request::new("localisation", 0.0, messages);
        let located = kit.judge(case, request, &PLACE)?.value;
        let opinion = &mut finding.heard[0].1;
        opinion.sentence_id = located.sentence_id;
        if let Some(id) = located.sentence_id {
            let (number, sentence) = (id.to_string(), note.sentences[id].as_str());
            let more = [("id", number.as_str()), ("sentence", sentence), ("leak", &leaked)];
            let messages = self.correct.messages(&shots, note, &more);
            let request = Request::new("correction", 0.0, messages);
            opinion.correction = kit.judge(case, request, &SENTENCE)?.value.correction;
        }
        finding.opinion = opinion.clone();
        Ok(finding)
    }

    fn first(&self, note: &Note) -> Result<Vec<Message>, PanelError> {
        let shots = self.kit.exemplars.shots(note, &self.choice)?;
        Ok(self.detect.messages(&shots, note, &[("leak", &self.leaked(note))]))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::panel::scripted::Script;
    use crate::record::{CallLine, NoteLine};
    use crate::systems::SystemConfig;
    use crate::systems::exemplars::{Exemplars, Expert};
    use crate::systems::mediqa_corr::Common;
    use crate::systems::scripted::{check, note};

    fn run(name: &str, reply: fn(&str) -> &'static str) -> (NoteLine, Vec<CallLine>) {
        let config = SystemConfig::named(name).unwrap();
        check(&config, &note(), Script::new(move |key, _| reply(&key.purpose).to_owned()))
    }

    #[test]
    fn entities_are_asked_first_and_shown() {
        let (line, calls) = run("hse-nlp", |purpose| match purpose {
            "entities" => r#"{"entities": ["beta blockers", "wheezing"]}"#,
            _ => {
                r#"{"reasoning": "r", "error": "yes", "sentence_id": 1, "corrected_sentence": "Better."}"#
            }
        });
        assert_eq!((line.flag.said(), line.sentence_id, calls.len()), (Some(true), Some(1), 2));
        let prompt = &calls[1].messages.last().unwrap().content;
        assert!(
            prompt.contains("beta blockers, wheezing") && !prompt.contains("Expert 1"),
            "{prompt}"
        );
    }

    #[test]
    fn earlier_runs_are_experts_with_their_trust() {
        let expert = |trust: Option<&str>, flag, sentence_id| Expert {
            trust: trust.map(str::to_owned),
            opinions: BTreeMap::from([(
                "ms-1".to_owned(),
                Opinion {
                    flag: Option::<bool>::into(flag),
                    sentence_id,
                    correction: sentence_id.map(|_| "Better.".to_owned()),
                },
            )]),
        };
        let experts = vec![
            expert(Some("0.61"), Some(true), Some(1)),
            expert(None, Some(false), None),
            expert(Some("0.5"), None, None),
        ];
        let exemplars = Arc::new(Exemplars { experts, ..Exemplars::default() });
        let kit = Kit { exemplars, common: Common::default() };
        let prompts = PromptSet::embedded();
        let get = |name: &str| prompts.get(&format!("mediqa_corr/hse-nlp-{name}"), &[]).unwrap();
        let hse = Hse {
            entities: get("entities"),
            experts: get("experts"),
            expert: get("expert"),
            answer: Prompt::new(&prompts, "hse-nlp", Some("hse-nlp"), &REASONED).unwrap(),
            choice: kit.choice(Kinds::Balanced),
            kit,
        };
        let said = hse.opinions(&note());
        for part in [
            "an error in sentence 1, which should be: Better.",
            "0.61",
            "not measured",
            "no error",
            "no opinion",
        ] {
            assert!(said.contains(part), "{part} is not in {said}");
        }
    }

    #[test]
    fn the_exam_question_that_is_most_like_a_note_stands_beside_it_where_it_is_asked_for() {
        use crate::systems::exemplars::leak::Leak;
        use crate::systems::scripted::{check_with, exemplars, question};
        let config = SystemConfig::parse("wanglab", &["leak=medqa", "shots=0"]).unwrap();
        let refused = config.build(&PromptSet::embedded(), &exemplars()).err().unwrap();
        assert!(refused.to_string().contains("none were given"), "{refused}");
        let exam = |text: &str, gold| {
            let question = question(4);
            crate::data::Question { question: text.to_owned(), gold, ..question }
        };
        let questions = [
            exam("What breaks kidney stones?", Some('A')),
            exam("Beta blockers were given for the attack: what should have been?", Some('B')),
            exam("Beta blockers were given for the attack.", None),
        ];
        let leak = Leak::new(&questions);
        let answer = questions[1].option('B').unwrap().to_owned();
        let exemplars = Arc::new(Exemplars { leak: Some(leak), ..Exemplars::default() });
        let script = Script::new(|key, _| match key.purpose.as_str() {
            "detection" => r#"{"reasoning": "r", "error": "yes"}"#.to_owned(),
            _ => r#"{"reasoning": "r", "sentence_id": 1}"#.to_owned(),
        });
        let (_, calls) = check_with(&config, &note(), script, exemplars);
        assert_eq!(calls.len(), 3);
        for call in calls {
            let prompt = &call.messages.last().unwrap().content;
            assert!(
                prompt.contains(&format!("what should have been?\nAnswer: {answer}\nThe note:")),
                "{prompt}"
            );
        }
    }

    #[test]
    fn three_stages_end_where_nothing_is_found() {
        let (line, calls) = run("wanglab", |purpose| match purpose {
            "detection" => r#"{"reasoning": "r", "error": "yes"}"#,
            "localisation" => r#"{"reasoning": "r", "sentence_id": 1}"#,
            _ => r#"{"corrected_sentence": "Beta agonists were given for the attack."}"#,
        });
        assert_eq!((line.flag.said(), line.sentence_id, calls.len()), (Some(true), Some(1), 3));
        assert_eq!(line.correction.as_deref(), Some("Beta agonists were given for the attack."));
        let (line, calls) = run("wanglab", |_| r#"{"reasoning": "r", "error": "no"}"#);
        assert_eq!((line.flag.said(), calls.len()), (Some(false), 1));
        let (line, calls) = run("wanglab", |purpose| match purpose {
            "detection" => r#"{"reasoning": "r", "error": "yes"}"#,
            _ => "somewhere",
        });
        assert_eq!((line.flag.said(), line.sentence_id, calls.len()), (Some(true), None, 2));
    }
}
