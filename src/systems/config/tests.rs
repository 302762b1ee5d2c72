//! Settings as the command line and plans give them.

use std::collections::BTreeSet;

use super::*;
use crate::diagnosis::Diagnosis;

/// Every setting of every system, each with another value than its default; those of the decoding come on top.
const OTHERS: [(&str, &str); 21] = [
    (
        "medmad",
        "t_max=1 always_debate=on confidence=off confidence_reading=converted counterfactual=paper roles=ddx analysis_first=on record=short truncate_chars=80 samples=2 letters=a-j weights=raw peers=own gate=0.9 evidence=first passages=3",
    ),
    ("cot-sc", "samples=2 examples=medqa mab_compat=on"),
    ("healthcareagent", "mab_compat=on"),
    ("medagents", "form=original max_rounds=2 mab_compat=on"),
    (
        "mdagents",
        "form=original max_rounds=2 max_turns=2 temperatures=model truncate_chars=80 mab_compat=on",
    ),
    (
        "reconcile",
        "form=original max_rounds=2 truncate_chars=80 confidence_reading=converted mab_compat=on",
    ),
    (
        "medguards",
        "agents=8 arbitration=vote arbitration_below=80 det_reasoning=off det_confidence=off loc_reasoning=off loc_confidence=off localisation=hard aligner=lcs release_compat=on",
    ),
    ("base-llm", "prompt=2 release_compat=on"),
    (
        "medreflex",
        "react_turns=2 reflexion_turns=2 reviewers=3 avg_threshold=4 min_threshold=2.5 on_exhaustion=last-answer retrieve_top_k=9 rerank_top_k=3 rerank=off results_kept=last cite=on deadline=on temperatures=model release_compat=on",
    ),
    (
        "medreact",
        "react_turns=2 retrieve_top_k=9 rerank_top_k=3 rerank=embedding results_kept=last cite=on deadline=off temperatures=model release_compat=on",
    ),
    (
        "edinburgh",
        "cot=off type_hint=off span=model filter=bertscore role=nurse shots=2 choice=tfidf temperatures=model",
    ),
    ("edinburgh-mcq", "options=2 shots=2 choice=tfidf temperatures=model"),
    ("knowlab", "shots=2 choice=tfidf temperatures=model"),
    ("promptmind", "samples=2 members=3 shots=2 choice=tfidf temperatures=model"),
    ("em-mixers", "evidence=off shots=2 choice=tfidf temperatures=model"),
    ("ikim", "candidate=asked clusters=on shots=1 choice=tfidf temperatures=model"),
    ("mac", ""),
    ("mdteamgpt", "temperatures=model"),
    ("debate-or-vote", "by=debate"),
    ("medagents-2", "evidence=off"),
    ("hse-nlp", "ensemble=and shots=2 choice=tfidf temperatures=model"),
];

#[test]
fn plans_name_every_setting_and_give_them_back() {
    for (name, own) in OTHERS {
        let refused = SystemConfig::parse(name, &["none=1"]).unwrap_err();
        let SettingsError::UnknownKey { known, .. } = refused else {
            panic!("{name}: {refused}");
        };
        let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
        let decoding = [
            "record_chars=32",
            "thinking=on",
            "max_tokens=900",
            "call_seed=provider",
            "reask=on",
            "option_order=permuted",
        ];
        let pairs: Vec<&str> = own.split_whitespace().chain(decoding).collect();
        let keys = pairs.iter().map(|pair| pair.split('=').next().unwrap());
        assert_eq!(keys.collect::<BTreeSet<_>>(), known, "{name}");
        for pair in &pairs {
            let changed = SystemConfig::parse(name, &[pair]).unwrap();
            assert_ne!(changed, SystemConfig::named(name).unwrap(), "{name}: {pair}");
        }
        let system = SystemConfig::parse(name, &pairs).unwrap();
        let text = toml::to_string(&system.table).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let written: BTreeSet<&str> = table.keys().map(String::as_str).collect();
        assert_eq!(written, known, "{name}");
        assert_eq!(SystemConfig::from_table(system.plan_name(), &table), Ok(system));
    }
}

#[test]
fn bad_settings_are_refused_by_name() {
    let refused = |name, pair| SystemConfig::parse(name, &[pair]).unwrap_err();
    for (name, pair, expected) in [
        ("medmad", "t_max=-1", "a whole number from 0 to 100"),
        ("medmad", "counterfactual=off", "on or paper or strict"),
        ("medmad", "roles=sym,ddx", "one or 3 of sym, ddx, guide"),
        ("medmad", "weights=check", "paper or raw or reconcile or after-check"),
        ("medmad", "passages=0", "a whole number from 1 to 100"),
        ("medmad", "gate=1.5", "disagreement or a number from 0 to 1"),
        ("cot", "samples=0", "a whole number from 1 to 100"),
        ("healthcareagent", "record_chars=0", "a whole number from 1 to 2000"),
        ("medagents", "form=paper", "harness or original"),
        ("medagents", "max_rounds=0", "a whole number from 1 to 100"),
        ("mdagents", "mab_compat=yes", "on or off"),
        ("mdagents", "max_turns=0", "a whole number from 1 to 100"),
        ("medmad", "thinking=maybe", "on, off, where-possible or provider"),
        ("medmad", "confidence_reading=rounded", "clamped or converted"),
        ("cot", "max_tokens=0", "a whole number from 1 to 1000000, or provider"),
        ("reconcile", "max_rounds=0", "a whole number from 1 to 100"),
        ("medguards", "agents=5", "1 or 2 or 3 or 4 or 7 or 8"),
        ("medguards", "aligner=edit", "sequence-matcher or lcs"),
        ("base-llm", "prompt=3", "1 or 2"),
        ("medreflex", "avg_threshold=100.1", "a number from 0 to 100"),
        ("edinburgh", "shots=65", "a whole number from 0 to 64"),
        (
            "edinburgh",
            "role=doctor",
            "clinician or assistant or nurse or student or verifier or none",
        ),
        ("edinburgh-mcq", "options=5", "a whole number from 2 to 4"),
    ] {
        let (key, value) = pair.split_once('=').unwrap();
        let message = format!("setting {key}: \"{value}\" is not {expected}");
        assert_eq!(refused(name, pair).to_string(), message, "{name}");
    }
    let message = |name, pair| refused(name, pair).to_string();
    assert_eq!(message("medmad", "t_max"), "\"t_max\" is not key=value");
    assert_eq!(
        message("medmad", "roles=sym,ddx,doc"),
        "setting roles: \"sym,ddx,doc\" is not one or 3 of sym, ddx, guide"
    );
    assert_eq!(message("healthcareagent", "form=original"), "there is no setting form");
    for (name, known) in [
        ("medmad", "samples, t_max"),
        ("cot", "record_chars, samples"),
        ("healthcareagent", "record_chars, thinking"),
    ] {
        let hint = refused(name, "tmax=1").hint().unwrap();
        assert!(hint.contains(known), "{name}: {hint}");
    }
}

#[test]
fn switches_are_on_or_off_true_or_false() {
    for (pair, spelled) in [("thinking=true", "on"), ("thinking=off", "off")] {
        let table = SystemConfig::parse("cot", &[pair]).unwrap().table;
        assert_eq!(table["thinking"].as_str(), Some(spelled));
    }
}

#[test]
fn the_last_of_a_key_wins() {
    let system = SystemConfig::parse("medmad", &["t_max=0", "t_max=2"]).unwrap();
    assert_eq!(system.table["t_max"].as_integer(), Some(2));
}

#[test]
fn an_item_takes_so_many_calls_at_most() {
    for (name, pairs, calls) in [
        ("healthcareagent", &[][..], 7),
        ("mdagents", &[], 15),
        ("mdagents", &["form=original"], 288),
        ("mdagents", &["form=original", "max_rounds=1", "max_turns=1"], 27),
        ("reconcile", &["max_rounds=2"], 9),
    ] {
        let system = SystemConfig::parse(name, pairs).unwrap();
        assert_eq!(system.max_calls(), calls, "{name}");
    }
}

#[test]
fn healthcareagents_doctor_is_alone() {
    let system = SystemConfig::named("healthcareagent").unwrap();
    let slots = system.slots();
    assert_eq!((slots.len(), system.models()), (1, 1));
    assert_eq!(slots[0].agent, "doctor");
}

/// A plan may be somebody else's, or misspelt.
#[test]
fn a_table_with_a_setting_that_no_system_has_is_refused() {
    for system in SYSTEMS.iter() {
        let mut table = SystemConfig::named(system.name).unwrap().table;
        table.insert("t_maxx".to_owned(), 1.into());
        let error = SystemConfig::from_table(system.plan_name, &table).unwrap_err();
        assert!(matches!(error, SettingsError::UnknownKey { .. }), "{}: {error}", system.name);
    }
}
