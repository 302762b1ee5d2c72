use serde_json::Value;

use super::*;
use crate::analysis::results;
use crate::experiment::fixtures::{ITEMS, call, failed_item, item, plan, start};
use crate::record::{AnswerLine, Parse};

/// Two runs of three items: `q1` is right, `q2` fails in one run and is unread in the other, `q3` has no gold.
fn run(out: &std::path::Path) -> (Contents, Results) {
    let log = start(out, &plan());
    for run in 0..2 {
        for name in ITEMS {
            let mut said = call(name, run, "sym");
            said.text.push('\u{2028}');
            if name == "q2" {
                said.parse = Parse::Unread;
            }
            log.call(said).unwrap();
            log.call(call(name, run, "ddx")).unwrap();
            let unread =
                AnswerLine { answer: String::new(), correct: Some(false), ..item(name, run) };
            log.item(match (name, run) {
                ("q2", 0) => failed_item(name, run),
                ("q2", _) => unread,
                _ => item(name, run),
            })
            .unwrap();
        }
    }
    log.finish().unwrap();
    let contents = Contents::read(out).unwrap();
    let (results, _) = results::write(&contents, 1234).unwrap();
    (contents, results)
}

fn exported(form: Form) -> Vec<ExportedFile> {
    let out = tempfile::tempdir().unwrap();
    let (contents, results) = run(out.path());
    form.files(&contents, &results).unwrap()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn the_figures_and_samples_of_every_eval_ever() {
    let files = exported(Form::EveryEvalEver);
    let [log, samples] = files.as_slice() else { panic!("{files:?}") };
    let folder = "data/medqa/wardround/tiny/";
    assert!(log.path.starts_with(folder) && log.path.ends_with(".json"), "{}", log.path);
    assert_eq!(log.path.replace(".json", "_samples.jsonl"), samples.path);
    let log = json(&log.bytes);
    let result = &log["evaluation_results"][0];
    assert_eq!(result["score_details"]["score"], 0.5);
    // The interval is over two items, each twice; a row each below.
    let uncertainty = &result["score_details"]["uncertainty"];
    assert_eq!(uncertainty["num_samples"], 2);
    assert_eq!(uncertainty["num_bootstrap_samples"], 10_000);
    assert_eq!(uncertainty["confidence_interval"]["upper"], 1.0);
    assert_eq!(result["score_details"]["details"]["samples_failed_and_counted_wrong"], "1");
    assert_eq!(result["score_details"]["details"]["samples_unread_and_counted_wrong"], "1");
    assert_eq!(result["generation_config"]["generation_args"]["eval_plan"]["config"]["t_max"], "3");
    // It knows neither who evaluated nor whether the weights are published.
    assert_eq!(log["source_metadata"]["source_organization_name"], "unknown");
    let model = &log["model_info"];
    assert_eq!(model["name"], "tiny (synthetic weights: random numbers)");
    assert_eq!(model["additional_details"]["model_availability"], "unknown");
    assert_eq!(model["additional_details"]["synthetic_weights"], "true");
    let text = String::from_utf8(samples.bytes.clone()).unwrap();
    assert!(text.contains("\\u2028") && !text.contains('\u{2028}'));
    let rows: Vec<Value> = text.lines().map(|line| json(line.as_bytes())).collect();
    // None of the item without gold.
    assert_eq!(rows.len(), 4);
    assert_eq!(log["detailed_evaluation_results"]["total_rows"], 4);
    assert_eq!(log["detailed_evaluation_results"]["checksum"], crate::digest::sha256(text));
    for row in &rows {
        let is_right = row["sample_id"] == "q1";
        assert_eq!(row["evaluation"]["is_correct"], is_right);
        assert_eq!(row["error"].is_null(), is_right, "a score of 0 without a mark: {row}");
        assert_eq!(row["evaluation_id"], log["evaluation_id"]);
        assert_eq!(row["messages"].as_array().unwrap().len(), 6);
        assert_eq!(row["token_usage"]["total_tokens"], 240);
    }
    let outcomes: Vec<&Value> = rows.iter().map(|row| &row["metadata"]["outcome"]).collect();
    assert_eq!(outcomes, ["answered", "failed", "answered", "unread"]);
    let answers = |row: &Value| row["answer_attribution"].as_array().unwrap().len();
    assert_eq!([answers(&rows[0]), answers(&rows[1])], [2, 1]);
    assert_eq!(rows[0]["answer_attribution"][1]["source"], "messages[5].content");
    assert_eq!(rows[0]["messages"][5]["role"], "assistant");
}

#[test]
fn the_log_of_inspect() {
    let files = exported(Form::Inspect);
    let log = json(&files[0].bytes);
    assert_eq!((&log["version"], &log["status"]), (&2.into(), &"success".into()));
    assert_eq!(log["eval"]["tags"][0], "synthetic-weights");
    assert_eq!(log["eval"]["config"]["epochs"], 2);
    assert_eq!(log["results"]["scores"][0]["metrics"]["accuracy"]["value"], 0.5);
    assert_eq!(log["results"]["scores"][0]["unscored_samples"], 2);
    assert_eq!(
        (&log["results"]["total_samples"], &log["results"]["completed_samples"]),
        (&6.into(), &5.into())
    );
    assert_eq!(log["stats"]["model_usage"]["tiny"]["input_tokens"], 816);
    let samples = log["samples"].as_array().unwrap();
    let of = |index: usize| &samples[index];
    let values: Vec<&Value> =
        samples.iter().map(|sample| &sample["scores"]["gold"]["value"]).collect();
    assert_eq!(
        values,
        [&"C".into(), &"N".into(), &Value::Null, &"C".into(), &"N".into(), &Value::Null]
    );
    assert_eq!(of(1)["error"]["message"], "the prompt has 9,000 tokens, the context holds 2,048");
    assert_eq!(of(1)["scores"]["gold"]["reason"], "failed");
    assert_eq!(of(4)["scores"]["gold"]["reason"], "unread");
    assert!(of(4)["error"].is_null());
    assert_eq!((&of(4)["epoch"], &of(2)["target"]), (&2.into(), &"".into()));
    assert_eq!(of(0)["messages"][2]["metadata"]["agent"], "sym");
}

#[test]
fn a_statement_is_of_its_run_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let (first, second) = (scratch.path().join("first"), scratch.path().join("second"));
    let (contents, results) = run(&first);
    let written = Form::InToto.files(&contents, &results).unwrap().remove(0);
    let path = scratch.path().join(&written.path);
    fs_err::write(&path, &written.bytes).unwrap();
    check(&path, &contents, &results).unwrap();
    let statement = json(&written.bytes);
    let names: Vec<&str> = statement["subject"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["plan.toml", "dataset.jsonl", "calls.jsonl", "items.jsonl", "results.json"]);
    let predicate = &statement["predicate"];
    assert_eq!(predicate["result"], "WARNED");
    assert_eq!(predicate["passedTests"], serde_json::json!(["q1"]));
    assert_eq!(predicate["warnedTests"], serde_json::json!(["q2"]));
    assert_eq!(predicate["configuration"].as_array().unwrap().len(), 3);

    let refused = |from: &str, to: &str| {
        let text = String::from_utf8(written.bytes.clone()).unwrap();
        assert!(text.contains(from), "{from}");
        fs_err::write(&path, text.replace(from, to)).unwrap();
        check(&path, &contents, &results).unwrap_err().to_string()
    };
    assert!(refused("\"warnedTests\"", "\"passed\"").contains("is no statement of in-toto"));
    assert!(refused("\"WARNED\"", "\"PASSED\"").contains("which items were answered right"));
    assert!(refused(&"0".repeat(64), &"1".repeat(64)).contains("another plan or other weights"));
    let head = results.heads.plan.as_str();
    assert!(refused(head, &"1".repeat(64)).contains("another sum of plan.toml"));
    fs_err::write(&path, &written.bytes).unwrap();
    let (other, results) = run(&second);
    check(&path, &other, &results).unwrap();
    fs_err::write(second.join("results.json"), "{}").unwrap();
    let error = check(&path, &other, &results).unwrap_err().to_string();
    assert!(error.contains("another sum of results.json"), "{error}");
}

#[test]
fn without_gold_there_is_nothing_for_every_eval_ever() {
    let out = tempfile::tempdir().unwrap();
    let mut plan = plan();
    (plan.dataset.items, plan.runs) = (vec!["q3".to_owned()], 1);
    let log = start(out.path(), &plan);
    log.item(item("q3", 0)).unwrap();
    log.finish().unwrap();
    let contents = Contents::read(out.path()).unwrap();
    let (results, _) = results::write(&contents, 1).unwrap();
    let error = Form::EveryEvalEver.files(&contents, &results).unwrap_err();
    assert!(matches!(error, ExportError::NoGold { .. }), "{error}");
    let log = Form::Inspect.files(&contents, &results).unwrap().remove(0);
    assert_eq!(json(&log.bytes)["results"]["scores"], serde_json::json!([]));
    let statement = Form::InToto.files(&contents, &results).unwrap().remove(0);
    assert_eq!(json(&statement.bytes)["predicate"]["result"], "WARNED");
}

#[test]
fn a_panel_of_several_models_is_a_system() {
    let out = tempfile::tempdir().unwrap();
    let mut plan = plan();
    plan.synthetic = false;
    plan.panel[0].repository = Some("google/gemma-3-4b-it".to_owned());
    plan.panel[1].backbone = "openai:Qwen/Qwen3-4B@http://box:8000/v1".to_owned();
    let log = start(out.path(), &plan);
    log.finish().unwrap();
    let several = identity::Identity::of(&Contents::read(out.path()).unwrap());
    assert_eq!(several.id, "wardround/medmad+tiny+Qwen3-4B");
    assert_eq!(several.name, "medmad of tiny, Qwen/Qwen3-4B");
    plan.panel.truncate(1);
    let out = tempfile::tempdir().unwrap();
    start(out.path(), &plan).finish().unwrap();
    let one = identity::Identity::of(&Contents::read(out.path()).unwrap());
    assert_eq!(
        (one.id.as_str(), one.developer.as_deref()),
        ("google/gemma-3-4b-it", Some("google"))
    );
    assert_eq!(one.folders(), ["google", "gemma-3-4b-it"]);
}

#[test]
fn names_become_folders_that_every_file_system_takes() {
    for (name, folder) in [
        ("medqa", "medqa"),
        ("a/b:c?", "a_b_c_"),
        ("nul.txt", "_nul.txt"),
        ("com1", "_com1"),
        ("data", "_data"),
        ("..", "_"),
        ("x. ", "x"),
    ] {
        assert_eq!(identity::path_component(name), folder);
    }
}
