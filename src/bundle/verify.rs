//! Checking a bundle where it lies: the signature over the bytes of `SHA256SUMS` first, then `bundle.toml`, then every file.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use minisign_verify::{PublicKey, Signature};
use rayon::prelude::*;

use super::{Bundle, CONTENTS, SIGNATURE, SUMS, sums};
use crate::console;
use crate::diagnosis::Failure;
use crate::digest::{sha256, sha256_file};
use crate::outside;

/// Longer ones are no list of a bundle's.
const LONGEST: u64 = 64 << 20;
/// Problems that a message lists at most.
const MOST_LINES: usize = 50;

const DISTRUST: &str = "do not use it; ask the sender, by another way, what was sent";

/// Checks that this key signed the list, and that the folder holds what it lists, all of it and nothing else. Gives what the bundle says of
/// itself, and what the signer signed beside the list.
///
/// # Errors
/// A key that is none; no signature, or one by another key or of another list; every file that is extra, missing, changed, a link or no file.
pub fn verify(directory: &Path, key: &Path) -> Result<(Bundle, String), Failure> {
    let refused = |file: &str, why: &dyn Display| {
        let why = console::plain(&why.to_string());
        Failure::missing(format!("{}: {why}", directory.join(file).display()), DISTRUST)
    };
    let read = |file: &str| {
        let bytes = outside::bytes_beside(&directory.join(file), LONGEST);
        let bytes = bytes.map_err(|error| refused(file, &error))?;
        Ok::<_, Failure>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = outside::text(key)?;
    let key = PublicKey::decode(&text).map_err(|error| {
        let message = format!("{} is no public key of minisign: {error}", key.display());
        Failure::usage(message, "give the file that the sender gave you by another way")
    })?;
    let signed = read(SUMS)?;
    let signature = Signature::decode(&read(SIGNATURE)?);
    let signature = signature.map_err(|error| refused(SIGNATURE, &error))?;
    let held = key.verify(signed.as_bytes(), &signature, false);
    held.map_err(|error| refused(SIGNATURE, &error))?;
    let sums = sums::parse(&signed).map_err(|why| refused(SUMS, &why))?;
    let contents = read(CONTENTS)?;
    if sums.get(CONTENTS) != Some(&sha256(&contents)) {
        return Err(refused(CONTENTS, &"changed: it is not the one that is listed"));
    }
    let bundle: Bundle =
        outside::toml(&contents).map_err(|error| refused(CONTENTS, &error.message()))?;
    let problems = problems(directory, &sums, bundle.bytes.max(LONGEST))?;
    match problems.is_empty() {
        true => Ok((bundle, signature.trusted_comment().to_owned())),
        false => Err(Failure::missing(listed(directory, &problems), DISTRUST)),
    }
}

/// Everything in which the folder is not what is listed, sorted by kind and name.
fn problems(
    directory: &Path,
    sums: &BTreeMap<String, String>,
    longest: u64,
) -> Result<Vec<String>, Failure> {
    let (mut files, mut problems) = (BTreeMap::new(), Vec::new());
    list(directory, "", &mut files, &mut problems)?;
    let listed = |name: &str| sums.contains_key(name) || [SUMS, SIGNATURE].contains(&name);
    let extra = files.keys().filter(|name| !listed(name)).map(|name| format!("extra    {name}"));
    problems.extend(extra);
    let sums = Vec::from_iter(sums);
    problems.par_extend(sums.par_iter().with_max_len(1).filter_map(|(name, sum)| {
        let Some(bytes) = files.get(*name) else { return Some(format!("missing  {name}")) };
        if *bytes > longest {
            // A sparse file may claim any length, and take as long to read.
            return Some(format!("changed  {name}: {bytes} bytes are more than the bundle has"));
        }
        match sha256_file(&directory.join(name)) {
            Ok(own) if own == **sum => None,
            Ok(own) => Some(format!("changed  {name}: its sha256 is {own}, not {sum}")),
            Err(error) => Some(format!("changed  {name}: {error}")),
        }
    }));
    problems.sort();
    Ok(problems)
}

/// The bytes of each file in a folder, all the way down, and in words what no bundle holds. No link is followed.
fn list(
    directory: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, u64>,
    problems: &mut Vec<String>,
) -> io::Result<()> {
    let mut is_empty = true;
    for entry in fs_err::read_dir(directory)? {
        let entry = entry?;
        is_empty = false;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        // Of the entry itself, not of what it may lead to.
        let metadata = entry.metadata()?;
        let mode = metadata.permissions().mode() & 0o7777;
        match metadata.file_type() {
            kind if kind.is_symlink() => problems.push(format!("linked   {name}")),
            kind if kind.is_dir() => list(&entry.path(), &format!("{name}/"), files, problems)?,
            kind if !kind.is_file() => problems.push(format!("extra    {name}: it is no file")),
            _ => {
                // Copied by somebody's tool, it would run as its owner.
                if mode & 0o7000 != 0 {
                    problems.push(format!("changed  {name}: its mode is {mode:04o}"));
                }
                files.insert(name, metadata.len());
            }
        }
    }
    if is_empty && !prefix.is_empty() {
        problems.push(format!("extra    {prefix}: it is an empty folder"));
    }
    Ok(())
}

fn listed(directory: &Path, problems: &[String]) -> String {
    let lines =
        problems.iter().take(MOST_LINES).map(|line| format!("\n  {}", console::plain(line)));
    let more = problems.len().saturating_sub(MOST_LINES);
    let more = if more > 0 { format!("\n  … and {more} more") } else { String::new() };
    format!("{} is not what was signed:{}{more}", directory.display(), lines.collect::<String>())
}
