//! What is refused, each by its name and place: of files that are damaged, and of sound ones that cannot be imported.

use std::path::Path;

use super::*;
use crate::diagnosis::{Blame, Diagnosis};
use crate::model::WantedType;

/// A key, the number of its type, and its bytes.
type Entry = (String, u32, Vec<u8>);
/// Name, sizes, type, start.
type Place = (String, Vec<u64>, u32, u64);

struct Made {
    version: u32,
    entries: Vec<Entry>,
    tensors: Vec<Place>,
    data: usize,
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

fn number(key: &str, value: u32) -> Entry {
    (key.to_owned(), 4, value.to_le_bytes().to_vec())
}

fn float(key: &str, value: f32) -> Entry {
    (key.to_owned(), 6, value.to_le_bytes().to_vec())
}

fn word(key: &str, value: &str) -> Entry {
    (key.to_owned(), 8, text(value))
}

fn list(key: &str, kind: u32, items: &[Vec<u8>]) -> Entry {
    let head = [&kind.to_le_bytes()[..], &(items.len() as u64).to_le_bytes()].concat();
    (key.to_owned(), 9, [head, items.concat()].concat())
}

fn words(key: &str, items: &[&str]) -> Entry {
    list(key, 8, &items.iter().map(|item| text(item)).collect::<Vec<_>>())
}

fn kinds(items: &[i32]) -> Entry {
    let items: Vec<Vec<u8>> = items.iter().map(|item| item.to_le_bytes().to_vec()).collect();
    list("tokenizer.ggml.token_type", 5, &items)
}

impl Made {
    /// A Llama of one layer and four tokens, all zeros.
    fn sound() -> Made {
        let entries = vec![
            word("general.architecture", "llama"),
            number("llama.block_count", 1),
            number("llama.context_length", 64),
            number("llama.embedding_length", 8),
            number("llama.feed_forward_length", 8),
            number("llama.attention.head_count", 2),
            float("llama.attention.layer_norm_rms_epsilon", 1e-5),
            word("tokenizer.ggml.model", "gpt2"),
            word("tokenizer.ggml.pre", "smollm"),
            words("tokenizer.ggml.tokens", &["a", "b", "ab", "</s>"]),
            kinds(&[1, 1, 1, 3]),
            words("tokenizer.ggml.merges", &["a b"]),
            number("tokenizer.ggml.eos_token_id", 3),
        ];
        let matrix =
            ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"];
        let norms = ["attn_norm", "ffn_norm"];
        let blocks = matrix.map(|name| (format!("blk.0.{name}.weight"), vec![8, 8]));
        let norms = norms.map(|name| (format!("blk.0.{name}.weight"), vec![8]));
        let tables = [("token_embd", vec![8, 4]), ("output_norm", vec![8])];
        let tables = tables.map(|(name, shape)| (format!("{name}.weight"), shape));
        let all = blocks.into_iter().chain(norms).chain(tables).zip(0..);
        let tensors: Vec<_> = all.map(|((name, shape), at)| (name, shape, 0, at * 256)).collect();
        Made { version: 3, entries, data: tensors.len() * 256, tensors }
    }

    fn set(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|other| other.0 == entry.0) {
            Some(other) => *other = entry,
            None => self.entries.push(entry),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend((self.tensors.len() as u64).to_le_bytes());
        bytes.extend((self.entries.len() as u64).to_le_bytes());
        for (key, kind, value) in &self.entries {
            bytes.extend([text(key), kind.to_le_bytes().to_vec(), value.clone()].concat());
        }
        for (name, shape, kind, start) in &self.tensors {
            bytes.extend(text(name));
            bytes.extend((shape.len() as u32).to_le_bytes());
            bytes.extend(shape.iter().flat_map(|size| size.to_le_bytes()));
            bytes.extend([&kind.to_le_bytes()[..], &start.to_le_bytes()].concat());
        }
        bytes.resize(bytes.len().next_multiple_of(32) + self.data, 0);
        bytes
    }
}

fn import(bytes: &[u8], directory: &Path, tokenizer: Option<&Path>) -> Result<(), GgufError> {
    let file = directory.with_file_name("model.gguf");
    fs_err::write(&file, bytes).unwrap();
    let (directory, tokenizer) = (directory.to_owned(), tokenizer.map(Path::to_owned));
    let import = Import { file, directory, tokenizer, dtype: WantedType::Auto };
    import.run(&mut |_, _| ())
}

/// What is said of the bytes; nothing is left beside them.
fn refusal(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let error = import(bytes, &folder.path().join("model"), None).unwrap_err();
    let left = fs_err::read_dir(folder.path()).unwrap().count();
    assert_eq!((error.blame(), left), (Blame::Artefact, 1), "{error}");
    assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{error}");
    let said = error.to_string();
    assert!(said.contains("model.gguf"), "{said}");
    said
}

fn changed(change: impl FnOnce(&mut Made)) -> Vec<u8> {
    let mut made = Made::sound();
    change(&mut made);
    made.bytes()
}

#[test]
fn damaged_headers_are_refused_with_their_place() {
    let sound = Made::sound().bytes();
    let with = |at: usize, bytes: &[u8]| {
        let mut damaged = sound.clone();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        damaged
    };
    let entry = |entry: Entry| changed(|made| made.entries.push(entry));
    let tensor = |change: fn(&mut Place)| changed(|made| change(&mut made.tensors[1]));
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "it is no GGUF file"),
        (b"GGU".to_vec(), "it is no GGUF file"),
        (b"PK\x03\x04 and more".to_vec(), "it is no GGUF file"),
        (sound[..10].to_vec(), "byte 8: the file ends in its header"),
        (sound[..200].to_vec(), "the file ends in its header"),
        (sound[..sound.len() - 225].to_vec(), "tensor `output_norm.weight` ends behind the file"),
        (with(4, &[1]), "GGUF of version 1"),
        (with(4, &[4]), "GGUF of version 4"),
        (with(4, &[0, 0, 0, 3]), "big-endian"),
        (with(8, &[0xff; 8]), "18446744073709551615 tensors; 65536 at most"),
        (with(16, &[0xff; 8]), "entries of metadata; 65536 at most"),
        (with(24, &[0xff; 8]), "a name of 18446744073709551615 bytes"),
        (entry(number("llama.block_count", 2)), "`llama.block_count` is there twice"),
        (entry(("a".to_owned(), 13, vec![0; 8])), "metadata of an unknown type, 13"),
        (entry(("a".to_owned(), 7, vec![2])), "a flag is 2"),
        (entry(("a".to_owned(), 8, vec![0xff; 8])), "the file ends in its header"),
        (
            entry((
                "a".to_owned(),
                8,
                [text("x"), text("")].concat()[..8].iter().copied().chain([0xff]).collect(),
            )),
            "not UTF-8",
        ),
        (
            entry(("a".to_owned(), 9, [9_u32.to_le_bytes(), [0; 4], [0; 4]].concat())),
            "a list of lists",
        ),
        (
            entry(("a".to_owned(), 9, [&4_u32.to_le_bytes()[..], &[0xff; 8]].concat())),
            "the file ends in its header",
        ),
        (entry(number("general.alignment", 24)), "`general.alignment` is 24"),
        (entry(number("general.alignment", 0)), "`general.alignment` is 0"),
        (
            tensor(|tensor| tensor.0 = "blk.0.attn_q.weight".to_owned()),
            "tensor `blk.0.attn_q.weight` is there twice",
        ),
        (tensor(|tensor| tensor.1 = vec![]), "has 0 dimensions"),
        (tensor(|tensor| tensor.1 = vec![8, 0]), "has the shape [8, 0] in F32"),
        (tensor(|tensor| tensor.1 = vec![1 << 33, 1 << 33]), "has the shape"),
        (tensor(|tensor| tensor.2 = 8), "has the shape [8, 8] in Q8_0"),
        (tensor(|tensor| tensor.3 = 255), "`blk.0.attn_k.weight` is not aligned"),
        (tensor(|tensor| tensor.3 = u64::MAX - 31), "`blk.0.attn_k.weight` ends behind the file"),
        (
            tensor(|tensor| tensor.3 = 224),
            "tensors `blk.0.attn_q.weight` and `blk.0.attn_k.weight` overlap",
        ),
    ];
    for (bytes, expected) in cases {
        let said = refusal(&bytes);
        assert!(said.contains(expected), "{said}, not {expected}");
    }
}

#[test]
fn what_cannot_be_imported_is_refused_by_name() {
    let set = |entry: Entry| changed(|made| made.set(entry));
    let without = |key: &str| changed(|made| made.entries.retain(|entry| entry.0 != key));
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (set(word("general.architecture", "mamba")), "its architecture is mamba"),
        (without("general.architecture"), "`general.architecture` is missing"),
        (
            set(number("general.architecture", 1)),
            "`general.architecture` in its metadata is not a text",
        ),
        (set(word("general.type", "adapter")), "no whole model (`general.type` is adapter)"),
        (set(number("split.count", 3)), "one of 3 parts (`split.count`)"),
        (set(number("llama.expert_count", 8)), "`llama.expert_count` is not known here"),
        (set(number("llama.rope.dimension_count", 2)), "`llama.rope.dimension_count` is 2"),
        (
            changed(|made| {
                made.set(number("llama.attention.key_length", 1 << 30));
                made.tensors[0] = ("rope_freqs.weight".to_owned(), vec![2], 0, 0);
            }),
            "`rope_freqs.weight` are not the divisors of a Llama 3.1",
        ),
        (
            changed(|made| made.tensors[0] = ("rope_freqs.weight".to_owned(), vec![2], 0, 0)),
            "`rope_freqs.weight` are not the divisors of a Llama 3.1",
        ),
        (
            set(number("llama.attention.sliding_window", 512)),
            "`llama.attention.sliding_window` is not known here",
        ),
        (set(word("llama.rope.scaling.type", "yarn")), "`llama.rope.scaling.type` is yarn"),
        (set(number("llama.attention.head_count_kv", 3)), "2 attention heads cannot share 3"),
        (without("llama.block_count"), "`llama.block_count` is missing"),
        (set(number("llama.block_count", 2)), "tensor `blk.1.attn_norm.weight` is missing"),
        (set(number("llama.block_count", u32::MAX)), "1024 at most are taken"),
        (
            set(number("llama.feed_forward_length", 16)),
            "`blk.0.ffn_gate.weight` has the shape [8, 8], not [16, 8]",
        ),
        (set(word("tokenizer.ggml.model", "t5")), "of the kind t5"),
        (set(word("tokenizer.ggml.pre", "tekken")), "`tokenizer.ggml.pre` is tekken"),
        (without("tokenizer.ggml.pre"), "`tokenizer.ggml.pre` is not there"),
        (without("tokenizer.ggml.merges"), "`tokenizer.ggml.merges` is missing"),
        (
            set(words("tokenizer.ggml.merges", &["a c"])),
            "`a c` in `tokenizer.ggml.merges` are no two tokens",
        ),
        (
            set(words("tokenizer.ggml.tokens", &["a", "b", "ab", "a"])),
            "tokens 0 and 3 are both `a`",
        ),
        (set(words("tokenizer.ggml.tokens", &["a", "b"])), "2 tokens and 4 types"),
        (set(kinds(&[1, 1, 9, 3])), "token 2 is of the unknown type 9"),
        (set(word("tokenizer.ggml.model", "llama")), "`tokenizer.ggml.scores` is missing"),
        (
            set(number("tokenizer.ggml.eos_token_id", 4)),
            "`tokenizer.ggml.eos_token_id` is 4, and there are 4 tokens",
        ),
        (without("tokenizer.ggml.eos_token_id"), "it names no token that ends a text"),
        (set(word("tokenizer.chat_template", "{% if %}")), "does not compile"),
        (changed(|made| made.tensors[0].2 = 16), "is of the type IQ2_XXS"),
        (changed(|made| made.tensors[0].2 = 77), "is of the type 77"),
        (
            changed(|made| made.tensors[0].0 = "blk.0.attn_q.bias".to_owned()),
            "tensor `blk.0.attn_q.weight` is missing",
        ),
        (
            changed(|made| {
                made.tensors.push(("v.patch_embd.weight".to_owned(), vec![8], 0, 11 * 256))
            })
            .into_iter()
            .chain([0; 256])
            .collect(),
            "tensor `v.patch_embd.weight` is not part of a llama model",
        ),
        (
            {
                let mut bytes = Made::sound().bytes();
                let last = bytes.len() - 256;
                bytes[last..last + 4].copy_from_slice(&f32::NAN.to_le_bytes());
                bytes
            },
            "tensor `output_norm.weight` has numbers that are not finite",
        ),
    ];
    for (bytes, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let said = match expected {
            "does not compile" => {
                import(&bytes, &folder.path().join("model"), None).unwrap_err().to_string()
            }
            _ => refusal(&bytes),
        };
        assert!(said.contains(expected), "{said}, not {expected}");
    }
}

#[test]
fn a_tokenizer_that_is_given_is_taken_if_it_is_the_models() {
    let folder = tempfile::tempdir().unwrap();
    let [own, other, third] = ["own", "other", "third"].map(|name| folder.path().join(name));
    import(&Made::sound().bytes(), &own, None).unwrap();
    let unknown = changed(|made| {
        made.set(word("tokenizer.ggml.pre", "tekken"));
        made.set(word("tokenizer.chat_template", "{{ messages[0].content }}"));
    });
    fs_err::remove_file(own.join("tokenizer_config.json")).unwrap();
    import(&unknown, &other, Some(&own)).unwrap();
    let read = |folder: &Path| fs_err::read(folder.join("tokenizer.json")).unwrap();
    assert_eq!(read(&own), read(&other));
    let config = fs_err::read_to_string(other.join("tokenizer_config.json")).unwrap();
    assert!(config.contains("messages[0].content") && config.contains("</s>"), "{config}");
    let strange = changed(|made| {
        made.set(words("tokenizer.ggml.tokens", &["b", "a", "ab", "</s>"]));
    });
    let error = import(&strange, &third, Some(&own)).unwrap_err();
    assert!(error.to_string().contains("token 0 of the file is `b`"), "{error}");
    assert_eq!(error.blame(), Blame::Usage);
    let error = import(&strange, &own, None).unwrap_err();
    assert!(error.to_string().contains("not an empty directory"), "{error}");
    assert!(!third.exists());
}
