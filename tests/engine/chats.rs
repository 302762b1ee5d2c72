//! Chats rendered by the published templates: the text and the ids that transformers makes of them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use wardround::chat::{ChatTemplate, Message};
use wardround::model::Family;
use wardround::synth::{Recipe, Shape, write_checkpoint};
use wardround::tokenizer::Tokenizer;

use crate::common;

#[derive(Deserialize)]
struct Chats {
    chats: Vec<Chat>,
}

#[derive(Deserialize)]
struct Chat {
    model: String,
    name: String,
    messages: Vec<Message>,
    variables: Variables,
    add_generation_prompt: bool,
    text: Option<String>,
    ids: Option<Vec<u32>>,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variables {
    date_string: Option<String>,
    /// The templates' own default is on.
    enable_thinking: Option<bool>,
}

/// The day that we tell templates.
const DATE: &str = "26 Jul 2024";

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_rendered_as_by_transformers() {
    let data = common::data();
    let path = common::goldens().join("chats.json");
    let chats: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let Chats { chats } = serde_json::from_value(chats).unwrap();
    for (model, at_least) in [("gemma3", 20), ("llama3.2", 20), ("qwen3", 20)] {
        let directory = data.join("tokenizers").join(model);
        let template = ChatTemplate::load(&directory).unwrap();
        let tokenizer = Tokenizer::load(&directory.join("tokenizer.json")).unwrap();
        let chats: Vec<&Chat> = chats.iter().filter(|chat| chat.model == model).collect();
        assert!(chats.len() >= at_least, "{model}: {} chats", chats.len());
        for chat in chats {
            check(chat, &template, &tokenizer);
        }
    }
}

fn check(chat: &Chat, template: &ChatTemplate, tokenizer: &Tokenizer) {
    let place = format!("{}, {}, {:?}", chat.model, chat.name, chat.variables.date_string);
    let thinking = chat.variables.enable_thinking.unwrap_or(true);
    let rendered = template.render(&chat.messages, thinking);
    let (Some(text), Some(ids)) = (&chat.text, &chat.ids) else {
        let (error, expected) = (rendered.unwrap_err(), chat.error.as_ref().unwrap());
        assert!(error.to_string().contains(expected), "{place}: {error}");
        return;
    };
    assert_eq!(&tokenizer.encode(text).unwrap(), ids, "{place}");
    let prompt = template.prompt(tokenizer, &chat.messages, thinking).unwrap();
    assert_eq!(Ok(&prompt.text), rendered.as_ref().map_err(|_| ()), "{place}");
    // We know one day, and always ask for the model's turn.
    let day = chat.variables.date_string.as_deref().unwrap_or(DATE);
    let expected = text.replacen(day, DATE, 1);
    let rendered = rendered.unwrap();
    if chat.add_generation_prompt {
        assert_eq!(rendered, expected, "{place}");
        if day == DATE && !looks_like_control(chat, tokenizer) {
            assert_eq!(&prompt.tokens, ids, "{place}");
        }
    } else {
        let turn = rendered.strip_prefix(&expected);
        let turn = turn
            .unwrap_or_else(|| panic!("{place}: {rendered:?} does not go on from {expected:?}"));
        let role = if chat.model == "gemma3" { "model" } else { "assistant" };
        assert!(turn.starts_with('<') && turn.contains(role), "{place}: {turn}");
    }
}

/// Whether the messages hold what looks like a control token. An assistant's thinking is the template's.
fn looks_like_control(chat: &Chat, tokenizer: &Tokenizer) -> bool {
    chat.messages.iter().any(|message| {
        let thinking = message.content.rfind("</think>").filter(|_| message.role == "assistant");
        let said = &message.content[thinking.unwrap_or_default()..];
        let tokens = tokenizer.encode(said.trim_start_matches("</think>")).unwrap();
        tokens.iter().any(|token| tokenizer.is_control(*token))
    })
}

/// `goldens/templates/rendered.json`.
#[derive(Deserialize)]
struct Renderings {
    tokens: BTreeMap<String, String>,
    chats: BTreeMap<String, Vec<Message>>,
    records: Vec<Rendering>,
}

#[derive(Deserialize)]
struct Rendering {
    template: String,
    chat: String,
    opens_turn: bool,
    goes_on: bool,
    thinking: bool,
    /// Messages that do not come out.
    #[serde(default)]
    left_out: Vec<usize>,
    text: Option<String>,
    error: Option<String>,
}

#[test]
fn templates_in_the_shapes_of_twenty_families_render_as_by_transformers() {
    let Compared { templates, equal, refused, alone } =
        check_folder(&common::goldens().join("templates"));
    assert!(templates >= 20 && equal >= 600 && refused >= 40, "{templates}, {equal}, {refused}");
    assert!(alone.is_empty(), "{alone:?}");
}

/// A folder of published templates and of what `goldens/templates/render.py FOLDER` made of them.
#[test]
#[ignore = "needs WARDROUND_TEMPLATES"]
fn with_templates_of_others_rendered_as_by_transformers() {
    let folder = std::env::var_os("WARDROUND_TEMPLATES").unwrap();
    let Compared { templates, equal, refused, alone } = check_folder(Path::new(&folder));
    assert!(equal > 0, "rendered.json has no records");
    println!("{templates} templates: {equal} prompts equal, {refused} refused by both");
    alone
        .iter()
        .for_each(|(template, prompts)| println!("{template}: {prompts} rendered here alone"));
}

struct Compared {
    templates: usize,
    equal: usize,
    /// By either, and those that leave a message out by us.
    refused: usize,
    /// How many prompts of a template Python stumbles over, as over a loop through tools where none are given.
    alone: BTreeMap<String, usize>,
}

fn check_folder(goldens: &Path) -> Compared {
    let text = std::fs::read_to_string(goldens.join("rendered.json")).unwrap();
    let Renderings { tokens, chats, mut records } = serde_json::from_str(&text).unwrap();
    records.retain(|record| record.opens_turn && !record.goes_on);
    let folder = tempfile::tempdir().unwrap();
    let recipe = Recipe { family: Family::Qwen3, shape: Shape::Tiny, seed: 1, tokenizer: None };
    write_checkpoint(&recipe, folder.path()).unwrap();
    let tokenizer = Tokenizer::load(&folder.path().join("tokenizer.json")).unwrap();
    let mut config = serde_json::json!(tokens);
    config["extra_special_tokens"] =
        serde_json::json!({"image_token": config["image_token"].take()});
    std::fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    let mut templates = BTreeMap::new();
    let (mut faults, mut equal, mut refused, mut alone) = (Vec::new(), 0, 0, BTreeMap::new());
    for record in &records {
        let template = templates.entry(&record.template).or_insert_with(|| {
            let path = folder.path().join("chat_template.jinja");
            std::fs::copy(goldens.join(&record.template), path).unwrap();
            ChatTemplate::load(folder.path()).map_err(|error| error.to_string())
        });
        let given = template.as_ref().map_err(Clone::clone).and_then(|template| {
            let given = template.prompt(&tokenizer, &chats[&record.chat], record.thinking);
            given.map(|prompt| prompt.text).map_err(|error| error.to_string())
        });
        if record.error.as_deref() == Some("") && given.is_ok() {
            *alone.entry(record.template.clone()).or_insert(0) += 1;
            continue;
        }
        *if given.is_ok() { &mut equal } else { &mut refused } += 1;
        let is_right = match (&record.text, &given) {
            (Some(_), Err(error)) => match record.left_out.first() {
                Some(index) => error.contains(&format!("leaves out message {} of", index + 1)),
                None => false,
            },
            (Some(text), Ok(given)) => record.left_out.is_empty() && text == given,
            (None, Err(error)) => error.contains(record.error.as_ref().unwrap()),
            (None, Ok(_)) => false,
        };
        if !is_right {
            let Rendering { template, chat, thinking, text, error, .. } = record;
            let wanted = text.as_ref().or(error.as_ref()).unwrap();
            faults.push(format!("{template}, {chat}, thinking {thinking}:\n{wanted:?}\n{given:?}"));
        }
    }
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), records.len(), faults.join("\n"));
    Compared { templates: templates.len(), equal, refused, alone }
}
