//! Encoders: other files than a decoder's, listed and summed by their cards.

use super::super::fake_hub::{Repository, serve};
use super::{leftovers, options, status_of};
use crate::diagnosis::Diagnosis;
use crate::fake_http::FakeHttp;
use crate::hub::{Authority, Card, OfflineReason, Status, fetch, resolve, verify};

const DEBERTA: &str = "microsoft/deberta-xlarge-mnli";

const DEBERTA_TEXTS: [&str; 5] =
    ["README.md", "config.json", "vocab.json", "merges.txt", "tokenizer_config.json"];

/// An encoder's repository with other files than its card's, at another commit; no sum of the card is at stake.
fn encoder(id: &'static str, files: &[&'static str]) -> FakeHttp {
    let named = |name: &&'static str| (*name, [name.as_bytes(); 20].concat());
    serve(Repository { id, files: files.iter().map(named).collect(), faults: Vec::new() })
}

#[test]
fn an_encoder_is_fetched_by_its_cards_list_and_verified_where_there_is_no_hub() {
    let card = Card::find("all-minilm-l6-v2").unwrap();
    let minilm: Vec<&'static str> = card.files.iter().map(|file| file.name.as_str()).collect();
    let weights = |form| [&DEBERTA_TEXTS[..], &["tf_model.h5", form]].concat();
    let (pickle, tensors) = (weights("pytorch_model.bin"), weights("model.safetensors"));
    let bleurt = ["config.json", "spm.model", "pytorch_model.bin", "README.md"];
    for (member, id, served, wanted) in [
        ("all-minilm-l6-v2", "sentence-transformers/all-MiniLM-L6-v2", &minilm[..], 7),
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

        options.offline = Some(OfflineReason::Flag);
        let carried = resolve(to.to_str().unwrap(), &options).unwrap();
        assert_eq!(carried.repository.as_deref(), Some(id));
        assert_eq!(carried.files.weights.len(), 1);
        let checks = verify(&carried).unwrap();
        assert_eq!(checks.len(), wanted, "{checks:?}");
        let is_recorded = |status: &Status| *status == Status::Ok(Authority::Provenance);
        assert!(checks.iter().all(|check| is_recorded(&check.status)), "{checks:?}");

        let weights = carried.files.weights[0].clone();
        fs_err::write(&weights, "changed").unwrap();
        let checks = verify(&carried).unwrap();
        let wrong: Vec<_> = checks.iter().filter(|check| !is_recorded(&check.status)).collect();
        assert_eq!(wrong.len(), 1);
        assert!(matches!(wrong[0].status, Status::Mismatch { .. }));
        fs_err::remove_file(&weights).unwrap();
        let error = resolve(to.to_str().unwrap(), &options).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("model.safetensors") && text.contains("pytorch_model.bin"), "{text}");
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
    options.offline = Some(OfflineReason::Flag);
    let found = resolve("all-minilm-l6-v2@main", &options).unwrap();
    assert_eq!(found.named_files(), fetched.named_files());
    let error = resolve("all-minilm-l6-v2", &options).unwrap_err();
    let hint = error.hint().unwrap();
    assert!(hint.contains("models fetch all-minilm-l6-v2 --to DIR"), "{hint}");
}

#[test]
fn a_file_that_an_encoders_repository_lacks_is_named() {
    let hub = encoder(DEBERTA, &DEBERTA_TEXTS);
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let error = fetch("deberta-xlarge-mnli@main", Some(&to), &options(&hub, folder.path()));
    let text = error.unwrap_err().to_string();
    assert!(text.contains("pytorch_model.bin") && text.contains(DEBERTA), "{text}");
}

#[test]
fn a_card_checks_the_sums_of_its_own_commit_alone() {
    let hub = encoder(DEBERTA, &[&DEBERTA_TEXTS[..], &["pytorch_model.bin"]].concat());
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("to");
    let fetched = fetch("deberta-xlarge-mnli@main", Some(&to), &options(&hub, folder.path()));
    let mut fetched = fetched.unwrap();
    // As if the very commit of the card had brought these bytes.
    fetched.revision = fetched.card.map(|card| card.revision.clone());
    let checks = verify(&fetched).unwrap();
    let status = |name| status_of(&checks, name);
    assert!(matches!(
        status("pytorch_model.bin"),
        Status::Mismatch { authority: Authority::Card, .. }
    ));
    assert_eq!(*status("vocab.json"), Status::Ok(Authority::Provenance));
}
