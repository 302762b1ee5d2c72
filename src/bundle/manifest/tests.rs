//! Manifests that are sound, and every way in which they are not.

use super::*;
use crate::bundle::MANIFEST;
use crate::digest::sha256;

fn entry(path: &str, role: Role) -> FileEntry {
    FileEntry {
        path: BundlePath::parse(path).unwrap(),
        size_bytes: 3,
        sha256: sha256("abc"),
        mode: role.mode(),
        role,
        component: None,
        unchanged: false,
        parts: Vec::new(),
    }
}

fn manifest() -> Manifest {
    Manifest {
        format: FORMAT,
        name: "ward".to_owned(),
        version: "1.2".parse().unwrap(),
        created_at: "2026-03-01T00:00:00Z".to_owned(),
        created_by: "wardround 0.1.0".to_owned(),
        source: None,
        build: None,
        requires: Requires {
            cpu: "x86_64".to_owned(),
            glibc: None,
            kernel: None,
            driver: None,
            memory_bytes: 1,
            disk_bytes: 6,
        },
        previous: None,
        components: vec![Component {
            name: "llama".to_owned(),
            kind: ComponentKind::Model,
            licence: "not stated".to_owned(),
            ..Component::default()
        }],
        files: vec![
            entry("README.html", Role::Doc),
            entry("models/llama/config.json", Role::Model),
        ],
    }
}

fn parsed(text: &str) -> Result<Manifest, BundleError> {
    Manifest::parse(text.as_bytes(), Path::new(MANIFEST))
}

#[track_caller]
fn refused(change: impl Fn(&mut Manifest), part: &str) {
    let mut changed = manifest();
    change(&mut changed);
    let error = parsed(&changed.text().unwrap()).unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}

#[test]
fn one_reads_back_as_it_was_written() {
    let text = manifest().text().unwrap();
    assert_eq!(parsed(&text).unwrap(), manifest());
    for path in ["x/y", "MANIFEST.json", "SHA256SUMS"] {
        assert_eq!(Role::of(&BundlePath::parse(path).unwrap()), None, "{path}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    refused(|manifest| manifest.format = 2, "format 2");
    let strange = ["\u{1b}[2J", "a\u{9b}1m", "a\nb", "\u{202e}gpj"];
    for text in strange {
        refused(|manifest| manifest.created_by = text.to_owned(), "is no text to be shown");
        refused(|manifest| manifest.components[0].licence = text.to_owned(), "is no text");
    }
    refused(|manifest| manifest.files.reverse(), "out of order");
    refused(|manifest| manifest.files.push(manifest.files[1].clone()), "comes twice");
    refused(|manifest| manifest.files[1].mode = Mode::Executable, "a mode that");
    refused(|manifest| manifest.files[1].role = Role::Data, "the folder of its role");
    refused(|manifest| manifest.files[1].sha256.truncate(8), "has no sum");
    refused(|manifest| manifest.files[1].unchanged = true, "no version that it comes from");
    refused(|manifest| manifest.files[1].component = Some("x".to_owned()), "not there");
    refused(|manifest| manifest.components[0].gated = true, "the text of its licence");
    refused(|manifest| manifest.name = "a/b".to_owned(), "`name`");
    refused(|manifest| manifest.created_at = "today".to_owned(), "`created_at`");
    refused(|manifest| manifest.components.push(manifest.components[0].clone()), "comes twice");
    let twin = |path: &'static str| {
        move |manifest: &mut Manifest| {
            manifest.files.push(entry(path, Role::Model));
            manifest.files.sort_by(|left, right| left.path.cmp(&right.path));
        }
    };
    refused(twin("models/llama/Config.json"), "one on some file systems");
    refused(twin("models/Llama/other.json"), "one on some file systems");
    refused(twin("models/llama/config.json/x"), "one on some file systems");
    let sum = sha256("abc");
    let part = |name: &str, size_bytes| Part {
        path: BundlePath::parse(name).unwrap(),
        size_bytes,
        sha256: sum.clone(),
    };
    refused(
        |manifest| manifest.files[1].parts = vec![part("models/llama/config.json.001", 2)],
        "not as large",
    );
    refused(
        |manifest| manifest.files[1].parts = vec![part("models/llama/config.json.002", 3)],
        "no name of a part",
    );
    let unknown =
        manifest().text().unwrap().replace("\"name\": \"ward\"", "\"name\": \"ward\", \"x\": 1");
    assert!(parsed(&unknown).is_err());
}
