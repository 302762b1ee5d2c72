//! Fetching against a hub on the loopback.

mod datasets;
mod encoders;
mod interrupted;

use crate::diagnosis::{Blame, Diagnosis};
use std::path::Path;

use super::super::{
    FileCheck, HubError, HubOptions, OfflineReason, Status, fetch, resolve, verify,
};
use super::fake_hub::{COMMIT, Fault, REPOSITORY, Repository, serve};
use crate::fake_http::FakeHttp;
use crate::hub::{Token, proxy};

const SHARD: &str = "model-00001-of-00002.safetensors";
const OTHER: &str = "model-00002-of-00002.safetensors";

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

fn with(path: &'static str, fault: Fault) -> FakeHttp {
    serve(Repository { faults: vec![(path, fault)], ..tiny() })
}

fn options(hub: &FakeHttp, cache: &Path) -> HubOptions {
    let options = HubOptions::from_lookup(|name| match name {
        "HF_HUB_CACHE" => Some(cache.into()),
        "HF_ENDPOINT" => Some(hub.url().into()),
        "HF_TOKEN" => Some("hf_secret".into()),
        _ => None,
    })
    .unwrap();
    HubOptions { quiet: true, ..options }
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
    tiny().files.into_iter().find(|(file, _)| *file == name).unwrap().1
}

fn status_of<'a>(checks: &'a [FileCheck], name: &str) -> &'a Status {
    let check = checks.iter().find(|check| check.name == name);
    &check.unwrap().status
}

/// Every path below `directory` that ends with `suffix`.
fn leftovers(directory: &Path, suffix: &str) -> usize {
    let entries =
        fs_err::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries
        .map(|path| match path.is_dir() {
            true => leftovers(&path, suffix),
            false => usize::from(path.to_string_lossy().ends_with(suffix)),
        })
        .sum()
}

#[test]
fn a_model_lands_in_the_cache_and_is_found_there_offline() {
    let hub = serve(tiny());
    let cache = tempfile::tempdir().unwrap();
    let mut options = options(&hub, cache.path());
    let fetched = resolve(REPOSITORY, &options).unwrap();

    let root = cache.path().join("models--org--tiny");
    assert_eq!(fetched.directory, root.join("snapshots").join(COMMIT));
    assert_eq!(fetched.revision.as_deref(), Some(COMMIT));
    assert_eq!(fs_err::read_to_string(root.join("refs/main")).unwrap(), COMMIT);
    for name in [SHARD, OTHER, "config.json", "chat_template.jinja"] {
        assert_eq!(read(&fetched.directory, name), bytes_of(name), "{name}");
    }
    assert!(!fetched.directory.join("README.md").exists());
    assert_eq!(leftovers(cache.path(), ".incomplete"), 0);
    #[cfg(unix)]
    assert!(fs_err::read_link(fetched.directory.join(SHARD)).unwrap().starts_with("../../blobs"));

    hub.requests();
    options.offline = Some(OfflineReason::Flag);
    let found = resolve(REPOSITORY, &options).unwrap();
    assert_eq!(found.files.weights, fetched.files.weights);
    assert_eq!(hub.requests(), []);
}

#[test]
fn what_is_whole_is_kept_and_what_is_not_is_fetched_again() {
    let hub = serve(tiny());
    let cache = tempfile::tempdir().unwrap();
    let options = options(&hub, cache.path());
    let fetched = fetch(REPOSITORY, None, &options).unwrap();
    let damaged = fs_err::canonicalize(fetched.directory.join(OTHER)).unwrap();
    fs_err::write(&damaged, vec![8; 3000]).unwrap();
    let checks = verify(&fetched).unwrap();
    let damaged_only: Vec<_> =
        checks.iter().filter(|check| matches!(check.status, Status::Mismatch { .. })).collect();
    assert_eq!(damaged_only.len(), 1);
    assert_eq!(damaged_only[0].name, OTHER);

    hub.requests();
    fetch(REPOSITORY, None, &options).unwrap();
    let downloads: Vec<_> = hub
        .requests()
        .into_iter()
        .filter(|request| !request.path.starts_with("/api"))
        .map(|request| request.path)
        .collect();
    assert_eq!(downloads, [format!("/{REPOSITORY}/resolve/{COMMIT}/{OTHER}")]);
    assert_eq!(read(&fetched.directory, OTHER), bytes_of(OTHER));
}

#[test]
fn a_mirror_that_lists_names_alone_is_enough() {
    let hub = with("/revision/main", Fault::Bare);
    let cache = tempfile::tempdir().unwrap();
    let fetched = fetch(REPOSITORY, None, &options(&hub, cache.path())).unwrap();
    assert_eq!(read(&fetched.directory, SHARD), bytes_of(SHARD));
    let checks = verify(&fetched).unwrap();
    assert!(checks.iter().all(|check| check.status == Status::Unknown), "{checks:?}");
}

#[test]
fn a_proxy_that_fails_is_named() {
    let cache = tempfile::tempdir().unwrap();
    let options = HubOptions::from_lookup(|name| match name {
        "HF_HUB_CACHE" => Some(cache.path().into()),
        "HF_ENDPOINT" => Some("http://hub.ward.invalid".into()),
        "WARDROUND_PROXY" => Some("http://127.0.0.1:1".into()),
        _ => None,
    });
    let options = HubOptions { quiet: true, ..options.unwrap() };
    let error = fetch(REPOSITORY, None, &options).unwrap_err().to_string();
    assert!(error.ends_with("through the proxy of WARDROUND_PROXY"), "{error}");
}

#[test]
fn a_proxy_that_cannot_be_used_is_refused_without_its_password() {
    let opened = |address: &str| proxy::open(Some(&Token(address.to_owned())));
    for address in ["http://nurse:secret@proxy:3128/", "https://proxy", "proxy:8080"] {
        assert!(opened(address).unwrap().is_some(), "{address}");
    }
    for address in ["socks5h://proxy:1080", "ftp://proxy", "http://u:secret@"] {
        let error = opened(address).unwrap_err().to_string();
        assert!(error.starts_with("WARDROUND_PROXY") && !error.contains("secret"), "{error}");
    }
    assert!(proxy::open(None).unwrap().is_none());
}

#[test]
fn a_gated_model_is_explained() {
    for status in [401, 403] {
        let error = refusal(Fault::Deny(status, "GatedRepo"), "config.json");
        assert!(matches!(error, HubError::Refused { .. }), "{error}");
        assert!(error.to_string().contains(REPOSITORY), "{error}");
    }

    let hub = with("config.json", Fault::Deny(401, "GatedRepo"));
    let cache = tempfile::tempdir().unwrap();
    let mut options = HubOptions::from_lookup(|name| match name {
        "HF_HUB_CACHE" => Some(cache.path().into()),
        "HF_ENDPOINT" => Some(hub.url().into()),
        _ => None,
    })
    .unwrap();
    options.quiet = true;
    let hint = fetch(REPOSITORY, None, &options).unwrap_err().hint().unwrap();
    assert!(
        hint.contains("https://huggingface.co/org/tiny") && hint.contains("HF_TOKEN"),
        "{hint}"
    );

    // A model with a card names the card's licence page, wherever its files come from.
    let hub = with(
        super::super::Card::find("gemma3-4b").unwrap().revision.as_str(),
        Fault::Deny(403, "GatedRepo"),
    );
    options.endpoint = hub.url();
    let hint = fetch("gemma3-4b", None, &options).unwrap_err().hint().unwrap();
    assert!(hint.contains("https://huggingface.co/google/gemma-3-4b-it"), "{hint}");
}

#[test]
fn what_the_hub_does_not_have_is_named() {
    let hub = serve(tiny());
    let cache = tempfile::tempdir().unwrap();
    let options = options(&hub, cache.path());
    for member in ["org/absent", "org/tiny@v9"] {
        let error = fetch(member, None, &options).unwrap_err();
        assert!(matches!(error, HubError::NotFound { .. }), "{member}: {error}");
        assert!(error.to_string().contains(member.split('@').next().unwrap()), "{error}");
    }
    let hidden = refusal(Fault::Deny(401, "RepoNotFound"), "/revision/main");
    assert!(matches!(hidden, HubError::NotFound { .. }), "{hidden}");
    // Of 65 MB, packed into some hundred kilobytes.
    let long = refusal(Fault::Bloat, "/revision/main").to_string();
    assert!(long.contains("it is longer than 67108864 bytes"), "{long}");

    let mut repository = tiny();
    repository.files.retain(|(name, _)| *name != "tokenizer.json");
    let hub = serve(repository);
    let error = fetch(REPOSITORY, None, &self::options(&hub, cache.path())).unwrap_err();
    assert!(error.to_string().contains("tokenizer.json"), "{error}");
}

#[test]
fn the_token_goes_to_the_hub_and_not_to_its_store() {
    let hub = with(SHARD, Fault::Elsewhere);
    let cache = tempfile::tempdir().unwrap();
    let fetched = fetch(REPOSITORY, None, &options(&hub, cache.path())).unwrap();
    assert_eq!(read(&fetched.directory, SHARD), bytes_of(SHARD));
    let requests = hub.requests();
    assert!(requests.iter().any(|request| request.path.starts_with("/store/")));
    for request in requests {
        let expected = (!request.path.starts_with("/store/")).then_some("Bearer hf_secret");
        assert_eq!(request.header("authorization"), expected, "{request:?}");
    }
}

#[test]
fn a_folder_can_be_verified_where_there_is_no_hub() {
    let hub = serve(tiny());
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("carried");
    let mut options = options(&hub, folder.path());
    fetch(REPOSITORY, Some(&to), &options).unwrap();
    assert_eq!(leftovers(&to, ".incomplete"), 0);

    options.offline = Some(OfflineReason::Flag);
    let carried = resolve(to.to_str().unwrap(), &options).unwrap();
    assert_eq!(carried.name, "carried");
    assert_eq!(carried.repository.as_deref(), Some(REPOSITORY));
    assert_eq!(carried.revision.as_deref(), Some(COMMIT));
    let checks = verify(&carried).unwrap();
    assert_eq!(checks.len(), 6);
    assert!(checks.iter().all(|check| matches!(check.status, Status::Ok(_))), "{checks:?}");

    fs_err::write(to.join(OTHER), "changed").unwrap();
    fs_err::remove_file(to.join("chat_template.jinja")).unwrap();
    let checks = verify(&carried).unwrap_err();
    assert!(checks.to_string().contains("chat_template.jinja"), "{checks}");
    let checks = verify(&resolve(to.to_str().unwrap(), &options).unwrap()).unwrap();
    let status = |name| status_of(&checks, name);
    assert!(matches!(status(OTHER), Status::Mismatch { .. }));
    assert_eq!(*status("chat_template.jinja"), Status::Missing);
}

#[test]
fn nothing_connects_when_it_is_forbidden() {
    let hub = serve(tiny());
    let cache = tempfile::tempdir().unwrap();
    let mut by_flag = options(&hub, cache.path());
    by_flag.offline = Some(OfflineReason::Flag);
    let mut by_variable = options(&hub, cache.path());
    by_variable.offline = Some(OfflineReason::Variable("HF_HUB_OFFLINE"));
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
        assert_eq!(error.blame(), Blame::Artefact);
        let error = fetch(REPOSITORY, None, &options).unwrap_err();
        assert!(
            matches!(error, HubError::Forbidden { reason, .. } if reason != OfflineReason::Build),
            "{error}"
        );
    }
    assert_eq!(hub.requests(), []);
}

#[test]
fn a_file_of_another_size_than_its_cards_is_refused_before_it_is_downloaded() {
    let card = |size: usize| -> &'static super::super::Card {
        let text = format!(
            r#"
name = "tiny"
repository = "{REPOSITORY}"
revision = "{COMMIT}"
gated = false
licence = {{ name = "MIT", url = "https://example.org" }}
files = [{{ name = "tokenizer.json", size_bytes = {size} }}]
"#
        );
        Box::leak(Box::new(toml::from_str(&text).unwrap()))
    };
    for (size, is_right) in [(100, true), (99, false)] {
        let hub = serve(tiny());
        let folder = tempfile::tempdir().unwrap();
        let (id, revision) = (REPOSITORY.to_owned(), "main".to_owned());
        let repository = super::super::Repository { id, revision, card: Some(card(size)) };
        let fetched = super::fetch_repository(
            &repository,
            Some(folder.path()),
            &options(&hub, folder.path()),
        );
        assert_eq!(folder.path().join("tokenizer.json").exists(), is_right);
        let Err(error) = fetched else {
            assert!(is_right);
            continue;
        };
        assert!(error.to_string().contains("has 100 bytes on the hub, but its card says 99"));
        assert_eq!(error.blame(), Blame::Artefact);
        assert!(error.hint().unwrap().contains("do not trust the source"));
    }
}
