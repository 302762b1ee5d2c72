//! The recipes of MedReAct'N'MedReFlex, each to its end on an own note with tiny models.

use std::path::Path;

use wardround::model::Family;

use super::exemplars;
use super::medreflex::{NOTES, PROMPTS};
use crate::binary::Scratch;

/// Sources of the labels that the recipes name, all of the same few passages.
const SOURCES: [&str; 4] = ["medwiki", "guidelines", "textbooks", "statpearls"];

const ENCODER: &str =
    "output = \"mean\"\nnormalised = true\nquery_tokens = 64\ndocument_tokens = 64\nwidths = [8]\n";
const RERANKER: &str = "output = \"one-logit\"\nquery_tokens = 64\ndocument_tokens = 64\n";

/// The recipe on the own note: its dataset under the same name, so that published figures still find it.
fn own(recipe: &str) -> String {
    let (before, rest) = recipe.split_once("[[dataset]]").unwrap();
    let (dataset, methods) = rest.split_once("[[method]]").unwrap();
    let name = dataset.lines().find(|line| line.starts_with("name = ")).unwrap();
    format!(
        "{before}[[dataset]]\n{name}\nlabel = \"Own\"\nfile = \"notes.jsonl\"\nformat = \"notes\"\n\n[[method]]{methods}"
    )
}

#[test]
fn every_recipe_ends_with_tiny_models() {
    let scratch = Scratch::new();
    scratch.model(Family::Qwen3);
    scratch.write("notes.jsonl", NOTES);
    scratch.write("exemplars.jsonl", exemplars::NOTES);
    std::fs::create_dir_all(scratch.path("prompts/medreflex")).unwrap();
    for (name, text) in PROMPTS {
        scratch.write(&format!("prompts/medreflex/{name}.txt"), text);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let passages = root.join("src/cli/demo/passages.jsonl");
    let sources = SOURCES.map(|label| {
        format!("[[source]]\nlabel = \"{label}\"\nformat = \"jsonl\"\npath = \"{label}.jsonl\"\nlicence = \"own\"\nredistribute = true\n")
    });
    for label in SOURCES {
        std::fs::copy(&passages, scratch.path(&format!("{label}.jsonl"))).unwrap();
    }
    scratch.write("ward.toml", format!("name = \"ward\"\n{}", sources.concat()));
    for (folder, golden, table) in
        [("encoder", "encoders/tiny-mean", ENCODER), ("reranker", "retrieval/tiny-cross", RERANKER)]
    {
        std::fs::create_dir(scratch.path(folder)).unwrap();
        for file in ["config.json", "model.safetensors", "tokenizer.json"] {
            let from = root.join("tests/goldens").join(golden).join(file);
            std::fs::copy(from, scratch.path(&format!("{folder}/{file}"))).unwrap();
        }
        scratch.write(&format!("{folder}/encoder.toml"), table);
    }
    // Searched by half of the numbers, so that whole vectors are there to rerank by.
    let build = "corpus build ward.toml --encoder encoder --dims 16 --search-dims 8 --out corpus";
    scratch.wardround(build).succeeded();
    let mut names: Vec<String> = std::fs::read_dir(root.join("recipes"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("medreact-"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 11);
    for name in names {
        let recipe = std::fs::read_to_string(root.join("recipes").join(&name)).unwrap();
        scratch.write(&name, own(&recipe));
        let corpus = match name.as_str() {
            "medreact-encoders.toml" => "corpus,corpus,corpus,corpus",
            _ => "corpus",
        };
        let exemplars = match name.as_str() {
            "medreact-table2.toml" => "--exemplars exemplars.jsonl --exemplars-format notes",
            _ => "",
        };
        let out = name.trim_end_matches(".toml");
        let run = format!(
            "recipe {name} --data-dir . --panel qwen3 --corpus {corpus} --prompts prompts --runs 1 --limit 1 --reranker reranker {exemplars} --set record_chars=2 --set max_tokens=8 --set react_turns=1 --set reviewers=1 --quiet --out {out}"
        );
        let table = scratch.wardround(&run).succeeded().stdout.clone();
        assert!(table.contains("Steps, turns and time"), "{name}: {table}");
        assert!(table.contains("share of chunks"), "{name}: {table}");
        let page = std::fs::read_to_string(scratch.path(&format!("{out}/report.html"))).unwrap();
        let sweeps = ["Correction, over all notes", "Turns and steps a note", "Time of a step"];
        let is_swept = recipe.contains("analyses = [\"sweep\"]");
        assert!(sweeps.iter().all(|title| page.contains(title) == is_swept), "{name}");
        if name == "medreact-table2.toml" {
            assert!(table.contains("0.5990"), "{table}");
        }
    }
}
