//! Who may change what is installed, and who may read an audit trail, by the owners and modes of their files.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::check::{Check, some};
use crate::diagnosis::Failure;
use crate::hub::installed::accepted_file;

/// Whether root, or who runs this, owns what is installed and nobody else may write to it: the version, and where it is one of a root's,
/// what lies around it there.
///
/// # Errors
/// A directory that cannot be read.
pub fn check_root(root: &Path) -> Result<Check, Failure> {
    // A root is named by the link `current`, too.
    let version = fs_err::canonicalize(root)?;
    let mut found = FileModes::new(0o022);
    for path in around(&version) {
        found.look_at(&path)?;
    }
    found.look_below(&version)?;
    Ok(found.check("file modes", "others may write to", "written by their owner alone"))
}

/// The directories of a root, and its file of acceptances, as far as they are there; none where a bundle lies by itself.
fn around(version: &Path) -> Vec<PathBuf> {
    let versions = version.parent().filter(|versions| versions.ends_with("versions"));
    let Some((versions, root)) = versions.and_then(|own| Some((own, own.parent()?))) else {
        return Vec::new();
    };
    let all =
        [root, versions, &root.join("licences"), &accepted_file(root), &root.join("selftest")];
    all.into_iter().filter(|path| path.exists()).map(Path::to_path_buf).collect()
}

/// Whether only the owner may read an audit trail.
///
/// # Errors
/// A directory that cannot be read.
pub fn check_audit(directory: &Path) -> Result<Check, Failure> {
    if !directory.is_dir() {
        return Ok(Check::note("audit", format!("{} is not there", directory.display())));
    }
    let mut found = FileModes::new(0o077);
    found.look_below(&fs_err::canonicalize(directory)?)?;
    Ok(found.check("audit", "others may read or write", "read by their owner alone"))
}

/// The owners and modes that were looked at.
struct FileModes {
    /// Bits that no mode may have.
    mask: u32,
    /// Who runs this.
    own: u32,
    count: usize,
    /// Those with any bit of the mask.
    open: Vec<String>,
    /// Those of others than root and who runs this.
    foreign: Vec<String>,
}

impl FileModes {
    fn new(mask: u32) -> FileModes {
        let own = rustix::process::geteuid().as_raw();
        FileModes { mask, own, count: 0, open: Vec::new(), foreign: Vec::new() }
    }

    /// Looks at one file or directory. Links are not followed: their own mode means nothing. Gives what it is.
    fn look_at(&mut self, path: &Path) -> Result<Metadata, Failure> {
        let metadata = fs_err::symlink_metadata(path)?;
        if metadata.is_symlink() {
            return Ok(metadata);
        }
        self.count += 1;
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & self.mask != 0 {
            self.open.push(format!("{} ({mode:04o})", path.display()));
        }
        let owner = metadata.uid();
        if owner != 0 && owner != self.own {
            self.foreign.push(format!("{} (uid {owner})", path.display()));
        }
        Ok(metadata)
    }

    /// Looks at everything below a directory, and at itself.
    fn look_below(&mut self, directory: &Path) -> Result<(), Failure> {
        let mut paths = vec![directory.to_owned()];
        while let Some(path) = paths.pop() {
            if self.look_at(&path)?.is_dir() {
                for entry in fs_err::read_dir(&path)? {
                    paths.push(entry?.path());
                }
            }
        }
        Ok(())
    }

    /// What is otherwise than it should be, `open` said of those with a bit of the mask; `right` where nothing is.
    fn check(mut self, name: &str, open: &str, right: &str) -> Check {
        self.open.sort();
        self.foreign.sort();
        let open = (!self.open.is_empty()).then(|| format!("{open} {}", some(&self.open)));
        let foreign =
            (!self.foreign.is_empty()).then(|| format!("others own {}", some(&self.foreign)));
        let wrong: Vec<String> = open.into_iter().chain(foreign).collect();
        match wrong.is_empty() {
            true => Check::ok(name, format!("{} files and directories, {right}", self.count)),
            false => Check::differs(name, wrong.join("; ")),
        }
    }
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

    #[test]
    fn what_lies_around_an_installed_version_is_looked_at_too() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("opt");
        let version = root.join("versions/1.0");
        for path in [&version, &root.join("licences"), &root.join("selftest/1.0")] {
            fs_err::create_dir_all(path).unwrap();
        }
        let accepted = accepted_file(&root);
        fs_err::write(&accepted, "").unwrap();
        fs_err::write(root.join("selftest/1.0/selftest.json"), "{}").unwrap();
        std::os::unix::fs::symlink("versions/1.0", root.join("current")).unwrap();
        let all = [
            &version,
            &root,
            &root.join("versions"),
            &root.join("licences"),
            &root.join("selftest"),
        ];
        for path in all {
            set(path, 0o755);
        }
        set(&accepted, 0o644);
        let current = root.join("current");
        let check = check_root(&current).unwrap();
        assert!(check.state == State::Ok && check.found.starts_with("6 "), "{check:?}");
        for (path, open, shut) in [(&root, 0o777, 0o755), (&accepted, 0o666, 0o644)] {
            set(path, open);
            let check = check_root(&current).unwrap();
            assert!(check.found.contains(&format!("({open:04o})")), "{check:?}");
            set(path, shut);
        }
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(root.join("versions"), Some(65534), None).unwrap();
            let check = check_root(&current).unwrap();
            assert!(
                check.state == State::Differs && check.found.contains("(uid 65534)"),
                "{check:?}"
            );
        }
    }
}
