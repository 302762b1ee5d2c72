use std::sync::LazyLock;

use super::*;
use crate::systems::file::StageEntry;
use crate::systems::scripted::{self, WRONG, exemplars, note};
use llguidance::api::TopLevelGrammar;

fn stage(keys: &str) -> StageEntry {
    toml::from_str(&format!("name = \"answer\"\nuser = \"{{note}}\"\n{keys}")).unwrap()
}

static LINES: LazyLock<StageEntry> = LazyLock::new(|| {
    stage(
        r#"style = "lines"
fields = [
    { key = "Error Flag", is = "flag", words = ["0", "1"] },
    { key = "Error Sentence ID", is = "sentence-id" },
    { key = "Corrected Sentence", is = "correction" },
]"#,
    )
});
static JSON: LazyLock<StageEntry> = LazyLock::new(|| {
    stage(
        r#"fields = [
    { key = "is_error", is = "flag", words = ["false", "true"] },
    { key = "reasoning", is = "reason" },
    { key = "sentence_id", is = "sentence-id" },
    { key = "error_sentence", is = "sentence" },
    { key = "corrected_sentence", is = "correction" },
]"#,
    )
});
/// Without a flag: a correction says that there is an error.
static SHORT: LazyLock<StageEntry> = LazyLock::new(|| {
    stage(
        r#"fields = [
    { key = "reason", is = "reason" },
    { key = "incorrect_sentence_id", is = "sentence-id" },
    { key = "correction", is = "correction" },
]"#,
    )
});
/// Where yes says that there is none.
static RIGHT: LazyLock<StageEntry> = LazyLock::new(|| {
    stage(
        r#"style = "lines"
fields = [
    { key = "Is correct", is = "flag", words = ["Yes", "No"] },
    { key = "Corrected sentence", is = "correction" },
]"#,
    )
});

const BETTER: &str = "Beta agonists were given for the attack.";

/// The flag, the sentence and the correction that a reply is read as.
fn read(stage: &StageEntry, reply: &str) -> (Option<bool>, Option<usize>, Option<String>, Parse) {
    let (judgement, parse) = stage.read_fields(reply, FinishReason::Stop, &note());
    assert_eq!(judgement.flag.is_none(), parse == Parse::Unread, "{reply}");
    (judgement.flag, judgement.sentence_id, judgement.correction, parse)
}

#[test]
fn an_exemplars_answer_reads_back_as_its_gold_and_fits_the_grammar() {
    let exemplars = exemplars();
    for stage in [&LINES, &JSON, &SHORT, &RIGHT] {
        for exemplar in &exemplars.notes {
            let answer = stage.of_gold(exemplar, "since \"it\"\nis");
            let (judgement, parse) = stage.read_fields(&answer, FinishReason::Stop, &exemplar.note);
            let error = exemplar.error();
            assert_eq!((judgement.flag, parse), (Some(error.is_some()), Parse::Ok), "{answer}");
            let correction = error.and_then(|error| error.correction.clone());
            assert_eq!(judgement.correction, correction);
            if stage.fields.iter().any(|field| field.is == Is::SentenceId) {
                assert_eq!(judgement.sentence_id, error.and_then(|error| error.sentence_id));
            }
            assert!(accepts(stage, &exemplar.note, &answer), "{answer}");
        }
    }
}

/// Whether the grammar of a form takes a text whole.
fn accepts(stage: &StageEntry, note: &Note, text: &str) -> bool {
    use crate::record::Grammar;
    let grammar = match stage.grammar(&note.clone().into(), &Decoding::default()) {
        Grammar::Regex(regex) => TopLevelGrammar::from_regex(&regex),
        Grammar::JsonSchema(schema) => {
            TopLevelGrammar::from_json_schema(serde_json::from_str(&schema).unwrap())
        }
        other => panic!("{other:?}"),
    };
    scripted::accepts(grammar, text)
}

#[test]
fn the_grammar_dictates_what_goes_together() {
    let note = note();
    for text in [
        r#"{"is_error": false, "reasoning": "x", "sentence_id": 1, "error_sentence": "NA", "corrected_sentence": "NA"}"#,
        r#"{"is_error": true, "reasoning": "x", "sentence_id": 3, "error_sentence": "She went home.", "corrected_sentence": "y"}"#,
        r#"{"is_error": true, "reasoning": "x", "sentence_id": 1, "error_sentence": "Not there.", "corrected_sentence": "y"}"#,
    ] {
        assert!(!accepts(&JSON, &note, text), "{text}");
    }
    assert!(!accepts(
        &LINES,
        &note,
        "Error Flag: 1\nError Sentence ID: -1\nCorrected Sentence: NA"
    ));
    assert!(!accepts(&LINES, &note, "Error Flag: 0\nError Sentence ID: 2\nCorrected Sentence: NA"));
}

#[test]
fn replies_are_read_as_models_write_them() {
    let wrong = |parse| (Some(true), Some(1), Some(BETTER.to_owned()), parse);
    let right = |parse| (Some(false), None, None, parse);
    let cases = [
        (&LINES, format!("Error Flag: 1\nError Sentence ID: 1\nCorrected Sentence: {BETTER}"), wrong(Parse::Ok)),
        (&LINES, format!("**Error Flag:** 1\n- Error Sentence ID: Sentence 1\n- Corrected Sentence: \"{BETTER}\""), wrong(Parse::Ok)),
        // The sentence's own number is no part of it, nor is what stands below a blank line.
        (&LINES, format!("Error Flag: 1\nError Sentence ID: 1\nCorrected Sentence:\n1 {BETTER}\n\nI hope that helps."), wrong(Parse::Ok)),
        // Of two answers that differ none is one.
        (&LINES, "Error Flag: 0\nError Sentence ID: -1\nCorrected Sentence: NA\n\nExample 5:\nError Flag: 1\nError Sentence ID: 2".to_owned(), (None, None, None, Parse::Unread)),
        (&LINES, format!("Error Flag: yes\nError Sentence ID: N/A\nCorrected Sentence: {BETTER}"), wrong(Parse::Repaired)),
        (&LINES, format!("{{\"error_flag\": 1, \"error_sentence_id\": 1, \"corrected_sentence\": \"{BETTER}\"}}"), wrong(Parse::Repaired)),
        (&LINES, "Error Flag: 0".to_owned(), right(Parse::Repaired)),
        (&JSON, format!("```json\n{{\"is_error\": true, \"reasoning\": \"r\", \"sentence_id\": \"1\", \"error_sentence\": \"{WRONG}\", \"corrected_sentence\": \"{BETTER}\"}}\n```"), wrong(Parse::Repaired)),
        // A number beyond the note: the sentence that is quoted.
        (&JSON, format!("{{\"is_error\": true, \"reasoning\": \"r\", \"sentence_id\": 9, \"error_sentence\": \"{WRONG}\", \"corrected_sentence\": \"{BETTER}\"}}"), wrong(Parse::Repaired)),
        // A number below 0 is none, with marks around it too.
        (&LINES, "Error Flag: 1\nError Sentence ID: **-1**\nCorrected Sentence: She went back home.".to_owned(), (Some(true), Some(2), Some("She went back home.".to_owned()), Parse::Repaired)),
        (&LINES, format!("Error Flag: 1\nError Sentence ID: Sentence-1\nCorrected Sentence: {BETTER}"), wrong(Parse::Ok)),
        (&JSON, r#"{"is_error": "No error", "sentence_id": -1, "corrected_sentence": null}"#.to_owned(), right(Parse::Ok)),
        // Without a flag the correction decides.
        (&SHORT, r#"{"reason": "r", "incorrect_sentence_id": -1, "correction": "NA"}"#.to_owned(), right(Parse::Ok)),
        // A sentence as it stands is no correction, nor is one that is cut.
        (&LINES, format!("Error Flag: 1\nError Sentence ID: 1\nCorrected Sentence: {WRONG}"), (Some(true), Some(1), None, Parse::Ok)),
        (&LINES, "Error Flag: 1\nError Sentence ID: 1\nCorrected Sentence: Beta blockers were".to_owned(), (Some(true), Some(1), None, Parse::Ok)),
        (&SHORT, format!(r#"{{"reason": "r", "incorrect_sentence_id": -1, "correction": "{BETTER}"}}"#), wrong(Parse::Repaired)),
        (&RIGHT, format!("Reasoning: so\nIs correct: No\nCorrected sentence: {BETTER}"), (Some(true), None, Some(BETTER.to_owned()), Parse::Ok)),
        (&RIGHT, "Is correct: No\nCorrected sentence: No".to_owned(), (Some(true), None, None, Parse::Ok)),
        (&RIGHT, "Is correct: Yes\nCorrected sentence: NA".to_owned(), right(Parse::Ok)),
        // No field at all: as models alone answer.
        (&JSON, format!("1 {BETTER}"), wrong(Parse::Fallback)),
        (&LINES, "CORRECT".to_owned(), right(Parse::Fallback)),
    ];
    for (form, reply, expected) in cases {
        assert_eq!(read(form, &reply), expected, "{reply}");
        let thought = format!("<think>Error Flag: 1\nError Sentence ID: 2</think>\n{reply}");
        assert_eq!(read(form, &thought), expected, "{thought}");
    }
}

#[test]
fn what_says_nothing_is_unread_and_what_contradicts_itself_is_counted() {
    for form in [&LINES, &JSON, &SHORT, &RIGHT] {
        for reply in ["", "I am not sure.", "<think>Error Flag: 1", "Corrected"] {
            assert_eq!(read(form, reply).3, Parse::Unread, "{reply}");
        }
    }
    // The prompt's own words for the fields.
    for (form, reply) in [
        (
            &SHORT,
            r#"{"reason": "r", "incorrect_sentence_id": the number of the wrong sentence or -1, "correction": "that sentence as it should be"}"#,
        ),
        (
            &SHORT,
            r#"{"incorrect_sentence_id": "the number or -1", "correction": "that sentence as it should be"}"#,
        ),
        (
            &LINES,
            "Error Flag: 1 or 2\nError Sentence ID: the number or -1\nCorrected Sentence: the sentence as it should be or NA",
        ),
    ] {
        assert_eq!(read(form, reply).3, Parse::Unread, "{reply}");
    }
    for (form, both) in [
        (&JSON, r#"{"is_error": false, "sentence_id": 1, "corrected_sentence": "NA"}"#),
        (&JSON, r#"{"is_error": false, "corrected_sentence": "Beta agonists were given."}"#),
        (&JSON, r#"{"is_error": false, "reasoning": "Sentence 1 is wrong.", "sentence_id": -1}"#),
        (&LINES, "Error Flag: 0\nError Sentence ID: -1\n\nThere is an error in sentence 1."),
        (&RIGHT, "Is correct: Yes\nCorrected sentence: Beta agonists were given for the attack."),
        (&LINES, "CORRECT\nThe dose is wrong."),
    ] {
        let (judgement, parse) = form.read_fields(both, FinishReason::Stop, &note());
        assert_eq!((judgement.flag, parse), (None, Parse::Unread), "{both}");
        assert!(judgement.contradiction, "{both}");
    }
    // A sentence that is named and stays as it is.
    let named = r#"{"reason": "r", "incorrect_sentence_id": 1, "correction": "NA"}"#;
    assert_eq!(read(&SHORT, named), (None, None, None, Parse::Unread));
    let other = r#"{"is_error": true, "sentence_id": 1, "error_sentence": "She went home.", "corrected_sentence": "x y"}"#;
    let (judgement, _) = JSON.read_fields(other, FinishReason::Stop, &note());
    assert_eq!((judgement.sentence_id, judgement.mismatch), (Some(1), true));
    // A sentence unlike any is none.
    let none = r#"{"is_error": true, "sentence_id": null, "error_sentence": "Zzz qqq", "corrected_sentence": "NA"}"#;
    let (judgement, _) = JSON.read_fields(none, FinishReason::Stop, &note());
    assert_eq!(
        (judgement.flag, judgement.sentence_id, judgement.correction),
        (Some(true), None, None)
    );
}
