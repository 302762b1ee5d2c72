//! What is wrong with a system's file: where, and what may help.

use crate::diagnosis::{Diagnosis, Failure};
use crate::systems::settings::SettingsError;

/// What is wrong, and in which stage or under which key.
#[derive(Debug, Default)]
pub struct Fault {
    /// The byte of the text at which it is, where that is known.
    at: Option<usize>,
    stage: String,
    key: String,
    problem: String,
    hint: String,
}

impl Fault {
    pub fn new(key: &str, problem: impl Into<String>, hint: impl Into<String>) -> Fault {
        let (problem, hint) = (problem.into(), hint.into());
        Fault { key: key.to_owned(), problem, hint, ..Fault::default() }
    }

    pub fn in_stage(self, stage: &str) -> Fault {
        Fault { stage: stage.to_owned(), ..self }
    }

    pub fn of_toml(error: &toml::de::Error) -> Fault {
        let hint = "docs/your-own-system.md lists the keys";
        Fault { at: error.span().map(|span| span.start), ..Fault::new("", error.message(), hint) }
    }

    pub fn of_setting(error: &SettingsError) -> Fault {
        Fault::new(
            "settings",
            error.to_string(),
            error.hint().unwrap_or("docs/your-own-system.md lists the settings".to_owned()),
        )
    }

    /// As an error of the file at `place` with this text.
    pub fn told(self, place: &str, text: &str) -> Failure {
        let stage = Some(self.stage.as_str()).filter(|stage| !stage.is_empty());
        let stage = stage.map_or(String::new(), |stage| format!("stage {stage}, "));
        let key = Some(&self.key).filter(|key| !key.is_empty());
        let key = key.map_or(String::new(), |key| format!("{key}: "));
        let line = self.line(text);
        let problem = self.problem.trim_end();
        Failure::usage(format!("{place}, line {line}: {stage}{key}{problem}"), &self.hint)
    }

    /// The line of the text, from 1: of the key, behind the stage's name.
    fn line(&self, text: &str) -> usize {
        if let Some(at) = self.at {
            return 1 + text.get(..at).unwrap_or(text).matches('\n').count();
        }
        let is_key = |line: &str, key: &str| {
            let after = line.trim_start_matches(['[', ' ']).strip_prefix(key);
            after.is_some_and(|after| after.trim_start().starts_with(['=', ']', '.']))
        };
        let quoted = format!("\"{}\"", self.stage);
        let is_name = |line: &str| is_key(line, "name") && line.contains(&quoted);
        let start = text.lines().position(is_name).unwrap_or(0);
        let below = text.lines().skip(start);
        let mut own = below.take_while(|line| self.stage.is_empty() || !line.starts_with("[["));
        let key = own.position(|line| is_key(line, &self.key));
        1 + start + key.unwrap_or(0)
    }
}
