//! Runs the binary in a directory of its own, with tiny models beside it and nothing of the user's environment.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use wardround::experiment::compare::digest;
use wardround::experiment::contents::Contents;
use wardround::model::Family;
use wardround::synth::{Recipe, Shape, write_checkpoint};

/// A directory that goes when the test ends.
pub struct Scratch {
    directory: tempfile::TempDir,
}

/// What a command came to.
#[derive(Debug)]
pub struct Outcome {
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Settings under which a question takes a fraction of a second.
const QUICK: [(&str, &str); 2] = [("record_chars", "8"), ("t_max", "0")];

impl Scratch {
    pub fn new() -> Scratch {
        Scratch { directory: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Makes a tiny model, named after its family.
    pub fn model(&self, family: Family) -> PathBuf {
        let path = self.path(family.name());
        let recipe = Recipe { family, shape: Shape::Tiny, seed: 1, tokenizer: None };
        write_checkpoint(&recipe, &path).unwrap();
        path
    }

    /// Makes three tiny models, and names them as `--panel` takes them.
    pub fn panel(&self) -> &'static str {
        for family in [Family::Gemma3, Family::Llama, Family::Qwen3] {
            self.model(family);
        }
        "gemma3,llama,qwen3"
    }

    /// Makes `WARDROUND_DATA` known as `data`, a name without blanks.
    pub fn link_data(&self) {
        assert!(self.links_data(), "WARDROUND_DATA names the folder of published data");
    }

    /// The same; `false` where it is not set.
    pub fn links_data(&self) -> bool {
        let root = std::env::var_os("WARDROUND_DATA");
        let link = self.path("data");
        if let Some(root) = &root
            && !link.exists()
        {
            std::os::unix::fs::symlink(root, link).unwrap();
        }
        root.is_some()
    }

    /// `count` questions in the plain format.
    pub fn questions(&self, count: usize) -> PathBuf {
        let question = |number: usize| {
            let options: Vec<String> = (0..5).map(|off| (number * 7 + off).to_string()).collect();
            let answer = ["A", "B", "C", "D", "E"][number % 5];
            let question = format!("Seven times {number}, plus {}?", number % 5);
            let row = serde_json::json!({
                "id": format!("q{number}"), "question": question, "options": options, "answer": answer,
            });
            format!("{row}\n")
        };
        let rows: String = (1..=count).map(question).collect();
        self.write("questions.jsonl", rows)
    }

    /// The binary, to be run here; the arguments stand between blanks.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wardround"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .args(arguments.split_whitespace())
            .current_dir(self.directory.path())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn wardround(&self, arguments: impl AsRef<str>) -> Outcome {
        outcome(&mut self.command(arguments.as_ref()))
    }

    /// With a text on stdin.
    pub fn wardround_reading(&self, text: &str, arguments: &str) -> Outcome {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // A command that refuses its arguments reads nothing.
        let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
        wait(child)
    }

    /// `run medmad` on the plain format under quick settings, but for those that the arguments set.
    pub fn run(&self, arguments: impl AsRef<str>) -> Outcome {
        let arguments = arguments.as_ref();
        let is_left = |(key, _): &(&str, &str)| !arguments.contains(&format!("--set {key}="));
        let quick = QUICK.into_iter().filter(is_left);
        let quick: String = quick.map(|(key, value)| format!("--set {key}={value} ")).collect();
        self.wardround(format!("run medmad --format mcq {quick}{arguments}"))
    }

    /// The same on the questions with one tiny Llama for all roles, which is made if need be.
    pub fn run_one(&self, out: &str, more: &str) -> Outcome {
        if !self.path("llama").exists() {
            self.model(Family::Llama);
        }
        self.run(format!("--panel llama --data questions.jsonl --out {out} {more}"))
    }
}

impl Outcome {
    /// Ended with this code and said, on stderr, all of these.
    #[track_caller]
    pub fn refused(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in {self:#?}");
        }
        assert!(self.stderr.contains("error: "), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
    }

    /// Ended well, or as a run ends of which no reply could be read: random weights write noise.
    #[track_caller]
    pub fn finished(&self) -> &Outcome {
        let is_noise =
            self.code == Some(1) && self.stderr.contains("what the models said could not be read");
        assert!(is_noise || self.code == Some(0), "{self:#?}");
        self
    }

    /// Ended well.
    #[track_caller]
    pub fn succeeded(&self) -> &Outcome {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }
}

pub fn outcome(command: &mut Command) -> Outcome {
    wait(command.spawn().unwrap())
}

pub fn wait(child: Child) -> Outcome {
    let output = child.wait_with_output().unwrap();
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Sends a signal by its name.
pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status();
    assert!(sent.unwrap().success());
}

/// Bytes of a file; 0 while there is none.
pub fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

pub fn lines(path: &Path) -> usize {
    let bytes = std::fs::read(path).unwrap();
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// The runs in two directories are equal, as the run directory's contract has it.
#[track_caller]
pub fn assert_equal_runs(left: &Path, right: &Path) {
    let [left, right] = [left, right].map(|path| digest(&Contents::read(path).unwrap()).unwrap());
    assert_eq!(left, right);
}

/// Small numbers that look random and are the same every time.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
