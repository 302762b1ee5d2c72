//! API keys: a file of names and hashes. The keys themselves are not stored.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fs_err::OpenOptions;
use fs_err::os::unix::fs::OpenOptionsExt;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::diagnosis::Failure;
use crate::{digest, outside};

/// The prefix of every key.
const PREFIX: &str = "wr_";
const MOST_NAME_CHARS: usize = 64;
/// The most bytes of a file of keys.
const MOST_BYTES: u64 = 16 << 20;
/// The bits of a mode by which others than the owner write. Who reads hashes of random keys learns none.
const WRITE: u32 = 0o022;
/// What a file of keys holds.
const LINE: &str = "a line is NAME sha256:HEX, as `wardround keys add` writes it";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub name: String,
    /// SHA-256 of the key itself, in hexadecimal digits.
    pub sum: String,
}

impl Key {
    /// A key with this secret, which is kept as its sum alone.
    #[cfg(test)]
    pub fn new(name: &str, secret: &str) -> Key {
        Key { name: name.to_owned(), sum: digest::sha256(secret) }
    }

    /// A part of the key's sum, which tells callers of one name apart and reveals no key.
    pub fn identity(&self) -> String {
        format!("key:{}", &self.sum[..16])
    }

    /// A number that no other caller has, for turns at what all want.
    pub fn number(&self) -> u64 {
        self.salt().first_chunk().copied().map_or(0, u64::from_le_bytes)
    }

    /// A salt for the prefix cache that no other caller has.
    pub fn salt(&self) -> [u8; 16] {
        let sum: [u8; 32] = Sha256::digest(&self.sum).into();
        *sum.first_chunk().unwrap_or(&[0; 16])
    }

    /// Whether `given` is this key, compared in constant time.
    pub fn is(&self, given: &str) -> bool {
        self.sum.as_bytes().ct_eq(digest::sha256(given).as_bytes()).into()
    }
}

/// The keys of a file, in its order.
///
/// # Errors
/// A file that cannot be read, or that others may write; a malformed line.
pub fn read(path: &Path) -> Result<Vec<Key>, Failure> {
    // Half of a change is no file of keys. What cannot be opened is told below, and where there are no locks nobody waits.
    let there = outside::open(path).ok();
    let _ = there.as_ref().map(|file| file.lock_shared());
    parse(path, &read_text(path)?)
}

/// Makes a key, appends its hash to the file, and returns the key, which is stored nowhere. A new file is readable by its owner alone.
///
/// # Errors
/// A name that is none, or taken; those of [`read`].
pub fn add(path: &Path, name: &str) -> Result<String, Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.len() > MOST_NAME_CHARS || !name.chars().all(is_plain) {
        let name = crate::text::ellipsis(name, MOST_NAME_CHARS);
        let hint = "use up to 64 letters, digits, dots, dashes and underscores";
        return Err(Failure::usage(format!("`{name}` is no name of a key"), hint));
    }
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| std::io::Error::other(error.to_string()))?;
    let key = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random));
    let line = format!("{name} sha256:{}\n", digest::sha256(&key));
    change(path, true, |keys, text| {
        if keys.iter().any(|key| key.name == name) {
            let message = format!("{} has a key named {name} already", path.display());
            return Err(Failure::usage(message, "revoke it first, or choose another name"));
        }
        // An editor may have left the last line without its end.
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        Ok(format!("{text}{end}{line}"))
    })?;
    Ok(key)
}

/// Removes a key from the file.
///
/// # Errors
/// A name that no key has; those of [`read`].
pub fn revoke(path: &Path, name: &str) -> Result<(), Failure> {
    change(path, false, |keys, text| {
        if !keys.iter().any(|key| key.name == name) {
            let message = format!("{} has no key named {name}", path.display());
            return Err(Failure::usage(message, "each of its lines begins with a name"));
        }
        let is_kept = |line: &&str| line.split_whitespace().next() != Some(name);
        Ok(text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect())
    })
}

/// Writes a file of keys again in its place, while nobody else does: a server in a sandbox reads this file alone, by whatever it has there.
fn change(
    path: &Path,
    is_new: bool,
    changed: impl FnOnce(&[Key], &str) -> Result<String, Failure>,
) -> Result<(), Failure> {
    if path.exists() || !is_new {
        // What is no file would be waited for.
        read_text(path)?;
    }
    let mut file =
        OpenOptions::new().read(true).write(true).create(is_new).mode(0o600).open(path)?;
    file.lock()?;
    let text = read_text(path)?;
    let text = changed(&parse(path, &text)?, &text)?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    Ok(file.sync_all()?)
}

/// The text of a file that its owner alone may write.
///
/// # Errors
/// A file that cannot be read, or that others may write; what is no file, such as a pipe, which may never end.
fn read_text(path: &Path) -> Result<String, Failure> {
    if !path.exists() {
        let message = format!("{}: there is no such file of API keys", path.display());
        return Err(Failure::usage(message, "make it with `wardround keys add FILE NAME`"));
    }
    let mode = fs_err::metadata(path)?.permissions().mode() & 0o777;
    let text = String::from_utf8(outside::bytes(path, MOST_BYTES)?);
    let path = path.display();
    if mode & WRITE != 0 {
        let message = format!("{path}: others than its owner may write it (mode {mode:03o})");
        let hint = "whoever writes it decides who is let in: take the right away, as with `chmod go-w FILE`";
        return Err(Failure::usage(message, hint));
    }
    text.map_err(|_| Failure::usage(format!("{path}: it is not UTF-8"), LINE))
}

fn parse(path: &Path, text: &str) -> Result<Vec<Key>, Failure> {
    let lines = (1..).zip(text.lines().map(str::trim));
    let keys = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let keys = keys.map(|(number, line)| {
        let wrong = || Failure::usage(format!("{}, line {number} is no key", path.display()), LINE);
        parse_line(line).ok_or_else(wrong)
    });
    keys.collect()
}

fn parse_line(line: &str) -> Option<Key> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, sum] = words[..] else { return None };
    let sum = sum.strip_prefix("sha256:").filter(|hex| digest::is_sha256(hex))?;
    Some(Key { name: name.to_owned(), sum: sum.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_key_is_made_found_and_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let first = add(&path, "ward").unwrap();
        let second = add(&path, "lab.1").unwrap();
        assert!(first.starts_with("wr_") && first.len() == 46 && first != second);
        let keys = read(&path).unwrap();
        let find = |given: &str| keys.iter().find(|key| key.is(given));
        assert_eq!(find(&first).unwrap().name, "ward");
        assert_eq!(find(&second).unwrap().name, "lab.1");
        assert!(find("wr_").is_none() && find("").is_none());
        assert!(!fs_err::read_to_string(&path).unwrap().contains(&first));
        revoke(&path, "ward").unwrap();
        let keys = read(&path).unwrap();
        assert!(keys.len() == 1 && keys[0].is(&second));
        let mode = fs_err::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_others_may_write_and_a_pipe_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let key = add(&path, "ward").unwrap();
        for mode in [0o620, 0o602, 0o666] {
            fs_err::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            for refused in [read(&path).map(drop), revoke(&path, "ward")] {
                let error = refused.unwrap_err().to_string();
                let said = format!("others than its owner may write it (mode {mode:03o})");
                assert!(error.ends_with(&said), "{error}");
            }
        }
        // Hashes may be read.
        fs_err::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(read(&path).unwrap()[0].is(&key));
        // Reading it would wait for ever.
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(read(&pipe).unwrap_err().to_string().contains("it is no file"));
        let missing = read(&folder.path().join("none")).unwrap_err().to_string();
        assert!(missing.ends_with("there is no such file of API keys"), "{missing}");
    }

    #[test]
    fn a_key_is_added_behind_a_last_line_without_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let first = add(&path, "ward").unwrap();
        let text = fs_err::read_to_string(&path).unwrap();
        fs_err::write(&path, text.trim_end()).unwrap();
        let second = add(&path, "lab").unwrap();
        let keys = read(&path).unwrap();
        assert!(keys.len() == 2 && keys[0].is(&first) && keys[1].is(&second));
    }

    /// Revoked keys stayed in force where a file was read, changed and written without a lock.
    #[test]
    fn changes_side_by_side_lose_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        (0..8).for_each(|number| drop(add(&path, &format!("old-{number}")).unwrap()));
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || add(path, &format!("new-{number}")).unwrap());
                scope.spawn(move || revoke(path, &format!("old-{number}")).unwrap());
                scope.spawn(move || assert!(read(path).unwrap().len() <= 16));
            }
        });
        let mut names: Vec<String> = read(&path).unwrap().into_iter().map(|key| key.name).collect();
        names.sort();
        let expected: Vec<String> = (0..8).map(|number| format!("new-{number}")).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn names_and_lines_that_are_none_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        for name in ["", "a b", "a\nb", "ä"] {
            let error = add(&path, name).unwrap_err().to_string();
            assert!(error.ends_with("is no name of a key"), "{error}");
        }
        add(&path, "a").unwrap();
        let taken = add(&path, "a").unwrap_err().to_string();
        assert!(taken.ends_with("has a key named a already"), "{taken}");
        let unknown = revoke(&path, "b").unwrap_err().to_string();
        assert!(unknown.ends_with("has no key named b"), "{unknown}");
        for sum in ["12".to_owned(), "+f".repeat(32)] {
            fs_err::write(&path, format!("# keys\n\na sha256:{sum}\n")).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.ends_with("line 3 is no key"), "{error}");
        }
    }
}
