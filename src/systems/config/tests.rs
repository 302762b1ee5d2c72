//! Settings as the command line and plans give them.

use std::collections::BTreeSet;

use super::*;

/// Of equal plans.
impl PartialEq for SystemConfig {
    fn eq(&self, other: &SystemConfig) -> bool {
        self.entry.plan_name == other.entry.plan_name
            && self.table == other.table
            && self.file() == other.file()
    }
}

/// Every setting of every system, each with another value than its default; those of the decoding come on top.
const OTHERS: [(&str, &str); 14] = [
    (
        "medmad",
        "t_max=1 always_debate=on confidence=off answer_reading=paper counterfactual=paper roles=ddx record=short truncate_chars=80 samples=2 peers=own",
    ),
    ("cot-sc", "samples=2"),
    ("few-shot", "samples=2"),
    ("healthcareagent", ""),
    ("medagents", "max_rounds=2"),
    ("mdagents", ""),
    ("reconcile", "max_rounds=2"),
    (
        "medguards",
        "agents=8 arbitration=vote det_reasoning=off det_confidence=off loc_reasoning=off loc_confidence=off localisation=hard",
    ),
    ("base-llm", ""),
    (
        "medreflex",
        "react_turns=2 reflexion_turns=2 reviewers=3 avg_threshold=4 min_threshold=2.5 retrieve_top_k=9 rerank_top_k=3 rerank=off temperatures=model",
    ),
    (
        "medreact",
        "react_turns=2 retrieve_top_k=9 rerank_top_k=3 rerank=embedding temperatures=model",
    ),
    ("knowlab", "shots=2 choice=random temperatures=model"),
    ("medprompt", "samples=2 shots=2 choice=tfidf temperatures=model"),
    ("em-mixers", "shots=2 choice=tfidf temperatures=model"),
];

#[test]
fn plans_name_every_setting_and_give_them_back() {
    for (name, own) in OTHERS {
        let refused = SystemConfig::parse(name, &["none=1"]).unwrap_err();
        let hint = refused.hint().unwrap();
        let known = hint.strip_prefix("the system's settings are ").unwrap();
        let known: BTreeSet<&str> = known.split(", ").collect();
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
        let plain = SystemConfig::parse::<&str>(name, &[]).unwrap();
        for pair in &pairs {
            assert_ne!(SystemConfig::parse(name, &[pair]).unwrap(), plain, "{name}: {pair}");
        }
        let system = SystemConfig::parse(name, &pairs).unwrap();
        let text = toml::to_string(&system.table).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let written: BTreeSet<&str> = table.keys().map(String::as_str).collect();
        assert_eq!(written, known, "{name}");
        assert_eq!(SystemConfig::with(system.entry, &table).unwrap(), system);
    }
}

#[test]
fn bad_settings_are_refused_by_name() {
    let refused = |name, pair| SystemConfig::parse(name, &[pair]).unwrap_err();
    for (name, pair, expected) in [
        ("medmad", "t_max=-1", "a whole number from 0 to 100"),
        ("medmad", "counterfactual=off", "on or paper or strict"),
        ("medmad", "roles=sym,ddx", "one or 3 of sym, ddx, guide"),
        ("cot", "samples=0", "a whole number from 1 to 100"),
        ("healthcareagent", "record_chars=0", "a whole number from 1 to 2000"),
        ("medagents", "max_rounds=0", "a whole number from 1 to 100"),
        ("medmad", "always_debate=yes", "on or off"),
        ("medmad", "thinking=maybe", "off or on or where-possible or provider"),
        ("cot", "max_tokens=0", "a whole number from 1 to 1000000, or provider"),
        ("reconcile", "max_rounds=0", "a whole number from 1 to 100"),
        ("medguards", "agents=5", "1 or 2 or 3 or 4 or 7 or 8"),
        ("medreflex", "avg_threshold=6", "a number from 1 to 5"),
        ("medreflex", "avg_threshold=5.01", "a number from 1 to 5"),
        ("medreflex", "min_threshold=0.99", "a number from 1 to 5"),
        ("medprompt", "shots=65", "a whole number from 0 to 64"),
        ("medprompt", "choice=nearest", "random or tfidf or fixed or sentences"),
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
    for (name, pair, spelled) in [
        ("cot", "thinking=true", "on"),
        ("cot", "thinking=off", "off"),
        ("medmad", "always_debate=true", "on"),
        ("medmad", "confidence=false", "off"),
    ] {
        let table = SystemConfig::parse(name, &[pair]).unwrap().table;
        assert_eq!(table[pair.split('=').next().unwrap()].as_str(), Some(spelled));
    }
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
    let system = SystemConfig::parse::<&str>("healthcareagent", &[]).unwrap();
    let slots = system.slots();
    assert_eq!((slots.len(), system.models()), (1, 1));
    assert_eq!(slots[0].agent, "doctor");
}

/// A plan may be somebody else's, or misspelt.
#[test]
fn a_table_with_a_setting_that_no_system_has_is_refused() {
    for system in SYSTEMS.iter() {
        let mut table = SystemConfig::parse::<&str>(system.name, &[]).unwrap().table;
        table.insert("t_maxx".to_owned(), 1.into());
        let error = SystemConfig::with(system, &table).unwrap_err();
        assert_eq!(error.to_string(), "there is no setting t_maxx", "{}", system.name);
    }
}
