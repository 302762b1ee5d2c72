//! Every call and log line of the systems that files describe, by their hashes: whoever changes a prompt, a seed or a record sees where.
//!
//! `calls.txt` has a line for each system under each of its settings, with the hash of all that it did under [`SCRIPTS`] scripts, with two
//! items each. `WARDROUND_CALLS_TO=FILE` writes what was hashed, so that two versions of it can be compared.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use super::exemplars::Exemplars;
use super::scripted::{exemplars, note, question};
use super::{SYSTEMS, SystemConfig, Task};
use crate::data::{Item, ItemKind, Note, Question};
use crate::digest::sha256;
use crate::panel::responder::{Begun, Responder};
use crate::panel::scripted::{Script, panel};
use crate::panel::{Call, Panel, PanelError};
use crate::prompts::PromptSet;
use crate::record::{Grammar, Message};

/// The sum of a folder of prompts in which there were others, too, when the hashes were made.
const PROMPTS: (&str, &str) =
    ("mediqa_corr", "dfe495cb69b9de76c727342588622982c6649ae33c11ca2b4ea03f1837c9f112");

/// Scripts of replies that each system is run with.
const SCRIPTS: u32 = 40;

/// What models say, of every form that a stage may ask for, and of none.
const SAID: [&str; 27] = [
    r#"{"reasoning": "r", "is_error": true, "error": "yes", "Error": "yes", "Error Flag": "yes", "sentence_id": 1, "Error Sentence ID": 1, "incorrect_sentence_id": 1, "error_sentence": "Beta blockers were given for the attack.", "correction": "Beta agonists were given for the attack.", "corrected_sentence": "Beta agonists were given for the attack."}"#,
    r#"{"reasoning": "r", "is_error": true, "error": "yes", "Error": "yes", "sentence_id": 2, "incorrect_sentence_id": 2, "correction": "She went to a ward.", "corrected_sentence": "She went to a ward.", "Corrected Sentence": "She went to a ward."}"#,
    r#"{"reasoning": "q", "is_error": true, "error": "yes", "Error": "yes", "sentence_id": 0, "incorrect_sentence_id": 0, "correction": "A 30-year-old man came with wheezing.", "corrected_sentence": "A 30-year-old man came with wheezing."}"#,
    r#"{"reasoning": "r", "is_error": false, "error": "no", "Error": "no", "sentence_id": -1, "incorrect_sentence_id": -1, "correction": "NA", "error_sentence": "NA", "corrected_sentence": "NA", "Revised Sentence": "NA"}"#,
    r#"{"error": "yes"}"#,
    r#"{"reasoning": "there", "sentence_id": 1}"#,
    r#"{"corrected_sentence": "Beta agonists were given for the attack."}"#,
    r#"{"entities": ["beta blockers", "wheezing"], "entity": "Beta blockers", "span": "Beta blockers", "keyword": "beta", "alternatives": ["Statins", "Antibiotics"]}"#,
    "Reasoning: so\nRationale: so\nError Flag: 1\nError Sentence ID: 1\nError sentence: Beta blockers were given for the attack.\nIs correct: No\nCorrected Sentence: Beta agonists were given for the attack.",
    "Error Flag: 1\nError Sentence ID: 1\nCorrected Sentence: Corticosteroids were given for the attack.",
    "Reasoning: so\nError Flag: 1\nError Sentence ID: 2\nCorrected Sentence: She went to a ward.",
    "Reasoning: fine\nRationale: fine\nError Flag: 0\nError Sentence ID: -1\nError sentence: NA\nIs correct: Yes\nCorrected Sentence: NA",
    "INCORRECT",
    "CORRECT",
    "1 Beta agonists were given for the attack.",
    "There is an error in sentence 1.",
    "hm",
    "",
    "I'm sorry, but I can't help with that.",
    "B",
    "C",
    " b.\n",
    "(C)",
    r#"{"Thought": "rash", "Answer": "B"}"#,
    r#"{"Thought": "fever", "Answer": " C: option C"}"#,
    "Thought: cough\nAnswer: A",
    "The answer is B.",
];

/// Settings that are tried where a system has them, beside its defaults.
const SETTINGS: [&str; 12] = [
    "shots=0",
    "shots=1",
    "shots=5",
    "choice=tfidf",
    "choice=random",
    "choice=fixed",
    "choice=sentences",
    "temperatures=model",
    "samples=1",
    "samples=4",
    "max_tokens=77",
    "record_chars=100",
];

/// Settings that systems had when their hashes were made, with what is left of their choices, beside `reask`, which every one had.
const GONE: [(&str, &str, &str); 16] = [
    ("zero-shot", "examples", "\"by-options\""),
    ("few-shot", "examples", "\"by-options\""),
    ("cot", "examples", "\"by-options\""),
    ("self-consistency", "examples", "\"by-options\""),
    ("cot-sc", "examples", "\"by-options\""),
    ("zero-shot", "mab_compat", "\"off\""),
    ("few-shot", "mab_compat", "\"off\""),
    ("cot", "mab_compat", "\"off\""),
    ("self-consistency", "mab_compat", "\"off\""),
    ("cot-sc", "mab_compat", "\"off\""),
    ("knowlab-reason", "members", "1"),
    ("medifact", "members", "1"),
    ("medprompt", "members", "1"),
    ("base-llm", "release_compat", "\"off\""),
    ("base-llm", "prompt", "1"),
    ("em-mixers", "evidence", "\"off\""),
];

/// Writes down what is asked, and has a script answer.
struct Recording {
    script: Arc<Script>,
    seen: Mutex<String>,
    /// The first call's member and messages.
    first: Mutex<Option<Opening>>,
}

/// As it was written when the hashes were made.
#[derive(Debug)]
#[expect(dead_code, reason = "it is printed")]
struct Opening {
    member: usize,
    messages: Vec<Message>,
}

impl Responder for Recording {
    fn name(&self) -> String {
        "scripted".to_owned()
    }

    fn begin(self: Arc<Self>, call: &Call, panel: &Panel) -> Result<Begun, PanelError> {
        let Call { member, key, stage, messages, temperature, max_tokens, grammar, .. } = call;
        let seed = panel.seed(call);
        let is_json = matches!(grammar, Some(Grammar::JsonSchema(_)));
        let told = format!(
            "{member} {key:?} {stage:?} {temperature:?} {max_tokens:?} {is_json} {seed}\n{messages:#?}\n{grammar:?}\n"
        );
        self.seen.lock().unwrap().push_str(&told);
        let opening = || Opening { member: *member, messages: messages.clone() };
        self.first.lock().unwrap().get_or_insert_with(opening);
        self.script.clone().begin(call, panel)
    }
}

/// A note without an error.
fn sound_note() -> Note {
    let sentences = [
        "A man of 70 fell.",
        "His hip was broken.",
        "It was mended with a nail of 40 cm.",
        "Penicillin was given for syphilis.",
    ];
    let sentences: Vec<String> = sentences.map(str::to_owned).to_vec();
    Note { id: "ms-2".into(), text: sentences.join(" "), sentences, gold: None, ..note() }
}

/// A question of PubMedQA.
fn yes_or_no() -> Question {
    let mut question = question(3);
    question.id = "q2".into();
    for (option, text) in question.options.iter_mut().zip(["yes", "no", "maybe"]) {
        option.text = text.to_owned();
    }
    question
}

/// Exemplars with all that may be given beside them.
fn given() -> Arc<Exemplars> {
    let notes: Vec<Note> = exemplars().notes.iter().map(|one| one.note.clone()).collect();
    let reasons = BTreeMap::from([("ms-train-4".to_owned(), "Beta blockers close.".to_owned())]);
    Arc::new(Exemplars::new(notes, &reasons))
}

/// What a system does with an item where replies are drawn from [`SAID`].
fn done(config: &SystemConfig, item: &Item, exemplars: &Arc<Exemplars>, number: u32) -> String {
    let agents: Vec<String> = config.slots().into_iter().map(|slot| slot.agent).collect();
    let id = item.id().to_owned();
    let script = Script::new(move |key, _| {
        let drawn = sha256(format!("{number} {id} {} {} {}", key.agent, key.purpose, key.sample));
        SAID[usize::from_str_radix(&drawn[..8], 16).unwrap() % SAID.len()].to_owned()
    });
    let (seen, first) = (Mutex::default(), Mutex::default());
    let recording = Arc::new(Recording { script: Arc::new(script), seen, first });
    let silent = Script::new(|_, _| String::new());
    let (mut panel, calls) = panel(&agents, silent);
    for member in &mut panel.members {
        member.source = recording.clone();
    }
    let system = config.build(&PromptSet::embedded(), exemplars).unwrap();
    let line = system.answer(&Task { panel: &panel, dataset: "d", item, run: 1 }).unwrap();
    let mut text = std::mem::take(&mut *recording.seen.lock().unwrap());
    for call in calls.try_iter() {
        writeln!(text, "{}", serde_json::to_string(&call).unwrap()).unwrap();
    }
    writeln!(text, "{}", serde_json::to_string(&line).unwrap()).unwrap();
    // As a list, which it was when the hashes were made.
    writeln!(text, "{:?}", recording.first.lock().unwrap().as_ref().map(|one| [one])).unwrap();
    writeln!(text, "{:?}", system.longest_prompt(item, 100)).unwrap();
    text
}

#[test]
fn files_make_the_calls_that_programs_made() {
    let exemplars = given();
    let (mut hashes, mut all) = (String::new(), String::new());
    for entry in SYSTEMS.iter().filter(|entry| entry.file.is_some()) {
        let plain = SystemConfig::parse::<&str>(entry.name, &[]).unwrap();
        let has = |pair: &&&str| plain.table.contains_key(pair.split('=').next().unwrap());
        // Of EM_Mixers the first stage alone was asked under one setting, and of fewer scripts; knowlab's defaults ranked by vectors.
        let is_first_stage = entry.name == "em-mixers";
        let is_ranked =
            |pair: &&&str| !entry.name.starts_with("knowlab") || pair.starts_with("choice");
        let tried = SETTINGS.iter().filter(has).filter(is_ranked).filter(|_| !is_first_stage);
        let defaults = (!entry.name.starts_with("knowlab")).then(Vec::new);
        for pairs in defaults.into_iter().chain(tried.map(|pair| vec![*pair])) {
            let config = SystemConfig::parse(entry.name, &pairs).unwrap();
            let gone = GONE.into_iter().filter(|(name, ..)| *name == entry.name);
            let gone: toml::Table =
                gone.map(|(_, key, value)| (key.to_owned(), value.parse().unwrap())).collect();
            let every = ("reask".to_owned(), toml::Value::from("off"));
            let table = config.table.clone().into_iter().chain(gone).chain([every]);
            let table: toml::Table = table.collect();
            let prompts = match config.entry.prompts == PROMPTS.0 {
                true => PROMPTS.1.to_owned(),
                false => config.prompts_sha256(&PromptSet::embedded()),
            };
            let mut text = format!(
                "{} {:?} {:?} {} {} {} {:?} {:?} {} {} {}\n",
                config.entry.plan_name,
                config.slots(),
                table,
                config.max_calls(),
                config.default_models(),
                prompts,
                entry.wording.to_string(),
                entry.examples,
                entry.exemplars,
                entry.takes,
                config.models(),
            );
            let items: [Item; 2] = match entry.takes {
                ItemKind::Notes => [note().into(), sound_note().into()],
                ItemKind::Questions => [question(5).into(), yes_or_no().into()],
            };
            let is_whole = pairs.is_empty() && !is_first_stage;
            let scripts = if is_whole { SCRIPTS } else { SCRIPTS / 4 };
            for number in 0..scripts {
                for item in &items {
                    text += &done(&config, item, &exemplars, number);
                }
            }
            let pair = pairs.first().copied().unwrap_or("defaults");
            writeln!(hashes, "{} {pair} {}", entry.name, &sha256(&text)[..16]).unwrap();
            all += &format!("=== {} {pair}\n{text}", entry.name);
        }
    }
    if let Ok(path) = std::env::var("WARDROUND_CALLS_TO") {
        fs_err::write(format!("{path}.hashes"), &hashes).unwrap();
        fs_err::write(path, all).unwrap();
    }
    let other = |(old, new): &(&str, &str)| old != new;
    let golden = include_str!("calls.txt");
    let others: Vec<_> = golden.lines().zip(hashes.lines()).filter(other).collect();
    assert!(others.is_empty(), "{others:#?}");
    assert_eq!(golden.lines().count(), hashes.lines().count());
}
