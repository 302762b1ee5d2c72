//! `verify`: checks that a run directory or a recipe's folder is complete and unchanged.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::analysis::figures;
use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;
use crate::console;
use crate::digest::is_sha256;
use crate::experiment::compare;
use crate::recipe::cells::FOLDER;
use crate::recipe::manifest::RecipeManifest;
use crate::recipe::results::RecipeResults;
use crate::record::count;

#[derive(Debug, Args)]
pub struct Verify {
    /// The run directory, or the folder of a recipe with all its runs
    directory: PathBuf,
    /// The head that was noted when the run ended
    #[arg(long, value_name = "SHA256")]
    head: Option<String>,
}

impl Verify {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let directory = &self.directory;
        if let Some(begun) = RecipeManifest::read(directory)? {
            return self.recipe(directory, &begun);
        }
        if let Some(head) = self.head.as_deref().filter(|head| !is_sha256(head)) {
            let hint = "`verify` prints the head of a run: 64 digits and letters a to f";
            return Err(Failure::usage(format!("{head} is no head"), hint));
        }
        let (verified, note) = figures::verify(directory, self.head.as_deref())?;
        let heads = verified.contents.heads();
        console::say(format!("plan   {}", heads.plan))?;
        console::say(format!("calls  {} ({})", heads.calls, count(heads.call_lines, "line")))?;
        console::say(format!("items  {} ({})", heads.items, count(heads.item_lines, "line")))?;
        console::say(format!("digest {}", compare::digest(&verified.contents)?))?;
        let versions = &verified.contents.versions;
        if versions.len() > 1 {
            let versions = versions.join(", ");
            console::say(format!("note   versions {versions} of wardround wrote the run"))?;
        }
        for (path, bytes) in verified.contents.torn() {
            console::say(format!(
                "note   the last line of {} is unfinished; `wardround resume` cuts off its {}",
                path.display(),
                count(bytes, "byte")
            ))?;
        }
        let Some(results) = &verified.results else {
            return Ok(console::say("intact so far; the run has not finished")?);
        };
        if let Some(note) = note {
            console::say(format!("note   {note}"))?;
        }
        Ok(console::say(format!("head   {}\nintact", results.head))?)
    }

    /// Every run of a recipe, whether the recipe's results are of these, and what lies there that is none of its runs.
    fn recipe(&self, out: &Path, begun: &RecipeManifest) -> Result<(), Failure> {
        if self.head.is_some() {
            let hint = "give --head with one of the folders in its `cells`";
            return Err(Failure::usage("every cell of a recipe has a head of its own", hint));
        }
        let results = RecipeResults::read(out)?;
        let told = results.as_ref().map(|results| results.heads(out)).unwrap_or_default();
        let cells: Vec<PathBuf> = begun.recipe.cells().map(|cell| cell.directory(out)).collect();
        let (mut wrong, mut unfinished, mut digests) = (0, 0, Vec::new());
        let mut behind = Vec::new();
        for (of, cell) in begun.recipe.cells().zip(&cells) {
            let name = cell.strip_prefix(out).unwrap_or(cell).display();
            let head = match figures::verify(cell, None) {
                Ok((verified, note)) => {
                    note.iter().try_for_each(|note| console::say(format!("note   {note}")))?;
                    if verified.results.is_some() {
                        digests.push(format!("{name} {}", compare::digest(&verified.contents)?));
                    }
                    if told.contains_key(cell) {
                        behind.push((of, verified.contents));
                    }
                    verified.results.map(|results| results.head)
                }
                Err(_) if !fs_err::exists(cell)? => None,
                Err(error) => {
                    wrong += 1;
                    console::say(format!("wrong  {error}"))?;
                    continue;
                }
            };
            match (&head, told.get(cell)) {
                (Some(head), known) if known.is_none_or(|known| known == head) => {
                    console::say(format!("intact {name}, head {head}"))?;
                }
                (None, None) => {
                    unfinished += 1;
                    console::say(format!("not finished {name}"))?;
                }
                (_, known) => {
                    let known = known.map_or("", String::as_str);
                    wrong += 1;
                    console::say(format!("wrong  {name}: results.json is of head {known}"))?;
                }
            }
        }
        let folder = out.join(FOLDER);
        let there = if folder.is_dir() { Some(fs_err::read_dir(folder)?) } else { None };
        for entry in there.into_iter().flatten() {
            let path = entry?.path();
            if !cells.contains(&path) {
                wrong += 1;
                console::say(format!("wrong  {} is no cell of the recipe", path.display()))?;
            }
        }
        match &results {
            Some(results) if results.recipe_digest.is_none() => console::say(
                "note   an earlier version wrote results.json: its figures are not computed again",
            )?,
            Some(results) if wrong == 0 => {
                let [differences, by_hand] = results.check(&begun.recipe, &behind)?;
                wrong += differences.len();
                for one in differences {
                    console::say(format!("wrong  results.json: {one}, computed again"))?;
                }
                for one in by_hand {
                    let why = "which an encoder, a scorer or keywords would have to compute";
                    console::say(format!("note   results.json: {one}, {why}"))?;
                }
            }
            _ => {}
        }
        match (wrong, unfinished) {
            (0, 0) => {
                let digest = compare::digest_of_cells(digests);
                Ok(console::say(format!("digest {digest}\nintact"))?)
            }
            (0, _) => Ok(console::say(format!(
                "intact so far; {} not finished",
                count(unfinished, "cell")
            ))?),
            (wrong, _) => {
                let (path, wrong) = (out.display(), count(wrong, "place"));
                Err(Failure::mismatch(format!("{path}: {wrong} not as the recipe left it")))
            }
        }
    }
}
