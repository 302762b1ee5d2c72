//! Open questions from end to end: a panel answers in words, a model judges, and what is refused on the way.

use crate::binary::{Scratch, lines};

const QUESTIONS: &str = r#"{"id": "a", "question": "What is the antidote of heparin?", "answer": "Protamine."}
{"id": "b", "question": "Which vitamin is missing in scurvy?", "answer": "Vitamin C, or ascorbic acid."}
"#;

#[test]
fn a_panel_answers_in_words_and_a_model_judges_the_answers() {
    let scratch = Scratch::new();
    let panel = scratch.panel();
    scratch.write("open.jsonl", QUESTIONS);
    let quick = "--set record_chars=8 --offline";
    let said = scratch.wardround(format!(
        "run medmad --format open --data open.jsonl --panel {panel} {quick} --set t_max=1 --runs 2 --out said"
    ));
    said.finished();
    assert!(said.stdout.contains("accuracy   no gold answers"), "{}", said.stdout);
    assert!(said.stdout.contains(" of 4 in words; ROUGE-L "), "{}", said.stdout);
    scratch.wardround("verify said").succeeded();
    let replayed = scratch.wardround("replay said --offline");
    assert!(replayed.stdout.contains(", 0 differences"), "{replayed:#?}");
    let page = std::fs::read_to_string(scratch.path("said/report.html")).unwrap();
    assert!(page.contains("Answers in words") && page.contains("The reference: Protamine."));
    // Nobody who answers sees a reference.
    let calls = std::fs::read_to_string(scratch.path("said/calls.jsonl")).unwrap();
    assert!(!calls.contains("Protamine."));
    assert_eq!(calls.matches(r#""purpose":"proposal""#).count(), 2 * 2 * 3);

    for (form, steps) in [("judge", "of 1 to 10"), ("judge-right", "of 0 to 1")] {
        scratch.wardround(format!("export said --as {form} --out {form}")).succeeded();
        let file = format!("{form}/judge.jsonl");
        assert_eq!(lines(&scratch.path(&file)), 4);
        let judged = scratch.wardround(format!(
            "run zero-shot --format scale --data {file} --panel qwen3 {quick} --out judged-{form}"
        ));
        judged.finished();
        assert!(
            judged.stdout.contains("mean step ") && judged.stdout.contains(steps),
            "{}",
            judged.stdout
        );
        scratch.wardround(format!("verify judged-{form}")).succeeded();
        let page = std::fs::read_to_string(scratch.path(&format!("judged-{form}/report.html")));
        assert!(page.unwrap().contains("Steps of the scale"));
    }
}

#[test]
fn what_cannot_be_asked_or_judged_is_told() {
    let scratch = Scratch::new();
    scratch.questions(2);
    scratch.run_one("out", "").finished();
    scratch
        .wardround("export out --as judge --out judge")
        .refused(2, &["has no answers in words", "--format open"]);
    scratch.write("open.jsonl", QUESTIONS);
    scratch
        .wardround("run no-debate --format open --data open.jsonl --panel llama --set samples=4")
        .refused(2, &["3 agents with 4 answers each", "--set samples=N"]);
    scratch
        .wardround("run medguards --format open --data open.jsonl --panel llama")
        .refused(2, &["medguards checks notes, and open holds questions"]);
    scratch
        .wardround("run medmad --format scale --data questions.jsonl --panel llama")
        .refused(2, &["questions.jsonl", "`answer` is of no use: no step of a scale is right"]);
    scratch.write("bare.jsonl", r#"{"question": "Why?"}"#);
    scratch
        .wardround("run zero-shot --format open --data bare.jsonl --panel llama --set record_chars=8 --out bare")
        .finished();
    scratch
        .wardround("export bare --as judge --out judge")
        .refused(2, &["question 1: there is no reference to hold its answer against"]);
}
