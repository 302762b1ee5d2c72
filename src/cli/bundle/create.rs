//! `bundle create`: its flags, and the commands that it prints for signing.

use std::time::{Duration, SystemTime};

use clap::Args;

use crate::bundle::SUMS;
use crate::bundle::create::{Request, create};
use crate::cli::exit::Failure;
use crate::cli::options::HubFlags;
use crate::cli::summary::count;
use crate::console;

#[derive(Debug, Args)]
pub struct Create {
    #[command(flatten)]
    request: Request,
    #[command(flatten)]
    hub: HubFlags,
}

impl Create {
    pub fn run(self) -> Result<(), Failure> {
        let mut request = self.request;
        request.time = time()?;
        request.hub = Some(self.hub.options(true)?);
        if request.binaries.is_empty() {
            request.binaries.push(std::env::current_exe()?);
        }
        let created = create(&request)?;
        let manifest = &created.manifest;
        let files = count(manifest.files.len(), "file");
        console::note(format!(
            "{} {}: {files}, {:.1} MB",
            manifest.name,
            manifest.version,
            manifest.size_bytes() as f64 / 1e6
        ));
        for name in &created.unverified {
            console::note(format!(
                "note: {name} has files without a known checksum; the manifest says so"
            ));
        }
        for name in &created.by_leave {
            console::note(format!(
                "note: {name} goes in by --allow; its licence does not let copies be handed on"
            ));
        }
        for path in &created.lacking {
            console::note(format!(
                "note: the bundle has no {path}; tools/sbom.sh writes it, and --add {}=FILE takes it",
                path.split('/').next().unwrap_or_default()
            ));
        }
        for words in manifest.components.iter().filter_map(|component| component.shown.as_ref()) {
            console::note(words);
        }
        console::note(
            "It is not signed yet. Sign it where the keys are, with one of these or both; `bundle install` asks for the first:",
        );
        let sums = request.directory.join(SUMS);
        console::say(format!("minisign -S -s KEY -m {}", sums.display()))?;
        Ok(console::say(format!(
            "ssh-keygen -Y sign -f KEY -n wardround-bundle {}",
            sums.display()
        ))?)
    }
}

/// The time of SOURCE_DATE_EPOCH, with which a bundle can be reproduced byte for byte; without it the present.
fn time() -> Result<SystemTime, Failure> {
    const NAME: &str = "SOURCE_DATE_EPOCH";
    let seconds = match std::env::var(NAME) {
        Ok(value) => {
            // Times up to the end of the year 9999 can be formatted.
            let seconds = value.parse().ok().filter(|seconds| *seconds < 253_402_300_800);
            seconds.ok_or_else(|| {
                Failure::usage(
                    format!("{NAME} is `{value}`"),
                    "expected a number of seconds since 1970",
                )
            })?
        }
        Err(_) => {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            now.map_or(0, |since| since.as_secs())
        }
    };
    Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}
