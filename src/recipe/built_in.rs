//! The recipes in the binary, those of each paper, and what several have in common.

// `RECIPES`; `IDS`, lists of ids that recipes run by default, drawn by `recipes/ids/draw.py`; `READINGS`, sentences that several recipes
// have; `PAPERS`, the recipes of a paper: every file by its name.
include!(concat!(env!("OUT_DIR"), "/recipes.rs"));
include!(concat!(env!("OUT_DIR"), "/ids.rs"));
include!(concat!(env!("OUT_DIR"), "/readings.rs"));
include!(concat!(env!("OUT_DIR"), "/papers.rs"));

/// The names of the recipes of a paper, in its order; `None` where no paper has this name.
pub fn of_paper(name: &str) -> Option<impl Iterator<Item = &'static str>> {
    let lines = built_in(PAPERS, &format!("{name}.txt"))?.lines();
    Some(lines.filter(|line| !line.starts_with('#')))
}

/// The names of the papers.
pub fn papers() -> impl Iterator<Item = &'static str> {
    PAPERS.iter().filter_map(|(file, _)| file.strip_suffix(".txt"))
}

/// The names of the recipes in the binary.
pub fn names() -> impl Iterator<Item = &'static str> {
    RECIPES.iter().filter_map(|(file, _)| file.strip_suffix(".toml"))
}

/// The file of the recipe of this name in the binary; `new-questions` and `new-notes` are what one of one's own begins with.
pub fn text(name: &str) -> Option<&'static str> {
    match name {
        "new-questions" => Some(include_str!("new-questions.toml")),
        "new-notes" => Some(include_str!("new-notes.toml")),
        _ => built_in(RECIPES, &format!("{name}.toml")),
    }
}

/// The list of ids of this name, a line each, comments too.
pub fn ids(name: &str) -> Option<&'static str> {
    built_in(IDS, &format!("{name}.txt"))
}

/// A sentence that several recipes have.
pub(super) fn reading(name: &str) -> Option<&'static str> {
    built_in(READINGS, &format!("{name}.txt"))
}

fn built_in(files: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    files.iter().find(|(file, _)| *file == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn papers_have_recipes_of_the_binary_each_once() {
        for paper in papers() {
            let recipes: Vec<&str> = of_paper(paper).unwrap().collect();
            assert!(recipes.len() > 9, "{paper}");
            for recipe in &recipes {
                assert!(text(recipe).is_some(), "{paper}: {recipe}");
            }
            assert_eq!(BTreeSet::from_iter(&recipes).len(), recipes.len(), "{paper}");
            assert!(text(paper).is_none());
        }
        assert!(of_paper("table1").is_none());
    }

    #[test]
    fn the_lists_hold_as_many_ids_as_their_names_say() {
        for (name, text) in IDS {
            let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
            let count = name.trim_end_matches(".txt").rsplit('-').next().unwrap();
            assert_eq!(lines.len().to_string(), count, "{name}");
        }
    }

    /// Whoever runs all papers has run every recipe, but those on the papers' own models and what the papers' files say.
    #[test]
    fn every_recipe_belongs_to_a_paper_or_says_why_not() {
        let of_papers: BTreeSet<&str> =
            papers().flat_map(|paper| of_paper(paper).unwrap()).collect();
        let apart = names().filter(|name| !of_papers.contains(name) && !name.ends_with("-api"));
        assert_eq!(
            apart.collect::<Vec<_>>(),
            [
                "mediqa-corr",
                "medmad-controls",
                "medreact-encoders",
                "small-2026-notes",
                "small-2026"
            ]
        );
    }
}
