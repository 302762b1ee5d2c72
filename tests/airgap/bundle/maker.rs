//! A sender with a key, models of a few bytes, and bundles made of them.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use minisign::KeyPair;
use wardround::bundle::BundleError;
use wardround::bundle::create::{Created, Request, create};
use wardround::bundle::install::{Consent, Outcome, install};
use wardround::bundle::manifest::Manifest;
use wardround::bundle::signature::TrustedKey;
use wardround::bundle::verify::{Checked, open};
use wardround::diagnosis::Failure;
use wardround::hub::{Environment, HubOptions};

/// What every time in the bundles is.
pub const EPOCH: u64 = 1_700_000_000;

/// Somebody who signs.
pub struct Signer {
    pair: KeyPair,
}

impl Signer {
    pub fn new() -> Signer {
        Signer { pair: KeyPair::generate_unencrypted_keypair().unwrap() }
    }

    /// The public key, as it is given to --trust.
    pub fn key(&self) -> String {
        self.pair.pk.to_base64()
    }

    pub fn trusted(&self) -> TrustedKey {
        TrustedKey::open(&self.key()).unwrap()
    }

    pub fn sign(&self, bytes: &[u8]) -> String {
        minisign::sign(None, &self.pair.sk, bytes, Some("bundle"), None).unwrap().into_string()
    }

    /// Signs a bundle as the only one.
    pub fn sign_bundle(&self, bundle: &Path) {
        self.sign_as(bundle, "SHA256SUMS.minisig");
    }

    /// Signs as `ssh-keygen` does, as far as names go: the host checks such signatures.
    pub fn sign_for_ssh(&self, bundle: &Path) {
        std::fs::write(bundle.join("SHA256SUMS.sig"), "-----BEGIN SSH SIGNATURE-----\n").unwrap();
    }

    pub fn sign_as(&self, bundle: &Path, name: &str) {
        let sums = std::fs::read(bundle.join("SHA256SUMS")).unwrap();
        std::fs::write(bundle.join(name), self.sign(&sums)).unwrap();
    }
}

/// A directory that goes when the test ends.
pub struct Scratch {
    directory: tempfile::TempDir,
}

impl Scratch {
    pub fn new() -> Scratch {
        Scratch { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The directory, which then stays.
    pub fn directory_to_keep(self) -> PathBuf {
        self.directory.keep()
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A checkpoint by its names alone: what makes and checks bundles by sums looks into none of it.
    pub fn model(&self, name: &str) -> PathBuf {
        for (file, text) in [("config.json", "{}"), ("tokenizer.json", "{\"a\": 1}")] {
            self.write(&format!("{name}/{file}"), text);
        }
        self.write(&format!("{name}/model.safetensors"), format!("weights of {name}").repeat(40));
        self.path(name)
    }

    /// The same, as if it had been fetched from this repository.
    pub fn fetched(&self, name: &str, repository: &str) -> PathBuf {
        let folder = self.model(name);
        let sums: String = ["config.json", "tokenizer.json", "model.safetensors"]
            .map(|file| {
                let sum = wardround::digest::sha256(std::fs::read(folder.join(file)).unwrap());
                format!("\"{file}\" = \"{sum}\"\n")
            })
            .concat();
        let text = format!(
            "repository = \"{repository}\"\nrevision = \"{}\"\n\n[sha256]\n{sums}",
            "0".repeat(40)
        );
        std::fs::write(folder.join("provenance.toml"), text).unwrap();
        folder
    }

    /// A program whose selftest ends with this code, or that has none: `None`.
    pub fn program(&self, name: &str, code: Option<i32>) -> PathBuf {
        let selftest = match code {
            Some(code) => {
                format!("[ \"$2\" = --help ] && exit 0\necho \"$@\" >>\"$5/called\"\nexit {code}")
            }
            None => "exit 2".to_owned(),
        };
        let path =
            self.write(name, format!("#!/bin/sh\n[ \"$1\" = selftest ] || exit 64\n{selftest}\n"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// One model, taken as it is, and a program that passes its selftest.
    pub fn request(&self, name: &str) -> Request {
        let model = self.path("llama");
        if !model.exists() {
            self.model("llama");
        }
        let program = self.path("program");
        if !program.exists() {
            self.program("program", Some(0));
        }
        Request {
            directory: self.path(name),
            name: Some("ward".to_owned()),
            version: "1.0".parse().unwrap(),
            models: vec![model.to_str().unwrap().to_owned()],
            scorers: None,
            encoders: Vec::new(),
            data: Vec::new(),
            corpora: Vec::new(),
            recipes: vec!["table1".to_owned()],
            binaries: vec![program],
            added: Vec::new(),
            licences: Default::default(),
            policies: Default::default(),
            allowed: Vec::new(),
            accepted_by: None,
            unverified: true,
            since: None,
            golden: false,
            kernel: None,
            driver: None,
            split_bytes: None,
            time: SystemTime::UNIX_EPOCH + Duration::from_secs(EPOCH),
            hub: Some(HubOptions::new(Environment::from_lookup(|_| None).unwrap())),
        }
    }

    /// Makes a bundle and signs it.
    pub fn bundle(
        &self,
        name: &str,
        signer: &Signer,
        change: impl FnOnce(&mut Request),
    ) -> PathBuf {
        let mut request = self.request(name);
        change(&mut request);
        create(&request).map_err(|failure| failure.to_string()).unwrap();
        signer.sign_bundle(&request.directory);
        request.directory
    }

    /// Runs the binary here, without the user's environment.
    pub fn wardround(&self, arguments: &[&str]) -> Output {
        self.run(Command::new(env!("CARGO_BIN_EXE_wardround")), arguments)
    }

    /// The same under a mask that takes everything from others.
    pub fn masked(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 077; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_wardround")]);
        self.run(command, arguments)
    }

    fn run(&self, mut command: Command, arguments: &[&str]) -> Output {
        command
            .current_dir(self.directory.path())
            .args(arguments)
            .env("SOURCE_DATE_EPOCH", EPOCH.to_string());
        for (name, _) in std::env::vars() {
            if name.starts_with("WARDROUND_") || name.starts_with("HF_") {
                command.env_remove(name);
            }
        }
        command.stdin(std::process::Stdio::null()).output().unwrap()
    }
}

/// The message of a bundle that is not made, with its exit code; nothing of it stays.
#[track_caller]
pub fn refused(request: &Request) -> (String, u8) {
    let failure = create(request).map(|created: Created| created.manifest.name).unwrap_err();
    let parent = request.directory.parent().unwrap();
    let name = request.directory.file_name().unwrap().to_str().unwrap();
    assert!(!parent.join(format!(".{name}.partial")).exists());
    (told(&failure), failure.blame().exit_code())
}

pub fn manifest_of(bundle: &Path) -> Manifest {
    let path = bundle.join("MANIFEST.json");
    Manifest::parse(&std::fs::read(&path).unwrap(), &path).unwrap()
}

/// What a failure says, hint included.
pub fn told(failure: &Failure) -> String {
    format!("{failure}\nhint: {}", failure.hint().unwrap_or_default())
}

/// Checks a bundle as `bundle verify --trust` does.
pub fn check(bundle: &Path, keys: &[TrustedKey]) -> Result<Checked, BundleError> {
    let checked = open(bundle, keys)?.check(true)?;
    match checked.problems.is_empty() {
        true => Ok(checked),
        false => {
            Err(BundleError::Wrong { directory: bundle.to_owned(), problems: checked.problems })
        }
    }
}

/// Installs into a root, and accepts what is named.
pub fn install_to(
    root: &Path,
    bundle: &Path,
    signer: &Signer,
    accepted: &[&str],
) -> Result<Outcome, Failure> {
    install_with(root, bundle, &[signer.trusted()], accepted, false)
}

pub fn install_with(
    root: &Path,
    bundle: &Path,
    keys: &[TrustedKey],
    accepted: &[&str],
    downgrade: bool,
) -> Result<Outcome, Failure> {
    let accepted: Vec<String> = accepted.iter().map(|name| (*name).to_owned()).collect();
    let consent = Consent { accepted: &accepted, who: "tester".to_owned(), ask: None };
    let request = wardround::bundle::install::Request {
        bundle,
        root,
        keys,
        consent,
        downgrade,
        new_signer: false,
        unit: None,
    };
    install(&request)
}

/// The version that `ROOT/current` leads to.
pub fn current(root: &Path) -> Option<String> {
    let target = std::fs::read_link(root.join("current")).ok()?;
    assert!(root.join(&target).join("MANIFEST.json").is_file());
    Some(target.file_name().unwrap().to_str().unwrap().to_owned())
}

/// Every file below a folder, by its path there.
pub fn files(folder: &Path) -> Vec<String> {
    fn add(folder: &Path, prefix: &str, all: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
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

/// Copies a folder of files.
pub fn copy(from: &Path, to: &Path) {
    for name in files(from) {
        let target = to.join(&name);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(from.join(&name), target).unwrap();
    }
}

/// Appends to a file.
pub fn append(path: &Path, bytes: &[u8]) {
    std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}
