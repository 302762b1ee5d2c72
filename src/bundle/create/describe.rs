//! What a bundle says of itself: who made it with what, how its program was built, what it needs.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use aho_corasick::AhoCorasick;

use super::Request;
use super::contents::Contents;
use crate::build_info::BuildInfo;
use crate::bundle::manifest::{
    Build, Component, ComponentKind, FORMAT, Manifest, Requires, Role, SourceState,
};
use crate::bundle::{BundleError, program};
use crate::console;
use crate::outside;

/// The component of the program.
pub const PROGRAM: &str = "wardround";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What names of versions of the C library begin with in a program.
const GLIBC: &[u8] = b"GLIBC_";
/// Larger files are no programs.
const MOST_PROGRAM_BYTES: u64 = 4 << 30;

/// The program as a component.
pub fn program() -> Component {
    Component {
        name: PROGRAM.to_owned(),
        kind: ComponentKind::Program,
        version: Some(VERSION.to_owned()),
        licence: env!("CARGO_PKG_LICENSE").to_owned(),
        sums_known: true,
        ..Component::default()
    }
}

/// The manifest, its files as they will be installed; how they lie in the bundle is known once they are written.
///
/// # Errors
/// A program that cannot be read.
pub fn manifest(
    name: String,
    request: &Request,
    contents: &Contents,
) -> Result<Manifest, BundleError> {
    let built = request.binaries.first().and_then(|program| built(program));
    let arch = built.as_ref().and_then(|built| built.target.split('-').next());
    Ok(Manifest {
        format: FORMAT,
        name,
        version: request.version.clone(),
        created_at: humantime::format_rfc3339_seconds(request.time).to_string(),
        created_by: format!("wardround {VERSION}"),
        requires: Requires {
            cpu: arch.unwrap_or(std::env::consts::ARCH).to_owned(),
            glibc: request.binaries.first().map(|path| glibc(path)).transpose()?.flatten(),
            kernel: request.kernel.clone(),
            driver: request.driver.clone(),
            memory_bytes: largest_model(contents),
            disk_bytes: 0,
        },
        source: built.as_ref().and_then(source),
        build: built.map(build),
        previous: None,
        components: contents.components.clone(),
        files: contents.items.iter().map(|(path, item)| item.entry(path)).collect(),
    })
}

fn source(built: &BuildInfo) -> Option<SourceState> {
    Some(SourceState { commit: built.commit.clone()?, dirty: built.dirty })
}

fn build(built: BuildInfo) -> Build {
    let BuildInfo { rustc, target, profile, features, source_date_epoch, .. } = built;
    Build { rustc, target, profile, features, source_date_epoch }
}

/// Asks a program how it was built; `None` of one that does not say, or runs on another kind of machine.
fn built(program: &Path) -> Option<BuildInfo> {
    let mut version = Command::new(program);
    version.args(["version", "--json"]).stdin(Stdio::null()).stderr(Stdio::null());
    let output = program::start(|| version.output()).ok();
    let built = output.and_then(|output| serde_json::from_slice(&output.stdout).ok());
    if built.is_none() {
        console::note(format!("note: {} does not say how it was built", program.display()));
    }
    built
}

/// The newest version of the C library that a program names; `None` of one that names none.
fn glibc(program: &Path) -> Result<Option<String>, BundleError> {
    let mut bytes = Vec::new();
    outside::open(program)?.take(MOST_PROGRAM_BYTES).read_to_end(&mut bytes)?;
    let finder = AhoCorasick::new([GLIBC]).map_err(std::io::Error::other)?;
    let versions = finder.find_iter(&bytes).filter_map(|found| {
        let digits =
            bytes[found.end()..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
        let text: String = digits.map(|byte| char::from(*byte)).collect();
        let numbers: Option<Vec<u32>> = text.split('.').map(|number| number.parse().ok()).collect();
        numbers.filter(|numbers| numbers.len() >= 2)
    });
    let newest = versions.max();
    Ok(newest.map(|numbers| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(".")))
}

fn largest_model(contents: &Contents) -> u64 {
    let models =
        contents.components.iter().filter(|component| component.kind == ComponentKind::Model);
    let bytes = models.map(|component| {
        let own = contents.items.values().filter(|item| {
            item.role == Role::Model && item.component.as_ref() == Some(&component.name)
        });
        own.map(|item| item.summed.size_bytes).sum()
    });
    bytes.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_c_library_is_found_by_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs_err::write(&path, b"\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.2.5\0GLIBC_PRIVATE\0").unwrap();
        assert_eq!(glibc(&path).unwrap().as_deref(), Some("2.34"));
        fs_err::write(&path, b"#!/bin/sh\n").unwrap();
        assert_eq!(glibc(&path).unwrap(), None);
    }
}
