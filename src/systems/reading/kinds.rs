//! Replies of small models that are easily taken for what they are not, one of each kind, as a whole system reads it.

use crate::data::Note;
use crate::panel::scripted::Script;
use crate::record::{CallKey, CallLine, FinishReason, NoteLine, Parse};
use crate::systems::scripted::{answer, check, note, question, said};
use crate::systems::{SystemConfig, base_llm, mdagents, medguards, medreflex};

use super::reply::Fields;

/// The letter of a question with five options, and the calls, where every prompt gets the reply that is made of it.
fn asked(
    system: &str,
    reply: impl Fn(&CallKey, &str) -> String + Send + Sync + 'static,
) -> (String, Vec<CallLine>) {
    let mut words = system.split(' ');
    let name = words.next().unwrap();
    let config = SystemConfig::parse(name, &words.collect::<Vec<_>>()).unwrap();
    let script =
        Script::new(move |key, messages| reply(key, &messages[messages.len() - 1].content));
    let (line, calls) = answer(&config, &question(5), script);
    (line.answer, calls)
}

/// The same of a note.
fn reviewed(
    system: &str,
    reply: impl Fn(&CallKey, &str) -> String + Send + Sync + 'static,
) -> (NoteLine, Vec<CallLine>) {
    let config = SystemConfig::parse::<&str>(system, &[]).unwrap();
    let script =
        Script::new(move |key, messages| reply(key, &messages[messages.len() - 1].content));
    check(&config, &note(), script)
}

#[test]
fn letters_that_nothing_announces_alone_are_unread() {
    let letter = |text: &'static str| {
        let (answer, calls) = asked("zero-shot", move |_, _| text.to_owned());
        assert_eq!(answer.is_empty(), calls[0].parse == Parse::Unread, "{text}");
        answer
    };
    for nothing in [
        // The letter of one option beside the text of another.
        "A: option B",
        // Several announcements.
        "Answer: A\n\nAnswer: C",
        "A\n\nQuestion: What is next?\nAnswer: C",
        // A list of all options, with a slip.
        "A: option A\nB: option B\nC: option C\nD: option E\nE: option E",
        "A: option A\nB: option B\nC: option C\nD: option D\nE: option E\nF: none",
    ] {
        assert_eq!(letter(nothing), "", "{nothing}");
    }
    assert_eq!(letter(r#"{"option": "C: option C"}"#), "C");
    assert_eq!(letter(r#"{"D": "option D"}"#), "D");
    assert_eq!(
        letter("The most likely cause of the fever is option B. It explains the rash."),
        "B"
    );
}

#[test]
fn the_last_letter_of_a_word_is_none_but_by_medmads_rule() {
    let record = |key: &str| format!(r#"{{"{key}": "Blocking K-channels"}}"#);
    assert_eq!(asked("cot", move |_, _| record("Answer")).0, "");
    let record = r#"{"answer": "ANSWERB", "confidence": 1}"#;
    let (letter, calls) = asked("medmad answer_reading=paper", move |_, _| record.to_owned());
    assert_eq!((letter.as_str(), calls[0].parse), ("B", Parse::Repaired));
    assert_eq!(asked("medmad", move |_, _| record.to_owned()).0, "");
    assert_eq!(asked("reconcile", move |_, _| record.to_owned()).0, "");
}

#[test]
fn the_prompts_examples_and_briefs_are_no_answers() {
    // The first example, with its answer.
    let (letter, calls) = asked("few-shot", |_, prompt| {
        let from = prompt.find("Example 1").unwrap();
        let to = prompt.find("Example 2").unwrap();
        prompt[from..to].to_owned()
    });
    assert_eq!((letter.as_str(), calls[0].parse), ("", Parse::Unread));
    // What others answered, as the brief has it.
    let (_, calls) = asked("medmad", |key, prompt| match key.purpose.as_str() {
        "initial" => said(["A", "B", "C"][key.agent.len() % 3]),
        _ => prompt.lines().find(|line| line.starts_with("[Doctor ")).unwrap().to_owned(),
    });
    let debated: Vec<_> = calls.iter().filter(|call| call.purpose == "debate").collect();
    assert!(!debated.is_empty() && debated.iter().all(|call| call.parse == Parse::Unread));
    // A placeholder in the answer's place.
    let shown = r#"{"Thought": "your reasoning, step by step", "Answer": "the letter of the right option"}"#;
    let (letter, calls) = asked("cot", move |_, _| shown.to_owned());
    assert_eq!((letter.as_str(), calls[0].parse), ("", Parse::Unread));
}

/// A prompt up to its first blank line: the instructions, without the note.
fn instructions(prompt: &str) -> String {
    prompt.split("\n\n").next().unwrap().to_owned()
}

#[test]
fn an_echo_of_a_detectors_or_an_arbiters_prompt_finds_no_error() {
    let (line, calls) = reviewed("medguards", |_, prompt| instructions(prompt));
    assert_eq!(line.flag.said(), None);
    assert!(calls.iter().all(|call| call.parse == Parse::Unread));
    let (line, _) = reviewed("medguards", |key, prompt| match key.agent.as_str() {
        "det1" => "CORRECT".to_owned(),
        "det2" => "INCORRECT".to_owned(),
        _ => instructions(prompt),
    });
    assert_eq!(line.flag.said(), None);
    // Though the detectors' own words hold one of the instructions'.
    for said in ["CORRECT", "UNKNOWN"] {
        let (line, calls) = reviewed("medguards", move |key, prompt| match key.agent.as_str() {
            "det1" => "<think>Which is INCORRECT ? A) It.</think>\nUNKNOWN".to_owned(),
            "det2" => said.to_owned(),
            _ => instructions(prompt),
        });
        assert_eq!(line.flag.said(), None, "{said}");
        assert!(calls.len() > 2, "{said}");
    }
    // Nor does an echoed tip place one.
    let (line, _) = reviewed("medguards", |key, prompt| match &key.agent[..3] {
        "det" => "INCORRECT".to_owned(),
        _ => instructions(prompt),
    });
    assert_eq!((line.flag.said(), line.sentence_id), (Some(true), None));
}

#[test]
fn numbers_and_words_that_deny_an_error_place_none() {
    let note: Note = note();
    for said in ["2", "2 110/70 mm Hg", "1 Beta blockers were given for the attack."] {
        assert_eq!(base_llm::read(said, &note).1, Parse::Unread, "{said}");
    }
    let denied = r#"{"error_sentence": "The note holds no mistake.", "corrected_sentence": "NA"}"#;
    let (read, _) = medreflex::answer::read(denied, FinishReason::Stop, &note, None);
    assert_eq!((read.is_error, read.sentence_id), (Some(false), None));
    let both = r#"{"is_error": true, "error_sentence": "The note holds no mistake."}"#;
    let (read, parse) = medreflex::answer::read(both, FinishReason::Stop, &note, None);
    assert_eq!((read.is_error, parse), (None, Parse::Unread));
}

#[test]
fn health_is_counted_truly() {
    // A review that says nothing of agreeing is no disagreement, and forces no round.
    let (_, calls) = asked("medagents", |key, _| match key.purpose.as_str() {
        "review" => "The report is thorough.".to_owned(),
        _ => r#"{"explanation": "e", "answer": "B", "fields": ["Cardiology"]}"#.to_owned(),
    });
    let reviews: Vec<_> = calls.iter().filter(|call| call.purpose == "review").collect();
    assert_eq!(reviews.len(), 3);
    assert!(reviews.iter().all(|call| call.parse == Parse::Unread));
    // What was cut off is not plainly read.
    let config = SystemConfig::parse::<&str>("medmad", &[]).unwrap();
    let script = Script::new(|_, _| said("B")).ending(FinishReason::Length);
    let (line, calls) = answer(&config, &question(5), script);
    assert_eq!(line.answer, "B");
    assert!(calls.iter().all(|call| call.parse == Parse::Repaired));
    // A query that is the prompt's placeholder searches nothing.
    let step =
        r#"{"observation": "o", "thought": "t", "action": {"name": "search", "query": "..."}}"#;
    assert_eq!(medreflex::step::read(step, FinishReason::Stop).1, Parse::Unread);
}

#[test]
fn sentences_are_no_experts_and_a_confidence_in_the_reasons_is_another() {
    let experts = |text: &str| {
        let reply = Fields::read(text, FinishReason::Stop, "experts");
        let (read, parse) = mdagents::recruits::read_experts(&reply);
        (read.len(), parse)
    };
    let sentences = "1. You should ask somebody who knows the heart very well.\n2. The patient needs a doctor who has seen many such cases.";
    assert_eq!(experts(sentences), (5, Parse::Unread));
    assert_eq!(experts("1. Cardiologist\n2. Nurse - care"), (2, Parse::Fallback));
    assert_eq!(experts(r#"{"role": "Cardiologist"}"#), (1, Parse::Fallback));
    let text = "<think>As <confidence>10</confidence> says</think>\nINCORRECT\n<confidence>80</confidence>";
    assert_eq!(medguards::parse::confidence(text), Some(0.8));
}
