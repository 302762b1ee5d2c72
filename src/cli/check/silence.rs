//! Every system of the table where its models say nothing that can be read: no note is cleared, no vote cast, no point earned, no gate passed.

use super::pass;
use crate::analysis::notes::{Finding, Pairing, pairing, verdict};
use crate::data::{Item, ItemKind};
use crate::experiment::driver::refuse_silence;
use crate::panel::scripted::Script;
use crate::record::{AnswerLine, CallLine, FinishReason, Flag, GoldLine, ItemLine, NoteLine};
use crate::systems::scripted::{note, question, work};
use crate::systems::{SYSTEMS, SystemConfig};

/// What says nothing, and how it ends.
const SILENCES: [(&str, FinishReason); 12] = [
    ("", FinishReason::Stop),
    (" \n\t ", FinishReason::Stop),
    ("...", FinishReason::Stop),
    ("**", FinishReason::Stop),
    ("{}", FinishReason::Stop),
    ("```json\n```", FinishReason::Stop),
    ("I'm sorry, but I can't help with that.", FinishReason::Stop),
    // A filter of the endpoint, before and behind the first words.
    ("", FinishReason::Refusal),
    ("The answer is B. CORRECT", FinishReason::Refusal),
    // Cut before anything was said.
    ("", FinishReason::Length),
    ("<think>The note says that", FinishReason::Length),
    ("{\"", FinishReason::Length),
];

#[test]
fn silence_clears_no_note_earns_no_point_and_opens_no_gate() {
    walk(ItemKind::Notes);
}

#[test]
fn silence_casts_no_vote() {
    walk(ItemKind::Questions);
}

/// What calls the note right and names an error, in each form that a system asks for.
const BOTH: [&str; 6] = [
    "CORRECT\nSentence 1 is wrong: beta agonists should be given.",
    "<think>There is an error in sentence 1.</think>\nCORRECT\n<result>NAN</result>\n<correction>NAN</correction>\n<confidence>90</confidence>",
    "CORRECT\n<result>Beta blockers were given for the attack.</result>\n<correction>Beta agonists were given for the attack.</correction>",
    "Reasoning: so\nRationale: so\nError Flag: 0\nError Sentence ID: 1\nError sentence: NA\nIs correct: Yes\nCorrected Sentence: Beta agonists were given for the attack.",
    r#"{"observation": "o", "thought": "The drug is wrong.", "reasoning": "The drug is wrong.", "reason": "The drug is wrong.", "action": {"name": "final_mistake", "sentence": "NA", "correction": "NA"}, "is_error": false, "error": "no", "Error": "no", "Error Flag": "no", "sentence_id": -1, "incorrect_sentence_id": -1, "error_sentence": "NA", "correction": "NA", "corrected_sentence": "NA"}"#,
    r#"{"is_error": false, "error": "no", "Error": "no", "Error Flag": "no", "sentence_id": 1, "Error Sentence ID": 1, "incorrect_sentence_id": 1, "error_sentence": "Beta blockers were given for the attack.", "correction": "Beta agonists were given for the attack.", "corrected_sentence": "Beta agonists were given for the attack.", "Corrected Sentence": "Beta agonists were given for the attack.", "Revised Sentence": "Beta agonists were given for the attack."}"#,
];

#[test]
fn a_reply_that_names_an_error_passes_no_gate() {
    for entry in SYSTEMS.iter().filter(|entry| entry.takes == ItemKind::Notes) {
        for config in forms(entry.name) {
            // Thinking is no reply: MedGuards alone is asked for it, and reads it.
            let asked = |text: &&str| entry.name == "medguards" || !text.starts_with("<think>");
            for text in BOTH.into_iter().filter(asked) {
                let script = Script::new(move |_, _| text.to_owned());
                let (line, calls) = work(&config, &note().into(), script);
                let ItemLine::Note(line) = line else { panic!("a note") };
                let finding = Finding::of(&line, &calls);
                assert!(pass(&finding).is_err(), "{} {:?}: {text}", entry.name, config.table);
            }
        }
    }
}

/// What else a system may be told of how it reads, beside its defaults.
const SETTINGS: [(&str, &str); 2] = [("record", "short"), ("arbitration", "vote")];

/// A system as it stands, and with each of the settings that it has.
fn forms(name: &str) -> Vec<SystemConfig> {
    let plain = SystemConfig::parse::<&str>(name, &[]).unwrap();
    let has = |(key, _): &&(&str, &str)| plain.table.contains_key(*key);
    let told = SETTINGS
        .iter()
        .filter(has)
        .map(|(key, value)| SystemConfig::parse(name, &[format!("{key}={value}")]).unwrap());
    let told: Vec<SystemConfig> = told.collect();
    [plain].into_iter().chain(told).collect()
}

/// Every system that takes such items, under every silence.
fn walk(kind: ItemKind) {
    let mut forms: Vec<SystemConfig> = Vec::new();
    for entry in SYSTEMS.iter().filter(|entry| entry.takes == kind) {
        forms.extend(self::forms(entry.name));
    }
    assert!(forms.len() > SYSTEMS.iter().filter(|entry| entry.takes == kind).count());
    for config in forms {
        let entry = config.entry;
        let sound = crate::data::Note { gold: Some(GoldLine::default()), ..note() };
        let items: Vec<Item> = match entry.takes {
            ItemKind::Questions => vec![question(5).into()],
            ItemKind::Notes => vec![note().into(), sound.into()],
        };
        for (text, ending) in SILENCES {
            for item in &items {
                let script = Script::new(move |_, _| text.to_owned()).ending(ending);
                let (line, calls) = work(&config, item, script);
                let told = format!("{} {:?}: {text:?}, {ending:?}", entry.name, config.table);
                assert_eq!(line.correct(), Some(false), "{told}");
                assert!(refuse_silence([&line]).is_err(), "{told}");
                match &line {
                    ItemLine::Note(note) => says_nothing_of_a_note(note, &calls, &told),
                    ItemLine::Answer(answer) => answers_nothing(answer, &told),
                }
            }
        }
    }
}

fn says_nothing_of_a_note(note: &NoteLine, calls: &[CallLine], told: &str) {
    assert_eq!(note.flag, Flag::default(), "{told}");
    assert_eq!((note.sentence_id, &note.correction), (None, &None), "{told}");
    let detection = note.detection.iter().flat_map(|one| &one.flags);
    assert!(detection.flatten().next().is_none(), "{told}");
    let localisation = note.localisation.iter().flat_map(|one| &one.opinions);
    assert!(localisation.into_iter().all(String::is_empty), "{told}");
    let verdict = verdict(note);
    assert!(!(verdict.is_detected || verdict.is_located || verdict.is_located_exactly), "{told}");
    assert!(matches!(pairing(note), Pairing::Unpaired), "{told}");
    let finding = Finding::of(note, calls);
    assert_eq!(finding.has_error, None, "{told}");
    assert!(pass(&finding).is_err(), "{told}");
}

fn answers_nothing(answer: &AnswerLine, told: &str) {
    assert_eq!((answer.answer.as_str(), answer.team_confidence), ("", None), "{told}");
    assert_eq!(answer.stated_confidence(), None, "{told}");
    for round in &answer.rounds {
        assert!(round.answers.iter().all(String::is_empty), "{told}: {round:?}");
        assert_eq!(round.aggregate, "", "{told}");
    }
}

#[test]
fn a_run_with_one_result_among_silence_is_no_failure() {
    let silent = ItemLine::from(NoteLine::default());
    let said = ItemLine::from(NoteLine { flag: Some(false).into(), ..NoteLine::default() });
    assert!(refuse_silence([&silent, &silent]).is_err());
    assert!(refuse_silence([&silent, &said]).is_ok());
    assert!(refuse_silence([]).is_ok());
}
