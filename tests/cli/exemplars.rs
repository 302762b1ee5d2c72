//! Systems with exemplars, whole: what is refused, reasons, a recipe of all of them.

use serde_json::Value;
use wardround::model::Family;
use wardround::systems::table::SystemEntry;

use crate::binary::Scratch;

/// A file of exemplars.
pub const NOTES: &str = r#"{"id": "x", "text": "0 Cough for a week.\n1 Pneumonia is treated with aspirin.", "gold": {"flag": 1, "sentence_id": 1, "correction": "Pneumonia is treated with amoxicillin.", "type": "treatment"}}
{"id": "y", "text": "0 Wheezing at night.\n1 Asthma is treated with salbutamol.", "gold": {"flag": 0}}
{"id": "z", "text": "0 Pain in the flank.\n1 Kidney stones are ruled out by an X-ray of the hand.", "gold": {"flag": 1, "sentence_id": 1, "correction": "Kidney stones are ruled out by computed tomography."}}
{"id": "w", "text": "0 Thirst and weight loss.\n1 Diabetes is likely.", "gold": {"flag": 0}}
"#;

/// What a run of the system needs beside its notes, where the exemplars are `exemplars.jsonl`.
pub fn flags(system: &SystemEntry) -> &'static str {
    if system.exemplars { "--exemplars exemplars.jsonl --exemplars-format notes" } else { "" }
}

const TESTED: &str = r#"{"id": "a", "text": "0 Fever for two days.\n1 Malaria is treated with aspirin.", "gold": {"flag": 1, "sentence_id": 1, "correction": "Malaria is treated with artesunate."}}
{"id": "b", "text": "0 Seen on the ward.\n1 All is well.", "gold": {"flag": 0}}
"#;

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.model(Family::Qwen3);
    scratch.write("tested.jsonl", TESTED);
    scratch.write("exemplars.jsonl", NOTES);
    scratch
}

const RUN: &str =
    "run --data tested.jsonl --format notes --panel qwen3 --set record_chars=4 --quiet";
const EXEMPLARS: &str = "--exemplars exemplars.jsonl --exemplars-format notes";

#[test]
fn what_no_exemplars_can_be_made_of_is_refused() {
    let scratch = scratch();
    let refused = |more: &str, parts: &[&str]| {
        scratch.wardround(format!("{RUN} --out none {more}")).refused(2, parts);
        assert!(!scratch.path("none").exists(), "{more}");
    };
    refused("medprompt", &["medprompt shows exemplars", "--exemplars FILE"]);
    refused(&format!("base-llm {EXEMPLARS}"), &["base-llm shows no exemplars"]);
    refused("medprompt --exemplars-format notes --exemplars tested.jsonl", &["file under test"]);
    refused(
        "medprompt --exemplars-format medqa --exemplars exemplars.jsonl",
        &["exemplars.jsonl:1: field `options` is missing"],
    );
    scratch.write("reasons.json", r#"{"x": "y"}"#);
    refused(
        &format!("medprompt {EXEMPLARS} --exemplar-reasons reasons.json"),
        &["no file of reasons", "wardround data reasons"],
    );
    scratch.write("ungraded.jsonl", r#"{"id": "u", "text": "Well."}"#);
    refused(
        "medprompt --exemplars ungraded.jsonl --exemplars-format notes",
        &["no note with gold"],
    );
    scratch.write("bad.jsonl", r#"{"txt": "Well."}"#);
    refused(
        "medprompt --exemplars bad.jsonl --exemplars-format notes",
        &[
            "bad.jsonl:1: field `txt` is unknown",
            "hint: fix the row, or take it out; if all rows look like it, another format may be right",
        ],
    );
}

#[test]
fn a_run_with_reasons_is_verified_replayed_and_taken_up() {
    let scratch = scratch();
    scratch
        .wardround(
            "data reasons --data exemplars.jsonl --format notes --style solve --panel qwen3 --max-tokens 8 --out reasons.json"
        )
        .succeeded();
    let reasons = std::fs::read_to_string(scratch.path("reasons.json")).unwrap();
    let reasons: Value = serde_json::from_str(&reasons).unwrap();
    assert_eq!(reasons["style"], "solve");
    let more = "--exemplar-reasons reasons.json";
    let run = format!("{RUN} medprompt {EXEMPLARS} {more} --out run");
    scratch.wardround(&run).finished();
    for verb in ["verify run", "replay run", "resume run", "report run"] {
        scratch.wardround(verb).succeeded();
    }
    let plan = std::fs::read_to_string(scratch.path("run/plan.toml")).unwrap();
    let plan: toml::Table = plan.parse().unwrap();
    assert_eq!(plan["exemplars"]["notes"].as_integer(), Some(4));
    let files = plan["exemplars"]["files"].as_array().unwrap();
    let files: Vec<&str> = files.iter().map(|file| file["what"].as_str().unwrap()).collect();
    assert_eq!(files, ["reasons"]);
    // Other exemplars are another run.
    scratch.write("exemplars.jsonl", NOTES.replace("Thirst", "Hunger"));
    scratch.wardround("replay run").refused(3, &["exemplars.sha256"]);
}

#[test]
fn the_recipe_of_the_shared_task_runs_on_own_notes() {
    let scratch = scratch();
    let own = "[exemplars]\nfile = \"exemplars.jsonl\"\nformat = \"notes\"\n";
    let dataset = "[[dataset]]\nname = \"medec\"\nlabel = \"Own\"\nfile = \"tested.jsonl\"\nformat = \"notes\"\n";
    let recipe = include_str!("../../recipes/mediqa-corr.toml");
    let from = recipe.find("[exemplars]").unwrap();
    let to = recipe.find("[[method]]").unwrap();
    scratch.write("own.toml", format!("{}{own}{dataset}{}", &recipe[..from], &recipe[to..]));
    let run = "recipe own.toml --data-dir . --panel qwen3 --runs 1 --limit 1 --set record_chars=2 --set max_tokens=16 --set samples=1 --quiet --out own";
    let table = scratch.wardround(run).finished().stdout.clone();
    for row in ["knowlab_AIMed, System 1", "IKIM", "0.694"] {
        assert!(table.contains(row), "no {row} in {table}");
    }
    assert_eq!(scratch.wardround("resume own --quiet").finished().stdout, table);
    let cells = std::fs::read_dir(scratch.path("own/cells")).unwrap().count();
    assert_eq!(cells, 6);
}

#[test]
#[ignore = "needs WARDROUND_DATA, and python3 of 3.11 or later"]
fn with_data_the_recipe_of_the_shared_task_ends_and_shows_no_neighbour() {
    let scratch = Scratch::new();
    scratch.link_data();
    scratch.model(Family::Qwen3);
    let run = "recipe mediqa-corr --data-dir data --panel qwen3 --runs 1 --limit 2 --set record_chars=2 --set max_tokens=16 --set samples=1 --quiet --out table";
    let table = scratch.wardround(run).finished().stdout.clone();
    assert!(table.contains("MediFact (without its leak)") && table.contains("0.737"), "{table}");
    let calls = std::fs::read_to_string(scratch.path("table/cells/medprompt-medec/calls.jsonl"));
    let calls = calls.unwrap();
    assert!(!calls.contains("uw-") && calls.contains("ms-test-"));
}
