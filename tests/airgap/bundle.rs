//! Bundles as senders and hospitals meet them: made, signed, carried through hostile hands, checked, used where they lie.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use minisign::KeyPair;
use wardround::bundle::create::create;
use wardround::bundle::{Size, verify};
use wardround::digest::sha256;
use wardround::model::Family;

use crate::common;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A folder that goes when the test ends, and who signs in it.
struct Scratch {
    folder: tempfile::TempDir,
    signer: KeyPair,
}

impl Scratch {
    fn new() -> Scratch {
        let scratch = Scratch {
            folder: tempfile::tempdir().unwrap(),
            signer: KeyPair::generate_unencrypted_keypair().unwrap(),
        };
        let key = format!("untrusted comment: vendor\n{}\n", scratch.signer.pk.to_base64());
        scratch.write("vendor.pub", key);
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A checkpoint by its names alone: bundles look into none of it.
    fn model(&self, name: &str) {
        for (file, text) in [("config.json", "{}"), ("tokenizer.json", "{\"a\": 1}")] {
            self.write(&format!("{name}/{file}"), text);
        }
        self.write(&format!("{name}/model.safetensors"), "weights".repeat(40));
    }

    /// A folder of one model and a program.
    fn folder(&self, name: &str) -> PathBuf {
        let program = self.write(&format!("{name}/bin/program"), "#!/bin/sh\n");
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            self.write(&format!("{name}/licences/{licence}"), licence);
        }
        self.model(&format!("{name}/models/llama"));
        self.path(name)
    }

    #[track_caller]
    fn refused(&self, folder: &Path, words: &str) {
        let failure = create(folder).unwrap_err();
        let (found, said) = (failure.blame().exit_code(), failure.to_string());
        assert!(found == 2 && said.contains(words), "{found}: {said}");
        assert!(!folder.join("SHA256SUMS").exists());
    }

    /// Makes a bundle and signs it.
    fn bundle(&self, name: &str, change: impl FnOnce(&Path)) -> PathBuf {
        let folder = self.folder(name);
        change(&folder);
        create(&folder).unwrap();
        sign(&self.signer, &folder);
        folder
    }

    fn verify(&self, bundle: &Path) -> Result<(Size, String), String> {
        verify::verify(bundle, &self.path("vendor.pub")).map_err(|failure| {
            assert_eq!(failure.blame().exit_code(), 3, "{failure}");
            failure.to_string()
        })
    }

    #[track_caller]
    fn wrong(&self, bundle: &Path, words: &str) {
        let said = self.verify(bundle).map(|(_, comment)| comment).unwrap_err();
        assert!(said.contains(words), "{words} in {said}");
    }

    /// Runs the binary here, without the user's environment.
    fn wardround(&self, words: &[&str], environment: &[(&str, &Path)]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wardround"));
        command.current_dir(self.folder.path()).args(words);
        for (name, _) in std::env::vars() {
            if name.starts_with("WARDROUND_") || name.starts_with("HF_") {
                command.env_remove(name);
            }
        }
        command.envs(environment.iter().copied()).output().unwrap()
    }
}

fn sign(signer: &KeyPair, bundle: &Path) {
    let sums = fs::read(bundle.join("SHA256SUMS")).unwrap();
    let signature = minisign::sign(None, &signer.sk, sums.as_slice(), Some("ward 1"), None);
    fs::write(bundle.join("SHA256SUMS.minisig"), signature.unwrap().into_string()).unwrap();
}

/// Every file below a folder, by its path there.
fn files(folder: &Path) -> Vec<String> {
    fn add(folder: &Path, prefix: &str, all: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => add(&entry.path(), &format!("{name}/"), all),
                false => all.push(name),
            }
        }
    }
    let mut all = Vec::new();
    add(folder, "", &mut all);
    all.sort();
    all
}

fn copy(from: &Path, to: &Path) {
    for name in files(from) {
        let target = to.join(&name);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(from.join(&name), target).unwrap();
    }
}

fn append(path: &Path, bytes: &[u8]) {
    let mut all = fs::read(path).unwrap();
    all.extend(bytes);
    fs::write(path, all).unwrap();
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Whether a program is here and content.
fn content(directory: &Path, words: &[&str]) -> Option<bool> {
    let output = Command::new(words[0]).args(&words[1..]).current_dir(directory).output();
    output.ok().map(|output| output.status.success())
}

#[test]
fn coreutils_and_minisign_check_it_without_us() {
    let scratch = Scratch::new();
    let bundle = scratch.bundle("bundle", |_| {
        for name in ["a b", "Grüße", " *led"] {
            scratch.write(&format!("bundle/own/{name}"), name);
        }
    });
    let names = files(&bundle);
    let (made, comment) = scratch.verify(&bundle).unwrap();
    assert_eq!((comment.as_str(), made.files), ("ward 1", names.len() - 2));
    let sums = || content(&bundle, &["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"]);
    assert_eq!(sums(), Some(true));
    let minisign = ["minisign", "-V", "-p", "../vendor.pub", "-m", "SHA256SUMS"];
    // Debian's package; not on every machine that tests.
    assert_ne!(content(&bundle, &minisign), Some(false));
    let made = ["minisign", "-G", "-W", "-f", "-p", "../vendor.pub", "-s", "../vendor.key"];
    if content(&bundle, &made) == Some(true) {
        scratch.wrong(&bundle, "different key");
        assert_eq!(
            content(&bundle, &["minisign", "-S", "-s", "../vendor.key", "-m", "SHA256SUMS"]),
            Some(true)
        );
        scratch.verify(&bundle).unwrap();
    }
    append(&bundle.join("own/a b"), b" ");
    assert_eq!(sums(), Some(false));
    scratch.wrong(&bundle, "changed  own/a b: its sha256 is");
}

#[test]
fn everything_that_is_wrong_is_named_in_one_pass() {
    let scratch = Scratch::new();
    let bundle = scratch.bundle("bundle", |_| scratch.model("bundle/models/qwen"));
    append(&bundle.join("models/llama/config.json"), b" ");
    fs::write(bundle.join("models/llama/tokenizer.json"), "{\"a\": 2}").unwrap();
    fs::remove_file(bundle.join("licences/LICENSE-MIT")).unwrap();
    fs::write(bundle.join("models/llama/extra.bin"), "").unwrap();
    fs::write(bundle.join("models/llama/CONFIG.json"), "{}").unwrap();
    fs::write(bundle.join("models/llama/\u{1b}[2J"), "").unwrap();
    let setuid = fs::Permissions::from_mode(0o4777);
    fs::set_permissions(bundle.join("licences/LICENSE-APACHE"), setuid).unwrap();
    fs::create_dir(bundle.join("empty")).unwrap();
    symlink("/etc/passwd", bundle.join("models/llama/link")).unwrap();
    // To the very bytes that it had: it may lead elsewhere tomorrow.
    fs::remove_file(bundle.join("bin/program")).unwrap();
    symlink(scratch.write("program", "#!/bin/sh\n"), bundle.join("bin/program")).unwrap();
    fs::rename(bundle.join("models/qwen"), scratch.path("elsewhere")).unwrap();
    symlink(scratch.path("elsewhere"), bundle.join("models/qwen")).unwrap();
    pipe(&bundle.join("pipe"));
    fs::remove_file(bundle.join("models/llama/model.safetensors")).unwrap();
    pipe(&bundle.join("models/llama/model.safetensors"));
    let said = scratch.verify(&bundle).map(|(_, comment)| comment).unwrap_err();
    for line in [
        "changed  models/llama/config.json: its sha256 is",
        "changed  models/llama/tokenizer.json: its sha256 is",
        "changed  licences/LICENSE-APACHE: its mode is 4777",
        "missing  licences/LICENSE-MIT",
        "missing  models/qwen/config.json",
        "extra    models/llama/extra.bin",
        "extra    models/llama/CONFIG.json",
        "extra    models/llama/\\u{1b}[2J",
        "extra    empty/: it is an empty folder",
        "linked   models/llama/link",
        "linked   bin/program",
        "linked   models/qwen",
        "extra    pipe: it is no file",
        "extra    models/llama/model.safetensors: it is no file",
    ] {
        assert!(said.contains(&format!("\n  {line}")), "{line} in {said}");
    }
}

#[test]
fn a_file_that_claims_any_length_is_not_read_to_its_end() {
    let scratch = Scratch::new();
    let bundle = scratch.bundle("bundle", |_| {});
    let weights =
        fs::OpenOptions::new().write(true).open(bundle.join("models/llama/model.safetensors"));
    weights.unwrap().set_len(1 << 43).unwrap();
    scratch.wrong(&bundle, "model.safetensors: 8796093022208 bytes are more than a bundle has");
    fs::write(bundle.join("SHA256SUMS"), "").unwrap();
    let sums = fs::OpenOptions::new().write(true).open(bundle.join("SHA256SUMS")).unwrap();
    sums.set_len(1 << 43).unwrap();
    scratch.wrong(&bundle, "it is longer than");
}

#[test]
fn only_the_key_that_was_given_counts_and_only_for_this_list() {
    let scratch = Scratch::new();
    let (bundle, other) = (scratch.bundle("bundle", |_| {}), Scratch::new());
    let signature = bundle.join("SHA256SUMS.minisig");
    sign(&other.signer, &bundle);
    scratch.wrong(&bundle, "different key");
    fs::remove_file(&signature).unwrap();
    scratch.wrong(&bundle, "SHA256SUMS.minisig: ");
    let another = scratch.bundle("another", |folder| {
        fs::remove_dir_all(folder.join("models")).unwrap();
    });
    fs::copy(another.join("SHA256SUMS.minisig"), &signature).unwrap();
    scratch.wrong(&bundle, "verification failed");
    sign(&scratch.signer, &bundle);
    fs::rename(&signature, scratch.path("kept")).unwrap();
    symlink(scratch.path("kept"), &signature).unwrap();
    scratch.wrong(&bundle, "it is a link");
    fs::remove_file(&signature).unwrap();
    pipe(&signature);
    scratch.wrong(&bundle, "it is no file");
    fs::remove_file(&signature).unwrap();
    // The comment is signed too.
    let text = fs::read_to_string(scratch.path("kept")).unwrap();
    fs::write(&signature, text.replace("ward 1", "ward 2")).unwrap();
    scratch.wrong(&bundle, "verification failed");
    fs::write(&signature, text).unwrap();
    scratch.verify(&bundle).unwrap();
    // Nothing is read before the signature.
    append(&bundle.join("SHA256SUMS"), b"nonsense\n");
    scratch.wrong(&bundle, "verification failed");
    scratch.write("vendor.pub", "nonsense\n");
    let failure = verify::verify(&bundle, &scratch.path("vendor.pub")).err().unwrap();
    assert_eq!(failure.blame().exit_code(), 2, "{failure}");
}

#[test]
fn a_good_signature_does_not_make_a_bad_list_good() {
    let scratch = Scratch::new();
    let whole = scratch.bundle("whole", |_| {});
    let sum = sha256("x");
    let lines = fs::read_to_string(whole.join("SHA256SUMS")).unwrap();
    let without: String =
        lines.split_inclusive('\n').filter(|line| !line.contains("bin/program")).collect();
    for (number, (list, words)) in [
        (format!("{lines}{sum}  ../x\n"), "leads elsewhere"),
        (format!("{lines}{sum}  /etc/passwd\n"), "leads elsewhere"),
        (format!("{lines}{sum}  models/llama/CONFIG.json\n"), "one on some file systems"),
        (format!("{lines}{sum}  bin/program\n"), "again"),
        (format!("{lines}{sum}  unlisted\n"), "missing  unlisted"),
        (format!("{lines}{sum}  SHA256SUMS\n"), "missing  SHA256SUMS"),
        (format!("{lines}nonsense\n"), "no `SUM  NAME`"),
        (without, "extra    bin/program"),
    ]
    .into_iter()
    .enumerate()
    {
        let bundle = scratch.path(&format!("case{number}"));
        copy(&whole, &bundle);
        fs::write(bundle.join("SHA256SUMS"), list).unwrap();
        sign(&scratch.signer, &bundle);
        scratch.wrong(&bundle, words);
    }
}

#[test]
fn models_lie_as_the_hub_lays_them_and_are_used_where_they_lie() {
    let scratch = Scratch::new();
    // A copy of the hub's cache, whose links were followed.
    let repository = scratch.path("bundle/hub/models--org--tiny");
    copy(&common::synthetic(Family::Llama), &repository.join("snapshots").join(COMMIT));
    scratch.write("bundle/hub/models--org--tiny/refs/main", COMMIT);
    scratch.write("bundle/data/notes.csv", "Text ID,Text\nms-test-1,a\n");
    let made = scratch.wardround(&["bundle", "create", "bundle"], &[]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert_eq!(made.stdout, b"minisign -S -s KEY -m bundle/SHA256SUMS\n");
    let bundle = scratch.path("bundle");
    sign(&scratch.signer, &bundle);
    for words in [
        &["bundle", "verify", "bundle", "--key", "vendor.pub"] as &[&str],
        &["generate", "--model", "org/tiny", "--prompt", "Fever", "--max-tokens", "2", "--offline"],
    ] {
        let said = scratch.wardround(words, &[("HF_HOME", &bundle)]);
        assert!(said.status.success(), "{words:?}: {}", String::from_utf8_lossy(&said.stderr));
    }
    // Nothing was written where it lies.
    scratch.verify(&bundle).unwrap();
    let other = scratch.wardround(&["bundle", "verify", "bundle"], &[]);
    assert_eq!(other.status.code(), Some(2), "a key must be given");
}

#[test]
fn a_list_made_twice_is_the_same_and_takes_the_signature_of_the_first() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.bundle("one", |_| {}), scratch.bundle("two", |_| {}));
    let list = |bundle: &Path| fs::read_to_string(bundle.join("SHA256SUMS")).unwrap();
    assert_eq!(list(&one), list(&two));
    append(&one.join("bin/program"), b"x");
    create(&one).unwrap();
    assert_ne!(list(&one), list(&two));
    assert!(!one.join("SHA256SUMS.minisig").exists());
}

#[test]
fn what_no_bundle_holds_is_refused_by_name() {
    let scratch = Scratch::new();
    type Change = fn(&Path);
    let cases: [(Change, &str); 5] = [
        (|folder| symlink("../x", folder.join("bin/x")).unwrap(), "linked   bin/x"),
        (|folder| pipe(&folder.join("pipe")), "pipe: it is no file"),
        (|folder| fs::create_dir(folder.join("empty")).unwrap(), "empty/: it is an empty folder"),
        (
            |folder| fs::write(folder.join("back\\slash"), "").unwrap(),
            "a backslash or a line break",
        ),
        (
            |folder| {
                fs::create_dir(folder.join("BIN")).unwrap();
                fs::write(folder.join("BIN/y"), "").unwrap();
            },
            "BIN and bin are one file",
        ),
    ];
    for (number, (change, words)) in cases.into_iter().enumerate() {
        let folder = scratch.folder(&format!("case{number}"));
        change(&folder);
        scratch.refused(&folder, words);
    }
}

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

/// What changes a file of a bundle.
type Mutate = fn(&Path, &mut Random);

const MUTATIONS: [(&str, Mutate); 9] = [
    ("a bit flipped", |path, random| {
        let mut bytes = fs::read(path).unwrap();
        // The first line of a signature is a comment that nothing vouches for, and its last byte ends a line.
        let first = match path.extension().is_some_and(|kind| kind == "minisig") {
            true => bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1,
            false => 0,
        };
        let place = first + random.below(bytes.len() - 1 - first);
        bytes[place] ^= 1 << random.below(8);
        fs::write(path, bytes).unwrap();
    }),
    ("a file cut", |path, random| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..random.below(bytes.len() - 1)]).unwrap();
    }),
    ("a file dropped", |path, _| fs::remove_file(path).unwrap()),
    ("a file renamed", |path, _| fs::rename(path, path.with_file_name("renamed")).unwrap()),
    ("a file that is a folder", |path, _| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    }),
    ("a file that is a link", |path, _| {
        let elsewhere = path.ancestors().find(|above| above.ends_with("changed")).unwrap();
        let elsewhere = elsewhere.with_file_name("moved");
        fs::rename(path, &elsewhere).unwrap();
        symlink(elsewhere, path).unwrap();
    }),
    ("a file added", |path, random| {
        let name = *random.of(&[
            "helper",
            ".hidden",
            "a b",
            "SHA256SUMS.txt",
            "SHA256SUMS.x.minisig",
            "CONFIG.JSON",
        ]);
        fs::write(path.with_file_name(name), *random.of(&["", "x", "#!/bin/sh\n"])).unwrap();
    }),
    ("bytes added", |path, random| {
        // Behind its fourth line nothing is read of a signature.
        let path = if path.extension().is_some_and(|kind| kind == "minisig") {
            path.with_extension("")
        } else {
            path.to_owned()
        };
        append(&path, random.of::<&[u8]>(&[b"\0", b"\n", b" ", b"x\n"]));
    }),
    ("an empty folder", |path, _| fs::create_dir(path.with_file_name("folder")).unwrap()),
];

/// `BUNDLE_MUTATIONS=10000 cargo test --test airgap mutations -- --nocapture` tries so many.
#[test]
fn no_changed_bundle_is_taken_for_the_one_that_was_signed_by_mutations() {
    let count = std::env::var("BUNDLE_MUTATIONS").map_or(180, |count| count.parse().unwrap());
    let scratch = Scratch::new();
    let whole = scratch.bundle("whole", |_| {});
    let names = files(&whole);
    let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for number in 0..count {
        let (kind, mutate) = MUTATIONS[number % MUTATIONS.len()];
        let bundle = scratch.path("changed");
        copy(&whole, &bundle);
        let name = random.of(&names);
        mutate(&bundle.join(name), &mut random);
        let said = scratch.verify(&bundle);
        assert!(said.is_err(), "number {number}, {kind}, {name}, was accepted");
        *refused.entry(kind).or_default() += 1;
        fs::remove_dir_all(&bundle).unwrap();
    }
    println!("{count} changed bundles, none accepted: {refused:?}");
    scratch.verify(&whole).unwrap();
}
