//! What models say, as every system reads it.

use wardround::record::FinishReason;
use wardround::systems::reply::Reply;
use wardround::systems::{
    answer, healthcareagent, json_object, mdagents, medagents, medguards, medmad,
};

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
];

fn reads(name: &str, read: impl Fn(&str, FinishReason)) {
    withstands(name, damaged_text(REPLIES), |text| {
        read(&text, FinishReason::Stop);
        read(&text, FinishReason::Length);
    });
}

#[test]
fn of_every_system_with_fields() {
    reads("fields of a reply", |text, finish_reason| {
        let reply = Reply::read(text, finish_reason, "answer");
        let confidence = reply.confidence();
        assert!((0.0..=1.0).contains(&confidence), "{confidence}");
        let _ = (reply.prose("rationale"), reply.answer(), reply.given());
        let _ = json_object::without_thinking(text);
    });
}

#[test]
fn of_medmads_doctors() {
    reads("MED-MAD's records", |text, finish_reason| {
        let _ = medmad::record::parse(text, finish_reason);
    });
}

#[test]
fn of_medguards_agents() {
    reads("MedGuards' tags", |text, _| {
        for release_compat in [false, true] {
            let _ = medguards::parse::flag(text, release_compat);
            let _ = medguards::parse::located(text, release_compat);
            let _ = medguards::parse::correction(text, "correction", release_compat);
        }
        if let Some(confidence) = medguards::parse::confidence(text) {
            assert!(confidence.is_finite());
        }
    });
}

#[test]
fn of_healthcareagents_stages() {
    reads("HealthcareAgent's stages", |text, finish_reason| {
        let _ = healthcareagent::parse::plan(text, finish_reason);
        let _ = healthcareagent::parse::follow_ups(text, finish_reason);
        let _ = healthcareagent::parse::critique(text, finish_reason);
        let _ = healthcareagent::parse::conclusion(text, finish_reason);
    });
}

#[test]
fn of_moderators_and_specialists() {
    reads("MDAgents' and MedAgents' recruits", |text, finish_reason| {
        let _ = mdagents::recruits::read_experts(text, finish_reason);
        let _ = mdagents::recruits::read_teams(text, finish_reason);
        let _ = medagents::harness::read_specialties(text, finish_reason);
        let _ = medagents::texts::read_domains(text, finish_reason);
        let _ = medagents::texts::read_vote(text, finish_reason);
        let _ = medagents::texts::read_answer(text, finish_reason);
    });
}

#[test]
fn letters_in_free_text() {
    reads("letters in free text", |text, _| {
        let _ = answer::normalise_answer(text);
        let _ = answer::leading_letter(text);
        let _ = answer::answer_field(text, "answer");
        let _ = answer::harness_letter(text, 'A'..='E');
    });
}
