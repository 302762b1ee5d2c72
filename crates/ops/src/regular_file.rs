//! Files are opened here alone: a pipe or a device in the place of a file would be waited for without end, and what is written through a
//! link of somebody else's lands anywhere.

use std::io::{self, Write};
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt;

/// A regular file, to be read.
///
/// # Errors
/// One that cannot be opened; what is no file. The message names it.
pub fn open(path: impl AsRef<Path>) -> io::Result<fs_err::File> {
    // Opening a pipe waits for who writes to it, unless asked not to; nothing else changes for files.
    let mut options = fs_err::OpenOptions::new();
    regular(options.read(true).custom_flags(libc::O_NONBLOCK).open(path.as_ref())?)
}

fn regular(file: fs_err::File) -> io::Result<fs_err::File> {
    let kind = file.metadata()?.file_type();
    let (problem, said) = match () {
        () if kind.is_file() => return Ok(file),
        () if kind.is_dir() => (io::ErrorKind::IsADirectory, "Is a directory"),
        () => (io::ErrorKind::InvalidInput, "it is no file"),
    };
    Err(io::Error::new(problem, format!("{}: {said}", file.path().display())))
}

/// A regular file to go on in, or a new one. Where a link stands in its place nothing is written: it may lead anywhere.
///
/// # Errors
/// One that cannot be opened; a link; what is no file. The message names it.
pub fn open_to_write(path: impl AsRef<Path>) -> io::Result<fs_err::File> {
    let path = path.as_ref();
    refuse_link(path)?;
    let mut options = fs_err::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    // What became a link since it was looked at is not followed either.
    regular(options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?)
}

/// A new file in the place of whatever file or link has the name, for its owner alone.
pub fn create(path: impl AsRef<Path>) -> io::Result<fs_err::File> {
    anew(path.as_ref(), fs_err::OpenOptions::new().mode(0o600))
}

/// The same, for whoever the umask lets read it: what has no text of anybody's, such as a model.
pub fn create_public(path: impl AsRef<Path>) -> io::Result<fs_err::File> {
    anew(path.as_ref(), &mut fs_err::OpenOptions::new())
}

fn anew(path: &Path, options: &mut fs_err::OpenOptions) -> io::Result<fs_err::File> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => options.read(true).write(true).create_new(true).open(path),
    }
}

/// A new file of these bytes in the place of whatever file or link has the name, for its owner alone.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(bytes.as_ref())
}

/// The same, as [`create_public`] has it.
pub fn write_public(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    create_public(path)?.write_all(bytes.as_ref())
}

/// A file that is beside another one which somebody else has named: no link, which might lead anywhere.
///
/// # Errors
/// A link; see [`open`].
pub fn open_beside(path: impl AsRef<Path>) -> io::Result<fs_err::File> {
    refuse_link(path.as_ref())?;
    open(path)
}

fn refuse_link(path: &Path) -> io::Result<()> {
    let is_link = fs_err::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    match is_link {
        false => Ok(()),
        true => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{}: it is a link, which may lead anywhere", path.display()),
        )),
    }
}

/// A directory: to lock it, or to make its names durable.
#[expect(clippy::disallowed_methods, reason = "a directory, not a file")]
pub fn open_directory(path: impl AsRef<Path>) -> io::Result<fs_err::File> {
    fs_err::File::open(path.as_ref())
}

pub fn sync_directory(path: impl AsRef<Path>) -> io::Result<()> {
    open_directory(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_or_read_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (own, link) = (folder.path().join("own"), folder.path().join("link"));
        fs_err::write(&own, "mine").unwrap();
        for target in [own.as_path(), Path::new("none")] {
            fs_err::os::unix::fs::symlink(target, &link).unwrap();
            for error in [open_to_write(&link), open_beside(&link)].map(Result::unwrap_err) {
                assert!(error.to_string().contains("link: it is a link"), "{error}");
            }
            write(&link, "new").unwrap();
            assert_eq!(fs_err::read(&link).unwrap(), b"new");
            assert!(!fs_err::symlink_metadata(&link).unwrap().is_symlink());
            fs_err::remove_file(&link).unwrap();
        }
        assert_eq!(fs_err::read(&own).unwrap(), b"mine");
        assert!(!Path::new("none").exists());
        // What is there is gone on in.
        open_to_write(&own).unwrap().write_all(b"M").unwrap();
        assert_eq!(fs_err::read(open_beside(&own).unwrap().path()).unwrap(), b"Mine");
    }

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
