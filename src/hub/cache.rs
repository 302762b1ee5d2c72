//! The Hugging Face cache's layout, read only: `models--org--name/{refs,blobs,snapshots}`.

use std::path::{Path, PathBuf};

use super::HubError;
use crate::outside;

/// One repository inside a cache; it need not exist.
#[derive(Clone, Debug)]
pub struct CachedRepository {
    root: PathBuf,
}

/// The hub id and the commit that a directory is a snapshot of, where it lies in a cache.
pub fn origin_of(snapshot: &Path) -> Option<(String, String)> {
    let snapshots = snapshot.parent().filter(|parent| parent.ends_with("snapshots"))?;
    let folder = snapshots.parent()?.file_name()?.to_str()?;
    let id = folder.strip_prefix("models--")?.replacen("--", "/", 1);
    Some((id, snapshot.file_name()?.to_str()?.to_owned()))
}

impl CachedRepository {
    /// The place in a cache of the repository with this hub id.
    pub fn of(cache: &Path, id: &str) -> Self {
        Self { root: cache.join(format!("models--{}", id.replace('/', "--"))) }
    }

    /// The commit that a revision stands for here, to be used for all files; `None` where the cache has not seen it.
    ///
    /// # Errors
    /// The reference is there and cannot be read.
    pub fn commit(&self, revision: &str) -> Result<Option<String>, HubError> {
        if is_commit(revision) {
            return Ok(Some(revision.to_owned()));
        }
        let commit = outside::if_there(outside::text(self.reference(revision)))?;
        Ok(commit.map(|commit| commit.trim().to_owned()).filter(|commit| is_commit(commit)))
    }

    /// The directory of a commit's files.
    pub fn snapshot(&self, commit: &str) -> PathBuf {
        self.root.join("snapshots").join(commit)
    }

    /// The file that holds the commit of a branch or tag.
    pub fn reference(&self, revision: &str) -> PathBuf {
        self.root.join("refs").join(revision)
    }

    /// The file that holds the bytes of every cached file of this sum.
    pub fn blob(&self, sum: &str) -> PathBuf {
        self.root.join("blobs").join(sum)
    }
}

/// Whether a revision is a commit rather than a branch or tag; the sum of a small file looks as one does.
pub fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn a_reference_leads_to_its_commit_and_a_commit_to_itself() {
        let directory = tempfile::tempdir().unwrap();
        let cached = CachedRepository::of(directory.path(), "org/name");
        let root = directory.path().join("models--org--name");
        fs_err::create_dir_all(root.join("refs/refs/pr")).unwrap();
        fs_err::write(root.join("refs/main"), format!("{COMMIT}\n")).unwrap();
        fs_err::write(root.join("refs/refs/pr/1"), COMMIT).unwrap();

        for revision in ["main", "refs/pr/1", COMMIT] {
            assert_eq!(cached.commit(revision).unwrap().as_deref(), Some(COMMIT), "{revision}");
        }
        assert_eq!(cached.commit("v2").unwrap(), None);
        assert_eq!(cached.snapshot(COMMIT), root.join("snapshots").join(COMMIT));
    }

    #[test]
    fn a_reference_that_holds_no_commit_counts_as_unseen() {
        let directory = tempfile::tempdir().unwrap();
        let cached = CachedRepository::of(directory.path(), "org/name");
        fs_err::create_dir_all(cached.reference("main").parent().unwrap()).unwrap();
        fs_err::write(cached.reference("main"), "../../../etc").unwrap();
        assert_eq!(cached.commit("main").unwrap(), None);
    }
}
