//! What runs on notes log, against what an independent script makes of their calls.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;
use wardround::experiment::contents::Contents;
use wardround::model::Family;
use wardround::record::{ItemLine, NoteLine, Parse};

use crate::binary::{Scratch, size};
use crate::determinism::wait_until;
use crate::tampering::seal_anew;

const TINY: &str = "--decoding grammar --set record_chars=8 --quiet";

/// Runs the script.
fn recompute(out: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recompute_notes.py");
    // Without writing its bytecode into the sources.
    let mut python = Command::new("python3");
    python.arg("-B").arg(script).arg(out).output().unwrap()
}

#[track_caller]
pub fn agrees(out: &Path, told: &str) {
    let output = recompute(out);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains(told), "{output:?}");
}

#[track_caller]
pub fn differs(out: &Path, told: &str) {
    let output = recompute(out);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains(told), "no {told:?} in {said}");
}

#[test]
#[ignore = "needs WARDROUND_DATA, and python3 of 3.11 or later"]
fn with_data_tables_on_real_notes_are_killed_taken_up_and_recomputed() {
    let scratch = Scratch::new();
    scratch.link_data();
    let panel = scratch.panel();
    for (table, killed_in, told) in [
        ("medguards-table2", "a-medguards-medec", "6 runs, 18 notes, "),
        ("medguards-table3", "a-medguards-arabic", "18 runs, 54 notes, "),
    ] {
        let folder = scratch.path(table);
        let run = format!(
            "recipe {table} --data-dir data --limit 3 --runs 1 --panel {panel} {TINY} --seed 2 --out {table}"
        );
        let mut child = scratch.command(&run).spawn().unwrap();
        let log = folder.join("cells").join(killed_in).join("calls.jsonl");
        wait_until(&mut child, || log.exists() && size(&log) > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        scratch.wardround(&run).finished();
        agrees(&folder, told);
        // Noise has no word in common with the gold; what nearly is the gold has figures to compare.
        let cells = std::fs::read_dir(folder.join("cells")).unwrap();
        let cells = cells.map(|cell| cell.unwrap().path());
        let alone = cells.filter(|cell| cell.to_string_lossy().contains("-base-"));
        assert!(alone.map(|cell| nearly_right(&cell)).sum::<usize>() > 0);
        scratch.wardround(&run).finished();
        agrees(&folder, told);
    }
}

/// Of a model alone, makes what it says of every wrong note the gold one with its last words lost and one put before, and seals all anew.
/// Says how many it made.
fn nearly_right(out: &Path) -> usize {
    let mut contents = Contents::read(out).unwrap();
    let mut changed = 0;
    for item in &mut contents.items.records {
        let ItemLine::Note(note) = item else {
            panic!("{item:?}");
        };
        let gold = note.gold.clone().unwrap();
        let (Some(id), Some(right)) = (gold.sentence_id, gold.correction) else {
            continue;
        };
        let kept = right.chars().count() * 3 / 4;
        let correction: String = "Once ".chars().chain(right.chars().take(kept)).collect();
        let correction = correction.trim().to_owned();
        let mut calls = contents.calls.records.iter_mut();
        let call = calls.rfind(|call| call.item == note.item).unwrap();
        call.text = format!("{id} {correction}");
        // Noise is often no sentence, so that nothing was read.
        call.parse = Parse::Ok;
        let mut said = serde_json::to_value(&*note).unwrap();
        said["flag"] = true.into();
        said["detection"]["flags"] = json!([true]);
        let (agents, opinion) = (&said["detection"]["agents"], id.to_string());
        said["localisation"] = json!({"source": "single", "agents": agents, "opinions": [opinion], "sentence_ids": [id], "confidences": [null]});
        *note = serde_json::from_value(said).unwrap();
        let lines = call.messages.iter().flat_map(|message| message.content.lines());
        let place = format!("{id} ");
        note.sentence =
            lines.filter_map(|line| line.strip_prefix(&place)).next_back().unwrap().to_owned();
        (note.sentence_id, note.exact_sentence_id) = (Some(id), Some(id));
        note.correction = Some(correction);
        changed += 1;
    }
    seal_anew(&contents, out);
    changed
}

#[test]
#[ignore = "needs python3 of 3.11 or later"]
fn with_python_every_structure_and_switch_is_recomputed() {
    let scratch = Scratch::new();
    scratch.model(Family::Gemma3);
    let notes = r#"{"id": "a", "text": "Fever. Malaria is treated with aspirin. Seen.", "sentences": ["Fever.", "Malaria is treated with aspirin.", "Seen."], "gold": {"flag": 1, "sentence_id": 1, "correction": "Malaria is treated with artesunate.", "keywords": ["artesunate"]}}
{"id": "b", "text": "Seen on the ward. Well.", "sentences": ["Seen on the ward.", "Well."], "gold": {"flag": 0}}
{"id": "c", "text": "0 رأى الطبيب المريض. 1 أعطي الأسبرين."}
"#;
    scratch.write("notes.jsonl", notes);
    let cases = [
        "medguards --set agents=1",
        "medguards --set agents=2",
        "medguards --set agents=3",
        "medguards --set agents=4",
        "medguards --set agents=8",
        "medguards --set arbitration=vote",
        "medguards --set localisation=hard",
        "medguards --decoding text --set max_tokens=40",
        "medguards --decoding text --set max_tokens=40",
        "base-llm --decoding text --set max_tokens=20",
    ];
    for (number, case) in cases.into_iter().enumerate() {
        let out = format!("out-{number}");
        let run = format!(
            "run {case} --data notes.jsonl --format notes --panel gemma3 --runs 2 --set record_chars=8 --quiet --out {out}"
        );
        scratch.wardround(run).finished();
        agrees(&scratch.path(&out), "1 runs, 6 notes, ");
    }
}

#[test]
#[ignore = "needs python3 of 3.11 or later"]
fn with_python_a_recipe_on_arabic_notes_has_no_figure_of_english_stems() {
    let scratch = Scratch::new();
    scratch.model(Family::Gemma3);
    let note = |id: usize| {
        let gold = match id % 2 {
            0 => r#"{"flag": 0}"#,
            _ => r#"{"flag": 1, "sentence_id": 1, "correction": "أعطي الأرتيسونات."}"#,
        };
        format!(
            r#"{{"id": "{id}", "text": "رأى الطبيب المريض. أعطي الأسبرين.", "sentences": ["رأى الطبيب المريض.", "أعطي الأسبرين."], "gold": {gold}}}"#
        )
    };
    let notes: Vec<String> = (0..4).map(note).collect();
    scratch.write("notes.jsonl", notes.join("\n"));
    let recipe = r#"title = "Own notes"
text = "Alone and guarded."
runs = 2
decoding = "grammar"
panel = ["gemma3"]
analyses = []
[[dataset]]
name = "own"
label = "Own"
file = "notes.jsonl"
format = "notes"
[[method]]
name = "alone"
label = "Alone"
group = "Gemma"
system = "base-llm"
[[method]]
name = "guarded"
label = "Guarded"
group = "Gemma"
system = "medguards"
against = "alone"
"#;
    scratch.write("own.toml", recipe);
    scratch
        .wardround(format!("recipe own.toml --data-dir . --panel gemma3 {TINY} --out own"))
        .succeeded();
    let results = std::fs::read(scratch.path("own/results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_slice(&results).unwrap();
    for cell in results["cells"].as_array().unwrap() {
        let measures = cell["notes"]["correction"]["measures"].as_array().unwrap();
        let names: Vec<&str> =
            measures.iter().map(|one| one["measure"].as_str().unwrap()).collect();
        assert_eq!(names, ["rouge1", "rouge2", "rougeL", "rouge1_recall"]);
    }
    agrees(&scratch.path("own"), "2 runs, 16 notes, ");
}

#[test]
#[ignore = "needs python3 of 3.11 or later"]
fn with_python_the_script_finds_what_no_call_says() {
    let scratch = Scratch::new();
    scratch.model(Family::Qwen3);
    let note = |id: usize| {
        format!(
            r#"{{"id": "{id}", "text": "Fever. Seen on ward {id}.", "sentences": ["Fever.", "Seen on ward {id}."], "gold": {{"flag": 1, "sentence_id": 0, "correction": "None."}}}}"#
        )
    };
    let notes: Vec<String> = (0..16).map(note).collect();
    scratch.write("notes.jsonl", notes.join("\n"));
    scratch
        .wardround("run medguards --data notes.jsonl --format notes --panel qwen3 --set agents=2 --set localisation=hard --set record_chars=8 --quiet --out out")
        .finished();
    let out = scratch.path("out");
    agrees(&out, "1 runs, 16 notes, ");
    let sound = Contents::read(&out).unwrap();
    // Sealed anew, the forgery verifies.
    let forged = |change: &dyn Fn(&mut NoteLine), told: &str| {
        let mut contents = sound.clone();
        let located = contents.items.records.iter_mut().find_map(|item| match item {
            ItemLine::Note(note) if note.sentence_id.is_some() => Some(note),
            _ => None,
        });
        change(located.expect("random weights locate something in sixteen notes"));
        seal_anew(&contents, &out);
        scratch.wardround("verify out").succeeded();
        differs(&out, told);
    };
    let other = |note: &mut NoteLine| note.sentence_id = note.sentence_id.map(|id| 1 - id);
    forged(&other, "run 1.sentence_id: found ");
    let cleared = |note: &mut NoteLine| note.flag = serde_json::from_str("false").unwrap();
    forged(&cleared, "run 1.flag: found False");
    forged(&|note| note.correction = Some("None.".to_owned()), "run 1.correction: found 'None.'");
    seal_anew(&sound, &out);
    agrees(&out, "1 runs, 16 notes, ");
}
