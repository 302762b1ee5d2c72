//! knowlab_AIMed's chains, and their combination with its second system.

use crate::panel::scripted::Script;
use crate::record::NoteLine;
use crate::systems::SystemConfig;
use crate::systems::scripted::{check, note};

const NONE: &str = "Reasoning: fine\nError Flag: 0\nError Sentence ID: -1\nCorrected Sentence: NA";
const FOUND: &str = "Reasoning: no\nError Flag: 1\nError Sentence ID: 1\nCorrected Sentence: One.";

/// What comes of replies by purpose, and the purposes of the calls.
fn run(name: &str, reply: fn(&str) -> &'static str) -> (NoteLine, Vec<String>) {
    let config = SystemConfig::parse(name, &["choice=tfidf"]).unwrap();
    let script = Script::new(move |key, _| reply(&key.purpose).to_owned());
    let (line, calls) = check(&config, &note(), script);
    assert!(calls.len() <= config.max_calls() as usize);
    (line, calls.into_iter().map(|call| call.purpose).collect())
}

#[test]
fn the_next_chain_is_asked_where_the_last_found_nothing() {
    let (line, asked) = run("knowlab-cot", |_| NONE);
    assert_eq!((line.flag.said(), asked.len()), (Some(false), 3));
    let (line, asked) = run("knowlab-cot", |purpose| match purpose {
        "intervention" => FOUND,
        _ => NONE,
    });
    assert_eq!((line.flag.said(), line.sentence_id), (Some(true), Some(1)));
    assert_eq!(
        (line.correction.as_deref(), asked),
        (Some("One."), vec!["diagnosis".into(), "intervention".into()])
    );
    let (line, asked) = run("knowlab-cot", |_| "hm");
    assert_eq!((line.flag.said(), asked.len()), (None, 3));
}

#[test]
fn the_second_systems_correction_counts_where_it_names_the_same_sentence() {
    let corrected = |reply: fn(&str) -> &'static str| {
        let (line, asked) = run("knowlab", reply);
        assert_eq!((line.flag.said(), line.sentence_id), (Some(true), Some(1)));
        (line.correction.unwrap(), asked.last().unwrap().clone())
    };
    let same = corrected(|purpose| match purpose {
        "reason" => "Error Flag: 1\nError Sentence ID: 1\nCorrected Sentence: Two.",
        _ => FOUND,
    });
    assert_eq!(same, ("Two.".into(), "reason".into()));
    let other = corrected(|purpose| match purpose {
        "reason" => "Error Flag: 1\nError Sentence ID: 2\nCorrected Sentence: Two.",
        "place" => "Error Flag: 1\nError Sentence ID: 1\nCorrected Sentence: Three.",
        _ => FOUND,
    });
    assert_eq!(other, ("Three.".into(), "place".into()));
    let failed = corrected(|purpose| match purpose {
        "reason" | "place" => "hm",
        _ => FOUND,
    });
    assert_eq!(failed, ("One.".into(), "place".into()));
    let (line, asked) = run("knowlab", |_| NONE);
    assert_eq!((line.flag.said(), asked.len()), (Some(false), 3));
}
