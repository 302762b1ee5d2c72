//! `bundle install`: its flags, and the question about a licence at the terminal.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;

use super::TrustFlag;
use crate::bundle::install::{Ask, Consent, Question, Request, Unit, install};
use crate::cli::audit::flags::user;
use crate::cli::exit::Failure;
use crate::console;

/// The directory of the units that administrators add to systemd.
const UNITS: &str = "/etc/systemd/system";

#[derive(Debug, Args)]
pub struct Install {
    /// The bundle
    directory: PathBuf,
    /// The directory to install in: versions/, and a link to the current one
    #[arg(long, value_name = "ROOT")]
    to: PathBuf,
    #[command(flatten)]
    trust: TrustFlag,
    /// Accept the licence of this gated model, whose text was read [default: asks at the terminal]
    #[arg(long, value_name = "CARD")]
    accept: Vec<String>,
    /// Write this unit of the bundle to /etc/systemd/system, or to the directory it is given with, as in wardround.service
    #[arg(long, value_name = "UNIT")]
    systemd: Option<PathBuf>,
    /// Install a version that is older than the newest one that is installed
    #[arg(long)]
    downgrade: bool,
    /// Take this bundle's product and signers from now on, though ROOT was first installed with others
    #[arg(long)]
    new_signer: bool,
}

impl Install {
    pub fn run(self) -> Result<(), Failure> {
        let keys = self.trust.keys()?;
        let is_asked = std::io::stdin().is_terminal();
        let consent =
            Consent { accepted: &self.accept, who: user(), ask: is_asked.then_some(&ask as &Ask) };
        let request = Request {
            bundle: &self.directory,
            root: &self.to,
            keys: &keys,
            consent,
            downgrade: self.downgrade,
            new_signer: self.new_signer,
            unit: self.systemd.as_deref().map(unit).transpose()?,
        };
        let outcome = install(&request)?;
        super::tell_signed(&outcome.signers)?;
        let tested = if outcome.is_tested { "its selftest passed" } else { "it was not tried" };
        let root = self.to.display();
        console::say(format!("{} is current in {root}; {tested}", outcome.version))?;
        if let Some(before) = outcome.before {
            console::say(format!(
                "{before} stays; `wardround bundle rollback {root}` goes back to it"
            ))?;
        }
        if let Some(path) = outcome.unit {
            console::say(format!(
                "{} is written; `systemctl daemon-reload` reads it",
                path.display()
            ))?;
        }
        Ok(())
    }
}

/// A unit from its name or its whole path.
fn unit(path: &Path) -> Result<Unit<'_>, Failure> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let directory = folder.unwrap_or(Path::new(UNITS));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match directory.is_dir() {
        true => Ok(Unit { name, directory }),
        false => Err(Failure::usage(
            format!("{} is no directory", directory.display()),
            "give --systemd where systemd is, or the unit's whole path",
        )),
    }
}

/// Asks for consent at the terminal; only the word yes gives it.
fn ask(question: &Question) -> Result<bool, Failure> {
    let Question { component, text, policy } = question;
    console::note(format!(
        "{} is under the {}, which must be accepted again on this machine.",
        component.name, component.licence
    ));
    let policy = policy.as_ref().map(|policy| format!(" and {}", policy.display()));
    console::note(format!(
        "Read {}{} first: what the model may be used for is restricted.",
        text.display(),
        policy.unwrap_or_default()
    ));
    console::note("Do you accept it, and are you entitled to? Type yes, or anything else to stop.");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}
