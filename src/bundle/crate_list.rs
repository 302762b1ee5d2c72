//! The list of crates that `cargo auditable` leaves in a program (section `.dep-v0`), held against the SBOMs that lie beside it.

use std::collections::BTreeSet;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use auditable_extract::{Error, raw_auditable_data};
use flate2::read::ZlibDecoder;
use serde::Deserialize;

use super::files;
use crate::selftest::check::some;

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
    let section = match raw_auditable_data(&bytes) {
        Ok(section) => section,
        Err(Error::NoAuditData | Error::NotAnExecutable) => return Ok(Compared::NoList),
        Err(error) => return Err(format!("{} is damaged: {error}", program.display())),
    };
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
            let kind = if name == 0 { 3_u32 } else { 1 };
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[4..8].copy_from_slice(&kind.to_le_bytes());
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
        // A script, a damaged program, one whose list is none.
        let sbom = sbom("");
        let script = place("script", b"#!/bin/sh\n");
        assert_eq!(compare(&script, std::slice::from_ref(&sbom)), Compared::NoList);
        let cut = place("cut", &program(&packed(LIST))[..0x60]);
        assert!(differs(&cut, sbom.clone()).contains("cut is damaged: "));
        let told = differs(&place("none", &program(b"nothing")), sbom);
        assert!(told.starts_with("the list of parts in the program"), "{told}");
    }
}
