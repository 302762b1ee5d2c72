//! Who answers in an agent's place where a panel is changed on purpose: nobody, or the agent with an answer that it is made to give.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::{Value, json};

use super::responder::{Responder, Waiting};
use super::{Call, Panel, PanelError, SharedResponder};
use crate::record::{FinishReason, Stage};

/// An agent that is not there. Systems that ask whoever is there pass it over.
pub struct LeftOut;

impl Responder for LeftOut {
    fn name(&self) -> String {
        "nobody".to_owned()
    }

    fn begin(self: Arc<Self>, call: &Call, panel: &Panel) -> Result<Waiting, PanelError> {
        let member = panel.members[call.member].agent.clone();
        let (agent, purpose) = (call.key.agent.clone(), call.key.purpose.clone());
        Err(PanelError::LeftOut { member, agent, purpose })
    }

    fn takes_images(&self) -> bool {
        true
    }

    fn is_there(&self) -> bool {
        false
    }
}

/// An answer that an agent is made to give in a round, in all samples of it: `ddx@0=C`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forced {
    pub agent: String,
    pub round: u32,
    pub answer: char,
}

impl Forced {
    /// Whether it is that of a call, which must be one that gives an answer.
    pub fn is_of(&self, agent: &str, round: u32, stage: Stage) -> bool {
        self.agent == agent && self.round == round && stage != Stage::Aside
    }
}

impl fmt::Display for Forced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}={}", self.agent, self.round, self.answer)
    }
}

impl FromStr for Forced {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Forced, &'static str> {
        let parse = || {
            let (place, letter) = text.rsplit_once('=')?;
            let (agent, round) = place.rsplit_once('@')?;
            let answer = letter.parse::<char>().ok()?.to_ascii_uppercase();
            let round = round.parse().ok()?;
            let is_whole = !agent.is_empty() && answer.is_ascii_uppercase();
            is_whole.then(|| Forced { agent: agent.to_owned(), round, answer })
        };
        parse().ok_or("expected AGENT@ROUND=LETTER, such as ddx@0=C")
    }
}

/// A member of which some answers are others than its own.
pub struct Made {
    pub source: SharedResponder,
    pub answers: Arc<[Forced]>,
}

impl Responder for Made {
    fn name(&self) -> String {
        self.source.name()
    }

    fn begin(self: Arc<Self>, call: &Call, panel: &Panel) -> Result<Waiting, PanelError> {
        let mut answers = self.answers.iter();
        let made = answers.find(|one| one.is_of(&call.key.agent, call.key.round, call.stage));
        let waiting = self.source.clone().begin(call, panel)?;
        let Some(letter) = made.map(|made| made.answer) else { return Ok(waiting) };
        Ok(Box::new(move || {
            let mut answer = waiting()?;
            let text = saying(&answer.text, letter);
            if text != answer.text {
                // Its tokens are those of another text, which need not have been cut off.
                (answer.text, answer.tokens) = (text, Vec::new());
                answer.finish_reason = FinishReason::Stop;
            }
            Ok(answer)
        }))
    }

    fn takes_images(&self) -> bool {
        self.source.takes_images()
    }

    fn taken(&self) -> u64 {
        self.source.taken()
    }
}

/// A reply with another answer: of a JSON object, thinking before it or not, the value of its field `answer` and nothing else, its reasons
/// included; a reply of one letter becomes the other; any other the minimal record (MED-MAD, App. B.2).
fn saying(text: &str, letter: char) -> String {
    const THOUGHT: &str = "</think>";
    let at = text.rfind(THOUGHT).map_or(0, |at| at + THOUGHT.len());
    let (thought, said) = text.split_at(at);
    let mut object: Value = serde_json::from_str(said.trim()).unwrap_or_default();
    let fields = object.as_object_mut().into_iter().flatten();
    let answer = fields.into_iter().find(|(key, _)| key.eq_ignore_ascii_case("answer"));
    let Some((key, value)) = answer else {
        return match said.trim().len() {
            1 => letter.to_string(),
            _ => format!("{thought}{}", json!({"answer": letter})),
        };
    };
    let (key, old) = (json!(key), std::mem::replace(value, letter.to_string().into()));
    if old == *value {
        return text.to_owned();
    }
    let new = value.clone();
    let mut forms =
        [": ", ":"].map(|colon| [&old, &new].map(|value| format!("{key}{colon}{value}")));
    let form = forms.iter_mut().find(|[old, _]| said.matches(&**old).count() == 1);
    let said = form.map_or_else(|| object.to_string(), |[old, new]| said.replacen(&**old, new, 1));
    format!("{thought}{said}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_spelled_as_it_is_meant() {
        let forced = "ddx@0=c".parse::<Forced>().unwrap();
        assert_eq!(forced, Forced { agent: "ddx".into(), round: 0, answer: 'C' });
        assert_eq!(forced.to_string(), "ddx@0=C");
        for wrong in ["ddx=C", "ddx@0", "@0=C", "ddx@x=C", "ddx@0=CD", "ddx@0=", "ddx@0=3"] {
            assert!(wrong.parse::<Forced>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_the_answer_of_a_reply_is_another() {
        let said = |text: &str| saying(text, 'C');
        assert_eq!(
            said(r#"{"cot": ["B:  x"], "answer": "B", "confidence": 0.50}"#),
            r#"{"cot": ["B:  x"], "answer": "C", "confidence": 0.50}"#
        );
        assert_eq!(
            said(r#"<think>{"answer": "B"}</think>{"Answer":"B"}"#),
            r#"<think>{"answer": "B"}</think>{"Answer":"C"}"#
        );
        // What says it already stays, to the byte.
        let same = r#"{"answer" :"C" }"#;
        assert_eq!(said(same), same);
        assert_eq!(said(r#"{"answer" : null}"#), r#"{"answer":"C"}"#);
        assert_eq!(said("B"), "C");
        for other in ["It is B.", r#"{"answer": "B", "confi"#, ""] {
            assert_eq!(said(other), r#"{"answer":"C"}"#);
        }
    }
}
