//! Making a bundle: what is asked for is found, copied beside its place, summed as it was written, and put there by one rename. Nothing is
//! signed here: a signing key has no business near a program that parses models.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use fs_err::OpenOptions;
use fs_err::os::unix::fs::OpenOptionsExt;
use rayon::prelude::*;

use super::{Bundle, CONTENTS, Part, SIGNATURE, SUMS, sums};
use crate::diagnosis::Failure;
use crate::digest::{sha256, sha256_file};
use crate::hub::{self, DatasetCard, HubOptions, Licence, PROVENANCE, Provenance, Status};
use crate::outside;

/// The program's own licences, which travel with it.
const LICENCES: [(&str, &str); 2] = [
    ("licences/LICENSE-APACHE", include_str!("../../LICENSE-APACHE")),
    ("licences/LICENSE-MIT", include_str!("../../LICENSE-MIT")),
];
/// What `bundle.toml` begins with.
const INTRODUCTION: &str = "\
# Check this folder with tools of your own before you run what is in it; the key comes by another way:
#     minisign -V -p vendor.pub -m SHA256SUMS && sha256sum --quiet -c SHA256SUMS
# Use it where it lies:
#     HF_HOME=$PWD WARDROUND_OFFLINE=1 bin/wardround …

";

/// What a bundle is to hold, as the flags of `bundle create` say it.
#[derive(Debug, Default, Args)]
pub struct Request {
    /// Directory to make; it must not be there yet
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Models: cards and hub ids go in as the hub's cache has them, directories as models/NAME; their files must be on this machine
    #[arg(long = "model", value_name = "MODEL", num_args = 1..)]
    pub models: Vec<String>,
    /// Questions and notes: files, or directories of them, such as `data fetch` makes
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub data: Vec<PathBuf>,
    /// Programs [default: this one]
    #[arg(long = "binary", value_name = "FILE", num_args = 1..)]
    pub binaries: Vec<PathBuf>,
    /// Further files and directories, each under its own name: corpora, texts of licences, an SBOM, units, recipes
    #[arg(long = "add", value_name = "PATH", num_args = 1..)]
    pub added: Vec<PathBuf>,
}

/// Makes a bundle. Models are looked for on this machine alone.
///
/// # Errors
/// A model or file that is missing or wrong; a place that cannot be written. Then nothing stays.
pub fn create(request: &Request, hub: &HubOptions) -> Result<Bundle, Failure> {
    let out = std::path::absolute(&request.out)?;
    let partial = out.with_file_name(format!("{}.partial", name_of(&out)?));
    if let Some(taken) = [&out, &partial].into_iter().find(|path| path.exists()) {
        return Err(Failure::usage(
            format!("{} exists already", taken.display()),
            "choose another --out; of a process that was killed, remove what it left",
        ));
    }
    let contents = Contents::gather(request, &hub.local())?;
    fs_err::create_dir(&partial)?;
    let placed = contents.write(name_of(&out)?, &partial).and_then(|bundle| {
        fs_err::rename(&partial, &out)?;
        outside::sync_directory(out.parent().unwrap_or(&out))?;
        Ok(bundle)
    });
    if placed.is_err() {
        // The error to report is the first one.
        let _ = fs_err::remove_dir_all(&partial);
    }
    placed
}

/// The last part of a path.
fn name_of(path: &Path) -> Result<String, Failure> {
    let absolute = std::path::absolute(path)?;
    let name = absolute.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    name.ok_or_else(|| Failure::refused(format!("{} has no name in UTF-8", path.display())))
}

enum Source {
    File(PathBuf),
    Text(String),
}

/// What goes into a bundle, before anything is written.
#[derive(Default)]
struct Contents {
    /// By the names in the bundle.
    files: BTreeMap<String, Source>,
    /// What files must still be once they are copied.
    expected: BTreeMap<String, String>,
    parts: Vec<Part>,
}

impl Contents {
    fn gather(request: &Request, hub: &HubOptions) -> Result<Contents, Failure> {
        let mut contents = Contents::default();
        for path in &request.binaries {
            contents.add(&format!("bin/{}", name_of(path)?), path)?;
        }
        for (name, text) in LICENCES {
            contents.insert(name.to_owned(), Source::Text(text.to_owned()))?;
        }
        for member in &request.models {
            contents.add_model(member, hub)?;
        }
        contents.add_data(request)?;
        for path in &request.added {
            contents.add(&name_of(path)?, path)?;
        }
        let own = [CONTENTS, SUMS, SIGNATURE].map(str::to_owned);
        let taken = own.iter().find(|name| contents.files.contains_key(*name));
        let twins = sums::twins(own.iter().chain(contents.files.keys()));
        match twins.or(taken.map(|name| [name.clone(), name.clone()])) {
            None => Ok(contents),
            Some([one, other]) => Err(Failure::refused(format!("{one} and {other} are one file"))),
        }
    }

    /// Adds a file, or every file below a folder but hidden ones. Links to files are followed, as the hub's cache is made of them.
    fn add(&mut self, name: &str, path: &Path) -> Result<(), Failure> {
        if fs_err::metadata(path)?.is_file() {
            return self.insert(name.to_owned(), Source::File(path.to_owned()));
        }
        // Of what is neither file nor folder this is the error; it is not opened, since a pipe would be waited for.
        for entry in fs_err::read_dir(path)? {
            let entry = entry?;
            let own = name_of(&entry.path())?;
            if own.starts_with('.') {
                continue;
            }
            if entry.file_type()?.is_symlink() && entry.path().is_dir() {
                let message = format!("{}: it links to a folder", entry.path().display());
                return Err(Failure::refused(message));
            }
            self.add(&format!("{name}/{own}"), &entry.path())?;
        }
        Ok(())
    }

    fn insert(&mut self, name: String, source: Source) -> Result<(), Failure> {
        if sums::is_escaped(&name) {
            let message =
                format!("{name:?}: a bundle takes no name with a backslash or line break");
            return Err(Failure::refused(message));
        }
        match self.files.insert(name.clone(), source) {
            None => Ok(()),
            Some(_) => Err(Failure::refused(format!("two files would be {name}"))),
        }
    }

    fn add_model(&mut self, member: &str, hub: &HubOptions) -> Result<(), Failure> {
        let checkpoint = hub::resolve(member, hub)?;
        let checks = hub::verify(&checkpoint)?;
        let is_wrong =
            |status: &Status| matches!(status, Status::Missing | Status::Mismatch { .. });
        if let Some(wrong) = checks.iter().find(|check| is_wrong(&check.status)) {
            let message = format!("{member}: {} is not what it should be", wrong.name);
            return Err(Failure::missing(message, "`wardround models verify` says what it is"));
        }
        let directory = &checkpoint.directory;
        let name = checkpoint.card.map_or(checkpoint.name, |card| card.name.clone());
        let origin = checkpoint.repository.zip(checkpoint.revision);
        let folder = match &origin {
            Some((repository, commit)) if !Path::new(member).is_dir() => {
                let cached = format!("hub/models--{}/", repository.replace('/', "--"));
                let references = directory.join("../../refs");
                if references.is_dir() && !self.files.keys().any(|name| name.starts_with(&cached)) {
                    self.add(&format!("{cached}refs"), &references)?;
                }
                format!("{cached}snapshots/{commit}")
            }
            _ => format!("models/{name}"),
        };
        self.add(&folder, directory)?;
        let known = checks.iter().filter(|check| matches!(check.status, Status::Ok(_)));
        let known = known.filter_map(|check| Some((check.name.clone(), check.sha256.clone()?)));
        let known: BTreeMap<String, String> = known.collect();
        let sums_published = known.len() == checks.len();
        let expected = known.iter().map(|(name, sum)| (format!("{folder}/{name}"), sum.clone()));
        self.expected.extend(expected);
        let licence = checkpoint.card.map(|card| &card.licence);
        let mut part = Part { sums_published, ..part(name, &folder, licence) };
        if let Some((repository, revision)) = origin {
            part.origin = Some(format!("{repository}@{revision}"));
            // The cache says what a file should be by the link that leads to it, and here are none.
            let record = Provenance { repository, revision, sha256: known };
            let text = toml::to_string_pretty(&record).map_err(io::Error::other)?;
            self.files.entry(format!("{folder}/{PROVENANCE}")).or_insert(Source::Text(text));
        }
        if let Some(card) = checkpoint.card.filter(|card| card.gated) {
            part.notices.push(format!("copies go with the licence's text: {}", card.licence.url));
        }
        self.parts.push(part);
        Ok(())
    }

    /// Adds questions and notes.
    fn add_data(&mut self, request: &Request) -> Result<(), Failure> {
        for path in &request.data {
            match path.is_dir() {
                true => self.add("data", path)?,
                false => self.add(&format!("data/{}", name_of(path)?), path)?,
            }
        }
        let mut datasets = BTreeMap::new();
        for (_, source) in self.files.iter().filter(|(name, _)| name.starts_with("data/")) {
            let Source::File(path) = source else { continue };
            datasets.extend(DatasetCard::of_file(path).map(|(card, _)| (&card.name, card)));
        }
        for card in datasets.into_values() {
            let mut part = part(card.name.clone(), "data", Some(&card.licence));
            if !card.redistribute {
                part.notices.push("its licence lets no copies be handed on".to_owned());
            }
            self.parts.push(part);
        }
        Ok(())
    }

    /// Writes every file, and last the lists of them.
    fn write(self, name: String, folder: &Path) -> Result<Bundle, Failure> {
        let files: Vec<(&String, &Source)> = self.files.iter().collect();
        let written = files.par_iter().with_max_len(1).map(|(name, source)| {
            let path = folder.join(name);
            source.write(&path)?;
            let sum = sha256_file(&path)?;
            match self.expected.get(*name).is_some_and(|expected| *expected != sum) {
                true => Err(Failure::mismatch(format!("{name} changed while it was copied"))),
                false => Ok(((*name).clone(), sum, fs_err::metadata(&path)?.len())),
            }
        });
        let written = written.collect::<Result<Vec<_>, Failure>>()?;
        let bundle = Bundle {
            name,
            made_by: format!("wardround {}", env!("CARGO_PKG_VERSION")),
            files: written.len(),
            bytes: written.iter().map(|(.., bytes)| bytes).sum(),
            parts: self.parts,
        };
        let text = toml::to_string_pretty(&bundle).map_err(io::Error::other)?;
        let text = format!("{INTRODUCTION}{text}");
        let own = sums::line(CONTENTS, &sha256(&text));
        let lines = written.iter().map(|(name, sum, _)| sums::line(name, sum));
        let lines = lines.chain([own]).collect();
        Source::Text(text).write(&folder.join(CONTENTS))?;
        Source::Text(lines).write(&folder.join(SUMS))?;
        Ok(bundle)
    }
}

impl Source {
    /// Writes a file and its folders, so that it outlasts a stick that is pulled out.
    fn write(&self, path: &Path) -> io::Result<()> {
        fs_err::create_dir_all(path.parent().unwrap_or(path))?;
        let (mut from, mode): (Box<dyn io::Read>, u32) = match self {
            Source::Text(text) => (Box::new(text.as_bytes()), 0o666),
            Source::File(from) => {
                let from = outside::open(from)?;
                // Given when it is made: a stick's file system changes no modes.
                let is_program = from.metadata()?.permissions().mode() & 0o111 != 0;
                (Box::new(from), if is_program { 0o777 } else { 0o666 })
            }
        };
        let mut to = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        io::copy(&mut from, &mut to)?;
        to.sync_all()
    }
}

fn part(name: String, folder: &str, licence: Option<&Licence>) -> Part {
    Part {
        name,
        folder: folder.to_owned(),
        origin: None,
        licence: licence.map_or("not stated".to_owned(), |licence| licence.name.clone()),
        notices: licence.map_or_else(Vec::new, |licence| {
            [&licence.notice, &licence.shown, &licence.policy]
                .into_iter()
                .flatten()
                .cloned()
                .collect()
        }),
        sums_published: true,
    }
}
