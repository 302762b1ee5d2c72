//! Checks that a run directory is what was written: plan, chains, then results.json against them.

use std::path::Path;

use itertools::{EitherOrBoth, Itertools};

use super::contents::Contents;
use super::error::{Defect, RunError};
use super::results::{self, Results};
use super::texts;

/// A directory whose every line is as it was written.
#[derive(Clone, Debug)]
pub struct Verified {
    pub contents: Contents,
    /// `None` for a run that has not finished.
    pub results: Option<Results>,
}

/// Verifies a run directory; an error names the file and the first bad line, of a changed plan.toml the file alone. Of a finished run
/// whose log was cut it is the line of results.json that says otherwise.
///
/// `expected_head` is any head that was noted when the run ended: results.json's own, which covers everything, or
/// that of calls, of items or of searches. Without one, a consistent rewrite of all files goes unnoticed.
pub fn verify(path: &Path, expected_head: Option<&str>) -> Result<Verified, RunError> {
    let contents = Contents::read(path)?;
    let results = check_results(&contents)?;
    if let Some(expected) = expected_head {
        let heads = contents.heads();
        let whole = results.as_ref().map(|results| &results.head);
        let known = [Some(&heads.calls), Some(&heads.items), heads.searches.as_ref(), whole];
        if !known.contains(&Some(&expected.trim().to_lowercase())) {
            let reason = format!("no head of this run is {expected}");
            return Err(RunError::Unreadable { path: path.to_owned(), reason });
        }
    }
    Ok(Verified { contents, results })
}

/// Reads and verifies a run that has finished.
pub fn read_finished(path: &Path) -> Result<(Contents, Results), RunError> {
    let contents = Contents::read(path)?;
    if let Some(results) = check_results(&contents)? {
        return Ok((contents, results));
    }
    // What is missing is said more exactly where it is an item.
    results::refuse_unfinished(&contents)?;
    Err(RunError::Unfinished { path: path.to_owned(), lacks: "has not finished".to_owned() })
}

/// Checks the outcomes against the texts, and results.json, where there is one, against the plan and the logs.
pub(super) fn check_results(contents: &Contents) -> Result<Option<Results>, RunError> {
    texts::check_outcomes(contents)?;
    let path = contents.path.join(results::FILE);
    let Some(bytes) = results::read_bytes(&contents.path)? else {
        return Ok(None);
    };
    let bad_line = |line, defect| RunError::BadLine { path: path.clone(), line, defect };
    let stored: Results = serde_json::from_slice(&bytes)
        .map_err(|error| bad_line(error.line(), Defect::no_record(&error)))?;
    if let Some((path, bytes)) = contents.torn().into_iter().next() {
        let reason = format!("the run has finished, and {bytes} bytes are of no whole line");
        return Err(RunError::Unreadable { path, reason });
    }
    // What nothing but `head` tells is taken as it stands.
    let mut expected = Results {
        version: stored.version.clone(),
        figures: stored.figures.clone(),
        elapsed_ms: stored.elapsed_ms,
        finished_at: stored.finished_at.clone(),
        ..Results::of(contents)
    };
    expected.head = expected.computed_head()?;
    match first_difference(&String::from_utf8_lossy(&bytes), &expected.text()?) {
        Some((line, defect)) => Err(bad_line(line, defect)),
        None => results::refuse_unfinished(contents).map(|()| Some(stored)),
    }
}

/// The first line, counted from 1, in which two texts differ.
pub fn first_difference(found: &str, expected: &str) -> Option<(usize, Defect)> {
    let mut lines = (1..).zip(found.split('\n').zip_longest(expected.split('\n')));
    lines.find_map(|(line, pair)| {
        let is_same = matches!(&pair, EitherOrBoth::Both(found, expected) if found == expected);
        let (found, expected) = pair.or("", "");
        let [found, expected] = [found, expected].map(|text| text.trim().to_owned());
        (!is_same).then_some((line, Defect::Figure { found, expected }))
    })
}

#[cfg(test)]
mod tests {
    use crate::diagnosis::{Blame, Diagnosis};
    use std::io::Write;
    use std::path::PathBuf;

    use fs_err::os::unix::fs::FileExt;

    use super::*;
    use crate::experiment::directory::Directory;
    use crate::experiment::fixtures::{
        ITEMS, call, item, plan, start, texts, write_finished, write_results, write_unfinished,
    };
    use crate::experiment::link::Link;
    use crate::experiment::log::Log;
    use crate::record::{CallLine, ItemLine};

    const LOGS: [&str; 2] = [CallLine::FILE, ItemLine::FILE];

    /// The file and line that verify blames.
    fn blamed(path: &Path) -> (PathBuf, usize) {
        let error = verify(path, None).expect_err("damage goes unnoticed");
        assert_eq!(error.blame(), Blame::Artefact, "{error}");
        match error {
            RunError::BadLine { path, line, .. } => (path, line),
            RunError::Changed { path, .. } | RunError::Unreadable { path, .. } => (path, 0),
            error => panic!("{error}"),
        }
    }

    /// Changes every byte of a file in turn and gives each one's line to `expect`, with the line that is blamed.
    fn change_every_byte(directory: &Path, name: &str, expect: impl Fn(usize, usize)) {
        let path = directory.join(name);
        let whole = fs_err::read(&path).unwrap();
        // In place: a file that is cut and written anew is slow on some file systems.
        let file = fs_err::OpenOptions::new().write(true).open(&path).unwrap();
        let mut line = 1;
        for (place, &byte) in whole.iter().enumerate() {
            let changed = byte ^ [0x01, 0x20, 0x80, 0x0a][place % 4];
            file.write_all_at(&[changed], place as u64).unwrap();
            let (blamed_path, blamed_line) = blamed(directory);
            assert_eq!(blamed_path, path, "byte {place} of line {line}");
            expect(line, blamed_line);
            file.write_all_at(&[byte], place as u64).unwrap();
            line += usize::from(byte == b'\n');
        }
        verify(directory, None).unwrap();
    }

    /// Short enough to damage every byte in turn: three calls, two items.
    fn write_short(path: &Path) {
        let mut plan = plan();
        plan.runs = 1;
        plan.dataset.items = vec!["q1".to_owned(), "q2".to_owned()];
        let log = start(path, &plan);
        log.call(call("q1", 0, "sym")).unwrap();
        log.call(call("q1", 0, "ddx")).unwrap();
        log.item(item("q1", 0)).unwrap();
        log.call(call("q2", 0, "sym")).unwrap();
        log.item(item("q2", 0)).unwrap();
        log.finish().unwrap();
    }

    #[test]
    fn a_run_as_it_was_written_verifies() {
        let out = tempfile::tempdir().unwrap();
        let results = write_finished(out.path());
        let verified = verify(out.path(), None).unwrap();
        assert_eq!(verified.contents.heads(), results.heads);
        assert_eq!(verified.results, Some(results.clone()));
        assert!(verified.contents.torn().is_empty());
        for head in [&results.head, &results.heads.calls, &results.heads.items] {
            verify(out.path(), Some(head)).unwrap();
            verify(out.path(), Some(&format!(" {}\n", head.to_uppercase()))).unwrap();
        }
        for head in [&results.heads.plan, "", &results.head[..63]] {
            let error = verify(out.path(), Some(head)).unwrap_err();
            assert!(matches!(error, RunError::Unreadable { .. }), "{error}");
        }
    }

    #[test]
    fn every_changed_byte_of_a_log_is_found() {
        let out = tempfile::tempdir().unwrap();
        write_short(out.path());
        for log in LOGS {
            change_every_byte(out.path(), log, |line, blamed| assert_eq!(blamed, line));
        }
        write_results(out.path(), 1234).unwrap();
        for log in LOGS {
            change_every_byte(out.path(), log, |line, blamed| assert_eq!(blamed, line));
        }
    }

    #[test]
    fn every_changed_byte_of_the_plan_is_found() {
        let out = tempfile::tempdir().unwrap();
        write_short(out.path());
        change_every_byte(out.path(), "plan.toml", |_, blamed| assert_eq!(blamed, 0));
    }

    #[test]
    fn every_changed_byte_of_the_results_is_found() {
        let out = tempfile::tempdir().unwrap();
        write_short(out.path());
        write_results(out.path(), 1234).unwrap();
        let text = fs_err::read_to_string(out.path().join(results::FILE)).unwrap();
        // Where JSON no longer reads, the reader says how far it came.
        let end = text.lines().count() + 1;
        change_every_byte(out.path(), results::FILE, |line, blamed| {
            assert!(blamed <= end, "line {line} changed, {blamed} blamed");
        });
    }

    #[test]
    fn every_cut_of_a_finished_run_is_found() {
        let out = tempfile::tempdir().unwrap();
        write_short(out.path());
        write_results(out.path(), 1234).unwrap();
        for log in LOGS {
            let path = out.path().join(log);
            let whole = fs_err::read(&path).unwrap();
            let file = fs_err::OpenOptions::new().append(true).open(&path).unwrap();
            (&file).write_all(b"{\"seq\"").unwrap();
            assert_eq!(blamed(out.path()).0, path);
            for length in (0..whole.len()).rev() {
                file.set_len(length as u64).unwrap();
                let is_torn = !whole[..length].is_empty() && whole[length - 1] != b'\n';
                let expected = if is_torn { &path } else { &out.path().join(results::FILE) };
                assert_eq!(blamed(out.path()).0, *expected, "at {length}");
            }
            fs_err::remove_file(&path).unwrap();
            let error = verify(out.path(), None).unwrap_err();
            assert!(matches!(error, RunError::Missing { .. }), "{error}");
            fs_err::write(&path, whole).unwrap();
        }
    }

    #[test]
    fn a_line_that_the_results_do_not_count_is_found() {
        let out = tempfile::tempdir().unwrap();
        write_finished(out.path());
        let results = fs_err::read(out.path().join(results::FILE)).unwrap();
        let directory = Directory::begin(out.path(), &plan(), &texts(&ITEMS)).unwrap();
        let log = Log::start(directory).unwrap();
        log.item(item("q4", 0)).unwrap();
        log.finish().unwrap();
        fs_err::write(out.path().join(results::FILE), results).unwrap();
        assert_eq!(blamed(out.path()).0, out.path().join(results::FILE));
    }

    #[test]
    fn a_killed_run_is_unfinished_not_corrupt() {
        let out = tempfile::tempdir().unwrap();
        write_unfinished(out.path());
        let verified = verify(out.path(), None).unwrap();
        assert_eq!(verified.results, None);
        assert!(verified.contents.torn().is_empty());
        verify(out.path(), Some(&verified.contents.heads().calls)).unwrap();

        let path = out.path().join("calls.jsonl");
        let whole = fs_err::read(&path).unwrap();
        fs_err::write(&path, &whole[..whole.len() - 1]).unwrap();
        let torn = verify(out.path(), None).unwrap();
        let bytes = torn.contents.calls.torn_bytes;
        assert_eq!(torn.contents.torn(), [(path, bytes)]);
        assert_eq!(torn.contents.heads().call_lines, 11);
        let error = verify(out.path(), Some(&verified.contents.heads().calls)).unwrap_err();
        assert!(matches!(error, RunError::Unreadable { .. }), "{error}");
    }

    #[test]
    fn what_is_no_run_is_told() {
        let out = tempfile::tempdir().unwrap();
        for path in [out.path().to_owned(), out.path().join("nowhere")] {
            let error = verify(&path, None).unwrap_err();
            assert!(matches!(error, RunError::NoPlan { .. }), "{error}");
            assert_eq!(error.blame(), Blame::Artefact);
        }
    }
}
