//! Every system of the table on SmolLM2, where `WARDROUND_REAL_MODELS` names a folder that has it, under each decoding: it is killed on its way, goes on to its end, verifies, and replays to the
//! same bytes.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use wardround::data::{DEMO_PATH, ItemKind};
use wardround::systems::table::SystemEntry;
use wardround::systems::{SYSTEMS, SystemConfig};

use crate::binary::{Scratch, lines, signal, wait};
use crate::{corpus, exemplars};

const NOTES: &str = r#"{"id": "a", "text": "0 A woman of 34 came with fever and chills after a journey to Ghana.\n1 A blood film showed Plasmodium falciparum.\n2 Malaria was treated with aspirin.", "gold": {"flag": 1, "sentence_id": 2, "correction": "Malaria was treated with artesunate."}}
{"id": "b", "text": "0 A boy of 6 was seen with otitis media.\n1 He was given amoxicillin for five days.", "gold": {"flag": 0}}
"#;

/// Few turns and replies of a dozen tokens: what is tested is the way, not the words.
const FEWER: [(&str, &str); 10] = [
    ("rerank", "off"),
    ("rerank_top_k", "2"),
    ("retrieve_top_k", "4"),
    ("react_turns", "2"),
    ("reflexion_turns", "1"),
    ("reviewers", "2"),
    ("t_max", "1"),
    ("shots", "1"),
    ("max_rounds", "1"),
    ("record_chars", "4"),
];

/// What `run` is told of a system.
fn arguments(system: &SystemEntry, decoding: &str, items: usize) -> String {
    let config = SystemConfig::parse::<&str>(system.name, &[]).unwrap();
    let corpus = if config.search().is_some() { "--corpus corpus" } else { "" };
    let data = match system.takes {
        ItemKind::Questions => format!("{DEMO_PATH} --format mcq"),
        ItemKind::Notes => "notes.jsonl --format notes".to_owned(),
    };
    let mut fewer: Vec<String> = Vec::new();
    for (key, value) in FEWER.iter().filter(|(key, _)| config.table.contains_key(*key)) {
        fewer.push(format!("{key}={value}"));
        // One that does not act beside the others is refused.
        if SystemConfig::parse(system.name, &fewer).is_err() {
            fewer.pop();
        }
    }
    let fewer: String = fewer.iter().map(|pair| format!(" --set {pair}")).collect();
    format!(
        "{} --data {data} --limit {items} {} {corpus} --panel smollm2{fewer} --decoding {decoding} --set max_tokens=12",
        system.name,
        exemplars::flags(system)
    )
}

/// Ends the process as the kernel would once `calls` has a line, unless it is faster.
fn kill(mut child: Child, calls: &Path) {
    while child.try_wait().unwrap().is_none() {
        if calls.exists() && lines(calls) > 0 {
            signal(&child, "KILL");
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    wait(child);
}

/// A ninth of the systems under each decoding, in turn, on one item; all of them on two where `WARDROUND_THOROUGH` is set.
fn every_system(at: usize) {
    let decoding = ["grammar", "json", "text"][at];
    let is_thorough = std::env::var_os("WARDROUND_THOROUGH").is_some();
    let is_chosen = |(place, _): &(usize, &SystemEntry)| is_thorough || place % 9 == at;
    let systems: Vec<&SystemEntry> =
        SYSTEMS.iter().enumerate().filter(is_chosen).map(|(_, system)| system).collect();
    let items = if is_thorough { 2 } else { 1 };
    let scratch = Scratch::new();
    let models = std::env::var_os("WARDROUND_REAL_MODELS");
    let models = PathBuf::from(models.expect("WARDROUND_REAL_MODELS names a folder"));
    std::os::unix::fs::symlink(models.join("smollm2"), scratch.path("smollm2")).unwrap();
    scratch.write("notes.jsonl", NOTES);
    scratch.write("exemplars.jsonl", exemplars::NOTES);
    corpus::write_corpus(&scratch);
    let mut killed = 0;
    for system in &systems {
        let name = system.name;
        let started = std::time::Instant::now();
        let run = format!("run {} --quiet --out {name}", arguments(system, decoding, items));
        kill(scratch.command(&run).spawn().unwrap(), &scratch.path(name).join("calls.jsonl"));
        if !scratch.path(name).join("results.json").exists() {
            killed += 1;
            scratch.wardround(format!("resume {name} --quiet")).finished();
        }
        let verified = scratch.wardround(format!("verify {name}"));
        assert!(!verified.succeeded().stdout.contains("has not finished"), "{verified:#?}");
        scratch.wardround(format!("replay {name} --quiet")).succeeded();
        println!("{name} under {decoding}: {:.1} s", started.elapsed().as_secs_f64());
    }
    assert!(killed * 3 > systems.len(), "only {killed} were killed on their way");
}

#[test]
#[ignore = "needs WARDROUND_REAL_MODELS"]
fn with_real_models_every_system_goes_on_after_a_kill_and_replays_under_grammar() {
    every_system(0);
}

#[test]
#[ignore = "needs WARDROUND_REAL_MODELS"]
fn with_real_models_every_system_goes_on_after_a_kill_and_replays_under_json() {
    every_system(1);
}

#[test]
#[ignore = "needs WARDROUND_REAL_MODELS"]
fn with_real_models_every_system_goes_on_after_a_kill_and_replays_as_text() {
    every_system(2);
}
