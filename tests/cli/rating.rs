//! `rate`: a blinded page from finished runs, raters' files scored and unblinded.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use wardround::model::Family;

use crate::binary::Scratch;

const NOTES: [(&str, &str); 4] = [
    ("n1", "Fever for two days. Malaria is treated with aspirin."),
    ("n2", "Pulse 90. He is given insulin for gout."),
    ("n3", "A cough. Asthma is treated with salbutamol."),
    ("n4", "A rash. Scurvy is treated with vitamin C."),
];

/// Two finished runs over the same questions, `calm` and `keen`.
fn question_runs() -> Scratch {
    let scratch = Scratch::new();
    scratch.questions(6);
    scratch.run_one("calm", "").succeeded();
    scratch.run_one("keen", "--seed 9").succeeded();
    scratch
}

pub fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn data_of(page: &str) -> Value {
    let data = page.split("id=\"data\">").nth(1).unwrap();
    serde_json::from_str(data.split("</script>").next().unwrap()).unwrap()
}

/// A rater's file on the sheet in `folder`; `score` gives what is said of an entry by its place in the key.
pub fn rate(scratch: &Scratch, folder: &str, rater: &str, score: impl Fn(usize) -> Option<u8>) {
    let key = read(&scratch.path(folder).join("rate-key.json"));
    let entries = key["entries"].as_array().unwrap().iter().enumerate();
    let entries: Vec<Value> = entries
        .map(|(place, entry)| {
            json!({"code": entry["code"], "score": score(place), "comment": format!("{rater} on {place}")})
        })
        .collect();
    let file = json!({"kind": "wardround-ratings", "schema": 1, "sheet": key["sheet"], "rater": rater, "entries": entries});
    scratch.write(&format!("{rater}.json"), file.to_string());
}

#[test]
fn a_sheet_of_notes_names_no_run_no_system_and_no_model() {
    let scratch = Scratch::new();
    let line = |(id, text): &(&str, &str)| format!("{}\n", json!({"id": id, "text": text}));
    scratch.write("notes.jsonl", NOTES.iter().map(line).collect::<String>());
    scratch.model(Family::Llama);
    scratch.model(Family::Qwen3);
    for (system, model, out) in
        [("medguards", "llama", "first-arm"), ("base-llm", "qwen3", "second-arm")]
    {
        let run =
            format!("run {system} --data notes.jsonl --format notes --panel {model} --out {out}");
        scratch.wardround(format!("{run} --set max_tokens=48")).finished();
    }
    let export = "rate export first-arm second-arm --notes 3 --out sheet";
    assert_eq!(scratch.wardround(export).succeeded().stdout, "sheet/rate.html\n");
    let page = std::fs::read_to_string(scratch.path("sheet/rate.html")).unwrap();
    let key = std::fs::read_to_string(scratch.path("sheet/rate-key.json")).unwrap();
    for name in ["first-arm", "second-arm", "medguards", "base-llm", "llama", "qwen3"] {
        assert!(!page.to_lowercase().contains(name), "{name} in the page");
        assert!(key.contains(name), "no {name} in the key");
    }
    let entries = data_of(&page)["entries"].as_array().unwrap().clone();
    assert_eq!(entries.len(), 6);
    for entry in entries {
        let text = ["before", "marked", "after"].map(|part| entry[part].as_str().unwrap());
        assert!(NOTES.iter().any(|note| note.1 == text.concat()), "{entry}");
    }
    for file in ["sheet/rate.html", "sheet/rate-key.json"] {
        let mode = std::fs::metadata(scratch.path(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    scratch.wardround(export).refused(2, &["sheet exists already", "--out"]);
}

#[test]
fn two_raters_come_to_opinion_scores_agreement_and_kappa() {
    let scratch = question_runs();
    scratch.wardround("rate export calm keen --notes 4 --out sheet").succeeded();
    let key = read(&scratch.path("sheet/rate-key.json"));
    let is_keen = |place: usize| key["entries"][place]["run"] == 1;
    // A gives every entry of keen 3 and of calm 1; B the same, but 0 to the first entry and nothing to the last.
    let by_a = |place: usize| Some(if is_keen(place) { 3 } else { 1 });
    let by_b = |place: usize| match place {
        0 => Some(0),
        7 => None,
        _ => by_a(place),
    };
    rate(&scratch, "sheet", "A", by_a);
    rate(&scratch, "sheet", "B", by_b);
    let score = |more: &str| {
        scratch.wardround(format!("rate score sheet/rate-key.json A.json B.json {more}"))
    };

    let found: Value = serde_json::from_str(&score("--format json").succeeded().stdout).unwrap();
    let tables = found["tables"].as_array().unwrap();
    let names: Vec<&str> = tables.iter().map(|table| table["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["ratings", "raters"]);
    for (run, row) in tables[0]["rows"].as_array().unwrap().iter().enumerate() {
        let own: Vec<usize> = (0..8).filter(|place| is_keen(*place) == (run == 1)).collect();
        let mean = |scores: &[Option<u8>]| {
            let given: Vec<f64> = scores.iter().flatten().map(|score| f64::from(*score)).collect();
            given.iter().sum::<f64>() / given.len() as f64
        };
        let (a, b): (Vec<_>, Vec<_>) = own.iter().map(|place| (by_a(*place), by_b(*place))).unzip();
        assert_eq!(row["run"], ["calm", "keen"][run]);
        assert_eq!(row["entries"], 4);
        assert_eq!(row["unrated"], usize::from(own.contains(&7)));
        assert_eq!(row["MOS by rater: A"], mean(&a));
        assert_eq!(row["MOS by rater: B"], mean(&b));
        let both = mean(&[a, b].concat());
        assert_eq!(row["MOS"], both);
        assert_eq!(row["normalised MOS"], both / 3.0);
    }
    let pair = &tables[1]["rows"][0];
    assert_eq!((&pair["rated by both"], &pair["identical scores"]), (&json!(7), &json!(6)));
    assert_eq!(pair["agreement"], 6.0 / 7.0);
    // Of the 7 entries A gave `threes` 3 and the rest 1; B one 0 in place of the first.
    let threes = (0..7).filter(|place| is_keen(*place)).count() as f64;
    let ones = 7.0 - threes;
    let (b_threes, b_ones) = match is_keen(0) {
        true => (threes - 1.0, ones),
        false => (threes, ones - 1.0),
    };
    let by_chance = (threes * b_threes + ones * b_ones) / 49.0;
    let kappa = (6.0 / 7.0 - by_chance) / (1.0 - by_chance);
    let stated = pair["Cohen's kappa"].as_f64().unwrap();
    assert!((stated - kappa).abs() < 1e-12, "{stated}, not {kappa}");

    let shown = score("--format md").succeeded().stdout.clone();
    assert!(shown.contains("| A and B | 7 | 6 | 0.857 |"), "{shown}");
    assert!(score("--format csv").succeeded().stdout.starts_with("# ratings\nrun,system,models,"));
    let alone = scratch.wardround("rate score sheet/rate-key.json B.json --format json");
    let alone: Value = serde_json::from_str(&alone.succeeded().stdout).unwrap();
    assert_eq!(alone["tables"].as_array().unwrap().len(), 1);
}

#[test]
fn files_that_do_not_fit_the_sheet_are_refused() {
    let scratch = question_runs();
    scratch.wardround("rate export calm keen --notes 2 --out sheet").succeeded();
    scratch.wardround("rate export calm keen --notes 2 --seed 7 --out other").succeeded();
    rate(&scratch, "other", "elsewhere", |_| Some(1));
    rate(&scratch, "sheet", "A", |_| Some(1));
    let good = read(&scratch.path("A.json"));
    let refused = |change: &dyn Fn(&mut Value), parts: &[&str]| {
        let mut file = good.clone();
        change(&mut file);
        scratch.write("bad.json", file.to_string());
        scratch.wardround("rate score sheet/rate-key.json bad.json").refused(2, parts);
    };
    let beside = ["bad.json: entries other than the sheet's, or scores other than 0 to 3"];
    refused(&|file| file["entries"][1]["score"] = json!(4), &beside);
    refused(
        &|file| file["entries"][1]["score"] = json!(-1),
        &["bad.json is no rater's file: ", "-1"],
    );
    refused(
        &|file| file["entries"][1]["score"] = json!(1.5),
        &["bad.json is no rater's file: ", "1.5"],
    );
    refused(&|file| file["entries"][1]["code"] = json!("E99"), &beside);
    refused(&|file| file["entries"][1]["code"] = json!("E1"), &beside);
    refused(&|file| file["schema"] = json!(2), &["schema 2: this version of wardround reads 1"]);
    scratch
        .wardround("rate score sheet/rate-key.json sheet/rate-key.json")
        .refused(2, &["rate-key.json is no rater's file: missing field `rater`"]);
    scratch.write("bad.json", "{\"kind\": ");
    let score = |files: &str| scratch.wardround(format!("rate score sheet/rate-key.json {files}"));
    score("bad.json").refused(2, &["bad.json is no rater's file: EOF"]);
    score("elsewhere.json")
        .refused(2, &["elsewhere.json rates sheet ", "the key is that of sheet "]);
    score("A.json A.json").refused(2, &["A.json and A.json are both of rater A"]);
    score("nowhere.json").refused(2, &["nowhere.json"]);
    scratch
        .wardround("rate score A.json A.json")
        .refused(2, &["A.json is no key of a rating sheet", "hint: `rate export` writes the key"]);
}

#[test]
fn runs_that_cannot_be_rated_together_are_refused() {
    let scratch = question_runs();
    let export =
        |arguments: &str| scratch.wardround(format!("rate export {arguments} --out sheet"));
    export("calm nowhere").refused(3, &["nowhere is not a run directory"]);
    export("calm --notes 0").refused(2, &["--notes"]);
    // The runs keep their items: the file may change.
    scratch.questions(5);
    scratch.run_one("third", "").succeeded();
    export("calm third").refused(2, &["calm and third ran over different files"]);
    assert!(!scratch.path("sheet").exists());
    let few = export("calm keen");
    few.succeeded();
    assert!(few.stderr.contains("note: only 6 questions are finished in every run"), "{few:#?}");
}
