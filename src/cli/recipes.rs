//! `recipe`: runs one, lists those in the binary, or prints one.

use clap::{Args, Subcommand};

use super::recipe::RecipeVerb;
use super::sandboxed::Paths;
use super::terminal;
use crate::analysis::table::Table;
use crate::cli::exit::Failure;
use crate::console;
use crate::recipe::Recipe;
use crate::recipe::built_in::{names, of_paper, papers, text};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
pub struct Recipes {
    #[command(subcommand)]
    verb: Option<About>,
    #[command(flatten)]
    run: RecipeVerb,
}

#[derive(Debug, Subcommand)]
enum About {
    /// List the built-in recipes: their paper, cells, title
    Ls,
    /// Print a built-in recipe, or what your own can begin with: new-questions, new-notes
    Show {
        /// The recipe
        name: String,
    },
}

impl Recipes {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        let Some(verb) = self.verb else { return self.run.run(given) };
        given.enter()?;
        match verb {
            About::Ls => list(),
            About::Show { name } => {
                Ok(console::write(text(&name).ok_or_else(|| Recipe::unknown(&name))?)?)
            }
        }
    }
}

fn list() -> Result<(), Failure> {
    let recipes = names().map(|name| Ok((name, Recipe::find(name)?)));
    let recipes = recipes.collect::<Result<Vec<_>, Failure>>()?;
    let is_of = |paper: &&str, name| of_paper(paper).into_iter().flatten().any(|it| it == name);
    let table = Table::of("recipes", "Recipes that are built in", &recipes)
        .text("recipe", |(name, _)| *name)
        .text("paper", |(name, _)| papers().find(|paper| is_of(paper, *name)))
        .number("cells", |(_, recipe)| recipe.dataset.len() * recipe.method.len())
        .text("title", |(_, recipe)| &recipe.title);
    terminal::show(&[table.build()])
}
