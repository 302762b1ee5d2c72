//! Every entry of the table of systems, whole: items of the demonstration, run, verified, reported. The page shows what was
//! asked and hides how.

use std::path::Path;

use regex::Regex;
use serde_json::Value;
use wardround::data::{self, DEMO_PATH, Format, ItemKind};
use wardround::model::Family;
use wardround::systems::{SYSTEMS, SystemConfig};

use crate::binary::Scratch;
use crate::common::json_schema::is_valid;

const NOTES: &str = r#"{"id": "a", "text": "0 Fever & chills for two days.\n1 Malaria is treated with aspirin.", "gold": {"flag": 1, "sentence_id": 1, "correction": "Malaria is treated with artesunate."}}
{"id": "b", "text": "0 Seen on the ward.\n1 Pulse < 80, all's well.", "gold": {"flag": 0}}
"#;

/// What the page must show of each item.
fn asked(takes: ItemKind) -> Vec<String> {
    match takes {
        ItemKind::Questions => data::load(Path::new(DEMO_PATH), Format::Mcq)
            .unwrap()
            .questions()
            .iter()
            .take(2)
            .map(|question| question.question.clone())
            .collect(),
        ItemKind::Notes => {
            vec!["Fever & chills for two days.".to_owned(), "Pulse < 80, all's well.".to_owned()]
        }
    }
}

/// What a reader sees of the part of a page that shows the cases; after it come the figures.
fn cases(page: &str) -> String {
    let from = page.find("id=\"cases\"").unwrap();
    let length = page[from..].find("figures-title").unwrap();
    let tags = Regex::new(r"<[^>]*>").unwrap();
    let text = tags.replace_all(&page[from..from + length], "").into_owned();
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#39;", "'"),
        ("&#x2f;", "/"),
        ("&amp;", "&"),
    ];
    entities.iter().fold(text, |text, (entity, char)| text.replace(entity, char))
}

/// Lines of the system's prompts that no item and no answer has, nor MED-MAD's brief, of which a case shows every word: it is what an
/// agent was told of the others.
fn instructions(folder: &str) -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("prompts").join(folder);
    let mut lines = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.ends_with("medmad/brief-instructions.txt") {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        let long = text.lines().filter(|line| line.len() > 60 && !line.contains('{'));
        lines.extend(long.map(|line| line.trim().to_owned()));
    }
    assert!(!lines.is_empty(), "no line of its prompts is longer than 60 characters");
    lines
}

/// The longer lines of what a run's models were told, passages apart.
fn said(scratch: &Scratch, run: &str) -> Vec<String> {
    let calls = std::fs::read_to_string(scratch.path(run).join("calls.jsonl")).unwrap();
    let mut lines = Vec::new();
    for call in calls.lines() {
        let call: Value = serde_json::from_str(call).unwrap();
        for message in call["messages"].as_array().unwrap() {
            let text = message["content"].as_str().unwrap_or_default();
            lines.extend(text.lines().filter(|line| line.len() > 20).map(str::to_owned));
        }
    }
    lines
}

/// What stands in a run directory is valid under `docs/schemas`.
fn fits_its_schemas(run: &Path) {
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas");
    for file in ["dataset.jsonl", "calls.jsonl", "searches.jsonl", "items.jsonl", "results.json"] {
        let (name, _) = file.split_once('.').unwrap();
        let schema = std::fs::read(schemas.join(format!("{name}.json"))).unwrap();
        let schema = serde_json::from_slice(&schema).unwrap();
        // Most systems make no searches.
        let Ok(text) = std::fs::read_to_string(run.join(file)) else { continue };
        for line in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
            let line = line.unwrap();
            assert!(is_valid(&schema, &line), "{}: {file}: {line}", run.display());
        }
    }
}

#[test]
fn every_system_runs_verifies_and_reports_the_item_without_the_instructions() {
    let scratch = Scratch::new();
    scratch.model(Family::Qwen3);
    scratch.write("notes.jsonl", NOTES);
    scratch.write("exemplars.jsonl", crate::exemplars::NOTES);
    crate::corpus::write_corpus(&scratch);
    let questions: String = data::load(Path::new(DEMO_PATH), Format::Mcq)
        .unwrap()
        .questions()
        .iter()
        .map(|question| &*question.question)
        .collect();
    for system in SYSTEMS.iter() {
        let name = system.name;
        let config = SystemConfig::parse::<&str>(name, &[]).unwrap();
        // Few turns, for a prompt of many passages takes its time.
        let settings = [
            ("rerank", "off"),
            ("rerank_top_k", "2"),
            ("react_turns", "2"),
            ("reflexion_turns", "1"),
        ];
        let settings = settings.iter().filter(|(key, _)| config.table.contains_key(*key));
        let settings: String =
            settings.map(|(key, value)| format!(" --set {key}={value}")).collect();
        let corpus = if config.search().is_some() { "--corpus corpus" } else { "" };
        let data = match system.takes {
            ItemKind::Questions => format!("{DEMO_PATH} --format mcq --limit 2"),
            ItemKind::Notes => "notes.jsonl --format notes".to_owned(),
        };
        let exemplars = crate::exemplars::flags(system);
        let run = format!(
            "run {name} --data {data} {exemplars} {corpus} --panel qwen3 --set record_chars=4{settings} --quiet --out {name}"
        );
        scratch.wardround(run).finished();
        scratch.wardround(format!("verify {name}")).succeeded();
        fits_its_schemas(&scratch.path(name));
        scratch.wardround(format!("report {name}")).succeeded();
        let page = std::fs::read_to_string(scratch.path(name).join("report.html")).unwrap();
        let cases = cases(&page);
        for text in asked(system.takes) {
            assert!(cases.contains(&text), "{name}: the page does not show: {text}");
        }
        // An arbiter's card shows what it was asked, which in MedGuards is one message with its instructions.
        let instructions = instructions(system.prompts);
        let hidden = instructions.iter().filter(|_| system.prompts != "medguards");
        for line in hidden {
            assert!(!cases.contains(line), "{name}: the page shows the instruction: {line}");
        }
        let shown: Vec<&str> = page
            .split("<section class=\"question\">")
            .skip(1)
            .map(|section| section.split_once("</section>").unwrap().0)
            .collect();
        assert_eq!(shown.len(), 2, "{name}");
        for line in said(&scratch, name) {
            let is_of_an_item = NOTES.contains(&line) || questions.contains(&line);
            let is_shown = shown.iter().any(|text| text.contains(&line));
            assert!(is_of_an_item || !is_shown, "{name}: the page shows the instruction: {line}");
        }
    }
}
