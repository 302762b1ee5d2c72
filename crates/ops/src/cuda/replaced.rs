//! Compiled kernels that take the place of this build's: the files of the folder that `WARDROUND_CUDA_KERNELS` names, so that
//! variants can be tried where there is a GPU and nvcc, and no Rust.
//!
//! A file is called as the source that it is compiled from, `matmul.fatbin` or `matmul.cubin`; its kernels are launched as those of
//! the build are. What has no file there is the build's, and both are told. What is computed so is of another kind of device.

#![allow(
    clippy::print_stderr,
    reason = "which kernels are not the build's is told where they are loaded"
)]

use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::{OpsError, regular_file};

const VARIABLE: &str = "WARDROUND_CUDA_KERNELS";
/// Far more than a source compiles to.
const MOST_BYTES: u64 = 1 << 28;

/// Of one source, as the driver reads it: in words.
#[derive(Debug)]
pub struct Image {
    source: &'static str,
    path: PathBuf,
    words: Vec<u64>,
}

/// One at least; in the order of the sources.
#[derive(Debug)]
pub struct Replaced {
    images: Vec<Image>,
    /// Of the sources and their files' bytes.
    digest: String,
    /// Sources whose kernels are the build's.
    kept: Vec<&'static str>,
}

impl Replaced {
    /// Nothing where no folder is named. `sources`: those that the build has compiled.
    ///
    /// # Errors
    /// A folder without such files; one that is called as no source, or is no compiled kernels, or not all of them.
    pub fn asked(sources: &[&'static str]) -> Result<Option<Replaced>, OpsError> {
        match std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty()) {
            Some(folder) => Replaced::read(Path::new(&folder), sources).map(Some),
            None => Ok(None),
        }
    }

    /// The emulator runs the kernels of its build alone: files are read and checked as on a GPU, and then refused.
    #[cfg(not(feature = "cuda"))]
    pub fn refuse() -> Result<(), OpsError> {
        const SOURCES: &[&str] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));
        let Some(replaced) = Replaced::asked(SOURCES)? else {
            return Ok(());
        };
        let reason =
            format!("the emulator runs its build's kernels alone, not {}", replaced.describe());
        Err(OpsError::Device { device: "cuda emulated".to_owned(), reason })
    }

    fn read(folder: &Path, sources: &[&'static str]) -> Result<Replaced, OpsError> {
        let unread = |error: std::io::Error| refused(folder, error);
        let mut paths = fs_err::read_dir(folder)
            .map_err(unread)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(unread)?;
        paths.retain(|path| {
            path.extension().is_some_and(|kind| kind == "fatbin" || kind == "cubin")
        });
        paths.sort();
        let known = || format!("sources are called {}", sources.join(", "));
        let mut images: Vec<Image> = Vec::new();
        let mut digest = Sha256::new();
        for path in paths {
            let source = sources
                .iter()
                .copied()
                .find(|source| path.file_stem().is_some_and(|stem| stem == *source));
            let source = source.ok_or_else(|| {
                refused(&path, format!("it takes no source's place; {}", known()))
            })?;
            if let Some(other) = images.iter().find(|image| image.source == source) {
                return Err(refused(
                    &path,
                    format!("{} takes the same place", other.path.display()),
                ));
            }
            let bytes = read(&path).map_err(|error| refused(&path, error))?;
            check(&bytes).map_err(|reason| refused(&path, reason))?;
            digest.update(source);
            digest.update((bytes.len() as u64).to_le_bytes());
            digest.update(&bytes);
            images.push(Image { source, path, words: words(&bytes) });
        }
        if images.is_empty() {
            return Err(refused(folder, format!("it has no .fatbin or .cubin; {}", known())));
        }
        let digest = digest.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        let is_kept = |source: &&&str| images.iter().all(|image| image.source != **source);
        let kept = sources.iter().filter(is_kept).copied().collect();
        Ok(Replaced { images, digest, kept })
    }

    /// What takes that source's place.
    pub fn image(&self, source: &str) -> Option<&Image> {
        self.images.iter().find(|image| image.source == source)
    }

    /// What the bits of results depend on, where `kind` is what they depend on with the build's own kernels.
    pub fn mark(&self, kind: &str) -> String {
        format!("{kind} kernels {}", self.digest)
    }

    /// Which kernels are from where, for people.
    pub fn describe(&self) -> String {
        let files: Vec<String> =
            self.images.iter().map(|image| image.path.display().to_string()).collect();
        let kept = match self.kept.is_empty() {
            true => "none".to_owned(),
            false => self.kept.join(", "),
        };
        format!("kernels of {} ({}); of this build: {kept}", files.join(", "), self.digest)
    }

    /// Says so on stderr.
    pub fn tell(&self) {
        eprintln!("{VARIABLE}: {}", self.describe());
    }
}

impl Image {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whole, as `check` found it.
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

fn refused(path: &Path, reason: impl ToString) -> OpsError {
    OpsError::CudaKernels { path: path.to_owned(), reason: reason.to_string() }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular_file::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST_BYTES {
        true => Err(std::io::Error::other(format!("it has more than {MOST_BYTES} bytes"))),
        false => Ok(bytes),
    }
}

/// The driver is given an image without its length, and reads as far as the image itself says: that far it has to go.
fn check(bytes: &[u8]) -> Result<(), String> {
    const FATBIN: &[u8] = &[0x50, 0xED, 0x55, 0xBA];
    const ELF_64: &[u8] = b"\x7FELF\x02\x01";
    let is_whole = match bytes {
        _ if bytes.starts_with(FATBIN) => holds_fatbin(bytes),
        _ if bytes.starts_with(ELF_64) => holds_elf(bytes),
        _ => return Err("it is no fat binary or cubin".to_owned()),
    };
    match is_whole {
        Some(true) => Ok(()),
        _ => Err(format!("it is cut short, at {} bytes", bytes.len())),
    }
}

/// The little-endian number of so many bytes that lies there.
fn number(bytes: &[u8], at: u64, size: u64) -> Option<u64> {
    let range = usize::try_from(at).ok()?..usize::try_from(at.checked_add(size)?).ok()?;
    let bytes = bytes.get(range)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Its header says how long it is, and how long what follows is.
fn holds_fatbin(bytes: &[u8]) -> Option<bool> {
    let end = number(bytes, 6, 2)?.checked_add(number(bytes, 8, 8)?)?;
    Some(end <= bytes.len() as u64)
}

/// Its header says where headers of sections and segments lie, and they where the rest does.
fn holds_elf(bytes: &[u8]) -> Option<bool> {
    const NO_BITS: u64 = 8;
    let length = bytes.len() as u64;
    let holds = |at: u64, bytes: u64| Some(at.checked_add(bytes)? <= length);
    let [segments, sections] = [number(bytes, 32, 8)?, number(bytes, 40, 8)?];
    let [segment, segment_count] = [number(bytes, 54, 2)?, number(bytes, 56, 2)?];
    let [section, section_count] = [number(bytes, 58, 2)?, number(bytes, 60, 2)?];
    for index in 0..segment_count {
        let header = segments.checked_add(index * segment)?;
        let ends = holds(
            number(bytes, header.checked_add(8)?, 8)?,
            number(bytes, header.checked_add(32)?, 8)?,
        )?;
        if !holds(header, segment)? || !ends {
            return Some(false);
        }
    }
    for index in 0..section_count {
        let header = sections.checked_add(index * section)?;
        let [kind, at] =
            [number(bytes, header.checked_add(4)?, 4)?, number(bytes, header.checked_add(24)?, 8)?];
        let size = number(bytes, header.checked_add(32)?, 8)?;
        if !holds(header, section)? || kind != NO_BITS && !holds(at, size)? {
            return Some(false);
        }
    }
    Some(true)
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_ne_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: [&str; 3] = ["attention", "matmul", "norm"];

    /// As nvcc writes one, around so many bytes.
    fn fatbin(bytes: usize) -> Vec<u8> {
        let mut file = vec![0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0];
        file.extend((bytes as u64).to_le_bytes());
        file.resize(16 + bytes, 7);
        file
    }

    /// Of one section of eight bytes, whose header comes last.
    fn cubin() -> Vec<u8> {
        let mut file = vec![0; 64 + 8 + 64];
        file[..6].copy_from_slice(b"\x7FELF\x02\x01");
        file[40] = 72;
        (file[58], file[60]) = (64, 1);
        (file[72 + 24], file[72 + 32]) = (64, 8);
        file
    }

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs_err::write(folder.path().join(name), bytes).unwrap();
        }
        folder
    }

    fn read_all(files: &[(&str, &[u8])]) -> Result<Replaced, OpsError> {
        Replaced::read(folder(files).path(), &SOURCES)
    }

    #[test]
    fn files_take_the_place_of_sources_and_the_others_stay() {
        let one = fatbin(21);
        let files: [(&str, &[u8]); 3] =
            [("norm.cubin", &cubin()), ("matmul.fatbin", &one), ("notes.txt", b"x")];
        let replaced = read_all(&files).unwrap();
        let image = replaced.image("matmul").unwrap();
        assert!(image.path().ends_with("matmul.fatbin"));
        let words: Vec<u8> = image.words().iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!((&words[..37], words.len()), (&one[..], 40));
        assert!(replaced.image("norm").is_some() && replaced.image("attention").is_none());
        let told = replaced.describe();
        assert!(told.contains("matmul.fatbin, ") && told.contains("norm.cubin"), "{told}");
        assert!(told.ends_with("of this build: attention"), "{told}");
        let kind = replaced.mark("cuda sm_90");
        assert!(kind.starts_with("cuda sm_90 kernels ") && kind.len() == 31, "{kind}");
        assert_eq!(read_all(&files).unwrap().mark("cuda sm_90"), kind, "wherever the files lie");
        let mut other = one.clone();
        other[30] ^= 1;
        let other = read_all(&[("norm.cubin", &cubin()), ("matmul.fatbin", &other)]);
        assert_ne!(other.unwrap().mark("cuda sm_90"), kind);
    }

    #[test]
    fn what_is_damaged_or_takes_no_place_is_refused() {
        let whole = fatbin(64);
        let mut far = cubin();
        far[72 + 32] = 255;
        let mut endless = cubin();
        endless[40..48].fill(0xFF);
        let damaged: [(&str, &[u8], &str); 8] = [
            ("matmul.fatbin", &whole[..60], "cut short, at 60 bytes"),
            ("matmul.fatbin", &whole[..9], "cut short"),
            ("matmul.cubin", &cubin()[..100], "cut short"),
            ("matmul.cubin", &far, "cut short"),
            ("matmul.cubin", &endless, "cut short"),
            ("matmul.cubin", b"// PTX", "no fat binary or cubin"),
            ("matmul.fatbin", b"", "no fat binary or cubin"),
            (
                "matmuls.fatbin",
                &whole,
                "takes no source's place; sources are called attention, matmul, norm",
            ),
        ];
        for (name, bytes, reason) in damaged {
            let error = read_all(&[(name, bytes)]).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains(name), "{error}");
        }
        let twice = read_all(&[("norm.cubin", &cubin()), ("norm.fatbin", &whole)]).unwrap_err();
        assert!(twice.to_string().contains("takes the same place"), "{twice}");
        let none = read_all(&[("norm.txt", b"")]).unwrap_err();
        assert!(none.to_string().contains("no .fatbin or .cubin"), "{none}");
        let missing = Replaced::read(Path::new("/no/such/folder"), &SOURCES).unwrap_err();
        assert!(missing.to_string().starts_with("WARDROUND_CUDA_KERNELS: /no/such"), "{missing}");
    }
}
