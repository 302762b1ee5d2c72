//! Tests of `tokenizer.rs`.

#![allow(clippy::disallowed_methods, reason = "the library itself is the reference")]

use super::*;

#[test]
fn a_token_far_beyond_the_others_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokenizer.json");
    for (id, refused) in [(1, false), (u32::MAX - 1, true), (u32::MAX, true)] {
        let json = serde_json::json!({
            "version": "1.0", "added_tokens": [], "decoder": {"type": "ByteLevel", "add_prefix_space": false,
                "trim_offsets": false, "use_regex": true},
            "model": {"type": "BPE", "vocab": {"a": 0, "b": id}, "merges": []},
        });
        fs_err::write(&path, json.to_string()).unwrap();
        let loaded = Tokenizer::load(&path);
        assert_eq!(loaded.is_err(), refused, "{loaded:?}");
    }
}

/// A tokenizer of Llama 2's kind: a space is put before what begins a text, and before nothing else.
fn with_first_prefix(directory: &Path) -> PathBuf {
    let path = directory.join("tokenizer.json");
    let letters = ["▁", "a", "b", "<", "s", ">", "[", "k", "]", "/"];
    let vocab: serde_json::Map<String, serde_json::Value> =
        letters.iter().zip(0..).map(|(letter, id)| ((*letter).to_owned(), id.into())).collect();
    let added = |id: u32, content: &str, special: bool| {
        serde_json::json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": content == "[k]",
            "normalized": false, "special": special})
    };
    let json = serde_json::json!({
        "version": "1.0", "added_tokens": [added(10, "<s>", true), added(11, "[k]", false), added(12, "<b>", false),
            added(13, "ab", false)],
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false},
        "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}]},
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    });
    fs_err::write(&path, json.to_string()).unwrap();
    path
}

#[test]
fn texts_between_control_tokens_are_encoded_as_in_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = with_first_prefix(directory.path());
    let (ours, theirs) = (Tokenizer::load(&path).unwrap(), Inner::from_file(&path).unwrap());
    for text in ["a", "<s>a", "a<s>b", "a b[k]  a<b>b", "ab <s>ab", "[k][k] a", "<", ""] {
        let expected = theirs.encode(text, false).unwrap();
        assert_eq!(ours.encode(text).unwrap(), expected.get_ids(), "{text:?}");
    }
}

#[test]
fn what_is_covered_is_text_and_markup_and_words_stay_what_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let tokenizer = Tokenizer::load(&with_first_prefix(directory.path())).unwrap();
    assert_eq!(tokenizer.control_edges(), ['<', '>', '[', ']']);
    let is_control: Vec<bool> = (9..14).map(|id| tokenizer.is_control(id)).collect();
    assert_eq!(is_control, [false, true, true, false, false]);
    let said = "<s>[k]<b>ab</s>";
    let mask = Mask::new(tokenizer.control_edges(), [said].into_iter()).unwrap();
    let covered = format!("<s>{}[k]", mask.cover(said));
    let ids = tokenizer.encode_covered(&covered, &mask).unwrap();
    assert_eq!(ids, [10, 3, 4, 5, 6, 7, 8, 12, 13, 3, 9, 4, 5, 11]);
    assert_eq!(tokenizer.encode_writing("<s>[k]").unwrap(), [0, 3, 4, 5, 11]);
}

/// A byte-level tokenizer that puts `<s>` before every text and `</s>` behind it.
fn with_ends(directory: &Path) -> Tokenizer {
    let path = directory.join("tokenizer.json");
    let added = |id: u32, content: &str| {
        serde_json::json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true})
    };
    let special = |id: u32, content: &str| serde_json::json!({"id": content, "ids": [id], "tokens": [content]});
    let token = |content: &str| serde_json::json!({"SpecialToken": {"id": content, "type_id": 0}});
    let text = serde_json::json!({"Sequence": {"id": "A", "type_id": 0}});
    // The last one is a byte of no character.
    let vocab = serde_json::json!({"a": 0, "b": 1, "Ġ": 2, "â": 3});
    let json = serde_json::json!({
        "version": "1.0", "added_tokens": [added(4, "<s>"), added(5, "</s>")],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
        "post_processor": {"type": "TemplateProcessing", "single": [token("<s>"), text, token("</s>")], "pair": [text],
            "special_tokens": {"<s>": special(4, "<s>"), "</s>": special(5, "</s>")}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    });
    fs_err::write(&path, json.to_string()).unwrap();
    Tokenizer::load(&path).unwrap()
}

#[test]
fn what_belongs_around_a_text_is_added_once() {
    let directory = tempfile::tempdir().unwrap();
    let tokenizer = with_ends(directory.path());
    for (text, bare, whole) in [
        ("ab", &[0, 1][..], &[4, 0, 1, 5][..]),
        ("", &[], &[4, 5]),
        ("<s>ab", &[4, 0, 1], &[4, 0, 1, 5]),
        ("ab</s>", &[0, 1, 5], &[4, 0, 1, 5]),
        ("<s><s>a</s>", &[4, 4, 0, 5], &[4, 4, 0, 5]),
    ] {
        assert_eq!(tokenizer.encode_with(text, false).unwrap(), bare, "{text:?}");
        assert_eq!(tokenizer.encode_with(text, true).unwrap(), whole, "{text:?}");
    }
    let plain = Tokenizer::load(&with_first_prefix(directory.path())).unwrap();
    assert_eq!(plain.encode_with("a", true).unwrap(), plain.encode("a").unwrap());
}

#[test]
fn padding_and_truncation_of_the_file_never_act_and_chance_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let plain = with_ends(directory.path());
    let path = directory.path().join("tokenizer.json");
    let text = fs_err::read_to_string(&path).unwrap();
    let written = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut json = serde_json::from_str(&text).unwrap();
        change(&mut json);
        fs_err::write(&path, json.to_string()).unwrap();
        Tokenizer::load(&path)
    };
    let tokenizer = written(&|json| {
        json["padding"] = serde_json::json!({"strategy": {"Fixed": 16}, "direction": "Left", "pad_to_multiple_of": 8,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "a"});
        json["truncation"] = serde_json::json!({"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0});
    });
    let tokenizer = tokenizer.unwrap();
    for text in ["", "a", "abab"] {
        let ids = |tokenizer: &Tokenizer| tokenizer.encode_with(text, true).unwrap();
        assert_eq!(ids(&tokenizer), ids(&plain), "{text:?}");
    }
    assert_ne!(tokenizer.encode_with("a", true).unwrap(), tokenizer.encode("a").unwrap());
    let refused = written(&|json| json["model"]["dropout"] = serde_json::json!(0.1)).unwrap_err();
    assert!(refused.to_string().contains("dropout of 0.1"), "{refused}");
    written(&|json| json["model"]["dropout"] = serde_json::json!(0.0)).unwrap();
}

#[test]
fn control_tokens_and_broken_bytes_can_be_shown() {
    let directory = tempfile::tempdir().unwrap();
    let tokenizer = with_ends(directory.path());
    let ids = [4, 0, 2, 1, 3, 5, 99];
    assert_eq!(tokenizer.decode(&ids), "a b\u{fffd}");
    assert_eq!(tokenizer.decode_shown(&ids), "<s>a b\u{fffd}</s>");
    let shown: Vec<String> = ids.iter().map(|id| tokenizer.shown(*id)).collect();
    assert_eq!(shown, ["<s>", "a", " ", "b", r"bytes:\xe2", "</s>", ""]);
    assert_eq!(tokenizer.shown_bytes(3), [0xe2]);
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_published_tokenizers_begin_a_text_by_their_own_rule() {
    let data = std::env::var_os("WARDROUND_DATA").map(PathBuf::from).unwrap();
    for (name, first, written) in [
        ("gemma3", Some(2), "<bos>"),
        ("llama3.2", Some(128_000), "<|begin_of_text|>"),
        ("qwen3", None, "<|im_start|>"),
    ] {
        let path = data.join("tokenizers").join(name).join("tokenizer.json");
        let tokenizer = Tokenizer::load(&path).unwrap();
        let theirs = Inner::from_file(&path).unwrap();
        for text in ["Chest pain since noon.", "", " a", "\u{1f3e5}"] {
            let expected = theirs.encode(text, true).unwrap();
            assert_eq!(tokenizer.encode_with(text, true).unwrap(), expected.get_ids(), "{name}");
            let begins = expected.get_ids().first().copied();
            assert!(first.is_none() || begins == first, "{name}: {begins:?}");
        }
        let begun = format!("{written}Chest pain");
        let (with, without) = (tokenizer.encode_with(&begun, true), tokenizer.encode(&begun));
        assert_eq!(with.unwrap(), without.unwrap(), "{name}");
    }
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_real_tokenizers_give_the_published_vectors_and_their_bytes_back() {
    let data = std::env::var_os("WARDROUND_DATA").map(PathBuf::from).unwrap();
    for name in ["gemma3", "llama3.2", "qwen3"] {
        let directory = data.join("tokenizers").join(name);
        let tokenizer = Tokenizer::load(&directory.join("tokenizer.json")).unwrap();
        let read = |file| fs_err::read_to_string(directory.join(file)).unwrap();
        let (inputs, outputs) = (read("vectors.inp"), read("vectors.out"));
        let inputs: Vec<String> = match name {
            "gemma3" => {
                inputs.lines().map(|line| line.replace("\\n", "\n").replace("\\s", " ")).collect()
            }
            _ => inputs.split("\n__ggml_vocab_test__\n").map(str::to_owned).collect(),
        };
        let mut compared = 0;
        for (input, output) in inputs.iter().zip(outputs.lines()) {
            let ids = output.split([',', ' ']).filter(|id| !id.is_empty());
            let expected: Vec<u32> = ids.map(|id| id.parse().unwrap()).collect();
            let ids = tokenizer.encode(input).unwrap();
            assert_eq!(ids, expected, "{name}: {input:?}");
            assert_eq!(tokenizer.decode(&ids), *input, "{name}");
            compared += 1;
        }
        assert!(compared >= 20, "{name}: {compared} vectors");
    }
}

#[test]
fn control_tokens_take_blanks_and_stand_alone_as_their_file_says() {
    let directory = tempfile::tempdir().unwrap();
    let path = with_first_prefix(directory.path());
    let mut json: serde_json::Value =
        serde_json::from_str(&fs_err::read_to_string(&path).unwrap()).unwrap();
    let flags = |name: &'static str| move |token: &mut serde_json::Value| token[name] = true.into();
    let added = json["added_tokens"].as_array_mut().unwrap();
    let word = |id: u32, content: &str| {
        serde_json::json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true})
    };
    for (id, content, flag) in
        [(14, "kk", "single_word"), (15, "ss", "lstrip"), (16, "[/k]", "rstrip")]
    {
        let mut token = word(id, content);
        flags(flag)(&mut token);
        added.push(token);
    }
    fs_err::write(&path, json.to_string()).unwrap();
    let (ours, theirs) = (Tokenizer::load(&path).unwrap(), Inner::from_file(&path).unwrap());
    for text in [
        "kk",
        "kk a",
        "akk",
        "kka",
        "a kk a",
        "kkkk",
        "_kk",
        "kk[k]",
        "(kk)",
        "a  ss  a",
        "ss ss",
        " ss",
        "[/k]  a",
        "a [/k] ss a",
        "<s> kk ss",
    ] {
        let expected = theirs.encode(text, false).unwrap();
        assert_eq!(ours.encode(text).unwrap(), expected.get_ids(), "{text:?}");
    }
}

#[test]
fn added_words_beyond_ascii_are_their_text_in_a_byte_level_vocabulary() {
    let directory = tempfile::tempdir().unwrap();
    with_ends(directory.path());
    let path = directory.path().join("tokenizer.json");
    let mut json: serde_json::Value =
        serde_json::from_str(&fs_err::read_to_string(&path).unwrap()).unwrap();
    for (id, word) in [(6, "M\u{e9}ni\u{e8}re"), (7, "Ġx"), (8, "\u{3bc}g")] {
        json["added_tokens"].as_array_mut().unwrap().push(serde_json::json!({
            "id": id, "content": word, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            "special": false,
        }));
    }
    fs_err::write(&path, json.to_string()).unwrap();
    let tokenizer = Tokenizer::load(&path).unwrap();
    for text in ["aM\u{e9}ni\u{e8}re b", "Ġxa", "\u{3bc}g"] {
        let ids = tokenizer.encode(text).unwrap();
        assert!(ids.iter().any(|id| *id > 5), "{ids:?}");
        assert_eq!(tokenizer.decode(&ids), text);
    }
}
