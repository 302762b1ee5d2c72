//! Datasets from a host on the loopback.

use std::path::{Path, PathBuf};

use super::super::convert::convert;
use super::super::fake_hub::{Fault, Repository, serve};
use super::{leftovers, options};
use crate::diagnosis::Diagnosis;
use crate::digest::sha256;
use crate::fake_http::FakeHttp;
use crate::hub::{
    Conversion, DatasetCard, HubError, HubOptions, OfflineReason, Status, fetch_dataset,
    verify_datasets,
};

const QUESTIONS: &str = "medqa/questions.jsonl";
const LETTERS: &str = "mmlu_pro/questions.jsonl";
const KEYWORDS: &str = "medec/keywords.json";

fn golden(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/datasets");
    fs_err::read(folder.join(name)).unwrap()
}

fn questions() -> Vec<u8> {
    (0..500).flat_map(|number| format!("{{\"question\": {number}}}\n").into_bytes()).collect()
}

/// As MedGuards' merged file: notes of both parts of MEDEC.
fn merged() -> Vec<u8> {
    b"Text ID,Text,Error Flag,Important Words\r\n\
      ms-test-0,\"a, b\",1,\"aspirin, once daily\"\r\n\
      ms-test-1,a,0,NA\r\n\
      uw-test-0,\"private\nnote\",1,private word\r\n\
      ms-test-2,a,1,Hepatitis A\r\n\
      ms-test-3,a,0,\r\n"
        .to_vec()
}

/// A card of one file of each kind, at this host.
fn card(host: &str) -> DatasetCard {
    let (questions, parquet) = (questions(), golden("mmlu_pro.parquet"));
    let text = format!(
        r#"
name = "small"
title = "Three files"
records = "few"
citation = "none"
licence = {{ name = "MIT", url = "https://example.org" }}
files = [
    {{ url = "{host}/a/q.jsonl", path = "{QUESTIONS}", size_bytes = {}, sha256 = "{}" }},
    {{ url = "{host}/k.csv", path = "{KEYWORDS}", convert = "keywords" }},
    {{ url = "{host}/t.parquet", path = "{LETTERS}", size_bytes = {}, sha256 = "{}", convert = "mmlu-pro" }},
]
"#,
        questions.len(),
        sha256(&questions),
        parquet.len(),
        sha256(&parquet)
    );
    DatasetCard::parse(&text, Path::new("small.toml")).unwrap()
}

fn host(faults: Vec<(&'static str, Fault)>) -> FakeHttp {
    serve(Repository {
        id: "none",
        files: vec![
            ("a/q.jsonl", questions()),
            ("k.csv", merged()),
            ("t.parquet", golden("mmlu_pro.parquet")),
        ],
        faults,
    })
}

struct Fetched {
    hub: FakeHttp,
    options: HubOptions,
    folder: tempfile::TempDir,
}

impl Fetched {
    fn from(faults: Vec<(&'static str, Fault)>) -> Fetched {
        let (hub, folder) = (host(faults), tempfile::tempdir().unwrap());
        let options = options(&hub, folder.path());
        Fetched { hub, options, folder }
    }

    fn to(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn card(&self) -> DatasetCard {
        card(&self.hub.url())
    }

    fn fetch(&self, card: &DatasetCard) -> Result<Vec<PathBuf>, HubError> {
        fetch_dataset(card, &self.to(), &self.options)
    }

    fn status(&self, name: &str) -> Status {
        let checks = verify_datasets(&self.to()).unwrap();
        checks.into_iter().find(|check| check.name == name).unwrap().status
    }
}

#[test]
fn files_are_fetched_converted_and_kept() {
    let fetched = Fetched::from(Vec::new());
    let card = fetched.card();
    let paths = fetched.fetch(&card).unwrap();
    assert_eq!(paths, [QUESTIONS, KEYWORDS, LETTERS].map(|name| fetched.to().join(name)));
    assert_eq!(fs_err::read(&paths[0]).unwrap(), questions());
    let keywords: serde_json::Value =
        serde_json::from_slice(&fs_err::read(&paths[1]).unwrap()).unwrap();
    let expected = serde_json::json!({
        "ms-test-0": ["aspirin", "once daily"], "ms-test-2": ["Hepatitis A"],
    });
    assert_eq!(keywords, expected);
    assert_eq!(leftovers(fetched.folder.path(), ".incomplete"), 0);
    // No token for hosts that are not the hub.
    let requests = fetched.hub.requests();
    assert!(requests.iter().all(|request| request.header("authorization").is_none()));

    // What is there and right is asked for no more; what was changed comes again.
    fetched.fetch(&card).unwrap();
    assert_eq!(fetched.hub.requests(), []);
    fs_err::write(&paths[2], "changed").unwrap();
    assert!(matches!(fetched.status(LETTERS), Status::Mismatch { .. }));
    fetched.fetch(&card).unwrap();
    assert_eq!(fetched.hub.requests().len(), 1);
    assert!(matches!(fetched.status(LETTERS), Status::Ok(_)));
}

#[test]
fn rows_under_an_agreement_are_nowhere_on_the_disk() {
    let fetched = Fetched::from(vec![("k.csv", Fault::DieOnce(60))]);
    fetched.fetch(&fetched.card()).unwrap();
    let folder = fs_err::read_dir(fetched.to().join("medec")).unwrap();
    for path in folder.map(|entry| entry.unwrap().path()) {
        let text = fs_err::read_to_string(&path).unwrap();
        assert!(!text.contains("uw-") && !text.contains("private"), "{}", path.display());
    }
    let gone = Fetched::from(vec![("k.csv", Fault::Stall(100))]);
    let mut options = gone.options.clone();
    options.timeout = std::time::Duration::from_millis(50);
    let error = fetch_dataset(&gone.card(), &gone.to(), &options);
    assert!(matches!(error, Err(HubError::Unreachable { .. })));
    assert_eq!(fs_err::read_dir(gone.to().join("medec")).unwrap().count(), 0);
}

#[test]
fn a_download_that_broke_off_goes_on() {
    let fetched = Fetched::from(vec![("q.jsonl", Fault::DieOnce(1234))]);
    fetched.fetch(&fetched.card()).unwrap();
    let requests = fetched.hub.requests();
    let ranges: Vec<_> = requests.iter().filter_map(|request| request.header("range")).collect();
    assert_eq!(ranges, ["bytes=1234-"]);
    assert_eq!(fs_err::read(fetched.to().join(QUESTIONS)).unwrap(), questions());
}

#[test]
fn a_file_that_is_no_parquet_is_refused() {
    let fetched = Fetched::from(Vec::new());
    let mut card = fetched.card();
    card.files[0].convert = Some(Conversion::MmluPro);
    let error = fetched.fetch(&card).unwrap_err().to_string();
    assert!(error.contains("cannot be converted: "), "{error}");
}

#[test]
fn verify_names_what_is_missing_and_what_was_changed() {
    let fetched = Fetched::from(Vec::new());
    fetched.fetch(&fetched.card()).unwrap();
    let mut bytes = questions();
    bytes[100] ^= 1;
    fs_err::write(fetched.to().join(QUESTIONS), bytes).unwrap();
    fs_err::remove_file(fetched.to().join(KEYWORDS)).unwrap();
    assert!(matches!(fetched.status(QUESTIONS), Status::Mismatch { .. }));
    assert_eq!(fetched.status(KEYWORDS), Status::Missing);
    assert!(matches!(fetched.status(LETTERS), Status::Ok(_)));

    let empty = tempfile::tempdir().unwrap();
    let error = verify_datasets(empty.path()).unwrap_err();
    assert!(error.hint().unwrap().contains("data fetch all"), "{error}");
}

#[test]
fn nothing_is_asked_of_anybody_offline() {
    let mut fetched = Fetched::from(Vec::new());
    fetched.options.offline = Some(OfflineReason::Flag);
    let error = fetched.fetch(&fetched.card()).unwrap_err();
    assert_eq!(error.to_string(), "small cannot be fetched: --offline forbids connections");
    assert!(error.hint().unwrap().contains("data fetch small --to DIR"));
    assert_eq!(fetched.hub.requests(), []);
}

#[test]
fn a_file_that_a_host_lacks_is_named_by_its_address() {
    let fetched = Fetched::from(Vec::new());
    let mut card = fetched.card();
    card.files[0].url = format!("{}/gone.jsonl", fetched.hub.url());
    let error = fetched.fetch(&card).unwrap_err();
    assert!(error.to_string().ends_with("/gone.jsonl answered with HTTP 404"), "{error}");
    assert!(error.hint().unwrap().contains("HF_ENDPOINT"));
}

#[test]
fn parquet_is_read_as_pyarrow_wrote_it() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/datasets/mmlu_pro.parquet");
    let converted = convert(Conversion::MmluPro, &path).unwrap();
    let values = |text: &str| -> Vec<serde_json::Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let expected = golden("mmlu_pro.jsonl");
    assert_eq!(values(&converted), values(str::from_utf8(&expected).unwrap()));
}
