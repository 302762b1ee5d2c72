//! MedGuards on scripted models: every way through a note, and how many calls each takes.

mod structures;

use crate::panel::scripted::Script;
use crate::record::{CallLine, NoteLine, Parse, SettledBy, Stage};
use crate::systems::SystemConfig;
use crate::systems::scripted::{WRONG, check, note};

/// What each agent says; an agent who is not named must not be asked.
fn run(settings: &[&str], said: &[(&str, &str)]) -> (NoteLine, Vec<CallLine>) {
    let protocol = SystemConfig::parse("medguards", settings).unwrap();
    let said: Vec<(String, String)> =
        said.iter().map(|(agent, text)| (agent.to_string(), text.to_string())).collect();
    let script = Script::new(move |key, _| {
        let found = said.iter().find(|(agent, _)| *agent == key.agent);
        found.unwrap_or_else(|| panic!("{key} was not expected")).1.clone()
    });
    check(&protocol, &note(), script)
}

fn label(word: &str, confidence: u32) -> String {
    format!("<think>because</think>\n{word}\n<confidence>{confidence}</confidence>")
}

fn result(words: &str, confidence: u32) -> String {
    format!(
        "<think>look there</think>\n<result>{words}</result>\n<confidence>{confidence}</confidence>"
    )
}

fn agents(calls: &[CallLine]) -> Vec<&str> {
    calls.iter().map(|call| call.agent.as_str()).collect()
}

fn prompt(calls: &[CallLine], agent: &str) -> String {
    let call = calls.iter().find(|call| call.agent == agent).unwrap();
    assert_eq!(call.messages.len(), 1);
    call.messages[0].content.clone()
}

#[test]
fn a_note_that_both_take_for_right_costs_two_calls() {
    let (right, sure) = (label("CORRECT", 90), label("CORRECT", 70));
    let (record, calls) = run(&[], &[("det1", &right), ("det2", &sure)]);
    assert_eq!(agents(&calls), ["det1", "det2"]);
    assert_eq!(record.flag.said(), Some(false));
    let detection = record.detection.unwrap();
    assert_eq!(detection.source, SettledBy::Agreement);
    assert_eq!(detection.confidences, [Some(0.9), Some(0.7)]);
    assert_eq!((record.localisation, record.correction), (None, None));
    assert!(prompt(&calls, "det1").starts_with("The following is a medical narrative"));
    assert!(prompt(&calls, "det2").contains("diagnosis (put more focus)"));
    for agent in ["det1", "det2"] {
        assert!(prompt(&calls, agent).ends_with(&format!(" tags.\n\n{}", note().text)));
    }
}

#[test]
fn agreement_everywhere_costs_five_calls() {
    let wrong = label("INCORRECT", 80);
    let (first, second) = (result(WRONG, 60), result("Beta blockers were given", 50));
    let fixed = result("Beta agonists were given for the attack.", 95);
    let (record, calls) = run(
        &[],
        &[
            ("det1", &wrong),
            ("det2", &wrong),
            ("loc1", &first),
            ("loc2", &second),
            ("corr1", &fixed),
        ],
    );
    assert_eq!(agents(&calls), ["det1", "det2", "loc1", "loc2", "corr1"]);
    assert_eq!((record.flag.said(), record.sentence_id), (Some(true), Some(1)));
    assert_eq!((record.sentence.as_str(), record.exact_sentence_id), (WRONG, Some(1)));
    assert_eq!(record.correction.unwrap(), "Beta agonists were given for the attack.");
    assert_eq!(record.confidence, Some(0.95));
    let localisation = record.localisation.unwrap();
    assert_eq!(localisation.source, SettledBy::Agreement);
    assert_eq!(localisation.sentence_ids, [Some(1), Some(1)]);
    assert_eq!(localisation.opinions[1], "Beta blockers were given");
    assert!(prompt(&calls, "loc1").starts_with("You are Agent A,"));
    assert!(prompt(&calls, "loc2").starts_with("You are Agent B,"));
    let correction = prompt(&calls, "corr1");
    assert!(
        correction
            .ends_with(&format!("Predicted Erroneous Sentence: {WRONG}. Corrected Sentence:"))
    );
    assert!(calls.iter().all(|call| call.parse == Parse::Ok));
}

#[test]
fn two_who_differ_are_arbitrated_at_both_stages() {
    let (right, wrong) = (label("CORRECT", 90), label("INCORRECT", 40));
    let (first, second) = (result("She went home.", 30), result(WRONG, 80));
    let fixed = result("Better.", 60);
    let said = [
        ("det1", right.as_str()),
        ("det2", &wrong),
        ("det3", &wrong),
        ("loc1", &first),
        ("loc2", &second),
        ("loc3", &second),
        ("corr1", &fixed),
    ];
    let (record, calls) = run(&[], &said);
    assert_eq!(calls.len(), 7);
    assert_eq!(record.detection.unwrap().source, SettledBy::Arbitration);
    assert_eq!(record.localisation.unwrap().source, SettledBy::Arbitration);
    assert_eq!(record.sentence_id, Some(1));
    assert_eq!(calls[2].stage, Stage::Final);
    let arbiter = prompt(&calls, "det3");
    assert!(arbiter.starts_with(
        "You are a medical expert reviewing the clinical text and two junior doctors."
    ));
    assert!(arbiter.contains(&format!("Original Text:\n\n{}\n\nAgent1 OUTPUT:\n\n", note().text)));
    assert!(arbiter.contains("<think>because</think>\nCORRECT\n<confidence>90</confidence>"));
    let arbiter = prompt(&calls, "loc3");
    assert!(arbiter.contains(
        "\"Agent A Opinion:\nShe went home.\nReasoning: look there\nConfidence: 30\n\nAgent B Opinion:\n"
    ));
}

#[test]
fn the_four_switches_take_reasons_and_confidence_from_the_arbiters() {
    let (right, wrong) = (label("CORRECT", 90), label("INCORRECT", 40));
    let (first, second) = (result("She went home.", 30), result(WRONG, 80));
    let said = [
        ("det1", right.as_str()),
        ("det2", &wrong),
        ("det3", &wrong),
        ("loc1", &first),
        ("loc2", &second),
        ("loc3", &second),
        ("corr1", &second),
    ];
    let shown = |settings: &[&str]| {
        let (_, calls) = run(settings, &said);
        let (detection, localisation) = (prompt(&calls, "det3"), prompt(&calls, "loc3"));
        [
            detection.contains("because"),
            detection.contains("<confidence>90"),
            localisation.contains("look there"),
            localisation.contains("Confidence: 30"),
        ]
    };
    assert_eq!(shown(&[]), [true; 4]);
    let keys = ["det_reasoning", "det_confidence", "loc_reasoning", "loc_confidence"];
    for (which, key) in keys.into_iter().enumerate() {
        let mut expected = [true; 4];
        expected[which] = false;
        assert_eq!(shown(&[&format!("{key}=off")]), expected, "{key}");
    }
}

#[test]
fn one_who_cannot_be_read_agrees_with_nobody() {
    let (wrong, refusal) = (label("INCORRECT", 80), "I cannot help with that.");
    let (said, none) = (result(WRONG, 80), result("NAN", 80));
    let base = [("det1", refusal), ("det2", refusal), ("det3", &wrong)];
    let (record, calls) = run(&[], &[base[0], base[1], ("det3", refusal)]);
    assert_eq!((record.flag.said(), calls.len()), (None, 3));
    assert_eq!(record.detection.unwrap().flags, [None; 3]);
    assert_eq!(record.localisation, None);
    assert_eq!(calls[0].parse, Parse::Refused);

    let mut all = base.to_vec();
    all.extend([("loc1", refusal), ("loc2", refusal), ("loc3", &said), ("corr1", refusal)]);
    let (record, calls) = run(&[], &all);
    assert_eq!((record.sentence_id, calls.len()), (Some(1), 7));
    assert!(
        prompt(&calls, "loc3")
            .contains("Agent A Opinion:\n(no sentence: the answer could not be read)\n")
    );
    // A refusal corrects nothing.
    assert_eq!(record.correction, None);

    let mut all = base.to_vec();
    all.extend([("loc1", none.as_str()), ("loc2", refusal), ("loc3", refusal)]);
    let (record, _) = run(&[], &all);
    assert_eq!((record.flag.said(), record.sentence_id), (Some(true), None));
    let localisation = record.localisation.unwrap();
    assert_eq!(localisation.opinions, ["NAN", "", ""]);
    assert_eq!((record.sentence.as_str(), record.correction), ("", None));
}

#[test]
fn a_vote_keeps_the_only_reply_that_could_be_read() {
    let (wrong, refusal) = (label("INCORRECT", 80), "I cannot help with that.");
    let said = result(WRONG, 80);
    let agents = [
        ("det1", refusal),
        ("det2", wrong.as_str()),
        ("det3", refusal),
        ("loc1", refusal),
        ("loc2", said.as_str()),
        ("loc3", refusal),
        ("corr1", refusal),
    ];
    let (record, calls) = run(&["arbitration=vote"], &agents);
    assert_eq!((record.flag.said(), record.sentence_id), (Some(true), Some(1)));
    assert_eq!(calls.len(), 7);
}

#[test]
fn both_nan_is_agreement_and_nothing_is_corrected() {
    let (wrong, none) = (label("INCORRECT", 80), result("NAN", 80));
    let said = [("det1", wrong.as_str()), ("det2", &wrong), ("loc1", &none), ("loc2", "NAN")];
    let (record, calls) = run(&[], &said);
    assert_eq!(calls.len(), 4);
    assert_eq!((record.flag.said(), record.sentence_id), (Some(true), None));
    assert_eq!(record.localisation.unwrap().source, SettledBy::Agreement);
    assert_eq!(record.correction, None);
}

#[test]
fn malformed_tags_are_mended_or_told() {
    let wrong = label("INCORRECT", 80);
    let over_lines =
        "<think>x</think><RESULT>\nBeta blockers were\ngiven for the attack.\n</RESULT>";
    let open = "<result>Beta agonists were giv";
    let (record, calls) = run(
        &[],
        &[
            ("det1", "<think>it is CORRECT, or is it?</think> INCORRECT"),
            ("det2", &wrong),
            ("loc1", over_lines),
            ("loc2", over_lines),
            ("corr1", open),
        ],
    );
    assert_eq!(record.detection.unwrap().confidences, [None, Some(0.8)]);
    assert_eq!((record.sentence_id, record.exact_sentence_id), (Some(1), None));
    assert_eq!((record.correction, calls[4].parse), (None, Parse::Unread));
}

#[test]
fn the_majority_votes_and_of_three_the_first_counts() {
    let (right, wrong) = (label("CORRECT", 90), label("INCORRECT", 40));
    let ids = [
        result("A 30-year-old woman came with wheezing.", 30),
        result(WRONG, 80),
        result("She went home.", 80),
    ];
    let vote = |third: &str, locators: [&str; 3]| {
        let said = [
            ("det1", right.as_str()),
            ("det2", &wrong),
            ("det3", third),
            ("loc1", locators[0]),
            ("loc2", locators[1]),
            ("loc3", locators[2]),
            ("corr1", &ids[0]),
        ];
        run(&["arbitration=vote"], &said)
    };
    let (record, calls) = vote(&wrong, [&ids[0], &ids[1], &ids[1]]);
    assert_eq!((record.flag.said(), record.sentence_id), (Some(true), Some(1)));
    assert_eq!(record.detection.unwrap().source, SettledBy::Vote);
    // The third has read nobody: it is asked as the first is.
    assert_eq!(prompt(&calls, "det3"), prompt(&calls, "det1"));
    assert_eq!(prompt(&calls, "loc3"), prompt(&calls, "loc1"));
    assert_eq!(calls[2].stage, Stage::Initial);

    let (record, _) = vote(&wrong, [&ids[0], &ids[1], &ids[2]]);
    assert_eq!(record.sentence_id, Some(0));
    let (record, calls) = vote("no label", [&ids[0], &ids[1], &ids[2]]);
    assert_eq!((record.flag.said(), calls.len()), (Some(false), 3));
    let (record, _) = vote(&wrong, ["nothing", "NAN", "<result>NAN</result>"]);
    assert_eq!((record.flag.said(), record.sentence_id), (Some(true), None));
}

#[test]
fn hard_localisation_takes_numbers_of_numbered_sentences() {
    let wrong = label("INCORRECT", 80);
    let (one, beyond, fixed) = (result("1", 80), result("3", 80), result("Better.", 70));
    let said = [
        ("det1", wrong.as_str()),
        ("det2", &wrong),
        ("loc1", &one),
        ("loc2", &beyond),
        ("loc3", &one),
        ("corr1", &fixed),
    ];
    let (record, calls) = run(&["localisation=hard"], &said);
    assert_eq!((record.sentence_id, record.exact_sentence_id), (Some(1), Some(1)));
    assert_eq!(record.sentence, WRONG);
    let localisation = record.localisation.unwrap();
    assert_eq!(localisation.sentence_ids, [Some(1), None, Some(1)]);
    let locator = prompt(&calls, "loc1");
    assert!(locator.contains("give its number alone"));
    assert!(locator.ends_with(&format!("\n1 {WRONG}\n2 She went home.")));
    assert!(!prompt(&calls, "det1").contains("\n1 "));
}

#[test]
fn the_papers_place_is_the_likest_sentence_however_unlike_it_is() {
    let (wrong, fixed) = (label("INCORRECT", 80), result("Better.", 70));
    // The ratios are .34, .30 and .41.
    let (unlike, bare) = (result("A rash on both arms.", 80), "A rash on both arms.");
    for (localisation, place, expected) in [
        ("soft", unlike.as_str(), None),
        ("likest", &unlike, Some(2)),
        ("likest", &result("123", 80), Some(0)),
        ("likest", bare, None),
        ("likest", &result("NAN", 80), None),
    ] {
        let localisation = format!("localisation={localisation}");
        let said = [("det1", wrong.as_str()), ("loc1", place), ("corr1", &fixed)];
        let (record, _) = run(&["agents=3", &localisation], &said);
        assert_eq!(record.sentence_id, expected, "{localisation}: {place}");
    }
}
