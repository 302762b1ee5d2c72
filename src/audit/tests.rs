//! Trails that were changed in every way, and trails whose processes were killed.

mod strange;
mod witness;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};

use super::event::Texts;
use super::forget::{Request, Selection, forget};
use super::verify::{Verified, verify};
use super::{AuditContent, AuditOptions, Event, Head, Trail, content, files, head, kept};
use crate::experiment::line;

fn options(folder: &Path, content: AuditContent) -> AuditOptions {
    AuditOptions { content, ..AuditOptions::new(folder.join("audit")) }
}

fn case(text: &str) -> Event {
    let texts =
        Texts { input: json!({"text": text}).into(), output: json!(text.len()), more: Map::new() };
    Event::new("case").with("actor", "ward").with("from", "10.0.0.7").with_texts(texts)
}

/// A trail with so many cases.
fn written(folder: &Path, content: AuditContent, cases: usize) -> AuditOptions {
    let options = options(folder, content);
    let trail = Trail::open(&options).unwrap();
    for number in 0..cases {
        trail.write(case(&format!("note {number}"))).unwrap();
    }
    trail.finish(Event::new("stop")).unwrap();
    options
}

fn lines(directory: &Path) -> Vec<String> {
    let text = fs_err::read_to_string(files::current(directory)).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn write(directory: &Path, lines: &[String]) {
    fs_err::write(files::current(directory), lines.join("\n") + "\n").unwrap();
}

fn check(options: &AuditOptions, heads: &[Head]) -> Verified {
    verify(&options.directory, heads).unwrap()
}

/// Lines from `from` on with right hashes again, as somebody would write them who covers an edit up.
fn reseal(lines: &mut [String], from: usize) {
    for index in from..lines.len() {
        let mut fields: Map<String, Value> = serde_json::from_str(&lines[index]).unwrap();
        fields.shift_remove("schema");
        fields.shift_remove("hash");
        if index > 0 {
            let before: Value = serde_json::from_str(&lines[index - 1]).unwrap();
            fields.insert("prev".into(), before["hash"].clone());
        }
        fields.insert("seq".into(), (index as u64 + 1).into());
        let json = Value::Object(fields).to_string();
        lines[index] = line::seal(&json[1..json.len() - 1]).0;
    }
}

/// Writes the head of the last whole line.
fn tell_the_last(directory: &Path) {
    let mut opened =
        lines(directory).into_iter().filter_map(|line| files::Line::open(line.as_bytes()).ok());
    let last = opened.next_back().unwrap();
    Head { seq: last.seq(), hash: last.hash }.write(directory).unwrap();
}

#[test]
fn a_trail_that_is_cut_off_under_a_writer_takes_no_more_lines() {
    let scratch = tempfile::tempdir().unwrap();
    for damage in ["cut", "cut and written to", "emptied", "replaced"] {
        let options = options(&scratch.path().join(damage), AuditContent::Hash);
        let trail = Trail::open(&options).unwrap();
        let line = || trail.write(Event::new("case")).is_ok();
        assert!((0..6).all(|_| line()));
        let (directory, whole) = (&options.directory, lines(&options.directory));
        match damage {
            "cut" => write(directory, &whole[..3]),
            "cut and written to" => {
                let mut other = whole.clone();
                other[4] = other[4].replace("\"event\":", "\"event\":\"x\",\"was\":");
                reseal(&mut other, 4);
                other.extend([other[5].replace("\"seq\":6", "\"seq\":7")]);
                reseal(&mut other, 5);
                write(directory, &other);
            }
            "emptied" => write(directory, &[]),
            _ => fs_err::remove_file(files::current(directory)).unwrap(),
        }
        assert!(!line() && !line(), "{damage}");
        // Another that writes to the trail is no fault.
        if damage == "cut" {
            write(directory, &whole);
            assert!(line());
        }
    }
}

/// `line`, `seats` and `searches` are shown to raters: whoever changes them changes what is published.
#[test]
fn what_is_kept_beside_input_and_output_is_summed_too() {
    let scratch = tempfile::tempdir().unwrap();
    let options = options(scratch.path(), AuditContent::Full);
    let trail = Trail::open(&options).unwrap();
    let more = Map::from_iter([("line".to_owned(), json!({"flag": true}))]);
    let texts = Texts { input: json!({"text": "a note"}).into(), output: json!("yes"), more };
    trail.write(Event::new("case").with("status", "done").with_texts(texts)).unwrap();
    trail.finish(Event::new("stop")).unwrap();
    let directory = &options.directory;
    assert_eq!(kept::one(directory, 1).unwrap().texts["line"]["flag"], true);
    assert_eq!(kept::cases(directory).unwrap().len(), 1);
    let path = content::list(directory).unwrap().remove(0);
    let text = fs_err::read_to_string(&path).unwrap();
    fs_err::write(&path, text.replace("true", "false")).unwrap();
    assert!(check(&options, &[]).problems[0].contains("the text was changed"));
    assert!(kept::one(directory, 1).is_err_and(|error| error.to_string().contains("changed")));
    assert!(kept::cases(directory).is_err());
    fs_err::write(&path, text).unwrap();
    assert_eq!(kept::cases(directory).unwrap().len(), 1);
    // Nobody can tell without the key.
    fs_err::remove_file(directory.join("key")).unwrap();
    assert!(kept::cases(directory).is_err_and(|error| error.to_string().contains("its key")));
}

/// A body is kept byte by byte as it was sent, and never parsed.
#[test]
fn a_body_is_kept_as_it_was_sent() {
    let scratch = tempfile::tempdir().unwrap();
    let options = options(scratch.path(), AuditContent::Full);
    let trail = Trail::open(&options).unwrap();
    let body = "{\"b\" : 1,\"a\":[0, 0 ]}";
    let texts = Texts { input: trail.sent(body.as_bytes()), output: json!("x"), more: Map::new() };
    trail.write(Event::new("begun").with("call", "1")).unwrap();
    trail.write(Event::new("request").with("call", "1").with_texts(texts)).unwrap();
    trail.write(Event::new("begun").with("call", "2")).unwrap();
    trail.finish(Event::new("stop")).unwrap();
    let path = content::list(&options.directory).unwrap().remove(0);
    assert!(fs_err::read_to_string(path).unwrap().contains(body));
    let found = check(&options, &[]);
    assert_eq!((found.problem_count, found.texts.kept), (0, 1), "{found:?}");
    let open = |note: &String| note.starts_with("1 calls were begun and have no end");
    assert!(found.notes.iter().any(open), "{found:?}");
}

#[test]
fn every_edit_of_a_line_every_cut_and_every_swap_is_found() {
    let scratch = tempfile::tempdir().unwrap();
    let options = written(scratch.path(), AuditContent::Hash, 6);
    let directory = &options.directory;
    let whole = lines(directory);
    assert_eq!(check(&options, &[]).problem_count, 0);
    for index in 0..whole.len() {
        let mut changed = whole.clone();
        for place in (0..whole[index].len()).step_by(7) {
            let mut bytes = whole[index].clone().into_bytes();
            bytes[place] = if bytes[place] == b'0' { b'1' } else { b'0' };
            changed[index] = String::from_utf8(bytes).unwrap();
            write(directory, &changed);
            assert!(check(&options, &[]).problem_count > 0, "line {index}, byte {place}");
        }
        // Cut out, the last one too: the head beside the trail tells.
        let mut changed = whole.clone();
        changed.remove(index);
        write(directory, &changed);
        assert!(check(&options, &[]).problem_count > 0, "without line {index}");
        let mut changed = whole.clone();
        changed.insert(index, whole[index].clone());
        write(directory, &changed);
        assert!(check(&options, &[]).problem_count > 0, "line {index} twice");
        for other in 0..index {
            let mut changed = whole.clone();
            changed.swap(index, other);
            write(directory, &changed);
            assert!(check(&options, &[]).problem_count > 0, "{index} and {other} swapped");
        }
    }
    write(directory, &whole);
    assert_eq!(check(&options, &[]).problems, [""; 0]);
}

#[test]
fn what_hashes_cannot_tell_heads_that_were_kept_elsewhere_do() {
    let scratch = tempfile::tempdir().unwrap();
    let options = written(scratch.path(), AuditContent::Hash, 6);
    let directory = &options.directory;
    let journal = head::read(&directory.join(head::FILE)).unwrap();
    let whole = lines(directory);
    for from in 0..whole.len() {
        let mut forked = whole.clone();
        forked[from] = forked[from].replace("\"event\":", "\"event\":\"x\",\"was\":");
        reseal(&mut forked, from);
        write(directory, &forked);
        let last: Value = serde_json::from_str(forked.last().unwrap()).unwrap();
        // Whoever writes the trail again writes the head beside it again too.
        let hash = last["hash"].as_str().unwrap().to_owned();
        Head { seq: whole.len() as u64, hash }.write(directory).unwrap();
        assert_eq!(check(&options, &[]).problems, [""; 0], "{from}");
        let found = check(&options, &journal);
        assert!(found.problems[0].contains("written again"), "{found:?}");
        // Cut off.
        write(directory, &whole[..from.max(1)]);
        tell_the_last(directory);
        assert_eq!(check(&options, &[]).problem_count, 0);
        let found = check(&options, &journal);
        assert!(found.problems[0].contains("cut off"), "{found:?}");
    }
}

#[test]
fn texts_are_kept_as_asked_and_forgetting_them_keeps_the_chain() {
    let scratch = tempfile::tempdir().unwrap();
    let options = written(scratch.path(), AuditContent::Full, 4);
    let directory = &options.directory;
    let found = check(&options, &[]);
    assert_eq!((found.texts.kept, found.texts.forgotten, found.problem_count), (4, 0, 0));
    let trail = Trail::open(&options).unwrap();
    let request = |selection| Request {
        selection,
        why: "the patient asked".to_owned(),
        actor: Some("records".to_owned()),
    };
    let second = files::Line::open(lines(directory)[1].as_bytes()).unwrap();
    let ids = Selection::Ids(vec!["1".to_owned(), second.text("content").to_owned()]);
    assert_eq!(forget(&trail, &request(ids)).unwrap().texts, 2);
    let found = check(&options, &[]);
    assert_eq!((found.texts.kept, found.texts.forgotten, found.problem_count), (2, 2, 0));
    assert!(kept::one(directory, 1).is_err_and(|error| error.to_string().contains("deleted")));
    assert_eq!(kept::one(directory, 3).unwrap().texts["input"]["text"], "note 2");
    let said: Value = serde_json::from_str(lines(directory).last().unwrap()).unwrap();
    assert_eq!(
        (&said["actor"], &said["why"], &said["count"]),
        (&json!("records"), &json!("the patient asked"), &json!(2))
    );
    let unknown = request(Selection::Ids(vec!["3".to_owned(), "99".to_owned()]));
    let error = forget(&trail, &unknown).unwrap_err();
    assert!(error.to_string().contains("`99`; nothing was deleted"), "{error}");
    // Again is no error; a text that changed, or went without a line, is found.
    let ids = Selection::Ids(vec!["1".to_owned()]);
    assert_eq!(forget(&trail, &request(ids)).unwrap().texts, 0);
    let third = kept::one(directory, 3).unwrap().line.text("content").to_owned();
    let path = content::list(directory).unwrap();
    let path = path.iter().find(|path| content::id(path) == Some(&third)).unwrap();
    let text = fs_err::read_to_string(path).unwrap();
    fs_err::write(path, text.replace("note 2", "note 9")).unwrap();
    assert!(check(&options, &[]).problems[0].contains("was changed"));
    fs_err::remove_file(path).unwrap();
    assert!(check(&options, &[]).problems[0].contains("is missing"));
    let ward = Selection::Actor { name: "ward".to_owned(), identity: None };
    assert_eq!(forget(&trail, &request(ward)).unwrap().texts, 2);
    assert_eq!(check(&options, &[]).problem_count, 0);
    assert!(content::list(directory).unwrap().is_empty());
}

#[test]
fn no_more_is_kept_than_was_asked_for() {
    for (kind, has_sums) in [(AuditContent::Hash, true), (AuditContent::None, false)] {
        let scratch = tempfile::tempdir().unwrap();
        let options = AuditOptions { addresses: false, ..options(scratch.path(), kind) };
        let trail = Trail::open(&options).unwrap();
        let event = case("a canary")
            .with_sum("request", "sum")
            .with_detail("record", json!({"flag": true}));
        trail.write(event).unwrap();
        let line = lines(&options.directory).remove(0);
        assert!(!line.contains("canary") && !line.contains("10.0.0.7"), "{line}");
        for name in ["input", "output", "request", "record"] {
            assert_eq!(line.contains(&format!("\"{name}\"")), has_sums, "{name}: {line}");
        }
        assert!(content::list(&options.directory).unwrap().is_empty());
    }
}

#[test]
fn many_threads_and_several_writers_make_one_chain_of_private_files() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = tempfile::tempdir().unwrap();
    let options = options(scratch.path(), AuditContent::Full);
    // Two writers stand for two processes: each has files and a lock of its own.
    let trails = [Trail::open(&options).unwrap(), Trail::open(&options).unwrap()];
    let told = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (trail, told) = (&trails[thread % 2], told.clone());
            scope.spawn(move || {
                for number in 0..10 {
                    let told = told.clone();
                    let text = format!("{thread} {number}");
                    trail.send(case(&text), move |is_written| {
                        told.fetch_add(usize::from(is_written), Ordering::Relaxed);
                    });
                }
                trail.write(Event::new("login")).unwrap();
            });
        }
    });
    assert_eq!(told.load(Ordering::Relaxed), 80);
    let found = check(&options, &[]);
    assert_eq!((found.lines, found.texts.kept, found.problem_count), (88, 80, 0), "{found:?}");
    let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
    let directory = &options.directory;
    assert_eq!((mode(directory), mode(&directory.join("content"))), (0o700, 0o700));
    for file in [files::current(directory), directory.join("key"), directory.join("lock")] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    for file in content::list(directory).unwrap() {
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    }
}

#[test]
fn a_line_that_was_cut_short_is_cut_off_and_said() {
    let scratch = tempfile::tempdir().unwrap();
    let options = written(scratch.path(), AuditContent::Hash, 2);
    let path = files::current(&options.directory);
    let whole = fs_err::read_to_string(&path).unwrap();
    let last = whole.lines().last().unwrap().len();
    fs_err::write(&path, &whole[..whole.len() - last / 2]).unwrap();
    // No head is told of a line that is not whole.
    tell_the_last(&options.directory);
    assert!(check(&options, &[]).notes[0].contains("cut short"));
    let trail = Trail::open(&options).unwrap();
    trail.finish(Event::new("stop")).unwrap();
    let found = check(&options, &[]);
    assert_eq!((found.lines, found.problem_count), (4, 0));
    assert!(lines(&options.directory)[2].contains("\"cut_bytes\""));
    // What is no beginning of a line was written by somebody else.
    fs_err::write(&path, whole.clone() + "more").unwrap();
    assert!(Trail::open(&options).is_err_and(|error| error.to_string().contains("line 4")));
    fs_err::write(&path, whole.replace("ward", "yard")).unwrap();
    assert!(Trail::open(&options).is_err());
}

#[test]
fn nul_bytes_that_a_power_cut_left_are_cut_off_and_said() {
    for begun in ["", "{\"schema\":1,\"seq\":4,"] {
        let scratch = tempfile::tempdir().unwrap();
        let options = written(scratch.path(), AuditContent::Hash, 2);
        let path = files::current(&options.directory);
        let tail = format!("{begun}{}", "\0".repeat(4096));
        let mut whole = fs_err::read_to_string(&path).unwrap();
        whole += &tail;
        fs_err::write(&path, whole).unwrap();
        let found = check(&options, &[]);
        assert_eq!((found.lines, found.problem_count), (3, 0), "{found:?}");
        assert!(found.notes[0].contains(&format!("{} bytes", tail.len())), "{found:?}");
        let trail = Trail::open(&options).unwrap();
        trail.finish(Event::new("stop")).unwrap();
        assert_eq!(check(&options, &[]).problem_count, 0);
        let said: Value = serde_json::from_str(&lines(&options.directory)[3]).unwrap();
        assert_eq!(said["cut_bytes"], tail.len());
    }
}

#[test]
fn a_full_disk_is_told_to_whoever_waits_and_ends_when_there_is_room() {
    let scratch = tempfile::tempdir().unwrap();
    let options = written(scratch.path(), AuditContent::Full, 1);
    let none = AuditOptions { reserve_bytes: u64::MAX, ..options.clone() };
    let error = Trail::open(&none).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("--audit-reserve"), "{error}");
    let trail = Trail::open(&options).unwrap();
    // A directory that nobody can write to stands for the full disk: the text has nowhere to go.
    let folder = options.directory.join("content");
    let aside = options.directory.join("aside");
    fs_err::rename(&folder, &aside).unwrap();
    fs_err::write(&folder, "in the way").unwrap();
    assert!(trail.write(case("lost")).is_err());
    assert!(trail.is_failing());
    fs_err::remove_file(&folder).unwrap();
    fs_err::rename(&aside, &folder).unwrap();
    while trail.is_failing() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    trail.write(case("kept")).unwrap();
    let found = check(&options, &[]);
    assert_eq!((found.problem_count, found.texts.kept), (0, 2), "{found:?}");
    assert!(lines(&options.directory).iter().any(|line| line.contains("\"since_utc\"")));
}
