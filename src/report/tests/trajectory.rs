//! The page of a note whose system searched: its way to the answer, and the sources of its correction.

use serde_json::json;

use super::fixtures::assert_asks_for_nothing;
use super::notes::{called, contents, note, plan};
use super::only_page;
use crate::analysis::notes::CorrectionScorer;
use crate::record::{
    CallLine, EvidenceLine, Message, NoteLine, Part, Passage, Reply, RetrievedChunk, SearchLine,
    SearchPlace, Trajectory, TurnLine,
};

/// As long as the chunks of a corpus at their longest.
const CHUNK: usize = 1000;

fn search(step: u32, passages: usize, text: &str) -> SearchLine {
    let shown: Vec<Passage> = (0..passages)
        .map(|place| Passage {
            chunk: format!("ward/fever#{place}"),
            source: "ward".into(),
            title: format!("Fever & chills {place}"),
            paragraph: place as u32,
            score: 0.5,
            sha256: "0".repeat(64),
            text: Some(text.to_owned()),
            url: Some("https://ward.example/fever".into()),
            date: Some("2021-05-03".into()),
            licence: Some("CC BY 4.0".into()),
        })
        .collect();
    let chunk = |place: usize| RetrievedChunk { chunk: format!("ward/fever#{place}"), score: 0.1 };
    SearchLine {
        dataset: "medec-ms-test".into(),
        run: 1,
        item: "ms-test-found".into(),
        step,
        query: "what lowers a fever".into(),
        retrieved: (0..passages).rev().map(chunk).collect(),
        shown,
        ..SearchLine::default()
    }
}

fn found(evidence: Vec<EvidenceLine>, ungrounded: &[&str]) -> NoteLine {
    let mut line = note("ms-test-found");
    (line.flag, line.sentence_id) = (Some(true).into(), Some(1));
    line.sentence = "He was given aspirin daily.".into();
    line.correction = Some("He was given paracetamol daily.".into());
    line.search = Some(Trajectory {
        turns: vec![TurnLine {
            steps: 5,
            is_final: true,
            scores: vec![400; 5],
            mean_hundredths: Some(400),
            min: Some(400),
            accepted: true,
            ..TurnLine::default()
        }],
        evidence,
        grounded: Some(ungrounded.is_empty()),
        ungrounded: ungrounded.iter().map(|word| word.to_string()).collect(),
        ..Trajectory::default()
    });
    line
}

fn calls(hostile: &str) -> Vec<CallLine> {
    let mut calls = Vec::new();
    for step in 0..5 {
        let mut call = called("ms-test-found", "react", "step");
        call.sample = step;
        call.messages[1] = Message::of_parts(
            "user",
            vec![(Part::Passages { passages: SearchPlace { round: 0, step } }, "x".into())],
        );
        let action = match step {
            4 => json!({"name": "final_mistake", "sentence": hostile, "correction": hostile}),
            _ => json!({"name": "search", "query": hostile}),
        };
        call.record = Reply::of(
            json!({"observation": hostile, "thought": "t".repeat(240), "action": action}),
        );
        calls.push(call);
    }
    for reviewer in 0..5 {
        let mut call = called("ms-test-found", "eval", "review");
        call.sample = reviewer;
        let reasons = ["", "", "", "", "", hostile];
        call.record =
            Reply::of(json!({"scores": [400, 400, null, 350, 400, 400], "reasons": reasons}));
        calls.push(call);
    }
    let mut call = called("ms-test-found", "reflex", "reflexion");
    call.record = Reply::of(json!({"text": hostile}));
    calls.push(call);
    calls
}

fn page(note: NoteLine, calls: Vec<CallLine>, searches: Vec<SearchLine>) -> String {
    let mut plan = plan();
    (plan.runs, plan.dataset.items) = (1, vec!["ms-test-found".into()]);
    let mut contents = contents(plan, vec![note], calls);
    contents.searches.records = searches;
    only_page(&contents, &CorrectionScorer::default()).unwrap()
}

#[test]
fn sources_are_shown_as_the_answer_names_them() {
    let evidence =
        EvidenceLine { round: 0, step: 0, rank: 2, chunk: "ward/fever#1".into(), sentence: 1 };
    let text = "Paracetamol, given in time, lowers it.";
    let page = page(found(vec![evidence], &[]), calls("so it is"), vec![search(0, 3, text)]);
    assert!(page.contains(">Paracetamol, given in time, lowers it.</p>"));
    assert!(page.contains("1.2 · ward · paragraph 1 · 2021-05-03 · CC BY 4.0"));
    assert!(page.contains("as the answer names them"));
    assert!(page.contains("Turn 1: 5 steps, accepted with a mean of 4.0 and a least of 4.0"));
    // Before reranking the last was the first.
    assert!(page.contains("<td>3</td><td>1</td><td>0.50</td>"));
    assert!(page.contains("<td>3.5</td>") && page.contains("[passages of turn 1, step 1]"));
    assert_eq!(page.matches("https://ward.example/fever").count(), 2);
}

#[test]
fn words_that_no_source_has_are_said() {
    let mut search = search(0, 1, "Something else was given.");
    search.shown[0].url = None;
    let page = page(found(Vec::new(), &["paracetamol"]), calls("so it is"), vec![search]);
    assert_asks_for_nothing(&page);
    assert!(page.contains("No shown source contains: <b>paracetamol</b>."));
    assert!(page.contains("the answer names none</small>"));
}

#[test]
fn what_models_and_passages_say_stays_text() {
    let hostile = "</td></table><script>alert(1)</script><img src=x onerror='a'>{{ page }}";
    let mut search = search(0, 2, hostile);
    search.query = hostile.into();
    for passage in &mut search.shown {
        (passage.title, passage.chunk) = (hostile.into(), hostile.into());
        passage.url = Some("javascript:alert(1)".into());
    }
    let page = page(found(Vec::new(), &["given"]), calls(hostile), vec![search]);
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains("<img") && !page.contains("href=\"javascript"));
}

#[test]
fn a_note_with_its_evidence_takes_a_hundred_kilobytes_at_most() {
    let text = "Paracetamol lowers a fever. ".repeat(CHUNK / 28);
    let searches: Vec<SearchLine> = (0..4).map(|step| search(step, 20, &text)).collect();
    let evidence = (1..=5).map(|rank| EvidenceLine {
        round: 0,
        step: 0,
        rank,
        chunk: format!("ward/fever#{}", rank - 1),
        sentence: 1,
    });
    let long = "A reason of a review. ".repeat(10);
    let with = page(found(evidence.collect(), &[]), calls(&long), searches);
    let without = page(note("ms-test-found"), Vec::new(), Vec::new());
    let bytes = with.len() - without.len();
    println!("{bytes} bytes");
    assert!(bytes <= 100_000, "{bytes} bytes");
}
