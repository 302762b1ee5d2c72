//! What a manifest must not say: paths out of place, files that are one on some file systems, sums and licences that are missing.

use std::collections::BTreeMap;

use super::{FileEntry, Manifest, Role, is_name, licence_path};
use crate::digest::is_sha256;

impl Manifest {
    /// What contradicts itself or could do harm, if anything.
    pub(super) fn problem(&self) -> Option<String> {
        self.wrong_text()
            .or_else(|| self.wrong_file())
            .or_else(|| self.wrong_component())
            .or_else(|| self.twins())
    }

    fn wrong_text(&self) -> Option<String> {
        if !is_name(&self.name) {
            return Some(format!("`name` is `{}`", self.name.escape_debug()));
        }
        if humantime::parse_rfc3339(&self.created_at).is_err() {
            return Some(format!(
                "`created_at` is `{}`, no time in UTC",
                self.created_at.escape_debug()
            ));
        }
        let previous = self.previous.as_ref().map(|previous| &previous.manifest_sha256);
        previous.filter(|sum| !is_sha256(sum)).map(|sum| format!("`previous` is `{sum}`, no sum"))
    }

    fn wrong_file(&self) -> Option<String> {
        if let Some(pair) = self.files.windows(2).find(|pair| pair[0].path >= pair[1].path) {
            return Some(format!("{} is out of order or comes twice", pair[1].path));
        }
        if self.files.iter().try_fold(0_u64, |sum, file| sum.checked_add(file.size_bytes)).is_none()
        {
            return Some("its files are larger than any disk".to_owned());
        }
        self.files.iter().find_map(|file| {
            let path = &file.path;
            let role = Role::of(path);
            if role != Some(file.role) {
                return Some(format!("{path} does not lie in the folder of its role"));
            }
            if file.mode != file.role.mode() {
                return Some(format!("{path} has a mode that its role has not"));
            }
            if !is_sha256(&file.sha256) || file.parts.iter().any(|part| !is_sha256(&part.sha256)) {
                return Some(format!("{path} has no sum"));
            }
            if file.unchanged && (self.previous.is_none() || !file.parts.is_empty()) {
                return Some(format!(
                    "{path} is unchanged, and there is no version that it comes from"
                ));
            }
            let sizes =
                file.parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.size_bytes));
            if !file.parts.is_empty() && sizes != Some(file.size_bytes) {
                return Some(format!("the parts of {path} are not as large as it is"));
            }
            let expected = |number: usize| format!("{path}.{number:03}");
            let mut parts = (1..).zip(&file.parts);
            let strange = parts.find(|(number, part)| part.path.as_str() != expected(*number));
            strange.map(|(_, part)| format!("{} is no name of a part of {path}", part.path))
        })
    }

    fn wrong_component(&self) -> Option<String> {
        let mut names = BTreeMap::new();
        for component in &self.components {
            let name = &component.name;
            if !is_name(name) || names.insert(name.to_lowercase(), component.kind).is_some() {
                return Some(format!(
                    "the component `{}` comes twice or has no name",
                    name.escape_debug()
                ));
            }
            let text = self.file(&licence_path(name));
            let is_same = |sum: &String| text.is_some_and(|file| file.sha256 == *sum);
            let sum = component.licence_sha256.as_ref();
            if component.gated && sum.is_none() || sum.is_some_and(|sum| !is_same(sum)) {
                return Some(format!("the component {name} lacks the text of its licence"));
            }
        }
        let of_none = |file: &&FileEntry| {
            let component = file.component.as_deref();
            component.is_some_and(|name| !self.components.iter().any(|own| own.name == name))
        };
        let stray = self.files.iter().find(of_none);
        stray.map(|file| format!("{} belongs to a component that is not there", file.path))
    }

    /// Paths or folders that are one on some file system, and files that are folders of others.
    fn twins(&self) -> Option<String> {
        let mut spelled: BTreeMap<String, (&str, bool)> = BTreeMap::new();
        let files = self.files.iter().flat_map(|file| {
            std::iter::once(&file.path).chain(file.parts.iter().map(|part| &part.path))
        });
        for path in files {
            let folders = path.folders().map(|folder| (folder, true));
            for (text, is_folder) in folders.chain([(path.as_str(), false)]) {
                let known = spelled.insert(text.to_lowercase(), (text, is_folder));
                let is_twin = |known: (&str, bool)| known != (text, is_folder) || !is_folder;
                if let Some((other, _)) = known.filter(|known| is_twin(*known)) {
                    return Some(format!("{text} and {other} are one on some file systems"));
                }
            }
        }
        None
    }
}
