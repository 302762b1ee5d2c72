//! `version`: prints the version and how the program was built.

use clap::Args;

use crate::build_info::BuildInfo;
use crate::cli::exit::Failure;
use crate::console;

#[derive(Debug, Args)]
pub struct Version {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Version {
    pub fn run(self) -> Result<(), Failure> {
        let own = BuildInfo::own();
        if self.json {
            let text = serde_json::to_string(&own).map_err(std::io::Error::from)?;
            return Ok(console::say(text)?);
        }
        let BuildInfo {
            version,
            commit,
            dirty,
            rustc,
            target,
            profile,
            features,
            source_date_epoch,
        } = own;
        let changed = if dirty { ", changed" } else { "" };
        let epoch = source_date_epoch.map_or("not stated".to_owned(), |epoch| epoch.to_string());
        let rows = [
            ("version", version),
            ("commit", format!("{}{changed}", commit.as_deref().unwrap_or("not stated"))),
            ("rustc", rustc),
            ("target", target),
            ("profile", profile),
            ("features", features.join(", ")),
            ("epoch", epoch),
        ];
        for (name, value) in rows {
            console::say(format!("{name:10} {value}"))?;
        }
        Ok(())
    }
}
