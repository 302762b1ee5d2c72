//! Files that are written whole or not at all, for their owner alone (mode 0600), and directories that only their owner can enter.

use crate::outside;

use std::fs::{DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// Writes `bytes` to a file beside `path`, makes them durable, and puts the file in the place of `path`.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    outside::replace(path, bytes, true)
}

/// Makes a directory that only its owner can enter (mode 0700), and its parents; an existing one is closed to others.
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.exists()) {
        fs_err::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            let named = format!("cannot make {}: {error}", path.display());
            return Err(io::Error::new(error.kind(), named));
        }
        _ => {}
    }
    if fs_err::metadata(path)?.permissions().mode() & 0o777 != 0o700 {
        fs_err::set_permissions(path, Permissions::from_mode(0o700))?;
    }
    outside::sync_directory_of(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("results.json");
        write_private(&path, b"first").unwrap();
        write_private(&path, b"second").unwrap();
        assert_eq!(fs_err::read(&path).unwrap(), b"second");
        let mode = fs_err::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs_err::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("taken");
        fs_err::create_dir_all(path.join("by a directory")).unwrap();
        let error = write_private(&path, b"text").unwrap_err().to_string();
        let told = format!("cannot write {}: ", path.display());
        assert!(error.starts_with(&told) && !error.contains(".partial"), "{error}");
        assert_eq!(fs_err::read_dir(directory.path()).unwrap().count(), 1);
    }
}
