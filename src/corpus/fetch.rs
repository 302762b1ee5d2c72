//! Which sources of a description can be downloaded: those that may be handed on and lie on the hub.

use super::Description;
use crate::hub::{Check, DatasetCard, DatasetFile, DatasetSource, Host, Licence};

/// A source's label and why it is not downloaded.
pub type LeftOut = (String, &'static str);

/// A card for each repository file, and the sources that have none.
pub fn cards(description: &Description) -> (Vec<DatasetCard>, Vec<LeftOut>) {
    let (mut cards, mut left_out): (Vec<DatasetCard>, Vec<LeftOut>) = (Vec::new(), Vec::new());
    for source in &description.sources {
        let reason = match (&source.repository, source.redistribute) {
            (_, false) => Some("its licence does not let copies be handed on"),
            (None, true) => Some("it is published in another form, or on no hub"),
            (Some(_), true) => None,
        };
        if let Some(reason) = reason {
            left_out.push((source.label.clone(), reason));
            continue;
        }
        let of_hub = |id: &str, revision: &str, files: Vec<(&str, String)>| DatasetSource {
            host: Host::Hub,
            repository: id.to_owned(),
            revision: revision.to_owned(),
            files: files.into_iter().map(|(name, path)| file(name, path)).collect(),
        };
        let mut sources = Vec::new();
        if let (Some(id), Some(path)) = (&source.filter_repository, &source.filter) {
            let name = path.rsplit('/').next().unwrap_or(path);
            sources.push(of_hub(id, "main", vec![(name, path.clone())]));
        }
        if let Some(id) = &source.repository {
            let own = source.files.iter().map(|name| (&**name, format!("{}/{name}", source.path)));
            sources.push(of_hub(id, source.revision.as_deref().unwrap_or("main"), own.collect()));
        }
        let card = DatasetCard {
            name: source.label.clone(),
            title: source.group.clone().unwrap_or_else(|| source.label.clone()),
            records: String::new(),
            note: None,
            citation: String::new(),
            redistribute: source.redistribute,
            licence: Licence { name: source.licence.clone(), ..Licence::default() },
            sources,
        };
        // Several sources may be parts of one file.
        let paths = |card: &DatasetCard| -> Vec<String> {
            card.files().map(|(_, file)| file.path.clone()).collect()
        };
        if !cards.iter().any(|known| paths(known) == paths(&card)) {
            cards.push(card);
        }
    }
    (cards, left_out)
}

fn file(source: &str, path: String) -> DatasetFile {
    let check = Check::Rows;
    DatasetFile { source: source.to_owned(), path, check, ..DatasetFile::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_handed_on_and_is_named_is_fetched_once() {
        let (cards, left_out) = cards(&Description::open("clinicalcorp").unwrap());
        assert_eq!(cards.len(), 2);
        let (_, file) = cards[0].files().next().unwrap();
        assert_eq!(file.path, "guidelines/open_guidelines.jsonl");
        let labels: Vec<&str> = left_out.iter().map(|(label, _)| &**label).collect();
        assert_eq!(
            labels,
            ["drugs", "guidelinecentral", "aafp", "idsa", "cps", "textbooks", "statpearls"]
        );
        let paths: Vec<&str> = cards[1].files().map(|(_, file)| file.path.as_str()).collect();
        assert_eq!(paths, ["medical_wikipedia/med_topics.csv", "wikipedia-22-12/en/*.jsonl.gz"]);
        let names =
            ["en/000.jsonl.gz", "de/000.jsonl.gz", "en/../../x.jsonl.gz"].map(str::to_owned);
        let (_, pattern) = cards[1].files().last().unwrap();
        let expanded = pattern.expanded(&names);
        let paths: Vec<&str> = expanded.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["wikipedia-22-12/en/000.jsonl.gz"]);
    }
}
