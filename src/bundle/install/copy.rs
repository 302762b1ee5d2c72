//! The files of a version, summed as they are written: media may change between a check and a copy.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::bundle::files::{self, Summed, copy_summed};
use crate::bundle::manifest::FileEntry;
use crate::bundle::root::{Installed, Root};
use crate::bundle::verify::Opened;
use crate::bundle::{BundleError, MANIFEST, SUMS};
use crate::console;
use crate::digest::sha256;

/// What a file system needs beside the files themselves, for each of them.
const OVERHEAD_BYTES: u64 = 8 << 10;

/// Copies a bundle to `ROOT/versions/VERSION`: beside it first, then by one rename.
///
/// # Errors
/// A file that is not what its sum says, or cannot be written; then nothing stays.
pub fn copy(bundle: &Opened, root: &Root, installed: &[Installed]) -> Result<(), BundleError> {
    let older = older(bundle, root, installed)?;
    // Before space is counted: it may be most of it.
    root.remove_partial()?;
    tell_space(bundle, root)?;
    let version = &bundle.manifest.version;
    let partial = root.partial(version);
    let copied = fill(bundle, older, &partial);
    let renamed = copied.and_then(|()| {
        fs_err::rename(&partial, root.version(&version.to_string()))?;
        Ok(files::sync(&root.versions())?)
    });
    if renamed.is_err() {
        // The error to report is the first one; what stays is removed by the next attempt.
        let _ = fs_err::remove_dir_all(&partial);
    }
    renamed
}

/// The version that unchanged files come from, where there are any.
fn older<'a>(
    bundle: &Opened,
    root: &Root,
    installed: &'a [Installed],
) -> Result<Option<&'a Installed>, BundleError> {
    let Some(previous) = &bundle.manifest.previous else { return Ok(None) };
    let sha256 = &previous.manifest_sha256;
    let older = installed.iter().find(|own| own.manifest_sha256 == *sha256);
    let missing = || BundleError::NoPrevious { root: root.path.clone(), sha256: sha256.clone() };
    Ok(Some(older.ok_or_else(missing)?))
}

/// Says how much is needed and how much is free, before anything is written.
fn tell_space(bundle: &Opened, root: &Root) -> Result<(), BundleError> {
    let files = bundle.manifest.files.len() as u64;
    let needed_bytes = bundle.manifest.size_bytes() + files * OVERHEAD_BYTES;
    let system = rustix::fs::statvfs(&root.path).map_err(io::Error::from)?;
    let free_bytes = system.f_bavail.saturating_mul(system.f_frsize);
    console::note(format!(
        "{files} files, {:.1} MB; {:.1} MB are free in {}",
        needed_bytes as f64 / 1e6,
        free_bytes as f64 / 1e6,
        root.path.display()
    ));
    match needed_bytes <= free_bytes {
        true => Ok(()),
        false => Err(BundleError::NoSpace { path: root.path.clone(), free_bytes, needed_bytes }),
    }
}

fn fill(bundle: &Opened, older: Option<&Installed>, partial: &Path) -> Result<(), BundleError> {
    let mut all: Vec<&FileEntry> = bundle.manifest.files.iter().collect();
    all.sort_by_key(|file| std::cmp::Reverse(file.size_bytes));
    let mut problems: Vec<String> = all
        .par_iter()
        .with_max_len(1)
        .filter_map(|file| copy_file(bundle, older, file, partial).transpose())
        .collect::<Result<_, BundleError>>()?;
    problems.sort();
    BundleError::refuse_wrong(&bundle.directory, problems)?;
    let beside = [(MANIFEST, &bundle.manifest_bytes), (SUMS, &bundle.sums_bytes)];
    let signatures = bundle.signatures.iter().map(|(name, bytes)| (name.as_str(), bytes));
    for (name, bytes) in beside.into_iter().chain(signatures) {
        let path = partial.join(name);
        let mut file = files::create(&path)?;
        file.write_all(bytes)?;
        finish(&file, 0o644)?;
    }
    for folder in files::folders(partial)? {
        fs_err::set_permissions(&folder, Permissions::from_mode(0o755))?;
        files::sync(&folder)?;
    }
    Ok(())
}

/// Copies a file, from its parts where it lies in parts. What is wrong with it, in words.
fn copy_file(
    bundle: &Opened,
    older: Option<&Installed>,
    file: &FileEntry,
    partial: &Path,
) -> Result<Option<String>, BundleError> {
    let sources: Vec<(PathBuf, String)> = match older.filter(|_| file.unchanged) {
        Some(older) => vec![(file.path.below(&older.directory), file.sha256.clone())],
        None => {
            let carried = file.carried().into_iter();
            carried.map(|own| (own.path.below(&bundle.directory), own.sha256)).collect()
        }
    };
    let mut to = files::create(&file.path.below(partial))?;
    let mut parts = Vec::new();
    let mut size_bytes = 0;
    for (source, expected) in &sources {
        // One byte more than there should be tells a file that is too long, and none that grows for ever is followed.
        let room = (file.size_bytes - size_bytes.min(file.size_bytes)).saturating_add(1);
        let mut from = match files::open(source) {
            Ok(from) => from,
            Err(error) => return Ok(Some(format!("missing  {}: {error}", file.path))),
        };
        let Summed { sha256, size_bytes: count } = copy_summed(&mut from, &mut to, room)?;
        if sha256 != *expected {
            return Ok(Some(format!(
                "changed  {}: its sha256 is {sha256}, not {expected}",
                source.display()
            )));
        }
        size_bytes += count;
        parts.push(sha256);
    }
    finish(&to, file.mode.bits())?;
    // The sum of one source is that of the whole; of several the whole is read again.
    let whole = match &parts[..] {
        [] => sha256(""),
        [only] => only.clone(),
        _ => files::sum(&file.path.below(partial))?.sha256,
    };
    match whole == file.sha256 && size_bytes == file.size_bytes {
        true => Ok(None),
        false => {
            Ok(Some(format!("changed  {}: its sha256 is {whole}, not {}", file.path, file.sha256)))
        }
    }
}

fn finish(file: &fs_err::File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}
