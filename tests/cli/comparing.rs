//! `compare`: two runs that differ in one setting, as Markdown, JSON and CSV, and runs that cannot be compared.

use serde_json::Value;

use crate::binary::Scratch;

const QUESTIONS: usize = 12;

fn items(scratch: &Scratch, run: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(scratch.path(run).join("items.jsonl")).unwrap();
    let mut items: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    items.sort_by_key(|item| (item["run"].as_u64(), item["item"].to_string()));
    items
}

#[test]
fn runs_that_differ_in_one_setting_are_set_side_by_side() {
    let scratch = Scratch::new();
    scratch.questions(QUESTIONS);
    // So hot that some answers differ on whatever machine.
    let hot = "--runs 3 --temperature 3 --top-k 0 --top-p 1";
    scratch.run_one("without", hot).succeeded();
    scratch.run_one("with", &format!("{hot} --seed 9")).succeeded();
    let compare = |more: &str| scratch.wardround(format!("compare without with {more}"));

    let json = compare("--format json");
    let found: Value = serde_json::from_str(&json.succeeded().stdout).unwrap();
    let (left, right) = (items(&scratch, "without"), items(&scratch, "with"));
    let pairs = || left.iter().zip(&right);
    let answers = 3 * QUESTIONS;
    let count = |before: bool, after: bool| {
        let is = |(l, r): &(&Value, &Value)| l["correct"] == before && r["correct"] == after;
        pairs().filter(is).count()
    };
    let pair = &found["pairs"][0];
    let turned = [count(true, false), count(false, true)];
    assert_eq!(
        [&pair["right_to_wrong"], &pair["wrong_to_right"]],
        turned.map(Value::from).each_ref()
    );
    assert!(turned != [0, 0], "other seeds answer alike: {found:#}");
    let agree = pairs().filter(|(l, r)| l["answer"] == r["answer"]).count();
    let agreement = pair["agreement"]["mean"].as_f64().unwrap();
    assert!((agreement - agree as f64 / answers as f64).abs() < 1e-12);
    for (row, run) in found["runs"].as_array().unwrap().iter().zip(["without", "with"]) {
        let results = std::fs::read(scratch.path(run).join("results.json")).unwrap();
        let results: Value = serde_json::from_slice(&results).unwrap();
        assert_eq!(row["run"], run);
        assert_eq!(row["accuracy"], results["accuracy"]);
        assert_eq!(row["cost"]["total"]["calls"].as_f64(), results["calls"].as_f64());
        let tokens = row["cost"]["total"]["completion_tokens"].as_f64();
        assert_eq!(tokens, results["tokens"]["completion"].as_f64());
    }
    let fields = pair["plan"].as_array().unwrap();
    assert_eq!(fields.len(), 1);
    assert_eq!((&fields[0]["field"], &fields[0]["left"]), (&"seed".into(), &"42".into()));

    let shown = compare("--format md").succeeded().stdout.clone();
    for part in [
        "2 runs on questions: 12 questions, 12 with gold",
        "Plans of without against with: seed is 42 against 9.",
        "| exact McNemar, by run |",
        "| per item: completion tokens |",
        "| right → wrong |",
        "Synthetic weights: every answer is noise",
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    let csv = compare("--format csv").succeeded().stdout.clone();
    for part in [
        "# accuracy\nrun,system,accuracy_mean,accuracy_std,accuracy_n,accuracy_low,accuracy_high,",
        "# cost\nrow,",
        "# differences\nrun,accuracy_mean,accuracy_low,accuracy_high,mcnemar_run_0_p,",
        "right_to_wrong,",
        "\nwith,",
    ] {
        assert!(csv.contains(part), "no {part:?} in {csv}");
    }
    assert_eq!((&found["n_items"], &found["n_graded"]), (&QUESTIONS.into(), &QUESTIONS.into()));

    assert_eq!(compare("--out pages/both.html").succeeded().stdout, "pages/both.html\n");
    let page = std::fs::read_to_string(scratch.path("pages/both.html")).unwrap();
    for part in [
        "href=\"../with/report.html#",
        "Plans of without against with: seed is 42 against 9.",
        ": the answers differ on ",
        "every answer on this page is noise",
    ] {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
}

#[test]
fn runs_that_cannot_be_compared_are_refused() {
    let scratch = Scratch::new();
    scratch.questions(3);
    scratch.run_one("three", "").succeeded();
    scratch.run_one("two", "--limit 2").succeeded();
    let compare = |runs: &str| scratch.wardround(format!("compare {runs}"));
    let common = compare("three two");
    assert!(
        common.succeeded().stdout.contains("2 questions, 2 with gold; 1 left out"),
        "{common:#?}"
    );
    compare("three").refused(2, &["2 values required"]);
    compare("three nowhere").refused(3, &["nowhere is not a run directory"]);

    scratch.questions(4);
    scratch.run_one("changed", "--limit 3").succeeded();
    compare("three changed")
        .refused(2, &["three and changed ran over different files: mcq of sha256 "]);
    std::fs::remove_file(scratch.path("two/results.json")).unwrap();
    compare("three two").refused(3, &["two has not finished", "wardround resume"]);
}
