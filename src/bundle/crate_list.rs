//! The list of crates that `cargo auditable` leaves in a program (section `.dep-v0`), held against the SBOMs that lie beside it.

use std::collections::BTreeSet;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use serde::Deserialize;

use super::files;
use crate::selftest::check::some;

/// Where the list lies in a program.
const SECTION: &[u8] = b".dep-v0";
/// Larger ones are no lists of crates.
const MOST_LIST_BYTES: u64 = 16 << 20;
const MOST_PROGRAM_BYTES: u64 = 4 << 30;

#[derive(Deserialize)]
struct List {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    /// `runtime` where it says nothing.
    kind: Option<String>,
    #[serde(default)]
    root: bool,
}

/// As much of CycloneDX as says what a program is made of.
#[derive(Deserialize)]
struct Sbom {
    #[serde(default)]
    components: Vec<Component>,
}

#[derive(Deserialize)]
struct Component {
    name: String,
    #[serde(default)]
    version: String,
}

/// What a comparison came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Compared {
    Same,
    /// In words.
    Differs(String),
    /// The program carries no list.
    NoList,
}

/// Holds the list in a program against all SBOMs beside it.
pub fn compare(program: &Path, sboms: &[PathBuf]) -> Compared {
    read_and_compare(program, sboms).unwrap_or_else(Compared::Differs)
}

/// What cannot be read is told in words too.
fn read_and_compare(program: &Path, sboms: &[PathBuf]) -> Result<Compared, String> {
    let told = |error: io::Error| error.to_string();
    let mut bytes = Vec::new();
    let file = files::open(program).map_err(told)?;
    file.take(MOST_PROGRAM_BYTES).read_to_end(&mut bytes).map_err(told)?;
    let Some(section) = section(&bytes) else { return Ok(Compared::NoList) };
    let decoder = ZlibDecoder::new(section).take(MOST_LIST_BYTES);
    let list: List = serde_json::from_reader(decoder)
        .map_err(|error| format!("the list of parts in the program: {error}"))?;
    let mut components = Vec::new();
    for path in sboms {
        let file = files::open(path).map_err(told)?;
        let sbom: Sbom = serde_json::from_reader(BufReader::new(file))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        components.extend(sbom.components);
    }
    let missing = missing(&list, &components);
    match missing.is_empty() {
        true => Ok(Compared::Same),
        false => Ok(Compared::Differs(format!("it is made of {} too", some(&missing)))),
    }
}

/// The crates that are linked and that no SBOM has.
fn missing(list: &List, components: &[Component]) -> Vec<String> {
    let known: BTreeSet<(&str, &str)> = components
        .iter()
        .map(|component| (component.name.as_str(), component.version.as_str()))
        .collect();
    let linked = list.packages.iter().filter(|package| {
        !package.root && package.kind.as_deref().is_none_or(|kind| kind == "runtime")
    });
    linked
        .filter(|package| !known.contains(&(package.name.as_str(), package.version.as_str())))
        .map(|package| format!("{} {}", package.name, package.version))
        .collect()
}

/// The bytes of the section in an ELF file of 64 bits, lowest byte first; `None` in any other file, or a damaged one.
fn section(file: &[u8]) -> Option<&[u8]> {
    file.get(..6).filter(|head| *head == b"\x7fELF\x02\x01")?;
    let table = number(file, 0x28, 8)?;
    let entry_bytes = number(file, 0x3a, 2)?;
    let count = number(file, 0x3c, 2)?;
    let header = |index: usize| file.get(table.checked_add(index.checked_mul(entry_bytes)?)?..);
    let place = |index: usize| {
        let header = header(index)?;
        let (start, size) = (number(header, 0x18, 8)?, number(header, 0x20, 8)?);
        file.get(start..start.checked_add(size)?)
    };
    let names = place(number(file, 0x3e, 2)?)?;
    let is_it = |index: &usize| {
        let name = header(*index).and_then(|header| names.get(number(header, 0, 4)?..));
        name.is_some_and(|name| name.starts_with(SECTION) && name.get(SECTION.len()) == Some(&0))
    };
    (0..count).find(is_it).and_then(place)
}

/// An unsigned number of up to eight bytes, the lowest first.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    let number = bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    usize::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::ZlibEncoder};

    use super::*;

    /// An ELF file of two sections: the names, and this one.
    fn program(section: &[u8]) -> Vec<u8> {
        let names = b"\0.dep-v0\0";
        let (names_at, section_at) = (0x40, 0x40 + names.len());
        let table = section_at + section.len();
        let mut file = b"\x7fELF\x02\x01".to_vec();
        file.resize(0x40, 0);
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0x28, &(table as u64).to_le_bytes());
        put(0x3a, &64_u16.to_le_bytes());
        put(0x3c, &2_u16.to_le_bytes());
        put(0x3e, &0_u16.to_le_bytes());
        file.extend(names);
        file.extend(section);
        for (name, at, size) in [(0_u32, names_at, names.len()), (1, section_at, section.len())] {
            let mut header = [0_u8; 64];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[0x18..0x20].copy_from_slice(&(at as u64).to_le_bytes());
            header[0x20..0x28].copy_from_slice(&(size as u64).to_le_bytes());
            file.extend(header);
        }
        file
    }

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    const LIST: &str = r#"{"packages": [
        {"name": "wardround", "version": "0.1.0", "source": "local", "root": true, "dependencies": [1]},
        {"name": "serde", "version": "1.0.2", "source": "crates.io"},
        {"name": "cc", "version": "1.0.0", "source": "crates.io", "kind": "build"},
        {"name": "libm", "version": "0.2.1", "source": "crates.io"}]}"#;

    #[test]
    fn an_sbom_has_every_part_of_its_program() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs_err::write(&path, bytes).unwrap();
            path
        };
        let whole = place("program", &program(&packed(LIST)));
        let sbom =
            |parts: &str| place("sbom.json", format!("{{\"components\": [{parts}]}}").as_bytes());
        let both = r#"{"name": "serde", "version": "1.0.2"}, {"name": "libm", "version": "0.2.1"}"#;
        let differs = |program: &Path, sbom: PathBuf| match compare(program, &[sbom]) {
            Compared::Differs(told) => told,
            other => panic!("{other:?}"),
        };
        assert_eq!(compare(&whole, &[sbom(both)]), Compared::Same);
        let other =
            r#"{"name": "serde", "version": "1.0.3"}, {"name": "libm", "version": "0.2.1"}"#;
        assert_eq!(differs(&whole, sbom(other)), "it is made of serde 1.0.2 too");
        differs(&whole, place("broken.json", b"["));
        // Of two lists each has a part.
        let more =
            place("more.json", br#"{"components": [{"name": "serde", "version": "1.0.2"}]}"#);
        assert_eq!(compare(&whole, &[sbom(other), more]), Compared::Same);
        // A script, an ELF file without a list, one whose list is none.
        let sbom = sbom("");
        let script = place("script", b"#!/bin/sh\n");
        assert_eq!(compare(&script, std::slice::from_ref(&sbom)), Compared::NoList);
        let cut = place("cut", &program(&packed(LIST))[..0x60]);
        assert_eq!(compare(&cut, std::slice::from_ref(&sbom)), Compared::NoList);
        let told = differs(&place("none", &program(b"nothing")), sbom);
        assert!(told.starts_with("the list of parts in the program"), "{told}");
    }

    #[test]
    fn damaged_programs_are_read_within_their_bounds() {
        let whole = program(&packed(LIST));
        for at in 0..whole.len() {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                section(&damaged);
                section(&damaged[..at]);
            }
        }
    }
}
