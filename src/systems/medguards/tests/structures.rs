//! Fewer and more agents than seven (MedGuards, Table 11).

use super::{label, prompt, result, run};
use crate::systems::scripted::{WRONG, note};

#[test]
fn every_structure_asks_its_agents() {
    let wrong = label("INCORRECT", 80);
    let place = result(WRONG, 80);
    let fixed = result("Better.", 70);
    let again = result("Best.", 75);
    let everything = format!(
        "<think>x</think>\nINCORRECT\n<result>{WRONG}</result>\n<correction>Better.</correction>\n<confidence>70</confidence>"
    );
    let combined = everything.replace("INCORRECT\n", "");
    type Expected<'a> = (u32, &'a [(&'a str, &'a str)], &'a str);
    let cases: [Expected<'_>; 6] = [
        (1, &[("det1", &everything)], "Better."),
        (2, &[("det1", &place), ("corr1", &fixed)], "Better."),
        (3, &[("det1", &wrong), ("loc1", &place), ("corr1", &fixed)], "Better."),
        (3, &[("det1", &wrong), ("det2", &wrong), ("loc1", &combined)], "Better."),
        (
            5,
            &[
                ("det1", &wrong),
                ("det2", &wrong),
                ("loc1", &place),
                ("loc2", &place),
                ("corr1", &fixed),
            ],
            "Better.",
        ),
        (
            6,
            &[
                ("det1", &wrong),
                ("det2", &wrong),
                ("loc1", &place),
                ("loc2", &place),
                ("corr1", &fixed),
                ("corr2", &again),
            ],
            "Best.",
        ),
    ];
    for (agents, (count, said, correction)) in [1, 2, 3, 4, 7, 8].into_iter().zip(cases) {
        let (record, calls) = run(&[&format!("agents={agents}")], said);
        assert_eq!(calls.len() as u32, count, "{agents}");
        assert!(count <= agents);
        assert_eq!((record.flag.said(), record.sentence_id), (Some(true), Some(1)), "{agents}");
        assert_eq!(record.correction.as_deref(), Some(correction), "{agents}");
        assert!(record.detection.is_some() && record.localisation.is_some());
        let first = prompt(&calls, "det1");
        assert!(first.contains(&note().text) && !first.contains('{'), "{first}");
    }
}

#[test]
fn a_combined_answer_may_find_nothing_or_be_unreadable() {
    let nothing = "<think>x</think>\nCORRECT\n<result>NAN</result>\n<correction>NAN</correction>\n<confidence>70</confidence>";
    let (record, _) = run(&["agents=1"], &[("det1", nothing)]);
    assert_eq!((record.flag.said(), record.localisation), (Some(false), None));
    let (record, _) = run(&["agents=1"], &[("det1", "no idea")]);
    assert_eq!((record.flag.said(), record.correction), (None, None));
    let (record, calls) = run(&["agents=2"], &[("det1", "NAN")]);
    assert_eq!((record.flag.said(), calls.len()), (Some(false), 1));
    let (record, _) = run(&["agents=2"], &[("det1", "no idea")]);
    assert_eq!(record.flag.said(), None);
    let wrong = label("INCORRECT", 80);
    let said = [("det1", wrong.as_str()), ("det2", &wrong), ("loc1", "no idea")];
    let (record, _) = run(&["agents=4"], &said);
    assert_eq!(
        (record.flag.said(), record.sentence_id, record.correction),
        (Some(true), None, None)
    );
}

#[test]
fn a_second_corrector_who_says_nothing_leaves_the_proposal() {
    let wrong = label("INCORRECT", 80);
    let (place, fixed) = (result(WRONG, 80), result("Better.", 70));
    let said = [
        ("det1", wrong.as_str()),
        ("det2", &wrong),
        ("loc1", &place),
        ("loc2", &place),
        ("corr1", &fixed),
        ("corr2", ""),
    ];
    let (record, calls) = run(&["agents=8"], &said);
    assert_eq!(record.correction.as_deref(), Some("Better."));
    assert_eq!(record.confidence, Some(0.7));
    assert!(prompt(&calls, "corr2").contains("Proposed Correction:\nBetter.\n"));
}
