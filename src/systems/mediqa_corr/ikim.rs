//! IKIM: one candidate sentence of a note is judged, with the most similar right and wrong sentence of the exemplars in the prompt.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::{Design, Finding, Kit, Request, Solve, Solver};
use crate::data::Note;
use crate::diagnosis::Failure;
use crate::panel::PanelError;
use crate::prompts::{PromptSet, fill};
use crate::record::Message;
use crate::systems::System;
use crate::systems::case::Case;
use crate::systems::exemplars::cluster::{clusters, first_greatest, representative};
use crate::systems::exemplars::prompt::{Prompt, Shot};
use crate::systems::exemplars::reply::Field::{Correction, Flag, Reason};
use crate::systems::exemplars::reply::{Form, Style};
use crate::systems::exemplars::terms::TfIdf;
use crate::systems::exemplars::{Exemplar, Opinion, Ranking};
use crate::systems::messages::{messages, numbered};
use crate::systems::settings::switch;

pub(in crate::systems) const ANSWER: Form = Form {
    style: Style::Lines,
    fields: &[
        ("Reasoning", Reason),
        ("Is correct", Flag(["Yes", "No"])),
        ("Corrected sentence", Correction),
    ],
};

/// How the candidate sentence is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Candidate {
    /// The most common position of the exemplars' errors, counted from the end.
    #[default]
    Position,
    /// The model is asked for it.
    Asked,
    /// The sentence with the highest score by `--sentence-scorer`.
    Scorer,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    pub candidate: Candidate,
    /// Whether only representatives of FINCH clusters are shown.
    #[serde(with = "switch")]
    pub clusters: bool,
}

impl Design for Settings {
    fn calls(&self) -> u32 {
        1 + u32::from(self.candidate == Candidate::Asked)
    }

    fn needs_vectors(&self) -> bool {
        self.clusters || self.candidate == Candidate::Scorer
    }

    fn solver(&self, prompts: &PromptSet, kit: Kit) -> Result<Box<dyn System>, Failure> {
        if self.candidate == Candidate::Scorer && kit.exemplars.scorer.is_none() {
            return Err(Failure::usage(
                "candidate=scorer weighs vectors by a file, and none was given",
                "give --sentence-scorer FILE, or --set candidate=position",
            ));
        }
        if !matches!(kit.common.choice, Ranking::Embedding | Ranking::Tfidf) {
            let hint = "--set choice=embedding or choice=tfidf";
            return Err(Failure::usage("ikim compares sentences by vectors or by TF-IDF", hint));
        }
        let from_end = usual_position(&kit);
        Ok(Box::new(Solver(Ikim {
            settings: self.clone(),
            prompt: Prompt::new(prompts, "ikim", None, &ANSWER)?,
            candidate: prompts.get("mediqa_corr/ikim-candidate", &["note"])?,
            right: Side::new(&kit, from_end, false),
            wrong: Side::new(&kit, from_end, true),
            from_end,
            kit,
        })))
    }
}

/// The most common position of the exemplars' errors, as the number of sentences after it; the smallest of several.
fn usual_position(kit: &Kit) -> usize {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for exemplar in &kit.exemplars.pool.exemplars {
        if let Some(error) = exemplar.error() {
            let after = exemplar.note.sentences.len().saturating_sub(1 + error.sentence_id);
            *counts.entry(after).or_default() += 1;
        }
    }
    let most = counts.into_iter().rev().max_by_key(|(_, count)| *count);
    most.map_or(0, |(after, _)| after)
}

/// The candidate sentences of all exemplars with an error, or of all without one.
struct Side {
    /// Each with the place of its exemplar in the pool.
    sentences: Vec<(usize, String)>,
    tfidf: TfIdf,
    /// The representatives of the clusters, by their places in `sentences`; computed at first use.
    representatives: OnceLock<Vec<usize>>,
}

impl Side {
    fn new(kit: &Kit, from_end: usize, is_wrong: bool) -> Side {
        let exemplars = kit.exemplars.pool.exemplars.iter().enumerate();
        let of_side = exemplars.filter(|(_, one)| one.error().is_some() == is_wrong);
        let candidate = |(place, one): (usize, &Exemplar)| {
            let id = one.error().map_or_else(|| position(&one.note, from_end), |e| e.sentence_id);
            (place, one.note.sentences.get(id).cloned().unwrap_or_default())
        };
        let sentences: Vec<(usize, String)> = of_side.map(candidate).collect();
        let tfidf = TfIdf::new(sentences.iter().map(|(_, sentence)| sentence.as_str()));
        Side { sentences, tfidf, representatives: OnceLock::new() }
    }

    /// The candidate most similar to a sentence, with its exemplar's place; of those whose exemplars are among `shown`, in ascending order.
    fn nearest(
        &self,
        kit: &Kit,
        settings: &Settings,
        sentence: &str,
        shown: &[usize],
    ) -> Result<Option<&(usize, String)>, PanelError> {
        let texts = self.sentences.iter().map(|(_, sentence)| sentence.as_str());
        let scores = match kit.common.choice {
            Ranking::Embedding => kit.exemplars.likeness(sentence, texts.clone())?,
            _ => self.tfidf.scores(sentence),
        };
        if settings.clusters && self.representatives.get().is_none() {
            let vectors = kit.exemplars.vectors(&texts.collect::<Vec<_>>())?;
            let groups = clusters(&vectors);
            let found = groups.iter().filter_map(|group| representative(&vectors, group));
            // Where another thread was faster, it found the same.
            let _ = self.representatives.set(found.collect());
        }
        // Set only where the settings ask for clusters.
        let mut allowed = match self.representatives.get() {
            Some(representatives) => representatives.clone(),
            None => (0..self.sentences.len()).collect(),
        };
        allowed.retain(|one| shown.binary_search(&self.sentences[*one].0).is_ok());
        let best = first_greatest(allowed.into_iter().map(|one| (one, scores[one])));
        Ok(best.map(|best| &self.sentences[best]))
    }
}

/// The index of the sentence with so many after it; of a shorter note the first.
fn position(note: &Note, from_end: usize) -> usize {
    note.sentences.len().saturating_sub(1 + from_end)
}

struct Ikim {
    settings: Settings,
    prompt: Prompt,
    candidate: String,
    from_end: usize,
    right: Side,
    wrong: Side,
    kit: Kit,
}

impl Ikim {
    fn messages(&self, note: &Note, id: usize) -> Result<Vec<Message>, PanelError> {
        let exemplars = &self.kit.exemplars;
        let shown = exemplars.pool.shown_beside(note);
        let sentence = note.sentences[id].as_str();
        let mut shots = Vec::new();
        for side in [&self.right, &self.wrong].into_iter().take(self.kit.common.shots) {
            let nearest = side.nearest(&self.kit, &self.settings, sentence, &shown)?;
            shots.extend(nearest.map(|(place, own)| Shot {
                exemplar: &exemplars.pool.exemplars[*place],
                more: vec![("sentence", own.clone())],
            }));
        }
        Ok(self.prompt.messages(&shots, note, &[("sentence", sentence)]))
    }

    fn asked(&self, note: &Note) -> Vec<Message> {
        messages("", fill(&self.candidate, &[("note", &numbered(note))]))
    }

    fn find(&self, case: &Case<'_, Note>) -> Result<Option<usize>, PanelError> {
        let note = case.item;
        match self.settings.candidate {
            Candidate::Position => Ok(Some(position(note, self.from_end))),
            Candidate::Scorer => self.scored(note).map(Some),
            Candidate::Asked => {
                let ids: Vec<String> = (0..note.sentences.len()).map(|id| id.to_string()).collect();
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                let request = Request::new("candidate", 0.0, self.asked(note));
                let asked = self.kit.one_of(case, request, "sentence_id", &ids)?;
                Ok(asked.value.first().and_then(|id| id.parse().ok()))
            }
        }
    }

    /// The index of the sentence with the highest score, the first of several.
    fn scored(&self, note: &Note) -> Result<usize, PanelError> {
        let texts: Vec<&str> = note.sentences.iter().map(String::as_str).collect();
        let vectors = self.kit.exemplars.vectors(&texts)?;
        let weights = self.kit.exemplars.scorer.as_deref().unwrap_or_default();
        // The constant, last, is the same for all.
        let score = |vector: &Vec<f32>| -> f64 {
            vector.iter().zip(weights).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        Ok(first_greatest(vectors.iter().map(score).enumerate()).unwrap_or(0))
    }
}

impl Solve for Ikim {
    fn solve(&self, case: &Case<'_, Note>) -> Result<Finding, PanelError> {
        let Some(id) = self.find(case)? else { return Ok(Finding::default()) };
        let request = Request::new("answer", 1.0, self.messages(case.item, id)?);
        let mut said = Opinion::from(&self.kit.judge(case, request, &ANSWER)?);
        said.sentence_id = said.flag.has_error().then_some(id);
        Ok(Finding::alone(said))
    }

    fn first(&self, note: &Note) -> Result<Vec<Message>, PanelError> {
        match self.settings.candidate {
            Candidate::Asked => Ok(self.asked(note)),
            Candidate::Position => self.messages(note, position(note, self.from_end)),
            Candidate::Scorer => self.messages(note, self.scored(note)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::panel::scripted::Script;
    use crate::systems::SystemConfig;
    use crate::systems::exemplars::vectors::Vectors;
    use crate::systems::exemplars::{Exemplars, Pool};
    use crate::systems::mediqa_corr::Common;
    use crate::systems::scripted::{check, exemplars, note};

    const WRONG: &str = "Reasoning: no\nIs correct: No\nCorrected sentence: Beta agonists were given for the attack.";

    #[test]
    fn the_candidate_is_judged_beside_the_nearest_right_and_wrong_sentence() {
        let config = SystemConfig::parse("ikim", &["choice=tfidf", "candidate=asked"]).unwrap();
        let script = Script::new(|key, _| match key.purpose.as_str() {
            "candidate" => r#"{"sentence_id": "1"}"#.to_owned(),
            _ => WRONG.to_owned(),
        });
        let (line, calls) = check(&config, &note(), script);
        assert_eq!((line.flag.said(), line.sentence_id, calls.len()), (Some(true), Some(1), 2));
        assert_eq!(line.correction.as_deref(), Some("Beta agonists were given for the attack."));
        let messages = &calls[1].messages;
        let roles: Vec<&str> = messages.iter().map(|one| one.role.as_str()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "user", "assistant", "user"]);
        assert!(messages[2].content.contains("Is correct: Yes\nCorrected sentence: NA"));
        assert!(messages[3].content.contains("Beta blockers were given for asthma."));
        assert!(messages[5].content.contains("Beta blockers were given for the attack."));
        let unread = Script::new(|_, _| "hm".to_owned());
        let (line, calls) = check(&config, &note(), unread);
        assert_eq!((line.flag.said(), calls.len()), (None, 1));
    }

    #[test]
    fn without_a_question_the_candidate_stands_where_most_errors_do() {
        let config = SystemConfig::parse("ikim", &["choice=tfidf"]).unwrap();
        let right = "Reasoning: yes\nIs correct: Yes\nCorrected sentence: NA";
        let (line, calls) = check(&config, &note(), Script::new(move |_, _| right.to_owned()));
        assert_eq!((line.flag.said(), calls.len()), (Some(false), 1));
        assert!(calls[0].messages[5].content.ends_with("She went home."));
        for pairs in [&["choice=bm25"][..], &["choice=tfidf", "candidate=scorer"]] {
            let config = SystemConfig::parse("ikim", pairs).unwrap();
            assert!(config.build(&PromptSet::embedded(), &exemplars()).is_err(), "{pairs:?}");
        }
        let config = SystemConfig::named("ikim").unwrap();
        let refused = config.build(&PromptSet::embedded(), &Default::default()).err().unwrap();
        assert!(refused.to_string().contains("there is no encoder"));
    }

    #[test]
    fn a_scorer_weighs_vectors_and_clusters_have_one_representative() {
        let notes = exemplars();
        let notes = notes.pool.exemplars.iter().map(|one| one.note.clone());
        let pool = Pool::new(notes, &Default::default());
        let encode = |texts: &[&str]| {
            let vector = |text: &&str| vec![f32::from(text.contains("Beta")), 1.0];
            Ok(texts.iter().map(vector).collect())
        };
        let exemplars = Arc::new(Exemplars {
            pool,
            vectors: Some(Vectors::new(Box::new(encode))),
            scorer: Some(vec![1.0, 0.0, 3.0]),
            ..Exemplars::default()
        });
        let settings = Settings { candidate: Candidate::Scorer, clusters: true };
        let kit = Kit {
            exemplars,
            common: Common { shots: 2, choice: Ranking::Embedding, ..Common::default() },
        };
        let from_end = usual_position(&kit);
        let prompt = Prompt::new(&PromptSet::embedded(), "ikim", None, &ANSWER).unwrap();
        let ikim = Ikim {
            right: Side::new(&kit, from_end, false),
            wrong: Side::new(&kit, from_end, true),
            candidate: String::new(),
            settings,
            prompt,
            from_end,
            kit,
        };
        assert_eq!((from_end, ikim.scored(&note()).unwrap()), (0, 1));
        // One cluster a side, and so one sentence each.
        let messages = ikim.first(&note()).unwrap();
        assert_eq!((messages.len(), ikim.wrong.representatives.get().unwrap().len()), (6, 1));
    }
}
