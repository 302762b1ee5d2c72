//! Golden files: what the models of the bundle answer here, written by this program's own selftest before anything is copied, and what they
//! answered on machines of other kinds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::contents::{Contents, Source};
use super::file_name;
use crate::bundle::BundleError;
use crate::bundle::manifest::Role;
use crate::console;
use crate::diagnosis::Failure;
use crate::experiment::whole_file;
use crate::hub::{FileDigest, weights_digest};
use crate::outside;
use crate::selftest::golden::{self, Golden};

/// A directory whose models lie as they will in the installed version, links to the files as they lie here; it goes when this is dropped.
struct Stage(PathBuf);

impl Drop for Stage {
    fn drop(&mut self) {
        // What stays lies in the system's directory for such things.
        let _ = fs_err::remove_dir_all(&self.0);
    }
}

/// Writes golden files over the models of `contents`, and adds them.
pub fn add(contents: &mut Contents) -> Result<(), Failure> {
    let stage = Stage(whole_file::create_temporary("golden")?);
    for (path, item) in contents.items.iter().filter(|(_, item)| item.role == Role::Model) {
        let place = path.below(&stage.0);
        if let Some(folder) = place.parent() {
            fs_err::create_dir_all(folder)?;
        }
        match &item.source {
            Source::File(file) => {
                // Through the links of the hub's cache to the file itself.
                let file = fs_err::canonicalize(file)?;
                fs_err::os::unix::fs::symlink(file, &place)?;
            }
            Source::Text(text) => outside::write(&place, text)?,
        }
    }
    write_golden(&stage.0)?;
    for entry in fs_err::read_dir(stage.0.join("golden"))? {
        let path = entry?.path();
        let text = outside::text(&path)?;
        contents.add_text(&format!("golden/{}", file_name(&path)?), &text, None)?;
    }
    Ok(())
}

/// Adds a golden file that was written elsewhere, on another kind of device, once it is known to be of a model of the bundle.
///
/// # Errors
/// What is no golden file, or one of a model or of weights that the bundle has not.
pub fn add_given(contents: &mut Contents, file: &Path) -> Result<(), Failure> {
    let head = Golden::read(file)?.head;
    let bad = |why: String| BundleError::BadFile { file: file.display().to_string(), why };
    let name = head.model.replace('/', "--");
    let folder = format!("models/{name}/");
    let sums: BTreeMap<&str, &str> = contents
        .items
        .iter()
        .filter_map(|(path, item)| {
            Some((path.as_str().strip_prefix(&folder)?, item.summed.sha256.as_str()))
        })
        .collect();
    if sums.is_empty() {
        return Err(
            bad(format!("it is of {}, and the bundle has no such model", head.model)).into()
        );
    }
    let weights = sums.iter().filter(|(name, _)| name.ends_with(".safetensors"));
    let weights: Vec<FileDigest> = weights
        .map(|(name, sum)| FileDigest { name: (*name).to_owned(), sha256: (*sum).to_owned() })
        .collect();
    let parts = [
        ("weights", &*head.weights_sha256, Some(&*weights_digest(&weights))),
        ("a config.json", &*head.config_sha256, sums.get("config.json").copied()),
        ("a tokenizer", &*head.tokenizer_sha256, sums.get("tokenizer.json").copied()),
    ];
    for (what, expected, found) in parts {
        if let Some(found) = found.filter(|found| *found != expected) {
            let why = format!(
                "it was made for {what} of {name} with the sha256 {expected}, and the bundle's has {found}"
            );
            return Err(bad(why).into());
        }
    }
    let path = golden::path(Path::new("golden"), &head.model, &head.device_kind);
    Ok(contents.add_file(&path.to_string_lossy(), file, None)?)
}

/// Has this program write them, in a process of its own.
fn write_golden(root: &Path) -> Result<(), Failure> {
    let program = std::env::current_exe()?;
    console::note("golden files: the models are run");
    let mut selftest = Command::new(&program);
    // In a sandbox the links could not be followed.
    let selftest = selftest
        .env("WARDROUND_SANDBOX", "off")
        .args(["selftest", "--write-golden", "--root"])
        .arg(root);
    let failed = |status: String| BundleError::Selftest { program: program.clone(), status };
    let status = selftest.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.map_err(|error| failed(error.to_string()))?;
    match status.success() {
        true => Ok(()),
        false => Err(failed(status.to_string()).into()),
    }
}
