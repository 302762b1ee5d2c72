//! What agents found in one note, for whoever reads it: is there an error, where, what would be right, how sure, and who disagreed.

mod turns;

pub use self::turns::{calls_of, tenths};

use std::collections::HashSet;
use std::fmt::Write;

use serde::Serialize;

use super::evidence::{Evidence, Segment, evidence, facts, segments};
use crate::analysis::metrics::over_runs::mean;
use crate::record::{CallLine, NO_SENTENCE, NoteLine, NoteStage, Passage, SearchLine};
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
    /// The passages behind the correction; of a system that searches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Sources>,
    pub notice: &'static str,
}

/// The passages behind a correction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sources {
    /// Whether the answer names them; else they are those that share most words with the correction.
    pub named: bool,
    /// Whether every word that the correction brings in stands in a passage that was shown; `null` where it brings in none.
    pub grounded: Option<bool>,
    /// The words that it brings in and no shown passage has.
    pub ungrounded: Vec<String>,
    /// Whether every turn was used up without an accepted answer.
    pub exhausted: bool,
    /// The correction's words that say something, in lower case and in order: those to mark in the passages.
    pub shared: Vec<String>,
    pub passages: Vec<Passage>,
}

/// What one agent said.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Word {
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
    /// `calls` and `searches` are the note's, in any order.
    pub fn of(record: &NoteLine, calls: &[CallLine], searches: &[SearchLine]) -> Finding {
        let sentence = record.sentence_id.map(|_| record.sentence.clone());
        let stated = record.detection.iter().flat_map(|detection| {
            let said = detection.flags.iter().zip(&detection.confidences);
            said.filter(|(flag, _)| **flag == record.flag).filter_map(|(_, confidence)| *confidence)
        });
        Finding {
            note: record.item.clone(),
            has_error: record.flag,
            sentence_id: record.sentence_id,
            sentence,
            correction: record.correction.clone(),
            confidence: mean(&stated.collect::<Vec<_>>()),
            agents: match &record.search {
                Some(trajectory) => turns::words(record, trajectory, calls),
                None => words(record, calls),
            },
            sources: record.search.as_ref().map(|trajectory| {
                let searches: Vec<&SearchLine> = searches.iter().collect();
                let Evidence { named, passages, shared } = evidence(record, &searches);
                let mut shared: Vec<String> = shared.into_iter().collect();
                shared.sort_unstable();
                Sources {
                    named,
                    grounded: trajectory.grounded,
                    ungrounded: trajectory.ungrounded.clone(),
                    exhausted: trajectory.exhausted,
                    shared,
                    passages: passages.into_iter().map(|(_, passage)| passage.clone()).collect(),
                }
            }),
            notice: NOTICE,
        }
    }

    /// As a person reads it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let sure =
            self.confidence.map_or(String::new(), |share| format!(", {:.0} % sure", share * 100.0));
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
        if let Some(sources) = &self.sources {
            sources.write(&mut text);
        }
        let _ = writeln!(text, "\nWhat the agents said");
        for word in &self.agents {
            let sure =
                word.confidence.map_or(String::new(), |share| format!(" ({:.0} %)", share * 100.0));
            let mark = if word.agrees { "" } else { ", and was overruled" };
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
        if self.passages.is_empty() {
            return;
        }
        let head = match self.named {
            true => "Sources, as the answer names them",
            false => "The answer names no source; these share most words with the correction",
        };
        let _ = writeln!(text, "\n{head} (*shared words*)");
        let words: HashSet<String> = self.shared.iter().cloned().collect();
        let mark = |piece: Segment| match piece.shared {
            true => format!("*{}*", piece.text),
            false => piece.text,
        };
        for passage in &self.passages {
            let title = if passage.title.is_empty() { &passage.chunk } else { &passage.title };
            let facts: Vec<String> = facts(passage).chain(passage.url.clone()).collect();
            let _ = writeln!(text, "    {} ({})", plain(title), plain(&facts.join(", ")));
            if let Some(said) = &passage.text {
                let said: String = segments(&shown(said), &words).into_iter().map(mark).collect();
                let _ = writeln!(text, "        {said}");
            }
        }
    }
}

/// What an agent said, and whether that is the outcome.
struct Said {
    says: String,
    agrees: bool,
    confidence: Option<f64>,
}

impl Word {
    fn new(stage: NoteStage, agent: &str, said: Said, calls: &[CallLine]) -> Word {
        let call = calls.iter().find(|call| call.agent == agent);
        Word {
            agent: agent.to_owned(),
            stage: stage.name().to_owned(),
            backbone: call.map_or(String::new(), |call| call.backbone.clone()),
            says: said.says,
            agrees: said.agrees,
            confidence: said.confidence,
            reasons: call
                .and_then(|call| call.record["thought"].as_str())
                .unwrap_or_default()
                .to_owned(),
        }
    }
}

fn words(note: &NoteLine, calls: &[CallLine]) -> Vec<Word> {
    const UNREAD: &str = "nothing that could be read";
    let mut words = Vec::new();
    if let Some(detection) = &note.detection {
        let said = detection.flags.iter().zip(&detection.confidences);
        for (agent, (flag, confidence)) in detection.agents.iter().zip(said) {
            let says = match flag {
                Some(true) => "there is an error",
                Some(false) => "there is no error",
                None => UNREAD,
            };
            let said =
                Said { says: says.to_owned(), agrees: *flag == note.flag, confidence: *confidence };
            words.push(Word::new(NoteStage::Detection, agent, said, calls));
        }
    }
    if let Some(localisation) = &note.localisation {
        let said = localisation.opinions.iter().zip(&localisation.sentence_ids);
        let said = said.zip(&localisation.confidences);
        for (agent, ((opinion, id), confidence)) in localisation.agents.iter().zip(said) {
            let says = match (id, opinion.as_str()) {
                (Some(id), _) => format!("sentence {}", id + 1),
                (None, NO_SENTENCE) => "no sentence has one".to_owned(),
                (None, _) => UNREAD.to_owned(),
            };
            let said = Said { says, agrees: *id == note.sentence_id, confidence: *confidence };
            words.push(Word::new(NoteStage::Localisation, agent, said, calls));
        }
    }
    let is_correction = |call: &&CallLine| call.purpose == NoteStage::Correction.name();
    let mut correctors: Vec<&CallLine> = calls.iter().filter(is_correction).collect();
    correctors.sort_by_key(|call| (&call.agent, call.sample));
    for call in correctors {
        let correction = call.record["correction"].as_str();
        let said = Said {
            says: correction.unwrap_or(UNREAD).to_owned(),
            agrees: correction == note.correction.as_deref(),
            confidence: call.record["confidence"].as_f64(),
        };
        words.push(Word::new(NoteStage::Correction, &call.agent, said, calls));
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
    use crate::record::Trajectory;
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
            search: None,
            calls: 6,
            error: None,
            prev: String::new(),
            hash: String::new(),
        }
    }

    #[test]
    fn it_says_what_where_how_sure_and_who_was_overruled() {
        let finding = Finding::of(&record(), &[], &[]);
        assert_eq!(finding.confidence, Some(0.75));
        let text = finding.text();
        assert!(text.starts_with("bed-7: An error, in sentence 2, 75 % sure\n"), "{text}");
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
        let finding = Finding::of(&unread, &[], &[]);
        assert!(finding.text().contains("could not be read"));
        assert_eq!(serde_json::to_value(&finding).unwrap()["has_error"], serde_json::Value::Null);
    }

    #[test]
    fn a_correction_comes_with_its_sources_or_the_words_that_none_has() {
        let mut searched = record();
        searched.search = Some(Trajectory {
            ungrounded: vec!["malaria".into()],
            grounded: Some(false),
            ..Trajectory::default()
        });
        let passage = Passage {
            chunk: "ward/fever#2".into(),
            source: "ward".into(),
            title: "Fever".into(),
            paragraph: 2,
            score: 0.9,
            sha256: String::new(),
            text: Some("Artesunate is given first.".into()),
            url: None,
            date: Some("2021".into()),
            licence: Some("CC BY 4.0".into()),
        };
        let search = SearchLine { shown: vec![passage], ..SearchLine::default() };
        let finding = Finding::of(&searched, &[], &[search]);
        let text = finding.text();
        assert!(text.contains("No source contains: malaria"), "{text}");
        assert!(
            text.contains(
                "Fever (ward, paragraph 2, 2021, CC BY 4.0)\n        *Artesunate* is given"
            ),
            "{text}"
        );
        let json = serde_json::to_value(&finding).unwrap();
        assert_eq!(json["sources"]["passages"][0]["chunk"], "ward/fever#2");
        assert_eq!(json["sources"]["named"], false);
        assert_eq!(
            json["sources"]["shared"],
            serde_json::json!(["artesunate", "cures", "malaria"])
        );
    }

    #[test]
    fn long_reasons_are_cut_between_characters() {
        assert_eq!(shown(&"é".repeat(500)).chars().count(), SHOWN_CHARS + 1);
        assert_eq!(shown("a\n  b \u{1b}[2Jc"), "a b [2Jc");
    }
}
