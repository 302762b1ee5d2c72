//! Who may change what is installed, and who may read an audit trail, by the modes of their files.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::check::{Check, some};
use crate::diagnosis::Failure;

/// Whether only the owner may write to what is installed.
///
/// # Errors
/// A directory that cannot be read.
pub fn check_root(root: &Path) -> Result<Check, Failure> {
    let found = find(root, 0o022)?;
    Ok(match found.open.is_empty() {
        true => Check::ok(
            "file modes",
            format!("{} files and directories, written by their owner alone", found.count),
        ),
        false => Check::differs("file modes", format!("others may write to {}", some(&found.open))),
    })
}

/// Whether only the owner may read an audit trail.
///
/// # Errors
/// A directory that cannot be read.
pub fn check_audit(directory: &Path) -> Result<Check, Failure> {
    if !directory.is_dir() {
        return Ok(Check::note("audit", format!("{} is not there", directory.display())));
    }
    let found = find(directory, 0o077)?;
    Ok(match found.open.is_empty() {
        true => Check::ok(
            "audit",
            format!("{} files and directories, read by their owner alone", found.count),
        ),
        false => Check::differs("audit", format!("others may read or write {}", some(&found.open))),
    })
}

#[derive(Default)]
struct Found {
    count: usize,
    /// Those with any bit of the mask, sorted.
    open: Vec<String>,
}

/// Looks at everything below a directory, and at itself. Links are not followed: their own mode means nothing.
fn find(directory: &Path, mask: u32) -> Result<Found, Failure> {
    let mut found = Found::default();
    // A root is named by the link `current`, too.
    let mut paths: Vec<PathBuf> = vec![fs_err::canonicalize(directory)?];
    while let Some(path) = paths.pop() {
        let metadata = fs_err::symlink_metadata(&path)?;
        if metadata.is_symlink() {
            continue;
        }
        found.count += 1;
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & mask != 0 {
            found.open.push(format!("{} ({mode:04o})", path.display()));
        }
        if metadata.is_dir() {
            for entry in fs_err::read_dir(&path)? {
                paths.push(entry?.path());
            }
        }
    }
    found.open.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    fn set(path: &Path, mode: u32) {
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_may_write_or_read_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let (root, file) = (folder.path(), folder.path().join("models/config.json"));
        fs_err::create_dir_all(file.parent().unwrap()).unwrap();
        fs_err::write(&file, "{}").unwrap();
        set(root, 0o755);
        set(file.parent().unwrap(), 0o755);
        set(&file, 0o644);
        assert_eq!(check_root(root).unwrap().state, State::Ok);
        let audit = check_audit(root).unwrap();
        assert_eq!(audit.state, State::Differs);
        set(&file, 0o666);
        let check = check_root(root).unwrap();
        assert_eq!(check.state, State::Differs);
        assert!(check.found.contains("config.json (0666)"), "{check:?}");
        for (path, mode) in [(root, 0o700), (file.parent().unwrap(), 0o700), (&file, 0o600)] {
            set(path, mode);
        }
        assert_eq!(check_audit(root).unwrap().state, State::Ok);
        assert_eq!(check_audit(&root.join("none")).unwrap().state, State::Note);
    }
}
