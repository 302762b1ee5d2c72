//! What a user may type, and what comes of it without a connection.

use super::super::{Status, verify};
use super::*;
use crate::diagnosis::{Blame, Diagnosis};
use crate::digest::Sum;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const FILES: [(&str, &str); 5] = [
    ("config.json", "{}"),
    ("tokenizer.json", "{}"),
    (
        "model.safetensors.index.json",
        r#"{"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}"#,
    ),
    ("one.safetensors", "1"),
    ("two.safetensors", "2"),
];

fn offline(cache: &Path) -> HubOptions {
    let options = HubOptions::from_lookup(|name| match name {
        "HF_HUB_CACHE" => Some(cache.into()),
        "HF_HUB_OFFLINE" => Some("1".into()),
        _ => None,
    });
    options.unwrap()
}

fn sum_of(text: &str) -> String {
    let mut sum = Sum::default();
    sum.update(text.as_bytes());
    sum.finish()
}

/// Lays a repository out as the hub's own tools do, with links to blobs or with the files themselves.
fn lay_out(cache: &Path, id: &str, commit: &str, links: bool) -> PathBuf {
    let cached = CachedRepository::of(cache, id);
    let snapshot = cached.snapshot(commit);
    fs_err::create_dir_all(&snapshot).unwrap();
    fs_err::create_dir_all(cached.blob("")).unwrap();
    fs_err::create_dir_all(cached.reference("")).unwrap();
    fs_err::write(cached.reference("main"), commit).unwrap();
    for (name, text) in FILES {
        let etag = match name.ends_with(".safetensors") {
            true => sum_of(text),
            // As long as git's sum, which the hub names it by.
            false => sum_of(text)[..40].to_owned(),
        };
        if cfg!(unix) && links {
            fs_err::write(cached.blob(&etag), text).unwrap();
            #[cfg(unix)]
            fs_err::os::unix::fs::symlink(format!("../../blobs/{etag}"), snapshot.join(name))
                .unwrap();
        } else {
            fs_err::write(snapshot.join(name), text).unwrap();
        }
    }
    snapshot
}

#[test]
fn the_cache_serves_a_branch_and_its_commit_with_and_without_links() {
    for links in [true, false] {
        let cache = tempfile::tempdir().unwrap();
        let snapshot = lay_out(cache.path(), "org/name", COMMIT, links);
        for member in
            ["org/name".to_owned(), "org/name@main".to_owned(), format!("org/name@{COMMIT}")]
        {
            let found = resolve(&member, &offline(cache.path())).unwrap();
            assert_eq!(found.directory, snapshot);
            assert_eq!(found.name, "org/name");
            assert_eq!(found.revision.as_deref(), Some(COMMIT));
            assert_eq!(found.files.weights.len(), 2);
        }
    }
}

#[cfg(unix)]
#[test]
fn a_cached_shard_is_verified_by_its_blobs_name() {
    let cache = tempfile::tempdir().unwrap();
    let snapshot = lay_out(cache.path(), "org/name", COMMIT, true);
    let found = resolve("org/name", &offline(cache.path())).unwrap();
    fs_err::write(snapshot.join("two.safetensors"), "changed").unwrap();
    fs_err::write(snapshot.join("config.json"), "changed").unwrap();
    let checks = verify(&found).unwrap();
    let statuses: Vec<_> = checks.into_iter().map(|check| (check.name, check.status)).collect();
    let hub = super::super::Authority::Hub;
    let expected = [
        ("config.json", Status::Unknown),
        ("model.safetensors.index.json", Status::Unknown),
        ("one.safetensors", Status::Ok(hub)),
        ("tokenizer.json", Status::Unknown),
        ("two.safetensors", Status::Mismatch { authority: hub, expected: sum_of("2") }),
    ];
    assert_eq!(statuses, expected.map(|(name, status)| (name.to_owned(), status)));
}

#[test]
fn a_card_pins_its_commit_and_checks_its_sums() {
    let cache = tempfile::tempdir().unwrap();
    let card = Card::find("qwen3-4b").unwrap();
    lay_out(cache.path(), &card.repository, &card.revision, true);
    for member in ["qwen3-4b", "Qwen/Qwen3-4B"] {
        let found = resolve(member, &offline(cache.path())).unwrap();
        assert_eq!(found.name, "qwen3-4b");
        assert_eq!(found.revision.as_ref(), Some(&card.revision));
        let checks = verify(&found).unwrap();
        let status =
            |name: &str| checks.iter().find(|check| check.name == name).map(|check| &check.status);
        assert!(matches!(status("config.json"), Some(Status::Mismatch { .. })));
        assert_eq!(status("model-00001-of-00003.safetensors"), Some(&Status::Missing));
    }
    // Another commit of the same repository is not the card's business.
    let cached = CachedRepository::of(cache.path(), &card.repository);
    fs_err::rename(cached.snapshot(&card.revision), cached.snapshot(COMMIT)).unwrap();
    let found = resolve(&format!("qwen3-4b@{COMMIT}"), &offline(cache.path())).unwrap();
    let checks = verify(&found).unwrap();
    assert!(checks.iter().all(|check| !matches!(check.status, Status::Missing)));
    let hint = resolve("qwen3-4b", &offline(cache.path())).unwrap_err().hint().unwrap();
    assert!(hint.contains("models fetch qwen3-4b "), "{hint}");
    let hint = resolve("qwen3-4b@v2", &offline(cache.path())).unwrap_err().hint().unwrap();
    assert!(hint.contains("models fetch Qwen/Qwen3-4B@v2 "), "{hint}");
}

#[test]
fn what_the_cache_lacks_is_named_with_everything_that_leads_there() {
    for (name, _) in FILES {
        let cache = tempfile::tempdir().unwrap();
        let snapshot = lay_out(cache.path(), "org/name", COMMIT, true);
        fs_err::remove_file(snapshot.join(name)).unwrap();
        let error = resolve("org/name", &offline(cache.path())).unwrap_err();
        let text = format!("{error} {}", error.hint().unwrap());
        let what = if name.contains("index") { "weights" } else { name };
        let cache = cache.path().to_str().unwrap();
        for part in
            ["org/name", "main", what, cache, "HF_HUB_OFFLINE", "wardround models fetch org/name"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(error.blame(), Blame::Artefact);
    }
}

#[test]
fn a_link_to_a_blob_that_is_gone_counts_as_missing() {
    let cache = tempfile::tempdir().unwrap();
    lay_out(cache.path(), "org/name", COMMIT, true);
    let cached = CachedRepository::of(cache.path(), "org/name");
    let blob = cached.blob(&sum_of("1"));
    if blob.exists() {
        fs_err::remove_file(blob).unwrap();
        let error = resolve("org/name", &offline(cache.path())).unwrap_err();
        assert!(error.to_string().contains("one.safetensors"), "{error}");
    }
}

#[test]
fn a_directory_is_used_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = lay_out(folder.path(), "org/name", COMMIT, false);
    let options = offline(folder.path());
    let found = resolve(snapshot.to_str().unwrap(), &options).unwrap();
    // Where it lies says where it is from.
    let origin = (found.repository.as_deref(), found.revision.as_deref());
    assert_eq!((found.name.as_str(), origin), (COMMIT, (Some("org/name"), Some(COMMIT))));
    fs_err::remove_file(snapshot.join("tokenizer.json")).unwrap();
    let without = resolve(snapshot.to_str().unwrap(), &options).unwrap();
    assert!(without.tokenizer().unwrap_err().to_string().contains("tokenizer.json"));

    let file = snapshot.join("config.json");
    let error = resolve(file.to_str().unwrap(), &offline(folder.path())).unwrap_err();
    assert!(matches!(error, HubError::UnknownModel { .. }), "{error}");
    let plain = folder.path().join("plain");
    fs_err::rename(snapshot, &plain).unwrap();
    fs_err::write(plain.join("provenance.toml"), "repository = 1").unwrap();
    let error = resolve(plain.to_str().unwrap(), &options).unwrap_err();
    assert!(matches!(error, HubError::Malformed { .. }), "{error}");
}

#[test]
fn a_name_that_is_none_is_refused_before_the_cache_is_touched() {
    let cache = tempfile::tempdir().unwrap();
    let options = offline(cache.path());
    for member in
        ["gemma3", "", "@main", "a/..", "../x/y", "org/--", "org/a b", "org/näme", "gemma3-4b "]
    {
        let error = resolve(member, &options).unwrap_err();
        let is_name = matches!(error, HubError::UnknownModel { .. });
        assert!(is_name && error.blame() == Blame::Usage, "{member}: {error}");
    }
    let hint = resolve("gemma", &options).unwrap_err().hint().unwrap();
    assert!(Card::all().iter().all(|card| hint.contains(&card.name)), "{hint}");
    for path in ["./models/gemma", "/absent", "a/b/c"] {
        let error = resolve(path, &options).unwrap_err();
        assert!(matches!(error, HubError::UnknownModel { .. }), "{path}: {error}");
    }
}

#[test]
fn an_environment_without_a_cache_says_so() {
    let options = HubOptions::from_lookup(|_| None).unwrap();
    let error = resolve("org/name", &options).unwrap_err();
    assert!(matches!(error, HubError::NoCache), "{error}");
}

#[cfg(not(feature = "hub"))]
#[test]
fn a_build_without_the_feature_says_so() {
    let cache = tempfile::tempdir().unwrap();
    let mut options = offline(cache.path());
    options.offline = None;
    for error in
        [resolve("org/name", &options).unwrap_err(), fetch("org/name", None, &options).unwrap_err()]
    {
        assert!(error.to_string().contains("feature `hub`"), "{error}");
        assert!(error.hint().unwrap().contains("wardround models fetch org/name"), "{error}");
    }
}
