//! Checking a bundle where it lies: the signature over the bytes of `SHA256SUMS` first, then the manifest, then every file.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::files::{Found, read_small, sum};
use super::manifest::{FileEntry, MOST_BYTES, Manifest, Part};
use super::path::BundlePath;
use super::signature::TrustedKey;
use super::sums::Sums;
use super::{BundleError, MANIFEST, SUMS};
use crate::digest::sha256;
use crate::hub::installed::is_signature;

/// Larger ones are none of a bundle's.
const MOST_SUMS_BYTES: u64 = 64 << 20;
const MOST_SIGNATURE_BYTES: u64 = 16 << 10;
/// More signatures than anybody gives.
const MOST_SIGNATURES: usize = 64;

/// A bundle whose manifest is what its sums say, and whose sums are signed by every key that was given.
pub struct Opened {
    pub directory: PathBuf,
    pub manifest: Manifest,
    /// As they were read, once: what is checked is what is used.
    pub manifest_bytes: Vec<u8>,
    pub sums_bytes: Vec<u8>,
    /// By their names.
    pub signatures: BTreeMap<String, Vec<u8>>,
    /// The keys that signed, each with the comment that it signed too.
    pub signers: Vec<(String, String)>,
}

/// What a check of all files came to.
#[derive(Debug, Default)]
pub struct Checked {
    /// Files that are right.
    pub files: usize,
    pub bytes: u64,
    /// Files that an older version has to bring.
    pub unchanged: usize,
    /// In words, sorted by kind and path.
    pub problems: Vec<String>,
}

/// Reads the sums and their signatures once, and the manifest that they name.
///
/// # Errors
/// No bundle; a key of `keys` that did not sign; a manifest that is not what its sum says, or contradicts itself or the sums.
pub fn open(directory: &Path, keys: &[TrustedKey]) -> Result<Opened, BundleError> {
    let sums_bytes = small(directory, SUMS, MOST_SUMS_BYTES)?;
    let signatures = signatures(directory)?;
    let mut signers = Vec::new();
    for key in keys {
        let tried = signatures.iter().filter(|(name, _)| name.ends_with(".minisig")).map(
            |(name, bytes)| {
                let text =
                    std::str::from_utf8(bytes).map_err(|error| format!("{name}: {error}"))?;
                key.has_signed(&sums_bytes, text).map_err(|why| format!("{name}: {why}"))
            },
        );
        let (mut signed, mut refused) = (None, Vec::new());
        for tried in tried {
            match tried {
                Ok(comment) => signed = Some(comment),
                Err(why) => refused.push(why),
            }
        }
        let Some(comment) = signed else {
            return Err(BundleError::NotSigned {
                directory: directory.to_owned(),
                key: key.name.clone(),
                reasons: refused,
            });
        };
        signers.push((key.name.clone(), comment));
    }
    let sums = Sums::parse(&sums_bytes)?;
    let manifest_bytes = small(directory, MANIFEST, MOST_BYTES)?;
    let bad = |why: String| BundleError::BadFile { file: MANIFEST.to_owned(), why };
    let manifest_path = BundlePath::parse(MANIFEST)?;
    let found = sha256(&manifest_bytes);
    match sums.0.get(&manifest_path) {
        None => return Err(bad(format!("{SUMS} has no line of it"))),
        Some(expected) if *expected != found => {
            return Err(bad(format!("its sha256 is {found}, {SUMS} says {expected}")));
        }
        Some(_) => {}
    }
    let manifest = Manifest::parse(&manifest_bytes, Path::new(MANIFEST))?;
    agree(&manifest, &sums, &manifest_path).map_or(Ok(()), |why| Err(bad(why)))?;
    let directory = directory.to_owned();
    Ok(Opened { directory, manifest, manifest_bytes, sums_bytes, signatures, signers })
}

/// A small file at the top of a bundle.
fn small(directory: &Path, name: &str, most_bytes: u64) -> Result<Vec<u8>, BundleError> {
    match read_small(&directory.join(name), most_bytes) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(BundleError::NoBundle { directory: directory.to_owned(), file: name.to_owned() })
        }
        Err(error) => Err(BundleError::BadFile { file: name.to_owned(), why: error.to_string() }),
    }
}

fn signatures(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>, BundleError> {
    let mut signatures = BTreeMap::new();
    for entry in fs_err::read_dir(directory)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        if is_signature(&name) && entry.file_type()?.is_file() {
            signatures.insert(name.clone(), small(directory, &name, MOST_SIGNATURE_BYTES)?);
        }
        if signatures.len() > MOST_SIGNATURES {
            return Err(BundleError::BadFile {
                file: name,
                why: format!("there are more than {MOST_SIGNATURES} signatures"),
            });
        }
    }
    Ok(signatures)
}

/// What the manifest and the sums say otherwise, if anything.
fn agree(manifest: &Manifest, sums: &Sums, own: &BundlePath) -> Option<String> {
    let carried = manifest.files.iter().flat_map(FileEntry::carried);
    let listed: BTreeMap<BundlePath, String> =
        carried.map(|file| (file.path, file.sha256)).collect();
    let differs = listed.iter().find(|(path, sum)| sums.0.get(*path) != Some(*sum));
    if let Some((path, _)) = differs {
        return Some(format!("it and {SUMS} differ about {path}"));
    }
    let stray = sums.0.keys().find(|path| *path != own && !listed.contains_key(*path));
    stray.map(|path| format!("{SUMS} has {path}, which it does not list"))
}

impl Opened {
    pub fn manifest_sha256(&self) -> String {
        sha256(&self.manifest_bytes)
    }

    /// Checks names and sizes, and the sums of all files where their `contents` are to be read; on all threads.
    ///
    /// # Errors
    /// A directory that cannot be listed. What is wrong with files is in the list.
    pub fn check(&self, contents: bool) -> Result<Checked, BundleError> {
        let found = Found::list(&self.directory)?;
        let expected = self.expected(&found);
        let mut checked = Checked {
            unchanged: self
                .manifest
                .files
                .iter()
                .filter(|file| !found.files.contains_key(&file.path) && file.unchanged)
                .count(),
            problems: found.strange.clone(),
            ..Checked::default()
        };
        let paths: BTreeSet<&str> = expected.iter().map(|file| file.path.as_str()).collect();
        for path in found.files.keys().map(BundlePath::as_str) {
            if !paths.contains(path) && ![MANIFEST, SUMS].contains(&path) && !is_signature(path) {
                checked.problems.push(format!("extra    {path}: {SUMS} has no line of it"));
            }
        }
        for folder in &found.empty_folders {
            checked.problems.push(format!("extra    {folder}: it is an empty folder"));
        }
        let (mut sound, wrong): (Vec<&Part>, Vec<&Part>) =
            expected.iter().partition(|file| found.files.get(&file.path) == Some(&file.size_bytes));
        checked.problems.extend(wrong.into_iter().map(|file| match found.files.get(&file.path) {
            None => format!("missing  {}", file.path),
            Some(size) => {
                format!("changed  {}: it has {size} bytes, not {}", file.path, file.size_bytes)
            }
        }));
        // The longest first: no thread is left with one at the end.
        sound.sort_by_key(|file| std::cmp::Reverse(file.size_bytes));
        let sums = if contents { self.differing(&sound) } else { Vec::new() };
        checked.files = sound.len() - sums.len();
        checked.bytes = sound.iter().map(|file| file.size_bytes).sum();
        checked.problems.extend(sums);
        checked.problems.sort();
        Ok(checked)
    }

    /// What should be here: of a file in parts the parts, or in an installed version the whole; of unchanged files those that are here.
    fn expected(&self, found: &Found) -> Vec<Part> {
        let files = self.manifest.files.iter().flat_map(|file| {
            match found.files.contains_key(&file.path) {
                true => vec![file.whole()],
                false => file.carried(),
            }
        });
        files.collect()
    }

    /// Those whose sums are wrong, in words.
    fn differing(&self, files: &[&Part]) -> Vec<String> {
        let wrong = files.par_iter().with_max_len(1).filter_map(|file| {
            match sum(&file.path.below(&self.directory)) {
                Ok(found) if found.sha256 == file.sha256 => None,
                Ok(found) => Some(format!(
                    "changed  {}: its sha256 is {}, not {}",
                    file.path, found.sha256, file.sha256
                )),
                Err(error) => Some(format!("changed  {}: {error}", file.path)),
            }
        });
        wrong.collect()
    }
}
