//! Prompts are files: embedded in the binary, overridden by a directory at run time, filled in one pass.

mod passages;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use self::passages::{NONE_FOUND, label, passages};
use crate::fault::faults;
use crate::outside;

// `PROMPTS`: every file below `prompts/` by its path there, the system's name, then the file's; in their order.
include!(concat!(env!("OUT_DIR"), "/prompts.rs"));

faults! {
    /// Why prompts could not be used.
    #[derive(Debug, thiserror::Error)]
    pub enum PromptError {
        #[error(transparent)]
        Read(error: #[from] std::io::Error) => error.blame(), "--prompts takes a directory of text files";
        #[error("{} is not a prompt that wardround knows", path.display())]
        Unknown { path: PathBuf } => Usage, PLACE;
        #[error("no prompt is named {name}")]
        Missing { name: String } => Usage, PLACE;
        #[error("prompt {name} does not contain {{{placeholder}}}")]
        NoPlaceholder { name: String, placeholder: String }
            => Usage, format!("write {{{placeholder}}} where its text belongs in the file");
        #[error("prompt {name} has no line that starts with \"{entry}. \", which a switch replaces")]
        NoEntry { name: String, entry: u32 }
            => Usage, format!("number the file's entry {entry}, or leave `counterfactual` on");
    }
}

const PLACE: &str =
    "prompts have the names that they have below prompts/ of the source, as medmad/role-sym.txt";

/// The texts of every prompt, by name (`medmad/role-sym.txt`), without a file's last newline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptSet {
    texts: BTreeMap<String, String>,
}

impl PromptSet {
    /// Every text of one system with its name, in the order of the names.
    pub fn texts(&self, system: &str) -> impl Iterator<Item = (&str, &str)> {
        let texts = self.texts.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        texts.filter(move |(name, _)| name.split('/').next() == Some(system))
    }

    /// The prompts in the binary.
    pub fn embedded() -> PromptSet {
        let texts = PROMPTS
            .iter()
            .map(|(name, text)| (name.to_string(), without_last_newline(text)))
            .collect();
        PromptSet { texts }
    }

    /// The prompts in the binary, save those that a directory holds under the same names.
    ///
    /// # Errors
    /// [`PromptError::Read`] where a file is unreadable or not UTF-8, [`PromptError::Unknown`] where
    /// the directory holds anything that is not a prompt.
    pub fn open(directory: Option<&Path>) -> Result<PromptSet, PromptError> {
        let mut set = PromptSet::embedded();
        let Some(directory) = directory else { return Ok(set) };
        for system in fs_err::read_dir(directory)? {
            let system = system?.path();
            if !system.is_dir() {
                return Err(PromptError::Unknown { path: system });
            }
            for file in fs_err::read_dir(&system)? {
                set.replace(directory, file?.path())?;
            }
        }
        Ok(set)
    }

    fn replace(&mut self, directory: &Path, path: PathBuf) -> Result<(), PromptError> {
        let name = path
            .strip_prefix(directory)
            .map(|name| name.to_string_lossy().replace('\\', "/"))
            .unwrap_or_default();
        let Some(text) = self.texts.get_mut(&name) else {
            return Err(PromptError::Unknown { path });
        };
        let file = outside::text(path)?;
        *text = without_last_newline(&file);
        Ok(())
    }

    /// The text of the prompt `NAME.txt`, which must have all of `placeholders`, given without their braces.
    ///
    /// # Errors
    /// [`PromptError::Missing`], [`PromptError::NoPlaceholder`].
    pub fn get(&self, name: &str, placeholders: &[&str]) -> Result<String, PromptError> {
        let name = format!("{name}.txt");
        let Some(text) = self.texts.get(&name) else {
            return Err(PromptError::Missing { name });
        };
        match placeholders.iter().find(|placeholder| !has_placeholder(text, placeholder)) {
            Some(placeholder) => {
                Err(PromptError::NoPlaceholder { name, placeholder: placeholder.to_string() })
            }
            None => Ok(text.clone()),
        }
    }

    /// The hash of one system's prompts, in hex: over its sorted `name sha256` lines.
    pub fn sha256(&self, system: &str) -> String {
        let lines: String = self
            .texts(system)
            .map(|(name, text)| format!("{name} {}\n", crate::digest::sha256(text)))
            .collect();
        crate::digest::sha256(&lines)
    }
}

/// `template` with every `{name}` of `values` replaced. One pass: what is put in is not looked at
/// again, and braces around anything else stay as they are.
pub fn fill<S: AsRef<str>>(template: &str, values: &[(&str, S)]) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let (before, from_brace) = rest.split_at(open);
        filled.push_str(before);
        let after_brace = &from_brace[1..];
        let found = values.iter().find_map(|(name, value)| {
            let after = after_brace.strip_prefix(name)?.strip_prefix('}')?;
            Some((value, after))
        });
        match found {
            Some((value, after)) => {
                filled.push_str(value.as_ref());
                rest = after;
            }
            None => {
                filled.push('{');
                rest = after_brace;
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// The lines of `template`, filled in, without those that have a placeholder with an empty value.
pub fn filled_lines<S: AsRef<str>>(template: &str, values: &[(&str, S)]) -> Vec<String> {
    let has_gap = |line: &str| {
        let mut empty = values.iter().filter(|(_, value)| value.as_ref().is_empty());
        empty.any(|(name, _)| has_placeholder(line, name))
    };
    let lines = template.lines().filter(|line| !has_gap(line));
    lines.map(|line| fill(line, values)).collect()
}

/// Whether [`fill`] would replace `{name}` in this text.
fn has_placeholder(text: &str, name: &str) -> bool {
    text.contains(&format!("{{{name}}}"))
}

/// The names in braces that [`fill`] may replace: of small letters and what may be in a name of a stage.
pub fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let can_be = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let names = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let names = names.map(|(name, _)| name);
    names.filter(move |name| {
        name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(can_be)
    })
}

/// A text of a file, as prompts have it.
pub fn without_last_newline(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::Diagnosis;

    #[test]
    fn fill_takes_one_pass() {
        let filled = fill("{a} {b} {c} {'option': 'A'} {", &[("a", "{b}"), ("b", "{a}")]);
        assert_eq!(filled, "{b} {a} {c} {'option': 'A'} {");
        assert_eq!(fill("{{a}}", &[("a", "x")]), "{x}");
        assert_eq!(fill("{ab}", &[("a", "x")]), "{ab}");
        assert_eq!(fill("é{a}é", &[("a", "ü")]), "éüé");
    }

    #[test]
    fn every_file_is_embedded() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("prompts");
        let mut names = Vec::new();
        for system in fs_err::read_dir(&directory).unwrap() {
            for file in fs_err::read_dir(system.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                let name = path.strip_prefix(&directory).unwrap();
                names.push(name.to_str().unwrap().replace('\\', "/"));
            }
        }
        names.sort();
        let embedded: Vec<_> = PROMPTS.iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(names, embedded);
        assert_eq!(PromptSet::open(Some(&directory)).unwrap(), PromptSet::embedded());
    }

    /// The words are the paper's: whoever changes one means to, and writes the new hash here.
    #[test]
    fn the_embedded_words_are_pinned() {
        assert_eq!(
            PromptSet::embedded().sha256("medmad"),
            "c1657c1a5f06f9a9b0db9a26fc24de5405fb26af9988c2a036b641988dc0cfb8"
        );
    }

    #[test]
    fn a_directory_overrides_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let system = directory.path().join("medmad");
        fs_err::create_dir(&system).unwrap();
        fs_err::write(system.join("role-sym.txt"), "You read patterns.\r\n").unwrap();
        let set = PromptSet::open(Some(directory.path())).unwrap();
        assert_eq!(set.get("medmad/role-sym", &[]).unwrap(), "You read patterns.");
        let embedded = PromptSet::embedded();
        assert_eq!(
            set.get("medmad/role-ddx", &[]).unwrap(),
            embedded.get("medmad/role-ddx", &[]).unwrap()
        );
        assert_ne!(set.sha256("medmad"), embedded.sha256("medmad"));
        assert_eq!(set.sha256("another"), embedded.sha256("another"));
    }

    #[test]
    fn what_is_no_prompt_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let system = directory.path().join("medmad");
        fs_err::create_dir(&system).unwrap();
        fs_err::write(system.join("role-symm.txt"), "x").unwrap();
        let error = PromptSet::open(Some(directory.path())).unwrap_err();
        assert!(error.to_string().contains("role-symm.txt"), "{error}");
        assert!(error.hint().unwrap().contains("medmad/role-sym.txt"), "{error}");

        fs_err::remove_file(system.join("role-symm.txt")).unwrap();
        fs_err::write(directory.path().join("notes.txt"), "x").unwrap();
        let error = PromptSet::open(Some(directory.path())).unwrap_err();
        assert!(matches!(error, PromptError::Unknown { .. }));

        let error = PromptSet::open(Some(&directory.path().join("none"))).unwrap_err();
        assert!(matches!(error, PromptError::Read(_)));
    }

    #[test]
    fn a_lost_placeholder_is_refused() {
        let set = PromptSet::embedded();
        assert!(set.get("medmad/debate-user", &["debate_brief"]).is_ok());
        let error = set.get("medmad/debate-user", &["no_such"]).unwrap_err();
        assert!(error.to_string().ends_with("does not contain {no_such}"));
        assert!(matches!(set.get("medmad/none", &[]), Err(PromptError::Missing { .. })));
    }
}
