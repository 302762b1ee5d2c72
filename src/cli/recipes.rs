//! `recipe`: runs one, lists those in the binary, prints one, or begins one of your own.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use fs_err::OpenOptions;
use fs_err::os::unix::fs::OpenOptionsExt;

use super::recipe::RecipeVerb;
use super::sandboxed::Paths;
use super::summary::count;
use crate::cli::exit::Failure;
use crate::console;
use crate::data::{DEMO_TEXT, Format, ItemKind};
use crate::recipe::built_in::{names, of_paper, papers, text};
use crate::recipe::{NEW_ON_NOTES, NEW_ON_QUESTIONS, Recipe};

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
    Ls(List),
    /// Print a built-in recipe: its file, from which others can be made
    Show(Show),
    /// Write a small recipe of your own, which runs as it stands
    New(New),
}

run_each!(About: Ls, Show, New);

#[derive(Debug, Args)]
struct List {}

#[derive(Debug, Args)]
struct Show {
    /// The recipe
    name: String,
}

#[derive(Debug, Args)]
struct New {
    /// The recipe to write, such as mine.toml
    file: PathBuf,
    /// Your questions or notes; without it eight questions are written beside the recipe
    #[arg(long, value_name = "FILE", requires = "format")]
    data: Option<PathBuf>,
    /// Format of that file
    #[arg(long, value_enum, requires = "data")]
    format: Option<Format>,
}

impl Recipes {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        match self.verb {
            Some(verb) => verb.run(given),
            None => self.run.run(given),
        }
    }
}

impl List {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
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
}

impl Show {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        Ok(console::write(text(&self.name).ok_or_else(|| Recipe::unknown(&self.name))?)?)
    }
}

impl New {
    fn run(self, given: Paths) -> Result<(), Failure> {
        given.write_beside(&self.file)?.enter()?;
        let recipe = &self.file;
        let data = self.data.clone().unwrap_or_else(|| recipe.with_extension("jsonl"));
        let format = self.format.unwrap_or(Format::Mcq);
        let (folder, name) = (data.parent(), data.file_name());
        let (Some(folder), Some(name)) = (folder, name.and_then(|name| name.to_str())) else {
            return Err(Failure::usage("--data names no file", "give the file of your items"));
        };
        let folder = if folder == Path::new("") { Path::new(".") } else { folder };
        let template = match format.kind() {
            ItemKind::Questions => NEW_ON_QUESTIONS,
            ItemKind::Notes => NEW_ON_NOTES,
        };
        let (file, place) = (recipe.display().to_string(), folder.display().to_string());
        let values = [("RECIPE", &*file), ("FOLDER", &place), ("FORMAT", format.name())];
        let text = values.iter().fold(template.to_owned(), |text, (word, value)| {
            text.replace(&format!("@{word}@"), value)
        });
        // A name may hold what TOML would read otherwise.
        let text = text.replace("@FILE@", &toml::Value::from(name).to_string());
        let files = [(recipe, text.as_str()), (&data, DEMO_TEXT)];
        let files = if self.data.is_some() { &files[..1] } else { &files };
        if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
            let message = format!("{} is there already", path.display());
            return Err(Failure::usage(message, "give the recipe another name"));
        }
        for (path, text) in files {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(text.as_bytes())?;
            console::note(format!("wrote {}", path.display()));
        }
        Ok(console::say(format!("wardround recipe {file} --data-dir {place}"))?)
    }
}
