//! The replies of `tests/replies/` that hold no letter or verdict: plans, questions, levels, experts, consent, fields, corrections,
//! confidences, refusals.

use serde_json::Value;

use super::corpus::{Tally, confidence, finish_reason, is_debatable, replies};
use super::plain;
use super::refuses;
use super::reply::Fields;
use super::words::consents;
use crate::record::{FinishReason, Parse};
use crate::systems::medguards::parse::{Wanted, read as read_tags};
use crate::systems::{healthcareagent, mdagents, medagents};

/// What one reply says under `field`, by `read`: `None` where that is unread.
fn tally<T: PartialEq + std::fmt::Debug>(
    system: &str,
    field: &str,
    meant: impl Fn(&Value) -> Option<T>,
    read: impl Fn(&Value, &str, FinishReason) -> (T, Parse),
) -> Tally {
    let mut tally = Tally::default();
    for reply in replies(system) {
        let is_word = reply["means"].get("confidence_word").is_some() && field == "confidence";
        if reply["means"].get(field).is_none() || is_debatable(&reply, field) || is_word {
            continue;
        }
        let (found, parse) = read(&reply, reply["text"].as_str().unwrap(), finish_reason(&reply));
        let found = (parse != Parse::Unread).then_some(found);
        tally.count(reply["id"].as_str().unwrap(), found, meant(&reply["means"][field]));
    }
    assert!(tally.read > 0, "no reply of {system} has {field}");
    println!("{system}, {field}: {}, {} unread", tally.read, tally.unread.len());
    tally
}

fn words(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// As many as are meant; the corpus gives the beginning of each.
fn count(value: &Value) -> Option<usize> {
    value.as_array().map(Vec::len).filter(|count| *count > 0)
}

fn number(value: &Value) -> Option<usize> {
    value.as_u64().map(|count| count as usize).filter(|count| *count > 0)
}

#[test]
fn plans_levels_and_consent_are_read() {
    let tallies = [
        tally("healthcareagent", "action", words, |_, text, finish| {
            let (plan, parse) = healthcareagent::parse::plan(text, finish);
            (plan.to_owned(), parse)
        }),
        tally("mdagents", "complexity", words, |_, text, finish| {
            let reply = Fields::read(text, finish, "complexity");
            let (level, parse) = mdagents::read_complexity(&reply);
            (level.to_owned(), parse)
        }),
    ];
    for tally in tallies {
        tally.check("stages", 0, 20);
    }
    let agreed = tally("medagents", "agree", Value::as_bool, |reply, text, finish| {
        let spoken = super::without_thinking(text);
        let agreed = match reply["form"] == "prose" {
            true => consents(spoken.trim()),
            false => medagents::agrees(&Fields::read(text, finish, "agree"), spoken),
        };
        (agreed.unwrap_or(false), Parse::Ok.if_read(agreed.is_some()))
    });
    agreed.check("consent", 0, 20);
}

#[test]
fn lists_are_read_to_the_last_item() {
    let tallies = [
        tally("healthcareagent", "questions", count, |_, text, finish| {
            let (read, parse) = healthcareagent::parse::follow_ups(text, finish);
            (read.len(), parse)
        }),
        tally("mdagents", "experts", number, |_, text, finish| {
            let reply = Fields::read(text, finish, "experts");
            let (read, parse) = mdagents::recruits::read_experts(&reply);
            (read.len(), parse)
        }),
        tally("mdagents", "leads", count, |_, text, finish| {
            let (read, parse) =
                mdagents::recruits::read_teams(&Fields::read(text, finish, "teams"));
            (read.len(), parse)
        }),
        tally(
            "medagents",
            "fields",
            |fields| count(fields).map(|_| 3),
            |_, text, finish| {
                let (read, parse) = medagents::read_specialties(text, finish);
                (read.len(), parse)
            },
        ),
    ];
    for tally in tallies {
        tally.check("lists", 0, 0);
    }
}

#[test]
fn corrections_are_the_sentence_that_should_stand_there() {
    let mut tally = Tally::default();
    for reply in replies("medguards") {
        if reply["purpose"] != "correction" || is_debatable(&reply, "correction") {
            continue;
        }
        let (said, _) = read_tags(Wanted::Correction, reply["text"].as_str().unwrap());
        // What a refusal says corrects nothing, and its call is none.
        let found = said.correction.filter(|_| !refuses(reply["text"].as_str().unwrap()));
        let found = found.map(|found| plain(&found));
        let meant = reply["means"]["correction"].as_str().map(plain);
        tally.count(reply["id"].as_str().unwrap(), found, meant);
    }
    tally.check("corrections", 0, 0);
}

#[test]
fn confidence_is_what_was_meant() {
    let hundredths = |share: f64| (share * 100.0).round() as i64;
    let meant = |value: &Value| value.as_f64().map(hundredths);
    for system in ["medmad", "reconcile"] {
        let tally = tally(system, "confidence", meant, |_, text, finish| {
            let given = confidence(text, finish);
            (hundredths(given), Parse::Ok.if_read(given != 0.0))
        });
        tally.check("confidences", 0, 10);
    }
}

#[test]
fn refusals_are_told() {
    let systems = [
        "medmad",
        "single_llm",
        "healthcareagent",
        "medagents",
        "mdagents",
        "reconcile",
        "medguards",
        "base_llm",
    ];
    let (mut told, mut missed) = (0, Vec::new());
    for reply in systems.into_iter().flat_map(replies) {
        let is_refused = reply["means"]["refused"] == true;
        match (is_refused, refuses(reply["text"].as_str().unwrap())) {
            (true, true) => told += 1,
            (true, false) => missed.push(reply["id"].as_str().unwrap().to_owned()),
            _ => {}
        }
    }
    println!("{told} refusals, {} missed", missed.len());
    assert!(missed.is_empty(), "{missed:?}");
}
