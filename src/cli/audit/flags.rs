//! The flags of the commands that write an audit trail.

use std::path::PathBuf;

use clap::Args;

use crate::audit::{AuditContent, AuditOptions, Event, Trail};
use crate::cli::exit::Failure;
use crate::console;
use crate::size::size;

/// The six months for which deployers of such systems in the European Union must keep logs, in days.
const SIX_MONTHS: u32 = 183;

/// Where an audit trail is written and what it keeps.
#[derive(Clone, Debug, Args)]
pub struct AuditFlags {
    #[command(flatten)]
    directory: AuditDirectory,
    /// What the trail keeps of texts
    #[arg(
        long,
        help_heading = "Audit",
        value_enum,
        default_value = "hash",
        requires = "audit",
        env = "WARDROUND_AUDIT_CONTENT"
    )]
    audit_content: AuditContent,
    /// Keep no addresses of clients
    #[arg(long, help_heading = "Audit", requires = "audit", env = "WARDROUND_AUDIT_NO_ADDRESS")]
    audit_no_address: bool,
    /// Delete kept texts after this many days
    #[arg(long, help_heading = "Audit", value_name = "DAYS", requires = "audit", value_parser = clap::value_parser!(u32).range(1..), env = "WARDROUND_AUDIT_KEEP")]
    audit_keep: Option<u32>,
}

/// Where a trail is written.
#[derive(Clone, Debug, Args)]
pub struct AuditDirectory {
    /// Write an audit trail to this directory
    #[arg(long, help_heading = "Audit", value_name = "DIR", env = "WARDROUND_AUDIT")]
    audit: Option<PathBuf>,
    /// Space to leave free on the disk of the trail; without it requests are refused
    #[arg(long, help_heading = "Audit", value_name = "SIZE", default_value = "1GiB", requires = "audit", value_parser = size, env = "WARDROUND_AUDIT_RESERVE")]
    audit_reserve: u64,
}

impl AuditDirectory {
    /// The options of a trail that keeps hashes only.
    pub fn options(self) -> Option<AuditOptions> {
        let reserve_bytes = self.audit_reserve;
        Some(AuditOptions { reserve_bytes, ..AuditOptions::new(self.audit?) })
    }
}

impl AuditFlags {
    pub fn options(self) -> Option<AuditOptions> {
        let keep_days = self.audit_keep;
        if keep_days.is_some_and(|days| days < SIX_MONTHS) {
            console::note(format!(
                "note: --audit-keep under {SIX_MONTHS} days: some rules ask that texts are kept for six months"
            ));
        }
        Some(AuditOptions {
            content: self.audit_content,
            addresses: !self.audit_no_address,
            keep_days,
            ..self.directory.options()?
        })
    }
}

/// Opens a trail for a command, and logs its start. `sandbox` describes the sandbox that is in force.
pub fn begin(options: &AuditOptions, verb: &str, sandbox: Option<&str>) -> Result<Trail, Failure> {
    let trail = Trail::open(options)?;
    let event = Event::new("start")
        .with("actor", user())
        .with("verb", verb)
        .with("version", env!("CARGO_PKG_VERSION"))
        .with("keeps", options.content.name())
        .with("sandbox", sandbox);
    trail.write(event)?;
    Ok(trail)
}

/// The user who runs this program, as `uid N`.
pub fn user() -> String {
    format!("uid {}", rustix::process::getuid().as_raw())
}
