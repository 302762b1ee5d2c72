//! `recipe`: runs one, lists those in the binary, or prints one.

use clap::{Args, Subcommand};

use super::recipe::RecipeVerb;
use super::sandboxed::Paths;
use super::summary::count;
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
    for name in names() {
        let recipe = Recipe::find(name)?;
        let paper = papers().find(|paper| {
            of_paper(paper).is_some_and(|mut recipes| recipes.any(|recipe| recipe == name))
        });
        let cells = count(recipe.dataset.len() * recipe.method.len(), "cell");
        let (paper, title) = (paper.unwrap_or("-"), &recipe.title);
        console::say(format!("{name:22} {paper:15} {cells:>8}  {title}"))?;
    }
    Ok(())
}
