//! Models of an installed bundle, `ROOT/versions/VERSION/models/NAME`: found beside the program that was installed with them, and used
//! only once the licence of a gated one was accepted here.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Card, HubError, if_there};
use crate::appended;
use crate::outside;

/// The folders of a version that hold checkpoints.
const FOLDERS: [&str; 3] = ["models", "scorers", "encoder"];
/// What a bundle is made of, file by file.
pub const MANIFEST: &str = "MANIFEST.json";
/// The format of manifests that this program writes and reads.
pub const FORMAT: u32 = 1;
/// The sums of every other file but the signatures.
pub const SUMS: &str = "SHA256SUMS";

/// A line of `ROOT/licences/accepted.jsonl`, and what `acceptance.toml` of a bundle says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    pub model: String,
    pub licence: String,
    /// Of the text that was accepted: another text is accepted anew.
    pub licence_sha256: String,
    pub accepted_by: String,
    /// In UTC (RFC 3339).
    pub accepted_at: String,
    /// `terminal`, or the flag that said so.
    pub how: String,
}

/// What a manifest says of a component, as far as it matters here.
#[derive(Deserialize)]
struct Component {
    name: String,
    licence: String,
    gated: bool,
    licence_sha256: Option<String>,
}

#[derive(Deserialize)]
struct Components {
    components: Vec<Component>,
}

/// The files that say whether a model may be used.
struct Place {
    manifest: PathBuf,
    accepted: PathBuf,
    /// The model's own name.
    name: String,
}

/// The file of acceptances of a root.
pub fn accepted_file(root: &Path) -> PathBuf {
    root.join("licences").join("accepted.jsonl")
}

/// What was accepted in a root; nothing where nothing was.
///
/// # Errors
/// A file that cannot be read; a line that is no acceptance.
pub fn accepted(file: &Path) -> Result<Vec<Acceptance>, HubError> {
    let Some(bytes) = if_there(outside::file(file))? else { return Ok(Vec::new()) };
    // What a power cut left behind the last whole line was never counted.
    let lines = appended::lines(&bytes).map(serde_json::from_slice);
    lines
        .collect::<Result<_, _>>()
        .map_err(|error| HubError::Malformed { path: file.to_owned(), reason: error.to_string() })
}

/// The folder of models that was installed with a program, where it was.
pub fn beside_program(program: &Path) -> Option<PathBuf> {
    let models = version_of_program(program)?.join("models");
    Some(models).filter(|models| models.is_dir())
}

/// Where the outcomes of the selftest of the version lie that a program was installed with.
pub fn selftest_of_program(program: &Path) -> Option<PathBuf> {
    let version = version_of_program(program)?;
    let root = version.parent()?.parent()?;
    Some(selftest_folder(root, version.file_name()?.to_str()?))
}

/// Where the outcomes of a version's selftest lie in a root.
pub fn selftest_folder(root: &Path, version: &str) -> PathBuf {
    root.join("selftest").join(version)
}

/// `ROOT/versions/VERSION`, of `ROOT/versions/VERSION/bin/PROGRAM`.
fn version_of_program(program: &Path) -> Option<&Path> {
    let bin = program.parent().filter(|bin| bin.ends_with("bin"))?;
    let version = bin.parent().filter(|version| version.join(MANIFEST).is_file())?;
    version.parent().filter(|versions| versions.ends_with("versions"))?;
    Some(version)
}

/// The model of this name or hub id in a folder of installed ones.
pub fn find(models: &Path, member: &str) -> Option<PathBuf> {
    let name = Card::find(member).map_or(member, |card| &card.name);
    let is_plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']);
    Some(models.join(name)).filter(|path| is_plain && path.is_dir())
}

/// The files that are read before a model of this directory is used; none where it was not installed by a bundle.
pub fn licence_files(directory: &Path) -> Vec<PathBuf> {
    place(directory).map_or_else(Vec::new, |place| vec![place.manifest, place.accepted])
}

/// Refuses a gated model of an installed bundle whose licence nobody has accepted there.
///
/// # Errors
/// [`HubError::NotAccepted`]; a manifest or a file of acceptances that cannot be read.
pub fn check_accepted(directory: &Path) -> Result<(), HubError> {
    let Some(place) = place(directory) else { return Ok(()) };
    let text = outside::text(&place.manifest)?;
    let read: Components = serde_json::from_str(&text).map_err(|error| HubError::Malformed {
        path: place.manifest.clone(),
        reason: error.to_string(),
    })?;
    let own = read.components.into_iter().find(|component| component.name == place.name);
    let Some(component) = own.filter(|component| component.gated) else { return Ok(()) };
    let is_it = |acceptance: &Acceptance| {
        acceptance.model == component.name
            && Some(&acceptance.licence_sha256) == component.licence_sha256.as_ref()
    };
    match accepted(&place.accepted)?.iter().any(is_it) {
        true => Ok(()),
        false => Err(HubError::NotAccepted {
            model: component.name,
            licence: component.licence,
            path: place.accepted,
        }),
    }
}

/// Where a directory lies in an installed bundle, if it does; links are followed, so `ROOT/current` is no way around.
fn place(directory: &Path) -> Option<Place> {
    let directory = fs_err::canonicalize(directory).ok()?;
    let folder = directory.parent()?;
    FOLDERS.iter().find(|name| folder.ends_with(name))?;
    let version = folder.parent()?;
    let versions = version.parent().filter(|versions| versions.ends_with("versions"))?;
    let manifest = version.join(MANIFEST);
    let name = directory.file_name()?.to_str()?.to_owned();
    let accepted = accepted_file(versions.parent()?);
    manifest.is_file().then_some(Place { manifest, accepted, name })
}

/// Whether a file of this name beside `SHA256SUMS` is a signature of it: `SHA256SUMS.minisig`, `SHA256SUMS.sig`, and with a signer's name
/// between, `SHA256SUMS.ward.minisig`.
pub fn is_signature(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(SUMS).and_then(|rest| rest.strip_prefix('.')) else {
        return false;
    };
    let (signer, kind) = rest.rsplit_once('.').unwrap_or(("x", rest));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    ["minisig", "sig"].contains(&kind) && !signer.is_empty() && signer.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acceptance(sum: &str) -> String {
        format!(
            "{{\"model\":\"llama\",\"licence\":\"L\",\"licence_sha256\":\"{sum}\",\"accepted_by\":\"uid 0\",\
             \"accepted_at\":\"2026-03-01T00:00:00Z\",\"how\":\"terminal\"}}\n"
        )
    }

    #[test]
    fn a_gated_model_of_a_bundle_waits_for_its_licence() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let model = root.join("versions/1.0/models/llama");
        fs_err::create_dir_all(&model).unwrap();
        check_accepted(&model).unwrap();
        let manifest = r#"{"components": [{"name": "llama", "licence": "L", "gated": true, "licence_sha256": "aa"}], "files": []}"#;
        fs_err::write(root.join("versions/1.0/MANIFEST.json"), manifest).unwrap();
        std::os::unix::fs::symlink("versions/1.0", root.join("current")).unwrap();
        let through_link = root.join("current/models/llama");
        for directory in [&model, &through_link] {
            let error = check_accepted(directory).unwrap_err().to_string();
            assert!(error.contains("llama") && error.contains("accepted.jsonl"), "{error}");
        }
        let file = accepted_file(root);
        fs_err::create_dir_all(file.parent().unwrap()).unwrap();
        fs_err::write(&file, acceptance("bb")).unwrap();
        check_accepted(&model).unwrap_err();
        // A line that was not finished does not count.
        fs_err::write(&file, acceptance("bb") + acceptance("aa").trim_end()).unwrap();
        check_accepted(&model).unwrap_err();
        fs_err::write(&file, acceptance("bb") + &acceptance("aa")).unwrap();
        check_accepted(&through_link).unwrap();
        assert_eq!(licence_files(&model).len(), 2);
        fs_err::write(&file, "nonsense\n").unwrap();
        assert!(matches!(check_accepted(&model), Err(HubError::Malformed { .. })));
    }

    #[test]
    fn models_lie_beside_the_program_that_was_installed_with_them() {
        let folder = tempfile::tempdir().unwrap();
        let version = folder.path().join("versions/1.0");
        fs_err::create_dir_all(version.join("models/qwen3-4b")).unwrap();
        let program = version.join("bin/wardround");
        assert_eq!(beside_program(&program), None);
        fs_err::write(version.join(MANIFEST), "{}").unwrap();
        let models = beside_program(&program).unwrap();
        for member in ["qwen3-4b", "Qwen/Qwen3-4B"] {
            let expected = Card::find(member).map(|_| models.join("qwen3-4b"));
            assert_eq!(find(&models, member), expected, "{member}");
        }
        for member in ["llama3.2-3b", "..", "", "a/b", "."] {
            assert_eq!(find(&models, member), None, "{member}");
        }
        assert_eq!(beside_program(&version.join("wardround")), None);
    }

    #[test]
    fn signatures_lie_beside_the_sums() {
        for name in [
            "SHA256SUMS.minisig",
            "SHA256SUMS.sig",
            "SHA256SUMS.ward.minisig",
            "SHA256SUMS.it-2.sig",
        ] {
            assert!(is_signature(name), "{name}");
        }
        for name in [
            "SHA256SUMS",
            "SHA256SUMS.",
            "SHA256SUMS.txt",
            "x.minisig",
            "SHA256SUMS.a b.sig",
            "SHA256SUMS..sig",
        ] {
            assert!(!is_signature(name), "{name}");
        }
    }
}
