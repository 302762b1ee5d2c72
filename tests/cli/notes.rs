//! Systems that work on notes, and `check`, through the binary.

use serde_json::Value;
use wardround::experiment::contents::Contents;
use wardround::model::Family;

use crate::binary::{Scratch, assert_equal_runs};

const NOTES: &str = r#"{"id": "a", "text": "Fever for two days. Malaria is treated with aspirin. Seen again.", "gold": {"flag": 1, "sentence_id": 1, "correction": "Malaria is treated with artesunate.", "keywords": ["artesunate"]}}
{"id": "b", "text": "Seen on the ward. Well.", "gold": {"flag": 0}}
{"id": "c", "text": "رأى الطبيب المريض. أعطي الأسبرين."}
"#;

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("notes.jsonl", NOTES);
    scratch.write("bed-7.txt", "Fever for two days. Malaria is treated with aspirin.\n");
    scratch.model(Family::Qwen3);
    scratch
}

#[test]
fn every_structure_runs_verifies_and_replays() {
    let scratch = scratch();
    for agents in [1, 2, 3, 4, 7, 8] {
        let out = format!("with-{agents}");
        scratch
            .wardround(format!(
                "run medguards --data notes.jsonl --format notes --panel qwen3 --set record_chars=8 --set agents={agents} --out {out}"
            ))
            .finished();
        scratch.wardround(format!("verify {out}")).succeeded();
        scratch.wardround(format!("replay {out}")).succeeded();
        let contents = Contents::read(&scratch.path(&out)).unwrap();
        assert_eq!(contents.notes().len(), 3);
        for record in contents.notes().into_values() {
            // A detector alone can call a note right and place an error in it, which nobody can read.
            let is_alone = record.detection.as_ref().is_some_and(|one| one.agents.len() == 1);
            assert!(record.flag.is_read() || is_alone, "{record:?}");
            assert_eq!(record.error, None);
            assert!(record.calls <= agents);
            assert_eq!(record.gold.is_none(), record.item == "c");
        }
        assert!(contents.calls.records.iter().all(|call| call.sampling.constrained));
    }
}

#[test]
fn switches_and_the_base_model_run_to_an_end() {
    let scratch = scratch();
    let cases = [
        ("medguards", "--set arbitration=vote"),
        ("medguards", "--set localisation=hard"),
        ("medguards", "--decoding text --set max_tokens=40"),
        ("base-llm", "--decoding text --set max_tokens=20"),
    ];
    for (number, (system, settings)) in cases.into_iter().enumerate() {
        scratch
            .wardround(format!(
                "run {system} --data notes.jsonl --format notes --panel qwen3 --set record_chars=8 {settings} --out out-{number}"
            ))
            .finished();
        scratch.wardround(format!("verify out-{number}")).succeeded();
    }
}

#[test]
fn notes_in_any_company_give_the_same_bytes() {
    let scratch = scratch();
    let run = |out: &str, more: &str| {
        scratch
            .wardround(format!(
                "run medguards --data notes.jsonl --format notes --panel qwen3 --set record_chars=8 --runs 2 {more} --out {out}"
            ))
            .succeeded();
    };
    run("together", "--max-batch 16");
    run("alone", "--max-batch 1 --threads 1");
    assert_equal_runs(&scratch.path("together"), &scratch.path("alone"));
}

#[test]
fn a_system_takes_what_it_is_for() {
    let scratch = scratch();
    scratch.questions(1);
    scratch
        .wardround("run medmad --data notes.jsonl --format notes --panel qwen3 --out out")
        .refused(2, &["medmad takes questions, and notes holds notes", "systems ls"]);
    scratch
        .wardround("run medguards --data questions.jsonl --format mcq --panel qwen3 --out out")
        .refused(2, &["medguards takes notes, and mcq holds questions", "medec"]);
}

#[test]
fn check_says_the_same_of_a_file_and_of_stdin_and_writes_nothing() {
    let scratch = scratch();
    let before = std::fs::read_dir(scratch.path("")).unwrap().count();
    let flags = "--panel qwen3 --set record_chars=8 --json";
    let file = scratch.wardround(format!("check bed-7.txt {flags}"));
    let text = std::fs::read_to_string(scratch.path("bed-7.txt")).unwrap();
    let stdin = scratch.wardround_reading(&text, &format!("check {flags}"));
    let read = |stdout: &str| serde_json::from_str::<Value>(stdout).unwrap();
    let (file, stdin) = (read(&file.succeeded().stdout), read(&stdin.succeeded().stdout));
    assert_eq!((&file["note"], &stdin["note"]), (&"bed-7".into(), &"stdin".into()));
    assert!(file["has_error"].is_boolean());
    assert!(file["notice"].as_str().unwrap().contains("not a diagnosis"));
    assert_eq!(std::fs::read_dir(scratch.path("")).unwrap().count(), before);
}

#[test]
fn the_gate_follows_the_answer() {
    let scratch = scratch();
    scratch.model(Family::Gemma3);
    let mut seen = [false; 2];
    for seed in 0..40 {
        let flags = format!(
            "--panel gemma3 --set record_chars=24 --set agents=3 --seed {seed} --json --gate"
        );
        let outcome = scratch.wardround(format!("check bed-7.txt {flags}"));
        let finding: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let has_error = finding["has_error"].as_bool().unwrap();
        assert_eq!(outcome.code, Some(i32::from(has_error)), "{finding}");
        seen[usize::from(has_error)] = true;
        if seen == [true; 2] {
            break;
        }
    }
    assert_eq!(seen, [true; 2], "random weights say both in 40 tries");
    scratch
        .wardround_reading("", "check --panel qwen3")
        .refused(2, &["stdin:1: field `text` is empty"]);
}

#[test]
fn a_run_on_notes_has_its_own_page_tables_and_figures() {
    let scratch = scratch();
    let run = "run medguards --data notes.jsonl --format notes --panel qwen3 --set record_chars=8 --runs 2 --out out";
    let told = scratch.wardround(run);
    let told = &told.succeeded().stdout;
    for line in ["\naccuracy   ", "\ndetection  "] {
        assert!(told.contains(line), "{told}");
    }
    let page = std::fs::read_to_string(scratch.path("out/report.html")).unwrap();
    for words in [
        "every answer on this page is noise",
        "Decision support, not a diagnosis.",
        "The Arabic notes were given to the English prompts, unchanged.",
        "Malaria is treated with",
        "not computed: needs its model in --scorers DIR",
    ] {
        assert!(page.contains(words), "{words}");
    }

    let results = std::fs::read(scratch.path("out/results.json")).unwrap();
    let results: Value = serde_json::from_slice(&results).unwrap();
    let detection = &results["notes"]["detection"]["accuracy"]["mean"];
    assert_eq!(detection, &results["accuracy"]["mean"]);
    let json = scratch.wardround("report out --format json");
    let json: Value = serde_json::from_str(&json.succeeded().stdout).unwrap();
    let tables = json["tables"].as_array().unwrap();
    let names: Vec<&str> = tables.iter().map(|table| table["name"].as_str().unwrap()).collect();
    for name in ["detection", "confusion", "localisation", "correction", "consensus", "cost"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_eq!(&tables[0]["rows"][0]["share"]["mean"], detection);
    let csv = scratch.wardround("report out --format csv --table cost");
    let csv = &csv.succeeded().stdout;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let row = reader.records().next().unwrap().unwrap();
    let number = |field: usize| row[field].parse::<f64>().unwrap();
    let [prompt, cached, completion, dollars] = [3, 4, 5, 6].map(number);
    let expected = ((prompt - cached) * 0.10 + cached * 0.025 + completion * 0.40) / 1e6;
    assert_eq!((&row[0], dollars), ("detection", expected));
    let markdown = scratch.wardround("report out --format md --table consensus");
    assert!(markdown.succeeded().stdout.contains("| *detection* |"));
    scratch
        .wardround("report out --format md --table accuracy")
        .refused(2, &["out has no table accuracy", "hint: it has detection, "]);

    std::fs::remove_file(scratch.path("out/report.html")).unwrap();
    scratch.wardround("report out").succeeded();
    let again = std::fs::read_to_string(scratch.path("out/report.html")).unwrap();
    assert_eq!(again, page);
}

#[test]
fn a_changed_figure_of_notes_is_found() {
    let scratch = scratch();
    scratch
        .wardround("run medguards --data notes.jsonl --format notes --panel qwen3 --set record_chars=8 --out out")
        .succeeded();
    scratch.wardround("verify out").succeeded();
    let path = scratch.path("out/results.json");
    let sound = std::fs::read_to_string(&path).unwrap();
    let changed = sound.replacen("\"n_graded\": 2", "\"n_graded\": 3", 1);
    assert_ne!(changed, sound);
    std::fs::write(&path, changed).unwrap();
    scratch.wardround("verify out").refused(3, &["results.json, line ", "n_graded"]);
}

#[test]
fn a_run_is_scored_by_keywords() {
    let scratch = scratch();
    scratch.write("keywords.json", r#"{"a": ["artesunate"]}"#);
    scratch
        .wardround("run medguards --data notes.jsonl --format notes --panel qwen3 --set record_chars=8 --out out")
        .finished();
    scratch.wardround("report out --keywords keywords.json").succeeded();
    scratch.write("broken.json", "{\"a\": \"one\"}");
    scratch
        .wardround("report out --keywords broken.json")
        .refused(2, &["broken.json: ", "a list of keywords"]);
    // Also where there is nothing to compare.
    scratch
        .wardround("report out --scorers nowhere")
        .refused(3, &["there is no directory nowhere", "models fetch"]);
}

#[test]
fn runs_on_notes_are_compared_by_their_flags() {
    let scratch = scratch();
    for (agents, out) in [("", "guarded"), ("--set agents=1", "alone")] {
        scratch
            .wardround(format!(
                "run medguards --data notes.jsonl --format notes --panel qwen3 --set record_chars=8 {agents} --out {out}"
            ))
            .succeeded();
    }
    let shown = scratch.wardround("compare guarded alone --format md").succeeded().stdout.clone();
    for part in [
        "2 runs on notes: 3 notes, 2 with gold",
        "| 95 % over notes |",
        "| run | accuracy | exact McNemar, by run | the same flag |",
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    assert!(!shown.contains("question"), "{shown}");
    let csv = scratch.wardround("compare guarded alone --format csv").succeeded().stdout.clone();
    assert!(!csv.contains("question"), "{csv}");
    for run in ["guarded", "alone"] {
        assert!(csv.contains(&format!("\n{run},medguards,")), "{csv}");
    }
    let told = scratch.wardround("compare guarded alone --format json");
    let told: Value = serde_json::from_str(&told.succeeded().stdout).unwrap();
    assert_eq!(told.get("n_questions"), None);
    assert_eq!((&told["n_items"], &told["n_graded"]), (&3.into(), &2.into()));
    for (run, row) in ["guarded", "alone"].into_iter().zip(told["runs"].as_array().unwrap()) {
        let contents = Contents::read(&scratch.path(run)).unwrap();
        let right = contents.outcomes().into_values().filter(|one| one.correct() == Some(true));
        let share = right.count() as f64 / 2.0;
        assert_eq!(row["accuracy"]["mean"].as_f64(), Some(share), "{row}");
    }
}
