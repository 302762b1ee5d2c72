//! Fetching against a hub on the loopback.

use std::path::Path;
use std::time::{Duration, Instant};

use super::super::{
    Authority, Barrier, Card, Environment, HubError, HubOptions, Status, fetch, resolve, verify,
};
use super::fake_hub::{COMMIT, FakeHub, Fault, REPOSITORY, Repository};

const SHARD: &str = "model-00001-of-00002.safetensors";
const OTHER: &str = "model-00002-of-00002.safetensors";
/// Long for the loopback, short for a test.
const BRIEF: Duration = Duration::from_millis(200);

fn tiny() -> Repository {
    let index = format!(r#"{{"weight_map": {{"a": "{SHARD}", "b": "{OTHER}", "c": "{SHARD}"}}}}"#);
    Repository {
        id: REPOSITORY,
        files: vec![
            ("README.md", b"not needed".to_vec()),
            ("config.json", b"{}".to_vec()),
            ("tokenizer.json", vec![b' '; 100]),
            ("chat_template.jinja", b"{{ messages }}".to_vec()),
            ("model.safetensors.index.json", index.into_bytes()),
            (SHARD, (0..5000u32).flat_map(u32::to_le_bytes).collect()),
            (OTHER, vec![7; 3000]),
        ],
        faults: Vec::new(),
    }
}

fn with(path: &'static str, fault: Fault) -> FakeHub {
    FakeHub::serve(Repository {
        faults: vec![(path, fault)],
        ..tiny()
    })
}

fn options(hub: &FakeHub, cache: &Path) -> HubOptions {
    let environment = Environment::from_lookup(|name| match name {
        "HF_HUB_CACHE" => Some(cache.into()),
        "HF_ENDPOINT" => Some(hub.endpoint.clone().into()),
        "HF_TOKEN" => Some("hf_secret".into()),
        _ => None,
    })
    .unwrap();
    HubOptions {
        quiet: true,
        ..HubOptions::new(environment)
    }
}

fn refusal(fault: Fault, path: &'static str) -> HubError {
    let hub = with(path, fault);
    let cache = tempfile::tempdir().unwrap();
    fetch(REPOSITORY, None, &options(&hub, cache.path())).unwrap_err()
}

fn read(directory: &Path, name: &str) -> Vec<u8> {
    fs_err::read(directory.join(name)).unwrap()
}

fn bytes_of(name: &str) -> Vec<u8> {
    tiny()
        .files
        .into_iter()
        .find(|(file, _)| *file == name)
        .unwrap()
        .1
}

/// Every path below `directory` that ends with `suffix`.
fn leftovers(directory: &Path, suffix: &str) -> usize {
    let entries = fs_err::read_dir(directory)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| match path.is_dir() {
            true => leftovers(&path, suffix),
            false => usize::from(path.to_string_lossy().ends_with(suffix)),
        })
        .sum()
}

#[test]
fn a_model_lands_in_the_cache_and_is_found_there_offline() {
    let hub = FakeHub::serve(tiny());
    let cache = tempfile::tempdir().unwrap();
    let mut options = options(&hub, cache.path());
    let fetched = resolve(REPOSITORY, &options).unwrap();

    let root = cache.path().join("models--org--tiny");
    assert_eq!(fetched.directory, root.join("snapshots").join(COMMIT));
    assert_eq!(fetched.revision.as_deref(), Some(COMMIT));
    assert_eq!(
        fs_err::read_to_string(root.join("refs/main")).unwrap(),
        COMMIT
    );
    for name in [SHARD, OTHER, "config.json", "chat_template.jinja"] {
        assert_eq!(read(&fetched.directory, name), bytes_of(name), "{name}");
    }
    assert!(!fetched.directory.join("README.md").exists());
    assert_eq!(leftovers(cache.path(), ".incomplete"), 0);
    #[cfg(unix)]
    assert!(
        fs_err::read_link(fetched.directory.join(SHARD))
            .unwrap()
            .starts_with("../../blobs")
    );

    hub.requests();
    options.offline = true;
    let found = resolve(REPOSITORY, &options).unwrap();
    assert_eq!(found.files.weights, fetched.files.weights);
    assert_eq!(hub.requests(), []);
}

#[test]
fn what_is_whole_is_kept_and_what_is_not_is_fetched_again() {
    let hub = FakeHub::serve(tiny());
    let cache = tempfile::tempdir().unwrap();
    let options = options(&hub, cache.path());
    let fetched = fetch(REPOSITORY, None, &options).unwrap();
    let damaged = fs_err::canonicalize(fetched.directory.join(OTHER)).unwrap();
    fs_err::write(&damaged, vec![8; 3000]).unwrap();
    let checks = verify(&fetched).unwrap();
    let damaged_only: Vec<_> = checks
        .iter()
        .filter(|check| matches!(check.status, Status::Mismatch { .. }))
        .collect();
    assert_eq!(damaged_only.len(), 1);
    assert_eq!(damaged_only[0].name, OTHER);

    hub.requests();
    fetch(REPOSITORY, None, &options).unwrap();
    let downloads: Vec<_> = hub
        .requests()
        .into_iter()
        .filter(|request| request.method == "GET" && !request.path.starts_with("/api"))
        .map(|request| request.path)
        .collect();
    assert_eq!(
        downloads,
        [format!("/{REPOSITORY}/resolve/{COMMIT}/{OTHER}")]
    );
    assert_eq!(read(&fetched.directory, OTHER), bytes_of(OTHER));
}

#[test]
fn a_connection_that_dies_is_taken_up_where_it_broke_off() {
    let hub = with(SHARD, Fault::DieOnce(12_345));
    let cache = tempfile::tempdir().unwrap();
    let fetched = fetch(REPOSITORY, None, &options(&hub, cache.path())).unwrap();
    assert_eq!(read(&fetched.directory, SHARD), bytes_of(SHARD));
    let ranges: Vec<_> = hub
        .requests()
        .iter()
        .filter(|request| request.method == "GET" && request.path.ends_with(SHARD))
        .map(|request| request.header("range").map(str::to_owned))
        .collect();
    assert_eq!(ranges, [None, Some("bytes=12345-".to_owned())]);
}

#[test]
fn a_fetch_that_was_killed_is_taken_up_by_the_next() {
    let hub = FakeHub::serve(tiny());
    let folder = tempfile::tempdir().unwrap();
    let options = options(&hub, folder.path());
    let whole = fetch(REPOSITORY, None, &options).unwrap();
    let blob = fs_err::canonicalize(whole.directory.join(SHARD)).unwrap();
    fs_err::remove_file(whole.directory.join(SHARD)).unwrap();
    fs_err::rename(&blob, super::incomplete(&blob)).unwrap();
    let part = fs_err::OpenOptions::new()
        .write(true)
        .open(super::incomplete(&blob))
        .unwrap();
    part.set_len(999).unwrap();
    drop(part);

    hub.requests();
    let again = resolve(REPOSITORY, &options).unwrap();
    assert_eq!(read(&again.directory, SHARD), bytes_of(SHARD));
    assert!(
        hub.requests()
            .iter()
            .any(|request| request.header("range") == Some("bytes=999-"))
    );
}

#[test]
fn a_server_that_ignores_ranges_starts_the_file_anew() {
    let hub = with(SHARD, Fault::IgnoreRange);
    let folder = tempfile::tempdir().unwrap();
    let options = options(&hub, folder.path());
    fetch(REPOSITORY, Some(&folder.path().join("to")), &options).unwrap();
    let file = folder.path().join("to").join(SHARD);
    let mut sum = super::super::digest::Sum::default();
    sum.update(&bytes_of(SHARD));
    let part = folder
        .path()
        .join("to")
        .join(format!("{SHARD}.{}.incomplete", sum.finish()));
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
    assert!(
        matches!(&error, HubError::WrongSum { file, .. } if file == SHARD),
        "{error}"
    );
    assert!(error.is_missing_artefact());
    assert_eq!(leftovers(cache.path(), ".incomplete"), 0);
    assert_eq!(leftovers(cache.path(), SHARD), 0);
    // Nothing points to a snapshot that is not whole.
    assert!(!cache.path().join("models--org--tiny/refs/main").exists());
}

#[test]
fn a_gated_model_is_explained() {
    for status in [401, 403] {
        let error = refusal(Fault::Deny(status, "GatedRepo"), "config.json");
        assert!(
            matches!(
                error,
                HubError::Refused {
                    with_token: true,
                    ..
                }
            ),
            "{error}"
        );
        assert!(error.to_string().contains(REPOSITORY), "{error}");
    }

    let hub = with("config.json", Fault::Deny(401, "GatedRepo"));
    let cache = tempfile::tempdir().unwrap();
    let mut options = options(&hub, cache.path());
    options.environment = Environment::from_lookup(|name| match name {
        "HF_HUB_CACHE" => Some(cache.path().into()),
        "HF_ENDPOINT" => Some(hub.endpoint.clone().into()),
        _ => None,
    })
    .unwrap();
    let hint = fetch(REPOSITORY, None, &options)
        .unwrap_err()
        .hint()
        .unwrap();
    assert!(
        hint.contains("https://huggingface.co/org/tiny") && hint.contains("HF_TOKEN"),
        "{hint}"
    );

    // A model with a card names the card's licence page, wherever its files come from.
    let hub = with(
        super::super::Card::find("gemma3-4b")
            .unwrap()
            .revision
            .as_str(),
        Fault::Deny(403, "GatedRepo"),
    );
    options.environment.endpoint = hub.endpoint.clone();
    let hint = fetch("gemma3-4b", None, &options)
        .unwrap_err()
        .hint()
        .unwrap();
    assert!(
        hint.contains("https://huggingface.co/google/gemma-3-4b-it"),
        "{hint}"
    );
}

#[test]
fn what_the_hub_does_not_have_is_named() {
    let hub = FakeHub::serve(tiny());
    let cache = tempfile::tempdir().unwrap();
    let options = options(&hub, cache.path());
    for member in ["org/absent", "org/tiny@v9"] {
        let error = fetch(member, None, &options).unwrap_err();
        assert!(
            matches!(error, HubError::NotFound { .. }),
            "{member}: {error}"
        );
        assert!(
            error
                .to_string()
                .contains(member.split('@').next().unwrap()),
            "{error}"
        );
    }
    let hidden = refusal(Fault::Deny(401, "RepoNotFound"), "/revision/main");
    assert!(matches!(hidden, HubError::NotFound { .. }), "{hidden}");

    let mut repository = tiny();
    repository
        .files
        .retain(|(name, _)| *name != "tokenizer.json");
    let hub = FakeHub::serve(repository);
    let error = fetch(REPOSITORY, None, &self::options(&hub, cache.path())).unwrap_err();
    assert!(error.to_string().contains("tokenizer.json"), "{error}");
}

#[test]
fn a_silent_hub_times_out() {
    for path in ["/revision/main", "config.json"] {
        let hub = with(path, Fault::Hang);
        let cache = tempfile::tempdir().unwrap();
        let mut options = options(&hub, cache.path());
        options.environment.metadata_timeout = BRIEF;
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
    options.environment.download_timeout = BRIEF;
    let error = fetch(REPOSITORY, None, &options).unwrap_err();
    assert!(matches!(error, HubError::Unreachable { .. }), "{error}");
    let blobs = cache.path().join("models--org--tiny/blobs");
    let part = fs_err::read_dir(blobs)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let part = part.filter(|path| {
        path.extension()
            .is_some_and(|extension| extension == "incomplete")
    });
    let part: Vec<_> = part.map(|path| fs_err::read(path).unwrap()).collect();
    assert_eq!(part, [&bytes_of(SHARD)[..4096]]);
}

#[test]
fn the_token_goes_to_the_hub_and_not_to_its_store() {
    let hub = with(SHARD, Fault::Elsewhere);
    let cache = tempfile::tempdir().unwrap();
    let fetched = fetch(REPOSITORY, None, &options(&hub, cache.path())).unwrap();
    assert_eq!(read(&fetched.directory, SHARD), bytes_of(SHARD));
    let requests = hub.requests();
    assert!(
        requests
            .iter()
            .any(|request| request.path.starts_with("/store/"))
    );
    for request in requests {
        let expected = (!request.path.starts_with("/store/")).then_some("Bearer hf_secret");
        assert_eq!(request.header("authorization"), expected, "{request:?}");
    }
}

#[test]
fn a_folder_can_be_verified_where_there_is_no_hub() {
    let hub = FakeHub::serve(tiny());
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("carried");
    let mut options = options(&hub, folder.path());
    fetch(REPOSITORY, Some(&to), &options).unwrap();
    assert_eq!(leftovers(&to, ".incomplete"), 0);

    options.offline = true;
    let carried = resolve(to.to_str().unwrap(), &options).unwrap();
    assert_eq!(carried.name, "carried");
    assert_eq!(carried.repository.as_deref(), Some(REPOSITORY));
    assert_eq!(carried.revision.as_deref(), Some(COMMIT));
    let checks = verify(&carried).unwrap();
    assert_eq!(checks.len(), 6);
    assert!(
        checks
            .iter()
            .all(|check| matches!(check.status, Status::Ok(_))),
        "{checks:?}"
    );

    fs_err::write(to.join(OTHER), "changed").unwrap();
    fs_err::remove_file(to.join("chat_template.jinja")).unwrap();
    let checks = verify(&carried).unwrap_err();
    assert!(
        checks.to_string().contains("chat_template.jinja"),
        "{checks}"
    );
    let checks = verify(&resolve(to.to_str().unwrap(), &options).unwrap()).unwrap();
    let status = |name: &str| {
        &checks
            .iter()
            .find(|check| check.name == name)
            .unwrap()
            .status
    };
    assert!(matches!(status(OTHER), Status::Mismatch { .. }));
    assert_eq!(*status("chat_template.jinja"), Status::Missing);
}

/// An encoder's repository with other files than its card's, at another commit; no sum of the card is at stake.
fn encoder(id: &'static str, files: &[&'static str]) -> FakeHub {
    let named = |name: &&'static str| (*name, [name.as_bytes(); 20].concat());
    FakeHub::serve(Repository {
        id,
        files: files.iter().map(named).collect(),
        faults: Vec::new(),
    })
}

const DEBERTA: &str = "microsoft/deberta-xlarge-mnli";
const DEBERTA_TEXTS: [&str; 5] = [
    "README.md",
    "config.json",
    "vocab.json",
    "merges.txt",
    "tokenizer_config.json",
];

#[test]
fn an_encoder_is_fetched_by_its_cards_list_and_verified_where_there_is_no_hub() {
    let card = Card::find("all-minilm-l6-v2").unwrap();
    let minilm: Vec<&'static str> = card.files.iter().map(|file| file.name.as_str()).collect();
    let weights = |form| [&DEBERTA_TEXTS[..], &["tf_model.h5", form]].concat();
    let (pickle, tensors) = (weights("pytorch_model.bin"), weights("model.safetensors"));
    let bleurt = ["config.json", "spm.model", "pytorch_model.bin", "README.md"];
    for (member, id, served, wanted) in [
        (
            "all-minilm-l6-v2",
            "sentence-transformers/all-MiniLM-L6-v2",
            &minilm[..],
            7,
        ),
        ("deberta-xlarge-mnli", DEBERTA, &pickle, 5),
        ("deberta-xlarge-mnli", DEBERTA, &tensors, 5),
        ("bleurt-20", "lucadiliello/BLEURT-20", &bleurt, 3),
    ] {
        let hub = encoder(id, served);
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("carried");
        let mut options = options(&hub, folder.path());
        let fetched = fetch(&format!("{member}@main"), Some(&to), &options).unwrap();
        assert_eq!(fetched.name, member);
        assert_eq!(leftovers(&to, ".incomplete"), 0);
        for unwanted in ["README.md", "tf_model.h5"] {
            assert!(!to.join(unwanted).exists());
        }

        options.offline = true;
        let carried = resolve(to.to_str().unwrap(), &options).unwrap();
        assert_eq!(carried.repository.as_deref(), Some(id));
        assert_eq!(carried.files.weights.len(), 1);
        let checks = verify(&carried).unwrap();
        assert_eq!(checks.len(), wanted, "{checks:?}");
        let is_recorded = |status: &Status| *status == Status::Ok(Authority::Provenance);
        assert!(
            checks.iter().all(|check| is_recorded(&check.status)),
            "{checks:?}"
        );

        let weights = carried.files.weights[0].clone();
        fs_err::write(&weights, "changed").unwrap();
        let checks = verify(&carried).unwrap();
        let wrong: Vec<_> = checks
            .iter()
            .filter(|check| !is_recorded(&check.status))
            .collect();
        assert_eq!(wrong.len(), 1);
        assert!(matches!(wrong[0].status, Status::Mismatch { .. }));
        fs_err::remove_file(&weights).unwrap();
        let error = resolve(to.to_str().unwrap(), &options).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("model.safetensors") && text.contains("pytorch_model.bin"),
            "{text}"
        );
    }
}

#[test]
fn an_encoder_lands_in_the_cache_with_its_subfolders() {
    let card = Card::find("all-minilm-l6-v2").unwrap();
    let files: Vec<&'static str> = card.files.iter().map(|file| file.name.as_str()).collect();
    let hub = encoder("sentence-transformers/all-MiniLM-L6-v2", &files);
    let cache = tempfile::tempdir().unwrap();
    let mut options = options(&hub, cache.path());
    let fetched = fetch("all-minilm-l6-v2@main", None, &options).unwrap();
    assert!(fetched.directory.join("1_Pooling/config.json").is_file());
    options.offline = true;
    let found = resolve("all-minilm-l6-v2@main", &options).unwrap();
    assert_eq!(found.named_files(), fetched.named_files());
    let error = resolve("all-minilm-l6-v2", &options).unwrap_err();
    let hint = error.hint().unwrap();
    assert!(
        hint.contains("models fetch all-minilm-l6-v2 --to DIR"),
        "{hint}"
    );
}

#[test]
fn a_file_that_an_encoders_repository_lacks_is_named() {
    let hub = encoder(DEBERTA, &DEBERTA_TEXTS);
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let error = fetch(
        "deberta-xlarge-mnli@main",
        Some(&to),
        &options(&hub, folder.path()),
    );
    let text = error.unwrap_err().to_string();
    assert!(
        text.contains("pytorch_model.bin") && text.contains(DEBERTA),
        "{text}"
    );
}

#[test]
fn a_card_checks_the_sums_of_its_own_commit_alone() {
    let hub = encoder(
        DEBERTA,
        &[&DEBERTA_TEXTS[..], &["pytorch_model.bin"]].concat(),
    );
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let fetched = fetch(
        "deberta-xlarge-mnli@main",
        Some(&to),
        &options(&hub, folder.path()),
    );
    let mut fetched = fetched.unwrap();
    // As if the very commit of the card had brought these bytes.
    fetched.revision = fetched.card.map(|card| card.revision.clone());
    let checks = verify(&fetched).unwrap();
    let status = |name: &str| {
        &checks
            .iter()
            .find(|check| check.name == name)
            .unwrap()
            .status
    };
    assert!(matches!(
        status("pytorch_model.bin"),
        Status::Mismatch {
            authority: Authority::Card,
            ..
        }
    ));
    assert_eq!(*status("vocab.json"), Status::Ok(Authority::Provenance));
}

#[test]
fn nothing_connects_when_it_is_forbidden() {
    let hub = FakeHub::serve(tiny());
    let cache = tempfile::tempdir().unwrap();
    let mut by_flag = options(&hub, cache.path());
    by_flag.offline = true;
    let mut by_variable = options(&hub, cache.path());
    by_variable.environment.offline = Some("HF_HUB_OFFLINE");
    for (options, named) in [(by_flag, "--offline"), (by_variable, "HF_HUB_OFFLINE")] {
        let error = resolve(REPOSITORY, &options).unwrap_err();
        let text = format!("{error} {}", error.hint().unwrap());
        for part in [
            named,
            REPOSITORY,
            "main",
            cache.path().to_str().unwrap(),
            "wardround models fetch org/tiny",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(error.is_missing_artefact());
        let error = fetch(REPOSITORY, None, &options).unwrap_err();
        assert!(
            matches!(error, HubError::Forbidden { barrier, .. } if barrier != Barrier::Build),
            "{error}"
        );
    }
    assert_eq!(hub.requests(), []);
}
