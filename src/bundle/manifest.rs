//! `MANIFEST.json`: what the bundle is, file by file and component by component, and what it needs.

mod check;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::path::BundlePath;
use super::version::Version;
use super::{BundleError, README};
use crate::console;
pub use crate::hub::installed::FORMAT;

/// Larger files are no manifests.
pub const MOST_BYTES: u64 = 64 << 20;

/// The bundle, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub format: u32,
    pub name: String,
    pub version: Version,
    /// In UTC (RFC 3339).
    pub created_at: String,
    /// The program that wrote it.
    pub created_by: String,
    /// What the program was built from, where its build was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceState>,
    /// How `bin/wardround` was built, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    pub requires: Requires,
    /// The version that unchanged files come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
    pub components: Vec<Component>,
    /// Every file of the version as it is installed but this one, the sums and the signatures; in the order of their paths.
    pub files: Vec<FileEntry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceState {
    pub commit: String,
    pub dirty: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    pub rustc: String,
    pub target: String,
    pub profile: String,
    pub features: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_date_epoch: Option<u64>,
}

/// What the machine must have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requires {
    /// As in `x86_64`.
    pub cpu: String,
    /// The newest version of the C library that `bin/wardround` asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glibc: Option<String>,
    /// Of Linux, where the sender says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Of NVIDIA, for GPUs, where the sender says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The weights of the largest model, as they are stored.
    pub memory_bytes: u64,
    /// All files as they are installed.
    pub disk_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Previous {
    /// Of that version's `MANIFEST.json`.
    pub manifest_sha256: String,
}

/// A file of the installed version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    pub path: BundlePath,
    pub size_bytes: u64,
    pub sha256: String,
    pub mode: Mode,
    pub role: Role,
    /// The name of the component that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// Not in the bundle: it comes from the previous version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchanged: bool,
    /// The pieces that it lies in, for media that hold no large files; in order, none where it is whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// A piece of a file, or all of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub path: BundlePath,
    pub size_bytes: u64,
    pub sha256: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    #[serde(rename = "0644")]
    Plain,
    #[serde(rename = "0755")]
    Executable,
}

impl Mode {
    pub fn bits(self) -> u32 {
        match self {
            Mode::Plain => 0o644,
            Mode::Executable => 0o755,
        }
    }
}

/// What a file is for; each has a folder of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Binary,
    Model,
    Scorer,
    Encoder,
    Data,
    Recipe,
    Prompt,
    Licence,
    Sbom,
    System,
    Golden,
    /// `README.html`.
    Doc,
}

impl Role {
    const FOLDERS: [(&str, Role); 11] = [
        ("bin", Role::Binary),
        ("models", Role::Model),
        ("scorers", Role::Scorer),
        ("encoder", Role::Encoder),
        ("data", Role::Data),
        ("recipes", Role::Recipe),
        ("prompts", Role::Prompt),
        ("licences", Role::Licence),
        ("sbom", Role::Sbom),
        ("system", Role::System),
        ("golden", Role::Golden),
    ];

    /// The role of a file by its place; `None` where nothing may lie.
    pub fn of(path: &BundlePath) -> Option<Role> {
        match path.top() {
            None => (path.as_str() == README).then_some(Role::Doc),
            Some(top) => Role::in_folder(top),
        }
    }

    pub fn in_folder(name: &str) -> Option<Role> {
        Role::FOLDERS.into_iter().find(|(folder, _)| *folder == name).map(|(_, role)| role)
    }

    /// The folder of its files; empty for the top.
    pub fn folder(self) -> &'static str {
        let own = Role::FOLDERS.into_iter().find(|(_, role)| *role == self);
        own.map_or("", |(folder, _)| folder)
    }

    pub fn mode(self) -> Mode {
        if self == Role::Binary { Mode::Executable } else { Mode::Plain }
    }
}

/// A part of the bundle with a name and a licence of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Component {
    pub name: String,
    pub kind: ComponentKind,
    /// Of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The commit of a model or dataset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// `not stated` where nothing says.
    pub licence: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence_url: Option<String>,
    /// Whether every recipient has to accept the licence.
    pub gated: bool,
    /// Of the licence's text in `licences/NAME/LICENCE`; there for every gated component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence_sha256: Option<String>,
    /// Words that have to be shown where it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// Who accepted the licence where the bundle was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
    /// Whether every file had a sum that somebody else published.
    pub sums_known: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComponentKind {
    Program,
    Model,
    Scorer,
    Encoder,
    #[default]
    Data,
}

impl ComponentKind {
    /// The folder of its files, each component's in one of its own name; data and programs have none of their own.
    pub fn folder(self) -> &'static str {
        let role = match self {
            ComponentKind::Program => Role::Binary,
            ComponentKind::Model => Role::Model,
            ComponentKind::Scorer => Role::Scorer,
            ComponentKind::Encoder => Role::Encoder,
            ComponentKind::Data => Role::Data,
        };
        role.folder()
    }
}

impl fmt::Display for ComponentKind {
    /// As manifests write it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

impl FileEntry {
    /// What of it lies in the bundle.
    pub fn carried(&self) -> Vec<Part> {
        match (self.unchanged, self.parts.is_empty()) {
            (true, _) => Vec::new(),
            (false, true) => vec![self.whole()],
            (false, false) => self.parts.clone(),
        }
    }

    /// It as it is installed.
    pub fn whole(&self) -> Part {
        let FileEntry { path, size_bytes, sha256, .. } = self.clone();
        Part { path, size_bytes, sha256 }
    }
}

/// A text, or a name of one, that a terminal would obey.
fn unprintable(value: &Value) -> Option<&str> {
    let strange = |text: &str| console::plain(text) != text;
    match value {
        Value::String(text) => Some(text.as_str()).filter(|text| strange(text)),
        Value::Array(values) => values.iter().find_map(unprintable),
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            Some(name.as_str()).filter(|name| strange(name)).or_else(|| unprintable(value))
        }),
        _ => None,
    }
}

impl Manifest {
    /// Reads and checks one; `file` is what it is called in errors.
    ///
    /// # Errors
    /// What is no manifest of this format, or contradicts itself.
    pub fn parse(bytes: &[u8], file: &Path) -> Result<Manifest, BundleError> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let bad = |why: String| BundleError::BadFile { file: file.display().to_string(), why };
        let head: Head = serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))?;
        if head.format != FORMAT {
            return Err(BundleError::Format { found: head.format });
        }
        // Its texts are printed.
        let whole: Value = serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))?;
        if let Some(text) = unprintable(&whole) {
            return Err(bad(format!("`{}` is no text to be shown", console::plain(text))));
        }
        let manifest: Manifest =
            serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))?;
        manifest.problem().map_or(Ok(manifest), |why| Err(bad(why)))
    }

    /// As it is written.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Bytes of all files as they are installed.
    pub fn size_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size_bytes).sum()
    }

    pub fn file(&self, path: &str) -> Option<&FileEntry> {
        self.files.iter().find(|file| file.path.as_str() == path)
    }
}

/// Where the text of a component's licence lies.
pub fn licence_path(component: &str) -> String {
    format!("licences/{component}/LICENCE")
}

/// Where the text lies that says what a component may be used for.
pub fn policy_path(component: &str) -> String {
    format!("licences/{component}/USE-POLICY")
}

/// Names of bundles and components are one part of a path.
pub fn is_name(text: &str) -> bool {
    !text.contains('/') && BundlePath::parse(text).is_ok()
}
