//! HSE NLP (entities, then experts) and WangLab (detect, locate, correct).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::panel::scripted::Script;
use crate::prompts::PromptSet;
use crate::record::{CallLine, NoteLine};
use crate::systems::SystemConfig;
use crate::systems::exemplars::{Exemplars, Expert, Opinion};
use crate::systems::scripted::{check, check_with, note};

fn run(name: &str, reply: fn(&str) -> &'static str) -> (NoteLine, Vec<CallLine>) {
    let config = SystemConfig::named(name).unwrap();
    check(&config, &note(), Script::new(move |key, _| reply(&key.purpose).to_owned()))
}

#[test]
fn entities_are_asked_first_and_shown() {
    let (line, calls) = run("hse-nlp", |purpose| match purpose {
        "entities" => r#"{"entities": ["beta blockers", "wheezing"]}"#,
        _ => {
            r#"{"reasoning": "r", "error": "yes", "sentence_id": 1, "corrected_sentence": "Better."}"#
        }
    });
    assert_eq!((line.flag.said(), line.sentence_id, calls.len()), (Some(true), Some(1), 2));
    let prompt = &calls[1].messages.last().unwrap().content;
    assert!(prompt.contains("beta blockers, wheezing") && !prompt.contains("Expert 1"), "{prompt}");
}

#[test]
fn earlier_runs_are_experts_with_their_trust() {
    let expert = |trust: Option<&str>, flag, sentence_id| Expert {
        trust: trust.map(str::to_owned),
        opinions: BTreeMap::from([(
            "ms-1".to_owned(),
            Opinion {
                flag: Option::<bool>::into(flag),
                sentence_id,
                correction: sentence_id.map(|_| "Better.".to_owned()),
            },
        )]),
    };
    let experts = vec![
        expert(Some("0.61"), Some(true), Some(1)),
        expert(None, Some(false), None),
        expert(Some("0.5"), None, None),
    ];
    let exemplars = Arc::new(Exemplars { experts, ..Exemplars::default() });
    let config = SystemConfig::parse("hse-nlp", &["shots=0"]).unwrap();
    let (_, calls) = check_with(&config, &note(), Script::new(|_, _| "hm".to_owned()), exemplars);
    let said = &calls[1].messages[1].content;
    for part in [
        "an error in sentence 1, which should be: Better.",
        "0.61",
        "not measured",
        "no error",
        "no opinion",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

#[test]
fn the_exam_question_that_is_most_like_a_note_stands_beside_it_where_it_is_asked_for() {
    use crate::systems::exemplars::leak::Leak;
    use crate::systems::scripted::{exemplars, question};
    let config = SystemConfig::parse("wanglab", &["leak=medqa", "shots=0"]).unwrap();
    let refused = config.build(&PromptSet::embedded(), &exemplars()).err().unwrap();
    assert!(refused.to_string().contains("none were given"), "{refused}");
    let exam = |text: &str, gold| {
        let question = question(4);
        crate::data::Question { question: text.to_owned(), gold, ..question }
    };
    let questions = [
        exam("What breaks kidney stones?", Some('A')),
        exam("Beta blockers were given for the attack: what should have been?", Some('B')),
        exam("Beta blockers were given for the attack.", None),
    ];
    let leak = Leak::new(&questions);
    let answer = questions[1].option('B').unwrap().to_owned();
    let exemplars = Arc::new(Exemplars { leak: Some(leak), ..Exemplars::default() });
    let script = Script::new(|key, _| match key.purpose.as_str() {
        "detection" => r#"{"reasoning": "r", "error": "yes"}"#.to_owned(),
        _ => r#"{"reasoning": "r", "sentence_id": 1}"#.to_owned(),
    });
    let (_, calls) = check_with(&config, &note(), script, exemplars);
    assert_eq!(calls.len(), 3);
    for call in calls {
        let prompt = &call.messages.last().unwrap().content;
        assert!(
            prompt.contains(&format!("what should have been?\nAnswer: {answer}\nThe note:")),
            "{prompt}"
        );
    }
}

#[test]
fn three_stages_end_where_nothing_is_found() {
    let (line, calls) = run("wanglab", |purpose| match purpose {
        "detection" => r#"{"reasoning": "r", "error": "yes"}"#,
        "localisation" => r#"{"reasoning": "r", "sentence_id": 1}"#,
        _ => r#"{"corrected_sentence": "Beta agonists were given for the attack."}"#,
    });
    assert_eq!((line.flag.said(), line.sentence_id, calls.len()), (Some(true), Some(1), 3));
    assert_eq!(line.correction.as_deref(), Some("Beta agonists were given for the attack."));
    let (line, calls) = run("wanglab", |_| r#"{"reasoning": "r", "error": "no"}"#);
    assert_eq!((line.flag.said(), calls.len()), (Some(false), 1));
    let (line, calls) = run("wanglab", |purpose| match purpose {
        "detection" => r#"{"reasoning": "r", "error": "yes"}"#,
        _ => "somewhere",
    });
    assert_eq!((line.flag.said(), line.sentence_id, calls.len()), (Some(true), None, 2));
}
