//! The sandbox of a command: the files that it may read and write, and its network.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use clap::Args;

use crate::calls::Store;
use crate::cli::exit::Failure;
use crate::console;
use crate::corpus::store::manifest::{self, ManifestFile};
use crate::experiment::error::RunError;
use crate::experiment::spec::Spec;
use crate::experiment::whole_file;
use crate::hub::{self, HubOptions};
use crate::ops::Device;
use crate::panel::remote::Address;
use crate::sandbox::{Policy, SandboxMode, enter};

/// Whether the process is sandboxed.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct SandboxFlag {
    /// Sandbox the process: its own files, no other network or programs
    #[arg(
        long,
        help_heading = "Sandbox",
        value_enum,
        default_value = "auto",
        env = "WARDROUND_SANDBOX"
    )]
    pub sandbox: SandboxMode,
}

/// The paths that a command may access, collected before it is sandboxed.
#[derive(Debug, Default)]
pub struct Paths(pub(super) Policy);

/// What an item's image may be, which only an endpoint is shown: which files the items name is known once they are read, in the sandbox.
const IMAGES: [&str; 5] = ["png", "jpg", "jpeg", "webp", "gif"];
const MOST_IMAGES: usize = 1 << 16;

/// Directories that were made for the command, which is one a process.
static MADE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the directories that were made for a command where nothing was written in them: it was refused, or had nothing to do.
pub fn remove_empty() {
    for directory in MADE.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // Fails if it is not empty.
        let _ = fs_err::remove_dir(directory);
    }
}

impl Paths {
    /// Allows reading files and directories. Links in the directories lead nowhere, unless to what may be read anyway.
    pub fn read<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Paths {
        self.0.read.extend(paths.into_iter().map(|path| path.as_ref().to_owned()));
        self
    }

    /// Allows reading the directories of files of whoever starts the program, which may be replaced while it runs, and the files
    /// that links in them lead to.
    #[cfg(feature = "serve")]
    pub fn read_beside<'a>(self, files: impl IntoIterator<Item = &'a PathBuf>) -> Paths {
        let folders: Vec<PathBuf> = files.into_iter().map(|file| folder_of(file)).collect();
        let targets: Vec<PathBuf> =
            folders.iter().flat_map(|folder| files_behind_links(folder)).collect();
        self.read(folders).read(targets)
    }

    /// Allows reading a model's directory, which somebody else made. Of the links in it, those to files of the hub's cache are
    /// followed: into the `blobs` that the snapshot belongs to.
    pub(super) fn read_model(self, directory: &Path) -> Paths {
        self.read([directory]).read(blobs_of(directory))
    }

    /// Allows reading the files of an encoder that a corpus names, and not its directory: whoever made the corpus may have named any.
    fn read_named_encoder(self, directory: &Path) -> Paths {
        let files = encoder_files(directory);
        self.read(files).read(blobs_of(directory))
    }

    /// Allows writing to a directory of the command's own, which is created if it does not exist, and closed to others while it is
    /// empty: in the sandbox no mode is changed.
    pub fn write(self, directory: &Path) -> Result<Paths, Failure> {
        if !directory.exists() {
            MADE.lock().unwrap_or_else(PoisonError::into_inner).push(directory.to_owned());
        }
        self.write_shared(directory)
    }

    /// The same of one that other processes may take at any time: it stays.
    fn write_shared(self, directory: &Path) -> Result<Paths, Failure> {
        let is_empty = || fs_err::read_dir(directory).is_ok_and(|mut all| all.next().is_none());
        if !directory.exists() || is_empty() {
            whole_file::create_private_directory(directory).map_err(RunError::from)?;
        }
        Ok(self.write_in(directory))
    }

    /// Allows writing to a directory that is there.
    pub fn write_in(mut self, directory: &Path) -> Paths {
        self.0.list.push(folder_of(directory));
        self.0.write.push(directory.to_owned());
        self
    }

    /// Allows reading these models. If one must be downloaded or is remote, the network stays open.
    pub fn models<'a>(
        mut self,
        names: impl IntoIterator<Item = &'a String>,
        options: &HubOptions,
    ) -> Result<Paths, Failure> {
        let here = options.local();
        let cache = options.cache().ok();
        for name in names {
            if Address::is_meant_by(name) {
                self.0.has_network = true;
                continue;
            }
            // A damaged model is reported when it is loaded.
            self = self.read_model(Path::new(name));
            match hub::resolve(name, &here) {
                Ok(checkpoint) => {
                    self = self.read_model(&checkpoint.directory);
                }
                Err(_) if options.fetch_refusal().is_none() => {
                    self.0.has_network = true;
                    if let Some(cache) = &cache {
                        // The token lies beside the cache.
                        self = self.read(cache.parent()).write_shared(cache)?;
                    }
                }
                // A missing model is reported when it is loaded.
                Err(_) => {}
            }
        }
        Ok(self.read(cache))
    }

    /// Allows reading the directories of encoders and rerankers.
    #[cfg(feature = "serve")]
    pub fn encoders<'a>(self, directories: impl IntoIterator<Item = &'a Path>) -> Paths {
        directories.into_iter().fold(self, Paths::read_model)
    }

    /// Allows reading corpora, each with its encoder.
    pub fn corpora<'a>(mut self, directories: impl IntoIterator<Item = &'a PathBuf>) -> Paths {
        for directory in directories {
            // A damaged corpus is reported when it is opened.
            let file = ManifestFile::read(&directory.join(manifest::MANIFEST));
            self = self.read([directory]);
            if let Ok(file) = file {
                self = self.read_named_encoder(&file.local.encoder);
            }
        }
        self
    }

    /// Allows reading everything that a run reads.
    pub fn run(self, spec: &Spec) -> Result<Paths, Failure> {
        let corpora = spec.corpus.iter().flat_map(|corpus| &corpus.directories);
        let reranker = spec.corpus.iter().flat_map(|corpus| &corpus.reranker);
        let shown = spec.exemplars.iter();
        let shown =
            shown.flat_map(|shown| std::iter::once(&shown.notes).chain(shown.files.paths()));
        // The one file that is read beside the questions.
        let beside = spec.format.beside().map(|name| folder_of(&spec.data).join(name));
        let beside = beside.filter(|file| file.is_file());
        let is_sent =
            spec.panel.iter().chain(spec.slots.values()).any(|name| Address::is_meant_by(name));
        let images = is_sent.then(|| files_of(&folder_of(&spec.data), &IMAGES, MOST_IMAGES));
        let paths = match &spec.hardware.calls.directory {
            Some(calls) => {
                Store::make(calls)?;
                self.write_in(calls)
            }
            None => self,
        };
        let paths = paths
            .read([&spec.data])
            .read(spec.subset.path())
            .read(beside)
            .read(images.into_iter().flatten())
            .read(spec.prompts.iter())
            .corpora(corpora)
            .read(reranker)
            .read(shown);
        paths.models(spec.panel.iter().chain(spec.slots.values()), &spec.hub)
    }

    /// Enters the sandbox, before the command's first thread. `device` is the device that it computes on. Gives a description of what
    /// held; prints it where that is not all, unless `is_quiet`.
    pub fn enter(
        self,
        flag: SandboxFlag,
        device: &str,
        is_quiet: bool,
    ) -> Result<Option<String>, Failure> {
        Device::check_names(device)?;
        let is_untried = flag.sandbox == SandboxMode::Auto && device != "cpu";
        if is_untried {
            console::note(format!(
                "sandbox: none, since its rules were not tried with {device} yet; --sandbox require enters it all the same"
            ));
        }
        let held = enter(if is_untried { SandboxMode::Off } else { flag.sandbox }, &self.0)?;
        let is_whole = |held: &&String| held.contains("files by") && held.contains("by seccomp");
        if let Some(held) = held.as_ref().filter(|held| !is_quiet && !is_whole(held)) {
            console::note(held);
        }
        Ok(held)
    }
}

/// Those that a directory of the hub's cache links to, from itself and from the folders of its modules, in the `blobs` that the snapshot
/// belongs to.
fn blobs_of(directory: &Path) -> Vec<PathBuf> {
    let own = directory.canonicalize().ok();
    let blobs = own.as_deref().and_then(|own| own.parent()?.parent().map(|up| up.join("blobs")));
    let Some(blobs) = blobs.filter(|blobs| blobs.is_dir()) else { return Vec::new() };
    let entries = fs_err::read_dir(directory).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let folders = std::iter::once(directory.to_owned()).chain(folders.map(|entry| entry.path()));
    let targets = folders.flat_map(|folder| files_behind_links(&folder));
    targets.filter(|target| target.parent() == Some(&*blobs)).collect()
}

/// What published encoders have: files of a few kinds beside a config.json, and in the folders of their modules. More files than any of
/// them has are no encoder.
fn encoder_files(directory: &Path) -> Vec<PathBuf> {
    const KINDS: [&str; 6] = ["json", "txt", "model", "safetensors", "bin", "toml"];
    const MOST: usize = 256;
    if !directory.join("config.json").exists() {
        return Vec::new();
    }
    let files = files_of(directory, &KINDS, MOST);
    if files.len() < MOST { files } else { Vec::new() }
}

/// The files of these kinds in a directory and in the folders in it, of so many entries of each; no links.
fn files_of(directory: &Path, kinds: &[&str], most: usize) -> Vec<PathBuf> {
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).take(most).collect()
    };
    let own = list(directory);
    let modules = own.iter().filter(|path| path.is_dir() && !path.is_symlink());
    let mut files: Vec<PathBuf> =
        modules.flat_map(|folder| list(folder)).chain(own.clone()).collect();
    let is_kind = |path: &PathBuf| {
        let kind = path.extension().and_then(|kind| kind.to_str());
        kind.is_some_and(|kind| kinds.iter().any(|known| kind.eq_ignore_ascii_case(known)))
    };
    files.retain(|path| is_kind(path) && path.is_file() && !path.is_symlink());
    files
}

/// The regular files that links in a directory lead to; none if it is a file or does not exist.
fn files_behind_links(directory: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(directory).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let targets = links.filter_map(|link| link.path().canonicalize().ok());
    targets.filter(|target| target.is_file()).collect()
}

/// The folder of a path; `.` for a bare name.
pub fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Format;
    use crate::systems::SystemConfig;

    #[test]
    fn beside_pubmedqas_questions_one_file_may_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["ori_pqal.json", "test_ground_truth.json", "other.json"] {
            fs_err::write(at(name), "{}").unwrap();
        }
        for format in [Format::Pubmedqa, Format::Mcq] {
            let config = SystemConfig::named("medmad").unwrap();
            let mut spec = Spec::new(config, at("ori_pqal.json"), format).unwrap();
            spec.panel.clear();
            let mut read = Paths::default().run(&spec).unwrap().0.read;
            read.retain(|path| path.starts_with(folder.path()));
            let beside = (format != Format::Mcq).then(|| at("test_ground_truth.json"));
            let expected: Vec<_> = std::iter::once(at("ori_pqal.json")).chain(beside).collect();
            assert_eq!(read, expected, "{format}");
        }
    }
}
