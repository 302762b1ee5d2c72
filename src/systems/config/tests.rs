//! Settings as the command line and plans give them.

use std::collections::BTreeSet;

use super::*;
use crate::diagnosis::Diagnosis;

/// Every setting of every system, each with another value than its default; those of the decoding come on top.
const OTHERS: [(&str, &str); 19] = [
    (
        "medmad",
        "t_max=1 always_debate=on confidence=off answer_reading=paper confidence_reading=converted counterfactual=paper roles=ddx analysis_first=on record=short truncate_chars=80 samples=2 letters=a-j weights=raw peers=own gate=0.9 evidence=first passages=3",
    ),
    ("cot-sc", "samples=2 mab_compat=on"),
    ("few-shot", "samples=2 examples=medqa mab_compat=on"),
    ("healthcareagent", "mab_compat=on"),
    ("medagents", "max_rounds=2 mab_compat=on"),
    ("mdagents", "truncate_chars=80 mab_compat=on"),
    ("reconcile", "max_rounds=2 truncate_chars=80 confidence_reading=converted mab_compat=on"),
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
    ("knowlab", "shots=2 choice=tfidf temperatures=model"),
    ("medprompt", "samples=2 members=3 shots=2 choice=tfidf temperatures=model"),
    ("em-mixers", "evidence=off shots=2 choice=tfidf temperatures=model"),
    ("ikim", "candidate=asked shots=1 choice=tfidf temperatures=model"),
    ("mac", ""),
    ("mdteamgpt", "temperatures=model"),
    ("debate-or-vote", "by=debate"),
    ("medagents-2", "evidence=off"),
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
            "option_order=permuted",
        ];
        let pairs: Vec<&str> = own.split_whitespace().chain(decoding).collect();
        let keys = pairs.iter().map(|pair| pair.split('=').next().unwrap());
        assert_eq!(keys.collect::<BTreeSet<_>>(), known, "{name}");
        let system = together(name, &pairs);
        let text = toml::to_string(&system.table).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let written: BTreeSet<&str> = table.keys().map(String::as_str).collect();
        assert_eq!(written, known, "{name}");
        assert_eq!(SystemConfig::from_table(system.plan_name(), &table), Ok(system));
    }
}

/// The system with all of these settings that have an effect beside the others, each of which alone changes it or is refused.
fn together(name: &str, pairs: &[&str]) -> SystemConfig {
    let mut left = pairs.to_vec();
    for pair in pairs {
        match SystemConfig::parse(name, &[pair]) {
            Ok(changed) => {
                assert_ne!(changed, SystemConfig::named(name).unwrap(), "{name}: {pair}")
            }
            Err(SettingsError::Idle { key, .. }) => assert!(pair.starts_with(&format!("{key}="))),
            Err(error) => panic!("{name}: {error}"),
        }
    }
    loop {
        match SystemConfig::parse(name, &left) {
            Ok(system) => return system,
            Err(SettingsError::Idle { key, .. }) => {
                let before = left.len();
                left.retain(|pair| !pair.starts_with(&format!("{key}=")));
                assert_eq!(left.len(), before - 1, "{name}: {key}");
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn a_setting_without_effect_beside_the_others_is_refused_with_what_it_needs() {
    for (name, pairs, told) in [
        ("no-debate", "peers=own", "peers: \"own\" has no effect here: it needs samples=1"),
        ("no-debate", "t_max=2", "t_max: \"2\" has no effect here: it needs samples=1"),
        ("no-debate", "counterfactual=paper", "it needs counterfactual=strict or samples=1"),
        ("medmad", "samples=2 peers=own", "peers: \"own\""),
        ("medmad", "samples=2 t_max=2", "t_max: \"2\""),
        ("medmad", "samples=2 always_debate=on", "always_debate: \"on\""),
        ("medmad", "samples=2 gate=0.9", "gate: \"0.9\""),
        ("medmad", "t_max=0 peers=own", "it needs t_max!=0"),
        ("medmad", "t_max=0 evidence=brief", "it needs evidence=first or t_max!=0"),
        ("medmad", "passages=3", "it needs evidence!=off"),
        ("medmad", "confidence=off weights=raw", "it needs confidence=on"),
        ("medmad", "record=short weights=after-check", "it needs record=full"),
        ("medmad", "record=short analysis_first=on", "it needs record=full"),
        ("medguards", "arbitration_below=80", "it needs arbitration=confidence"),
        ("medguards", "agents=2 arbitration=vote", "it needs agents=4 or agents=7 or agents=8"),
        ("medreact", "rerank_top_k=80 retrieve_top_k=3", "it needs rerank_top_k<=retrieve_top_k"),
    ] {
        let pairs: Vec<&str> = pairs.split(' ').collect();
        let error = SystemConfig::parse(name, &pairs).unwrap_err();
        assert!(error.to_string().contains(told), "{name}: {error}, not {told}");
        assert!(error.hint().is_some());
    }
    for (name, pairs) in [
        ("medmad", "t_max=1 peers=own counterfactual=paper always_debate=on"),
        // The rationale is cut, too.
        ("no-debate", "truncate_chars=80"),
        ("no-debate", "samples=1 t_max=2 peers=own"),
        ("no-debate", "counterfactual=strict"),
        ("medreact", "rerank_top_k=3 retrieve_top_k=3"),
    ] {
        let pairs: Vec<&str> = pairs.split(' ').collect();
        let system = SystemConfig::parse(name, &pairs).unwrap();
        assert_eq!(SystemConfig::from_table(name, &system.table), Ok(system));
    }
}

/// Needs are words: a slip in one would never be met, or always.
#[test]
fn every_need_speaks_of_settings_and_values_that_are_there() {
    fn of<S: Needs>(name: &str) {
        for (key, need) in S::needs() {
            let allows = |pair: &str| match SystemConfig::parse(name, &[pair]) {
                Ok(_) | Err(SettingsError::Idle { .. }) => (),
                Err(error) => panic!("{name}, {key} needs {need}: {error}"),
            };
            let table = SystemConfig::named(name).unwrap().table;
            assert!(table.contains_key(key), "{name}: {key}");
            for one in need.split(" or ") {
                match one.split_once("<=") {
                    Some((left, right)) => {
                        assert!(table.contains_key(left) && table.contains_key(right), "{one}");
                    }
                    None => allows(&one.replace("!=", "=")),
                }
            }
        }
    }
    of::<crate::systems::medmad::settings::Settings>("medmad");
    of::<crate::systems::medguards::settings::Settings>("medguards");
    of::<crate::systems::medreflex::settings::Settings>("medreflex");
    of::<crate::systems::medreflex::settings::ReactSettings>("medreact");
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
        ("medagents", "max_rounds=0", "a whole number from 1 to 100"),
        ("mdagents", "mab_compat=yes", "on or off"),
        ("medmad", "thinking=maybe", "on, off, where-possible or provider"),
        ("medmad", "confidence_reading=rounded", "clamped or converted"),
        ("cot", "max_tokens=0", "a whole number from 1 to 1000000, or provider"),
        ("reconcile", "max_rounds=0", "a whole number from 1 to 100"),
        ("medguards", "agents=5", "1 or 2 or 3 or 4 or 7 or 8"),
        ("medguards", "aligner=edit", "sequence-matcher or lcs"),
        ("base-llm", "prompt=3", "1 or 2"),
        ("medreflex", "avg_threshold=6", "a number from 1 to 5"),
        ("medreflex", "avg_threshold=5.01", "a number from 1 to 5"),
        ("medreflex", "min_threshold=0.99", "a number from 1 to 5"),
        ("medprompt", "shots=65", "a whole number from 0 to 64"),
        ("medprompt", "choice=nearest", "random or tfidf or embedding or fixed or sentences"),
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
    assert_eq!(message("healthcareagent", "peers=own"), "there is no setting peers");
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
fn a_setting_is_given_once() {
    let error = SystemConfig::parse("medmad", &["t_max=0", " t_max =2"]).unwrap_err();
    assert_eq!(error, SettingsError::Twice { key: "t_max".to_owned() });
}

#[test]
fn an_item_takes_so_many_calls_at_most() {
    for (name, pairs, calls) in [
        ("healthcareagent", &[][..], 7),
        ("mdagents", &[], 15),
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
