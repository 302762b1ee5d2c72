//! `completions`: shell completions and man pages, generated from the definition of the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::Shell;

use super::command;
use super::exit::Failure;
use crate::console;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Completions {
    /// Shell to generate completions for
    #[arg(value_enum, required = true)]
    shell: Option<Shell>,
    #[command(subcommand)]
    pages: Option<Pages>,
}

#[derive(Debug, Subcommand)]
enum Pages {
    /// Write man pages to a directory
    Man(Man),
}

impl Completions {
    pub fn run(self) -> Result<(), Failure> {
        match (self.pages, self.shell) {
            (Some(Pages::Man(man)), _) => man.run(),
            (None, Some(shell)) => Ok(console::write(&script(shell))?),
            (None, None) => Ok(()),
        }
    }
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "wardround", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[derive(Debug, Args)]
struct Man {
    /// Directory to write the pages to
    directory: PathBuf,
}

impl Man {
    fn run(self) -> Result<(), Failure> {
        fs_err::create_dir_all(&self.directory)?;
        Ok(clap_mangen::generate_to(command(), &self.directory)?)
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_shell_has_completions_of_every_verb() {
        let verbs = command();
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for verb in verbs.get_subcommands().filter(|verb| !verb.is_hide_set()) {
                assert!(script.contains(verb.get_name()), "{shell}: {verb}");
            }
        }
    }

    #[test]
    fn every_verb_has_a_page() {
        let directory = tempfile::tempdir().unwrap();
        let man = Man { directory: directory.path().join("man") };
        man.run().unwrap();
        for verb in command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let path = directory.path().join(format!("man/wardround-{}.1", verb.get_name()));
            let page = fs_err::read_to_string(&path).unwrap();
            assert!(page.contains(".SH OPTIONS"), "{}", path.display());
        }
    }
}
