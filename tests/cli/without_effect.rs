//! Flags and settings without effect, and names of what is not there, are refused.

use wardround::model::Family;

use crate::binary::Scratch;

#[test]
fn flags_without_effect_are_refused() {
    let scratch = Scratch::new();
    scratch.questions(1);
    scratch.model(Family::Llama);
    let run = "run zero-shot --data questions.jsonl --format mcq --panel llama --out out";
    for (flags, told) in [
        ("--reranker none", "reranks by no cross-encoder"),
        ("--sources ward", "--corpus <DIR,DIR>"),
        ("--exemplars-format notes", "--exemplars <FILE>"),
        ("--set samples=1 --set samples=2", "--set samples is given twice"),
        ("--set examples=medqa", "there is no setting examples"),
        ("--set slot.none.temperature=0.1", "has no slot none"),
    ] {
        scratch.wardround(format!("{run} {flags}")).refused(2, &[told]);
    }
    let ended = scratch.wardround(format!("{run} --device gpu"));
    ended.refused(2, &["`gpu` is no device"]);
    assert!(!ended.stderr.contains("sandbox"), "{}", ended.stderr);
    assert!(!scratch.path("out").exists());
    for (recipe, told) in [
        ("table2 --exemplars none", "no method of the recipe takes --exemplars"),
        ("table2 --corpus none", "no method of the recipe takes --corpus"),
        ("medreact-encoders --reranker none", "name the corpora in the recipe's order"),
    ] {
        scratch.wardround(format!("recipe {recipe} --data-dir .")).refused(2, &[told]);
    }
}

#[test]
fn a_reranker_where_none_reranks_is_refused() {
    let scratch = Scratch::new();
    crate::corpus::write_corpus(&scratch);
    let note = "{\"id\": \"a\", \"text\": \"Well.\", \"sentences\": [\"Well.\"]}\n";
    scratch.write("notes.jsonl", note);
    std::fs::create_dir(scratch.path("cross")).unwrap();
    scratch
        .wardround("run medreact --data notes.jsonl --format notes --corpus corpus --reranker cross --set rerank=off --out out")
        .refused(2, &["medreact reranks by no cross-encoder here", "leave --reranker out"]);
}

#[test]
fn names_of_what_is_not_there_are_refused() {
    let scratch = Scratch::new();
    scratch.wardround("corpus search none query --top-k 0").refused(2, &["--top-k"]);
    scratch.wardround("corpus search none query --rerank-top-k 0").refused(2, &["--rerank-top-k"]);
}
