//! Records of a run on notes for tests: seven notes of our own, two runs, with every turn that a check can take.

use serde_json::{Value, json};

use crate::data::{Item, Note};
use crate::experiment::contents::Contents;
use crate::experiment::plan::Plan;
use crate::record::Language;
use crate::record::*;
use crate::report::tests::fixtures;

pub const ARABIC: &str = "راجع المريض العيادة بسبب الحمى. أعطي المريض الأسبرين يوميا.";
pub const CHINESE: &str = "患者发热三天。诊断为病毒性肺炎。";
const ENGLISH: &str = "He came in with a fever.\nHe was given aspirin daily.\n\nHe was sent home.";

/// A plan of MedGuards on notes of MEDEC, two runs.
pub fn plan() -> Plan {
    let mut plan = fixtures::plan();
    plan.system = "medguards".into();
    plan.dataset.name = "medec-ms-test".into();
    plan.dataset.format = "medec".into();
    plan.dataset.items = NOTES.map(String::from).to_vec();
    let settings = json!({"agents": 7, "arbitration": "icl", "localisation": "soft", "aligner": "sequence_matcher",
        "det_reasoning": "on", "det_confidence": "on", "loc_reasoning": "on", "loc_confidence": "on", "release_compat": "off"});
    plan.settings = toml::Table::try_from(settings).unwrap();
    for (member, agent) in plan.panel.iter_mut().zip(["det1", "det2", "det3"]) {
        member.agent = agent.into();
    }
    plan
}

/// A note on which nothing is said yet.
pub fn note(id: &str) -> NoteLine {
    NoteLine {
        dataset: "medec-ms-test".into(),
        run: 1,
        item: id.into(),
        language: Language::English,
        flag: None.into(),
        ..NoteLine::default()
    }
}

/// An error in this sentence, or none.
pub fn gold(sentence_id: Option<usize>) -> GoldLine {
    let has = |text: &str| sentence_id.map(|_| text.to_owned());
    GoldLine {
        flag: sentence_id.is_some(),
        sentence_id,
        sentence: has("He was given aspirin daily."),
        correction: has("He was given paracetamol daily."),
        kind: has("pharmacotherapy"),
        keywords: Vec::new(),
    }
}

pub fn detected(source: SettledBy, flags: &[Option<bool>]) -> DetectionLine {
    let agents = (1..=flags.len()).map(|number| format!("det{number}"));
    DetectionLine {
        source,
        agents: agents.collect(),
        flags: flags.to_vec(),
        confidences: (0..flags.len()).map(|agent| Some(0.86 - 0.05 * agent as f64)).collect(),
    }
}

pub fn located(source: SettledBy, sentence_ids: &[Option<usize>]) -> LocalisationLine {
    let agents = (1..=sentence_ids.len()).map(|number| format!("loc{number}"));
    let opinion = |id: &Option<usize>| id.map_or("NAN".to_owned(), |id| format!("Words of {id}."));
    LocalisationLine {
        source,
        agents: agents.collect(),
        opinions: sentence_ids.iter().map(opinion).collect(),
        sentence_ids: sentence_ids.to_vec(),
        confidences: vec![Some(0.9); sentence_ids.len()],
    }
}

pub fn called(item: &str, agent: &str, purpose: &str) -> CallLine {
    let mut call = fixtures::call(item, agent, 0);
    call.dataset = "medec-ms-test".into();
    call.purpose = purpose.into();
    call.text = "<think>So it is.</think>\n<confidence>86</confidence>".into();
    call.record = Reply::of(json!({"thought": "So it is.", "confidence": 0.86}));
    call
}

/// As a run directory would give them, with the texts of the notes.
pub fn contents(plan: Plan, notes: Vec<NoteLine>, calls: Vec<CallLine>) -> Contents {
    let texts = notes.iter().map(|note| {
        let text = text(&note.item);
        Item::Note(Note {
            id: note.item.clone(),
            language: note.language,
            text: text.into(),
            sentences: sentences(text),
            gold: note.gold.clone(),
        })
    });
    let texts = texts.collect();
    let items = notes.into_iter().map(ItemLine::from).collect();
    fixtures::contents(plan, texts, items, calls)
}

fn text(id: &str) -> &'static str {
    match id {
        "ms-test-arabic" => ARABIC,
        "ms-test-chinese" => CHINESE,
        _ => ENGLISH,
    }
}

fn sentences(text: &str) -> Vec<String> {
    let sentences = text.split_inclusive(['.', '。']);
    sentences.map(|one| one.trim().to_owned()).collect()
}

const NOTES: [&str; 7] = [
    "ms-test-found",
    "ms-test-missed",
    "ms-test-alarm",
    "ms-test-elsewhere",
    "ms-test-arabic",
    "ms-test-chinese",
    "ms-test-errored",
];

/// Found and placed by agreement, missed, a false alarm by arbitration, found in the wrong sentence, Arabic, Chinese that cannot be
/// read, errored; in the second run the missed one is found.
pub fn records() -> Contents {
    let (mut notes, mut calls) = (Vec::new(), Vec::new());
    for run in 1..=2 {
        for id in NOTES {
            let (mut note, mut made) = checked(id, run);
            note.run = run;
            note.calls = made.len() as u32;
            for call in &mut made {
                call.run = run;
                call.seq = calls.len() as u64 + 1;
                calls.push(call.clone());
            }
            notes.push(note);
        }
    }
    contents(plan(), notes, calls)
}

fn checked(id: &str, run: u32) -> (NoteLine, Vec<CallLine>) {
    let mut note = note(id);
    let gold_sentence = match id {
        "ms-test-arabic" => {
            Some(["أعطي المريض الأسبرين يوميا.", "أعطي المريض الباراسيتامول يوميا."])
        }
        "ms-test-chinese" => Some(["诊断为病毒性肺炎。", "诊断为细菌性肺炎。"]),
        _ => None,
    };
    note.language = match id {
        "ms-test-arabic" => Language::Arabic,
        "ms-test-chinese" => Language::Chinese,
        _ => Language::English,
    };
    let has_error = id != "ms-test-alarm";
    let mut wanted = gold(has_error.then_some(1));
    if let Some([sentence, correction]) = gold_sentence {
        wanted.sentence = Some(sentence.into());
        wanted.correction = Some(correction.into());
    }
    note.gold = Some(wanted);
    let find = |note: &mut NoteLine,
                source: SettledBy,
                sentence_id: usize,
                sentence: &str,
                correction: &str| {
        note.flag = Some(true).into();
        note.localisation = Some(located(source, &[Some(sentence_id), Some(sentence_id)]));
        note.sentence_id = Some(sentence_id);
        note.exact_sentence_id = Some(sentence_id);
        note.sentence = sentence.into();
        note.correction = Some(correction.into());
        note.confidence = Some(0.8);
    };
    let agreed = |flag: bool| detected(SettledBy::Agreement, &[Some(flag), Some(flag)]);
    match (id, run) {
        ("ms-test-found", _) | ("ms-test-missed", 2) => {
            note.detection = Some(agreed(true));
            find(
                &mut note,
                SettledBy::Agreement,
                1,
                "He was given aspirin daily.",
                "He was given ibuprofen daily.",
            );
        }
        ("ms-test-missed", _) => {
            note.flag = Some(false).into();
            note.detection = Some(agreed(false));
        }
        ("ms-test-alarm", _) => {
            note.detection =
                Some(detected(SettledBy::Arbitration, &[Some(true), Some(false), Some(true)]));
            find(&mut note, SettledBy::Agreement, 2, "He was sent home.", "He was kept in.");
        }
        ("ms-test-elsewhere", _) => {
            note.detection = Some(agreed(true));
            find(
                &mut note,
                SettledBy::Arbitration,
                0,
                "He came in with a fever.",
                "He came in with a cough.",
            );
            note.localisation = Some(located(SettledBy::Arbitration, &[Some(1), Some(0), Some(0)]));
        }
        ("ms-test-arabic", _) => {
            note.detection = Some(agreed(true));
            find(
                &mut note,
                SettledBy::Agreement,
                1,
                "أعطي المريض الأسبرين يوميا.",
                "أعطي المريض الإيبوبروفين يوميا.",
            );
        }
        ("ms-test-chinese", _) => {
            note.detection = Some(detected(SettledBy::Arbitration, &[Some(true), None, None]));
        }
        _ => note.error = Some("the prompt has 9214 tokens and qwen3-4b holds 8192".into()),
    }
    let calls = calls(&note, text(id));
    (note, calls)
}

/// What every agent gives as its reasons.
const THOUGHT: &str = "The dose and the drug were weighed against the fever.";

/// The calls that the note's line tells of.
fn calls(note: &NoteLine, text: &str) -> Vec<CallLine> {
    let asked = format!("Instructions that no case shows.\n\n{text}");
    let mut calls = Vec::new();
    let mut call = |agent: &str, purpose: &str, record: Value, text: String| {
        let mut call = called(&note.item, agent, purpose);
        call.messages = vec![Message::new("user", asked.clone())];
        if record.get("flag") == Some(&Value::Null) {
            call.parse = Parse::Unread;
        }
        let mut record = record;
        record["thought"] = THOUGHT.into();
        call.record = Reply::of(record);
        call.text = text;
        calls.push(call);
    };
    let said =
        |words: &str| format!("<think>{THOUGHT}</think>\n{words}\n<confidence>86</confidence>");
    for (agent, flag) in note.detection.iter().flat_map(|one| one.agents.iter().zip(&one.flags)) {
        let label = match flag {
            Some(true) => "INCORRECT",
            Some(false) => "CORRECT",
            None => "I cannot say.",
        };
        call(agent, "detection", json!({"flag": flag, "confidence": 0.86}), said(label));
    }
    for (agent, opinion) in
        note.localisation.iter().flat_map(|one| one.agents.iter().zip(&one.opinions))
    {
        call(agent, "localisation", json!({"result": opinion, "confidence": 0.9}), said(opinion));
    }
    if let Some(correction) = &note.correction {
        call(
            "corr1",
            "correction",
            json!({"correction": correction, "confidence": 0.8}),
            said(correction),
        );
    }
    calls
}
