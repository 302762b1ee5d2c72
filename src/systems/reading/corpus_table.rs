//! `tests/replies/stages.jsonl`: replies at every stage of every system, written before anybody saw how they are read; each is read as its
//! stage reads it.

use serde_json::{Map, Value, json};

use super::answer::of_text;
use super::corpus::{confidence, finish_reason, note, replies, stage_of, unless_echo};
use super::plain;
use super::reply::Fields;
use super::words::consents;
use crate::data::{Choice, Note};
use crate::record::{FinishReason, Language, Parse};
use crate::systems::file::StageEntry;
use crate::systems::medguards::parse::{Located, Wanted, place, read as read_tags};
use crate::systems::medreflex::{self, step::Action};
use crate::systems::scripted::settings;
use crate::systems::table::SystemEntry;
use crate::systems::{base_llm, healthcareagent, mdagents, medagents, medmad};
use crate::text::align;

/// A reply, and what it was asked about.
struct Asked<'a> {
    text: &'a str,
    finish: FinishReason,
    options: Vec<Choice>,
    note: Note,
}

impl<'a> Asked<'a> {
    fn of(reply: &Value, text: &'a str) -> Asked<'a> {
        let options = reply["options"].as_object().cloned().unwrap_or_default();
        let options = options.iter().map(|(letter, text)| Choice {
            letter: letter.chars().next().unwrap(),
            text: text.as_str().unwrap().to_owned(),
        });
        Asked {
            text,
            finish: finish_reason(reply),
            options: options.collect(),
            note: note(&reply["sentences"]),
        }
    }

    fn reply(&self, key: &str) -> Fields {
        Fields::read(self.text, self.finish, key)
    }

    fn letter(&self, letter: &str) -> Value {
        let has = |one: &Choice| letter == one.letter.to_string();
        if self.options.iter().any(has) { json!(letter) } else { Value::Null }
    }

    /// A fraction; 0 stands for none.
    fn share(&self, share: f64) -> Value {
        if share == 0.0 { Value::Null } else { json!((share * 100.0).round() / 100.0) }
    }

    fn single(&self, system: &str) -> Value {
        let (reading, _) = stage_of(system).read_answer(self.text, self.finish, &self.options);
        json!({"answer": self.letter(&reading.answer)})
    }

    /// As the form of a stage of a file.
    fn form(&self, stage: &StageEntry) -> Value {
        let (read, _) = stage.read_fields(self.text, self.finish, &self.note);
        judgement(read.flag, read.sentence_id, read.correction.as_deref())
    }

    fn tags(&self, wanted: Wanted, is_numbered: bool) -> Value {
        let (said, parse) = read_tags(wanted, self.text);
        let located = match (&said.located, is_numbered) {
            (Located::Nothing, _) => json!(-1),
            (Located::Said(words), true) => json!(place(words, &self.note)),
            (Located::Said(words), false) => {
                let sentences = &self.note.sentences;
                let found = align(sentences, words, Language::English);
                let found = found.filter(|found| found.ratio >= 0.5).map(|found| found.index);
                json!(super::correction::quoted(sentences, words).or(found))
            }
            (Located::Malformed, _) => Value::Null,
        };
        let mut found = Map::new();
        found.insert("confidence".to_owned(), json!(said.confidence));
        match wanted {
            Wanted::Label => drop(found.insert("flag".to_owned(), json!(said.flag))),
            Wanted::Correction => {}
            Wanted::Everything => {
                found.insert("flag".to_owned(), json!(said.flag));
                found.insert("sentence".to_owned(), located);
            }
            _ => drop(found.insert("sentence".to_owned(), located)),
        }
        if !matches!(wanted, Wanted::Label | Wanted::Place) && parse != Parse::Unread {
            // Words without tags must be like a sentence of the note, as the protocol has it.
            let is_like = |text: &String| {
                let found = align(&self.note.sentences, text, Language::English);
                self.text.contains("</") || found.is_some_and(|found| found.ratio >= 0.4)
            };
            let correction = said.correction.filter(|_| !super::refuses(self.text)).filter(is_like);
            found.insert("correction".to_owned(), json!(correction.map(|text| plain(&text))));
        }
        Value::Object(found)
    }
}

fn judgement(flag: Option<bool>, sentence: Option<usize>, correction: Option<&str>) -> Value {
    json!({"flag": flag, "sentence": sentence, "correction": correction.map(plain)})
}

/// A stage that a file describes.
fn of_file(system: &str, stage: &str) -> &'static StageEntry {
    let file = SystemEntry::named(system).unwrap().file.unwrap();
    file.stages.iter().find(|one| one.name == stage).unwrap()
}

/// A stage of somebody's file, by its keys.
fn of_keys(keys: &str) -> StageEntry {
    toml::from_str(&format!("name = \"s\"\nuser = \"{{note}}\"\n{keys}")).unwrap()
}

/// Forms of a note's answer that no built-in file has.
const FLAG_FIRST: &str = r#"fields = [
    { key = "reasoning", is = "reason" },
    { key = "error", is = "flag", words = ["no", "yes"] },
    { key = "sentence_id", is = "sentence-id" },
    { key = "corrected_sentence", is = "correction" },
]"#;
const QUOTING: &str = r#"style = "lines"
fields = [
    { key = "Rationale", is = "reason" },
    { key = "Error sentence", is = "sentence" },
    { key = "Corrected sentence", is = "correction" },
]"#;
const WITHOUT_A_FLAG: &str = r#"fields = [
    { key = "reason", is = "reason" },
    { key = "incorrect_sentence_id", is = "sentence-id" },
    { key = "correction", is = "correction" },
]"#;
const FLAG_ALONE: &str = r#"fields = [
    { key = "reasoning", is = "reason" },
    { key = "error", is = "flag", words = ["no", "yes"] },
]"#;
const NUMBER_ALONE: &str = r#"fields = [
    { key = "reasoning", is = "reason" },
    { key = "sentence_id", is = "sentence-id" },
]"#;

const IS_CORRECT: &str = r#"style = "lines"
fields = [
    { key = "Reasoning", is = "reason" },
    { key = "Is correct", is = "flag", words = ["Yes", "No"] },
    { key = "Corrected sentence", is = "correction" },
]"#;
const CHECK: &str = r#"fields = [
    { key = "Error Flag", is = "flag", words = ["no", "yes"] },
    { key = "Revised Sentence", is = "correction" },
]"#;

/// A list's words alone, so that marks around them do not count.
fn list(words: Vec<String>, parse: Parse) -> Value {
    match parse {
        Parse::Unread => json!({"list": null}),
        _ => json!({"list": words.iter().map(|word| plain(word)).collect::<Vec<_>>()}),
    }
}

fn one(word: Option<String>) -> Value {
    json!({"word": word})
}

/// What a reply says to who asked for it at this stage.
fn read(stage: &str, asked: &Asked<'_>) -> Value {
    let Asked { text, finish, options, note } = asked;
    let (text, finish) = (*text, *finish);
    let answered = |letter: &str| json!({"answer": asked.letter(letter)});
    match stage {
        "letter" => asked.single("zero-shot"),
        "thought" => asked.single("cot"),
        "debate" => {
            let (record, _) = medmad::record::parse(text, finish, options, &settings(&[]));
            json!({"answer": asked.letter(&record.answer), "confidence": asked.share(confidence(text, finish))})
        }
        "round-table" => {
            let reply = asked.reply("answer");
            let answer = asked.letter(&reply.answer(options).0);
            json!({"answer": answer, "confidence": asked.share(confidence(text, finish))})
        }
        "conclusion" => answered(&asked.reply("answer").answer(options).0),
        "opinion" => answered(&asked.reply("answer").answer(options).0),
        "option" => answered(&of_text(super::without_thinking(text).trim(), options).0),
        "review" => {
            let reply = asked.reply("agree");
            let spoken = super::without_thinking(text);
            let agree = medagents::agrees(&reply, spoken);
            json!({"agree": agree, "answer": asked.letter(&reply.answer(options).0)})
        }
        "vote" => {
            json!({"agree": consents(super::without_thinking(text).trim())})
        }
        "plan" => {
            let (plan, parse) = healthcareagent::parse::plan(text, finish);
            one((parse != Parse::Unread).then(|| plan.to_owned()))
        }
        "level" => {
            let (level, parse) = mdagents::read_complexity(&asked.reply("complexity"));
            one((parse != Parse::Unread).then(|| level.to_owned()))
        }
        "questions" => {
            let (read, parse) = healthcareagent::parse::follow_ups(text, finish);
            list(read, parse)
        }
        "specialties" => {
            let (read, parse) = medagents::read_specialties(text, finish);
            list(read.iter().map(|field| (*field).to_owned()).collect(), parse)
        }
        "experts" => {
            let (read, parse) = mdagents::recruits::read_experts(&asked.reply("experts"));
            list(read.into_iter().map(|expert| expert.role).collect(), parse)
        }
        "teams" => {
            let (read, parse) = mdagents::recruits::read_teams(&asked.reply("teams"));
            list(read.into_iter().map(|team| team.group_id).collect(), parse)
        }
        "detection" => asked.tags(Wanted::Label, false),
        "localisation" => asked.tags(Wanted::Place, false),
        "numbered" => asked.tags(Wanted::Place, true),
        "correction" => asked.tags(Wanted::Correction, false),
        "place-and-correction" => asked.tags(Wanted::PlaceAndCorrection, false),
        "everything" => asked.tags(Wanted::Everything, false),
        "base" => {
            let (read, _) = base_llm::read(text, note);
            let correction = read.correction.filter(|text| !text.is_empty());
            judgement(read.flag, read.sentence_id, correction.as_deref())
        }
        "knowlab" => asked.form(of_file("knowlab-reason", "answer")),
        "knowlab-chain" => asked.form(of_file("knowlab-cot", "diagnosis")),
        "ikim" => asked.form(&of_keys(IS_CORRECT)),
        "medprompt" => asked.form(of_file("medprompt", "answer")),
        "medifact" => asked.form(of_file("medifact", "answer")),
        "em-mixers" => asked.form(of_file("em-mixers", "answer")),
        "em-mixers-check" => asked.form(&of_keys(CHECK)),
        "flag-first" => asked.form(&of_keys(FLAG_FIRST)),
        "quoting" => asked.form(&of_keys(QUOTING)),
        "without-a-flag" => asked.form(&of_keys(WITHOUT_A_FLAG)),
        "flag-alone" => asked.form(&of_keys(FLAG_ALONE)),
        "number-alone" => asked.form(&of_keys(NUMBER_ALONE)),
        "step" => match medreflex::step::read(text, finish).0.action {
            None => json!({"action": null}),
            Some(Action::Search { query }) => json!({"action": ["search", query]}),
            Some(Action::FinalMistake { sentence, correction, .. }) => {
                json!({"action": ["final", sentence, correction]})
            }
        },
        "score" => json!({"score": medreflex::review::read(text, finish).0.final_score()}),
        "parse" => {
            let (answer, parse) = medreflex::answer::read(text, finish, note, None);
            let flag = answer.is_error.filter(|_| parse != Parse::Unread);
            judgement(flag, answer.sentence_id, answer.correction.as_deref())
        }
        other => panic!("no stage {other}"),
    }
}

/// How a reading went against what is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Right,
    /// Something that can be read was not.
    Unread,
    Wrong,
}

fn outcome(found: &Value, meant: &Value) -> Outcome {
    let fields = meant.as_object().unwrap().iter().map(|(key, meant)| match &found[key] {
        found if found == meant => Outcome::Right,
        Value::Null => Outcome::Unread,
        _ => Outcome::Wrong,
    });
    fields.max().unwrap_or(Outcome::Right)
}

#[test]
fn no_stage_is_misread() {
    let mut outcomes = [const { Vec::new() }; 3];
    for reply in replies("stages") {
        let stage = reply["purpose"].as_str().unwrap();
        let text = unless_echo(&reply);
        let found = read(stage, &Asked::of(&reply, text));
        // What a person could argue about has several meanings.
        let others = reply["or"].as_array().into_iter().flatten();
        let means = &reply["means"];
        let meanings = std::iter::once(means).chain(others);
        let best = meanings.map(|meant| outcome(&found, meant)).min().unwrap();
        let (id, text) = (reply["id"].as_str().unwrap(), &reply["text"]);
        outcomes[best as usize]
            .push(format!("{id} {stage}: read {found}, means {means}\n  {text}"));
    }
    let [right, unread, wrong] = outcomes;
    println!("{} right, {} unread, {} wrong", right.len(), unread.len(), wrong.len());
    println!("unread: {}", unread.join("\n"));
    assert!(wrong.len() <= 10, "{}", wrong.join("\n"));
    assert!(unread.len() <= 246, "{}", unread.join("\n"));
}
