//! What a run's system is shown as exemplars: the files that flags name, read once, and what the plan keeps of them.

mod spec;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::spec::{ExemplarFiles, ExemplarSpec};
use super::contents::Contents;
use super::run::absolute;
use super::spec::{Spec, formats};
use crate::corpus::folder_sum;
use crate::corpus::open_encoder;
use crate::data::{self, DataError, Dataset, Format, Item, ItemKind};
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::outside;
use crate::scorers::{BertScore, BertScoreModel};
use crate::systems::exemplars::leak::Leak;
use crate::systems::exemplars::terms::Lemmas;
use crate::systems::exemplars::vectors::Vectors;
use crate::systems::exemplars::{Exemplars, Expert, Likeness, Opinion, Pool};

/// What a plan keeps of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExemplarPlan {
    pub path: String,
    pub format: String,
    pub sha256: String,
    /// Those with gold, which may be shown.
    pub notes: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilePlan>,
}

impl ExemplarPlan {
    /// Of the notes and of every file beside them.
    pub(super) fn sums(&self) -> impl Iterator<Item = String> {
        let files = self.files.iter().map(|file| file.sha256.clone());
        std::iter::once(self.sha256.clone()).chain(files)
    }
}

/// A file; of an encoder or a run its folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilePlan {
    /// `reasons`, `encoder`, `spans`, `scorer`, `lemmas`, `filter`, `leak` or `expert`.
    pub what: String,
    pub path: String,
    /// Of an encoder over what its numbers depend on; of an expert the head of its items.jsonl.
    pub sha256: String,
    /// How good an expert was on other notes, as it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<String>,
}

/// The file that `wardround reasons` writes: the style that was asked for, and the reasons for each note's gold.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReasonsFile {
    pub style: String,
    pub reasons: BTreeMap<String, String>,
}

/// What a system is shown; nothing where it shows nothing.
#[derive(Clone, Default)]
pub struct Shown {
    pub exemplars: Arc<Exemplars>,
    pub plan: Option<ExemplarPlan>,
}

/// The exemplars of several runs, each once.
#[derive(Default)]
pub struct ExemplarSets(Vec<(ExemplarSpec, Shown)>);

impl ExemplarSets {
    /// What `spec` names; as it was read before, where it was.
    fn read(&mut self, spec: &ExemplarSpec) -> Result<Shown, Failure> {
        if let Some((_, shown)) = self.0.iter().find(|(known, _)| known == spec) {
            return Ok(shown.clone());
        }
        let (exemplars, plan) = spec.read()?;
        let shown = Shown { exemplars: Arc::new(exemplars), plan: Some(plan) };
        self.0.push((spec.clone(), shown.clone()));
        Ok(shown)
    }
}

impl Spec {
    /// What the system is shown as exemplars. A run has a file under test, which may not be the one that is shown.
    ///
    /// # Errors
    /// Exemplars where none are shown, none where some are; a file that is missing or malformed; the file under test.
    pub fn read_exemplars(
        &self,
        sets: &mut ExemplarSets,
        tested: Option<&Dataset>,
    ) -> Result<Shown, Failure> {
        self.refuse_other_exemplars()?;
        let Some(spec) = &self.exemplars else { return Ok(Shown::default()) };
        let shown = sets.read(spec)?;
        let is_tested = |plan: &ExemplarPlan| tested.is_some_and(|file| file.sha256 == plan.sha256);
        match shown.plan.as_ref().is_some_and(is_tested) {
            false => Ok(shown),
            true => Err(Failure::usage(
                format!("{} is the file under test: its gold would be shown", spec.notes.display()),
                "take the training or the validation set for --exemplars",
            )),
        }
    }

    /// Refuses exemplars where none are shown, and none where some are.
    pub(super) fn refuse_other_exemplars(&self) -> Result<(), Failure> {
        let name = self.config.entry.name;
        match (&self.exemplars, self.config.entry.exemplars) {
            (Some(_), true) | (None, false) => Ok(()),
            (None, true) => Err(Failure::usage(
                format!("{name} shows exemplars, and no file of them was given"),
                "give --exemplars FILE --exemplars-format medec: MEDEC's training or validation set",
            )),
            (Some(_), false) => {
                Err(Failure::usage(format!("{name} shows no exemplars"), "leave --exemplars out"))
            }
        }
    }
}

impl ExemplarSpec {
    fn read(&self) -> Result<(Exemplars, ExemplarPlan), Failure> {
        if self.format.kind() != ItemKind::Notes {
            return Err(Failure::usage(
                format!("exemplars are notes, and {} holds questions", self.format),
                &format!("the formats of notes are {}", formats(ItemKind::Notes)),
            ));
        }
        let dataset = data::load(&self.notes, self.format).map_err(|error| {
            error.of_needed_rows(
                "fix the row; if all rows look like it, another --exemplars-format may be right",
            )
        })?;
        let mut files = Vec::new();
        let given = &self.files;
        let reasons: Option<ReasonsFile> = named("reasons", &given.reasons, &mut files)?;
        let (style, reasons) = match reasons {
            Some(ReasonsFile { style, reasons }) => (Some(style), reasons),
            None => (None, BTreeMap::new()),
        };
        let notes = dataset.items.iter().filter_map(|item| item.note().cloned());
        let mut pool = Pool::new(notes, &reasons);
        pool.lemmas = given.lemmas(&mut files)?;
        if pool.exemplars.is_empty() {
            return Err(Failure::usage(
                format!("{} has no note with gold", self.notes.display()),
                "exemplars are shown with their gold",
            ));
        }
        let vectors = match &given.encoder {
            None => None,
            Some(folder) => {
                let encoder = open_encoder(folder)?;
                let identity = toml::to_string(encoder.identity()).map_err(|error| {
                    Failure::usage(format!("{}: {error}", folder.display()), "take another encoder")
                })?;
                files.push(file("encoder", folder, sha256(identity))?);
                Some(Vectors::new(Box::new(move |texts| Ok(encoder.embed(texts)?))))
            }
        };
        let exemplars = Exemplars {
            style,
            vectors,
            spans: named("spans", &given.spans, &mut files)?,
            scorer: named("scorer", &given.scorer, &mut files)?,
            likeness: given.likeness(&mut files)?,
            leak: given.leak(&mut files)?,
            experts: given.experts(&mut files)?,
            pool,
        };
        let plan = ExemplarPlan {
            path: absolute(&self.notes)?,
            format: self.format.name().to_owned(),
            sha256: dataset.sha256,
            notes: exemplars.pool.exemplars.len(),
            files,
        };
        Ok((exemplars, plan))
    }
}

impl ExemplarFiles {
    fn lemmas(&self, files: &mut Vec<FilePlan>) -> Result<Lemmas, Failure> {
        let Some(path) = &self.lemmas else { return Ok(Lemmas::new()) };
        let text = String::from_utf8(outside::file(path)?).map_err(|_| {
            Failure::usage(format!("{} is not UTF-8", path.display()), "save it as UTF-8")
        })?;
        files.push(file("lemmas", path, sha256(&text))?);
        let lemma = |(line, pair): (usize, &str)| {
            let (word, lemma) = pair.split_once('\t').ok_or_else(|| {
                Failure::usage(
                    format!("{}, line {}: there is no tab", path.display(), line + 1),
                    "write a word, a tab and its lemma on each line",
                )
            })?;
            Ok((word.trim().to_lowercase(), lemma.trim().to_lowercase()))
        };
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines.map(lemma).collect()
    }

    fn likeness(&self, files: &mut Vec<FilePlan>) -> Result<Option<Likeness>, Failure> {
        let Some(folder) = &self.filter else { return Ok(None) };
        // As it is, for a threshold between two texts.
        let model = BertScoreModel { baseline: None, ..BertScoreModel::ENGLISH };
        let scorer = BertScore::load(folder, &model)?;
        files.push(file("filter", folder, folder_sum(folder)?)?);
        Ok(Some(Box::new(move |sentence, correction| {
            let pair = (sentence.to_owned(), correction.to_owned());
            let scores = scorer.score(&[pair])?;
            Ok(scores.first().map_or(0.0, |score| score.f))
        })))
    }

    fn leak(&self, files: &mut Vec<FilePlan>) -> Result<Option<Leak>, Failure> {
        let Some(path) = &self.leak else { return Ok(None) };
        let questions = data::load(path, Format::Medqa)
            .map_err(|error| error.of_needed_rows("fix the row, or name a file of MedQA"))?;
        files.push(file("leak", path, questions.sha256)?);
        let leak = Leak::new(questions.items.iter().filter_map(Item::question));
        match leak.is_empty() {
            false => Ok(Some(leak)),
            true => Err(Failure::usage(
                format!("{} has no question with an answer", path.display()),
                "name a file of MedQA, as us_5opt_train.jsonl",
            )),
        }
    }

    fn experts(&self, files: &mut Vec<FilePlan>) -> Result<Vec<Expert>, Failure> {
        let mut experts = Vec::new();
        for given in &self.experts {
            let (folder, trust) = expert(given);
            let trust = trust.map(str::to_owned);
            let is_share =
                |text: &String| text.parse().is_ok_and(|share: f64| (0.0..=1.0).contains(&share));
            if let Some(trust) = trust.as_ref().filter(|trust| !is_share(trust)) {
                return Err(Failure::usage(
                    format!("--experts {given}: {trust} is no share from 0 to 1"),
                    "write --experts RUN=0.61, the share of other notes that the run judged rightly",
                ));
            }
            let contents = Contents::read(folder)?;
            // Of several runs over the notes, the first is the expert.
            let mut opinions = BTreeMap::new();
            for note in contents.notes().into_values() {
                opinions.entry(note.item.clone()).or_insert_with(|| Opinion {
                    flag: note.flag,
                    sentence_id: note.sentence_id,
                    correction: note.correction.clone(),
                });
            }
            let entry = file("expert", folder, contents.items.head.clone())?;
            files.push(FilePlan { trust: trust.clone(), ..entry });
            experts.push(Expert { trust, opinions });
        }
        Ok(experts)
    }
}

impl TryFrom<&ExemplarPlan> for ExemplarSpec {
    /// A format that this version does not know.
    type Error = DataError;

    fn try_from(plan: &ExemplarPlan) -> Result<ExemplarSpec, DataError> {
        let named = |what: &str| {
            let mut files = plan.files.iter();
            files.find(|file| file.what == what).map(|file| PathBuf::from(&file.path))
        };
        let experts = plan.files.iter().filter(|file| file.what == "expert");
        Ok(ExemplarSpec {
            notes: plan.path.clone().into(),
            format: plan.format.parse()?,
            files: ExemplarFiles {
                reasons: named("reasons"),
                encoder: named("encoder"),
                spans: named("spans"),
                scorer: named("scorer"),
                lemmas: named("lemmas"),
                filter: named("filter"),
                leak: named("leak"),
                experts: experts
                    .map(|file| match &file.trust {
                        Some(trust) => format!("{}={trust}", file.path),
                        None => file.path.clone(),
                    })
                    .collect(),
            },
        })
    }
}

/// What a JSON file holds, where it was named.
fn named<T: DeserializeOwned>(
    what: &str,
    path: &Option<PathBuf>,
    files: &mut Vec<FilePlan>,
) -> Result<Option<T>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let bytes = outside::file(path)?;
    let value = serde_json::from_slice(&bytes).map_err(|error| {
        Failure::usage(format!("{} is no file of {what}: {error}", path.display()), expected(what))
    })?;
    files.push(file(what, path, sha256(&bytes))?);
    Ok(Some(value))
}

fn expected(what: &str) -> &'static str {
    match what {
        "reasons" => "`wardround reasons` writes one",
        "spans" => "write {\"note's id\": \"the words\"}",
        _ => "write [0.1, …], a number for each of a vector's, and the constant last",
    }
}

fn file(what: &str, path: &Path, sha256: String) -> Result<FilePlan, Failure> {
    Ok(FilePlan { what: what.to_owned(), path: absolute(path)?, sha256, trust: None })
}

/// The run directory of an expert as it is given, and the share behind `=`; a directory may have a `=` in its name.
pub fn expert(given: &str) -> (&Path, Option<&str>) {
    match given.rsplit_once('=') {
        Some((folder, share)) if !Path::new(given).is_dir() => (Path::new(folder), Some(share)),
        _ => (Path::new(given), None),
    }
}

#[cfg(test)]
mod tests;
