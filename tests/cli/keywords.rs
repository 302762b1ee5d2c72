//! A recipe's file of keywords: which corrections are scored by it, and what results and pages say of it.

use serde_json::{Value, json};
use wardround::digest::sha256;
use wardround::model::Family;

use crate::binary::Scratch;

/// Notes whose own file names no keywords, as MEDEC's.
const NOTES: &str = r#"{"id": "a", "text": "Fever for two days. Malaria is treated with aspirin. Seen again.", "sentences": ["Fever for two days.", "Malaria is treated with aspirin.", "Seen again."], "gold": {"flag": 1, "sentence_id": 1, "correction": "Malaria is treated with artesunate."}}
{"id": "b", "text": "Seen on the ward. Well.", "sentences": ["Seen on the ward.", "Well."], "gold": {"flag": 0}}
"#;
const RECIPE: &str = r#"title = "Own notes"
text = "A model alone."
runs = 1
decoding = "grammar"
panel = ["qwen3"]
analyses = []
readings = ["@kpcs"]
[[dataset]]
name = "own"
label = "Own"
file = "notes.jsonl"
format = "notes"
keywords = "words.json"
[[method]]
name = "alone"
label = "Alone"
group = ""
system = "medguards"
"#;
const WORDS: &str = "{\"a\": [\"artesunate\"]}\n";
const RUN: &str = "recipe own.toml --data-dir . --set record_chars=8 --quiet";

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.model(Family::Qwen3);
    scratch.write("notes.jsonl", NOTES);
    scratch.write("own.toml", RECIPE);
    scratch
}

fn results(scratch: &Scratch, out: &str) -> Value {
    let bytes = std::fs::read(scratch.path(&format!("{out}/results.json"))).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn page(scratch: &Scratch, out: &str) -> String {
    std::fs::read_to_string(scratch.path(&format!("{out}/report.html"))).unwrap()
}

#[test]
fn a_recipes_keywords_are_used_and_named_by_their_checksum() {
    let scratch = scratch();
    let without = scratch.wardround(format!("{RUN} --out own"));
    let said = "KPCS takes the words that gold corrections change, for there is no ";
    assert!(without.succeeded().stderr.contains(said), "{without:?}");
    let found = results(&scratch, "own");
    assert_eq!(found.get("keywords"), None);
    let of_words = &found["cells"][0]["notes"]["correction"]["keywords_are_changed_words"];
    assert_eq!(of_words, true);
    let changed = "KPCS takes as keywords the words that the gold correction changes.";
    assert!(page(&scratch, "own").contains(changed));

    // The cells are there; what is scored by the file is made anew.
    scratch.write("words.json", WORDS);
    let with = scratch.wardround(format!("{RUN} --out own"));
    assert!(!with.succeeded().stderr.contains(said), "{with:?}");
    let found = results(&scratch, "own");
    let files = found["keywords"].as_array().unwrap();
    assert_eq!(files.len(), 1);
    assert!(files[0]["path"].as_str().unwrap().ends_with("/words.json"), "{files:?}");
    let sum = sha256(WORDS.as_bytes());
    assert_eq!((&files[0]["sha256"], &files[0]["notes"]), (&json!(sum), &json!(1)));
    let of_words = &found["cells"][0]["notes"]["correction"]["keywords_are_changed_words"];
    assert_eq!(of_words, false);
    let page = page(&scratch, "own");
    for part in [
        format!("Keywords: words.json, of 1 notes, sha256 {}…", &sum[..12]),
        "KPCS takes as keywords those given by the recipe or with --keywords".to_owned(),
    ] {
        assert!(page.contains(&part), "no {part:?}");
    }
    assert!(!page.contains("name no keywords") && !page.contains(changed));
}

#[test]
fn a_broken_file_of_keywords_stops_a_recipe_before_its_first_call() {
    let scratch = scratch();
    scratch.write("words.json", "{\"a\": \"artesunate\"}");
    scratch
        .wardround(format!("{RUN} --out own"))
        .refused(2, &["words.json: ", "a list of keywords"]);
    assert!(!scratch.path("own").exists());
}

#[test]
#[ignore = "needs python3 of 3.11 or later"]
fn with_python_the_script_reads_the_keywords_that_results_name() {
    let scratch = scratch();
    scratch.wardround(format!("{RUN} --out without")).succeeded();
    crate::recompute_notes::agrees(&scratch.path("without"), "1 runs, 2 notes, ");
    scratch.write("words.json", WORDS);
    scratch.wardround(format!("{RUN} --out with")).succeeded();
    crate::recompute_notes::agrees(&scratch.path("with"), "1 runs, 2 notes, ");
    // Another file than the one that was used.
    scratch.write("words.json", "{\"a\": [\"quinine\"]}");
    crate::recompute_notes::differs(&scratch.path("with"), "words.json: sha256");
    // A figure that says that no file was used.
    scratch.write("words.json", WORDS);
    let path = scratch.path("with/results.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let said = "\"keywords_are_changed_words\": false";
    assert!(text.contains(said), "{text}");
    std::fs::write(&path, text.replace(said, &said.replace("false", "true"))).unwrap();
    crate::recompute_notes::differs(
        &scratch.path("with"),
        "keywords_are_changed_words: found True",
    );
}
