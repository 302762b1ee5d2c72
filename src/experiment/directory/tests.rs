//! Tests of `directory.rs`.

use crate::diagnosis::{Blame, Diagnosis};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use std::io::Write;

use fs_err::OpenOptions;
use fs_err::os::unix::fs::OpenOptionsExt;

use super::*;
use crate::experiment::fixtures::{
    ITEMS, call, failed_item, item, plan, searching_plan, start, texts, write_finished,
    write_results, write_unfinished,
};
use crate::experiment::log::Log;

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("runs/first");
    (scratch, out)
}

fn error_of<T>(result: Result<T, RunError>) -> RunError {
    result.err().expect("an error")
}

fn mode(path: &Path) -> u32 {
    fs_err::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn only_its_owner_may_read_a_run() {
    let (_scratch, out) = scratch();
    write_finished(&out);
    assert_eq!(mode(&out), 0o700);
    let names: Vec<_> = fs_err::read_dir(&out).unwrap().map(Result::unwrap).collect();
    assert_eq!(names.len(), 5);
    for entry in names {
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.path());
    }
}

#[test]
fn an_empty_directory_is_taken_and_closed_to_others() {
    let (_scratch, out) = scratch();
    fs_err::create_dir_all(&out).unwrap();
    fs_err::set_permissions(&out, Permissions::from_mode(0o755)).unwrap();
    Directory::create(&out, &plan(), &texts(&ITEMS)).unwrap();
    assert_eq!(mode(&out), 0o700);
}

#[test]
fn what_exists_is_left_alone() {
    let (_scratch, out) = scratch();
    fs_err::create_dir_all(&out).unwrap();
    fs_err::write(out.join("thesis.tex"), "\\title{}").unwrap();
    fs_err::set_permissions(&out, Permissions::from_mode(0o755)).unwrap();
    let error = error_of(Directory::create(&out, &plan(), &texts(&ITEMS)));
    assert_eq!(error.to_string(), format!("{} exists and is not empty", out.display()));
    assert_eq!(error.hint().unwrap(), "choose another `--out`");
    assert_eq!(error.blame(), Blame::Usage);
    assert_eq!(mode(&out), 0o755);

    let error = error_of(Directory::begin(&out, &plan(), &texts(&ITEMS)));
    assert!(matches!(error, RunError::NotEmpty { .. }), "{error}");
    let error = error_of(Directory::create(&out.join("thesis.tex"), &plan(), &texts(&ITEMS)));
    assert!(error.to_string().contains("thesis.tex"), "{error}");
}

#[test]
fn an_unwritable_place_is_named() {
    let error = error_of(Directory::create(Path::new("/proc/wardround"), &plan(), &texts(&ITEMS)));
    assert!(matches!(error, RunError::Io(_)), "{error}");
    assert!(error.to_string().contains("/proc/wardround"), "{error}");
}

#[test]
fn a_creation_that_was_cut_off_starts_over() {
    let (_scratch, out) = scratch();
    fs_err::create_dir_all(&out).unwrap();
    fs_err::write(out.join("calls.jsonl"), "").unwrap();
    fs_err::write(out.join("dataset.jsonl"), "half").unwrap();
    fs_err::write(out.join(".plan.toml.partial"), "version = ").unwrap();
    let finished = Directory::begin(&out, &plan(), &texts(&ITEMS)).unwrap().finished;
    assert!(finished.calls.is_empty());
    assert_eq!(Plan::load(&out.join("plan.toml")).unwrap().found, plan().found);
}

#[test]
fn a_resumed_run_gets_what_is_done_and_goes_on() {
    let (_scratch, out) = scratch();
    let log = start(&out, &plan());
    log.call(call("q1", 0, "sym")).unwrap();
    log.item(item("q1", 0)).unwrap();
    log.item(failed_item("q2", 0)).unwrap();
    log.finish().unwrap();
    let before = Contents::read(&out).unwrap().heads();

    let directory = Directory::begin(&out, &plan(), &texts(&ITEMS)).unwrap();
    let finished = &directory.finished;
    assert_eq!((&directory.calls.head, &directory.items.head), (&before.calls, &before.items));
    let done = call("q1", 0, "sym");
    assert_eq!(finished.calls.len(), 1);
    assert_eq!(finished.calls[&done.key()].record, done.record);
    let done = ItemLine::from(item("q1", 0)).key();
    assert_eq!(finished.items.keys().collect::<Vec<_>>(), [&done]);

    let log = Log::start(directory).unwrap();
    let error = error_of(log.call(call("q1", 0, "sym")));
    assert!(error.to_string().ends_with("is logged already"), "{error}");
    let error = error_of(log.item(item("q1", 0)));
    assert!(error.to_string().ends_with("is logged already"), "{error}");
    log.call(call("q2", 0, "sym")).unwrap();
    log.item(item("q2", 0)).unwrap();
    log.finish().unwrap();

    let contents = Contents::read(&out).unwrap();
    assert_eq!(contents.calls.records[1].seq, 2);
    assert_eq!(contents.items.records.len(), 3);
    let outcome = contents.outcomes()[&ItemLine::from(item("q2", 0)).key()];
    assert_eq!(outcome.error(), None);
}

#[test]
fn a_torn_tail_is_cut_off_and_the_call_made_again() {
    let (_scratch, out) = scratch();
    write_unfinished(&out);
    let log = out.join("calls.jsonl");
    let whole = fs_err::read(&log).unwrap();
    let torn = whole.len() - 100;
    fs_err::write(&log, &whole[..torn]).unwrap();
    let items = out.join("items.jsonl");
    let mut file = fs_err::OpenOptions::new().append(true).open(&items).unwrap();
    file.write_all(b"{\"dataset\":\"med").unwrap();
    let items_before = fs_err::read(&items).unwrap();

    let directory = Directory::begin(&out, &plan(), &texts(&ITEMS)).unwrap();
    let finished = &directory.finished;
    assert_eq!(finished.calls.len(), 11);
    assert_eq!(finished.items.len(), 6);
    assert!(fs_err::read(&log).unwrap().ends_with(b"\"}\n"));
    assert_eq!(fs_err::read(&items).unwrap(), items_before[..items_before.len() - 15]);

    let log_handle = Log::start(directory).unwrap();
    log_handle.call(call("q3", 1, "ddx")).unwrap();
    log_handle.finish().unwrap();
    assert_eq!(fs_err::read(&log).unwrap(), whole);
    write_results(&out, 1).unwrap();
}

#[test]
fn nul_bytes_behind_any_log_are_cut_off() {
    for tail in [&b"\0\0\0\0"[..], b"{\"schema\":1,\"se\0\0\0"] {
        for name in [CallLine::FILE, ItemLine::FILE, SearchLine::FILE] {
            let (_scratch, out) = scratch();
            let plan = searching_plan();
            start(&out, &plan).finish().unwrap();
            let log = out.join(name);
            let whole = fs_err::read(&log).unwrap();
            fs_err::write(&log, [&whole, tail].concat()).unwrap();
            Directory::begin(&out, &plan, &texts(&ITEMS)).unwrap();
            assert_eq!(fs_err::read(&log).unwrap(), whole);
        }
    }
}

#[test]
fn a_whole_line_of_nul_bytes_is_damage() {
    let (_scratch, out) = scratch();
    write_unfinished(&out);
    let log = out.join("calls.jsonl");
    let whole = fs_err::read(&log).unwrap();
    fs_err::write(&log, [&whole[..], b"\0\0\0\n"].concat()).unwrap();
    let error = error_of(Directory::begin(&out, &plan(), &texts(&ITEMS)));
    assert!(matches!(error, RunError::BadLine { line: 13, .. }), "{error}");
}

#[test]
fn any_other_damage_is_left_as_it_is() {
    let (_scratch, out) = scratch();
    write_unfinished(&out);
    let log = out.join("calls.jsonl");
    let changed = fs_err::read_to_string(&log).unwrap().replacen("0.85", "0.95", 1);
    fs_err::write(&log, &changed).unwrap();
    let error = error_of(Directory::begin(&out, &plan(), &texts(&ITEMS)));
    assert!(matches!(&error, RunError::BadLine { path, line: 1, .. } if *path == log), "{error}");
    assert_eq!(error.blame(), Blame::Artefact);
    assert_eq!(fs_err::read_to_string(&log).unwrap(), changed);
}

#[test]
fn a_finished_run_that_was_cut_does_not_resume() {
    let (_scratch, out) = scratch();
    write_finished(&out);
    let log = out.join("items.jsonl");
    let whole = fs_err::read(&log).unwrap();
    fs_err::write(&log, &whole[..whole.len() - 9]).unwrap();
    let error = error_of(Directory::begin(&out, &plan(), &texts(&ITEMS)));
    assert!(matches!(error, RunError::Unreadable { .. }), "{error}");

    // Whole, it stays as it is.
    fs_err::write(&log, &whole).unwrap();
    let directory = Directory::begin(&out, &plan(), &texts(&ITEMS)).unwrap();
    assert!(directory.is_complete);
    assert!(fs_err::exists(out.join("results.json")).unwrap());
}

#[test]
fn a_missing_log_is_not_made_anew() {
    let (_scratch, out) = scratch();
    write_unfinished(&out);
    fs_err::remove_file(out.join("items.jsonl")).unwrap();
    let error = error_of(Directory::begin(&out, &plan(), &texts(&ITEMS)));
    assert!(matches!(error, RunError::Missing { .. }), "{error}");
    assert!(!fs_err::exists(out.join("items.jsonl")).unwrap());
}

#[test]
fn another_plan_does_not_resume() {
    let (_scratch, out) = scratch();
    write_unfinished(&out);
    let mut other = plan();
    other.seed = 43;
    other.host.engine.max_batch = 1;
    let error = error_of(Directory::begin(&out, &other, &texts(&ITEMS)));
    assert_eq!(
        error.to_string(),
        format!(
            "{}/plan.toml: inputs changed since the plan was written: seed is 42 against 43",
            out.display()
        )
    );
    assert_eq!(error.blame(), Blame::Artefact);
}

#[test]
fn another_version_does_not_resume_and_those_of_a_run_that_had_several_are_read() {
    let (_scratch, out) = scratch();
    write_unfinished(&out);
    let mut other = plan();
    other.version = "0.2.0".to_owned();
    let error = error_of(Directory::begin(&out, &other, &texts(&ITEMS)));
    assert!(error.to_string().contains("version is \"0.1.0\" against \"0.2.0\""), "{error}");
    assert!(error.hint().unwrap().contains("run --plan"));
    let both = r#"{"schema":1,"versions":["0.1.0","0.2.0"],"hosts":[]}"#;
    fs_err::write(out.join("versions.json"), both).unwrap();
    let results = write_results(&out, 1).unwrap();
    assert_eq!(results.versions, ["0.1.0", "0.2.0"]);
    // What the results say of it is checked against the file.
    fs_err::remove_file(out.join("versions.json")).unwrap();
    let error = verify::verify(&out, None).unwrap_err();
    assert!(matches!(error, RunError::BadLine { .. }), "{error}");
}

/// A path's handle (`O_PATH`) has no locks, as on some network file systems.
#[cfg(target_os = "linux")]
#[test]
fn a_file_system_without_locks_is_written_to() {
    const O_PATH: i32 = 0o10_000_000;
    let handle = OpenOptions::new().read(true).custom_flags(O_PATH).open("/dev/null").unwrap();
    lock(&handle, Path::new("runs/first")).unwrap();
}

#[test]
fn one_process_writes_at_a_time() {
    let (_scratch, out) = scratch();
    let first = Directory::create(&out, &plan(), &texts(&ITEMS)).unwrap();
    let error = error_of(Directory::begin(&out, &plan(), &texts(&ITEMS)));
    assert!(matches!(error, RunError::Busy { .. }), "{error}");
    drop(first);
    Directory::begin(&out, &plan(), &texts(&ITEMS)).unwrap();
}
