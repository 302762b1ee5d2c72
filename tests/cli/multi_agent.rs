//! The multi-agent baselines as a user runs them, on tiny models.

use wardround::experiment::contents::Contents;
use wardround::systems::SystemConfig;

use crate::binary::Scratch;

/// A system, and the calls that a question takes where noise cannot change them: recruits without a role do not come.
const SYSTEMS: [(&str, &[u32]); 3] =
    [("medagents", &[9, 16, 23]), ("mdagents", &[]), ("reconcile", &[6, 9, 12])];

#[test]
fn every_baseline_runs_verifies_and_replays() {
    let scratch = Scratch::new();
    let panel = scratch.panel();
    scratch.questions(4);
    for (number, (system, counts)) in SYSTEMS.into_iter().enumerate() {
        let out = format!("run-{number}");
        scratch
            .wardround(format!(
                "run {system} --data questions.jsonl --format mcq --panel {panel} --set record_chars=8 --out {out}"
            ))
            .succeeded();
        scratch.wardround(format!("verify {out}")).succeeded();
        scratch.wardround(format!("replay {out}")).succeeded();
        assert!(scratch.path(&out).join("report.html").exists());
        let contents = Contents::read(&scratch.path(&out)).unwrap();
        assert_eq!(contents.plan.system, system);
        let config = SystemConfig::parse::<&str>(system, &[]).unwrap();
        let config = SystemConfig::with(config.entry, &contents.plan.settings).unwrap();
        assert_eq!(contents.items.records.len(), 4);
        for item in contents.answers().into_values() {
            // Under a grammar everybody answers with one of the options.
            assert!("ABCDE".contains(&item.answer) && !item.answer.is_empty());
            assert!(item.calls <= config.max_calls(), "{item:?}");
            assert!(!item.rounds.is_empty() && item.error.is_none());
            assert!(counts.is_empty() || counts.contains(&item.calls), "{item:?}");
            let calls = contents.calls.records.iter();
            let calls = calls.filter(|call| call.item == item.item);
            assert_eq!(calls.count(), item.calls as usize);
        }
        for call in &contents.calls.records {
            assert!(call.record.fields().next().is_some(), "{call:?}");
            assert!(call.sampling.constrained, "{call:?}");
        }
    }
}

#[test]
fn every_baseline_takes_free_text_to_an_end() {
    let scratch = Scratch::new();
    let panel = scratch.panel();
    scratch.questions(2);
    for (number, (system, _)) in SYSTEMS.into_iter().enumerate() {
        let out = format!("free-{number}");
        scratch
            .wardround(format!(
                "run {system} --data questions.jsonl --format mcq --panel {panel} --decoding text --set max_tokens=12 --out {out}"
            ))
            .finished();
        let contents = Contents::read(&scratch.path(&out)).unwrap();
        assert_eq!(contents.items.records.len(), 2);
        assert!(contents.calls.records.iter().all(|call| call.record.answer().len() <= 1));
    }
}

#[test]
fn a_seat_may_have_a_model_of_its_own() {
    let scratch = Scratch::new();
    let panel = scratch.panel();
    scratch.questions(1);
    let run = format!(
        "run medagents --data questions.jsonl --format mcq --panel {panel} --set record_chars=8"
    );
    scratch.wardround(format!("{run} --set slot.decision=qwen3 --out out")).succeeded();
    let contents = Contents::read(&scratch.path("out")).unwrap();
    let backbone = |agent: &str| {
        let call = contents.calls.records.iter().find(|call| call.agent == agent);
        call.unwrap().backbone.clone()
    };
    assert_ne!(backbone("decision"), backbone("gatherer"));
    assert_eq!(backbone("decision"), backbone("doctor-3"));
    let refused = scratch.wardround(format!("{run} --set slot.judge=qwen3 --out again"));
    refused.refused(2, &["no slot judge", "doctor-1"]);
}
