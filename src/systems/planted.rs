//! For every system: what looks like a control token in a question, an option, a note or a reply stays text in every prompt.

use std::path::Path;

use super::SystemConfig;
use super::scripted::{note, question, work};
use super::table::SYSTEMS;
use crate::chat::{ChatTemplate, Message, Prompt};
use crate::data::{Item, ItemKind};
use crate::model::Family;
use crate::panel::scripted::Script;
use crate::synth::{Recipe, Shape, write_checkpoint};
use crate::tokenizer::{Piece, Tokenizer};

/// A model's way from messages to tokens.
struct Model {
    chat: ChatTemplate,
    tokenizer: Tokenizer,
}

/// Replies that between them reach every stage of every system: tags, a record, prose. Each holds `{}` wherever it can.
const REPLIES: [&str; 3] = [
    "<think>so {}</think>\nINCORRECT {}\n<result>She went {} home.</result>\n<confidence>80</confidence>\nAnswer: B {}",
    r#"{"explanation": "{} for B", "reason": "{}", "answer": "B", "confidence": 0.8, "confidence_level": 0.8, "key_evidence": ["{}"],
        "evidence": ["{}"], "option_analysis": {"A": "{}", "B": "{}"}, "error_sentence_id": 1}"#,
    "{} yes; the case is (B) because {}. Expert 1: {} cardiologist. Answer: (B) {}",
];

impl Model {
    fn load(directory: &Path) -> Model {
        let tokenizer = Tokenizer::load(&directory.join("tokenizer.json")).unwrap();
        Model { chat: ChatTemplate::load(directory).unwrap(), tokenizer }
    }

    /// The control tokens by their written forms; of those without a use the first three.
    fn planted(&self) -> Vec<String> {
        let pieces = (0..).zip(self.tokenizer.pieces());
        let controls = pieces.filter(|(id, _)| self.tokenizer.is_control(*id));
        let names = controls.map(|(_, piece)| name(piece));
        let is_unused = |name: &str| name.contains("unused") || name.contains("reserved");
        let mut unused = 0..3;
        names.filter(|name| !is_unused(name) || unused.next().is_some()).collect()
    }

    fn controls(&self, prompt: &Prompt) -> Vec<u32> {
        let tokens = prompt.tokens.iter().copied();
        tokens.filter(|token| self.tokenizer.is_control(*token)).collect()
    }

    /// The control tokens of a prompt are those of the same prompt without `plants`, and its tokens spell it.
    fn check(&self, messages: &[Message], plants: &[String], place: &str) {
        let prompt = self.chat.prompt(&self.tokenizer, messages, false).unwrap();
        let bare = |message: &Message| {
            let bare = plants
                .iter()
                .fold(message.content.clone(), |content, plant| content.replace(plant, ""));
            Message::new(&*message.role, bare)
        };
        let bare: Vec<Message> = messages.iter().map(bare).collect();
        let expected = self.chat.prompt(&self.tokenizer, &bare, false).unwrap();
        assert_eq!(self.controls(&prompt), self.controls(&expected), "{place}: {}", prompt.text);
        // A tokenizer that knows of no content takes every plant for what it looks like.
        let forged = self.tokenizer.encode(&prompt.text).unwrap();
        let forged = forged.iter().filter(|token| self.tokenizer.is_control(**token)).count();
        let planted = plants.iter().any(|plant| messages[0].content.contains(plant));
        assert!(!planted || forged > self.controls(&prompt).len(), "{place}");
        let pieces = prompt.tokens.iter().map(|id| &self.tokenizer.pieces()[*id as usize]);
        // A character may be spelled by several tokens, a byte each.
        let spelled: Vec<&[u8]> = pieces.map(bytes).collect();
        assert_eq!(String::from_utf8_lossy(&spelled.concat()), prompt.text, "{place}");
    }

    /// Every call of every system, each slot of whose item and each of whose replies holds `plants`.
    fn check_systems(&self, plants: &[String]) {
        let plant = plants.concat();
        for entry in SYSTEMS.iter() {
            let config = SystemConfig::parse::<&str>(entry.name, &[]).unwrap();
            for reply in REPLIES {
                let reply = reply.replace("{}", &plant);
                let said = Script::new(move |_, _| reply.clone());
                let (_, calls) = work(&config, &item(entry.takes, &plant), said);
                let mut asked = calls.iter().flat_map(|call| &call.messages);
                assert!(asked.any(|message| message.content.contains(&plant)), "{}", entry.name);
                for call in calls {
                    let place = format!("{}, {}, {}", entry.name, call.agent, call.purpose);
                    let messages: Vec<Message> = call
                        .messages
                        .iter()
                        .map(|one| Message::new(&*one.role, &*one.content))
                        .collect();
                    self.check(&messages, plants, &place);
                }
            }
        }
    }
}

fn name(piece: &Piece) -> String {
    String::from_utf8_lossy(bytes(piece)).into_owned()
}

fn bytes(piece: &Piece) -> &[u8] {
    match piece {
        Piece::Control(name) => name.as_bytes(),
        Piece::Text(bytes) => bytes,
        Piece::Absent => &[],
    }
}

fn item(kind: ItemKind, plant: &str) -> Item {
    let add = |text: &mut String| text.insert_str(text.len() / 2, plant);
    match kind {
        ItemKind::Questions => {
            let mut question = question(5);
            add(&mut question.question);
            question.options.iter_mut().for_each(|choice| add(&mut choice.text));
            question.into()
        }
        ItemKind::Notes => {
            let mut note = note();
            note.sentences.iter_mut().for_each(add);
            note.text = note.sentences.join(" ");
            note.into()
        }
    }
}

#[test]
fn no_system_lets_a_text_become_a_control_token() {
    for family in Family::ALL {
        let directory = tempfile::tempdir().unwrap();
        let recipe = Recipe { family, shape: Shape::Tiny, seed: 1, tokenizer: None };
        write_checkpoint(&recipe, directory.path()).unwrap();
        let model = Model::load(directory.path());
        let plants = model.planted();
        assert!(plants.len() >= 5, "{plants:?}");
        model.check_systems(&plants);
    }
}

/// No system lets one of a published vocabulary's control tokens, at least `planted` of which are tried, come from a text.
fn check_published(model_name: &str, planted: usize) {
    let data = std::env::var_os("WARDROUND_DATA").map(std::path::PathBuf::from).unwrap();
    let model = Model::load(&data.join("tokenizers").join(model_name));
    let plants = model.planted();
    assert!(plants.len() >= planted, "{model_name}: {}", plants.len());
    model.check_systems(&plants);
    // Every one, those without a use too, alone between letters.
    let pieces = (0..).zip(model.tokenizer.pieces());
    let controls = pieces.filter(|(id, _)| model.tokenizer.is_control(*id));
    for (id, piece) in controls {
        let plant = format!("a{}b", name(piece));
        let user = Message::new("user", plant.clone());
        let prompt = model.chat.prompt(&model.tokenizer, &[user], false).unwrap();
        assert!(model.tokenizer.decode(&prompt.tokens).contains(&plant), "{model_name}: {id}");
    }
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_no_control_token_of_gemmas_vocabulary_comes_from_a_text() {
    check_published("gemma3", 14);
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_no_control_token_of_llamas_vocabulary_comes_from_a_text() {
    check_published("llama3.2", 11);
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_no_control_token_of_qwens_vocabulary_comes_from_a_text() {
    check_published("qwen3", 26);
}
