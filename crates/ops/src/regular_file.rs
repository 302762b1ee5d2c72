//! Files are opened here alone: a pipe or a device in the place of a file would be waited for without end.

use std::io;
use std::path::Path;

/// A regular file, to be read.
///
/// # Errors
/// One that cannot be opened; what is no file. The message names it.
pub fn open(path: impl AsRef<Path>) -> io::Result<fs_err::File> {
    let path = path.as_ref();
    let file = without_waiting(path)?;
    let kind = file.metadata()?.file_type();
    let (problem, said) = match () {
        () if kind.is_file() => return Ok(file),
        () if kind.is_dir() => (io::ErrorKind::IsADirectory, "Is a directory"),
        () => (io::ErrorKind::InvalidInput, "it is no file"),
    };
    Err(io::Error::new(problem, format!("{}: {said}", path.display())))
}

/// Opening a pipe waits for who writes to it, unless asked not to; nothing else changes for files.
#[cfg(unix)]
fn without_waiting(path: &Path) -> io::Result<fs_err::File> {
    use fs_err::os::unix::fs::OpenOptionsExt;
    fs_err::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

#[cfg(not(unix))]
fn without_waiting(path: &Path) -> io::Result<fs_err::File> {
    fs_err::OpenOptions::new().read(true).open(path)
}

/// A directory: to lock it, or to make its names durable.
///
/// # Errors
/// Those of the operating system.
#[expect(clippy::disallowed_methods, reason = "a directory, not a file")]
pub fn open_directory(path: impl AsRef<Path>) -> io::Result<fs_err::File> {
    fs_err::File::open(path.as_ref())
}

/// Makes the names in a directory durable.
///
/// # Errors
/// Those of the operating system.
pub fn sync_directory(path: impl AsRef<Path>) -> io::Result<()> {
    open_directory(path)?.sync_all()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_a_directory_and_a_device_are_no_files_and_nobody_waits() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("config.json");
        let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
        // SAFETY: a name that ends, and a mode.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        assert_eq!(open(folder.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            let error = open(path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
            assert!(error.to_string().contains("it is no file"), "{error}");
        }
        assert_eq!(open(folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
