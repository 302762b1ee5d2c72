//! The folders of a recipe that ran in shards become one: its cells merged, begun as if it had run whole.

use std::path::{Path, PathBuf};

use super::RecipeError;
use super::cells::{Cell, cells};
use super::manifest::RecipeManifest;
use super::variant::Form;
use crate::diagnosis::Failure;
use crate::experiment::driver::Executed;
use crate::experiment::error::RunError;
use crate::experiment::merge::{MergeError, check_parts, merge, whole_plan};
use crate::experiment::results;
use crate::experiment::shard::Shard;

/// What a recipe was begun with of which each of `folders` has run one shard.
///
/// # Errors
/// Folders that are not all the shards of one recipe, each once.
pub fn whole(folders: &[PathBuf]) -> Result<RecipeManifest, Failure> {
    let mut whole: Option<RecipeManifest> = None;
    let mut parts: Vec<(&PathBuf, Shard)> = Vec::new();
    for folder in folders {
        let not_begun = || RecipeError::NotBegun { path: folder.clone() };
        let mut begun = RecipeManifest::read(folder)?.ok_or_else(not_begun)?;
        let Some(part) = begun.shard else {
            let path = folder.clone();
            return Err(MergeError::NoShard { path }.into());
        };
        if let (Some(first), Some((path, of))) = (&whole, parts.first()) {
            // Where files lie may depend on the machine; every cell's plan has their sums.
            begun.data_dir.clone_from(&first.data_dir);
            begun.prompts.clone_from(&first.prompts);
            begun.corpus = begun.corpus.and(first.corpus.clone());
            begun.exemplars = begun.exemplars.and(first.exemplars.clone());
            if part.of() == of.of() {
                begun.shard = first.shard;
            }
            if begun != *first {
                return Err(MergeError::Differs {
                    first: (*path).clone(),
                    other: folder.clone(),
                    difference: begun.difference(first),
                }
                .into());
            }
        } else {
            whole = Some(begun);
        }
        parts.push((folder, part));
    }
    check_parts(&parts)?;
    let mut whole = whole.ok_or(MergeError::Missing { parts: Vec::new(), count: 0 })?;
    whole.shard = None;
    Ok(whole)
}

/// Merges every cell of `folders` into the new folder `out`; gives them with their runs.
///
/// # Errors
/// As [`merge`]; a cell that has not finished, before anything is written.
pub fn merge_cells<'a>(
    forms: &'a [Form],
    folders: &[PathBuf],
    out: &Path,
) -> Result<Vec<(Cell<'a>, Executed)>, Failure> {
    let cells = cells(forms)?;
    for cell in &cells {
        for folder in folders {
            if !fs_err::exists(cell.directory(folder).join(results::FILE))? {
                let path = folder.clone();
                return Err(RunError::NoResults { path }.into());
            }
        }
        whole_plan(&directories(cell, folders))?;
    }
    for form in forms {
        form.manifest.begin(&form.directory(out))?;
    }
    let mut merged = Vec::new();
    for cell in cells {
        let directory = cell.directory(out);
        let executed = merge(&directories(&cell, folders), &directory)?;
        merged.push((cell, executed));
    }
    Ok(merged)
}

/// Where the cell's shards lie.
fn directories(cell: &Cell<'_>, folders: &[PathBuf]) -> Vec<PathBuf> {
    let directories = folders.iter().map(|folder| cell.directory(folder));
    directories.collect()
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::retrieval::CorpusSpec;

    fn begin(folder: &Path, part: &str, corpus: &str) {
        let manifest = RecipeManifest {
            shard: Some(part.parse().unwrap()),
            data_dir: format!("{corpus}/data"),
            corpus: Some(CorpusSpec { directories: vec![corpus.into()], ..CorpusSpec::default() }),
            ..RecipeManifest::plain("table1")
        };
        manifest.begin(folder).unwrap();
    }

    #[test]
    fn shards_of_machines_that_keep_their_corpora_elsewhere_are_merged() {
        let scratch = tempfile::tempdir().unwrap();
        let folders = ["one", "two"].map(|name| scratch.path().join(name));
        begin(&folders[0], "1/2", "/srv/corpora");
        begin(&folders[1], "2/2", "/mnt/corpora");
        let merged = whole(&folders).unwrap();
        assert_eq!(merged.corpus.unwrap().directories, [PathBuf::from("/srv/corpora")]);
        assert_eq!(merged.shard, None);
    }
}
