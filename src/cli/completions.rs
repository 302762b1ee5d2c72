//! `completions`: shell completions, generated from the definition of the command line.

use clap::Args;
use clap_complete::Shell;

use super::command;
use super::exit::Failure;
use super::sandboxed::Paths;
use crate::console;

#[derive(Debug, Args)]
pub struct Completions {
    /// Shell to generate completions for
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        Ok(console::write(&script(self.shell))?)
    }
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "wardround", &mut script);
    String::from_utf8_lossy(&script).into_owned()
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
}
