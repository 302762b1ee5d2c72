//! `recipe --dry-run`: what a recipe would run, and what it lacks.

use crate::cli::exit::Failure;
use crate::cli::forecast::{Outlook, Planned};
use crate::cli::options::ScorerFlags;
use crate::cli::summary;
use crate::console;
use crate::experiment::forecast;
use crate::experiment::recipe::Recipe;
use crate::experiment::recipe::cells::cells;
use crate::experiment::recipe::run::RecipeRun;

/// Every cell of a recipe, and what it is called.
pub(in crate::cli) fn planned(recipe: &RecipeRun) -> Result<Vec<Planned>, Failure> {
    let cells = cells(&recipe.forms)?;
    let planned = cells.iter().zip(recipe.specs()?);
    Ok(planned.map(|(cell, spec)| Planned { label: cell.title(), spec }).collect())
}

pub(super) fn announce(recipe: &RecipeRun, scorers: &ScorerFlags) -> Result<(), Failure> {
    for form in &recipe.forms {
        let Recipe { title, decoding, .. } = &form.manifest.recipe;
        console::say(format!("recipe     {title}, {} text", decoding.adjective()))?;
    }
    let mut outlook = Outlook::of(&planned(recipe)?)?;
    if scorers.keywords.is_none() {
        let absent = recipe.manifest().keyword_files().into_iter().filter(|file| !file.is_file());
        outlook.optional.extend(absent.map(|path| {
            format!(
                "{}; without it KPCS takes the words that gold corrections change",
                forecast::file(&path)
            )
        }));
    }
    // What cannot be resolved is told as it would be by the run itself.
    if outlook.is_whole() {
        let local = RecipeRun { hub: recipe.hub.local(), ..recipe.clone() };
        summary::tell_memory(&local.resolve()?.models)?;
    }
    outlook.tell()
}
