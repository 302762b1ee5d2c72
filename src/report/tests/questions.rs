//! Scripted debates for tests: eight questions of our own with the turns that a debate can take.

use serde::Deserialize;
use serde_json::{Value, json};

use super::fixtures::{self, AGENTS, call, item, plan, round};
use crate::data::{Choice, Item, Question};
use crate::experiment::contents::Contents;
use crate::experiment::plan::Plan;
use crate::record::*;

/// A question with its options as `(text, for, against)`, and each round's answers with their confidences.
#[derive(Deserialize)]
struct Script {
    id: String,
    stem: String,
    options: Vec<(String, String, String)>,
    gold: Option<String>,
    clue: String,
    rounds: Vec<[(String, f64); 3]>,
}

/// Two runs over the eight questions: right, turned right, turned wrong, tied, errored, badly parsed, without gold, wrong.
pub fn records() -> (Plan, Vec<AnswerLine>, Vec<CallLine>) {
    let scripts: Vec<Script> = serde_json::from_str(include_str!("questions.json")).unwrap();
    let mut plan = plan();
    plan.dataset.items = scripts.iter().map(|script| script.id.clone()).collect();
    let mut items = Vec::new();
    let mut calls = Vec::new();
    for run in 1..=2 {
        for script in &scripts {
            let played = play(script, run, &mut calls);
            items.push(played);
        }
    }
    for (seq, call) in calls.iter_mut().enumerate() {
        call.seq = seq as u64;
    }
    (plan, items, calls)
}

/// The same as a run directory would give it.
pub fn contents() -> Contents {
    let (plan, items, calls) = records();
    contents_of(plan, items, calls)
}

/// With the texts of the eight questions, and one for every other item.
pub fn contents_of(plan: Plan, items: Vec<AnswerLine>, calls: Vec<CallLine>) -> Contents {
    let scripts: Vec<Script> = serde_json::from_str(include_str!("questions.json")).unwrap();
    let mut texts: Vec<Item> = scripts.iter().map(text).collect();
    let others = items.iter().filter(|item| !item.item.starts_with("ward-"));
    texts.extend(others.map(|item| {
        Item::Question(Question {
            id: item.item.clone(),
            question: "Is it so?".into(),
            options: [('A', "yes".to_owned()), ('B', "no".to_owned())].map(choice).to_vec(),
            gold: letter(&item.gold),
            ..Question::default()
        })
    }));
    let items = items.into_iter().map(ItemLine::from).collect();
    fixtures::contents(plan, texts, items, calls)
}

fn choice((letter, text): (char, String)) -> Choice {
    Choice { letter, text }
}

fn letter(gold: &Option<String>) -> Option<char> {
    gold.as_ref()?.chars().next()
}

fn text(script: &Script) -> Item {
    let options = ('A'..).zip(&script.options);
    Item::Question(Question {
        id: script.id.clone(),
        question: script.stem.clone(),
        options: options.map(|(letter, (text, ..))| choice((letter, text.clone()))).collect(),
        gold: letter(&script.gold),
        ..Question::default()
    })
}

fn play(script: &Script, run: u32, calls: &mut Vec<CallLine>) -> AnswerLine {
    let mut rounds: Vec<RoundLine> = Vec::new();
    for (number, said) in script.rounds.iter().enumerate() {
        let mut round = round(number as u32, said.each_ref().map(|(answer, _)| answer.as_str()));
        round.confidences = said.iter().map(|(_, confidence)| *confidence).collect();
        round.weights = round.confidences.iter().map(|&c| recalibrate(c)).collect();
        if let Some(before) = rounds.last() {
            round.labels = ["guide", "sym", "ddx"].map(String::from).to_vec();
            round.brief = brief(script, before);
        }
        // Two questions go otherwise in the second run: one's debate stops before it errs, one's calls come to nothing.
        match (script.id.as_str(), run, number) {
            ("ward-003", 2, 1..) | ("ward-005", 1, _) => break,
            _ => calls.extend((0..3).map(|seat| scripted(script, run, seat, &round))),
        }
        rounds.push(round);
    }
    let error = match (script.id.as_str(), run) {
        ("ward-005", 1) => Some("the prompt has 9214 tokens and qwen3-4b holds 8192"),
        ("ward-005", _) => Some("ddx did not answer within 600 s"),
        _ => None,
    };
    if error.is_some() {
        rounds.clear();
    }
    let answer = rounds.last().map_or(String::new(), |round| round.aggregate.clone());
    let mut item = item(&script.id, script.gold.as_deref(), rounds, &answer);
    item.run = run;
    item.error = error.map(String::from);
    item.tie = script.id == "ward-004";
    item.team_confidence = item.rounds.last().filter(|_| !answer.is_empty()).map(|last| {
        let supporting = || last.answers.iter().zip(&last.weights).filter(|(a, _)| **a == answer);
        supporting().map(|(_, weight)| weight).sum::<f64>() / supporting().count() as f64
    });
    item
}

fn recalibrate(confidence: f64) -> f64 {
    match confidence {
        c if c >= 0.95 => 0.9,
        c if c >= 0.85 => 0.7,
        c if c >= 0.7 => 0.5,
        c if c >= 0.5 => 0.3,
        _ => 0.1,
    }
}

fn brief(script: &Script, before: &RoundLine) -> String {
    let block = |(doctor, seat): (char, usize)| {
        let (answer, confidence) = (&before.answers[seat], before.confidences[seat]);
        format!(
            "[Doctor {doctor}] -> Answer: {answer} | Conf: {confidence}\nOption scores: {answer}=5, A=3, B=2\nCoT[1]: Anchor on {}.\nSupport: {answer} explains the picture best.\n",
            script.clue
        )
    };
    let blocks: Vec<String> = [('A', 2), ('B', 0), ('C', 1)].map(block).to_vec();
    format!(
        "{}\nInstructions for debate:\n- If you disagree with an option score, explain why your score differs",
        blocks.join("\n")
    )
}

fn scripted(script: &Script, run: u32, seat: usize, round: &RoundLine) -> CallLine {
    let (answer, confidence) = (&round.answers[seat], round.confidences[seat]);
    let record = record(script, answer, confidence, round.round);
    let mut call = call(&script.id, AGENTS[seat].0, round.round);
    call.run = run;
    call.backbone = AGENTS[seat].1.into();
    call.text = record.to_string();
    call.record = Reply::of(record);
    call.messages[1].content = match round.round {
        0 => format!("{}\n\nIMPORTANT: Follow this exact process", script.stem),
        number => format!(
            "Round {number} debate.\nCase: {}\n\nOther views:\n{}",
            script.stem, round.brief
        ),
    };
    match (script.id.as_str(), seat, round.round) {
        ("ward-006", 1, 0) => {
            call.parse = Parse::Fallback;
            call.finish_reason = FinishReason::Length;
            call.text = "<think>\nThe INR is high but he does not bleed.\n</think>\nI would go with option A because he has no".into();
            call.record = Reply::of(
                json!({"cot": [], "answer": "A", "confidence": 0.0, "option_analysis": []}),
            );
        }
        ("ward-006", 2, 0) => {
            call.parse = Parse::Repaired;
            call.text = format!("```json\n{}\n```", call.text);
        }
        _ => {}
    }
    call
}

fn record(script: &Script, answer: &str, confidence: f64, round: u32) -> Value {
    let letters = || ('A'..='J').map(String::from).zip(&script.options);
    let fit = |letter: &str| match usize::from(letter.as_bytes()[0]) {
        _ if letter == answer => 5,
        byte => 1 + (byte * 7 + answer.len() + round as usize) % 4,
    };
    let chosen = letters().find(|(letter, _)| letter == answer);
    let support = chosen.map_or(String::new(), |(_, (text, pro, _))| format!("{text}: {pro}."));
    let options: Vec<Value> = letters()
        .map(|(letter, (_, pro, con))| json!({"option": letter, "pros": pro, "cons": con, "fit_score": fit(&letter)}))
        .collect();
    let eliminated: Vec<Value> = letters()
        .filter(|(letter, _)| letter != answer)
        .take(2)
        .map(|(letter, (_, _, con))| json!({"dx_or_option": letter, "why_not": con}))
        .collect();
    json!({
        "cot": [format!("Anchor on {}.", script.clue), "Rate every option against that picture.", format!("{answer} fits with the fewest objections.")],
        "answer": answer,
        "confidence": confidence,
        "option_analysis": options,
        "structured_reasoning": {"question_focus": "the single best next step", "key_clues": [script.clue], "elimination": eliminated, "final_support": support},
        "counterfactual_check": {"if_chose_other": "The likeliest harm is treating what is not there.", "confidence_after_check": (confidence * 100.0 - 5.0).round() / 100.0},
        "debate_moves": match round {
            0 => json!({"main_point": "", "challenge": [], "accept": [], "risk_check": ""}),
            _ => json!({"main_point": format!("{answer} is supported by {}", script.clue), "challenge": ["Doctor B anchors on one finding alone."], "accept": ["Doctor A is right that he is stable."], "risk_check": "Switching would delay what is safe."}),
        },
    })
}
