//! A system as a file: what it takes, its agents, and its stages in order, whose replies become an answer.
//!
//! A file says what is asked, of whom, and what comes of the replies, each from a short list; what needs more is a program. The files below
//! `systems/` are built in, others are read by [`SystemText::read`].

mod ask;
mod check;
pub mod form;
mod prompt;
mod reply;
pub mod schema;
mod settings;
#[cfg(test)]
mod tests;
mod transcript;

use std::io;
use std::path::Path;

pub use self::schema::{StageEntry, SystemFile, SystemText};
use super::table::{SystemEntry, Wording};
use crate::diagnosis::Failure;
use crate::outside;
use crate::prompts::without_last_newline;

// `SYSTEM_FILES`: every file below `systems/` by its path there, and its text; in their order.
include!(concat!(env!("OUT_DIR"), "/system_files.rs"));

pub const EXTENSION: &str = ".toml";
const PAGE: &str = "your-own-system.md";
/// Bytes of a system's file, and of a prompt beside it, at most.
const LONGEST: u64 = 1 << 20;
/// Models of a panel that names none, at most.
const PANEL: usize = 3;

impl SystemFile {
    pub fn embedded() -> impl Iterator<Item = (&'static str, &'static str)> {
        let name = |path: &'static str| path.strip_suffix(EXTENSION).unwrap_or(path);
        SYSTEM_FILES.iter().map(move |(path, text)| (name(path), *text))
    }

    /// The system of a text, for as long as the program runs.
    pub fn of_source(source: &SystemText) -> Result<&'static SystemFile, Failure> {
        let file = SystemFile::settled(source).map_err(|error| error.about(&source.name))?;
        Ok(Box::leak(Box::new(file)))
    }

    fn settled(source: &SystemText) -> Result<SystemFile, Failure> {
        let file = SystemFile { source: source.clone(), ..SystemFile::parse(source)? };
        // Built-in prompts may be others at run time, and are checked then.
        if !file.prompts.is_empty() {
            return Ok(file);
        }
        file.with_texts(|name| {
            let lost = || Failure::refused(format!("{name} is not beside it"));
            source.beside.get(name).cloned().ok_or_else(lost)
        })
    }

    /// With the texts of the files that it names in place, and checked.
    fn with_texts(
        mut self,
        text: impl Fn(&str) -> Result<String, Failure>,
    ) -> Result<SystemFile, Failure> {
        for name in self.named() {
            *name = text(name)?;
        }
        self.check()?;
        Ok(self)
    }

    fn parse(source: &SystemText) -> Result<SystemFile, Failure> {
        outside::toml(&source.text).map_err(|error| unparsed(error, PAGE))
    }

    pub fn is_outside(&self) -> bool {
        let SystemText { name, text, .. } = &self.source;
        !SystemFile::embedded().any(|built_in| built_in == (name.as_str(), text.as_str()))
    }

    pub fn entry(&'static self) -> SystemEntry {
        let agents = self.agents.len();
        let name = self.source.name.as_str();
        // What a copy of a built-in file says is not its own name.
        let plan_name = self.plan_name.as_deref().filter(|_| !self.is_outside());
        SystemEntry {
            plan_name: plan_name.unwrap_or(name),
            takes: self.takes,
            wording: Wording::Ours(&self.after),
            examples: self.examples.as_deref(),
            exemplars: self.stages.iter().any(|stage| stage.exemplars.is_some()),
            // More agents than a panel that names no models has share its first.
            default_models: (agents == 1 || agents > PANEL).then_some(1),
            file: Some(self),
            ..SystemEntry::question(name, &self.prompts, settings::configure)
        }
    }
}

impl SystemText {
    /// A file outside, with the texts of the files beside it that it names.
    pub fn read(path: &Path) -> Result<SystemText, Failure> {
        let hint = "a system is a TOML file; a prompt in it that ends in .txt is a file beside it";
        let unread = |problem: String| Failure::usage(problem, hint);
        let text = |path: &Path, bytes: io::Result<Vec<u8>>| {
            let bytes = bytes.map_err(|error| unread(error.to_string()))?;
            String::from_utf8(bytes).map_err(|error| unread(format!("{}: {error}", path.display())))
        };
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if SystemEntry::named(&name).is_ok() {
            let message = format!("{}: a built-in system is named {name}", path.display());
            return Err(Failure::usage(message, "give the file another name"));
        }
        let own = text(path, outside::bytes(path, LONGEST))?;
        let mut source = SystemText { name, text: own, ..SystemText::default() };
        let place = path.display().to_string();
        let mut file = SystemFile::parse(&source).map_err(|error| error.about(&place))?;
        let (folder, has_own) = (path.parent().unwrap_or(Path::new("")), file.prompts.is_empty());
        for name in file.named().filter(|_| has_own) {
            // A file from somebody else quotes nothing from elsewhere on this machine.
            let beside = outside::below(folder, name).map_err(|error| unread(error.to_string()))?;
            let text = text(&beside, outside::bytes_beside(&beside, LONGEST))?;
            source.beside.insert(name.clone(), without_last_newline(&text));
        }
        SystemFile::settled(&source).map_err(|error| error.about(&place))?;
        Ok(source)
    }
}

/// What a text of TOML, a system's or a recipe's, has that is no key or value of its kind, with its line; a page of docs/ lists the keys.
pub fn unparsed(problem: String, page: &str) -> Failure {
    Failure::usage(problem, &format!("docs/{page} lists the keys"))
}
