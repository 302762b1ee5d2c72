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

fn import(bytes: &[u8], directory: &Path) -> Result<(), Failure> {
    let file = directory.with_file_name("model.gguf");
    fs_err::write(&file, bytes).unwrap();
    super::import(&file, directory)
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
        (
            set(word("general.architecture", "mamba")),
            "`general.architecture` is \"mamba\"; known: gemma3",
        ),
        (without("general.architecture"), "`general.architecture` is null"),
        (set(number("general.architecture", 1)), "`general.architecture` is 1"),
        (set(number("llama.expert_count", 8)), "`llama.expert_count` is not known here"),
        (
            changed(|made| {
                made.set(number("llama.attention.key_length", 4));
                made.set(number("llama.rope.dimension_count", 2));
            }),
            "and `head_dim` is",
        ),
        (
            changed(|made| {
                made.set(number("llama.attention.key_length", 1 << 30));
                made.tensors[0] = ("rope_freqs.weight".to_owned(), vec![2], 0, 0);
            }),
            "`head_dim` is 1073741824; 16777216 at most are taken",
        ),
        (
            changed(|made| made.tensors[0] = ("rope_freqs.weight".to_owned(), vec![2], 0, 0)),
            "`rope_freqs.weight` are not the divisors of a Llama 3.1",
        ),
        (
            set(number("llama.attention.sliding_window", 512)),
            "`llama.attention.sliding_window` is not known here",
        ),
        (set(word("llama.rope.scaling.type", "yarn")), "`llama.rope.scaling.type` is \"yarn\""),
        (set(number("llama.attention.head_count_kv", 3)), "2 attention heads cannot share 3"),
        (without("llama.block_count"), "num_hidden_layers"),
        (set(number("llama.block_count", 2)), "tensor `blk.1.attn_q.weight` is missing"),
        (set(number("llama.block_count", u32::MAX)), "1024 at most are taken"),
        (
            set(number("llama.feed_forward_length", 16)),
            "`blk.0.ffn_gate.weight` has the shape [8, 8], not [16, 8]",
        ),
        (set(word("tokenizer.ggml.model", "t5")), "`tokenizer.ggml.model` is \"t5\"; known"),
        (set(word("tokenizer.ggml.pre", "tekken")), "`tokenizer.ggml.pre` is \"tekken\""),
        (without("tokenizer.ggml.pre"), "`tokenizer.ggml.pre` is null"),
        (
            without("tokenizer.ggml.merges"),
            "`tokenizer.ggml.merges` in its metadata: invalid type: null",
        ),
        (set(words("tokenizer.ggml.merges", &["a c"])), "its tokenizer: "),
        (
            set(words("tokenizer.ggml.tokens", &["a", "b", "ab", "a"])),
            "two of its tokens are one word",
        ),
        (set(words("tokenizer.ggml.tokens", &["a", "b"])), "not each of its tokens has a type"),
        (
            set(word("tokenizer.ggml.model", "llama")),
            "`tokenizer.ggml.scores` in its metadata: invalid type: null",
        ),
        (set(number("tokenizer.ggml.eos_token_id", 4)), "it names no token that ends a text"),
        (without("tokenizer.ggml.eos_token_id"), "it names no token that ends a text"),
        (set(word("tokenizer.chat_template", "{% if %}")), "does not compile"),
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
    ];
    for (bytes, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let said = match expected {
            "does not compile" => {
                import(&bytes, &folder.path().join("model")).unwrap_err().to_string()
            }
            _ => refusal(&bytes),
        };
        assert!(said.contains(expected), "{said}, not {expected}");
    }
}

#[test]
fn a_directory_that_has_something_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own");
    import(&Made::sound().bytes(), &own).unwrap();
    let error = import(&Made::sound().bytes(), &own).unwrap_err();
    assert!(error.to_string().contains("not an empty directory"), "{error}");
    assert_eq!(error.blame(), Blame::Usage);
}
