//! Trails that were changed in every way, and trails whose processes were killed.

mod texts;

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};

use super::forget::forget;
use super::key::TrailKey;
use super::survey::{ANCHOR, HEAD, Verified, verify, write_head};
use super::{AuditContent, AuditOptions, Event, Line, Trail, content};
use crate::diagnosis::{Blame, Failure};
use crate::experiment::fixtures::kill_writer;
use crate::experiment::line::{Hasher, seal};
use crate::experiment::link::Link;

fn options(folder: &Path, content: AuditContent) -> AuditOptions {
    AuditOptions { directory: folder.join("audit"), content, keep_days: None }
}

fn open(options: &AuditOptions) -> Trail {
    Trail::open(options, "test").unwrap()
}

fn case(trail: &Trail, text: &str) -> Event {
    let event = Event::new("case").with("actor", "ward").with("status", "done");
    let event = event.with("from", "10.0.0.7").with("identity", "key:1");
    let input = trail.input(json!({"text": text}).to_string().as_bytes());
    trail.ended(event, input, &json!(text.len()))
}

/// A trail with so many cases, its start before and its stop behind them.
fn written(folder: &Path, content: AuditContent, cases: usize) -> AuditOptions {
    let options = options(folder, content);
    let trail = open(&options);
    for number in 0..cases {
        trail.write(case(&trail, &format!("note {number}"))).unwrap();
    }
    trail.finish().unwrap();
    options
}

fn lines(options: &AuditOptions) -> Vec<String> {
    let text = fs_err::read_to_string(options.directory.join(Line::FILE)).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn fields(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

fn write(options: &AuditOptions, lines: &[String]) {
    let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    fs_err::write(options.directory.join(Line::FILE), text).unwrap();
}

/// Writes the head of the last line, as whoever changes a trail does.
fn tell_the_last(options: &AuditOptions, lines: &[String]) {
    let last = lines.last().and_then(|last| serde_json::from_str::<Value>(last).ok());
    let hash = last.as_ref().and_then(|last| last["hash"].as_str()).unwrap_or(ANCHOR);
    write_head(&options.directory, hash).unwrap();
}

fn check(options: &AuditOptions) -> Result<Verified, Failure> {
    verify(&options.directory, &[])
}

fn refused(options: &AuditOptions) -> Failure {
    Trail::open(options, "test").map(drop).unwrap_err()
}

/// Lines from `from` on with hashes of a hasher, as somebody would write them who covers an edit up.
fn reseal(lines: &mut [String], from: usize, hasher: &Hasher) {
    for index in from..lines.len() {
        let mut line: Map<String, Value> = serde_json::from_str(&lines[index]).unwrap();
        line.shift_remove("schema");
        line.shift_remove("hash");
        if index > 0 {
            line.insert("prev".into(), fields(&lines[index - 1])["hash"].clone());
        }
        line.insert("seq".into(), (index as u64 + 1).into());
        let json = Value::Object(line).to_string();
        lines[index] = seal(&json[1..json.len() - 1], hasher).0;
    }
}

#[test]
fn every_edit_of_a_line_every_cut_and_every_swap_is_found() {
    let scratch = tempfile::tempdir().unwrap();
    let options = written(scratch.path(), AuditContent::Hash, 4);
    let whole = lines(&options);
    check(&options).unwrap();
    let found = |changed: &[String], what: &str| {
        write(&options, changed);
        for head in [&whole[..], changed] {
            tell_the_last(&options, head);
            let is_cut = changed.len() < whole.len() && changed == &whole[..changed.len()];
            // Whoever cuts the end off and has the head too is found by a head from elsewhere.
            let heads = match is_cut {
                true => vec![fields(whole.last().unwrap())["hash"].as_str().unwrap().to_owned()],
                false => Vec::new(),
            };
            let error = verify(&options.directory, &heads).map(drop).unwrap_err();
            assert_eq!(error.blame(), Blame::Artefact, "{what}: {error}");
            if !is_cut {
                assert_eq!(refused(&options).blame(), Blame::Artefact, "{what}");
            }
        }
    };
    for index in 0..whole.len() {
        for place in (0..whole[index].len()).step_by(11) {
            let mut changed = whole.clone();
            let mut bytes = whole[index].clone().into_bytes();
            bytes[place] = if bytes[place] == b'0' { b'1' } else { b'0' };
            changed[index] = String::from_utf8(bytes).unwrap();
            found(&changed, &format!("line {index}, byte {place}"));
        }
        let mut changed = whole.clone();
        changed.remove(index);
        found(&changed, &format!("without line {index}"));
        let mut changed = whole.clone();
        changed.insert(index, whole[index].clone());
        found(&changed, &format!("line {index} twice"));
        for other in 0..index {
            let mut changed = whole.clone();
            changed.swap(index, other);
            found(&changed, &format!("{index} and {other} swapped"));
        }
    }
    write(&options, &whole);
    tell_the_last(&options, &whole);
    check(&options).unwrap();
}

#[test]
fn a_chain_that_is_made_anew_without_the_key_is_found() {
    let scratch = tempfile::tempdir().unwrap();
    let options = written(scratch.path(), AuditContent::Hash, 4);
    let whole = lines(&options);
    for hasher in [Hasher::default(), Hasher::keyed([7; 32])] {
        for from in 0..whole.len() {
            let mut forged = whole.clone();
            forged[from] = forged[from].replace("\"event\":", "\"event\":\"x\",\"was\":");
            reseal(&mut forged, from, &hasher);
            write(&options, &forged);
            tell_the_last(&options, &forged);
            let said = check(&options).map(drop).unwrap_err().to_string();
            assert!(said.contains(&format!("line {}: the line was changed", from + 1)), "{said}");
            refused(&options);
        }
    }
    // Nor does the sum of a text that a client sends, which lines have, make one.
    let key = TrailKey::read(&options.directory).unwrap();
    let forged = whole[0].split(",\"hash\"").next().unwrap().to_owned() + "}";
    assert_eq!(key.0.hash(&[forged.as_bytes()]), fields(&whole[0])["hash"]);
    assert_ne!(key.sum(&forged), fields(&whole[0])["hash"]);
}

#[test]
fn a_key_that_is_missing_is_no_wrong_one() {
    let scratch = tempfile::tempdir().unwrap();
    let options = written(scratch.path(), AuditContent::Full, 1);
    let key = options.directory.join("key");
    let own = fs_err::read(&key).unwrap();
    fs_err::remove_file(&key).unwrap();
    for error in [check(&options).map(drop).unwrap_err(), refused(&options)] {
        assert!(error.to_string().contains("key is missing"), "{error}");
    }
    for wrong in [&b"short"[..], &[1; 33]] {
        fs_err::write(&key, wrong).unwrap();
        assert!(check(&options).is_err());
    }
    fs_err::write(&key, [1; 32]).unwrap();
    let said = check(&options).map(drop).unwrap_err().to_string();
    assert!(said.contains("line 1: the line was changed"), "{said}");
    fs_err::write(&key, own).unwrap();
    check(&options).unwrap();
}

#[test]
fn a_trail_that_has_lost_its_end_or_its_head_is_not_gone_on_with() {
    let scratch = tempfile::tempdir().unwrap();
    for damage in ["cut", "all", "head", "all and head"] {
        let options = written(&scratch.path().join(damage), AuditContent::Hash, 3);
        let whole = lines(&options);
        match damage {
            "cut" => write(&options, &whole[..3]),
            "all" => write(&options, &[]),
            _ => fs_err::remove_file(options.directory.join(HEAD)).unwrap(),
        }
        if damage == "all and head" {
            // As it was before the first line: who does that is found by a head from elsewhere.
            write(&options, &[]);
            let head = fields(whole.last().unwrap())["hash"].as_str().unwrap().to_owned();
            assert!(verify(&options.directory, &[head]).is_err());
            continue;
        }
        let error = refused(&options);
        assert!(error.to_string().contains("is not as it was"), "{error}");
        assert!(error.hint().unwrap().contains("another directory"));
    }
}

#[test]
fn a_trail_that_is_cut_off_under_a_writer_takes_no_more_lines() {
    let scratch = tempfile::tempdir().unwrap();
    for damage in ["cut", "written to", "removed"] {
        let options = options(&scratch.path().join(damage), AuditContent::Hash);
        let trail = open(&options);
        let line = || trail.write(Event::new("case")).is_ok();
        assert!((0..4).all(|_| line()));
        let whole = lines(&options);
        match damage {
            "cut" => write(&options, &whole[..3]),
            "written to" => write(&options, &[&whole[..], &whole[..1]].concat()),
            _ => fs_err::remove_file(options.directory.join(Line::FILE)).unwrap(),
        }
        assert!(!line() && !line() && trail.is_failing(), "{damage}");
        if damage == "cut" {
            write(&options, &whole);
            assert!(line() && !trail.is_failing());
            assert!(lines(&options)[5].contains("could not be written"));
        }
    }
}

#[test]
fn two_writers_are_found_and_many_threads_make_one_chain_of_private_files() {
    let scratch = tempfile::tempdir().unwrap();
    let options = options(scratch.path(), AuditContent::Full);
    let trail = open(&options);
    let second = refused(&options);
    assert!(second.to_string().contains("another process writes"), "{second}");
    let told = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (trail, told) = (&trail, &told);
            scope.spawn(move || {
                for number in 0..10 {
                    trail.write(case(trail, &format!("{thread} {number}"))).unwrap();
                    told.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    trail.finish().unwrap();
    let found = check(&options).unwrap();
    assert_eq!((told.into_inner(), found.survey.chain.lines, found.kept), (80, 82, 80));
    let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
    let directory = &options.directory;
    assert_eq!((mode(directory), mode(&directory.join("content"))), (0o700, 0o700));
    let texts = fs_err::read_dir(directory.join("content")).unwrap();
    let files = ["trail.jsonl", "trail.head", "key"].map(|name| directory.join(name));
    for file in files.into_iter().chain(texts.map(|text| text.unwrap().path())) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn links_pipes_and_what_others_may_read_are_refused() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let scratch = tempfile::tempdir().unwrap();
    let victim = written(&scratch.path().join("victim"), AuditContent::Full, 1);
    for name in ["trail.jsonl", "trail.head", "key", "content"] {
        let options = written(&scratch.path().join(name), AuditContent::Full, 1);
        let path = options.directory.join(name);
        let _ = fs_err::remove_file(&path).or_else(|_| fs_err::remove_dir_all(&path));
        symlink(victim.directory.join(name), &path).unwrap();
        assert!(check(&options).is_err(), "{name}");
        refused(&options);
        check(&victim).unwrap();
        if name != "content" {
            fs_err::remove_file(&path).unwrap();
            mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
            let said =
                check(&options).map(drop).unwrap_err().to_string() + &refused(&options).to_string();
            assert!(said.contains("no file") || said.contains("no audit trail"), "{said}");
        }
    }
    let key = victim.directory.join("key");
    for (path, mode, own) in [(&victim.directory, 0o705, 0o770), (&key, 0o606, 0o660)] {
        fs_err::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let error = refused(&victim);
        assert!(error.to_string().contains(&format!("has mode {mode:03o}")), "{error}");
        // A volume's group has its rights.
        fs_err::set_permissions(path, Permissions::from_mode(own)).unwrap();
    }
    open(&victim).finish().unwrap();
}

const OUT: &str = "WARDROUND_TEST_TRAIL";

/// The child's part: without the variable it does nothing, whoever runs it.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(OUT) else { return };
    let trail = open(&options(Path::new(&folder), AuditContent::Full));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let trail = &trail;
            scope.spawn(move || {
                for number in 0.. {
                    let text = format!("{thread} {number} {}", std::process::id());
                    trail.write(case(trail, &text).with("name", text.as_str())).unwrap();
                    println!("acknowledged {text}.");
                }
            });
        }
    });
}

/// Kills a process that writes, so many times, and looks for each line that it was told of.
fn kill(times: u64) {
    let scratch = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for round in 0..times {
        let told = kill_writer("audit::tests::child", OUT, scratch.path(), round);
        if told.is_empty() {
            continue;
        }
        let options = options(scratch.path(), AuditContent::Full);
        let found = check(&options).unwrap();
        assert_eq!(found.missing, 0);
        let all = lines(&options).concat();
        for name in &told {
            assert!(all.contains(&format!("\"name\":\"{name}\"")), "{name}");
        }
        acknowledged += told.len();
    }
    assert!(acknowledged > 0);
}

#[test]
fn nothing_that_was_acknowledged_is_lost_whenever_the_process_is_killed() {
    kill(5);
}

#[test]
#[ignore = "takes a while"]
fn nothing_is_lost_in_forty_kills() {
    kill(40);
}
