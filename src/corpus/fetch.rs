//! Which sources of a description can be downloaded: those that may be handed on and whose files are named one by one.

use super::{CorpusError, Description};
use crate::hub::{Check, DatasetCard, DatasetFile, DatasetSource, Host, Licence};

/// A source's label and why it is not downloaded.
pub type LeftOut = (String, &'static str);

/// A card for each repository file, and the sources that have none.
///
/// # Errors
/// None at present; a description that contradicts itself was refused before.
pub fn cards(description: &Description) -> Result<(Vec<DatasetCard>, Vec<LeftOut>), CorpusError> {
    let (mut cards, mut left_out): (Vec<DatasetCard>, Vec<LeftOut>) = (Vec::new(), Vec::new());
    for source in &description.sources {
        let reason = match (&source.repository, source.redistribute) {
            (_, false) => Some("its licence does not let copies be handed on"),
            (None, true) => Some("it is published in another form, or on no hub"),
            (Some(_), true) if source.files.iter().any(|file| file.contains('*')) => {
                Some("its files are not named one by one")
            }
            (Some(_), true) => None,
        };
        if let Some(reason) = reason {
            left_out.push((source.label.clone(), reason));
            continue;
        }
        let file = |file: &String| DatasetFile {
            source: file.clone(),
            path: format!("{}/{file}", source.path),
            check: Check::Rows,
            size_bytes: None,
            sha256: None,
            rows: None,
            convert: None,
        };
        let card = DatasetCard {
            name: source.label.clone(),
            title: source.group.clone().unwrap_or_else(|| source.label.clone()),
            records: String::new(),
            note: None,
            citation: String::new(),
            redistribute: source.redistribute,
            licence: Licence { name: source.licence.clone(), ..Licence::default() },
            sources: vec![DatasetSource {
                host: Host::Hub,
                repository: source.repository.clone().unwrap_or_default(),
                revision: source.revision.clone().unwrap_or_else(|| "main".to_owned()),
                files: source.files.iter().map(file).collect(),
            }],
        };
        // Several sources may be parts of one file.
        let paths = |card: &DatasetCard| -> Vec<String> {
            card.files().map(|(_, file)| file.path.clone()).collect()
        };
        if !cards.iter().any(|known| paths(known) == paths(&card)) {
            cards.push(card);
        }
    }
    Ok((cards, left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_handed_on_and_is_named_is_fetched_once() {
        let (cards, left_out) = cards(&Description::open("clinicalcorp").unwrap()).unwrap();
        assert_eq!(cards.len(), 1);
        let (_, file) = cards[0].files().next().unwrap();
        assert_eq!(file.path, "guidelines/open_guidelines.jsonl");
        let labels: Vec<&str> = left_out.iter().map(|(label, _)| &**label).collect();
        assert_eq!(labels, ["medwiki", "guidelines-closed", "textbooks", "statpearls"]);
    }
}
