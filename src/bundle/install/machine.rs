//! Whether a bundle's program runs on this machine: its processor, kernel, C library and GPU driver against what the manifest asks for.

use std::process::{Command, Stdio};

use crate::bundle::BundleError;
use crate::bundle::manifest::Manifest;
use crate::console;
use crate::outside;

/// # Errors
/// A machine that lacks what the program needs. What cannot be found out is not held against it.
pub fn check(manifest: &Manifest) -> Result<(), BundleError> {
    if manifest.file("bin/wardround").is_none() {
        return Ok(());
    }
    let requires = &manifest.requires;
    let found = std::env::consts::ARCH;
    if requires.cpu != found {
        return Err(BundleError::OtherCpu {
            needed: requires.cpu.clone(),
            found: found.to_owned(),
        });
    }
    let (kernel, library) = (kernel(), library());
    let parts = [
        ("the Linux kernel", &requires.kernel, kernel),
        ("the GNU C library", &requires.glibc, library),
    ];
    for (what, needed, found) in parts {
        if let (Some(needed), Some(found)) = (needed, found)
            && is_older(&found, needed)
        {
            return Err(BundleError::OtherSystem { what, needed: needed.clone(), found });
        }
    }
    if let Some(needed) = &requires.driver {
        tell_driver(needed);
    }
    Ok(())
}

/// A machine without a GPU, or with an old driver, computes on its CPU.
fn tell_driver(needed: &str) {
    let told = match driver() {
        None => "and this machine has none".to_owned(),
        Some(found) if is_older(&found, needed) => format!("and this machine has {found}"),
        Some(_) => return,
    };
    console::note(format!("note: GPUs need NVIDIA's driver {needed} or later, {told}"));
}

fn kernel() -> Option<String> {
    let text = outside::text("/proc/sys/kernel/osrelease").ok()?;
    Some(text.trim().to_owned())
}

/// As `glibc 2.36` says it; `None` where another library is.
fn library() -> Option<String> {
    let mut command = Command::new("getconf");
    let output = command.arg("GNU_LIBC_VERSION").stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().strip_prefix("glibc ")?.to_owned())
}

/// The first word of the driver's own line that is a version.
fn driver() -> Option<String> {
    let text = outside::text("/proc/driver/nvidia/version").ok()?;
    let line = text.lines().next()?;
    line.split_whitespace().find(|word| numbers(word).len() >= 2).map(str::to_owned)
}

fn is_older(found: &str, needed: &str) -> bool {
    numbers(found) < numbers(needed)
}

/// The numbers that a version begins with: `6.1.0-18-amd64` is 6.1.0.
fn numbers(version: &str) -> Vec<u64> {
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    version[..end].split('.').map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_number_by_number() {
        assert!(is_older("2.9", "2.34") && is_older("5.4.0-150-generic", "5.13"));
        assert!(!is_older("6.18.44-fc", "5.13") && !is_older("535.129.03", "535.54.3"));
        assert!(!is_older("2.36", "2.36"));
        assert_eq!(kernel().is_some(), cfg!(target_os = "linux"));
    }
}
