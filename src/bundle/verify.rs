//! Checking a bundle where it lies: the signature over the bytes of `SHA256SUMS` first, then every file.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use minisign_verify::{PublicKey, Signature};
use rayon::prelude::*;

use super::folder::Folder;
use super::{SIGNATURE, SUMS, Size, sums};
use crate::console;
use crate::diagnosis::Failure;
use crate::digest::sha256_file;
use crate::outside;

/// Longer ones are no list of a bundle's.
const LONGEST_LIST: u64 = 64 << 20;
/// Longer ones are no file of a bundle's: a sparse one may claim any length, and take as long to read.
const LONGEST_FILE: u64 = 1 << 40;

const DISTRUST: &str = "do not use it; ask the sender, by another way, what was sent";

/// Checks that this key signed the list, and that the folder holds what it lists, all of it and nothing else. Gives what it holds, and what the
/// signer signed beside the list.
///
/// # Errors
/// A key that is none; no signature, or one by another key or of another list; every file that is extra, missing, changed, a link or no file.
pub fn verify(directory: &Path, key: &Path) -> Result<(Size, String), Failure> {
    let refused = |file: &str, why: &dyn Display| {
        let why = console::plain(&why.to_string());
        Failure::missing(format!("{}: {why}", directory.join(file).display()), DISTRUST)
    };
    let read = |file: &str| {
        let bytes = outside::bytes_beside(&directory.join(file), LONGEST_LIST);
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
    let mut folder = Folder::read(directory)?;
    compare(directory, &mut folder, &sums);
    match folder.problems.is_empty() {
        true => Ok((folder.size(), signature.trusted_comment().to_owned())),
        false => {
            let problem = format!("{} is not what was signed:", directory.display());
            Err(Failure::missing(problem + &folder.told(), DISTRUST))
        }
    }
}

/// Adds everything in which the files are not what is listed.
fn compare(directory: &Path, folder: &mut Folder, sums: &BTreeMap<String, String>) {
    let Folder { files, problems } = folder;
    let extra = files.keys().filter(|name| !sums.contains_key(*name));
    problems.extend(extra.map(|name| format!("extra    {name}")));
    let sums = Vec::from_iter(sums);
    problems.par_extend(sums.par_iter().with_max_len(1).filter_map(|(name, sum)| {
        let Some(bytes) = files.get(*name) else { return Some(format!("missing  {name}")) };
        if *bytes > LONGEST_FILE {
            return Some(format!("changed  {name}: {bytes} bytes are more than a bundle has"));
        }
        match sha256_file(&directory.join(name)) {
            Ok(own) if own == **sum => None,
            Ok(own) => Some(format!("changed  {name}: its sha256 is {own}, not {sum}")),
            Err(error) => Some(format!("changed  {name}: {error}")),
        }
    }));
}
