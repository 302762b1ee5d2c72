//! Bundles in hostile hands: any change of any kind, and none of them is taken for what was signed.
//!
//! `BUNDLE_MUTATIONS=10000 cargo test --test airgap mutations -- --nocapture` tries so many.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use wardround::digest::sha256;

use super::maker::{Scratch, Signer, append, check, copy, files, install_to};

/// Small numbers that look random and are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// What hostile hands have: the bundle, its files, another bundle of the same sender, a key of their own.
struct Hands<'a> {
    bundle: &'a Path,
    names: &'a [String],
    other: &'a Path,
    own: &'a Signer,
}

/// What changes a bundle.
type Mutate = fn(&Hands, &mut Random);

const MUTATIONS: [(&str, Mutate); 18] = [
    ("a bit flipped", flip),
    ("a file cut", cut),
    ("bytes added", grow),
    ("a file dropped", drop_file),
    ("a file added", add),
    ("two files swapped", swap),
    ("a file renamed", rename),
    ("a file that is a link", link),
    ("a folder that is a link", link_folder),
    ("a file that is a folder", folder),
    ("a twin in capitals", twin),
    ("an empty folder", empty),
    ("a line that leads outside", outside),
    ("the signature gone", unsigned),
    ("the signature cut", cut_signature),
    ("the signature of another key", resign),
    ("the signature of another bundle", borrow),
    ("sums made to fit", fit),
];

fn flip(hands: &Hands, random: &mut Random) {
    loop {
        let name = random.of(hands.names);
        let path = hands.bundle.join(name);
        let mut bytes = fs::read(&path).unwrap();
        if bytes.is_empty() {
            continue;
        }
        // The first line of a signature is a comment that nothing vouches for and nothing is read from.
        let first = if name.ends_with(".minisig") {
            bytes.iter().position(|byte| *byte == b'\n').unwrap()
        } else {
            0
        };
        let place = first + random.below(bytes.len() - first);
        bytes[place] ^= 1 << random.below(8);
        return fs::write(path, bytes).unwrap();
    }
}

fn cut(hands: &Hands, random: &mut Random) {
    let path = hands.bundle.join(random.of(hands.names));
    let length = fs::metadata(&path).unwrap().len() as usize;
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(random.below(length.max(1)) as u64).unwrap();
}

fn grow(hands: &Hands, random: &mut Random) {
    append(
        &hands.bundle.join(random.of(hands.names)),
        random.of::<&[u8]>(&[b"\0", b"\n", b" ", b"x\n", b"{}"]),
    );
}

fn drop_file(hands: &Hands, random: &mut Random) {
    fs::remove_file(hands.bundle.join(random.of(hands.names))).unwrap();
}

fn add(hands: &Hands, random: &mut Random) {
    let names = [
        "bin/helper",
        "models/llama/extra.json",
        "x",
        "SHA256SUMS.txt",
        "licences/more/LICENCE",
        ".hidden",
        "a b",
        "bin/.x",
        "models/llama/config.json.001",
        "MANIFEST.json.bak",
    ];
    let path = hands.bundle.join(random.of(&names));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, *random.of(&["", "x", "#!/bin/sh\n"])).unwrap();
}

fn swap(hands: &Hands, random: &mut Random) {
    loop {
        let (one, two) =
            (hands.bundle.join(random.of(hands.names)), hands.bundle.join(random.of(hands.names)));
        let (first, second) = (fs::read(&one).unwrap(), fs::read(&two).unwrap());
        if first != second {
            fs::write(one, second).unwrap();
            return fs::write(two, first).unwrap();
        }
    }
}

fn rename(hands: &Hands, random: &mut Random) {
    let path = hands.bundle.join(random.of(hands.names));
    let to = *random.of(&["renamed", "models/llama/renamed.json", "bin/renamed", "SHA256SUMS2"]);
    fs::rename(path, hands.bundle.join(to)).unwrap();
}

fn link(hands: &Hands, random: &mut Random) {
    let name = random.of(hands.names);
    let path = hands.bundle.join(name);
    fs::remove_file(&path).unwrap();
    // To the very bytes that it had: it may lead elsewhere tomorrow.
    std::os::unix::fs::symlink(hands.other.join("..").join("whole").join(name), path).unwrap();
}

fn link_folder(hands: &Hands, random: &mut Random) {
    let name = *random.of(&["models", "bin", "licences", "models/llama"]);
    fs::remove_dir_all(hands.bundle.join(name)).unwrap();
    std::os::unix::fs::symlink(
        hands.other.join("..").join("whole").join(name),
        hands.bundle.join(name),
    )
    .unwrap();
}

fn folder(hands: &Hands, random: &mut Random) {
    let path = hands.bundle.join(random.of(hands.names));
    fs::remove_file(&path).unwrap();
    fs::create_dir(path).unwrap();
}

fn twin(hands: &Hands, random: &mut Random) {
    let name = random.of(hands.names);
    let upper = match name.rsplit_once('/') {
        Some((folder, name)) => format!("{folder}/{}", name.to_uppercase()),
        None => name.to_lowercase(),
    };
    let path = hands.bundle.join(&upper);
    match path.exists() {
        true => fs::write(hands.bundle.join("readme.html"), "").unwrap(),
        false => _ = fs::copy(hands.bundle.join(name), path).unwrap(),
    }
}

fn empty(hands: &Hands, random: &mut Random) {
    fs::create_dir_all(hands.bundle.join(random.of(&[
        "x",
        "models/other",
        "models/llama/sub/sub",
    ])))
    .unwrap();
}

fn outside(hands: &Hands, random: &mut Random) {
    let line = *random.of(&[
        "../x",
        "/etc/passwd",
        "models/../../x",
        "./MANIFEST.json",
        "models//llama/x",
    ]);
    let path = hands.bundle.join("SHA256SUMS");
    append(&path, format!("{}  {line}\n", sha256("x")).as_bytes());
    // As the sender would have signed it, but by another key.
    if random.below(2) == 0 {
        hands.own.sign_bundle(hands.bundle);
    }
}

fn unsigned(hands: &Hands, random: &mut Random) {
    fs::remove_file(hands.bundle.join("SHA256SUMS.minisig")).unwrap();
    if random.below(2) == 0 {
        fs::create_dir(hands.bundle.join("SHA256SUMS.minisig")).unwrap();
    }
}

fn cut_signature(hands: &Hands, random: &mut Random) {
    let path = hands.bundle.join("SHA256SUMS.minisig");
    let text = fs::read(&path).unwrap();
    fs::write(path, &text[..random.below(text.len())]).unwrap();
}

fn resign(hands: &Hands, _: &mut Random) {
    hands.own.sign_bundle(hands.bundle);
}

fn borrow(hands: &Hands, _: &mut Random) {
    fs::copy(hands.other.join("SHA256SUMS.minisig"), hands.bundle.join("SHA256SUMS.minisig"))
        .unwrap();
}

/// A file is changed, and manifest and sums with it, so that sums alone would not tell.
fn fit(hands: &Hands, random: &mut Random) {
    let path = hands.bundle.join("models/llama/model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    let before = sha256(&bytes);
    let place = random.below(bytes.len());
    bytes[place] ^= 1 << random.below(8);
    fs::write(path, &bytes).unwrap();
    for name in ["MANIFEST.json", "SHA256SUMS"] {
        let path = hands.bundle.join(name);
        let old = sha256(fs::read(hands.bundle.join("MANIFEST.json")).unwrap());
        let text = fs::read_to_string(&path).unwrap().replace(&before, &sha256(&bytes));
        fs::write(&path, &text).unwrap();
        if name == "MANIFEST.json" {
            let sums = hands.bundle.join("SHA256SUMS");
            let text = fs::read_to_string(&sums).unwrap().replace(&old, &sha256(&text));
            fs::write(sums, text).unwrap();
        }
    }
    // Sums alone are content: it is the signature that tells.
    check(hands.bundle, &[]).unwrap();
}

#[test]
fn no_changed_bundle_is_taken_for_the_one_that_was_signed() {
    let count = std::env::var("BUNDLE_MUTATIONS").map_or(360, |count| count.parse().unwrap());
    let scratch = Scratch::new();
    let (signer, own) = (Signer::new(), Signer::new());
    let whole = scratch.bundle("whole", &signer, |_| {});
    let other =
        scratch.bundle("other", &signer, |request| request.version = "1.1".parse().unwrap());
    let names = files(&whole);
    let keys = [signer.trusted()];
    check(&whole, &keys).unwrap();
    let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for number in 0..count {
        let (kind, mutate) = MUTATIONS[number % MUTATIONS.len()];
        let bundle = scratch.path("changed");
        copy(&whole, &bundle);
        mutate(&Hands { bundle: &bundle, names: &names, other: &other, own: &own }, &mut random);
        if check(&bundle, &keys).is_ok() {
            let kept = scratch.directory_to_keep();
            panic!("number {number}, {kind}, was accepted: {}", kept.display());
        }
        *refused.entry(kind).or_default() += 1;
        // Every tenth is tried on an installation too: nothing of it stays.
        if number % 10 == 0 {
            let root = scratch.path("root");
            assert!(install_to(&root, &bundle, &signer, &[]).is_err(), "number {number}, {kind}");
            let left = fs::read_dir(root.join("versions")).map_or(0, Iterator::count);
            assert!(left == 0 && !root.join("current").exists(), "number {number}, {kind}");
        }
        fs::remove_dir_all(&bundle).unwrap();
    }
    println!("{count} changed bundles, none accepted: {refused:?}");
    assert_eq!(refused.values().sum::<usize>(), count);
    check(&whole, &keys).unwrap();
}
