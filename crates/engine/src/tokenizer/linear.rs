//! What encodes texts, alone and within a chat's template, for `crate::linear`.

use super::{Mask, Tokenizer};
use crate::chat::ChatTemplate;
use crate::chat::Message;
use crate::linear::{self, keep};
use crate::model::Family;
use crate::synth::{Recipe, Shape, write_with_our_words};

#[test]
fn what_encodes_a_text_takes_time_in_proportion_to_it() {
    for family in [Family::Gemma3, Family::Qwen3] {
        let directory = tempfile::tempdir().unwrap();
        let recipe = Recipe { family, shape: Shape::Tiny, seed: 1, tokenizer: None };
        write_with_our_words(&recipe, directory.path()).unwrap();
        let tokenizer = Tokenizer::load(&directory.path().join("tokenizer.json")).unwrap();
        let chat = ChatTemplate::load(directory.path()).unwrap();
        let mask = Mask::new(tokenizer.control_edges(), ["a"].into_iter()).unwrap();
        linear::check(&[
            ("tokenizer::encode", &|text| keep(tokenizer.encode(text))),
            ("tokenizer::encode_with", &|text| keep(tokenizer.encode_with(text, true))),
            ("tokenizer::encode_covered", &|text| keep(tokenizer.encode_covered(text, &mask))),
            ("tokenizer::encode_writing", &|text| keep(tokenizer.encode_writing(text))),
            ("outside::encode_alone", &|text| keep(tokenizer.inner.encode_alone(text))),
            ("control::find", &|text| keep(tokenizer.controls.find(text).count())),
            ("mask::new", &|text| keep(Mask::new(&['<', '>'], [text].into_iter()))),
            ("mask::cover", &|text| keep(mask.cover(text))),
            ("mask::uncover", &|text| keep(mask.uncover(text))),
            ("chat::prompt", &|text| {
                let messages = [Message::new("user", text)];
                keep(chat.prompt(&tokenizer, &messages, false));
            }),
            ("chat::prompt, messages", &|text| {
                let messages = vec![Message::new("user", "a"); text.len() / 16];
                keep(chat.prompt(&tokenizer, &messages, false));
            }),
        ]);
    }
}
