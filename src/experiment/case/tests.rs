//! Cases give the bytes of runs, and end when they are told to.

use super::*;
use crate::data::Format;
use crate::experiment::directory::Directory;
use crate::experiment::driver::Driver;
use crate::experiment::link::Link;
use crate::experiment::models::{Loaded, Models};
use crate::model::Family;
use crate::panel::SharedResponder;
use crate::record::CallKey;
use crate::synth::{Recipe, Shape, write_checkpoint};

fn choices(texts: &[&str]) -> Vec<Choice> {
    let choice = |(letter, text): (char, &&str)| Choice { letter, text: (*text).to_owned() };
    ('A'..).zip(texts).map(choice).collect()
}

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
        let spec = Spec::new(SystemConfig::parse::<&str>("medmad", &[]).unwrap(), "x", Format::Mcq)
            .unwrap();
        let models =
            Models::describe(&names, &spec.hardware, &spec.hub, |_| Ok(Default::default()));
        let loaded = models.unwrap().start().unwrap().backbones;
        Bench { scratch, names: names.to_vec(), loaded }
    }

    fn spec(&self, system: &str, file: &str, format: Format) -> Spec {
        let system = SystemConfig::parse(system, &["record_chars=24", "max_tokens=60"]).unwrap();
        let panel = self.names[..system.models()].to_vec();
        let path = self.scratch.path().join(file);
        Spec { panel, seed: 7, runs: 2, ..Spec::new(system, path, format).unwrap() }
    }

    fn seat(&self, spec: &Spec) -> Seated {
        let model = |name: &str| {
            let place = self.names.iter().position(|own| own == name)?;
            Some(self.loaded[place].clone())
        };
        spec.seat(model).unwrap()
    }

    /// The lines and calls of a real run of the file, in the order of their keys.
    fn run(&self, spec: Spec, out: &str) -> (Vec<ItemLine>, Vec<CallLine>) {
        let (run, _) = spec.prepare().unwrap();
        let out = self.scratch.path().join(out);
        let directory = Directory::create(&out, &run.plan, &run.items).unwrap();
        let models = self.loaded.iter().map(|backbone| backbone.clone() as SharedResponder);
        let loaded = Loaded { models: models.collect(), ..Loaded::default() };
        let (observer, stop) = (Arc::new(()), Arc::default());
        let driver = Driver { loaded, observer, stop, folder: out.clone() };
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
    calls.sort_by_key(Link::key);
    calls
}

fn work(seated: &Seated, item: &Item, run: u32) -> Worked {
    let options = CaseOptions { seed: 7, run, ..CaseOptions::default() };
    seated.work(item, options).unwrap()
}

#[test]
fn a_case_gives_the_bytes_of_a_run_and_cases_share_the_models() {
    let bench = Bench::new();
    let text = "Fever for two days. Malaria is treated with aspirin.";
    let asked = question("Which vitamin is retinol?", choices(&["Vitamin A", "Vitamin D"]));
    let written = note(text);
    let id = asked.id();
    let questions = json!({"id": id, "question": "Which vitamin is retinol?", "options": {"A": "Vitamin A", "B": "Vitamin D"}});
    let notes = json!({"id": written.id(), "text": text});
    let folders = [("questions", questions), ("notes", notes)];
    for (folder, line) in folders {
        let folder = bench.scratch.path().join(folder);
        fs_err::create_dir(&folder).unwrap();
        fs_err::write(folder.join("serve.jsonl"), line.to_string() + "\n").unwrap();
    }
    for (system, item, file, format) in [
        ("medmad", &asked, "questions/serve.jsonl", Format::Mcq),
        ("medguards", &written, "notes/serve.jsonl", Format::Notes),
    ] {
        let spec = bench.spec(system, file, format);
        let seated = bench.seat(&spec);
        let (items, calls) = bench.run(spec, &format!("out-{system}"));
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
fn a_stop_ends_a_case_and_calls_are_filed_under_its_item() {
    let bench = Bench::new();
    let seated = bench.seat(&bench.spec("medmad", "none.jsonl", Format::Mcq));
    let item = question("Which?", choices(&["one", "two", "three"]));
    let stop = Arc::new(AtomicBool::new(true));
    let options = CaseOptions { seed: 1, run: 1, stop, ..CaseOptions::default() };
    let error = seated.work(&item, options).unwrap_err();
    assert!(matches!(error, PanelError::Interrupted), "{error}");
    let whole = work(&seated, &item, 1);
    let keys: Vec<CallKey> = whole.calls.iter().map(Link::key).collect();
    assert!(keys.iter().all(|key| key.dataset == DATASET && key.item == item.id()));
}

#[test]
fn an_item_is_named_by_the_sum_of_its_text() {
    let asked = question("Wo?", choices(&["Fuß", "Arm"]));
    let text = r#"{"question":"Wo?","options":{"A":"Fuß","B":"Arm"}}"#;
    assert_eq!(asked.id(), &sha256(text)[..16]);
    assert_eq!(note("Well.").id(), &sha256("Well.")[..16]);
}
