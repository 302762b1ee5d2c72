//! Tests of `finding.rs`.

use super::*;
use crate::experiment::fixtures;
use crate::record::{
    DetectionLine, Language, LocalisationLine, Reply, SettledBy, Trajectory, TurnLine,
};

fn record() -> NoteLine {
    NoteLine {
        dataset: "ward".into(),
        run: 1,
        item: "bed-7".into(),
        language: Language::English,
        flag: Some(true).into(),
        sentence_id: Some(1),
        sentence: "Aspirin cures malaria.".into(),
        exact_sentence_id: Some(1),
        correction: Some("Artesunate cures malaria.".into()),
        confidence: Some(0.9),
        detection: Some(DetectionLine {
            source: SettledBy::Arbitration,
            agents: vec!["det1".into(), "det2".into(), "det3".into()],
            flags: vec![Some(false), Some(true), Some(true)],
            confidences: vec![Some(0.5), Some(0.7), Some(0.8)],
        }),
        localisation: Some(LocalisationLine {
            source: SettledBy::Agreement,
            agents: vec!["loc1".into(), "loc2".into()],
            opinions: vec!["Aspirin cures malaria.".into(), "NAN".into()],
            sentence_ids: vec![Some(1), None],
            confidences: vec![None, None],
        }),
        calls: 6,
        ..NoteLine::default()
    }
}

#[test]
fn it_says_what_where_how_sure_and_who_was_overruled() {
    let finding = Finding::of(&record(), &[]);
    assert_eq!(finding.confidence, Some(0.75));
    let text = finding.text();
    assert!(text.starts_with("bed-7: An error in sentence 2, 75 % sure\n"), "{text}");
    assert!(text.contains("as written   Aspirin cures malaria.\n    should be    Artesunate"));
    assert!(text.contains("det1: there is no error (50 %), and was overruled"));
    assert!(text.contains("loc2: no sentence has one, and was overruled"));
    assert!(text.contains("not a diagnosis"));
}

#[test]
fn what_could_not_be_read_is_no_clean_bill() {
    let unread = NoteLine {
        flag: None.into(),
        sentence_id: None,
        correction: None,
        detection: None,
        localisation: None,
        ..record()
    };
    let finding = Finding::of(&unread, &[]);
    assert!(finding.text().contains("could not be read"));
    assert_eq!(serde_json::to_value(&finding).unwrap()["has_error"], serde_json::Value::Null);
}

#[test]
fn a_correction_comes_with_the_words_that_no_source_has() {
    let mut searched = record();
    searched.search = Some(Trajectory {
        ungrounded: vec!["malaria".into()],
        grounded: Some(false),
        ..Trajectory::default()
    });
    let finding = Finding::of(&searched, &[]);
    let text = finding.text();
    assert!(text.contains("No source contains: malaria"), "{text}");
    let json = serde_json::to_value(&finding).unwrap();
    assert_eq!(json["sources"]["ungrounded"][0], "malaria");
}

#[test]
fn long_reasons_are_cut_between_characters() {
    assert_eq!(shown(&"é".repeat(500)).chars().count(), SHOWN_CHARS + 1);
    assert_eq!(shown("a\n  b \u{1b}[2Jc"), "a b [2Jc");
}

#[test]
fn each_sample_of_an_agent_comes_with_its_own_reasons() {
    let mut sampled = record();
    sampled.localisation = None;
    if let Some(detection) = &mut sampled.detection {
        detection.agents = vec!["solo".into(), "solo".into(), "det3".into()];
    }
    let call = |agent: &str, purpose: &str, sample: u32, thought: &str| {
        let mut call = fixtures::call("bed-7", 1, agent);
        (call.purpose, call.sample) = (purpose.to_owned(), sample);
        call.record = Reply::of(serde_json::json!({"thought": thought, "correction": thought}));
        call
    };
    let calls = [
        call("solo", "answer", 1, "second"),
        call("solo", "answer", 0, "first"),
        call("cor1", "correction", 1, "later"),
        call("cor1", "correction", 0, "sooner"),
    ];
    let finding = Finding::of(&sampled, &calls);
    let reasons: Vec<&str> = finding.agents.iter().map(|word| word.reasons.as_str()).collect();
    assert_eq!(reasons, ["first", "second", "", "sooner", "later"]);
}

#[test]
fn a_notes_name_says_nothing_to_the_terminal() {
    let named = NoteLine { item: "bed\u{1b}[2J-7".into(), ..record() };
    assert!(Finding::of(&named, &[]).text().starts_with("bed[2J-7: "));
}

#[test]
fn a_note_of_which_no_answer_was_accepted_is_no_clean_bill() {
    let found_of = |answers: &[Option<&str>], exhausted| {
        let turn = |(round, answer): (usize, &Option<&str>)| TurnLine {
            round: round as u32,
            steps: 1,
            is_final: answer.is_some(),
            ..TurnLine::default()
        };
        let turns = answers.iter().enumerate().map(turn).collect();
        let search = Trajectory { turns, exhausted, ..Trajectory::default() };
        let note = NoteLine {
            flag: Some(false).into(),
            sentence_id: None,
            correction: None,
            localisation: None,
            search: Some(search),
            ..record()
        };
        let call = |(round, answer): (usize, &Option<&str>)| {
            let mut call = fixtures::call("bed-7", 1, "react");
            (call.purpose, call.round) = ("step".to_owned(), round as u32);
            call.record = Reply::of(match answer {
                Some(sentence) => {
                    serde_json::json!({"action": {"name": "final_mistake", "sentence": sentence, "correction": ""}})
                }
                None => serde_json::json!({"action": {"name": "search", "query": "q"}}),
            });
            call
        };
        let calls: Vec<_> = answers.iter().enumerate().map(call).collect();
        Finding::of(&note, &calls)
    };
    let found = |answers| found_of(answers, true);
    // Of a system without reviews, whose one turn searched until its steps were used up.
    let searched = found_of(&[None], false);
    assert_eq!((searched.has_error, searched.headline()), (None, "No answer was accepted".into()));
    assert_eq!(found_of(&[Some("NA")], false).has_error, Some(false));
    for answers in [&[Some("NA"), Some("Give A.")][..], &[None, None]] {
        let finding = found(answers);
        assert_eq!(
            (finding.has_error, finding.headline().as_str()),
            (None, "No answer was accepted")
        );
    }
    let finding = found(&[None, Some("NA")]);
    assert_eq!(finding.has_error, Some(false));
    assert!(finding.text().contains("No answer was accepted: every turn was used up."));
}
