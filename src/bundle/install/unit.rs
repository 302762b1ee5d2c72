//! The service's unit: the one file that an installation may write outside its root.

use std::path::{Path, PathBuf};

use crate::bundle::BundleError;
use crate::bundle::manifest::Manifest;
use crate::bundle::root::Root;
use crate::experiment::whole_file::write_public;
use crate::outside;

/// Where units name the root, whatever it is.
const USUAL_ROOT: &str = "/opt/wardround";

/// The unit that is asked for, and where it goes.
pub struct Unit<'a> {
    /// Of `system/`, as in `wardround.service`.
    pub name: &'a str,
    /// As `/etc/systemd/system`.
    pub directory: &'a Path,
}

impl Unit<'_> {
    /// # Errors
    /// A bundle without it; a root whose name would say something else in a unit.
    pub fn expect(&self, manifest: &Manifest, root: &Path) -> Result<(), BundleError> {
        let is_plain = |c: char| c.is_alphanumeric() || "/._+@-".contains(c);
        if !root.to_str().is_some_and(|root| root.chars().all(is_plain)) {
            return Err(BundleError::UnitRoot { root: root.to_owned() });
        }
        match self.name.ends_with(".service") && manifest.file(&self.place()).is_some() {
            true => Ok(()),
            false => Err(BundleError::NoUnit {
                name: self.name.to_owned(),
                units: units(manifest).join(", "),
            }),
        }
    }

    fn place(&self) -> String {
        format!("system/{}", self.name)
    }

    /// Writes the current version's unit, with the root's own place; whole, or not at all.
    ///
    /// # Errors
    /// A directory that cannot be written.
    pub fn write(&self, root: &Root) -> Result<PathBuf, BundleError> {
        let source = root.path.join("current").join(self.place());
        let own = root.path.to_string_lossy();
        let text = outside::text(source)?.replace(USUAL_ROOT, &own);
        let path = self.directory.join(self.name);
        write_public(&path, text.as_bytes())?;
        Ok(path)
    }
}

fn units(manifest: &Manifest) -> Vec<&str> {
    let paths = manifest.files.iter().map(|file| file.path.as_str());
    let names = paths.filter_map(|path| path.strip_prefix("system/"));
    names.filter(|name| name.ends_with(".service")).collect()
}
