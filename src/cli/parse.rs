//! Reads the command line and the environment variables of its flags. An empty variable is unset, and that of a switch takes the words of
//! [`crate::variable`].

use std::ffi::{OsStr, OsString};

use clap::builder::{self, Resettable};
use clap::{Arg, ArgAction, Command, FromArgMatches};

use super::sandboxed::Paths;
use super::{Arguments, command};
use crate::variable;

/// The command line of this process; a mistake in it ends the program.
pub fn parse() -> Arguments {
    let matches = with_variables(command(), &|name| std::env::var_os(name)).get_matches();
    let mut arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    arguments.given = Some(Paths::default().given(&matches));
    arguments
}

type Lookup<'a> = &'a dyn Fn(&OsStr) -> Option<OsString>;

/// The variables of each flag of a command and of those below it.
fn with_variables(command: Command, lookup: Lookup<'_>) -> Command {
    let command = command.mut_args(|argument| with_variable(argument, lookup));
    command.mut_subcommands(|below| with_variables(below, lookup))
}

fn with_variable(argument: Arg, lookup: Lookup<'_>) -> Arg {
    let Some(name) = argument.get_env() else { return argument };
    if lookup(name).is_some_and(|value| value.is_empty()) {
        return argument.env(Resettable::<builder::OsStr>::Reset);
    }
    match argument.get_action() {
        ArgAction::SetTrue => argument.value_parser(boolean),
        _ => argument,
    }
}

fn boolean(value: &str) -> Result<bool, String> {
    variable::boolean(value).ok_or_else(|| format!("expected {}", variable::WORDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_with_a_variable_takes_the_same_words() {
        fn switches(command: &Command, found: &mut Vec<Arg>) {
            let own = command.get_arguments().filter(|argument| argument.get_env().is_some());
            found.extend(own.filter(|one| matches!(one.get_action(), ArgAction::SetTrue)).cloned());
            command.get_subcommands().for_each(|below| switches(below, found));
        }
        let mut found = Vec::new();
        switches(&with_variables(command(), &|_| None), &mut found);
        assert!(found.len() > 3);
        for switch in found {
            let name = switch.get_env().unwrap().to_owned();
            let parser = format!("{:?}", switch.get_value_parser());
            assert!(
                !parser.contains("ValueParser::bool"),
                "{name:?} takes true and false alone: {parser}"
            );
        }
        assert_eq!(boolean("1"), Ok(true));
        assert_eq!(boolean("Off"), Ok(false));
        assert!(boolean("maybe").unwrap_err().contains("1, true, yes or on"));
    }

    #[test]
    fn an_empty_variable_is_unset() {
        let named = |command: &Command, wanted: &str| {
            let one = command.find_subcommand("run").unwrap();
            one.get_arguments()
                .any(|argument| argument.get_env().is_some_and(|name| name == wanted))
        };
        let command =
            with_variables(command(), &|name| (name == "WARDROUND_THREADS").then(OsString::new));
        assert!(!named(&command, "WARDROUND_THREADS") && named(&command, "WARDROUND_DEVICE"));
    }
}
