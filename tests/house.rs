//! The house keeps its plan: which folder of `src/` may use which, and how long a file may be.

mod house {
    pub mod source;
}

use std::collections::{BTreeMap, BTreeSet};

use house::source::{SourceFile, production};

/// Each top folder (or file) of `src/` and what its production code may use, from the top floor down to the leaves.
/// An entry may name only folders that stand below it in this list, so there is no circle.
const ARROWS: &[(&str, &str)] = &[
    (
        "cli",
        "bench report analysis experiment systems panel engine model ops encoder scorers synth hub data prompts chat \
         tokenizer text random digest diagnosis record console",
    ),
    (
        "report",
        "analysis experiment systems panel data prompts text random digest diagnosis record",
    ),
    (
        "analysis",
        "experiment systems encoder scorers data prompts text random digest diagnosis record",
    ),
    (
        "bench",
        "experiment systems panel engine model ops synth hub data prompts chat tokenizer text random digest diagnosis record \
         console",
    ),
    (
        "experiment",
        "systems panel engine model ops synth hub data prompts chat tokenizer text random digest diagnosis record console",
    ),
    (
        "systems",
        "panel data prompts chat tokenizer text random diagnosis record",
    ),
    (
        "panel",
        "engine model ops synth hub data prompts chat tokenizer text random digest diagnosis record console",
    ),
    ("engine", "model ops tokenizer text random diagnosis record"),
    (
        "synth",
        "model ops prompts chat tokenizer random diagnosis record",
    ),
    ("model", "ops random diagnosis record"),
    ("ops", "random diagnosis record"),
    ("scorers", "encoder text random diagnosis record"),
    ("encoder", "text random diagnosis record"),
    ("hub", "text random digest diagnosis record console"),
    ("data", "text random digest diagnosis record"),
    ("prompts", "text digest diagnosis record"),
    ("chat", "text digest diagnosis record"),
    ("tokenizer", "text diagnosis record"),
    ("text", "diagnosis record"),
    ("random", "diagnosis"),
    ("digest", ""),
    ("diagnosis", "console"),
    ("record", ""),
    ("console", ""),
];

/// Arrows that should not be and still are. One that is gone must leave this list, so it only shrinks.
const WRONG_ARROWS: &[(&str, &str)] = &[
    ("panel", "experiment"),
    ("experiment", "analysis"),
    ("experiment", "encoder"),
    ("analysis", "bench"),
    ("analysis", "report"),
    ("cli", "exit"),
    ("exit", "analysis"),
    ("exit", "console"),
    ("exit", "data"),
    ("exit", "encoder"),
    ("exit", "engine"),
    ("exit", "experiment"),
    ("exit", "hub"),
    ("exit", "model"),
    ("exit", "ops"),
    ("exit", "panel"),
    ("exit", "prompts"),
    ("exit", "report"),
    ("exit", "synth"),
    ("exit", "systems"),
];

/// Longer files are two nouns.
const LONGEST_FILE: usize = 400;

#[test]
fn each_folder_uses_only_what_stands_below_it() {
    let allowed: BTreeSet<(&str, &str)> = ARROWS
        .iter()
        .flat_map(|(from, to)| to.split_whitespace().map(move |to| (*from, to)))
        .chain(WRONG_ARROWS.iter().copied())
        .collect();
    let mut strangers = Vec::new();
    for file in production() {
        for path in &file.paths {
            let arrow = (file.folder.as_str(), path.folder.as_str());
            if arrow.0 != arrow.1 && !allowed.contains(&arrow) {
                strangers.push(format!(
                    "{}:{}: {} uses {}",
                    file.name, path.line, arrow.0, arrow.1
                ));
            }
        }
    }
    assert!(
        strangers.is_empty(),
        "arrows that tests/house.rs does not allow:\n{}",
        strangers.join("\n")
    );
}

#[test]
fn the_list_of_wrong_arrows_only_shrinks() {
    let files = production();
    for wrong in WRONG_ARROWS {
        let is_there = |file: &SourceFile| {
            file.folder == wrong.0 && file.paths.iter().any(|path| path.folder == wrong.1)
        };
        assert!(
            files.iter().any(is_there),
            "{} uses {} no more: take it off WRONG_ARROWS",
            wrong.0,
            wrong.1
        );
    }
}

#[test]
fn no_arrow_points_up() {
    let floors: BTreeMap<&str, usize> = ARROWS
        .iter()
        .enumerate()
        .map(|(floor, (name, _))| (*name, floor))
        .collect();
    for (from, to) in ARROWS {
        for to in to.split_whitespace() {
            let floor = floors.get(to);
            let is_below = floor.is_some_and(|floor| *floor > floors[from]);
            assert!(is_below, "{to} does not stand below {from}");
        }
    }
}

#[test]
fn every_folder_has_its_floor() {
    let floors: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    let leaving: BTreeSet<&str> = WRONG_ARROWS.iter().map(|(name, _)| *name).collect();
    for file in production() {
        let folder = file.folder.as_str();
        let is_root = ["lib", "main"].contains(&folder);
        assert!(
            is_root || floors.contains(folder) || leaving.contains(folder),
            "{}: {folder} is not in ARROWS",
            file.name
        );
    }
}

#[test]
fn no_file_is_longer_than_it_should_be() {
    let long: Vec<String> = house::source::all()
        .iter()
        .filter(|file| file.lines > LONGEST_FILE)
        .map(|file| format!("{}: {} lines", file.name, file.lines))
        .collect();
    assert!(
        long.is_empty(),
        "more than {LONGEST_FILE} lines:\n{}",
        long.join("\n")
    );
}

/// What the arrows are read with sees paths in code alone.
#[test]
fn paths_are_read_from_code_and_not_from_comments_or_tests() {
    let text = r##"//! crate::doc
use crate::one::{Two, Three};
use crate::{
    four::Five,
    six::{Seven, crate_like},
    eight,
};
/* crate::block /* crate::nested */ */
fn f<'a>(x: &'a str) -> char {
    let _ = ("crate::text", r#"crate::"raw"#, '"', '\'', b'"');
    crate::nine::f(x) // crate::end
}
#[cfg(test)]
use crate::only_for_tests;
#[cfg(test)]
pub(crate) mod tests {
    use crate::ten;
    fn g() { { crate::eleven() } }
}
impl crate::twelve::Trait for () {}
"##;
    let paths: Vec<(usize, String)> = house::source::paths(text)
        .into_iter()
        .map(|path| (path.line, path.folder))
        .collect();
    let expected = [
        (2, "one"),
        (4, "four"),
        (5, "six"),
        (6, "eight"),
        (11, "nine"),
        (20, "twelve"),
    ];
    let expected: Vec<(usize, String)> = expected
        .into_iter()
        .map(|(line, folder)| (line, folder.to_owned()))
        .collect();
    assert_eq!(paths, expected);
}
