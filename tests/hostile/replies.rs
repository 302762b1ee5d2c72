//! What models say, as every system reads it.

use wardround::data::{Choice, Note};
use wardround::record::{FinishReason, Language, Parse};
use wardround::systems::file::StageEntry;
use wardround::systems::reading::confidence::converted;
use wardround::systems::reading::reply::{Explained, Fields};
use wardround::systems::reading::{answer, json, letter, record, said, verdict};
use wardround::systems::{healthcareagent, mdagents, medagents, medguards, medmad, medreflex};

use super::damage::{damaged_text, withstands};

const REPLIES: &[&str] = &[
    r#"{"answer": "B", "rationale": "Because of \"that\".", "confidence": 0.8, "counterfactual": "If not, C.", "critique": []}"#,
    "<think>Let me see {\"answer\": \"A\"}</think>\n```json\n{\"answer\": \"C\", \"confidence\": 1}\n```\nThat is all.",
    "{\"agents\": [{\"role\": \"Cardiologist\", \"expertise\": \"hearts\", \"hierarchy\": \"Independent\"}], \"teams\": [{\"goal\": \"x\", \"members\": []}]}",
    "Answer: (B) since it is so. Confidence: 85%",
    "Error Flag: 1\nError Sentence ID: 7\nCorrected Sentence: He rests.",
    "<thought>It is wrong.</thought><flag>1</flag><sentence>7</sentence><confidence>0.9</confidence><correction>He rests.</correction>",
    "1. Cardiologist - hearts - Hierarchy: Independent\n2. Nurse - care - Hierarchy: Cardiologist > Nurse",
    "Group 1 - Initial Assessment Team\nMember 1: Cardiologist (Lead) - hearts\nMember 2: Nurse - care",
    "Medical Field: Cardiology | Neurology | Surgery",
    "**Plan:** INQUIRY\n- Ask: since when?\n- Ask: how much?",
    r#"{"observation": "o", "thought": "t", "action": "final_mistake(\"Fever (for) two days.\", \"Fever for \\\"ten\\\" days.\", \"1.2\")"}"#,
    r#"{"validity_reasoning": "r", "validity_score": 4.5, "final_reasoning": "r", "final_score": "3/5"}"#,
    r#"{"is_error": true, "reasoning": "r", "sentence_id": 1, "error_sentence": "Malaria", "corrected_sentence": "Quinine"}"#,
];

fn options() -> Vec<Choice> {
    let texts = ["Aspirin", "Vitamin B", "Cortisone", "A diet", "He rests"];
    let choice = |(letter, text): (char, &str)| Choice { letter, text: text.to_owned() };
    ('A'..='E').zip(texts).map(choice).collect()
}

fn reads(name: &str, read: impl Fn(&str, FinishReason)) {
    withstands(name, damaged_text(REPLIES), |text| {
        read(&text, FinishReason::Stop);
        read(&text, FinishReason::Length);
    });
}

#[test]
fn of_every_system_with_fields() {
    let options = options();
    reads("fields of a reply", |text, finish_reason| {
        let reply = Fields::read(text, finish_reason, "answer");
        let read = reply.confidence();
        assert!((0.0..=1.0).contains(&read), "{read}");
        let _ = (reply.prose("rationale"), reply.answer(&options));
        let _ = (said(text), record::prose(text), converted(text));
        let _ = json::objects(text);
    });
}

#[test]
fn of_medmads_doctors() {
    let (options, settings) = (options(), medmad::settings::Settings::default());
    reads("MED-MAD's records", |text, finish_reason| {
        let _ = medmad::record::parse(text, finish_reason, &options, &settings);
    });
}

#[test]
fn of_medguards_agents() {
    reads("MedGuards' tags", |text, _| {
        let _ = medguards::parse::flag(text);
        let _ = medguards::parse::located(text);
        let _ = medguards::parse::correction(text, "correction");
        if let Some(confidence) = medguards::parse::confidence(text) {
            assert!(confidence.is_finite());
        }
    });
}

#[test]
fn of_healthcareagents_stages() {
    let options = options();
    reads("HealthcareAgent's stages", |text, finish_reason| {
        let _ = healthcareagent::parse::plan(text, finish_reason);
        let _ = healthcareagent::parse::follow_ups(text, finish_reason);
        let _ = healthcareagent::parse::critique(text, finish_reason, "It is B.");
        let _ = Explained::of(&Fields::read(text, finish_reason, "answer"), &options);
    });
}

fn note() -> Note {
    let sentences = ["Fever for two days.", "Malaria was treated with aspirin."];
    Note {
        id: "n".to_owned(),
        text: sentences.join(" "),
        sentences: sentences.map(str::to_owned).to_vec(),
        language: Language::English,
        gold: None,
    }
}

#[test]
fn of_steps_reviews_and_parsers() {
    let note = note();
    reads("MedReAct'N'MedReFlex's replies", |text, finish_reason| {
        let step = medreflex::step::read(text, finish_reason).0;
        let score = medreflex::review::read(text, finish_reason).0.final_score();
        assert!(score.is_none_or(|hundredths| (100..=500).contains(&hundredths)));
        let answer = medreflex::answer::read(text, finish_reason, &note, step.action.as_ref()).0;
        assert!(answer.sentence_id.is_none_or(|id| id < 2));
    });
}

#[test]
fn of_systems_with_exemplars() {
    const FIELDS: &str = r#"name = "answer"
user = "{note}"
fields = [
    { key = "Reasoning", is = "reason" },
    { key = "Error Flag", is = "flag", words = ["0", "1"] },
    { key = "Error Sentence ID", is = "sentence-id" },
    { key = "Error Sentence", is = "sentence" },
    { key = "Corrected Sentence", is = "correction" },
]"#;
    let note = note();
    for style in ["json", "lines"] {
        let stage: StageEntry = toml::from_str(&format!("{FIELDS}\nstyle = \"{style}\"")).unwrap();
        reads("MEDIQA-CORR's answers", |text, finish_reason| {
            let answer = stage.read_fields(text, finish_reason, &note).0;
            assert!(answer.sentence_id.is_none_or(|id| id < 2));
        });
    }
}

#[test]
fn of_moderators_and_specialists() {
    reads("MDAgents' and MedAgents' recruits", |text, finish_reason| {
        let _ = mdagents::recruits::read_experts(&Fields::read(text, finish_reason, "experts"));
        let _ = mdagents::recruits::read_teams(&Fields::read(text, finish_reason, "teams"));
        let _ = medagents::read_specialties(text, finish_reason);
    });
}

#[test]
fn letters_in_free_text() {
    let options = options();
    reads("letters in free text", |text, _| {
        let _ = answer::normalise_answer(text);
        let _ = answer::leading_letter(text);
        let _ =
            (answer::of_text(text, &options), answer::of_field(text, text, &options, Parse::Ok));
        let _ = (letter::letter(text, &options), verdict::verdict(text));
    });
}
