//! What agents found in one note, for a reader: is there an error, where, what would be right, how confident are they, who disagreed.

mod turns;

pub use self::turns::{calls_of, score_in_words};

use std::fmt::Write;

use serde::Serialize;

use crate::analysis::metrics::over_runs::mean;
use crate::record::{
    CallLine, NO_SENTENCE, NoteLine, NoteStage, Trajectory, found_in_words, sentence_in_words,
};
use crate::text::ellipsis;

/// Characters of an agent's reasons that text shows.
const SHOWN_CHARS: usize = 400;
const NOTICE: &str = "Decision support for a clinician, not a diagnosis. Language models miss errors and see some where there are none.";

/// One note's outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub note: String,
    /// `null` where the agents could not be read, and where no answer was accepted though one claimed an error, or none was given.
    pub has_error: Option<bool>,
    /// Counted from 0; `null` where no sentence was located.
    pub sentence_id: Option<usize>,
    pub sentence: Option<String>,
    pub correction: Option<String>,
    /// From 0 to 1: the mean of what the agents state whose word on `has_error` is the outcome; `null` where they state nothing.
    pub confidence: Option<f64>,
    /// In the order in which they were asked.
    pub agents: Vec<Statement>,
    /// What stands behind the correction; of a system that searches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Sources>,
    pub notice: &'static str,
}

/// Whether passages stand behind a correction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sources {
    /// Whether every word that the correction brings in stands in a passage that was shown; `null` where it brings in none.
    pub grounded: Option<bool>,
    /// The words that it brings in and no shown passage has.
    pub ungrounded: Vec<String>,
    /// Whether every turn was used up without an accepted answer.
    pub exhausted: bool,
}

/// What one agent said.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Statement {
    pub agent: String,
    /// The purpose of its calls.
    pub stage: String,
    pub backbone: String,
    pub says: String,
    /// Whether that is the outcome of its stage.
    pub agrees: bool,
    pub confidence: Option<f64>,
    pub reasons: String,
}

impl Finding {
    /// `calls` are the note's, in any order.
    pub fn of(record: &NoteLine, calls: &[CallLine]) -> Finding {
        let sentence = record.sentence_id.map(|_| record.sentence.clone());
        let stated = record.detection.iter().flat_map(|detection| {
            let said = detection.flags.iter().zip(&detection.confidences);
            said.filter(|(flag, _)| **flag == record.flag.said())
                .filter_map(|(_, confidence)| *confidence)
        });
        Finding {
            note: record.item.clone(),
            has_error: has_error(record, calls),
            sentence_id: record.sentence_id,
            sentence,
            correction: record.correction.clone(),
            confidence: mean(&stated.collect::<Vec<_>>()),
            agents: match &record.search {
                Some(trajectory) => turns::statements(record, trajectory, calls),
                None => statements(record, calls),
            },
            sources: record.search.as_ref().map(|trajectory| Sources {
                grounded: trajectory.grounded,
                ungrounded: trajectory.ungrounded.clone(),
                exhausted: lacks_an_answer(trajectory),
            }),
            notice: NOTICE,
        }
    }

    /// The outcome in a few words, without text of the note.
    fn headline(&self) -> String {
        let is_exhausted = self.sources.as_ref().is_some_and(|sources| sources.exhausted);
        match (self.has_error, self.sentence_id) {
            (Some(true), None) => "An error that no agent could place".to_owned(),
            (Some(true), id) => capitalised(&found_in_words(true, id)),
            (Some(false), _) => "No error found".to_owned(),
            (None, _) if is_exhausted => "No answer was accepted".to_owned(),
            (None, _) => "No answer: what the agents said could not be read".to_owned(),
        }
    }

    /// As a person reads it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let sure = self.confidence.filter(|_| self.has_error.is_some());
        let sure = sure.map_or(String::new(), |share| format!(", {:.0} % sure", share * 100.0));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {}{sure}", plain(&self.note), self.headline());
        if let Some(sentence) = &self.sentence {
            let _ = writeln!(text, "\n    as written   {}", plain(sentence));
            let correction = self.correction.as_deref().unwrap_or("none was given");
            let _ = writeln!(text, "    should be    {}", plain(correction));
        }
        if let Some(sources) = &self.sources {
            sources.write(&mut text);
        }
        let _ = writeln!(text, "\nWhat the agents said");
        for said in &self.agents {
            let sure =
                said.confidence.map_or(String::new(), |share| format!(" ({:.0} %)", share * 100.0));
            let is_overruled = !said.agrees && said.says != UNREAD;
            let mark = if is_overruled { ", and was overruled" } else { "" };
            let _ = writeln!(
                text,
                "    {:12} {}: {}{sure}{mark}",
                said.stage,
                said.agent,
                plain(&said.says)
            );
            if is_overruled && !said.reasons.is_empty() {
                let _ = writeln!(text, "                 because: {}", shown(&said.reasons));
            }
        }
        let _ = writeln!(text, "\n{}", self.notice);
        text
    }
}

/// The outcome for the reader of one note. The paper takes a note of which no answer is accepted for one without an error, which holds
/// over many notes; here it takes an answer that says so, and none that claims an error.
pub fn has_error(record: &NoteLine, calls: &[CallLine]) -> Option<bool> {
    let flag = record.flag.said()?;
    let is_cleared = |trajectory: &Trajectory| {
        let claims = turns::claims(trajectory, calls);
        claims.contains(&Some(false)) && !claims.contains(&Some(true))
    };
    match &record.search {
        Some(trajectory) if !flag && lacks_an_answer(trajectory) => {
            is_cleared(trajectory).then_some(false)
        }
        _ => Some(flag),
    }
}

/// Whether no answer was accepted, or the last turn gave none: then the parser was asked what nobody had said.
fn lacks_an_answer(trajectory: &Trajectory) -> bool {
    trajectory.exhausted || trajectory.turns.last().is_some_and(|turn| !turn.is_final)
}

/// With a capital first letter, where it is of ASCII.
pub fn capitalised(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

impl Sources {
    /// As a person reads them.
    fn write(&self, text: &mut String) {
        // Writing to a string cannot fail.
        if self.exhausted {
            let _ = writeln!(text, "\n    No answer was accepted: every turn was used up.");
        }
        if !self.ungrounded.is_empty() {
            let _ =
                writeln!(text, "\n    No source contains: {}", plain(&self.ungrounded.join(", ")));
        }
    }
}

impl Statement {
    /// What the agent of a call said in it.
    fn of_call(call: &CallLine) -> Statement {
        Statement {
            agent: call.agent.clone(),
            stage: call.purpose.clone(),
            backbone: call.backbone.clone(),
            reasons: call.record.reasons().to_owned(),
            ..Statement::default()
        }
    }
}

/// The call behind each opinion of a stage: an agent that was sampled several times gave one opinion a sample.
fn calls_behind<'a>(agents: &[String], calls: &'a [CallLine]) -> Vec<Option<&'a CallLine>> {
    let call = |place: usize| {
        let agent = &agents[place];
        let mut own: Vec<&CallLine> = calls.iter().filter(|call| call.agent == *agent).collect();
        own.sort_by_key(|call| (call.round, call.sample));
        let earlier = agents[..place].iter().filter(|other| *other == agent).count();
        own.get(earlier).or(own.first()).copied()
    };
    (0..agents.len()).map(call).collect()
}

/// What an agent says whose reply could not be read: nobody overrules it.
const UNREAD: &str = "nothing that could be read";

fn statements(note: &NoteLine, calls: &[CallLine]) -> Vec<Statement> {
    let mut statements = Vec::new();
    // Of each agent what it says, and whether that is the outcome of its stage; its call may be missing.
    let mut add = |stage: NoteStage, agents: &[String], said: Vec<(String, bool)>, sure: &[_]| {
        let calls = agents.iter().zip(calls_behind(agents, calls));
        for (((agent, call), (says, agrees)), confidence) in calls.zip(said).zip(sure) {
            let said = call.map(Statement::of_call).unwrap_or_default();
            let (agent, stage, confidence) = (agent.clone(), stage.name().to_owned(), *confidence);
            statements.push(Statement { agent, stage, says, agrees, confidence, ..said });
        }
    };
    if let Some(stage) = &note.detection {
        let said = stage.flags.iter().map(|flag| {
            let says = match flag {
                Some(true) => "there is an error",
                Some(false) => "there is no error",
                None => UNREAD,
            };
            (says.to_owned(), flag.is_some() && *flag == note.flag.said())
        });
        add(NoteStage::Detection, &stage.agents, said.collect(), &stage.confidences);
    }
    if let Some(stage) = &note.localisation {
        let said = stage.opinions.iter().zip(&stage.sentence_ids).map(|(opinion, id)| {
            let says = match (id, opinion.as_str()) {
                (Some(id), _) => sentence_in_words(*id),
                (None, NO_SENTENCE) => "no sentence has one".to_owned(),
                (None, _) => UNREAD.to_owned(),
            };
            let agrees = says != UNREAD && *id == note.sentence_id;
            (says, agrees)
        });
        add(NoteStage::Localisation, &stage.agents, said.collect(), &stage.confidences);
    }
    let is_correction = |call: &&CallLine| call.purpose == NoteStage::Correction.name();
    let mut correctors: Vec<&CallLine> = calls.iter().filter(is_correction).collect();
    correctors.sort_by_key(|call| (&call.agent, call.sample));
    for call in correctors {
        let correction = call.record.correction();
        statements.push(Statement {
            says: correction.unwrap_or(UNREAD).to_owned(),
            agrees: correction.is_some() && correction == note.correction.as_deref(),
            confidence: call.record.confidence(),
            ..Statement::of_call(call)
        });
    }
    statements
}

/// On one line, and without what a terminal would take for a command.
fn plain(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|c| !c.is_control()).collect()
}

/// Cut where it gets long.
fn shown(reasons: &str) -> String {
    ellipsis(&plain(reasons), SHOWN_CHARS)
}

#[cfg(test)]
mod tests;
