//! Whole runs of both systems over scripted replies, one note a branch, and what an independent script makes of their logs.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::analysis::figures;
use crate::data::{Item, Note};
use crate::diagnosis::Failure;
use crate::experiment::contents::Contents;
use crate::experiment::directory::Directory;
use crate::experiment::fixtures::searching_plan;
use crate::experiment::log::Log;
use crate::experiment::texts;
use crate::panel::recorder::Recorder;
use crate::panel::scripted::{Script, panel};
use crate::prompts::PromptSet;
use crate::record::{CallKey, CallLine, SearchLine};
use crate::systems::scripted::{WRONG, note};
use crate::systems::{SystemConfig, Task};

const RIGHT: &str = "Beta agonists were given for the attack.";

/// What each note is to show.
const NOTES: [&str; 12] = [
    "accepted",
    "mean",
    "minimum",
    "unread",
    "unknown",
    "exhausted",
    "none",
    "zero",
    "range",
    "fallback",
    "hostile",
    "blank",
];

struct Logging(Log);

impl Recorder for Logging {
    fn record(&self, call: &CallLine) -> Result<(), Failure> {
        Ok(self.0.call(call.clone())?)
    }

    fn record_search(&self, search: &SearchLine) -> Result<(), Failure> {
        // Times that no machine gives twice.
        let mut search = search.clone();
        (search.took.embed_ms, search.took.rerank_ms) = (1.25, 0.1);
        Ok(self.0.search(search)?)
    }
}

fn reply(key: &CallKey) -> String {
    let step =
        |action: Value| json!({"observation": "o", "thought": "t", "action": action}).to_string();
    let search = |query: &str| step(json!({"name": "search", "query": query}));
    let last = |sentence: &str, correction: &str| {
        step(json!({"name": "final_mistake", "sentence": sentence, "correction": correction}))
    };
    let review = |score: Value| {
        json!({"validity_score": 3, "final_reasoning": "r", "final_score": score}).to_string()
    };
    let answer = |id: i64, sentence: &str, corrected: &str| {
        json!({"is_error": true, "reasoning": "r", "sentence_id": id, "error_sentence": sentence, "corrected_sentence": corrected}).to_string()
    };
    let (item, round, sample) = (key.item.as_str(), key.round, key.sample);
    match (key.purpose.as_str(), item) {
        ("step", "exhausted") if round != 1 => search("asthma"),
        ("step", "unknown") if sample == 0 => step(json!("get_doc_by_id(\"7\")")),
        ("step", "unknown") if sample == 1 => "I would rather not.".to_owned(),
        ("step", "none") => step(json!("final_mistake(\"NA\", \"NA\")")),
        ("step", "hostile") if sample == 0 => step(json!("search(\"a) \\\"b\\\" (c\\nd\")")),
        ("step", "hostile") => {
            step(json!("final_mistake(\"Beta (\\\"blockers\\\"), were\\ngiven\", \"x]}\", \"1.1\")"))
        }
        ("step", "blank") if sample == 0 => search(" "),
        ("step", "mean") if round == 0 && sample > 0 => last("She went home.", "She stayed."),
        ("step", "minimum") if round == 0 && sample > 0 => last("NA", "NA"),
        ("step", _) if sample == 0 => search("asthma"),
        ("step", _) => last(WRONG, RIGHT),
        ("review", "mean") if round == 0 => review(json!("3.7")),
        ("review", "minimum") if round == 0 && sample == 4 => review(json!(2)),
        ("review", "unread") if round == 0 => "no".to_owned(),
        ("review", "unread") if sample > 1 => review(json!("high")),
        ("review", "exhausted") => review(json!(1)),
        ("review", "minimum") => review(json!(5)),
        ("review", _) => review(json!(4)),
        ("reflexion", _) => format!("Reflexion on turn {round}."),
        ("parse", "none") => json!({"is_error": false, "reasoning": "r", "sentence_id": -1, "error_sentence": "NA", "corrected_sentence": "NA"}).to_string(),
        ("parse", "zero") => answer(0, "A 30-year-old woman came with wheezing.", "A 30-year-old woman came with stridor."),
        ("parse", "range") => answer(17, WRONG, RIGHT),
        ("parse", "mean") => answer(2, WRONG, "She went home."),
        ("parse", "fallback") => "The second sentence is wrong.".to_owned(),
        ("parse", _) => answer(1, WRONG, RIGHT),
        (other, _) => panic!("{other}"),
    }
}

/// Runs a system over all notes, and writes its run directory.
fn write(path: &Path, system: &str, pairs: &[&str]) -> Contents {
    let config = SystemConfig::parse(system, pairs).unwrap();
    let notes = NOTES.map(|id| Note { id: id.to_owned(), ..note() });
    let items: Vec<Item> = notes.into_iter().map(Item::from).collect();
    let mut plan = searching_plan();
    (plan.system, plan.runs) = (system.to_owned(), 1);
    plan.settings = config.table.clone();
    plan.dataset.format = "notes".to_owned();
    plan.dataset.items = NOTES.map(str::to_owned).to_vec();
    plan.dataset.items_sha256 = texts::sha256(&items).unwrap();
    let prompts = PromptSet::embedded();
    plan.corpus.as_mut().unwrap().passage = config.passage(&prompts).unwrap();
    let ids = plan.corpus.as_ref().unwrap().searched.corpus.clone();

    let log = Log::start(Directory::create(path, &plan, &items).unwrap()).unwrap();
    let agents: Vec<String> = config.slots().into_iter().map(|slot| slot.agent).collect();
    let (mut panel, _) = panel(&agents, Script::new(|key, _| reply(key)));
    panel.retriever = Some(std::sync::Arc::new(crate::retrieval::scripted::Scripted::of(ids)));
    panel.recorder = Box::new(Logging(log.clone()));
    let system = config.build(&prompts, &Default::default()).unwrap();
    for item in &items {
        let task = Task { panel: &panel, dataset: "medqa", item, run: 1 };
        log.item(system.answer(&task).unwrap()).unwrap();
    }
    drop(panel);
    log.finish().unwrap();
    let contents = Contents::read(path).unwrap();
    figures::write(&contents, 1).unwrap();
    contents
}

#[test]
fn what_searching_came_to_is_counted() {
    let out = tempfile::tempdir().unwrap();
    let contents = write(out.path(), "medreflex", &["reflexion_turns=3"]);
    let read = figures::Figures::of(&contents);
    let search = read.notes.unwrap().search.unwrap();
    assert_eq!((search.exhausted, search.lost_turns, search.unread_reviews), (1, 3, 8));
    assert_eq!((search.searches, search.mismatches), (contents.searches.records.len(), 1));
    assert_eq!(search.shown["ward"], 2 * search.searches);
    assert_eq!((search.embed_ms.mean, search.embed_ms.std), (1.25, Some(0.0)));
    assert!(search.seconds_a_step.std.is_some());
    assert!(search.turns.mean > 1.0);
}

#[test]
#[ignore = "needs python3 of 3.11 or later"]
fn with_python_flags_ids_corrections_and_turns_follow_from_the_logs_alone() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recompute_notes.py");
    for (system, pairs) in [
        ("medreflex", &["reflexion_turns=3"][..]),
        ("medreflex", &["avg_threshold=4.5", "min_threshold=2", "reviewers=3", "react_turns=2"]),
        ("medreact", &["react_turns=3"]),
    ] {
        let out = tempfile::tempdir().unwrap();
        let contents = write(out.path(), system, pairs);
        let recompute = || {
            let mut python = Command::new("python3");
            python.arg("-B").arg(&script).arg(out.path()).output().unwrap()
        };
        let output = recompute();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{system} {pairs:?}: {output:?}");
        assert!(said.contains("1 runs, 12 notes, "), "{said}");

        // A passage that nobody found, and a search that nobody made.
        let path = out.path().join("searches.jsonl");
        let whole = fs_err::read_to_string(&path).unwrap();
        fs_err::write(&path, whole.replacen("relieve", "relieves", 1)).unwrap();
        let output = recompute();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("searches.jsonl, line 1"), "{said}");
        assert!(contents.searches.records.len() > 5);
    }
}
