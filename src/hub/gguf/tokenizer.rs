//! `tokenizer.json` and `tokenizer_config.json`, from the metadata: byte-level BPE, or the pieces of a SentencePiece model as
//! transformers converts them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::metadata::shown;
use super::{Gguf, GgufError};

/// Types of tokens.
const UNKNOWN: f32 = 2.0;
pub const CONTROL: f32 = 3.0;
const USER_DEFINED: f32 = 4.0;
const UNUSED: f32 = 5.0;
const BYTE: f32 = 6.0;

/// Four times what published ones have, in bytes: of one, and of all together.
const LONGEST_WORD: usize = 1 << 10;
const MOST_WORDS: usize = 16 << 20;

const OWN: &str = "give the folder of the model's own tokenizer.json: --tokenizer DIR";

/// How texts are cut before they are merged, as the families' tokenizers are published.
struct Cut {
    /// `tokenizer.ggml.pre`.
    name: &'static str,
    normalizer: Option<&'static str>,
    /// Of `Split`; without one, GPT-2's own with digits apart.
    pattern: Option<&'static str>,
    ignores_merges: bool,
    adds_bos: bool,
}

static CUTS: [Cut; 3] = [
    Cut {
        name: "llama-bpe",
        normalizer: None,
        pattern: Some(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
        ignores_merges: true,
        adds_bos: true,
    },
    Cut {
        name: "qwen2",
        normalizer: Some("NFC"),
        pattern: Some(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
        ignores_merges: false,
        adds_bos: false,
    },
    Cut { name: "smollm", normalizer: None, pattern: None, ignores_merges: false, adds_bos: false },
];

/// What the metadata says of tokens.
struct Tokens<'a> {
    gguf: &'a Gguf,
    /// By id.
    words: Vec<Cow<'a, str>>,
    types: &'a [f32],
}

/// The model of `tokenizer.json`.
#[derive(Default, Serialize)]
struct Bpe<'a> {
    r#type: &'static str,
    unk_token: Option<&'a str>,
    fuse_unk: bool,
    byte_fallback: bool,
    ignore_merges: bool,
    vocab: BTreeMap<&'a str, usize>,
    merges: Vec<(&'a str, &'a str)>,
}

impl<'a> Tokens<'a> {
    fn of(gguf: &'a Gguf, is_pieces: bool) -> Result<Self, GgufError> {
        let key = |name: &str| format!("tokenizer.ggml.{name}");
        let words = gguf.need(&key("tokens"), gguf.texts(&key("tokens")))?;
        let types = gguf.need(&key("token_type"), gguf.numbers(&key("token_type")))?;
        if types.len() != words.len() {
            let problem = format!("{} tokens and {} types of them", words.len(), types.len());
            return Err(gguf.refused(problem, OWN));
        }
        let (longest, all) = words
            .iter()
            .map(String::len)
            .fold((0, 0), |(longest, all), length| (length.max(longest), all + length));
        if longest > LONGEST_WORD || all > MOST_WORDS {
            let problem = format!("a token of {longest} bytes, or {all} bytes of them");
            return Err(gguf.refused(problem, OWN));
        }
        let word = |(word, kind): (&'a String, &f32)| match is_pieces && *kind == USER_DEFINED {
            // The converter wrote these as they are read.
            true => Cow::Owned(word.replace(' ', "▁")),
            false => Cow::Borrowed(word.as_str()),
        };
        let words = words.iter().zip(types).map(word).collect();
        Ok(Tokens { gguf, words, types })
    }

    /// Id, word and type of each token that texts can have.
    fn used(&self) -> impl Iterator<Item = (usize, &str, f32)> {
        let all = self.words.iter().zip(self.types).enumerate();
        all.map(|(id, (word, kind))| (id, word.as_ref(), *kind))
            .filter(|(.., kind)| *kind != UNUSED)
    }

    /// The id of each word.
    fn ids(&self) -> Result<BTreeMap<&str, usize>, GgufError> {
        let mut ids = BTreeMap::new();
        for (id, word, kind) in self.used() {
            if !(1.0..=BYTE).contains(&kind) {
                return Err(self
                    .gguf
                    .refused(format!("token {id} is of the unknown type {kind}"), OWN));
            }
            if let Some(other) = ids.insert(word, id) {
                let problem = format!("tokens {other} and {id} are both `{}`", shown(word));
                return Err(self.gguf.refused(problem, OWN));
            }
        }
        Ok(ids)
    }

    /// The word that is named by its id, as the one that begins texts.
    fn named(&self, name: &str) -> Result<Option<(&str, u64)>, GgufError> {
        let key = format!("tokenizer.ggml.{name}_token_id");
        let Some(id) = self.gguf.integer(&key)? else { return Ok(None) };
        match usize::try_from(id).ok().and_then(|id| self.words.get(id)) {
            Some(word) => Ok(Some((word, id))),
            None => Err(self.gguf.refused(
                format!("`{key}` is {id}, and there are {} tokens", self.words.len()),
                OWN,
            )),
        }
    }

    fn added(&self) -> Vec<Value> {
        let is_added = |kind| [UNKNOWN, CONTROL, USER_DEFINED].contains(&kind);
        let added = self.used().filter(|(.., kind)| is_added(*kind));
        let value = |(id, word, kind): (usize, &str, f32)| {
            json!({
                "id": id, "content": word, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
                "special": kind != USER_DEFINED,
            })
        };
        added.map(value).collect()
    }

    /// Which tokens are put around a text that is a whole one.
    fn post_processor(&self, adds_bos: bool) -> Result<Value, GgufError> {
        let wants = |name: &str, left_out| {
            Ok(self.gguf.flag(&format!("tokenizer.ggml.add_{name}_token"))?.unwrap_or(left_out))
        };
        let word = |name: &str, is_wanted: Result<bool, GgufError>| match is_wanted? {
            true => self.named(name),
            false => Ok(None),
        };
        let (bos, eos) = (word("bos", wants("bos", adds_bos))?, word("eos", wants("eos", false))?);
        if bos.is_none() && eos.is_none() {
            return Ok(Value::Null);
        }
        let around = |name: &str, of: u64| {
            let token =
                |(word, _): (&str, u64)| json!({"SpecialToken": {"id": word, "type_id": of}});
            let text = json!({"Sequence": {"id": name, "type_id": of}});
            [bos.map(token), Some(text), eos.map(token)].into_iter().flatten().collect::<Vec<_>>()
        };
        let named = bos.iter().chain(&eos);
        let named = named.map(|(word, id)| {
            ((*word).to_owned(), json!({"id": word, "ids": [id], "tokens": [word]}))
        });
        let pair = [around("A", 0), around("B", 1)].concat();
        Ok(json!({
            "type": "TemplateProcessing", "single": around("A", 0), "pair": pair,
            "special_tokens": Value::from_iter(named),
        }))
    }
}

/// `tokenizer.json`.
pub fn tokenizer(gguf: &Gguf) -> Result<String, GgufError> {
    let key = "tokenizer.ggml.model";
    match gguf.need(key, gguf.text(key))? {
        "gpt2" => byte_level(gguf),
        "llama" => pieces(gguf),
        other => {
            let problem =
                format!("its tokenizer is of the kind {}; known: gpt2, llama", shown(other));
            Err(gguf.refused(problem, OWN))
        }
    }
}

fn byte_level(gguf: &Gguf) -> Result<String, GgufError> {
    let key = "tokenizer.ggml.pre";
    let pre = gguf.text(key)?.unwrap_or("not there");
    let cut = CUTS.iter().find(|cut| cut.name == pre).ok_or_else(|| {
        let known = CUTS.iter().map(|cut| cut.name).collect::<Vec<_>>().join(", ");
        gguf.refused(
            format!(
                "how its tokenizer cuts texts is not known here: `{key}` is {}; known: {known}",
                shown(pre)
            ),
            OWN,
        )
    })?;
    let tokens = Tokens::of(gguf, false)?;
    let ids = tokens.ids()?;
    let key = "tokenizer.ggml.merges";
    let mut merges = Vec::new();
    for merge in gguf.need(key, gguf.texts(key))? {
        let pair = merge.split_once(' ');
        let pair = pair.filter(|(left, right)| ids.contains_key(left) && ids.contains_key(right));
        let (left, right) = pair.ok_or_else(|| {
            gguf.refused(format!("`{}` in `{key}` are no two tokens", shown(merge)), OWN)
        })?;
        merges.push((left, right));
    }
    let level = |own| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": own});
    let first = match cut.pattern {
        Some(pattern) => {
            json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false})
        }
        None => json!({"type": "Digits", "individual_digits": true}),
    };
    let parts = json!({
        "normalizer": cut.normalizer.map(|name| json!({"type": name})),
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [first, level(cut.pattern.is_none())]},
        "post_processor": tokens.post_processor(cut.adds_bos)?,
        "decoder": level(true),
    });
    let ignore_merges = cut.ignores_merges;
    assemble(&tokens, parts, Bpe { vocab: ids, merges, ignore_merges, ..Bpe::default() })
}

fn pieces(gguf: &Gguf) -> Result<String, GgufError> {
    let tokens = Tokens::of(gguf, true)?;
    let ids = tokens.ids()?;
    let key = "tokenizer.ggml.scores";
    let scores = gguf.need(key, gguf.numbers(key))?;
    if scores.len() != tokens.words.len() {
        let problem = format!("{} tokens and {} scores of them", tokens.words.len(), scores.len());
        return Err(gguf.refused(problem, OWN));
    }
    let mut merges = Vec::new();
    for (id, word, kind) in tokens.used().filter(|(.., kind)| *kind != BYTE) {
        // SentencePiece gives words of the users' own none, and the converter a bad one.
        let score = if kind == USER_DEFINED { 0.0 } else { scores[id] };
        for (at, _) in word.char_indices().skip(1) {
            let (left, right) = word.split_at(at);
            if let (Some(first), Some(second)) = (ids.get(left), ids.get(right)) {
                merges.push((0.0 - score, id, *first, *second));
            }
        }
    }
    // As transformers has them: the best first, then by ids.
    merges.sort_unstable_by(|one, other| {
        one.0.total_cmp(&other.0).then((one.1, one.2, one.3).cmp(&(other.1, other.2, other.3)))
    });
    let word = |id: usize| tokens.words[id].as_ref();
    let merges = merges.into_iter().map(|(_, _, left, right)| (word(left), word(right))).collect();
    let adds_space = gguf.flag("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let replace = |from: &str, to: &str| json!({"type": "Replace", "pattern": {"String": from}, "content": to});
    let prefix = adds_space.then(|| json!({"type": "Prepend", "prepend": "▁"}));
    let strip = adds_space.then(|| json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    let normalizers: Vec<Value> = prefix.into_iter().chain([replace(" ", "▁")]).collect();
    let bytes = [replace("▁", " "), json!({"type": "ByteFallback"}), json!({"type": "Fuse"})];
    let decoders: Vec<Value> = bytes.into_iter().chain(strip).collect();
    let parts = json!({
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": null,
        "post_processor": tokens.post_processor(true)?,
        "decoder": {"type": "Sequence", "decoders": decoders},
    });
    let unk_token = tokens.named("unknown")?.map(|(word, _)| word);
    let fuse_unk = unk_token.is_some();
    assemble(&tokens, parts, Bpe { vocab: ids, merges, unk_token, fuse_unk, ..Bpe::default() })
}

/// The whole file, of the parts around the model and the model.
fn assemble(tokens: &Tokens<'_>, parts: Value, model: Bpe<'_>) -> Result<String, GgufError> {
    #[derive(Serialize)]
    struct Whole<'a> {
        version: &'static str,
        truncation: Option<()>,
        padding: Option<()>,
        added_tokens: Vec<Value>,
        #[serde(flatten)]
        parts: Value,
        model: Bpe<'a>,
    }
    let (added_tokens, version) = (tokens.added(), "1.0");
    let model = Bpe { r#type: "BPE", byte_fallback: tokens.types.contains(&BYTE), ..model };
    let whole = Whole { version, truncation: None, padding: None, added_tokens, parts, model };
    Ok(serde_json::to_string(&whole).map_err(std::io::Error::from)?)
}

/// `tokenizer_config.json`: the tokens that templates know by name, and the template.
pub fn config(gguf: &Gguf) -> Result<Value, GgufError> {
    let tokens = Tokens::of(gguf, false)?;
    let token = |name| Ok::<_, GgufError>(tokens.named(name)?.map(|(word, _)| word));
    Ok(json!({
        "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false,
        "bos_token": token("bos")?, "eos_token": token("eos")?, "unk_token": token("unknown")?,
        "pad_token": token("padding")?, "chat_template": gguf.text("tokenizer.chat_template")?,
    }))
}

/// Whether a tokenizer has the words of the metadata under their ids; what it has otherwise.
pub fn difference(
    gguf: &Gguf,
    id: impl Fn(&str) -> Option<u32>,
) -> Result<Option<String>, GgufError> {
    let key = "tokenizer.ggml.tokens";
    if gguf.texts(key)?.is_none() {
        return Ok(None);
    }
    let tokens = Tokens::of(gguf, false)?;
    let is_plain = |kind| ![USER_DEFINED, UNUSED].contains(&kind);
    let mut plain = tokens.used().filter(|(.., kind)| is_plain(*kind));
    let other = plain.find(|(at, word, _)| id(word).map(|id| id as usize) != Some(*at));
    Ok(other.map(|(at, word, _)| format!("token {at} of the file is `{}`", shown(word))))
}
