//! One question or note, worked on by a system whose models are loaded already: nothing is read, loaded or written for it.
//!
//! A case gives the bytes that `wardround run` gives on the same models with the same seed, where the file of items is named
//! [`DATASET`] and the item has the id that [`question`] and [`note`] give it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use serde_json::{Map, Value, json};

use super::exemplars::{ExemplarPlan, ExemplarSets, Shown};
use super::library::Library;
use super::plan::{Asked, MemberPlan};
use super::spec::Spec;
use crate::data::{self, Choice, DataError, Item, ItemKind, Question};
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::panel::backbone::Backbone;
use crate::panel::{DecodingMode, Member, Panel, PanelError, SamplingChoice};
use crate::prompts::PromptSet;
use crate::record::{CallLine, ItemLine, Language, SearchLine, Usage};
use crate::retrieval::Retrieve;
use crate::systems::{System, SystemConfig, Task};

/// What the calls and lines of cases are filed under.
pub const DATASET: &str = "serve";
/// Of the sum of an item's text.
const ID_DIGITS: usize = 16;

/// The question as an item. Its id is the first 16 hexadecimal digits of the SHA-256 of
/// `{"question":"…","options":{"A":"…","B":"…"}}`, without blanks, characters beyond ASCII as they are.
///
/// `options` are a list, or an object whose keys are the letters from A on.
///
/// # Errors
/// An empty text; fewer than 2 options, more than 10, or other letters.
pub fn question(question: &str, options: &Value) -> Result<Item, DataError> {
    let read = data::question(&json!({"question": question, "options": options}))?;
    let letter = |choice: &Choice| (choice.letter.to_string(), Value::from(choice.text.as_str()));
    let options: Map<String, Value> = read.options.iter().map(letter).collect();
    let text = json!({"question": read.question, "options": options}).to_string();
    Ok(Question { id: id_of(&text), ..read }.into())
}

/// The note as an item. Its id is the first 16 hexadecimal digits of the SHA-256 of its text; without a language it has that of
/// its script.
///
/// # Errors
/// An empty text.
pub fn note(text: &str, language: Option<Language>) -> Result<Item, DataError> {
    let id = id_of(text);
    let dataset = data::note(Path::new(&id), text.as_bytes().to_vec())?;
    let note = dataset.items.iter().find_map(Item::note).cloned();
    let (path, kind) = (id.into(), ItemKind::Notes);
    let mut note = note.ok_or(DataError::Empty { path, kind, notices: Vec::new() })?;
    note.language = language.unwrap_or(note.language);
    Ok(note.into())
}

fn id_of(text: &str) -> String {
    sha256(text)[..ID_DIGITS].to_owned()
}

/// A system whose agents have their models. Any number of cases may be worked on at once.
pub struct Seated {
    pub protocol: SystemConfig,
    /// In panel order.
    pub seats: Vec<AgentModel>,
    /// Over the system's prompts, as they were after any override.
    pub prompts_sha256: String,
    /// The sums of what it searches and shows; none of most.
    pub files: Vec<String>,
    decoding: DecodingMode,
    system: Box<dyn System>,
    retriever: Option<Arc<dyn Retrieve>>,
}

/// An agent and its model.
pub struct AgentModel {
    pub agent: String,
    pub backbone: Arc<Backbone>,
    sampling: SamplingChoice,
}

/// How a case is worked on.
pub struct CaseOptions {
    /// Of the run; the seeds of the calls come of it.
    pub seed: u64,
    /// Counted from 1: other runs of an item have other seeds.
    pub run: u32,
    /// Whose computed prompts the case may share; `None`: those of all that have none.
    pub salt: Option<[u8; 16]>,
    /// Set from outside to stop: calls in flight are dropped.
    pub stop: Arc<AtomicBool>,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Worked {
    /// As a run's `items.jsonl` has it, but for its place in the chain.
    pub line: ItemLine,
    /// In the order in which they finished.
    pub calls: Vec<CallLine>,
    pub searches: Vec<SearchLine>,
    /// Of all calls.
    pub usage: Usage,
}

impl Spec {
    /// The prompts of the system's cases, which are known before any model is loaded.
    ///
    /// # Errors
    /// Exemplars where none are shown, none where some are; runs as experts, which have not read the case; a directory of prompts that
    /// cannot be read.
    pub fn case_prompts(&self) -> Result<PromptSet, Failure> {
        self.refuse_other_exemplars()?;
        if self.exemplars.as_ref().is_some_and(|shown| !shown.experts.is_empty()) {
            return Err(Failure::usage(
                "--experts are runs over the same notes, and have not read those that are still to come",
                "leave --experts out, or use `wardround run`",
            ));
        }
        Ok(PromptSet::open(self.prompts.as_deref())?)
    }

    /// Gives every slot of the system its model; `model` knows the loaded ones by the names that the spec has for them.
    ///
    /// # Errors
    /// A model that is not loaded; prompts, exemplars or a corpus that cannot be used.
    pub fn seat(
        &self,
        model: impl Fn(&str) -> Option<Arc<Backbone>>,
        library: Option<&Library>,
        sets: &mut ExemplarSets,
    ) -> Result<Seated, Failure> {
        let prompts = self.case_prompts()?;
        let Shown { exemplars, plan } = self.read_exemplars(sets, None)?;
        let searched = library.iter().flat_map(|library| library.searched.corpus.iter().cloned());
        let shown = plan.iter().flat_map(ExemplarPlan::sums);
        let thinking = self.protocol.decoding.thinking;
        let slots = self.protocol.slots();
        let seats = slots.into_iter().zip(self.slot_models()?).map(|(slot, name)| {
            let backbone = model(name).ok_or_else(|| {
                Failure::usage(format!("{name} is not loaded"), "name a model that is")
            })?;
            let sampling = self.sampling_of(&slot.agent);
            let asked = Asked { thinking, sampling };
            let plan = MemberPlan::local(&slot.agent, &backbone.description, asked);
            Ok(AgentModel { agent: slot.agent, backbone, sampling: plan.sampling() })
        });
        Ok(Seated {
            seats: seats.collect::<Result<_, Failure>>()?,
            prompts_sha256: prompts.sha256(self.protocol.prompts()),
            files: searched.chain(shown).collect(),
            decoding: self.decoding,
            system: self.protocol.build(&prompts, &exemplars)?,
            retriever: library.map(Library::open).transpose()?,
            protocol: self.protocol.clone(),
        })
    }
}

impl Seated {
    /// Works on an item, and waits until it is done. `on_call` is told of every finished call.
    ///
    /// # Errors
    /// When a call could not be made; an item of a kind that the system does not take; a stop.
    pub fn work(
        &self,
        item: &Item,
        options: CaseOptions,
        on_call: impl Fn(&CallLine) + Send + Sync + 'static,
    ) -> Result<Worked, PanelError> {
        self.work_in(DATASET, item, options, on_call)
    }

    /// The same on an item of a dataset of this name, on which the seeds of the calls depend.
    ///
    /// # Errors
    /// See [`Seated::work`].
    pub fn work_in(
        &self,
        dataset: &str,
        item: &Item,
        options: CaseOptions,
        on_call: impl Fn(&CallLine) + Send + Sync + 'static,
    ) -> Result<Worked, PanelError> {
        let ((caller, calls), (searcher, searches)) = (channel(), channel());
        let member = |seat: &AgentModel| Member {
            agent: seat.agent.clone(),
            source: seat.backbone.clone(),
            sampling: seat.sampling,
        };
        let panel = Panel {
            members: self.seats.iter().map(member).collect(),
            recorder: Box::new((caller, searcher)),
            run_seed: options.seed,
            decoding: self.decoding,
            thinking: self.protocol.decoding.thinking,
            max_tokens: self.protocol.decoding.max_tokens,
            ignore_eos: false,
            salt: options.salt,
            stop: options.stop,
            retriever: self.retriever.clone(),
            on_call: Box::new(on_call),
        };
        let task = Task { panel: &panel, dataset, item, run: options.run };
        let line = self.system.answer(&task)?;
        let calls: Vec<CallLine> = calls.try_iter().collect();
        let usage = calls.iter().fold(Usage::default(), |sum, call| sum.and(call.usage));
        Ok(Worked { line, calls, searches: searches.try_iter().collect(), usage })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::data::Format;
    use crate::experiment::directory::Directory;
    use crate::experiment::driver::{Driver, Unobserved};
    use crate::experiment::exemplars::ExemplarSpec;
    use crate::experiment::models::Models;
    use crate::model::Family;
    use crate::panel::Source;
    use crate::record::CallKey;
    use crate::synth::{Recipe, Shape, write_checkpoint};

    /// A spec on tiny models, their loaded backbones by name, and the scratch folder they lie in.
    struct Bench {
        scratch: tempfile::TempDir,
        names: Vec<String>,
        loaded: Vec<Arc<Backbone>>,
    }

    impl Bench {
        fn new() -> Bench {
            let scratch = tempfile::tempdir().unwrap();
            let names = [Family::Gemma3, Family::Llama, Family::Qwen3].map(|family| {
                let path = scratch.path().join(family.name());
                let recipe = Recipe { family, shape: Shape::Tiny, seed: 1, tokenizer: None };
                write_checkpoint(&recipe, &path).unwrap();
                path.display().to_string()
            });
            let spec = Spec::new(SystemConfig::named("medmad").unwrap(), "x", Format::Mcq).unwrap();
            let models =
                Models::describe(&names, &spec.hardware, &spec.hub, |_| Ok(Default::default()));
            let loaded = models.unwrap().start_backbones().unwrap();
            Bench { scratch, names: names.to_vec(), loaded }
        }

        fn spec(&self, system: &str, file: &str, format: Format) -> Spec {
            let system =
                SystemConfig::parse(system, &["record_chars=24", "max_tokens=60"]).unwrap();
            let panel = self.names[..system.models()].to_vec();
            let path = self.scratch.path().join(file);
            Spec { panel, seed: 7, runs: 2, ..Spec::new(system, path, format).unwrap() }
        }

        fn seat(&self, spec: &Spec) -> Seated {
            let model = |name: &str| {
                let place = self.names.iter().position(|own| own == name)?;
                Some(self.loaded[place].clone())
            };
            spec.seat(model, None, &mut ExemplarSets::default()).unwrap()
        }

        /// The lines and calls of a real run of the file, in the order of their keys.
        fn run(&self, spec: Spec, out: &str) -> (Vec<ItemLine>, Vec<CallLine>) {
            let models = spec.describe_models().unwrap();
            let inputs = spec.read().unwrap();
            let run = spec.resolve(inputs, &models).unwrap();
            let out = self.scratch.path().join(out);
            let directory = Directory::create(&out, &run.plan, &run.texts).unwrap();
            let sources = self.loaded.iter().map(|backbone| backbone.clone() as Source).collect();
            let driver = Driver::new(sources, Arc::new(Unobserved), Arc::default());
            let contents = driver.execute(run, directory, &out).unwrap().contents;
            let items = contents.outcomes().into_values().cloned().map(bare_item).collect();
            (items, sorted(contents.calls.records))
        }
    }

    /// Without its place in a chain.
    fn bare_item(line: ItemLine) -> ItemLine {
        let mut value = json!(line);
        value["prev"] = "".into();
        value["hash"] = "".into();
        serde_json::from_value(value).unwrap()
    }

    /// By key, without what a log and a clock add.
    fn sorted(calls: Vec<CallLine>) -> Vec<CallLine> {
        let mut calls: Vec<CallLine> = calls
            .into_iter()
            .map(|mut call| {
                (call.seq, call.elapsed_ms, call.usage.cached_tokens) = (0, 0, 0);
                (call.prev, call.hash) = (String::new(), String::new());
                call
            })
            .collect();
        calls.sort_by_key(CallLine::key);
        calls
    }

    fn work(seated: &Seated, item: &Item, run: u32) -> Worked {
        let options = CaseOptions { seed: 7, run, salt: None, stop: Arc::default() };
        seated.work(item, options, |_| {}).unwrap()
    }

    #[test]
    fn a_case_gives_the_bytes_of_a_run_and_cases_share_the_models() {
        let bench = Bench::new();
        let text = "Fever for two days. Malaria is treated with aspirin.";
        let asked =
            question("Which vitamin is retinol?", &json!(["Vitamin A", "Vitamin D"])).unwrap();
        let written = note(text, None).unwrap();
        let id = asked.id();
        let questions = json!({"id": id, "question": "Which vitamin is retinol?", "options": {"A": "Vitamin A", "B": "Vitamin D"}});
        let notes = json!({"id": written.id(), "text": text});
        let gold = json!({"flag": 1, "sentence_id": 1, "correction": "Asthma is treated with salbutamol."});
        let wrong = "0 Wheezing at night.\n1 Asthma is treated with insulin.";
        let exemplar = json!({"id": "x", "text": wrong, "gold": gold});
        let folders = [("questions", questions), ("notes", notes), ("shown", exemplar)];
        for (folder, line) in folders {
            let folder = bench.scratch.path().join(folder);
            fs_err::create_dir(&folder).unwrap();
            fs_err::write(folder.join("serve.jsonl"), line.to_string() + "\n").unwrap();
        }
        for (system, item, file, format) in [
            ("medmad", &asked, "questions/serve.jsonl", Format::Mcq),
            ("medguards", &written, "notes/serve.jsonl", Format::Notes),
            ("edinburgh", &written, "notes/serve.jsonl", Format::Notes),
        ] {
            let mut spec = bench.spec(system, file, format);
            let shown = bench.scratch.path().join("shown/serve.jsonl");
            let shows = spec.protocol.entry.exemplars;
            spec.exemplars = shows.then(|| ExemplarSpec::of(shown, Format::Notes));
            let seated = bench.seat(&spec);
            let (items, calls) = bench.run(spec, &format!("out-{system}"));
            assert_eq!(seated.files.len(), usize::from(shows), "{system}");
            // Both runs at once, on the backbones that the run used.
            let cases: Vec<Worked> = std::thread::scope(|scope| {
                let runs = [1, 2].map(|run| {
                    scope.spawn({
                        let (seated, item) = (&seated, item);
                        move || work(seated, item, run)
                    })
                });
                runs.map(|handle| handle.join().unwrap()).into()
            });
            let lines: Vec<ItemLine> = cases.iter().map(|case| case.line.clone()).collect();
            assert_eq!(lines, items, "{system}");
            let prompts: usize = cases[0].calls.iter().map(|call| call.usage.prompt_tokens).sum();
            assert_eq!(cases[0].usage.prompt_tokens, prompts);
            let own = cases.into_iter().flat_map(|case| case.calls).collect();
            assert_eq!(sorted(own), calls, "{system}");
        }
    }

    #[test]
    fn a_stop_ends_a_case_and_calls_are_told_of_as_they_finish() {
        let bench = Bench::new();
        let seated = bench.seat(&bench.spec("medmad", "none.jsonl", Format::Mcq));
        let item = question("Which?", &json!(["one", "two", "three"])).unwrap();
        let (stop, told) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let on_call = {
            let (stop, told) = (stop.clone(), told.clone());
            move |_: &CallLine| {
                told.fetch_add(1, Ordering::Relaxed);
                stop.store(true, Ordering::Relaxed);
            }
        };
        let options = CaseOptions { seed: 1, run: 1, salt: None, stop };
        let error = seated.work(&item, options, on_call).unwrap_err();
        assert!(matches!(error, PanelError::Interrupted), "{error}");
        assert!(told.load(Ordering::Relaxed) >= 1);
        let whole = work(&seated, &item, 1);
        let keys: Vec<CallKey> = whole.calls.iter().map(CallLine::key).collect();
        assert!(keys.iter().all(|key| key.dataset == DATASET && key.item == item.id()));
    }

    #[test]
    fn an_item_is_named_by_the_sum_of_its_text() {
        let listed = question("Wo?", &json!(["Fuß", "Arm"])).unwrap();
        let lettered = question("Wo?", &json!({"A": "Fuß", "B": "Arm"})).unwrap();
        assert_eq!(listed, lettered);
        let text = r#"{"question":"Wo?","options":{"A":"Fuß","B":"Arm"}}"#;
        assert_eq!(listed.id(), &sha256(text)[..16]);
        let well = note("Well.", Some(Language::Chinese)).unwrap();
        assert_eq!(well.id(), &sha256("Well.")[..16]);
        assert_eq!(well.note().unwrap().language, Language::Chinese);
        let error = question("Which?", &json!(["one"])).unwrap_err();
        assert!(error.problem().starts_with("field `options`"), "{error}");
        assert!(note(" \n", None).is_err());
    }

    #[test]
    fn exemplars_are_refused_where_they_are_missing_too_many_or_of_other_runs() {
        let spec = |system: &str, shown: Option<ExemplarSpec>| {
            let system = SystemConfig::named(system).unwrap();
            Spec { exemplars: shown, ..Spec::new(system, "x", Format::Notes).unwrap() }
        };
        let refusal = |spec: Spec| {
            spec.seat(|_| None, None, &mut ExemplarSets::default())
                .map(|_| ())
                .unwrap_err()
                .to_string()
        };
        let shown = |experts: &[&str]| {
            let experts = experts.iter().map(ToString::to_string).collect();
            Some(ExemplarSpec { experts, ..ExemplarSpec::of("x.jsonl", Format::Notes) })
        };
        let error = refusal(spec("edinburgh", None));
        assert!(error.contains("edinburgh shows exemplars"), "{error}");
        let error = refusal(spec("base-llm", shown(&[])));
        assert!(error.contains("base-llm shows no exemplars"), "{error}");
        let error = refusal(spec("hse-nlp", shown(&["some-run"])));
        assert!(error.contains("--experts"), "{error}");
        let error = refusal(spec("base-llm", None));
        assert!(error.ends_with("is not loaded"), "{error}");
    }
}
