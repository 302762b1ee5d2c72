//! A server of completions as a load sees it: streams over kept connections.

use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::json;
use ureq::Agent;

use super::{Outcome, PromptShape, Seen, Watch};

/// Longer than any answer of a load takes.
const TIMEOUT: Duration = Duration::from_secs(600);

/// An event holds a few tokens.
const MOST_LINE_BYTES: u64 = 1 << 20;

/// A model of a server.
#[derive(Clone, Debug)]
pub struct Target {
    agent: Agent,
    /// What `/completions` follows.
    base: String,
    model: String,
}

/// An event of the stream, as far as it is looked at.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    text: String,
}

/// Tokens of a completion, as its last event counts them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Usage {
    pub prompt_tokens: usize,
    pub completion_tokens: usize,
}

impl Target {
    /// `base` ends with `/v1`; `connections` are kept open.
    #[expect(clippy::disallowed_methods, reason = "the server to measure is the user's to name")]
    pub fn new(base: &str, model: &str, connections: usize) -> Target {
        let agent = Agent::config_builder()
            // What lies between would be measured too.
            .proxy(None)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_connections(connections)
            .max_idle_connections_per_host(connections)
            .timeout_global(Some(TIMEOUT))
            .build()
            .new_agent();
        Target { agent, base: base.trim_end_matches('/').to_owned(), model: model.to_owned() }
    }

    /// How long the server takes to say that it is well.
    ///
    /// # Errors
    /// The reason, if it does not.
    pub fn health(&self) -> Result<Duration, String> {
        let began = Instant::now();
        let root = self.base.trim_end_matches("/v1");
        let mut answer =
            self.agent.get(format!("{root}/health")).call().map_err(|error| error.to_string())?;
        let _ = answer.body_mut().read_to_vec().map_err(|error| error.to_string())?;
        match answer.status().as_u16() {
            200 => Ok(began.elapsed()),
            status => Err(format!("status {status}")),
        }
    }

    /// Completes the prompt of request `index`, greedily and to its full length.
    pub fn ask(&self, shape: &PromptShape, index: usize) -> Seen {
        let body = json!({
            "model": self.model,
            "prompt": shape.prompt(index),
            "max_tokens": shape.max_tokens,
            "temperature": 0,
            "ignore_eos": true,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        let mut watch = Watch::start();
        match self.stream(&body.to_string(), &mut watch) {
            Ok(usage) => watch.end(Outcome::Answered, usage.prompt_tokens, usage.completion_tokens),
            Err(outcome) => watch.end(outcome, 0, 0),
        }
    }

    fn stream(&self, body: &str, watch: &mut Watch) -> Result<Usage, Outcome> {
        let failed = |error: &dyn ToString| Outcome::Failed(error.to_string());
        let url = format!("{}/completions", self.base);
        let send = || self.agent.post(&url).content_type("application/json").send(body);
        // A kept connection that the server had closed meanwhile says so only now.
        let mut answer = send().or_else(|_| send()).map_err(|error| failed(&error))?;
        let status = answer.status().as_u16();
        if status != 200 {
            let text = answer.body_mut().read_to_string().map_err(|error| failed(&error))?;
            return Err(match status {
                429 => Outcome::Refused,
                _ => Outcome::Failed(format!("status {status}: {text}")),
            });
        }
        let lines = BufReader::new(answer.into_body().into_reader());
        read_events(lines, |text| watch.piece(text)).map_err(Outcome::Failed)
    }
}

/// Reads a stream of events to its end; each text that is not empty goes to `piece`.
///
/// # Errors
/// What is no event of a completion, in words; a stream that breaks off.
pub fn read_events(mut stream: impl BufRead, mut piece: impl FnMut(&str)) -> Result<Usage, String> {
    let (mut line, mut usage, mut is_done) = (String::new(), Usage::default(), false);
    // After the last event the rest of the body is read, so that the connection can be used again.
    loop {
        line.clear();
        let read = stream.by_ref().take(MOST_LINE_BYTES).read_line(&mut line);
        match read.map_err(|error| error.to_string())? {
            0 => break,
            _ if line.len() as u64 == MOST_LINE_BYTES && !line.ends_with('\n') => {
                return Err(format!("a line has more than {MOST_LINE_BYTES} bytes"));
            }
            _ => {}
        }
        match line.trim_end().strip_prefix("data: ") {
            Some("[DONE]") => is_done = true,
            Some(event) => {
                let chunk: Chunk =
                    serde_json::from_str(event).map_err(|error| format!("{error}: {event}"))?;
                let text = chunk.choices.first().map(|choice| choice.text.as_str());
                text.filter(|text| !text.is_empty()).into_iter().for_each(&mut piece);
                usage = chunk.usage.unwrap_or(usage);
            }
            None => {}
        }
    }
    match is_done {
        true => Ok(usage),
        false => Err("the stream ended without [DONE]".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_is_not_read_to_it() {
        let endless = BufReader::new(std::io::repeat(b'x'));
        let error = read_events(endless, |_| ()).unwrap_err();
        assert_eq!(error, "a line has more than 1048576 bytes");
    }
}
