//! `bundle`: packs program, models and data into one signed directory, and checks and installs it behind an air gap.

mod create;
mod install;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use self::create::Create;
use self::install::Install;
use super::sandboxed::{Paths, SandboxFlag};
use super::summary::count;
use crate::bundle::manifest::Manifest;
use crate::bundle::root::Root;
use crate::bundle::signature::TrustedKey;
use crate::bundle::verify::{Checked, Opened, open};
use crate::bundle::{BundleError, SUMS, deep};
use crate::cli::exit::Failure;
use crate::console;
use crate::sandbox::SandboxMode;

#[derive(Debug, Subcommand)]
pub enum BundleVerb {
    /// Make a bundle, and print the commands that sign it
    Create(Box<Create>),
    /// Check a bundle's signature and the checksums of all its files
    Verify(Verify),
    /// Install a signed bundle, try it, and make it current
    Install(Install),
    /// List what is in a bundle, or which versions are installed
    Ls(List),
    /// Go back to the previous version
    Rollback(Rollback),
}

#[derive(Debug, Args)]
pub struct Verify {
    /// The bundle, or an installed version
    directory: PathBuf,
    #[command(flatten)]
    trust: TrustFlag,
    /// Also check the content of the files: headers of weights, tokenizers, chat templates, and models against the cards of this program
    #[arg(long)]
    deep: bool,
    #[command(flatten)]
    sandbox: SandboxFlag,
}

/// The keys that the user trusts.
#[derive(Clone, Debug, Args)]
pub struct TrustFlag {
    /// minisign public key that must have signed the bundle: a file, or the line that begins with RW; of several, all must have
    #[arg(long, value_name = "KEY")]
    trust: Vec<String>,
}

impl TrustFlag {
    pub fn keys(&self) -> Result<Vec<TrustedKey>, BundleError> {
        TrustedKey::open_each(&self.trust)
    }
}

#[derive(Debug, Args)]
pub struct List {
    /// A bundle, or a directory that bundles are installed in
    directory: PathBuf,
}

#[derive(Debug, Args)]
pub struct Rollback {
    /// The directory that bundles are installed in
    root: PathBuf,
    /// The version to make current [default: the one that was current before]
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
}

run_each!(BundleVerb: Create, Verify, Install, Ls, Rollback);

impl Verify {
    fn run(self) -> Result<(), Failure> {
        let keys = self.trust.keys()?;
        let directory = &self.directory;
        if keys.is_empty() && self.sandbox.sandbox == SandboxMode::Require {
            return Err(BundleError::NoKey { directory: directory.clone() }.into());
        }
        let entered = Paths::default().read([directory]).enter(self.sandbox, "cpu")?;
        let _entered = entered.sealed(false)?;
        let opened = open(directory, &keys)?;
        tell_signers(&opened)?;
        let checked = opened.check(true)?;
        tell_checked(&opened, &checked)?;
        let mut problems = checked.problems;
        if self.deep && problems.is_empty() {
            let found = deep::check(directory, &opened.manifest);
            console::say(format!("deep    {} looked into", count(found.looked_into, "file")))?;
            if found.not_here > 0 {
                console::say(format!(
                    "note    {} in parts or not here: not looked into",
                    count(found.not_here, "file")
                ))?;
            }
            for note in &found.notes {
                console::say(format!("note    {note}"))?;
            }
            problems = found.problems;
        }
        BundleError::refuse_wrong(directory, problems)?;
        Ok(console::say(if keys.is_empty() { "intact by its sums alone" } else { "intact" })?)
    }
}

/// Prints who signed, and the comments that they signed too.
fn tell_signed(signers: &[(String, String)]) -> Result<(), Failure> {
    for (signer, comment) in signers {
        console::say(format!("signed  by {signer}: {}", console::plain(comment)))?;
    }
    Ok(())
}

/// Prints who signed the bundle, or a warning if no key was given.
fn tell_signers(opened: &Opened) -> Result<(), Failure> {
    tell_signed(&opened.signers)?;
    if opened.signers.is_empty() {
        console::note(
            "WARNING: NOT AUTHENTICATED: sums alone. Whoever changed the bundle could change its sums too; give --trust KEY",
        );
    }
    for name in opened.signatures.keys().filter(|name| name.ends_with(".sig")) {
        console::say(format!(
            "note    {name} is not checked here: ssh-keygen -Y verify -f ALLOWED -I NAME -n wardround-bundle -s {name} < {SUMS}"
        ))?;
    }
    let manifest = &opened.manifest;
    Ok(console::say(format!(
        "bundle  {} {}, made {}",
        manifest.name, manifest.version, manifest.created_at
    ))?)
}

fn tell_checked(opened: &Opened, checked: &Checked) -> Result<(), Failure> {
    let files = count(checked.files, "file");
    console::say(format!("files   {files}, {:.1} MB", checked.bytes as f64 / 1e6))?;
    if checked.unchanged > 0 {
        let previous = opened.manifest.previous.as_ref().map_or("", |own| &own.manifest_sha256);
        let files = count(checked.unchanged, "file");
        console::say(format!(
            "note    {files} come from the version whose manifest has the sum {previous}"
        ))?;
    }
    Ok(())
}

impl List {
    fn run(self) -> Result<(), Failure> {
        if Root::is_one(&self.directory) {
            return list_versions(&self.directory);
        }
        let opened = open(&self.directory, &[])?;
        let manifest = &opened.manifest;
        console::say(format!(
            "{} {}, made {} by {}",
            manifest.name, manifest.version, manifest.created_at, manifest.created_by
        ))?;
        let requires = &manifest.requires;
        let later = |what: &str, version: &Option<String>| {
            version.as_ref().map_or_else(String::new, |version| format!(", {what} {version}"))
        };
        let system = later("glibc", &requires.glibc)
            + &later("Linux", &requires.kernel)
            + &later("for GPUs driver", &requires.driver);
        console::say(format!(
            "needs {}{system}, {:.1} MB of disk, {:.1} MB of memory for the largest model's weights as they are stored",
            requires.cpu,
            requires.disk_bytes as f64 / 1e6,
            requires.memory_bytes as f64 / 1e6
        ))?;
        list_components(manifest)?;
        if let Some(previous) = &manifest.previous {
            console::say(format!(
                "needs the version whose MANIFEST.json has the sha256 {}",
                previous.manifest_sha256
            ))?;
        }
        let signatures: Vec<&str> = opened.signatures.keys().map(String::as_str).collect();
        let told = if signatures.is_empty() { "none".to_owned() } else { signatures.join(", ") };
        Ok(console::say(format!("signatures, not checked here: {told}"))?)
    }
}

fn list_components(manifest: &Manifest) -> Result<(), Failure> {
    for component in &manifest.components {
        let own =
            manifest.files.iter().filter(|file| file.component.as_ref() == Some(&component.name));
        let bytes: u64 = own.map(|file| file.size_bytes).sum();
        let gate = if component.gated { "gated" } else { "open" };
        let sums = if component.sums_known { "" } else { "; its sums are not known elsewhere" };
        let shown = component.shown.as_ref().map_or_else(String::new, |words| format!("; {words}"));
        console::say(format!(
            "{:24} {:8} {:9.1} MB  {gate:6} {}{sums}{shown}",
            component.name,
            component.kind.to_string(),
            bytes as f64 / 1e6,
            component.licence
        ))?;
    }
    Ok(())
}

fn list_versions(root: &Path) -> Result<(), Failure> {
    for installed in Root::new(root).installed()? {
        let mark = if installed.is_current { "current" } else { "" };
        let manifest = &installed.manifest;
        console::say(format!(
            "{:12} {:8} {:9.1} MB  {} made {}",
            manifest.version.to_string(),
            mark,
            manifest.size_bytes() as f64 / 1e6,
            manifest.name,
            manifest.created_at
        ))?;
    }
    Ok(())
}

impl Rollback {
    fn run(self) -> Result<(), Failure> {
        if !Root::is_one(&self.root) {
            return Err(BundleError::NoRoot { root: self.root }.into());
        }
        let root = Root::new(&std::path::absolute(&self.root)?).lock()?;
        let version = root.roll_back(self.to.as_deref())?;
        Ok(console::say(format!("{version} is current in {}", self.root.display()))?)
    }
}
