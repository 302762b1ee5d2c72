//! A panel of agents, each on a local model or a remote endpoint: makes their calls, parses the replies and records both.

mod answer;
pub mod backbone;
mod decoding;
mod error;
pub mod memory;
pub mod recorder;
pub mod remote;
pub mod request;
pub mod responder;
pub mod sampling;
#[cfg(test)]
pub mod scripted;
mod search;
pub mod seed;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use self::answer::Answer;
use self::backbone::Backbone;
pub use self::decoding::DecodingMode;
pub use self::error::PanelError;
use self::recorder::Recorder;
pub use self::responder::Responder;
use self::responder::Waiting;
pub use self::sampling::SamplingChoice;
use self::seed::call_seed;
use crate::record::{CallKey, CallLine, FinishReason, Grammar, Message, Parse, Reply, Stage};
use crate::retrieval::Retrieve;

/// The agents of a run and where their calls are recorded.
pub struct Panel {
    /// In panel order.
    pub members: Vec<Member>,
    pub recorder: Box<dyn Recorder>,
    pub run_seed: u64,
    pub decoding: DecodingMode,
    /// Whether models think first; `None` leaves it to the endpoint.
    pub thinking: Option<bool>,
    /// Tokens of a completion at most, the same for every call; a local model writes fewer where its context has room for fewer. `None`
    /// leaves it to the endpoint, and to the context.
    pub max_tokens: Option<usize>,
    /// Whether endpoints are sent the calls' seeds.
    pub sends_seed: bool,
    /// Asks for the record of a reply that could not be read; `None`: nobody is asked again.
    pub reask: Option<String>,
    /// Whether unconstrained completions continue past end-of-turn tokens to `max_tokens`, so that benchmarks do equal work.
    pub ignore_eos: bool,
    /// Calls with equal salts may share cached prefixes. It does not affect answers.
    pub salt: Option<[u8; 16]>,
    /// Set from outside to stop: calls in flight are dropped.
    pub stop: Arc<AtomicBool>,
    /// Answers searches; `None` where the system makes none.
    pub retriever: Option<Arc<dyn Retrieve>>,
    /// Called with every new call, after it is recorded.
    pub on_call: Box<dyn Fn(&CallLine) + Send + Sync>,
}

/// What answers an agent's calls; agents may share it.
pub type Source = Arc<dyn Responder>;

/// An agent, and what answers its calls.
pub struct Member {
    pub agent: String,
    pub source: Source,
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
    /// A path or a URL; only remote members take images.
    pub image: Option<String>,
    /// Constrains the completion under [`DecodingMode::Grammar`]; `None`: any text.
    pub grammar: Option<Grammar>,
    /// Whether the completion is a JSON object under [`DecodingMode::Json`].
    pub is_json: bool,
    /// Whether a local model follows the grammar in every decoding mode.
    pub is_record: bool,
}

/// What a system parsed from a completion's text.
pub struct Reading<T> {
    pub value: T,
    /// The value as the call's log line has it.
    pub record: Reply,
    pub parse: Parse,
}

/// Makes a value of the text of a completion, which may repeat the messages that it answers.
pub type Reader<'a, T> = &'a dyn Fn(&[Message], &str, FinishReason) -> Reading<T>;

/// A call that was answered, and the value parsed from its text.
pub struct Asked<T> {
    pub call: CallLine,
    pub value: T,
}

/// A call whose answer is not parsed yet.
enum Pending {
    /// Answered by the log of an earlier attempt at the run.
    Known(Box<Call>, Box<CallLine>),
    Begun(Box<Call>, Waiting),
}

impl Panel {
    /// Each local model once, without those that are still shared elsewhere.
    pub fn into_backbones(self) -> Vec<Backbone> {
        let members = self.members.into_iter();
        members.filter_map(|member| member.source.into_backbone()).collect()
    }

    /// Makes all of `calls` at once and waits for every answer; each is on disk when this returns. A call that an earlier attempt at the
    /// run made is answered from its log, and one whose request equals a logged one of another run gets that answer.
    ///
    /// # Errors
    /// The first failure. Answers to the other calls are logged all the same, for they may have been paid for; an interrupt drops them.
    pub fn ask_all<T>(
        &self,
        calls: Vec<Call>,
        read: Reader<'_, T>,
    ) -> Result<Vec<Asked<T>>, PanelError> {
        let mut pending = Vec::with_capacity(calls.len());
        let mut failure = None;
        for call in calls {
            match self.begin(call) {
                Ok(begun) => pending.push(begun),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let mut lines = Vec::with_capacity(pending.len());
        for pending in pending {
            match self.finish(pending, read) {
                Ok(line) => lines.push(line),
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(lines), Err)
    }

    /// Makes one call and waits for its answer.
    pub fn ask_one<T>(&self, call: Call, read: Reader<'_, T>) -> Result<Asked<T>, PanelError> {
        self.finish(self.begin(call)?, read)
    }

    /// Whether every member takes images.
    pub fn takes_images(&self) -> bool {
        let mut members = self.members.iter();
        members.all(|member| member.source.takes_images())
    }

    /// The seed of a call, derived from its key and from the member's own seed or the run's.
    pub fn seed(&self, call: &Call) -> u64 {
        let own = self.members[call.member].sampling.seed;
        call_seed(own.unwrap_or(self.run_seed), &call.key)
    }

    /// The limit of a call's completion; `None` where nothing sets one.
    fn limit(&self, call: &Call) -> Option<usize> {
        let own = self.members[call.member].sampling.max_tokens;
        [self.max_tokens, call.max_tokens, own].into_iter().flatten().min()
    }

    /// The sampling parameters of a call to a local model.
    fn local_sampling(&self, call: &Call) -> SamplingChoice {
        let own = self.members[call.member].sampling;
        match call.temperature {
            None => own,
            temperature => SamplingChoice {
                temperature,
                top_p: Some(1.0),
                top_k: Some(0),
                min_p: Some(0.0),
                ..own
            },
        }
    }

    /// The sampling parameters of a call to an endpoint, which may not support turning filters off.
    fn remote_sampling(&self, call: &Call) -> SamplingChoice {
        let own = self.members[call.member].sampling;
        SamplingChoice { temperature: call.temperature.or(own.temperature), ..own }
    }

    fn begin(&self, call: Call) -> Result<Pending, PanelError> {
        if let Some(known) = self.recorder.find(&call.key) {
            let known = Box::new(known.clone());
            return Ok(Pending::Known(Box::new(call), known));
        }
        let source = self.members[call.member].source.clone();
        let waiting = source.begin(&call, self)?;
        Ok(Pending::Begun(Box::new(call), waiting))
    }

    fn finish<T>(&self, pending: Pending, read: Reader<'_, T>) -> Result<Asked<T>, PanelError> {
        let (call, waiting) = match pending {
            Pending::Known(call, known) => {
                let value = read(&call.messages, &known.text, known.finish_reason).value;
                return Ok(Asked { call: *known, value });
            }
            Pending::Begun(call, waiting) => (*call, waiting),
        };
        let answer = waiting()?;
        let Reading { value, record, parse } =
            read(&call.messages, &answer.text, answer.finish_reason);
        let call = self.line_of(call, answer, record, parse);
        self.recorder.record(&call).map_err(PanelError::Log)?;
        (self.on_call)(&call);
        Ok(Asked { call, value })
    }

    fn line_of(&self, call: Call, answer: Answer, record: Reply, parse: Parse) -> CallLine {
        let CallKey { dataset, run, item, agent, round, purpose, sample } = call.key;
        CallLine {
            seq: 0,
            dataset,
            run,
            item,
            agent,
            round,
            purpose,
            sample,
            stage: call.stage,
            backbone: self.members[call.member].source.name(),
            request: answer.request,
            answered_by: answer.answered_by,
            messages: call.messages,
            sampling: answer.sampling,
            seed: answer.seed,
            text: answer.text,
            tokens: answer.tokens,
            record,
            parse,
            usage: answer.usage,
            finish_reason: answer.finish_reason,
            elapsed_ms: answer.elapsed_ms,
            prev: String::new(),
            hash: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Usage;

    /// Answers with the call's agent, or fails where that is `fails`.
    struct Named(&'static str);

    impl Responder for Named {
        fn name(&self) -> String {
            self.0.to_owned()
        }

        fn begin(self: Arc<Self>, _call: &Call, _panel: &Panel) -> Result<Waiting, PanelError> {
            match self.0 {
                "refuses" => Err(PanelError::OtherItem { item: "1".to_owned() }),
                "fails" => Ok(Box::new(|| Err(PanelError::Interrupted))),
                text => Ok(Box::new(move || {
                    Ok(Answer {
                        seed: 1,
                        sampling: answer::sampling_line(&Default::default(), 1, false),
                        request: String::new(),
                        text: text.to_owned(),
                        tokens: Vec::new(),
                        usage: Usage::default(),
                        finish_reason: FinishReason::Stop,
                        elapsed_ms: 0,
                        answered_by: None,
                    })
                })),
            }
        }
    }

    /// The outcome of a round of these agents, and whose answers were logged.
    fn round(agents: &[&'static str]) -> (Result<Vec<Asked<String>>, PanelError>, Vec<String>) {
        let (mut panel, logged) = scripted::panel(&[], scripted::Script::new(|_, _| String::new()));
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
            key: CallKey {
                dataset: "d".to_owned(),
                run: 0,
                item: "1".to_owned(),
                agent: (*agent).to_owned(),
                round: 0,
                purpose: "debate".to_owned(),
                sample: 0,
            },
            stage: Stage::Initial,
            messages: Vec::new(),
            temperature: None,
            max_tokens: None,
            image: None,
            grammar: None,
            is_json: false,
            is_record: false,
        };
        let calls = agents.iter().enumerate().map(call).collect();
        let read: Reader<'_, String> = &|_, text, _| Reading {
            value: text.to_owned(),
            record: Reply::of(text),
            parse: Parse::Ok,
        };
        let outcome = panel.ask_all(calls, read);
        (outcome, logged.try_iter().map(|line| line.text).collect())
    }

    #[test]
    fn answers_beside_a_failed_call_are_logged() {
        let (outcome, logged) = round(&["a", "fails", "b"]);
        assert!(matches!(outcome, Err(PanelError::Interrupted)));
        assert_eq!(logged, ["a", "b"]);
        // Calls after one that is refused are not begun.
        let (outcome, logged) = round(&["a", "refuses", "b"]);
        assert!(matches!(outcome, Err(PanelError::OtherItem { .. })));
        assert_eq!(logged, ["a"]);
    }

    #[test]
    fn answers_come_in_the_order_of_their_calls() {
        let (outcome, logged) = round(&["b", "a"]);
        let texts: Vec<String> = outcome.unwrap().into_iter().map(|asked| asked.value).collect();
        assert_eq!((texts, logged.len()), (vec!["b".to_owned(), "a".to_owned()], 2));
    }
}
