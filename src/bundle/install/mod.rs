//! Installing a bundle: checked, summed as it is written beside the versions that are there, tried, and only then made current.
//!
//! Until the last rename the version before is current, whatever happens; what a killed installation left is removed by the next one.

mod accept;
mod copy;
mod machine;
mod selftest;
mod unit;

use std::path::{Path, PathBuf};

pub use self::unit::Unit;

use super::BundleError;
use super::manifest::Component;
use super::root::{Installed, Root};
use super::signature::TrustedKey;
use super::trust::Trust;
use super::verify::{Opened, open};
use super::version::Version;
use crate::console;
use crate::diagnosis::Failure;

/// What an installation is asked for.
pub struct Request<'a> {
    pub bundle: &'a Path,
    pub root: &'a Path,
    /// The keys that must have signed it; one at least.
    pub keys: &'a [TrustedKey],
    pub consent: Consent<'a>,
    /// Whether the version may be older than the newest one that is installed.
    pub downgrade: bool,
    /// Whether the root takes this bundle's product and signers from now on, whatever it was first installed with.
    pub new_signer: bool,
    pub unit: Option<Unit<'a>>,
}

/// How recipients accept licences.
pub struct Consent<'a> {
    /// The components whose licences were accepted on the command line.
    pub accepted: &'a [String],
    /// Who accepts.
    pub who: String,
    /// Asks at the terminal; absent where nobody sits there.
    pub ask: Option<&'a Ask>,
}

/// Whether a licence is accepted.
pub type Ask = dyn Fn(&Question) -> Result<bool, Failure>;

/// A licence to be accepted.
pub struct Question<'a> {
    pub component: &'a Component,
    /// The text, which is what its sum says.
    pub text: PathBuf,
    /// What the model may be used for, where that is another text.
    pub policy: Option<PathBuf>,
}

/// What was installed.
#[derive(Debug)]
pub struct Outcome {
    pub version: Version,
    /// The keys that signed it, each with the comment that it signed too.
    pub signers: Vec<(String, String)>,
    /// What was current before, where that was another version.
    pub before: Option<Version>,
    /// Whether the installed program tried itself; one without a selftest cannot.
    pub is_tested: bool,
    /// The unit that was written.
    pub unit: Option<PathBuf>,
}

/// Installs a bundle, or makes the same version current again where it is there whole.
///
/// # Errors
/// A bundle that is not signed, not whole, too old, or lacks the version it builds on; a root that has lost the names of its signers;
/// a licence that was not accepted; too little space; a selftest that finds differences, after which the version is there and not
/// current; a unit that cannot be written, after which it is current.
pub fn install(request: &Request) -> Result<Outcome, Failure> {
    if request.keys.is_empty() {
        return Err(BundleError::NoKey { directory: request.bundle.to_owned() }.into());
    }
    let bundle = open(request.bundle, request.keys)?;
    BundleError::refuse_wrong(request.bundle, bundle.check(false)?.problems)?;
    machine::check(&bundle.manifest)?;
    let root = std::path::absolute(request.root)?;
    if let Some(unit) = &request.unit {
        unit.expect(&bundle.manifest, &root)?;
    }
    let locked = Root::new(&root).lock()?;
    let root = &locked.root;
    let version = bundle.manifest.version.clone();
    let before = root.current()?.filter(|before| *before != version);
    let trust = Trust::in_bundle(&bundle, request.keys);
    let pinned = match request.new_signer {
        true => Trust::of_root(&root.path)?,
        false => root.trust()?,
    };
    if let Some(pinned) = pinned.as_ref().filter(|_| !request.new_signer) {
        pinned.expect(&root.path, &trust)?;
    }
    let installed = root.installed()?;
    let noted = pinned.as_ref().and_then(|pinned| pinned.newest.clone());
    let same = of_version(root, &bundle, &installed, noted.as_ref(), request)?;
    let acceptances = accept::gather(&bundle, root, &request.consent)?;
    if pinned.is_none() {
        // Before there is a version: whatever ends the installation, none is without its signers.
        trust.pin(&root.path)?;
    }
    match same {
        Some(same) => recheck(same, request)?,
        None => copy::copy(&bundle, root, &installed)?,
    }
    accept::record(root, &acceptances)?;
    let is_tested = selftest::run(root, &bundle.manifest)?;
    // Of another product nothing is newer or older.
    let (kept, noted) = match pinned.filter(|_| !request.new_signer) {
        Some(pinned) => (pinned, noted),
        None => (trust, None),
    };
    kept.with_newest(noted.max(Some(version.clone()))).pin(&root.path)?;
    locked.make_current(&version)?;
    let unit = request.unit.as_ref().map(|unit| unit.write(root)).transpose()?;
    Ok(Outcome { version, signers: bundle.signers, before, is_tested, unit })
}

/// The installed version that is this very bundle, if it is there.
fn of_version<'a>(
    root: &Root,
    bundle: &Opened,
    installed: &'a [Installed],
    noted: Option<&Version>,
    request: &Request,
) -> Result<Option<&'a Installed>, BundleError> {
    let (root, new) = (root.path.clone(), bundle.manifest.version.clone());
    let same = installed.iter().find(|own| own.manifest.version == new);
    if same.is_some_and(|same| same.manifest_sha256 != bundle.manifest_sha256()) {
        return Err(BundleError::OtherVersion { root, version: new });
    }
    // Not only the current one: after a rollback that is an older one; and also one that was removed.
    let newest = installed.iter().map(|own| &own.manifest.version).chain(noted).max();
    match newest.filter(|newest| **newest > new && !request.downgrade) {
        None => Ok(same),
        Some(newest) => Err(BundleError::Downgrade { root, new, newest: newest.clone() }),
    }
}

/// A version that is there is checked whole before it is used again.
fn recheck(installed: &Installed, request: &Request) -> Result<(), BundleError> {
    let directory = &installed.directory;
    console::note(format!("{} is there; its files are checked again", directory.display()));
    Installed::check(directory, request.keys).map(|_| ())
}
