//! What is refused, each by its name and place: of files that are damaged, and of sound ones that cannot be imported.

use std::path::Path;

use super::*;
use crate::diagnosis::Blame;

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

impl Made {
    /// A Llama of one layer and four tokens, all zeros.
    fn sound() -> Made {
        let entries = vec![
            word("general.architecture", "llama"),
            number("llama.attention.head_count", 2),
            float("llama.attention.layer_norm_rms_epsilon", 1e-5),
            float("llama.rope.freq_base", 10000.0),
            words("tokenizer.ggml.tokens", &["a", "  b", "ab", "</s>"]),
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

fn import(bytes: &[u8], directory: &Path) -> Result<(), Failure> {
    let file = directory.with_file_name("model.gguf");
    fs_err::write(&file, bytes).unwrap();
    let like = tempfile::tempdir().unwrap();
    let config = json!({
        "model_type": "llama", "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 4, "rms_norm_eps": 1e-5,
        "max_position_embeddings": 64, "rope_theta": 10000.0, "tie_word_embeddings": true,
    });
    // A word of the users' own is spelt otherwise in the two.
    let words = json!({"model": {"vocab": {"a": 0, "▁▁b": 1, "ab": 2, "</s>": 3, "beyond": 4}}});
    for (name, text) in [(CONFIG, config), (TOKENIZER, words)] {
        fs_err::write(like.path().join(name), text.to_string()).unwrap();
    }
    super::import(&file, like.path(), directory)
}

/// What is said of the bytes; nothing is left beside them.
fn refusal(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let error = import(bytes, &folder.path().join("model")).unwrap_err();
    let left = fs_err::read_dir(folder.path()).unwrap().count();
    assert_eq!((error.blame(), left), (Blame::Artefact, 1), "{error}");
    assert!(error.hint().is_none_or(|hint| !hint.is_empty()), "{error}");
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
fn damaged_files_are_refused() {
    let sound = Made::sound().bytes();
    let with = |at: usize, bytes: &[u8]| {
        let mut damaged = sound.clone();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        damaged
    };
    let entry = |entry: Entry| changed(|made| made.entries.push(entry));
    let tensor = |change: fn(&mut Place)| changed(|made| change(&mut made.tensors[1]));
    let unsound = "it is no GGUF file, or not a sound one";
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), unsound),
        (b"GGU".to_vec(), unsound),
        (b"PK\x03\x04 and more".to_vec(), "unknown magic"),
        (sound[..10].to_vec(), unsound),
        (sound[..200].to_vec(), unsound),
        (sound[..sound.len() - 225].to_vec(), "tensor `output_norm.weight`: tensor needs 32 bytes"),
        (with(4, &[1]), unsound),
        (with(4, &[4]), "unsupported magic/version Gguf/4"),
        (with(4, &[0, 0, 0, 3]), "unsupported magic/version"),
        (with(8, &[0xff; 8]), "tensor_count 18446744073709551615 exceeds"),
        (with(16, &[0xff; 8]), "metadata_kv_count 18446744073709551615 exceeds"),
        (with(8, &[0, 0, 0, 1]), "header declares 16777216 tensors"),
        (with(24, &[0xff; 8]), "string length 18446744073709551615 exceeds"),
        (with(24, &[0, 0, 0, 1]), "string length 16777216 exceeds remaining file bytes"),
        (entry(("a".to_owned(), 13, vec![0; 8])), "unrecognized value-type"),
        (entry(("a".to_owned(), 7, vec![2])), "unexpected bool value 2"),
        (entry(("a".to_owned(), 8, vec![0xff; 8])), "string length"),
        (
            entry(("a".to_owned(), 9, [&4_u32.to_le_bytes()[..], &[0xff; 8]].concat())),
            "array length 18446744073709551615 exceeds",
        ),
        (
            entry((
                "a".to_owned(),
                9,
                [&4_u32.to_le_bytes()[..], &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0]].concat(),
            )),
            "array of 16777215 elements needs at least",
        ),
        (entry(number("general.alignment", 0)), "`general.alignment` is 0"),
        (tensor(|tensor| tensor.1 = vec![]), "has the shape [], not [8, 8]"),
        (tensor(|tensor| tensor.1 = vec![8, 0]), "has the shape [0, 8], not [8, 8]"),
        (tensor(|tensor| tensor.1 = vec![1 << 33, 1 << 33]), "has the shape"),
        (tensor(|tensor| tensor.2 = 14), "64 is not divisible by the block size 256"),
        (tensor(|tensor| tensor.3 = u64::MAX - 31), "tensor needs 256 bytes at offset"),
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
        (set(word("general.architecture", "mamba")), "`general.architecture` is \"mamba\""),
        (without("general.architecture"), "`general.architecture` is null"),
        (set(number("llama.attention.head_count", 4)), "`llama.attention.head_count` is 4, and"),
        (set(float("llama.rope.freq_base", 5e5)), "config.json has 10000"),
        (
            changed(|made| made.tensors[0] = ("rope_freqs.weight".to_owned(), vec![2], 0, 0)),
            "tensor `blk.0.attn_q.weight` is missing",
        ),
        (
            without("tokenizer.ggml.tokens"),
            "`tokenizer.ggml.tokens` in its metadata: invalid type: null",
        ),
        (
            set(words("tokenizer.ggml.tokens", &["a", "  b", "ac"])),
            "token 2 is `ac`, and tokenizer.json has `ab`",
        ),
        (changed(|made| made.tensors[0].2 = 16), "unknown dtype for tensor 16"),
        (changed(|made| made.tensors[0].2 = 77), "unknown dtype for tensor 77"),
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
            "tensor `output_norm.weight`: it has numbers that are not finite",
        ),
    ];
    for (bytes, expected) in cases {
        let said = refusal(&bytes);
        assert!(said.contains(expected), "{said}, not {expected}");
    }
}

#[test]
fn a_directory_that_has_something_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own");
    import(&Made::sound().bytes(), &own).unwrap();
    for name in [CONFIG, TOKENIZER, SINGLE, PROVENANCE] {
        assert!(own.join(name).is_file(), "{name}");
    }
    let error = import(&Made::sound().bytes(), &own).unwrap_err();
    assert!(error.to_string().contains("not an empty directory"), "{error}");
    assert_eq!(error.blame(), Blame::Usage);
}
