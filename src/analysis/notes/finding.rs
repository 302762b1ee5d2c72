//! What agents found in one note, for whoever reads it: is there an error, where, what would be right, how sure, and who disagreed.

use std::fmt::Write;

use serde::Serialize;

use crate::record::{CallLine, NoteLine};
use crate::systems::medguards::parse::thought;
use crate::text::ellipsis;

/// Characters of an agent's reasons that text shows.
const SHOWN_CHARS: usize = 400;
const NOTICE: &str = "Decision support for a clinician, not a diagnosis. Language models miss errors and see some where there are none.";

/// One note's outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub note: String,
    /// `null` where the agents could not be read.
    pub has_error: Option<bool>,
    /// Counted from 0; `null` where no sentence was located.
    pub sentence_id: Option<usize>,
    pub sentence: Option<String>,
    pub correction: Option<String>,
    /// From 0 to 1: the mean of what the agents state whose word on `has_error` is the outcome; `null` where they state nothing.
    pub confidence: Option<f64>,
    /// In the order in which they were asked.
    pub agents: Vec<Word>,
    pub notice: &'static str,
}

/// What one agent said.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Word {
    pub agent: String,
    /// `detection`, `localisation` or `correction`.
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
            said.filter(|(flag, _)| **flag == record.flag)
                .filter_map(|(_, confidence)| *confidence)
        });
        let stated: Vec<f64> = stated.collect();
        let confidence =
            (!stated.is_empty()).then(|| stated.iter().sum::<f64>() / stated.len() as f64);
        Finding {
            note: record.item.clone(),
            has_error: record.flag,
            sentence_id: record.sentence_id,
            sentence,
            correction: record.correction.clone(),
            confidence,
            agents: words(record, calls),
            notice: NOTICE,
        }
    }

    /// As a person reads it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let sure = self.confidence.map_or(String::new(), |share| {
            format!(", {:.0} % sure", share * 100.0)
        });
        let headline = match (self.has_error, self.sentence_id) {
            (Some(true), Some(id)) => format!("An error, in sentence {}{sure}", id + 1),
            (Some(true), None) => format!("An error that no agent could place{sure}"),
            (Some(false), _) => format!("No error found{sure}"),
            (None, _) => "No answer: what the agents said could not be read".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {headline}", self.note);
        if let Some(sentence) = &self.sentence {
            let _ = writeln!(text, "\n    as written   {}", plain(sentence));
            let correction = self.correction.as_deref().unwrap_or("none was given");
            let _ = writeln!(text, "    should be    {}", plain(correction));
        }
        let _ = writeln!(text, "\nWhat the agents said");
        for word in &self.agents {
            let sure = word
                .confidence
                .map_or(String::new(), |share| format!(" ({:.0} %)", share * 100.0));
            let mark = if word.agrees {
                ""
            } else {
                ", and was overruled"
            };
            let _ = writeln!(
                text,
                "    {:12} {}: {}{sure}{mark}",
                word.stage,
                word.agent,
                plain(&word.says)
            );
            if !word.agrees && !word.reasons.is_empty() {
                let _ = writeln!(text, "                 because: {}", shown(&word.reasons));
            }
        }
        let _ = writeln!(text, "\n{}", self.notice);
        text
    }
}

fn words(record: &NoteLine, calls: &[CallLine]) -> Vec<Word> {
    let word = |agent: &str, stage: &str, says: String, agrees: bool, confidence: Option<f64>| {
        let mut own = calls.iter().filter(|call| call.agent == agent);
        let call = own.next();
        Word {
            agent: agent.to_owned(),
            stage: stage.to_owned(),
            backbone: call.map_or(String::new(), |call| call.backbone.clone()),
            says,
            agrees,
            confidence,
            reasons: call.map_or(String::new(), |call| thought(&call.text)),
        }
    };
    let mut words = Vec::new();
    if let Some(detection) = &record.detection {
        for (agent, (flag, confidence)) in detection
            .agents
            .iter()
            .zip(detection.flags.iter().zip(&detection.confidences))
        {
            let says = match flag {
                Some(true) => "there is an error",
                Some(false) => "there is no error",
                None => "nothing that could be read",
            };
            let agrees = *flag == record.flag;
            words.push(word(
                agent,
                "detection",
                says.to_owned(),
                agrees,
                *confidence,
            ));
        }
    }
    if let Some(localisation) = &record.localisation {
        let said = localisation.opinions.iter().zip(&localisation.sentence_ids);
        let said = said.zip(&localisation.confidences);
        for (agent, ((opinion, id), confidence)) in localisation.agents.iter().zip(said) {
            let says = match (id, opinion.as_str()) {
                (Some(id), _) => format!("sentence {}", id + 1),
                (None, "NAN") => "no sentence has one".to_owned(),
                (None, _) => "nothing that could be read".to_owned(),
            };
            let agrees = *id == record.sentence_id;
            words.push(word(agent, "localisation", says, agrees, *confidence));
        }
    }
    let correctors = calls.iter().filter(|call| call.purpose == "correction");
    let mut correctors: Vec<&CallLine> = correctors.collect();
    correctors.sort_by_key(|call| (&call.agent, call.sample));
    for call in correctors {
        let said = call.record["correction"].as_str();
        let says = said.unwrap_or("nothing that could be read").to_owned();
        let agrees = said == record.correction.as_deref();
        let confidence = call.record["confidence"].as_f64();
        words.push(word(&call.agent, "correction", says, agrees, confidence));
    }
    words
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
mod tests {
    use super::*;
    use crate::record::Language;
    use crate::record::{DetectionLine, LocalisationLine, Source};

    fn record() -> NoteLine {
        NoteLine {
            dataset: "ward".into(),
            run: 1,
            item: "bed-7".into(),
            language: Language::English,
            gold: None,
            flag: Some(true),
            sentence_id: Some(1),
            sentence: "Aspirin cures malaria.".into(),
            exact_sentence_id: Some(1),
            correction: Some("Artesunate cures malaria.".into()),
            confidence: Some(0.9),
            detection: Some(DetectionLine {
                source: Source::Arbitration,
                agents: vec!["det1".into(), "det2".into(), "det3".into()],
                flags: vec![Some(false), Some(true), Some(true)],
                confidences: vec![Some(0.5), Some(0.7), Some(0.8)],
            }),
            localisation: Some(LocalisationLine {
                source: Source::Agreement,
                agents: vec!["loc1".into(), "loc2".into()],
                opinions: vec!["Aspirin cures malaria.".into(), "NAN".into()],
                sentence_ids: vec![Some(1), None],
                confidences: vec![None, None],
            }),
            calls: 6,
            error: None,
            prev: String::new(),
            hash: String::new(),
        }
    }

    #[test]
    fn it_says_what_where_how_sure_and_who_was_overruled() {
        let finding = Finding::of(&record(), &[]);
        assert_eq!(finding.confidence, Some(0.75));
        let text = finding.text();
        assert!(
            text.starts_with("bed-7: An error, in sentence 2, 75 % sure\n"),
            "{text}"
        );
        assert!(text.contains("as written   Aspirin cures malaria.\n    should be    Artesunate"));
        assert!(text.contains("det1: there is no error (50 %), and was overruled"));
        assert!(text.contains("loc2: no sentence has one, and was overruled"));
        assert!(text.contains("not a diagnosis"));
    }

    #[test]
    fn what_could_not_be_read_is_no_clean_bill() {
        let unread = NoteLine {
            flag: None,
            sentence_id: None,
            correction: None,
            detection: None,
            localisation: None,
            ..record()
        };
        let finding = Finding::of(&unread, &[]);
        assert!(finding.text().contains("could not be read"));
        assert_eq!(
            serde_json::to_value(&finding).unwrap()["has_error"],
            serde_json::Value::Null
        );
    }

    #[test]
    fn long_reasons_are_cut_between_characters() {
        assert_eq!(shown(&"é".repeat(500)).chars().count(), SHOWN_CHARS + 1);
        assert_eq!(shown("a\n  b \u{1b}[2Jc"), "a b [2Jc");
    }
}
