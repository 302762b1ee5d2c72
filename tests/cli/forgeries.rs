//! Changes of logged calls, one a call: a replay by prefill finds every one of them, and tells of no other call.
//!
//! `FORGERIES=10000 cargo test --test cli forgeries -- --nocapture` makes so many.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use wardround::experiment::contents::Contents;
use wardround::experiment::hardware::{Hardware, MOST_DRAFT};
use wardround::experiment::link::Link;
use wardround::experiment::replay::replay;
use wardround::hub::HubOptions;
use wardround::record::CallLine;

use crate::binary::{Random, Scratch};

/// What a replay by prefill says, of `contents` as they are here.
fn told(contents: &Contents) -> Result<Vec<String>, String> {
    let hardware = Hardware { draft: Some(MOST_DRAFT as usize), ..Hardware::default() };
    let hub = HubOptions::capture().unwrap();
    let spec = contents.plan.again(hardware, hub).map_err(|error| error.to_string())?;
    let replayed = replay(contents, spec, &[], Arc::<AtomicBool>::default());
    replayed.map(|replayed| replayed.differences).map_err(|error| error.to_string())
}

/// Changes one thing of a call, and says what.
fn forge(call: &mut CallLine, random: &mut Random) -> &'static str {
    let place = random.below(call.tokens.len() as u64) as usize;
    match random.below(7) {
        0 => {
            // Also to one that no model has.
            call.tokens[place] ^= 1 << random.below(32);
            "token"
        }
        1 => {
            call.tokens.truncate(call.tokens.len() - 1);
            "token left out"
        }
        2 => {
            call.tokens.insert(place, call.tokens[place]);
            "token added"
        }
        3 => {
            call.seed ^= 1 << random.below(53);
            "seed"
        }
        4 => {
            let temperature = call.sampling.temperature.unwrap_or(0.0);
            call.sampling.temperature = Some(f32::from_bits(temperature.to_bits() ^ 1));
            "temperature"
        }
        5 => {
            // The sum of the request has the grammar's text.
            call.sampling.constrained = !call.sampling.constrained;
            "grammar"
        }
        _ => {
            let chars: Vec<char> = call.text.chars().collect();
            let place = random.below(chars.len().max(1) as u64) as usize;
            let other = if chars.get(place) == Some(&'x') { 'y' } else { 'x' };
            let after = chars.iter().skip(place + 1);
            call.text =
                chars[..place.min(chars.len())].iter().chain([&other]).chain(after).collect();
            "text"
        }
    }
}

/// The calls that a replay tells of, by what it says before the field.
fn named(differences: &[String]) -> BTreeSet<&str> {
    differences.iter().filter_map(|told| told.split(": ").next()).collect()
}

#[test]
fn every_single_change_of_a_call_is_found_and_no_other_call_is_told_of() {
    let wanted = std::env::var("FORGERIES").map_or(20, |count| count.parse().unwrap());
    let questions = if wanted > 1000 { 60 } else { 2 };
    let scratch = Scratch::new();
    scratch.questions(questions);
    // Dictated in part, and free.
    scratch.run_one("records", "--set t_max=1").succeeded();
    scratch.run_one("free", "--set t_max=1 --decoding text --set max_tokens=40").finished();
    let sound = ["records", "free"].map(|run| Contents::read(&scratch.path(run)).unwrap());
    let mut random = Random(17);
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    let mut left_alone = 0;
    for contents in &sound {
        assert_eq!(told(contents).unwrap(), [""; 0]);
        left_alone += contents.calls.records.len();
    }
    while found.values().sum::<usize>() < wanted {
        for contents in &sound {
            let mut contents = contents.clone();
            let mut forged = BTreeSet::new();
            for call in &mut contents.calls.records {
                if random.below(3) == 0 {
                    left_alone += 1;
                    continue;
                }
                forged.insert(call.key().to_string());
                *found.entry(forge(call, &mut random)).or_default() += 1;
            }
            let told = told(&contents).unwrap();
            assert_eq!(named(&told), forged.iter().map(String::as_str).collect(), "{told:#?}");
        }
    }
    // What all calls of a run were made with, said otherwise: each is another call.
    type Change = fn(&mut Contents);
    let changes: [(&str, Change); 2] = [
        ("seed of the run", |one: &mut Contents| {
            one.plan.found.seed += 1;
            one.plan.asked.as_mut().unwrap().seed += 1;
        }),
        ("temperature of the run", |one: &mut Contents| {
            one.plan.found.panel.iter_mut().for_each(|member| member.temperature = Some(0.5));
            one.plan.asked.as_mut().unwrap().sampling.temperature = Some(0.5);
        }),
    ];
    for contents in &sound {
        for (what, change) in changes {
            let mut contents = contents.clone();
            change(&mut contents);
            let told = told(&contents).unwrap();
            let calls = contents.calls.records.iter().map(|call| call.key().to_string());
            let missed: Vec<String> = calls.filter(|key| !named(&told).contains(&**key)).collect();
            assert_eq!(missed, [""; 0], "{what}");
            *found.entry(what).or_default() += contents.calls.records.len();
        }
    }
    let bits = if wanted > 1000 { 100 } else { 1 };
    let weights = scratch.path("llama/model.safetensors");
    for _ in 0..bits {
        found_in_weights(&weights, &sound[0], &mut random);
        *found.entry("bit of a weight").or_default() += 1;
    }
    let all: usize = found.values().sum();
    println!("{all} changes, all found: {found:?}; {left_alone} calls left alone, none told of");
}

/// Weights of which one bit is another are refused by their sum.
fn found_in_weights(weights: &Path, sound: &Contents, random: &mut Random) {
    let bytes = std::fs::read(weights).unwrap();
    let mut changed = bytes.clone();
    // Behind the header.
    let place = bytes.len() - 1 - random.below(bytes.len() as u64 / 2) as usize;
    changed[place] ^= 1 << random.below(8);
    std::fs::write(weights, changed).unwrap();
    let refused = told(sound).unwrap_err();
    assert!(refused.contains("weights_sha256"), "{refused}");
    std::fs::write(weights, bytes).unwrap();
}
