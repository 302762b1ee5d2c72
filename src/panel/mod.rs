//! A panel of agents, each on a local model or a remote endpoint: makes their calls, and records them with what was read of the answers.

pub mod backbone;
mod error;
pub mod memory;
pub mod recorder;
pub mod remote;
mod request;
pub mod request_digest;
pub mod responder;
pub mod sampling;
#[cfg(test)]
pub mod scripted;
mod search;
pub mod seed;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub use self::error::PanelError;
use self::recorder::Recorder;
pub use self::responder::Responder;
use self::responder::{Begun, Waiting};
pub use self::sampling::SamplingChoice;
use self::seed::call_seed;
use crate::record::{CallKey, CallLine, Grammar, Message, Parse, Reply, Stage};
use crate::retrieval::Retrieve;

/// The agents of a run and where their calls are recorded.
pub struct Panel {
    /// In panel order.
    pub members: Vec<Member>,
    pub recorder: Box<dyn Recorder>,
    pub run_seed: u64,
    pub settings: CallSettings,
    /// Calls with equal salts may share cached prefixes. It does not affect answers.
    pub salt: Option<[u8; 16]>,
    /// Set from outside to stop: calls in flight are dropped.
    pub stop: Arc<AtomicBool>,
    /// Answers searches; `None` where the system makes none.
    pub retriever: Option<Arc<dyn Retrieve>>,
}

/// How the completions of a run are decoded: under the grammars of its system, as JSON objects, or as free text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecodingMode {
    /// Constrained decoding: a grammar holds every completion to what the system reads
    #[default]
    #[value(alias = "constrained")]
    Grammar,
    /// Any JSON object where MedAgentBoard asks for one (its JSON mode), free text elsewhere
    Json,
    /// Free text everywhere
    Text,
}

impl DecodingMode {
    /// As in «constrained text».
    pub fn adjective(self) -> &'static str {
        match self {
            DecodingMode::Grammar => "constrained",
            DecodingMode::Json => "JSON-mode",
            DecodingMode::Text => "free",
        }
    }
}

/// How every call of a panel is made.
#[derive(Clone, Debug)]
pub struct CallSettings {
    pub decoding: DecodingMode,
    /// Whether models think first; `None` leaves it to the endpoint.
    pub thinking: Option<bool>,
    /// Tokens of a completion at most; a local model writes fewer where its context has room for fewer. `None` leaves it to the endpoint,
    /// and to the context.
    pub max_tokens: Option<usize>,
    /// Whether endpoints are sent the calls' seeds.
    pub sends_seed: bool,
}

/// What answers an agent's calls; agents may share it.
pub type SharedResponder = Arc<dyn Responder>;

/// An agent, and what answers its calls.
#[derive(Clone)]
pub struct Member {
    pub agent: String,
    pub source: SharedResponder,
    pub sampling: SamplingChoice,
}

/// One prompt to one agent.
#[derive(Clone)]
pub struct Call {
    /// Index into the panel's members.
    pub member: usize,
    pub key: CallKey,
    pub stage: Stage,
    pub messages: Vec<Message>,
    /// Replaces the member's, with top-p, top-k and min-p off; a remote endpoint is sent this temperature and the member's filters.
    pub temperature: Option<f32>,
    /// Tokens of this completion at most, where the panel's limit is not lower.
    pub max_tokens: Option<usize>,
    /// Constrains the completion under [`DecodingMode::Grammar`]; `None`: any text. Under [`DecodingMode::Json`] one by a schema is a JSON
    /// object.
    pub grammar: Option<Grammar>,
}

/// A call that was answered, which nobody has read yet.
pub struct Answered {
    pub line: CallLine,
    /// Whether an earlier attempt at the run made the call, and read its answer.
    is_known: bool,
}

/// A call that was answered, and the value parsed from its text.
pub struct Asked<T> {
    pub call: CallLine,
    pub value: T,
}

/// A call that is on its way, and what waits for its completion; `None`: the line has it, of an earlier attempt at the run.
type Pending = (Answered, Option<Waiting>);

impl Panel {
    /// Makes all of `calls` at once; their answers in the order of the calls, each as soon as it and those before it are there. A call that
    /// an earlier attempt at the run made is answered from its log, and one whose request equals a logged one of another run gets that answer.
    ///
    /// A call that is refused comes first, as its error; those after it are not made.
    pub fn answers(
        &self,
        calls: impl IntoIterator<Item = Call>,
    ) -> impl Iterator<Item = Result<Answered, PanelError>> {
        let mut refused = None;
        let begun = calls
            .into_iter()
            .map_while(|call| self.begin(call).map_err(|error| refused = Some(Err(error))).ok());
        let pending: Vec<Pending> = begun.collect();
        refused.into_iter().chain(pending.into_iter().map(wait))
    }

    fn begin(&self, call: Call) -> Result<Pending, PanelError> {
        if let Some(known) = self.recorder.find(&call.key) {
            return Ok((Answered { line: known.clone(), is_known: true }, None));
        }
        let source = self.members[call.member].source.clone();
        let backbone = source.name();
        let Begun { seed, sampling, request, said } = source.begin(&call, self)?;
        let CallKey { dataset, run, item, agent, round, purpose, sample } = call.key;
        let line = CallLine {
            dataset,
            run,
            item,
            agent,
            round,
            purpose,
            sample,
            stage: call.stage,
            backbone,
            request,
            messages: call.messages,
            sampling,
            seed,
            ..CallLine::default()
        };
        Ok((Answered { line, is_known: false }, Some(said)))
    }

    /// The line of a call with what was read of its answer, which is on disk when this returns.
    pub fn record(
        &self,
        answered: Answered,
        record: Reply,
        parse: Parse,
    ) -> Result<CallLine, PanelError> {
        let Answered { line, is_known } = answered;
        if is_known {
            return Ok(line);
        }
        let line = CallLine { record, parse, ..line };
        self.recorder.record(&line)?;
        Ok(line)
    }

    /// The seed of a call.
    pub fn seed(&self, call: &Call) -> u64 {
        call_seed(self.run_seed, &call.key)
    }

    /// The limit of a call's completion; `None` where nothing sets one.
    fn limit(&self, call: &Call) -> Option<usize> {
        let own = self.members[call.member].sampling.max_tokens;
        [self.settings.max_tokens, call.max_tokens, own].into_iter().flatten().min()
    }
}

fn wait((mut answered, said): Pending) -> Result<Answered, PanelError> {
    if let Some(said) = said.map(|said| said()).transpose()? {
        let line = &mut answered.line;
        line.text = said.text;
        line.tokens = said.tokens;
        line.usage = said.usage;
        line.finish_reason = said.finish_reason;
        line.elapsed_ms = said.elapsed_ms;
        if let Some(elsewhere) = said.elsewhere {
            line.answered_by = elsewhere.answered_by;
            line.sampling.constrained = elsewhere.constrained;
            line.sampling.not_sent = elsewhere.not_sent;
        }
    }
    Ok(answered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::Failure;
    use crate::record::FinishReason;

    /// Answers with the call's agent, or fails where that is `fails`.
    struct Named(&'static str);

    impl Responder for Named {
        fn name(&self) -> String {
            self.0.to_owned()
        }

        fn begin(self: Arc<Self>, _call: &Call, _panel: &Panel) -> Result<Begun, PanelError> {
            match self.0 {
                "refuses" => Err(Failure::refused("refused").into()),
                text => Ok(scripted::begun(text.to_owned(), FinishReason::Stop)),
            }
            .map(|begun| match self.0 {
                "fails" => Begun { said: Box::new(|| Err(PanelError::Interrupted)), ..begun },
                _ => begun,
            })
        }
    }

    /// What a round of these agents says, or that it failed.
    fn round(agents: &[&'static str]) -> Vec<Option<String>> {
        let (mut panel, _calls) = scripted::panel(&[], scripted::Script::new(|_, _| String::new()));
        panel.members = agents
            .iter()
            .map(|agent| Member {
                agent: (*agent).to_owned(),
                source: Arc::new(Named(agent)),
                sampling: SamplingChoice::default(),
            })
            .collect();
        let call = |(member, agent): (usize, &&str)| Call {
            member,
            key: CallKey { agent: (*agent).to_owned(), ..CallKey::default() },
            stage: Stage::Initial,
            messages: Vec::new(),
            temperature: None,
            max_tokens: None,
            grammar: None,
        };
        let answers = panel.answers(agents.iter().enumerate().map(call));
        answers.map(|answered| answered.ok().map(|answered| answered.line.text)).collect()
    }

    #[test]
    fn answers_come_in_the_order_of_their_calls_and_beside_a_failed_one() {
        let said = |text: &str| Some(text.to_owned());
        assert_eq!(round(&["b", "a"]), [said("b"), said("a")]);
        assert_eq!(round(&["a", "fails", "b"]), [said("a"), None, said("b")]);
        // Calls after one that is refused are not begun.
        assert_eq!(round(&["a", "refuses", "b"]), [None, said("a")]);
    }
}
