//! `score mediqa-corr`: against figures of an independent script, and what it says of files that are not as they should be.

use serde_json::Value;

use crate::binary::Scratch;

const GOLD: &str = "\
Text ID,Text,Sentences,Error Flag,Error Type,Error Sentence ID,Error Sentence,Corrected Sentence
ms-test-0,A. B.,\"0 It is so.
1 It is gout.\",1,diagnosis,1,It is gout.,It is malaria.
ms-test-1,A.,0 It is so.,0,NA,-1,NA,NA
";

/// The submission with a golden's edits done.
fn mangled(submission: &str, edits: &Value) -> String {
    let mut lines: Vec<&str> = submission.lines().collect();
    if let Some(changed) = edits["lines"].as_object() {
        for (number, line) in changed {
            lines[number.parse::<usize>().unwrap() - 1] = line.as_str().unwrap();
        }
    }
    if let Some(drop) = edits["drop"].as_array() {
        let [first, last] = [&drop[0], &drop[1]].map(|number| number.as_u64().unwrap() as usize);
        lines.drain(first - 1..last);
    }
    let appended = edits["append"].as_array().into_iter().flatten();
    lines.extend(appended.map(|line| line.as_str().unwrap()));
    let end = edits["line_end"].as_str().unwrap_or("\n");
    lines.join(end) + end
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_figures_are_those_of_an_independent_script() {
    let scratch = Scratch::new();
    scratch.link_data();
    let goldens = include_str!("../goldens/mediqa_corr.json");
    let goldens: Value = serde_json::from_str(goldens).unwrap();
    let data = scratch.path("data");
    let submission = data.join(goldens["submission"].as_str().unwrap());
    let submission = std::fs::read_to_string(submission).unwrap();
    let gold = goldens["gold"].as_str().unwrap();
    let cases = goldens["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 5);
    for case in cases {
        scratch.write("run.txt", mangled(&submission, &case["edits"]));
        let outcome = scratch
            .wardround(format!("score mediqa-corr run.txt --gold data/{gold} --format json"));
        let figures: Value = serde_json::from_str(&outcome.succeeded().stdout).unwrap();
        let (found, expected) = (figures.as_object().unwrap(), case["figures"].as_object());
        let expected = expected.unwrap();
        assert!(found.keys().eq(expected.keys()), "{found:?}");
        for (name, figure) in expected {
            let close = match (found[name].as_f64(), figure.as_f64()) {
                (Some(found), Some(expected)) => (found - expected).abs() < 1e-12,
                _ => found[name] == *figure,
            };
            assert!(close, "{} {name}: {} for {figure}", case["name"], found[name]);
        }
    }
}

#[test]
fn tables_show_both_families_and_what_was_not_as_it_should_be() {
    let scratch = Scratch::new();
    scratch.write("gold.csv", GOLD);
    scratch.write("run.txt", "ms-test-0 1 1 It was malaria.\n\nms-test-1\n");
    let outcome = scratch.wardround("score mediqa-corr run.txt --gold gold.csv --format md");
    let lines: Vec<&str> = outcome.succeeded().stdout.lines().collect();
    for line in [
        "| flag | 0.5000 |",
        "| sentence | 0.5000 |",
        "| ROUGE-1 | 0.6667 | 0.3333 |",
        "| ROUGE-2 | 0.0000 | 0.0000 |",
        "2 notes: 1 missing (1 invalid lines), 0 rightly left alone, 1 corrections compared (the subset)",
    ] {
        assert!(lines.contains(&line), "{lines:#?}");
    }
    assert!(!outcome.stdout.contains("BLEURT"));
    for note in [
        "note: MEDEC-MS, 2 of the paper's 925 notes: its figures are not comparable",
        "note: run.txt:3: an invalid line, which counts as missing",
    ] {
        assert!(outcome.stderr.contains(note), "{}", outcome.stderr);
    }
}

#[test]
fn files_that_cannot_be_scored_are_refused() {
    let scratch = Scratch::new();
    scratch.write("gold.csv", GOLD);
    scratch.write("run.txt", "ms-test-1 0 -1 NA\nms-test-0 1 1 a \\d b\n");
    scratch.write("other.txt", "uw-test-1 0 -1 NA\n");
    scratch.write("latin.txt", b"ms-test-0 1 1 caf\xe9\n");
    scratch.write("plain.jsonl", "{\"text\": \"Well.\"}\n");
    scratch.questions(1);
    for (arguments, parts) in [
        (
            "run.txt --gold gold.csv",
            [
                "run.txt:2: a backslash alone",
                "hint: the official scorer takes backslashes for escapes",
            ],
        ),
        ("latin.txt --gold gold.csv", ["latin.txt: not valid UTF-8", ""]),
        ("none.txt --gold gold.csv", ["none.txt", "No such file"]),
        ("run.txt --gold none.csv", ["none.csv", "No such file"]),
        (
            "run.txt --gold questions.jsonl --gold-format mcq",
            ["questions.jsonl holds no notes", "hint: give --gold-format"],
        ),
        ("other.txt --gold gold.csv", ["no note of gold.csv has an id of other.txt", "hint: "]),
        (
            "run.txt --gold plain.jsonl --gold-format notes",
            ["note 1 has no gold to score against", ""],
        ),
    ] {
        let outcome = scratch.wardround(format!("score mediqa-corr {arguments}"));
        outcome.refused(2, &parts);
    }
}
