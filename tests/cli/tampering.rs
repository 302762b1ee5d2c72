//! What `verify` and `replay` say about a run directory that was changed.

use std::path::{Path, PathBuf};

use wardround::experiment::chain;
use wardround::experiment::contents::Contents;
use wardround::experiment::line::Hasher;
use wardround::experiment::link::Link;
use wardround::experiment::results::Results;
use wardround::record::{CallLine, ItemLine};

use crate::binary::{Outcome, Random, Scratch, lines};

const LOGS: [&str; 2] = ["calls.jsonl", "items.jsonl"];

/// A finished run over two questions.
fn finished() -> (Scratch, PathBuf) {
    let scratch = Scratch::new();
    scratch.questions(2);
    scratch.run_one("out", "").succeeded();
    let out = scratch.path("out");
    assert_eq!(LOGS.map(|log| lines(&out.join(log))), [6, 2]);
    (scratch, out)
}

fn verify(scratch: &Scratch) -> Outcome {
    scratch.wardround("verify out")
}

fn place(out: &Path, log: &str, line: usize) -> String {
    let file = Path::new(out.file_name().unwrap()).join(log);
    format!("error: {}, line {line}: ", file.display())
}

#[test]
fn one_changed_byte_in_any_line_is_found() {
    let (scratch, out) = finished();
    verify(&scratch).succeeded();
    let mut random = Random(7);
    for log in ["calls.jsonl", "items.jsonl", "dataset.jsonl"] {
        let path = out.join(log);
        let sound = std::fs::read(&path).unwrap();
        let mut start = 0;
        for (index, line) in sound.split_inclusive(|byte| *byte == b'\n').enumerate() {
            // Any byte of the line, and its newline.
            let at = random.below(line.len() as u64 - 1) as usize;
            for at in [at, line.len() - 1] {
                let mut changed = sound.clone();
                changed[start + at] ^= 1 << random.below(8);
                std::fs::write(&path, &changed).unwrap();
                let blamed = match log {
                    "dataset.jsonl" => "error: out/dataset.jsonl was changed".to_owned(),
                    log => place(&out, log, index + 1),
                };
                verify(&scratch).refused(3, &[&blamed, "hint: "]);
            }
            start += line.len();
        }
        std::fs::write(&path, &sound).unwrap();
    }
    verify(&scratch).succeeded();
}

#[test]
fn a_cut_tail_is_found() {
    let (scratch, out) = finished();
    let mut random = Random(11);
    for log in LOGS {
        let path = out.join(log);
        let sound = std::fs::read(&path).unwrap();
        let last = sound[..sound.len() - 1].iter().rposition(|byte| *byte == b'\n');
        let whole_line = sound.len() - 1 - last.unwrap();
        let some = 2 + random.below(whole_line as u64 - 2) as usize;
        for cut in [1, some, whole_line] {
            std::fs::write(&path, &sound[..sound.len() - cut]).unwrap();
            let blamed = if cut == whole_line { "results.json, line " } else { log };
            verify(&scratch).refused(3, &[&format!("error: out/{blamed}")]);
        }
        std::fs::write(&path, "").unwrap();
        verify(&scratch).refused(3, &["error: out/results.json, line "]);
        std::fs::remove_file(&path).unwrap();
        verify(&scratch).refused(3, &[&format!("out/{log} is missing")]);
        std::fs::write(&path, &sound).unwrap();
    }
    let texts = out.join("dataset.jsonl");
    let sound = std::fs::read_to_string(&texts).unwrap();
    let first = sound.split_inclusive('\n').next().unwrap();
    std::fs::write(&texts, first).unwrap();
    verify(&scratch).refused(3, &["error: out/dataset.jsonl was changed"]);
    std::fs::remove_file(&texts).unwrap();
    verify(&scratch).refused(3, &["out/dataset.jsonl is missing", "hint: "]);
    scratch.wardround("resume out").refused(3, &["out/dataset.jsonl is missing"]);
}

#[test]
fn a_changed_plan_or_figure_is_found() {
    let (scratch, out) = finished();
    for (file, from, to) in [
        ("plan.toml", "seed = 42", "seed = 43"),
        ("plan.toml", "schema = 1", "schema = 2"),
        ("results.json", "\"schema\": 1", "\"schema\": 2"),
        ("results.json", "\"n_errors\": 0", "\"n_errors\": 1"),
    ] {
        let sound = std::fs::read_to_string(out.join(file)).unwrap();
        assert!(sound.contains(from));
        std::fs::write(out.join(file), sound.replace(from, to)).unwrap();
        verify(&scratch).refused(3, &[&format!("out/{file}")]);
        std::fs::write(out.join(file), sound).unwrap();
    }
    std::fs::remove_file(out.join("plan.toml")).unwrap();
    verify(&scratch).refused(3, &["out is not a run directory: it holds no plan.toml"]);
    scratch.wardround("verify nowhere").refused(3, &["nowhere is not a run directory"]);
}

#[test]
fn a_noted_head_is_confirmed_or_refused() {
    let (scratch, out) = finished();
    let results = std::fs::read_to_string(out.join("results.json")).unwrap();
    let results: Results = serde_json::from_str(&results).unwrap();
    for head in [&results.head, &results.heads.calls, &results.heads.items] {
        scratch.wardround(format!("verify out --head {head}")).succeeded();
    }
    scratch
        .wardround(format!("verify out --head {}", results.heads.plan))
        .refused(3, &["out: no head of this run is", &results.heads.plan]);
}

#[test]
fn a_forgery_that_is_sealed_anew_verifies_but_not_its_head_nor_its_replay() {
    let (scratch, out) = finished();
    let head = Contents::read(&out).unwrap().heads().calls;
    scratch.wardround("replay out").succeeded();

    let mut contents = Contents::read(&out).unwrap();
    let forged = &mut contents.calls.records[1];
    forged.text = forged.text.replacen("\"answer\": \"", "\"answer\":  \"", 1);
    let key = forged.key().to_string();
    seal_anew(&contents, &out);
    verify(&scratch).succeeded();
    scratch.wardround(format!("verify out --head {head}")).refused(3, &["no head of this run is"]);
    let replay = scratch.wardround("replay out");
    replay.refused(1, &["the replay differs from out"]);
    let told: Vec<&str> = replay.stdout.lines().collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with(&format!("{key}: text is ")), "{told:?}");
    assert!(told[1].ends_with(", 1 difference"), "{told:?}");
    // Token by token it finds the same.
    assert_eq!(scratch.wardround("replay out --draft 0").stdout, replay.stdout);
    for token in 0..3 {
        let mut contents = contents.clone();
        let tokens = &mut contents.calls.records[0].tokens;
        let place = token * (tokens.len() - 1) / 2;
        tokens[place] += 1;
        seal_anew(&contents, &out);
        let replay = scratch.wardround("replay out");
        replay.refused(1, &["the replay differs from out"]);
        assert!(replay.stdout.contains(": tokens"), "{replay:#?}");
    }
}

#[test]
fn a_call_that_was_slipped_in_or_taken_out_is_found_by_a_replay() {
    let (scratch, out) = finished();
    let sound = Contents::read(&out).unwrap();

    let mut contents = sound.clone();
    let mut extra = contents.calls.records[0].clone();
    extra.sample = 1;
    let key = extra.key().to_string();
    contents.calls.records.push(extra);
    seal_anew(&contents, &out);
    let replay = scratch.wardround("replay out");
    replay.refused(1, &[]);
    let told = format!("{key}: in the log, but the replay did not make it\n");
    assert!(replay.stdout.starts_with(&told), "{replay:#?}");

    let mut contents = sound;
    let removed = contents.calls.records.remove(0).key().to_string();
    seal_anew(&contents, &out);
    let replay = scratch.wardround("replay out");
    replay.refused(1, &[]);
    assert!(replay.stdout.starts_with(&format!("{removed}: not in the log\n")), "{replay:#?}");
}

#[test]
fn a_replay_of_what_never_ran_is_refused() {
    let (scratch, out) = finished();
    scratch.wardround("replay out --items q9").refused(2, &["the run has no item `q9`", "hint: "]);
    let mut contents = Contents::read(&out).unwrap();
    contents.items.records.clear();
    write_logs(&contents, &out);
    std::fs::remove_file(out.join("results.json")).unwrap();
    scratch
        .wardround("replay out")
        .refused(1, &["there is nothing to replay", "hint: `wardround resume out`"]);
}

/// Writes both logs and the results again, as one would who knows how.
pub fn seal_anew(contents: &Contents, out: &Path) {
    write_logs(contents, out);
    wardround::analysis::figures::write(&Contents::read(out).unwrap(), 1).unwrap();
}

/// Makes the run in `out` one that version 0.0.9 wrote.
pub fn age(out: &Path) {
    let mut contents = Contents::read(out).unwrap();
    contents.plan.found.version = "0.0.9".to_owned();
    contents.plan_sha256 = contents.plan.save(&out.join("plan.toml")).unwrap();
    seal_anew(&contents, out);
}

fn write_logs(contents: &Contents, out: &Path) {
    let sealed = sealed_lines::<CallLine>(&contents.calls.records, &contents.plan_sha256);
    std::fs::write(out.join(CallLine::FILE), sealed).unwrap();
    let sealed = sealed_lines::<ItemLine>(&contents.items.records, &contents.plan_sha256);
    std::fs::write(out.join(ItemLine::FILE), sealed).unwrap();
}

fn sealed_lines<R: Link + Clone>(records: &[R], anchor: &str) -> String {
    let mut prev = anchor.to_owned();
    let seal = |(record, seq): (&R, u64)| {
        let mut record = record.clone();
        let (line, hash) = chain::seal(&mut record, seq, &prev, &Hasher::default()).unwrap();
        prev = hash;
        line + "\n"
    };
    records.iter().zip(1..).map(seal).collect()
}
