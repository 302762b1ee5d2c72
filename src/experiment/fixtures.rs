//! A small run for the tests of this module: three items, two runs, two calls each.

use std::ops::DerefMut;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::chain::by_key;
use super::compare::compare_all;
use super::contents::Contents;
use super::directory::Directory;
use super::error::RunError;
use super::log::Log;
use super::plan::{CorpusPlan, DatasetPlan, EnginePlan, Found, Host, HostPlan, MemberPlan, Plan};
use super::results::Results;
use super::spec::Spec;
use super::texts;
use crate::data::{Choice, Format, Item, Question};
use crate::panel::DecodingMode;
use crate::record::{
    AnswerLine, CallLine, FinishReason, ItemLine, Message, NoteLine, Parse, Passage, Reply,
    RetrievedChunk, RoundLine, SamplingLine, Schema, SearchLine, SearchTimes, SourceCounts, Stage,
    Usage,
};
use crate::retrieval::Searched;
use crate::systems::SystemConfig;

pub const ITEMS: [&str; 3] = ["q1", "q2", "q3"];

pub fn plan() -> Plan {
    let member = |agent: &str| MemberPlan {
        agent: agent.to_owned(),
        backbone: "tiny".to_owned(),
        repository: None,
        revision: None,
        weights_sha256: "00".repeat(32),
        config_sha256: "44".repeat(32),
        tokenizer_sha256: "11".repeat(32),
        template_sha256: "22".repeat(32),
        family: "qwen3".to_owned(),
        dtype: "f32".to_owned(),
        quantisation: "none".to_owned(),
        kv_dtype: "f32".to_owned(),
        thinking: Some(false),
        temperature: Some(0.6),
        top_k: Some(20),
        top_p: Some(0.95),
        min_p: None,
        repetition_penalty: None,
        seed: None,
        max_tokens: None,
        eos_ids: vec![1, 2],
        context: 2048,
    };
    let found = Found {
        version: "0.1.0".to_owned(),
        system: "medmad".to_owned(),
        synthetic: true,
        seed: 42,
        runs: 2,
        decoding: DecodingMode::Grammar,
        prompts_sha256: "5".repeat(64),
        prompts: None,
        settings: toml::Table::from_iter([("t_max".to_owned(), 3.into())]),
        system_file: None,
        dataset: DatasetPlan {
            name: "medqa".to_owned(),
            format: "medqa".to_owned(),
            sha256: "33".repeat(32),
            items_sha256: texts::sha256(&texts(&ITEMS)).unwrap(),
            items: ITEMS.map(str::to_owned).to_vec(),
        },
        panel: vec![member("sym"), member("ddx")],
        corpus: None,
        exemplars: None,
        device_kind: "x86_64+avx2".to_owned(),
    };
    let host = Host {
        created_at: "2026-03-01T09:30:00Z".to_owned(),
        engine: EnginePlan {
            device: "cpu".to_owned(),
            threads: 2,
            max_batch: 16,
            draft: 0,
            max_in_flight: 8,
            ..EnginePlan::default()
        },
        machine: HostPlan {
            name: "ward".to_owned(),
            system: "linux".to_owned(),
            cpu: "x86_64".to_owned(),
            cores: 2,
            memory_bytes: 1 << 33,
            sandbox: None,
        },
    };
    let config = SystemConfig::parse::<&str>("medmad", &[]).unwrap();
    let asked = Spec::new(config, "questions.jsonl", Format::Medqa).unwrap();
    Plan { schema: Schema, found, asked: Some(Box::new(asked)), host }
}

/// As [`plan`], of a system that searches.
pub fn searching_plan() -> Plan {
    let corpus = CorpusPlan {
        searched: Searched {
            corpus: vec!["77".repeat(32)],
            contents: vec![SourceCounts { label: "ward".to_owned(), documents: 3, chunks: 5 }],
            ..Searched::default()
        },
        passage: "{title}: {text}".to_owned(),
        ..CorpusPlan::default()
    };
    let mut plan = plan();
    plan.corpus = Some(corpus);
    plan
}

pub fn search(item: &str, run: u32, step: u32) -> SearchLine {
    let chunk = format!("ward/1#{step}");
    SearchLine {
        dataset: "medqa".to_owned(),
        run,
        item: item.to_owned(),
        step,
        query: "fever in children".to_owned(),
        corpus: vec!["77".repeat(32)],
        retrieved: vec![RetrievedChunk { chunk: chunk.clone(), score: 0.1 }],
        shown: vec![Passage {
            chunk,
            source: "ward".to_owned(),
            title: "Fever".to_owned(),
            paragraph: step,
            score: 0.85,
            sha256: "88".repeat(32),
            text: Some("Fluids first.".to_owned()),
            ..Passage::default()
        }],
        took: SearchTimes { embed_ms: 1.5, scan_ms: 0.25, rerank_ms: 3.0 },
        ..SearchLine::default()
    }
}

/// A question for each id.
pub fn texts(ids: &[impl AsRef<str>]) -> Vec<Item> {
    let choice = |(letter, text): (char, &str)| Choice { letter, text: text.to_owned() };
    let question = |id: &str| Question {
        id: id.to_owned(),
        question: format!("Which, {id}?"),
        options: [('A', "one"), ('B', "two")].map(choice).to_vec(),
        gold: gold(id).and_then(|gold| gold.chars().next()),
        ..Question::default()
    };
    let texts = ids.iter().map(|id| Item::Question(question(id.as_ref())));
    texts.collect()
}

/// A log in a new directory, with a text for every item of the plan.
pub fn start(path: &Path, plan: &Plan) -> Log {
    start_with(path, plan, &texts(&plan.dataset.items))
}

/// The same with these texts, which are the plan's items.
pub fn start_with(path: &Path, plan: &Plan, texts: &[Item]) -> Log {
    let mut plan = plan.clone();
    plan.dataset.items = texts.iter().map(|text| text.id().to_owned()).collect();
    plan.dataset.items_sha256 = texts::sha256(texts).unwrap();
    Log::start(Directory::create(path, &plan, texts).unwrap()).unwrap()
}

pub fn call(item: &str, run: u32, agent: &str) -> CallLine {
    let role =
        |role: &str| Message::new(role, format!("You are \"{agent}\".\nFièvre à 39 °C?\u{7}"));
    CallLine {
        seq: 0,
        dataset: "medqa".to_owned(),
        run,
        item: item.to_owned(),
        agent: agent.to_owned(),
        round: 0,
        purpose: "initial".to_owned(),
        sample: 0,
        stage: Stage::Initial,
        backbone: "tiny".to_owned(),
        request: "66".repeat(32),
        answered_by: None,
        messages: vec![role("system"), role("user")],
        sampling: SamplingLine {
            temperature: Some(0.6),
            top_k: Some(20),
            top_p: Some(0.95),
            min_p: None,
            repetition_penalty: Some(1.1),
            max_tokens: Some(64),
            constrained: true,
            not_sent: Vec::new(),
        },
        seed: (1 << 53) - 1,
        text: "{\"answer\":\"B\"}".to_owned(),
        tokens: vec![0, 262_143, 7],
        record: Reply::of(json!({"answer": "B", "confidence": 0.85, "fit": [1, 2.5e-7]})),
        parse: Parse::Ok,
        usage: Usage {
            prompt_tokens: 100,
            cached_tokens: 32,
            completion_tokens: 20,
            forced_tokens: 6,
        },
        finish_reason: FinishReason::Stop,
        elapsed_ms: 12,
        prev: String::new(),
        hash: String::new(),
    }
}

fn gold(item: &str) -> Option<&'static str> {
    match item {
        "q1" => Some("B"),
        "q2" => Some("C"),
        _ => None,
    }
}

/// `q1` is right, `q2` wrong, any other without gold.
pub fn item(item: &str, run: u32) -> AnswerLine {
    let gold = gold(item);
    AnswerLine {
        dataset: "medqa".to_owned(),
        run,
        item: item.to_owned(),
        gold: gold.map(str::to_owned),
        rounds: vec![RoundLine {
            round: 0,
            stage: Stage::Initial,
            agents: vec!["sym".to_owned(), "ddx".to_owned()],
            labels: vec![],
            answers: vec!["B".to_owned(), "B".to_owned()],
            confidences: vec![0.85, 1.0 / 3.0],
            weights: vec![0.7, 0.1],
            aggregate: "B".to_owned(),
            brief: String::new(),
        }],
        answer: "B".to_owned(),
        correct: gold.map(|gold| gold == "B"),
        team_confidence: Some(0.1 + 0.2),
        rationale: "…".to_owned(),
        rounds_run: 1,
        calls: 2,
        tie: item == "q2",
        ..AnswerLine::default()
    }
}

pub fn failed_item(name: &str, run: u32) -> AnswerLine {
    AnswerLine {
        answer: String::new(),
        correct: gold(name).map(|_| false),
        rounds: vec![],
        rounds_run: 0,
        error: Some("the prompt has 9,000 tokens, the context holds 2,048".to_owned()),
        ..item(name, run)
    }
}

/// Logs what `plan` plans.
pub fn log_everything(log: &Log) {
    for run in 0..2 {
        for name in ITEMS {
            log.call(call(name, run, "sym")).unwrap();
            log.call(call(name, run, "ddx")).unwrap();
            log.item(item(name, run)).unwrap();
        }
    }
}

/// A run that was stopped before its results were written.
pub fn write_unfinished(path: &Path) {
    let log = start(path, &plan());
    log_everything(&log);
    log.finish().unwrap();
}

pub fn write_finished(path: &Path) -> Results {
    write_unfinished(path);
    write_results(path, 1234).unwrap()
}

/// Writes the results of a finished run, without figures.
pub fn write_results(path: &Path, elapsed_ms: u64) -> Result<Results, RunError> {
    Results::write(&Contents::read(path)?, serde_json::Map::new(), elapsed_ms)
}

/// All that differs in the logs of two run directories.
pub fn all_differences(left: &Path, right: &Path) -> Vec<String> {
    let [left, right] = [left, right].map(|path| Contents::read(path).unwrap());
    let words = ["only in the first run", "only in the second run"];
    let searches =
        compare_all(&by_key(&left.searches.records), &by_key(&right.searches.records), words);
    let calls = compare_all(&by_key(&left.calls.records), &by_key(&right.calls.records), words);
    let items = compare_all(&left.outcomes(), &right.outcomes(), words);
    [searches, calls, items].map(Result::unwrap).concat()
}

impl From<AnswerLine> for ItemLine {
    fn from(record: AnswerLine) -> ItemLine {
        ItemLine::Answer(record)
    }
}

impl From<NoteLine> for ItemLine {
    fn from(record: NoteLine) -> ItemLine {
        ItemLine::Note(record)
    }
}

/// For tests, which change what was found.
impl DerefMut for Plan {
    fn deref_mut(&mut self) -> &mut Found {
        &mut self.found
    }
}

/// Runs a test of this program that writes below `folder`, named by a variable, and says «acknowledged NAME.» of each line, until it is
/// killed, later in each round; gives the names. None where it was killed before it wrote.
pub fn kill_writer(test: &str, variable: &str, folder: &Path, round: u64) -> Vec<String> {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(variable, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(200 + 40 * round));
    writer.kill().unwrap();
    let said = writer.wait_with_output().unwrap().stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    let told = said.split("acknowledged ").skip(1);
    told.filter_map(|text| Some(text.split_once('.')?.0.to_owned())).collect()
}
