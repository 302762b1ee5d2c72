//! The systems that ask one few-shot prompt, once or several times, and vote.

use crate::panel::scripted::Script;
use crate::record::{NoteLine, SettledBy};
use crate::systems::SystemConfig;
use crate::systems::scripted::{check, note};

fn run(name: &str, pairs: &[&str], reply: fn(&str, u32) -> String) -> (NoteLine, Vec<String>) {
    let config = SystemConfig::parse(name, pairs).unwrap();
    let script = Script::new(move |key, _| reply(&key.agent, key.sample));
    let (line, calls) = check(&config, &note(), script);
    assert!(calls.len() <= config.max_calls() as usize);
    let prompts = calls.iter().map(|call| {
        call.messages.iter().map(|message| message.content.clone()).collect::<Vec<_>>().join("\n")
    });
    (line, prompts.collect())
}

#[test]
fn medprompt_shows_balanced_notes_with_reasons_and_takes_the_answer() {
    let wrong = |_: &str, _| {
        r#"{"is_error": true, "reasoning": "r", "sentence_id": 1, "error_sentence": "NA", "corrected_sentence": "Beta agonists were given for the attack."}"#.to_owned()
    };
    let (line, prompts) = run("medprompt", &["shots=4"], wrong);
    assert_eq!((line.flag.said(), line.sentence_id), (Some(true), Some(1)));
    assert_eq!(line.correction.as_deref(), Some("Beta agonists were given for the attack."));
    assert_eq!(line.detection.unwrap().source, SettledBy::Single);
    assert!(prompts[0].contains("\"is_error\": true, \"reasoning\": \"The note has an error"));
    assert!(prompts[0].contains("\"is_error\": false, \"reasoning\": \"Every statement"));
    let (line, prompts) = run("medprompt", &["shots=0"], |_, _| "hm".to_owned());
    assert_eq!(line.flag.said(), None);
    assert!(!prompts[0].contains("ms-train") && !prompts[0].contains("Patient 2"));
}

#[test]
fn knowlabs_second_system_is_asked_three_times() {
    let (line, prompts) = run("knowlab-reason", &["choice=tfidf"], |_, sample| match sample {
        0 => "garbage".to_owned(),
        1 => "Error Flag: 1\nError Sentence ID: 1\nCorrected Sentence: First.".to_owned(),
        _ => "Error Flag: 1\nError Sentence ID: 1\nCorrected Sentence: Second.".to_owned(),
    });
    assert_eq!((line.flag.said(), line.sentence_id, line.calls), (Some(true), Some(1), 3));
    assert_eq!(line.correction.as_deref(), Some("First."));
    let detection = line.detection.unwrap();
    assert_eq!(
        (detection.source, detection.flags),
        (SettledBy::Vote, vec![None, Some(true), Some(true)])
    );
    for part in [
        "Error Flag: 0\nError Sentence ID: -1\nCorrected Sentence: NA",
        "Example 4 contains",
        "Reasons",
    ] {
        assert!(prompts[0].contains(part), "{part} is not in {}", prompts[0]);
    }
}

#[test]
fn the_most_common_pair_of_several_samples_counts() {
    let (line, _) = run("medifact", &["samples=3"], |agent, sample| {
        let id = if sample == 0 { 0 } else { 1 };
        format!(r#"{{"sentence_id": {id}, "corrected_sentence": "{agent}-{sample}."}}"#)
    });
    assert_eq!((line.calls, line.sentence_id), (3, Some(1)));
    assert_eq!(line.correction.as_deref(), Some("solo-1."));
}

#[test]
fn medifact_shows_wrong_sentences_like_the_notes_own() {
    let none = |_: &str, _| r#"{"sentence_id": -1, "corrected_sentence": "NA"}"#.to_owned();
    let (line, prompts) = run("medifact", &["shots=1"], none);
    assert_eq!(line.flag.said(), Some(false));
    assert!(prompts[0].contains("Beta agonists were given for asthma."));
    assert!(!prompts[0].contains("malaria") && !prompts[0].contains("syphilis"));
}
