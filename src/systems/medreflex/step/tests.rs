//! Steps as models write them.

use super::*;

fn action(text: &str) -> Option<Action> {
    read(text, FinishReason::Stop).0.action
}

fn search(query: &str) -> Option<Action> {
    Some(Action::Search { query: query.to_owned() })
}

fn last(sentence: &str, correction: &str) -> Option<Action> {
    let (sentence, correction) = (sentence.to_owned(), correction.to_owned());
    Some(Action::FinalMistake { sentence, correction })
}

#[test]
fn both_forms_and_all_three_names_are_read() {
    let step =
        |action: &str| format!(r#"{{"observation": "o", "thought": "t", "action": {action}}}"#);
    for (written, expected) in [
        (r#"{"name": "search", "query": "asthma"}"#, search("asthma")),
        (r#""search(\"asthma\")""#, search("asthma")),
        (r#""search('asthma')""#, search("asthma")),
        (r#""search(asthma)""#, search("asthma")),
        (r#""search(query=\"asthma (acute)\")""#, search("asthma (acute)")),
        (r#"{"search": "asthma"}"#, search("asthma")),
        (r#"{"name": "search", "arguments": {"query": "asthma"}}"#, search("asthma")),
        (r#"{"name": "final_mistake", "sentence": "S", "correction": "C"}"#, last("S", "C")),
        (r#""final_mistake(\"S, a\", \"C\")""#, last("S, a", "C")),
        (r#""flag_mistake(\"S\", \"C\")""#, last("S", "C")),
        (r#""final_flagged_mistake(\"S\", \"C\")""#, last("S", "C")),
        (r#""final_mistake(sentence=\"S\", correction=\"C\")""#, last("S", "C")),
        (r#""get_doc_by_id(\"7\")""#, None),
        (r#""final_mistake()""#, None),
        (r#""""#, None),
        ("null", None),
    ] {
        let (record, _) = read(&step(written), FinishReason::Stop);
        assert_eq!(record.action, expected, "{written}");
        assert_eq!((record.observation.as_str(), record.thought.as_str()), ("o", "t"));
    }
}

#[test]
fn quotes_brackets_and_newlines_in_an_action_stay() {
    let wanted = last("He said \"no\" (twice), \"so\".\nOn day 2", "He said \\yes");
    let call = wanted.as_ref().unwrap().as_call();
    let step = serde_json::json!({"observation": "", "thought": "", "action": call});
    assert_eq!(action(&step.to_string()), wanted);
    assert_eq!(
        of_call(r#"final_mistake("He said "no" again.", "C")"#),
        last("He said \"no\" again.", "C")
    );
    let object = wanted.as_ref().unwrap().as_object();
    assert_eq!(of_call(&object), wanted);
}

#[test]
fn prose_and_replies_that_are_half_kept_are_read() {
    for (text, expected) in [
        ("Observation: wheeze\nThought: check\nAction: search(\"asthma\")", search("asthma")),
        (
            "**Observation:** wheeze\n**Thought:** check\n**Action:** `search(\"asthma\")`",
            search("asthma"),
        ),
        ("I would look it up first.\nsearch(\"asthma\")", search("asthma")),
        (
            "<think>search(\"x\")</think>OUTPUT: {\"thought\": \"t\", \"observation\": \"o\", \"action\": \"search(\\\"asthma\\\")\"}",
            search("asthma"),
        ),
        (
            "```json\n{\"observation\": \"o\", \"thought\": \"t\", \"action\": {\"name\": \"search\", \"query\": \"json files\"}}\n```",
            search("json files"),
        ),
        (
            "{\"observation\": \"o\", \"thought\": \"t\", \"action\": \"search\", \"action_input\": \"asthma\"}",
            search("asthma"),
        ),
        (
            "{\"observation\": \"o\", \"thought\": \"t\", \"action\": \"final_mistake(\\\"S\\\", \\\"C",
            last("S", "C"),
        ),
        ("I am sorry, but I cannot.", None),
        ("", None),
    ] {
        assert_eq!(action(text), expected, "{text}");
    }
}

#[test]
fn long_replies_of_quotes_or_labels_are_read_in_linear_time() {
    let started = std::time::Instant::now();
    let quotes = format!("search(\"{}\")", "\" ".repeat(50_000));
    assert_eq!(of_call(&quotes), None);
    let labels = "so action ".repeat(400_000);
    assert_eq!(of_prose(&labels), StepRecord::default());
    assert!(started.elapsed().as_secs() < 20);
}

#[test]
fn no_mistake_is_said_in_many_words() {
    for none in ["NA", "N/A", "n.a.", "None", "No mistake", "no error."] {
        assert!(is_nothing(none), "{none}");
    }
    assert!(!is_nothing("No fever."));
}
