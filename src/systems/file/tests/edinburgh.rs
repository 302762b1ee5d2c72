//! Edinburgh Clinical NLP, with and without the multiple-choice question.

use std::sync::Arc;

use crate::panel::scripted::Script;
use crate::prompts::PromptSet;
use crate::record::{CallLine, NoteLine};
use crate::systems::SystemConfig;
use crate::systems::exemplars::{Exemplars, Likeness};
use crate::systems::scripted::{check, check_with, exemplars, note};

fn run(name: &str, pairs: &[&str], reply: fn(&str) -> &'static str) -> (NoteLine, Vec<CallLine>) {
    let config = SystemConfig::parse(name, pairs).unwrap();
    let script = Script::new(move |key, _| reply(&key.purpose).to_owned());
    let (line, calls) = check(&config, &note(), script);
    assert!(calls.len() <= config.max_calls() as usize);
    (line, calls)
}

#[test]
fn exemplars_are_turns_the_best_first_and_na_is_no_error() {
    let reply = |_: &str| r#"{"reason": "r", "incorrect_sentence_id": 1, "correction": "NA"}"#;
    let (line, calls) = run("edinburgh", &["shots=2"], reply);
    assert_eq!(line.flag.said(), Some(false));
    let roles: Vec<&str> = calls[0].messages.iter().map(|one| one.role.as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user", "assistant", "user"]);
    let content = |at: usize| &calls[0].messages[at].content;
    assert!(content(1).contains("Beta blockers were given for asthma."));
    assert!(content(2).contains(
        r#""incorrect_sentence_id": 1, "correction": "Beta agonists were given for asthma.""#
    ));
    assert!(content(4).ends_with(r#""incorrect_sentence_id": -1, "correction": "NA"}"#));
    assert!(content(5).contains("\n1 Beta blockers were given for the attack."));
    let (_, calls) = run("edinburgh", &["shots=0", "role=none", "cot=off", "type_hint=off"], reply);
    assert_eq!(calls[0].messages.len(), 2);
}

#[test]
fn a_correction_that_is_unlike_its_sentence_is_taken_back() {
    let reply = r#"{"reason": "r", "incorrect_sentence_id": 1, "correction": "Beta agonists were given for the attack."}"#;
    let config = SystemConfig::parse("edinburgh", &["filter=bertscore", "shots=0"]).unwrap();
    let refused = config.build(&PromptSet::embedded(), &exemplars()).err().unwrap();
    assert!(refused.to_string().contains("nothing to do so by"), "{refused}");
    let flag = |likeness: f64| {
        let likeness: Likeness = Box::new(move |sentence, correction| {
            assert!(
                sentence.starts_with("Beta blockers") && correction.starts_with("Beta agonists")
            );
            Ok(likeness)
        });
        let exemplars = Exemplars { likeness: Some(likeness), ..Exemplars::default() };
        let script = Script::new(|_, _| reply.to_owned());
        check_with(&config, &note(), script, Arc::new(exemplars)).0.flag.said()
    };
    assert_eq!((flag(0.85), flag(0.84)), (Some(true), Some(false)));
}

#[test]
fn the_model_is_asked_for_a_span_first() {
    let (line, calls) = run("edinburgh", &["span=model"], |purpose| match purpose {
        "span" => r#"{"span": "BETA BLOCKERS"}"#,
        _ => {
            r#"{"reason": "r", "incorrect_sentence_id": 1, "correction": "Beta agonists were given for the attack."}"#
        }
    });
    assert_eq!((line.flag.said(), line.sentence_id, calls.len()), (Some(true), Some(1), 2));
    assert!(calls[1].messages.last().unwrap().content.contains("\"Beta blockers\""));
    let none = SystemConfig::parse("edinburgh", &["span=file"]).unwrap();
    let refused = none.build(&PromptSet::embedded(), &exemplars()).err().unwrap();
    assert!(refused.to_string().contains("none was given"));
}

#[test]
fn an_empty_span_of_a_file_is_none() {
    let hinted = |span: &str| {
        let spans = [("ms-1".to_owned(), span.to_owned())].into();
        let exemplars = Exemplars { spans: Some(spans), ..Exemplars::default() };
        let config = SystemConfig::parse("edinburgh", &["span=file", "shots=0"]).unwrap();
        let script = Script::new(|_, _| "NA".to_owned());
        let (_, calls) = check_with(&config, &note(), script, Arc::new(exemplars));
        calls[0].messages.last().unwrap().content.contains("deserve attention")
    };
    assert_eq!((hinted("Beta blockers"), hinted(""), hinted(" ")), (true, false, false));
}

#[test]
fn reasons_of_another_style_are_refused() {
    let is_built = |cot: &str, style: &str| {
        let exemplars = Exemplars { style: Some(style.to_owned()), ..Exemplars::default() };
        let config = SystemConfig::parse("edinburgh", &[format!("cot={cot}")]).unwrap();
        config.build(&PromptSet::embedded(), &Arc::new(exemplars)).is_ok()
    };
    assert!(!is_built("brief", "long") && is_built("off", "long") && is_built("soap", "soap"));
}

#[test]
fn the_original_chosen_among_alternatives_is_no_error() {
    let said = |purpose: &str| match purpose {
        "span" => r#"{"span": "Beta blockers"}"#,
        "alternatives" => r#"{"alternatives": ["Beta agonists", "beta blockers", "Steroids"]}"#,
        _ => r#"{"answer": "A"}"#,
    };
    let (line, calls) = run("edinburgh-mcq", &[], said);
    assert_eq!((line.flag.said(), line.sentence_id), (Some(true), Some(1)));
    assert_eq!(line.correction.as_deref(), Some("Beta agonists were given for the attack."));
    assert!(calls[1].messages[0].content.contains("\n1 ____ were given for the attack."));
    assert!(
        calls[2].messages[0].content.contains("A: Beta agonists\nB: Beta blockers\nC: Steroids")
    );
    let (line, calls) = run("edinburgh-mcq", &["options=2"], |purpose| match purpose {
        "span" => r#"{"span": "Beta blockers"}"#,
        "alternatives" => r#"{"alternatives": ["Beta agonists", "Steroids", "Oxygen"]}"#,
        _ => "(b)",
    });
    assert_eq!(line.flag.said(), Some(false));
    assert!(!calls[2].messages[0].content.contains("Steroids"));
    for reply in [r#"{"span": "not in the note"}"#, "NA", ""] {
        let config = SystemConfig::named("edinburgh-mcq").unwrap();
        let (line, calls) = check(&config, &note(), Script::new(move |_, _| reply.to_owned()));
        assert_eq!((line.flag.said(), calls.len()), (None, 1), "{reply}");
    }
}
