//! Records for tests: eight questions of our own with the turns that a debate can take, scripted by answer and confidence.

use serde_json::{Value, json};

use crate::run::plan::Plan;
use crate::run::records::*;

const AGENTS: [(&str, &str); 3] = [
    ("sym", "gemma-3-4b-it"),
    ("ddx", "llama-3.2-3b-instruct"),
    ("guide", "qwen3-4b"),
];

/// A question with its options as `(text, for, against)`, gold, and the rounds' answers with confidences.
struct Script {
    id: &'static str,
    stem: &'static str,
    options: &'static [(&'static str, &'static str, &'static str)],
    gold: Option<&'static str>,
    clue: &'static str,
    rounds: &'static [[(&'static str, f64); 3]],
}

const SCRIPTS: [Script; 8] = [
    Script {
        id: "ward-001",
        stem: "A 24-year-old woman has had burning on urination and urinary frequency for two days. She is 14 weeks pregnant. Temperature is 36.9 °C, and there is no flank tenderness. Urinalysis shows nitrites and leukocyte esterase. She reports no drug allergies.\n\nWhich of the following is the most appropriate treatment?",
        options: &[
            (
                "Ciprofloxacin",
                "covers common uropathogens",
                "avoided in pregnancy: cartilage toxicity",
            ),
            (
                "Doxycycline",
                "oral and cheap",
                "contraindicated: teeth and bone of the fetus",
            ),
            (
                "Cephalexin",
                "safe in every trimester, covers E. coli",
                "slightly lower cure rates than others",
            ),
            (
                "Trimethoprim-sulfamethoxazole",
                "effective for cystitis",
                "folate antagonist early in pregnancy",
            ),
            (
                "No treatment until culture results",
                "avoids a needless antibiotic",
                "untreated bacteriuria risks pyelonephritis",
            ),
        ],
        gold: Some("C"),
        clue: "14 weeks pregnant, no flank pain, afebrile",
        rounds: &[[("C", 0.95), ("C", 0.9), ("C", 0.97)]],
    },
    Script {
        id: "ward-002",
        stem: "A 61-year-old man with a 40 pack-year history has had three weeks of facial swelling, worse on bending forward, and distended veins over the chest. He is comfortable at rest, without stridor. CT shows a mediastinal mass compressing the superior vena cava; no tissue has been obtained.\n\nWhat is the most appropriate next step?",
        options: &[
            (
                "Emergency radiotherapy",
                "shrinks a sensitive mass quickly",
                "obscures histology; he is stable",
            ),
            (
                "Biopsy of the mass",
                "treatment depends on the histology and he is stable",
                "delays relief by days",
            ),
            (
                "Anticoagulation alone",
                "would treat an associated clot",
                "no thrombus described",
            ),
            (
                "High-dose diuretics",
                "may ease swelling",
                "no effect on the obstruction",
            ),
        ],
        gold: Some("B"),
        clue: "stable, no stridor, no tissue diagnosis",
        rounds: &[
            [("A", 0.8), ("B", 0.75), ("A", 0.72)],
            [("A", 0.7), ("B", 0.86), ("B", 0.8)],
            [("B", 0.82), ("B", 0.9), ("B", 0.88)],
        ],
    },
    Script {
        id: "ward-003",
        stem: "An 8-year-old boy limps after a viral illness a week ago. Temperature is 37.4 °C; he bears weight with discomfort. White cells 8.1 × 10⁹/L, CRP 6 mg/L. Ultrasound shows a small hip effusion.\n\nWhat is the most likely diagnosis?",
        options: &[
            (
                "Septic arthritis",
                "effusion and limp; must not be missed",
                "afebrile, bears weight, CRP low",
            ),
            (
                "Transient synovitis",
                "recent viral illness, mild, low markers",
                "a diagnosis of exclusion",
            ),
            (
                "Slipped capital femoral epiphysis",
                "limp in a child",
                "usually older and overweight",
            ),
            ("Perthes disease", "the age fits", "insidious over months"),
        ],
        gold: Some("B"),
        clue: "bears weight, CRP 6 mg/L",
        rounds: &[
            [("B", 0.7), ("B", 0.65), ("A", 0.9)],
            [("A", 0.72), ("B", 0.6), ("A", 0.95)],
            [("A", 0.8), ("A", 0.7), ("A", 0.95)],
        ],
    },
    Script {
        id: "ward-004",
        stem: "A 45-year-old woman has fatigue and weight gain of 6 kg over a year. TSH is 7.8 mU/L with a normal free T4, twice, six weeks apart; TPO antibodies are positive. She has no plans for pregnancy.\n\nWhich is the best next step?",
        options: &[
            (
                "Start levothyroxine",
                "symptoms and antibodies raise the yield",
                "benefit below 10 mU/L is uncertain",
            ),
            (
                "Repeat TSH in six months",
                "TSH is below 10 mU/L",
                "symptomatic with antibodies",
            ),
            (
                "Thyroid ultrasound",
                "cheap",
                "no nodule or goitre described",
            ),
            ("Pituitary MRI", "none", "TSH is not low or inappropriate"),
        ],
        gold: Some("A"),
        clue: "TSH 7.8 mU/L twice, antibodies positive",
        rounds: &[
            [("A", 0.6), ("B", 0.62), ("C", 0.55)],
            [("B", 0.6), ("A", 0.66), ("C", 0.58)],
            [("A", 0.64), ("B", 0.66), ("C", 0.5)],
            [("B", 0.66), ("A", 0.68), ("C", 0.52)],
        ],
    },
    Script {
        id: "ward-005",
        stem: "",
        options: &[],
        gold: Some("D"),
        clue: "",
        rounds: &[],
    },
    Script {
        id: "ward-006",
        stem: "A 70-year-old man on warfarin has an INR of 8.2 at a routine check. He has no bleeding and feels well.\n\nWhich is the most appropriate management?",
        options: &[
            (
                "Continue warfarin, recheck in a week",
                "no bleeding",
                "INR far above range",
            ),
            (
                "Hold warfarin and give oral vitamin K",
                "lowers the INR within a day",
                "may overshoot",
            ),
            (
                "Prothrombin complex concentrate",
                "immediate reversal",
                "meant for major bleeding",
            ),
        ],
        gold: Some("B"),
        clue: "INR 8.2, no bleeding",
        rounds: &[
            [("B", 0.85), ("A", 0.0), ("B", 0.9)],
            [("B", 0.88), ("B", 0.8), ("B", 0.92)],
        ],
    },
    Script {
        id: "ward-007",
        stem: "Which vaccine should be offered to a patient three weeks before an elective splenectomy?",
        options: &[
            (
                "Pneumococcal vaccine",
                "encapsulated bacteria are the danger",
                "none",
            ),
            (
                "Yellow fever vaccine",
                "none without travel",
                "live vaccine without need",
            ),
        ],
        gold: None,
        clue: "elective, three weeks ahead",
        rounds: &[[("A", 0.97), ("A", 0.9), ("A", 0.96)]],
    },
    Script {
        id: "21645374",
        stem: "Do bedside checklists shorten ward rounds?\n\nContext: Forty ward rounds on two surgical wards were timed before and after a one-page checklist was introduced. Rounds lasted 74 minutes on average before and 71 minutes after (p = 0.31). Missed items fell from 4.2 to 1.1 a round (p < 0.001). Staff rated the checklist as helpful in 82 % of rounds.",
        options: &[
            (
                "Yes",
                "rounds were three minutes shorter",
                "the difference was not significant",
            ),
            ("No", "p = 0.31 for duration", "fewer items were missed"),
            ("Maybe", "mixed outcomes", "duration itself did not change"),
        ],
        gold: Some("B"),
        clue: "74 against 71 minutes, p = 0.31",
        rounds: &[[("C", 0.75), ("C", 0.7), ("C", 0.8)]],
    },
];

/// Two runs over the eight questions: right, turned right, turned wrong, tied, errored, badly parsed, without gold, wrong.
pub fn records() -> (Plan, Vec<ItemRecord>, Vec<CallRecord>) {
    let mut items = Vec::new();
    let mut calls = Vec::new();
    for run in 1..=2 {
        for script in &SCRIPTS {
            let played = play(script, run, &mut calls);
            items.push(played);
        }
    }
    for (seq, call) in calls.iter_mut().enumerate() {
        call.seq = seq as u64;
    }
    (plan(), items, calls)
}

fn play(script: &Script, run: u32, calls: &mut Vec<CallRecord>) -> ItemRecord {
    // The second run stops one question's debate before it goes wrong.
    let shown = if run == 2 && script.id == "ward-003" {
        1
    } else {
        script.rounds.len()
    };
    let mut rounds: Vec<RoundRecord> = Vec::new();
    for (number, said) in script.rounds[..shown].iter().enumerate() {
        let number = number as u32;
        let mut round = round(number, said.map(|(answer, _)| answer));
        round.confidences = said.map(|(_, confidence)| confidence).to_vec();
        round.weights = round.confidences.iter().map(|&c| recalibrate(c)).collect();
        if number > 0 {
            round.labels = ["guide", "sym", "ddx"].map(String::from).to_vec();
            round.brief = brief(script, &rounds[rounds.len() - 1]);
        }
        for (seat, (answer, confidence)) in said.iter().enumerate() {
            calls.push(scripted(script, run, seat, &round, (answer, *confidence)));
        }
        rounds.push(round);
    }
    let answer = rounds.last().map_or("", |round| {
        if script.id == "ward-004" {
            "B"
        } else {
            &round.aggregate
        }
    });
    let answer = answer.to_string();
    let mut item = item(script.id, script.gold, rounds, &answer);
    item.run = run;
    if let Some(last) = item.rounds.last() {
        let seats = last.answers.iter().zip(&last.weights);
        let weights: Vec<f64> = seats
            .filter(|(a, _)| **a == item.answer)
            .map(|(_, w)| *w)
            .collect();
        item.team_confidence = weights.iter().sum::<f64>() / weights.len() as f64;
    }
    item.tie = script.id == "ward-004";
    if script.rounds.is_empty() {
        item.correct = Some(false);
        item.error = Some("the prompt has 9214 tokens and qwen3-4b holds 8192".into());
    }
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

fn brief(script: &Script, before: &RoundRecord) -> String {
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

fn scripted(
    script: &Script,
    run: u32,
    seat: usize,
    round: &RoundRecord,
    said: (&str, f64),
) -> CallRecord {
    let (answer, confidence) = said;
    let record = record(script, answer, confidence, round.round);
    let mut call = call(script.id, AGENTS[seat].0, round.round);
    call.run = run;
    call.backbone = AGENTS[seat].1.into();
    call.text = record.to_string();
    call.record = record;
    let options: Vec<String> = ('A'..)
        .zip(script.options)
        .map(|(letter, (text, ..))| format!("{letter}: {text}"))
        .collect();
    let asked = format!("{}\n\nOptions:\n{}", script.stem, options.join("\n"));
    call.messages[1].content = match round.round {
        0 => format!(
            "{asked}\n\nIMPORTANT: Follow this exact process:\n1. First, analyze EVERY option"
        ),
        number => format!(
            "Round {number} debate.\nCase: {asked}\n\nOther views:\n{}\n\nConsider the other doctors' perspectives:",
            round.brief
        ),
    };
    match (script.id, seat, round.round) {
        ("ward-006", 1, 0) => {
            call.parse = Parse::Fallback;
            call.finish_reason = FinishReason::Length;
            call.text = "<think>\nThe INR is high but he does not bleed.\n</think>\nI would go with option A because he has no".into();
            call.record =
                json!({"cot": [], "answer": "A", "confidence": 0.0, "option_analysis": []});
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
    let letters = || ('A'..='J').map(String::from).zip(script.options);
    let fit = |letter: &str| match usize::from(letter.as_bytes()[0]) {
        _ if letter == answer => 5,
        byte => 1 + (byte * 7 + answer.len() + round as usize) % 4,
    };
    let chosen = letters().find(|(letter, _)| letter == answer);
    let support = chosen.map_or(String::new(), |(_, (text, pro, _))| {
        format!("{text}: {pro}.")
    });
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

/// A round over `answers`; each weighs 0.5, and the most frequent wins, the first of equals.
pub fn round<const N: usize>(number: u32, answers: [&str; N]) -> RoundRecord {
    let count = |answer: &str| answers.iter().filter(|other| **other == answer).count();
    let most = answers
        .iter()
        .map(|answer| count(answer))
        .max()
        .unwrap_or(0);
    let aggregate = answers.iter().find(|answer| count(answer) == most);
    RoundRecord {
        round: number,
        labels: Vec::new(),
        answers: answers.map(String::from).to_vec(),
        confidences: vec![0.75; N],
        weights: vec![0.5; N],
        aggregate: aggregate.unwrap_or(&"").to_string(),
        brief: String::new(),
    }
}

pub fn item(id: &str, gold: Option<&str>, rounds: Vec<RoundRecord>, answer: &str) -> ItemRecord {
    ItemRecord {
        dataset: "ward".into(),
        run: 1,
        item: id.into(),
        gold: gold.map(String::from),
        correct: gold.map(|gold| gold == answer),
        answer: answer.into(),
        team_confidence: 0.5,
        rationale: "It fits the picture with the fewest objections.".into(),
        rounds_run: rounds.len().saturating_sub(1) as u32,
        calls: 3 * rounds.len() as u32,
        rounds,
        tie: false,
        error: None,
        prev: String::new(),
        hash: String::new(),
    }
}

pub fn call(item: &str, agent: &str, round: u32) -> CallRecord {
    let message = |role: &str, content: String| Message {
        role: role.into(),
        content,
    };
    let purpose = if round == 0 { "initial" } else { "debate" };
    CallRecord {
        seq: 0,
        dataset: "ward".into(),
        run: 1,
        item: item.into(),
        agent: agent.into(),
        round,
        purpose: purpose.into(),
        sample: 0,
        backbone: "gemma-3-4b-it".into(),
        messages: vec![
            message(
                "system",
                format!("You are {agent}, in the {purpose} stage. Return JSON with fields: …"),
            ),
            message(
                "user",
                "Is it so?\n\nOptions:\nA: yes\nB: no\n\nIMPORTANT: choose".into(),
            ),
        ],
        sampling: SamplingRecord {
            temperature: 0.6,
            top_k: Some(20),
            top_p: Some(0.95),
            min_p: None,
            repetition_penalty: None,
            max_tokens: 1024,
            constrained: true,
        },
        seed: 3_141_592_653_589_793,
        text: "{}".into(),
        tokens: Vec::new(),
        record: json!({"answer": "A", "confidence": 0.75}),
        parse: Parse::Ok,
        usage: Usage {
            prompt_tokens: 812,
            cached_tokens: 640,
            completion_tokens: 371,
            forced_tokens: 118,
        },
        finish_reason: FinishReason::Stop,
        elapsed_ms: 4210,
        prev: String::new(),
        hash: String::new(),
    }
}

fn plan() -> Plan {
    let member = |(agent, backbone): (&str, &str)| {
        json!({
            "agent": agent, "backbone": backbone, "path": format!("/models/{backbone}"),
            "repository": null, "revision": null,
            "weights_sha256": "4f1c9d0b7a6e5f83".repeat(4), "tokenizer_sha256": "0a1b2c3d4e5f6071".repeat(4),
            "template_sha256": "9e8d7c6b5a493827".repeat(4), "family": backbone.split('-').next(),
            "dtype": "bf16", "quantisation": "none", "thinking": false,
            "temperature": 0.5, "top_k": 20, "top_p": null, "min_p": null, "repetition_penalty": null,
            "eos_ids": [1], "context": 8192
        })
    };
    let plan = json!({
        "version": "0.1.0", "created_at": "2026-11-02T09:00:00Z", "system": "medmad", "synthetic": false,
        "seed": 7, "runs": 2, "free": false,
        "settings": {"t_max": 3, "confidence": true, "counterfactual": "paper"},
        "dataset": {"name": "ward", "format": "mcq", "path": "/data/ward.jsonl", "sha256": "77".repeat(32),
            "items": SCRIPTS.iter().map(|script| script.id).collect::<Vec<_>>()},
        "panel": AGENTS.map(member),
        "engine": {"device": "cpu", "device_kind": "x86_64 avx2", "threads": 8, "max_batch": 16, "max_in_flight": 8},
        "host": {"name": "bench-2", "system": "Linux", "cpu": "a CPU", "cores": 8, "memory_bytes": 34_359_738_368_u64}
    });
    serde_json::from_value(plan).unwrap()
}
