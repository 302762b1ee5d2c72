//! Items that do not fit: into the context, the pool of pages or the memory.

use serde_json::Value;

use crate::binary::{Scratch, lines};

/// Three questions, of which the second is beyond a context of 4096 tokens.
fn write_one_too_long(scratch: &Scratch) {
    let rows = ["What is 1?", &"Why? ".repeat(3000), "What is 3?"].map(|question| {
        let row =
            serde_json::json!({"question": question, "options": ["this", "that"], "answer": "A"});
        format!("{row}\n")
    });
    scratch.write("questions.jsonl", rows.concat());
}

fn items(scratch: &Scratch, out: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(scratch.path(out).join("items.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn results(scratch: &Scratch, out: &str) -> Value {
    let text = std::fs::read_to_string(scratch.path(out).join("results.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_prompt_beyond_the_context_is_an_error_with_counts_and_the_run_goes_on() {
    let scratch = Scratch::new();
    write_one_too_long(&scratch);
    let ended = scratch.run_one("out", "--context 4096");
    ended.refused(
        1,
        &[
            "1 of 3 items errored, the first of them 2: a prompt of ",
            " tokens leaves no room in the context of 4096",
            "hint: `wardround resume out` tries them again",
        ],
    );
    let results_then = results(&scratch, "out");
    assert_eq!(results_then["n_errors"], 1);
    assert_eq!(results_then["n_items"], 3);
    // It counts as wrong, in the denominator.
    let right = items(&scratch, "out").iter().filter(|item| item["correct"] == true).count();
    assert_eq!(results_then["accuracy"]["per_run"][0], right as f64 / 3.0);
    let failed: Vec<Value> =
        items(&scratch, "out").into_iter().filter(|item| !item["error"].is_null()).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!((&failed[0]["answer"], &failed[0]["correct"]), (&"".into(), &false.into()));
    scratch.wardround("verify out").succeeded();
    scratch.wardround("replay out").succeeded();

    let again = scratch.wardround("resume out");
    again.refused(1, &["1 of 3 items errored"]);
    assert_eq!(lines(&scratch.path("out/items.jsonl")), 4, "it was not tried again");
    assert_eq!(results(&scratch, "out")["n_errors"], 1);
    scratch.wardround("verify out").succeeded();
}

#[test]
fn a_request_beyond_the_pool_of_pages_is_an_error_that_more_memory_mends() {
    let scratch = Scratch::new();
    scratch.questions(1);
    let debate = "--set t_max=1 --set always_debate=on";
    let ended = scratch.run_one("out", &format!("{debate} --kv-tokens 1024"));
    ended.refused(
        1,
        &[
            "1 of 1 item errored, the first of them q1: a prompt of ",
            "pages of the KV cache, which has ",
        ],
    );
    assert_eq!(results(&scratch, "out")["n_errors"], 1);
    scratch.wardround("resume out").succeeded();
    assert_eq!(results(&scratch, "out")["n_errors"], 0);
    scratch.run_one("whole", debate).succeeded();
    crate::binary::assert_equal_runs(&scratch.path("whole"), &scratch.path("out"));
}

#[test]
fn a_panel_beyond_the_memory_is_refused_with_the_figures_before_anything_is_written() {
    let scratch = Scratch::new();
    scratch.questions(1);
    scratch.run_one("out", "--kv-tokens 4000000000").refused(
        2,
        &[
            "the panel needs ",
            " GiB of memory, and ",
            " is free (llama: ",
            "MiB of weights, ",
            "GiB of KV cache, ",
            "of scratch)",
            "hint: lower --max-batch, --context or --kv-tokens",
        ],
    );
    assert!(!scratch.path("out").exists());
}
