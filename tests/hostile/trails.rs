//! Audit trails and files of API keys that were damaged.

use wardround::audit::survey::verify;
use wardround::audit::{AuditContent, AuditOptions, Event, Trail};

use super::damage::{damaged, withstands};

#[test]
fn trails() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("audit");
    let content = AuditContent::Full;
    let options = AuditOptions { directory: directory.clone(), content, keep_days: None };
    let trail = Trail::open(&options, "test").unwrap();
    for number in 0..4 {
        trail.write(Event::new("request").with("actor", "ward").with("tokens", number)).unwrap();
    }
    trail.finish().unwrap();
    let path = directory.join("trail.jsonl");
    let good = std::fs::read(&path).unwrap();
    assert!(verify(&directory, &[]).is_ok());
    withstands("audit trail", damaged([good]), |bytes| {
        std::fs::write(&path, bytes).unwrap();
        let _ = verify(&directory, &[]);
    });
}

#[cfg(feature = "serve")]
#[test]
fn files_of_keys() {
    use wardround::serve::keys;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    for name in ["ward", "lab"] {
        keys::add(&path, name).unwrap();
    }
    let good = std::fs::read(&path).unwrap();
    withstands("file of keys", damaged([good]), |bytes| {
        std::fs::write(&path, bytes).unwrap();
        if let Ok(keys) = keys::read(&path) {
            let _ = keys.iter().any(|key| key.is("wr-none"));
        }
    });
}
