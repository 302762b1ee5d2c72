//! Chats rendered by the published templates: the text and the ids that transformers makes of them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod common;

use serde::Deserialize;
use serde_json::Value;
use wardround::chat::ChatTemplate;
use wardround::record::Message;
use wardround::tokenizer::Tokenizer;

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
