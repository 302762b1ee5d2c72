//! Downloads that break off, fall silent or bring other bytes.

use crate::diagnosis::{Blame, Diagnosis};
use std::time::{Duration, Instant};

use super::super::fake_hub::{Fault, REPOSITORY, serve};
use super::{SHARD, bytes_of, leftovers, options, read, tiny, with};
use crate::hub::fetch::incomplete;
use crate::hub::{HubError, fetch, resolve};

/// Long for the loopback, short for a test.
const BRIEF: Duration = Duration::from_millis(200);

#[test]
fn a_connection_that_dies_is_taken_up_where_it_broke_off() {
    let hub = with(SHARD, Fault::DieOnce(12_345));
    let cache = tempfile::tempdir().unwrap();
    let fetched = fetch(REPOSITORY, None, &options(&hub, cache.path())).unwrap();
    assert_eq!(read(&fetched.directory, SHARD), bytes_of(SHARD));
    let ranges: Vec<_> = hub
        .requests()
        .iter()
        .filter(|request| request.path.ends_with(SHARD))
        .map(|request| request.header("range").map(str::to_owned))
        .collect();
    assert_eq!(ranges, [None, Some("bytes=12345-".to_owned())]);
}

#[test]
fn a_fetch_that_was_killed_is_taken_up_by_the_next() {
    let hub = serve(tiny());
    let folder = tempfile::tempdir().unwrap();
    let options = options(&hub, folder.path());
    let whole = fetch(REPOSITORY, None, &options).unwrap();
    let blob = fs_err::canonicalize(whole.directory.join(SHARD)).unwrap();
    fs_err::remove_file(whole.directory.join(SHARD)).unwrap();
    fs_err::rename(&blob, incomplete(&blob)).unwrap();
    let part = fs_err::OpenOptions::new().write(true).open(incomplete(&blob)).unwrap();
    part.set_len(999).unwrap();
    drop(part);

    hub.requests();
    let again = resolve(REPOSITORY, &options).unwrap();
    assert_eq!(read(&again.directory, SHARD), bytes_of(SHARD));
    assert!(hub.requests().iter().any(|request| request.header("range") == Some("bytes=999-")));
}

#[test]
fn a_server_that_ignores_ranges_starts_the_file_anew() {
    let hub = with(SHARD, Fault::IgnoreRange);
    let folder = tempfile::tempdir().unwrap();
    let options = options(&hub, folder.path());
    fetch(REPOSITORY, Some(&folder.path().join("to")), &options).unwrap();
    let file = folder.path().join("to").join(SHARD);
    let mut sum = crate::digest::Sum::default();
    sum.update(&bytes_of(SHARD));
    let part = folder.path().join("to").join(format!("{SHARD}.{}.incomplete", sum.finish()));
    fs_err::remove_file(&file).unwrap();
    fs_err::write(&part, "half of something").unwrap();

    fetch(REPOSITORY, Some(&folder.path().join("to")), &options).unwrap();
    assert_eq!(fs_err::read(&file).unwrap(), bytes_of(SHARD));
    assert!(!part.exists());
}

#[test]
fn a_wrong_sum_deletes_the_file_and_is_an_error() {
    let hub = with(SHARD, Fault::Lie);
    let cache = tempfile::tempdir().unwrap();
    let error = fetch(REPOSITORY, None, &options(&hub, cache.path())).unwrap_err();
    assert!(matches!(&error, HubError::Changed { file, .. } if file == SHARD), "{error}");
    assert_eq!(error.blame(), Blame::Artefact);
    assert_eq!(leftovers(cache.path(), ".incomplete"), 0);
    assert_eq!(leftovers(cache.path(), SHARD), 0);
    // Nothing points to a snapshot that is not whole.
    assert!(!cache.path().join("models--org--tiny/refs/main").exists());
}

#[test]
fn a_silent_hub_times_out() {
    for path in ["/revision/main", "config.json"] {
        let hub = with(path, Fault::Hang);
        let cache = tempfile::tempdir().unwrap();
        let mut options = options(&hub, cache.path());
        options.timeout = BRIEF;
        let start = Instant::now();
        let error = fetch(REPOSITORY, None, &options).unwrap_err();
        assert!(matches!(error, HubError::Unreachable { .. }), "{error}");
        assert!(start.elapsed() < Duration::from_secs(8));
    }
}

#[test]
fn a_download_that_falls_silent_gives_up_and_keeps_what_arrived() {
    let hub = with(SHARD, Fault::Stall(4096));
    let cache = tempfile::tempdir().unwrap();
    let mut options = options(&hub, cache.path());
    options.timeout = BRIEF;
    let error = fetch(REPOSITORY, None, &options).unwrap_err();
    assert!(matches!(error, HubError::Unreachable { .. }), "{error}");
    let blobs = cache.path().join("models--org--tiny/blobs");
    let part = fs_err::read_dir(blobs).unwrap().map(|entry| entry.unwrap().path());
    let part =
        part.filter(|path| path.extension().is_some_and(|extension| extension == "incomplete"));
    let part: Vec<_> = part.map(|path| fs_err::read(path).unwrap()).collect();
    assert_eq!(part, [&bytes_of(SHARD)[..4096]]);
}
