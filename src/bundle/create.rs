//! Making a bundle of a folder: the list of its files and their sums. Nothing is signed here: a signing key has no business near a program that
//! parses models.

use std::io;
use std::path::Path;

use rayon::prelude::*;

use super::folder::Folder;
use super::{SIGNATURE, SUMS, Size, sums};
use crate::diagnosis::Failure;
use crate::digest::sha256_file;
use crate::outside;

/// Writes the list of a folder's files, a new one in the place of an old one, whose signature goes.
///
/// # Errors
/// What no bundle holds, all of it by name; a file that cannot be read or written.
pub fn create(directory: &Path) -> Result<Size, Failure> {
    let mut folder = Folder::read(directory)?;
    let escaped = folder.files.keys().filter(|name| sums::is_escaped(name));
    let escaped = escaped.map(|name| format!("named    {name:?}: a backslash or a line break"));
    let twins = sums::twins(folder.files.keys());
    let twins = twins.map(|[one, other]| format!("twins    {one} and {other} are one file"));
    let named: Vec<String> = escaped.chain(twins).collect();
    folder.problems.extend(named);
    if !folder.problems.is_empty() {
        let problem = format!("{} holds what a bundle must not hold:", directory.display());
        return Err(Failure::refused(problem + &folder.told()));
    }
    let names = Vec::from_iter(folder.files.keys());
    let lines = names.par_iter().with_max_len(1).map(|name| {
        let sum = sha256_file(&directory.join(name))?;
        Ok(sums::line(name, &sum))
    });
    let lines = lines.collect::<io::Result<Vec<String>>>()?;
    outside::if_there(fs_err::remove_file(directory.join(SIGNATURE)))?;
    outside::replace(&directory.join(SUMS), lines.concat(), false)?;
    Ok(folder.size())
}
