//! A model's folder beside the files that were signed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::statement::SignedFiles;
use crate::digest::FileDigest;
use crate::hub::{Authority, FileCheck, HubError, Status, digest_files};

/// Every file that was signed or lies in the folder, in the order of the names.
pub fn checks(
    directory: &Path,
    signature: &Path,
    signed: &SignedFiles,
) -> Result<Vec<FileCheck>, HubError> {
    let own = fs_err::canonicalize(signature)?;
    let mut found = Vec::new();
    list(directory, "", &signed.ignored, &mut found)?;
    // It cannot have signed itself.
    found.retain(|(_, path)| !fs_err::canonicalize(path).is_ok_and(|path| path == own));
    let missing =
        |name: &String| FileCheck { name: name.clone(), status: Status::Missing, sha256: None };
    let mut checks: BTreeMap<String, FileCheck> =
        signed.files.keys().map(|name| (name.clone(), missing(name))).collect();
    for FileDigest { name, sha256 } in digest_files(&found)? {
        let status = match signed.files.get(&name) {
            None => Status::Unsigned,
            Some(sum) => Status::of(Some((Authority::Signature, sum.clone())), &sha256),
        };
        checks.insert(name.clone(), FileCheck { name, status, sha256: Some(sha256) });
    }
    Ok(checks.into_values().collect())
}

/// Adds the files below a folder, by their names relative to the model's; a link as the file that it leads to.
fn list(
    folder: &Path,
    prefix: &str,
    ignored: &[String],
    found: &mut Vec<(String, PathBuf)>,
) -> io::Result<()> {
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| {
            let problem = format!("{} has {name:?}, which is not UTF-8", folder.display());
            io::Error::new(io::ErrorKind::InvalidData, problem)
        })?;
        let name = format!("{prefix}{name}");
        if ignored.iter().any(|ignored| Path::new(&name).starts_with(ignored)) {
            continue;
        }
        // A link to a folder might lead around in a circle: it is no file, and refused as one.
        match entry.file_type()?.is_dir() {
            true => list(&entry.path(), &format!("{name}/"), ignored, found)?,
            false => found.push((name, entry.path())),
        }
    }
    Ok(())
}
