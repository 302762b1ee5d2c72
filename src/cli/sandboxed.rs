//! The sandbox of a command: the files that it may read and write, and its network. What its arguments name is read from the command line,
//! once for all commands; each adds what its files name in turn, and what it writes.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use clap::parser::ValueSource;
use clap::{ArgMatches, Id};

use super::options::HubFlags;
use crate::calls::Store;
use crate::cli::exit::Failure;
use crate::console;
use crate::corpus::store::manifest::{self, ManifestFile};
use crate::experiment::spec::Spec;
use crate::hub::{self, HubError, HubOptions};
use crate::ops::Device;
use crate::panel::remote::Address;
use crate::sandbox::{Policy, SandboxMode, enter};

/// The paths that a command may access, collected before it is sandboxed, and what else its arguments say of that.
#[derive(Debug, Default)]
pub struct Paths {
    pub(super) policy: Policy,
    pub mode: SandboxMode,
    /// The device that it computes on; `None`: the CPU.
    pub(super) device: Option<String>,
    pub(super) hub: HubFlags,
    /// Models, encoders and rerankers.
    pub(super) models: Vec<String>,
    /// Where what is fetched goes; `None`: into the hub's cache.
    pub(super) to: Option<PathBuf>,
    /// Whether it tells no progress.
    pub(super) is_quiet: bool,
}

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
    /// What the arguments and their variables say: what is there of all that they name, also in lists and behind `NAME=`, is read.
    pub fn given(mut self, matches: &ArgMatches) -> Paths {
        let raw = |id: &str| {
            let values = matches.try_get_raw(id).ok().flatten().into_iter().flatten();
            values.filter_map(OsStr::to_str).map(str::to_owned)
        };
        let is_given =
            |id: &&Id| matches.value_source(id.as_str()) != Some(ValueSource::DefaultValue);
        for text in matches.ids().filter(is_given).flat_map(|id| raw(id.as_str())) {
            let words = std::iter::once(&*text).chain(text.split(','));
            let words = words.flat_map(|word| [Some(word), word.split_once('=').map(|two| two.1)]);
            let paths = words.flatten().map(PathBuf::from);
            // A pipe of a shell's `<(…)` is open already, and has no rule.
            self.policy.read.extend(paths.filter(|path| path.is_file() || path.is_dir()));
        }
        for names in ["model", "panel", "encoder", "reranker"].into_iter().flat_map(raw) {
            self.models.extend(names.split(',').map(str::to_owned));
        }
        self.device = raw("device").next_back().or(self.device);
        self.to = raw("to").next_back().map(PathBuf::from).or(self.to);
        let is_set = |id: &str| matches.try_get_one(id).ok().flatten().copied();
        // A dry run fetches nothing, and leaves no cache.
        self.hub.offline |= ["offline", "dry_run"].map(is_set).contains(&Some(true));
        self.is_quiet = is_set("quiet").unwrap_or(true);
        match matches.subcommand() {
            Some((_, below)) => self.given(below),
            None => self,
        }
    }

    /// Allows reading the models that the arguments name, and fetching them, unless they must be here.
    pub fn named(mut self, are_here: bool) -> Result<Paths, Failure> {
        self.hub.offline |= are_here;
        let models = std::mem::take(&mut self.models);
        match models.is_empty() {
            true => Ok(self),
            false => self.hub.options(true).and_then(|hub| self.models(&models, &hub)),
        }
    }

    /// Allows reading files and directories. Links in the directories lead nowhere, unless to what may be read anyway.
    pub fn read<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Paths {
        self.policy.read.extend(paths.into_iter().map(|path| path.as_ref().to_owned()));
        self
    }

    /// Allows reading the directory of a model or of data, which somebody else made. Of the links in it, those to files of the hub's cache
    /// are followed: into the `blobs` that the snapshot belongs to.
    pub fn read_model(self, directory: &Path) -> Paths {
        self.read([directory]).read(blobs_of(directory))
    }

    /// Allows writing to a directory of the command's own, which is made if it does not exist.
    pub fn write(self, directory: &Path) -> Result<Paths, Failure> {
        if !directory.exists() {
            MADE.lock().unwrap_or_else(PoisonError::into_inner).push(directory.to_owned());
            fs_err::create_dir_all(directory)?;
        }
        Ok(self.write_in(directory))
    }

    /// Allows writing to a directory that is there.
    pub fn write_in(mut self, directory: &Path) -> Paths {
        self.policy.list.push(folder_of(directory));
        self.policy.write.push(directory.to_owned());
        self
    }

    /// Allows writing what is made beside its place and put there whole: in the nearest folder above it that is there.
    pub fn write_beside(self, path: &Path) -> Result<Paths, Failure> {
        let path = std::path::absolute(path)?;
        let above = path.ancestors().skip(1).find(|folder| folder.is_dir());
        Ok(self.write_in(above.unwrap_or(&path)))
    }

    /// Allows fetching: talking to the hub and to its mirrors, and writing to `--to`, else to the hub's cache.
    pub fn fetch(mut self) -> Result<Paths, Failure> {
        let hub = self.hub.options(true)?;
        match self.to.take() {
            _ if hub.fetch_refusal().is_some() => Ok(self),
            Some(to) => self.connect(&hub).write(&to),
            None => self.connect(&hub).cache(&hub.cache()?),
        }
    }

    fn connect(mut self, hub: &HubOptions) -> Paths {
        self.policy.has_network = true;
        self.read(&hub.token_path)
    }

    /// Allows writing to the hub's cache, which stays: other processes may take it at any time.
    fn cache(self, cache: &Path) -> Result<Paths, Failure> {
        fs_err::create_dir_all(cache)?;
        Ok(self.write_in(cache))
    }

    /// Allows reading models, encoders and rerankers. If one must be downloaded or is remote, the network stays open.
    pub fn models<'a>(
        mut self,
        names: impl IntoIterator<Item = &'a String>,
        hub: &HubOptions,
    ) -> Result<Paths, Failure> {
        let here = hub.local();
        for name in names {
            if Address::is_meant_by(name) {
                self.policy.has_network = true;
                continue;
            }
            self = self.read_model(Path::new(name));
            // A damaged model is reported when it is loaded, and so is a missing one.
            let missing = hub::resolve(name, &here).err();
            if let (Some(HubError::NotCached { .. } | HubError::NoCache), None) =
                (missing, hub.fetch_refusal())
            {
                self = self.connect(hub);
                self = hub.cache.iter().try_fold(self, |paths, cache| paths.cache(cache))?;
            }
        }
        Ok(self)
    }

    /// Allows reading corpora, each with its encoder, where what it names is one: whoever made the corpus may have named any directory.
    pub fn corpora<'a>(mut self, directories: impl IntoIterator<Item = &'a PathBuf>) -> Paths {
        for directory in directories {
            self = self.read([directory]);
            // A damaged corpus is reported when it is opened.
            if let Ok(file) = ManifestFile::read(&directory.join(manifest::MANIFEST)) {
                let encoder = file.local.encoder;
                if encoder.join("config.json").exists() {
                    self = self.read_model(&encoder);
                }
            }
        }
        self
    }

    /// Allows writing to a store of calls, which is made if it is not there.
    pub fn store(self, calls: Option<&PathBuf>) -> Result<Paths, Failure> {
        let Some(directory) = calls else { return Ok(self) };
        Store::make(directory)?;
        Ok(self.write_in(directory))
    }

    /// Allows reading everything that a run reads.
    pub fn run(self, spec: &Spec) -> Result<Paths, Failure> {
        let models = || spec.panel.iter().chain(spec.slots.values());
        let corpora = spec.corpus.iter().flat_map(|corpus| &corpus.directories);
        let reranker = spec.corpus.iter().flat_map(|corpus| &corpus.reranker);
        let folder = folder_of(&spec.data);
        // The one file that is read beside the questions.
        let beside = spec.format.beside().map(|name| folder.join(name));
        let paths = self
            .store(spec.hardware.calls.as_ref())?
            .read([&spec.data])
            .read(&spec.subset.ids)
            .read(beside)
            .read(spec.prompts.iter())
            .corpora(corpora)
            .read(reranker)
            .read(spec.exemplars.paths());
        paths.models(models(), &spec.hub)
    }

    /// Enters the sandbox, before the command's first thread; the hub's cache may be read in any. Gives a description of what held; prints
    /// it where that is not all, unless it is quiet.
    pub fn enter(self) -> Result<Option<String>, Failure> {
        // A variable of the hub that is wrong is told by what asks the hub.
        let cache = self.hub.options(true).ok().and_then(|hub| hub.cache);
        let Paths { policy, mode, device, is_quiet, .. } = self.read(cache);
        let device = device.as_deref().unwrap_or("cpu");
        Device::check_names(device)?;
        let is_on_cpu = device == "cpu";
        match mode {
            SandboxMode::Require if !is_on_cpu => {
                return Err(Failure::usage(
                    format!("a sandbox is required, and its rules know nothing of {device}"),
                    "deploy/ has units of systemd that restrict a process on a GPU: say --sandbox off there",
                ));
            }
            SandboxMode::Auto if !is_on_cpu => {
                console::note(format!("sandbox: none, since its rules know nothing of {device}"));
            }
            _ => {}
        }
        let held = enter(if is_on_cpu { mode } else { SandboxMode::Off }, &policy)?;
        let is_whole = |held: &&String| held.contains("files by") && held.contains("by seccomp");
        if let Some(held) = held.as_ref().filter(|held| !is_quiet && !is_whole(held)) {
            console::note(held);
        }
        Ok(held)
    }
}

/// The `blobs` that a snapshot of a hub's cache links to.
fn blobs_of(directory: &Path) -> Option<PathBuf> {
    let own = directory.canonicalize().ok()?;
    let snapshots = own.parent().filter(|above| above.ends_with("snapshots"))?;
    let blobs = snapshots.with_file_name("blobs");
    // A link could lead anywhere.
    blobs.symlink_metadata().is_ok_and(|kind| kind.is_dir()).then_some(blobs)
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
        for format in [Format::Pubmedqa, Format::Mcq] {
            let config = SystemConfig::parse::<&str>("medmad", &[]).unwrap();
            let mut spec = Spec::new(config, at("ori_pqal.json"), format).unwrap();
            spec.panel.clear();
            let mut read = Paths::default().run(&spec).unwrap().policy.read;
            read.retain(|path| path.starts_with(folder.path()));
            let beside = (format != Format::Mcq).then(|| at("test_ground_truth.json"));
            let expected: Vec<_> = std::iter::once(at("ori_pqal.json")).chain(beside).collect();
            assert_eq!(read, expected, "{format}");
        }
    }
}
