use crate::panel::scripted::{Script, panel};
use crate::record::{FinishReason, Message, Parse};
use crate::systems::scripted::{answer, note, question};
use crate::systems::{SystemConfig, Task, base_llm, medreflex};

impl super::Parsed for base_llm::Reading {}

fn said(text: &'static str, pairs: &[&str]) -> (String, Parse, serde_json::Value) {
    let config = SystemConfig::parse("medmad", pairs).unwrap();
    let (line, calls) = answer(&config, &question(5), Script::new(move |_, _| text.to_owned()));
    (line.answer, calls[0].parse, serde_json::to_value(&calls[0].record).unwrap())
}

#[test]
fn a_refusal_is_no_answer() {
    for text in ["I can\u{2019}t help with that.", "I'm sorry, but I won't."] {
        let (answer, parse, record) = said(text, &[]);
        assert_eq!((answer.as_str(), parse), ("", Parse::Refused), "{text}");
        assert_eq!(record["answer"], "");
    }
    let (answer, parse, _) = said("I cannot help it: B.\nAnswer: B", &[]);
    assert_eq!((answer.as_str(), parse), ("B", Parse::Fallback));
}

#[test]
fn a_letter_that_the_item_has_not_is_no_answer_and_the_record_says_so() {
    let (answer, parse, record) = said(r#"{"answer": "I"}"#, &[]);
    assert_eq!((answer.as_str(), parse), ("", Parse::Unread));
    assert_eq!(record["not_an_option"], "I");
}

#[test]
fn a_letter_beside_another_options_text_is_unread_and_the_record_says_so() {
    let (answer, parse, record) = said(r#"{"answer": "A: option B"}"#, &[]);
    assert_eq!((answer.as_str(), parse), ("", Parse::Unread));
    assert_eq!(record["contradiction"], true);
    // Reasons that are no more than another option's text.
    let (answer, parse, record) = said(r#"{"reasoning": "Option B.", "answer": "A"}"#, &[]);
    assert_eq!((answer.as_str(), parse), ("", Parse::Unread));
    assert_eq!(record["contradiction"], true);
    // What says of another option that it is none, or what else it is, concludes nothing.
    for reasons in [
        "It cannot be option B.",
        "The usual drug is option B.",
        "The best answer should not be option B.",
    ] {
        let text = format!(r#"{{"reasoning": "{reasons}", "answer": "A"}}"#);
        assert_eq!(said(text.leak(), &[]).0, "A", "{reasons}");
    }
    let concluded = r#"{"reasoning": "The most likely cause is option B.", "answer": "A"}"#;
    assert_eq!((said(concluded, &[]).0, said(concluded, &[]).1), (String::new(), Parse::Unread));
    for text in [
        r#"{"reasoning": "Option B.", "answer": "B"}"#,
        r#"{"reasoning": "Not option B.", "answer": "A"}"#,
    ] {
        assert_eq!(said(text, &[]).1, Parse::Ok, "{text}");
    }
    let (_, _, record) = said("Well.", &[]);
    assert!(record.get("contradiction").is_none());
}

#[test]
fn a_refusals_words_judge_no_note() {
    let (panel, _) = panel(&["solo".to_owned()], Script::new(|_, _| String::new()));
    let item = note().into();
    let task = Task { panel: &panel, dataset: "d", item: &item, run: 0 };
    let case = task.note().unwrap();
    let read = |finish_reason| {
        case.read(&[], "Sorry. INCORRECT", finish_reason, |text, _| base_llm::read(text, case.item))
    };
    assert_eq!(read(FinishReason::Stop).0.flag, Some(true));
    let refused = read(FinishReason::Refusal);
    assert_eq!((refused.0.flag, refused.2), (None, Parse::Refused));
    let declined = case.read(&[], "I cannot help with that.", FinishReason::Stop, |text, _| {
        base_llm::read(text, case.item)
    });
    assert_eq!((declined.0.flag, declined.2), (None, Parse::Refused));
}

#[test]
fn a_correction_that_was_cut_off_is_none() {
    let (panel, _) = panel(&["solo".to_owned()], Script::new(|_, _| String::new()));
    let item = note().into();
    let task = Task { panel: &panel, dataset: "d", item: &item, run: 0 };
    let case = task.note().unwrap();
    let correction = |rest: &str, finish_reason| {
        let fields = r#""is_error": true, "sentence_id": 1, "corrected_sentence""#;
        let text = format!("{{{fields}: \"Beta agonists {rest}");
        let read = |text: &str, reason| medreflex::answer::read(text, reason, case.item, None);
        case.read(&[], &text, finish_reason, read).0.correction
    };
    assert_eq!(correction("were given for the", FinishReason::Length), None);
    // At a grammar's bound, which the reply does not tell.
    let bound = format!("{}\"}}", "were given and ".repeat(12).trim_end());
    assert_eq!(correction(&bound, FinishReason::Stop), None);
    for reason in [FinishReason::Stop, FinishReason::Length] {
        let whole = correction("were given.\"}", reason);
        assert_eq!(whole.as_deref(), Some("Beta agonists were given."));
    }
}

#[test]
fn what_one_agent_echoes_the_next_ones_echo_too() {
    let (panel, _) = panel(&["solo".to_owned()], Script::new(|_, _| String::new()));
    let item = note().into();
    let task = Task { panel: &panel, dataset: "d", item: &item, run: 0 };
    let case = task.note().unwrap();
    let brief = "You are a doctor. The report above may be the work of a careless colleague. Do you agree with this report?";
    let messages = [Message::new("user", brief)];
    for _ in 0..2 {
        let reading = case.read(&messages, brief, FinishReason::Stop, |text, _| {
            let flag = Some(text.is_empty()).filter(|is_none| !is_none);
            (base_llm::Reading { flag, ..Default::default() }, Parse::Fallback)
        });
        assert_eq!((reading.0.flag, reading.2), (None, Parse::Unread));
    }
}
