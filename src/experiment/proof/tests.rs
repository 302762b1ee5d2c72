use tempfile::TempDir;

use super::*;
use crate::diagnosis::{Blame, Diagnosis};
use crate::experiment::fixtures::{call, item, plan, search, searching_plan, start, write_results};
use crate::experiment::results;
use crate::experiment::verify::read_finished;

/// A finished run of so many items, each with two calls and a search.
fn finished(count: usize) -> (TempDir, Contents, Results) {
    let out = tempfile::tempdir().unwrap();
    let mut plan = searching_plan();
    plan.runs = 1;
    plan.dataset.items = (0..count).map(|number| format!("q{number}")).collect();
    let log = start(out.path(), &plan);
    // As items in flight are logged: not one after another.
    for agent in ["sym", "ddx"] {
        for name in plan.dataset.items.iter().rev() {
            log.call(call(name, 0, agent)).unwrap();
        }
    }
    for name in &plan.dataset.items {
        log.search(search(name, 0, 0)).unwrap();
        log.item(item(name, 0)).unwrap();
    }
    log.finish().unwrap();
    write_results(out.path(), 1234).unwrap();
    let (contents, results) = read_finished(out.path()).unwrap();
    (out, contents, results)
}

fn checked(proof: &Proof, head: &str) -> Result<Proof, RunError> {
    checked_bytes(proof.to_text().unwrap().as_bytes(), head)
}

fn checked_bytes(bytes: &[u8], head: &str) -> Result<Proof, RunError> {
    Proof::check_bytes(bytes, "proof.json".as_ref(), head)
}

#[test]
fn every_item_is_proven_by_the_head_alone_and_holds_all_of_its_lines() {
    for count in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17] {
        let (_out, contents, results) = finished(count);
        for item in &contents.plan.dataset.items {
            let proof = Proof::of(&contents, results.clone(), item).unwrap();
            let proof = checked(&proof, &format!(" {}\n", results.head.to_uppercase())).unwrap();
            assert_eq!(proof.text.item(), item);
            let lines = (proof.calls.len(), proof.searches.len(), proof.outcomes.len());
            assert_eq!(lines, (2, 1, 1));
        }
    }
}

#[test]
fn a_run_without_items_has_a_root_and_proves_none() {
    let (out, contents, results) = finished(0);
    assert_eq!(results.items_root, Some(crate::digest::sha256("")));
    let error = Proof::of(&contents, results, "q0").unwrap_err();
    assert_eq!(error.to_string(), format!("{} has no item `q0`", out.path().display()));
    assert_eq!(error.blame(), Blame::Usage);
}

#[test]
fn every_changed_byte_is_refused() {
    let (_out, contents, results) = finished(3);
    let proof = Proof::of(&contents, results.clone(), "q1").unwrap();
    let mut bytes = proof.to_text().unwrap().into_bytes();
    checked_bytes(&bytes, &results.head).unwrap();
    for place in 0..bytes.len() {
        let bit = [0x01, 0x02, 0x20, 0x80][place % 4];
        bytes[place] ^= bit;
        let error = checked_bytes(&bytes, &results.head).expect_err("a changed byte");
        assert_eq!(error.blame(), Blame::Artefact, "byte {place}: {error}");
        bytes[place] ^= bit;
        let without = [&bytes[..place], &bytes[place + 1..]].concat();
        checked_bytes(&without, &results.head).expect_err("a byte less");
    }
    checked_bytes(&[&bytes[..], b"\n"].concat(), &results.head).expect_err("a byte more");
}

#[test]
fn what_a_prover_might_leave_out_add_or_exchange_is_refused() {
    let (_out, contents, results) = finished(5);
    let of = |item: &str| Proof::of(&contents, results.clone(), item).unwrap();
    let (sound, other) = (of("q1"), of("q2"));
    type Change<'a> = &'a dyn Fn(&mut Proof);
    let changes: [(&str, Change<'_>); 15] = [
        ("the first call", &|proof| drop(proof.calls.remove(0))),
        ("the last call", &|proof| drop(proof.calls.pop())),
        ("all calls", &|proof| proof.calls.clear()),
        ("the search", &|proof| proof.searches.clear()),
        ("the outcome", &|proof| proof.outcomes.clear()),
        ("a call twice", &|proof| proof.calls.push(proof.calls[0].clone())),
        ("the calls' order", &|proof| proof.calls.reverse()),
        ("another item's call", &|proof| proof.calls[0] = other.calls[0].clone()),
        ("another item's calls", &|proof| proof.calls = other.calls.clone()),
        ("another item's text", &|proof| proof.text = other.text.clone()),
        ("another item's place", &|proof| proof.index = other.index),
        ("another item's path", &|proof| proof.path = other.path.clone()),
        ("a call that is sealed anew", &|proof| {
            proof.calls[0].text.push('!');
            let prev = proof.calls[0].prev.clone();
            let seq = proof.calls[0].seq;
            chain::seal(&mut proof.calls[0], seq, &prev).unwrap();
        }),
        ("a call under another's name", &|proof| {
            proof.calls[0] = other.calls[0].clone();
            proof.calls[0].item = "q1".to_owned();
        }),
        ("results with another root, sealed anew", &|proof| {
            proof.calls.pop();
            proof.results.items_root = Some("0".repeat(64));
            proof.results.head = proof.results.computed_head().unwrap();
        }),
    ];
    for (what, change) in changes {
        let mut changed = sound.clone();
        change(&mut changed);
        let error = checked(&changed, &results.head).expect_err(what);
        let is_told = matches!(error, RunError::BadProof { .. } | RunError::HeadDiffers { .. });
        assert!(is_told, "{what}: {error}");
    }
    checked(&sound, &results.head).unwrap();
    let (_out, _, others) = finished(4);
    let error = checked(&sound, &others.head).unwrap_err();
    assert!(matches!(error, RunError::HeadDiffers { .. }), "{error}");
}

/// Results of before roots were written are as intact as they were, and prove nothing of an item.
#[test]
fn results_without_a_root_are_refused_by_name() {
    let (out, contents, mut results) = finished(2);
    results.items_root = None;
    results.head = results.computed_head().unwrap();
    let text = results.text().unwrap();
    assert!(!text.contains("root"), "{text}");
    fs_err::write(out.path().join(results::FILE), text).unwrap();
    let (_, read) = read_finished(out.path()).unwrap();
    assert_eq!(read, results);
    let error = Proof::of(&contents, results, "q1").unwrap_err();
    assert!(error.to_string().ends_with("results.json has no root over the items"), "{error}");
    assert!(error.hint().unwrap().contains("earlier version"));
}

/// A root of other logs is no root of these, whoever sealed it.
#[test]
fn a_wrong_root_is_found_where_the_whole_run_is_verified() {
    let out = tempfile::tempdir().unwrap();
    let log = start(out.path(), &plan());
    crate::experiment::fixtures::log_everything(&log);
    log.finish().unwrap();
    let mut results = write_results(out.path(), 1).unwrap();
    results.items_root = Some("0".repeat(64));
    results.head = results.computed_head().unwrap();
    fs_err::write(out.path().join(results::FILE), results.text().unwrap()).unwrap();
    let error = read_finished(out.path()).unwrap_err();
    assert!(error.to_string().contains("items_root"), "{error}");
}
