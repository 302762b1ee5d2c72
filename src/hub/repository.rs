//! A model's name on the hub: which repository, at which revision, known by which card.

use super::{Card, CardFile, HubError};

/// A model of the hub at one revision.
#[derive(Clone, Debug)]
pub struct Repository {
    /// `org/name`.
    pub id: String,
    /// A branch, tag or commit.
    pub revision: String,
    pub card: Option<&'static Card>,
}

impl Repository {
    /// The card's name, or the hub id.
    pub fn name(&self) -> &str {
        self.card.map_or(&self.id, |card| &card.name)
    }

    /// The shortest name that means this repository at this revision.
    pub fn spelling(&self) -> String {
        let default = self.card.map_or("main", |card| &card.revision);
        if self.revision == default {
            self.name().to_owned()
        } else {
            format!("{}@{}", self.id, self.revision)
        }
    }

    /// Where access is asked for.
    pub fn access_page(&self) -> String {
        let accept = self.card.and_then(|card| card.licence.accept.clone());
        accept.unwrap_or_else(|| format!("https://huggingface.co/{}", self.id))
    }

    /// What the card says of a file at this commit; a card speaks for its own revision alone.
    pub fn card_file(&self, commit: &str, file: &str) -> Option<&'static CardFile> {
        self.card.filter(|card| card.revision == commit)?.file(file)
    }

    /// Reads a card's name or a hub id, either of them with `@revision`; `None` where it is neither. A card's own revision is the default,
    /// `main` where there is no card.
    ///
    /// # Errors
    /// What no revision can be called.
    pub fn parse(member: &str) -> Result<Option<Self>, HubError> {
        let (name, revision) = match member.split_once('@') {
            Some((name, revision)) => (name, Some(revision)),
            None => (member, None),
        };
        let card = Card::find(name);
        let id = match card {
            Some(card) => &card.repository,
            None if is_hub_id(name) => name,
            None => return Ok(None),
        };
        let own = card.map_or("main", |card| &card.revision);
        let (id, revision) = (id.to_owned(), revision.unwrap_or(own).to_owned());
        match is_revision(&revision) {
            true => Ok(Some(Self { id, revision, card })),
            false => Err(HubError::Revision { revision }),
        }
    }
}

/// `org/name` in the hub's alphabet; nothing that could lead out of the cache.
fn is_hub_id(name: &str) -> bool {
    let is_part = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_alphanumeric())
            && !part.contains("--")
            && !part.contains("..")
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    name.split_once('/').is_some_and(|(organisation, name)| is_part(organisation) && is_part(name))
}

/// A git reference's alphabet, and nothing that could lead out of the cache.
fn is_revision(revision: &str) -> bool {
    revision.split('/').all(|part| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(member: &str) -> Option<Repository> {
        Repository::parse(member).unwrap()
    }

    #[test]
    fn a_card_is_found_by_both_its_names_and_pins_its_commit() {
        let card = Card::find("gemma3-4b").unwrap();
        for member in ["gemma3-4b", "google/gemma-3-4b-it"] {
            let repository = parse(member).unwrap();
            assert_eq!(repository.id, "google/gemma-3-4b-it");
            assert_eq!(repository.revision, card.revision);
            assert_eq!(repository.spelling(), "gemma3-4b");
            let config = repository.card_file(&card.revision, "config.json").unwrap();
            assert!(config.sha256.is_some());
            let other = "0123456789abcdef0123456789abcdef01234567";
            assert!(repository.card_file(other, "config.json").is_none());
        }
        assert_eq!(parse("gemma3-4b@main").unwrap().spelling(), "google/gemma-3-4b-it@main");
    }

    #[test]
    fn a_hub_id_without_a_card_means_main() {
        assert_eq!(parse("org/na-me_1.5").unwrap().revision, "main");
        assert_eq!(parse("org/name@refs/pr/1").unwrap().revision, "refs/pr/1");
        assert_eq!(parse("org/name@v2").unwrap().spelling(), "org/name@v2");
        for member in
            ["name", "", "@main", "a/..", "org/-", "org/a--b", "org/a b", "org/näme", "a/b/c"]
        {
            assert!(parse(member).is_none(), "{member}");
        }
    }

    #[test]
    fn a_revision_leads_nowhere_else() {
        for revision in ["..", "a/../b", "/main", "", "a b", ".hidden", "a\\b"] {
            let error = Repository::parse(&format!("org/name@{revision}")).unwrap_err();
            assert!(matches!(error, HubError::Revision { .. }), "{revision}: {error}");
        }
    }
}
