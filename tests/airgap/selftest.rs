//! `wardround selftest` on tiny synthetic models: equal in every way, and what was changed is named.

use std::path::Path;
use std::process::Command;

use wardround::digest::sha256;
use wardround::model::Family;
use wardround::synth::{Recipe, Shape, write_checkpoint};

/// What a command said and how it ended.
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs `wardround selftest` in a folder, whose cache of the hub is that of the user.
fn selftest(folder: &Path, arguments: &str) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wardround"));
    command.current_dir(folder).arg("selftest").args(arguments.split_whitespace());
    for (name, _) in std::env::vars() {
        if name.starts_with("WARDROUND_") || name.starts_with("HF_") {
            command.env_remove(name);
        }
    }
    let output = command.env("HF_HOME", folder).args(["--threads", "2"]).output().unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ended {
    /// Expects this exit code, and every part in what was said.
    #[track_caller]
    fn expect(&self, code: i32, parts: &[&str]) {
        let said = format!("{}{}", self.stdout, self.stderr);
        assert_eq!(self.code, Some(code), "{said}");
        for part in parts {
            assert!(said.contains(part), "no `{part}` in\n{said}");
        }
    }
}

/// A model of random weights.
fn model(folder: &Path, family: Family, seed: u64) -> String {
    let recipe = Recipe { family, shape: Shape::Tiny, seed, tokenizer: None };
    let name = format!("{}-{seed}", family.name());
    write_checkpoint(&recipe, &folder.join(&name)).unwrap();
    name
}

#[test]
fn a_table_has_a_line_for_each_model_and_is_the_same_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let names = [Family::Gemma3, Family::Llama, Family::Qwen3].map(|family| model(here, family, 1));
    let has_sandbox = cfg!(all(target_os = "linux", feature = "airgap"));
    let sandbox = if has_sandbox { "require" } else { "off" };
    let words = format!("--model {} --sandbox {sandbox}", names.join(" "));
    let passed = selftest(here, &words);
    passed.expect(
        0,
        &["batch 8", "8, cached", "8 equal  8 equal    8 equal  8 equal", "testing gemma3-1"],
    );
    assert_eq!(passed.stdout.lines().count(), 3 + names.len());
    assert_eq!(selftest(here, &words).stdout, passed.stdout);
    // Other weights, and the same ones kept in another way, give other answers.
    let answers = |ended: &Ended| ended.stdout.trim_end().rsplit_once(' ').unwrap().1.to_owned();
    let other = model(here, Family::Qwen3, 2);
    let mut seen = vec![answers(&passed)];
    for words in [format!("--model {other}"), format!("--model {} --quant q8_0 --quiet", names[2])]
    {
        let ended = selftest(here, &words);
        ended.expect(0, &["8 equal"]);
        assert!(!seen.contains(&answers(&ended)), "{}", ended.stdout);
        seen.push(answers(&ended));
    }
}

/// Where f32 is multiplied as f32, nothing but the order of sums differs.
#[test]
fn candle_says_the_same_in_a_line_a_prompt() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let names = [Family::Gemma3, Family::Llama, Family::Qwen3].map(|family| model(here, family, 1));
    let words = format!("--model {} --against candle --dtype f32", names.join(" "));
    let told = selftest(here, &words);
    told.expect(0, &["gemma3-1  greedy: logits within ", "qwen3-1  Chinese: ", "comparing llama"]);
    assert_eq!(told.stdout.lines().count(), 5 * names.len());
    for line in told.stdout.lines() {
        assert!(
            line.ends_with(" of the largest (allowed: 0.001), 16 of 16 greedy tokens equal"),
            "{line}"
        );
    }
    selftest(here, &format!("{words} --quant q8_0")).expect(2, &["cannot be used with"]);
    selftest(here, &words.replace("candle", "torch")).expect(2, &["invalid value 'torch'"]);
}

#[test]
fn what_is_not_what_it_should_be_is_named_and_asked_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let (changed, sound) = (model(here, Family::Llama, 1), model(here, Family::Llama, 2));
    let config = here.join(&changed).join("config.json");
    let sum = sha256(std::fs::read(&config).unwrap());
    let commit = "0".repeat(40);
    let record = format!(
        "repository = \"org/name\"\nrevision = \"{commit}\"\n\n[sha256]\n\"config.json\" = \"{sum}\"\n\"gone.json\" = \"{sum}\"\n"
    );
    std::fs::write(here.join(&changed).join("provenance.toml"), record).unwrap();
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replacen('{', "{ ", 1)).unwrap();
    // The others are tested all the same.
    let ended = selftest(here, &format!("--model {changed} {sound}"));
    ended.expect(
        3,
        &["config.json is not as provenance.toml says", "gone.json is missing", "1 of 2 models"],
    );
    ended.expect(3, &["2 WRONG", "8 equal"]);
    // Weights that are none.
    std::fs::write(here.join(&sound).join("model.safetensors"), "x").unwrap();
    selftest(here, &format!("--model {sound}"))
        .expect(3, &["something is wrong with 1 of 1 model"]);
    selftest(here, "--model no-such-model").expect(2, &["no model is called `no-such-model`"]);
    selftest(here, "").expect(2, &["no model of a card is in"]);
    selftest(here, &format!("--model {sound} --device tpu")).expect(2, &["tpu"]);
}
