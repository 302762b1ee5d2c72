//! What the command line says, kept word for word in `snapshots/`; INSTA_UPDATE=always takes what it says now.

use std::collections::BTreeSet;

use clap::{Command, Parser};
use insta::{Settings, assert_snapshot};

use super::{Arguments, GROUPS, command, run};

/// A verb and its verbs, each with its full name.
fn verbs(command: &Command, name: &str) -> Vec<(String, Command)> {
    let mut found = vec![(name.to_owned(), command.clone())];
    for verb in command.get_subcommands() {
        if verb.get_name() != "help" {
            found.extend(verbs(verb, &format!("{name} {}", verb.get_name())));
        }
    }
    found
}

fn all() -> Vec<(String, Command)> {
    let mut all = command();
    all.build();
    verbs(&all, "wardround")
}

fn keep(name: &str, text: &str) {
    let mut settings = Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(false);
    // Where the repository lies is nobody's business.
    let text = text.replace(env!("CARGO_MANIFEST_DIR"), "[repository]");
    settings.bind(|| assert_snapshot!(name, text));
}

#[test]
fn the_command_line_is_consistent() {
    command().debug_assert();
}

#[test]
fn help() {
    for (name, command) in all() {
        // Of a variable its name is printed, not what it is where the test runs.
        let mut command =
            command.mut_args(|argument| argument.hide_env_values(true)).term_width(100);
        let text = command.render_long_help().to_string();
        let text: Vec<&str> = text.lines().map(str::trim_end).collect();
        keep(&name.replace(' ', "-"), &text.join("\n"));
    }
}

/// What `wardround LINE` prints on a terminal so wide.
fn help_of(line: &str, width: usize) -> String {
    let words = std::iter::once("wardround").chain(line.split(' '));
    command().term_width(width).try_get_matches_from(words).unwrap_err().render().to_string()
}

#[test]
fn the_verbs_are_few_and_each_is_in_one_group() {
    let all = command();
    let verbs: BTreeSet<&str> = all.get_subcommands().map(Command::get_name).collect();
    let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
    let is_built = |name: &&&str| {
        cfg!(all(feature = "serve", feature = "airgap"))
            || !["serve", "keys", "bundle"].contains(*name)
    };
    let built: BTreeSet<&str> = listed.iter().filter(is_built).copied().collect();
    assert_eq!((built.len(), built), (verbs.len(), verbs));
    assert!(listed.len() <= 24 && BTreeSet::from_iter(&listed).len() == listed.len());
    let help = help_of("--help", 110);
    for (group, names) in GROUPS {
        assert!(help.contains(&format!("\n{group}:\n")), "{help}");
        for name in names.iter().filter(is_built) {
            let lines = help.lines().filter(|line| line.starts_with(&format!("  {name} ")));
            assert!(
                lines.clone().count() == 1 && lines.clone().all(|line| line.len() <= 100),
                "{name}: {help}"
            );
        }
    }
}

/// What belongs to one system stands in `systems show`.
#[test]
fn the_help_of_a_run_is_read_at_once() {
    for line in ["run --help", "run -h"] {
        for width in [100, 110] {
            let help = help_of(line, width);
            let lines = help.lines().count();
            assert!(lines <= 120, "{line}, {width} columns: {lines} lines\n{help}");
            assert!(help.contains("--exemplar-reasons") && help.contains("wardround systems show"));
        }
    }
}

/// The variables that a text names, those of the hub's own too.
fn variables(text: &str) -> BTreeSet<&str> {
    let words = text.split(|char: char| !char.is_ascii_uppercase() && char != '_');
    let is_name = |word: &&str| ["WARDROUND_", "HF_"].iter().any(|own| word.starts_with(own));
    words.filter(is_name).map(|word| word.trim_end_matches('_')).collect()
}

#[test]
fn every_environment_variable_is_documented_and_means_one_flag() {
    // What a machine sets, and nothing that a run asks for: it would say more on one verb than on another.
    let machine = [
        ("audit", "WARDROUND_AUDIT"),
        ("audit-content", "WARDROUND_AUDIT_CONTENT"),
        ("audit-keep", "WARDROUND_AUDIT_KEEP"),
        ("device", "WARDROUND_DEVICE"),
        ("encoder", "WARDROUND_ENCODER"),
        ("keys", "WARDROUND_KEYS"),
        ("offline", "WARDROUND_OFFLINE"),
        ("quiet", "WARDROUND_QUIET"),
        ("sandbox", "WARDROUND_SANDBOX"),
        ("scorers", "WARDROUND_SCORERS"),
        ("threads", "WARDROUND_THREADS"),
    ];
    let mut found = BTreeSet::new();
    for (verb, command) in all() {
        for argument in command.get_arguments() {
            let variable = argument.get_env().map(|name| name.to_str().unwrap());
            let flag = argument.get_long().unwrap_or_default();
            let own = machine.iter().find(|(name, _)| *name == flag).map(|(_, own)| *own);
            assert_eq!(variable, own, "--{flag} of {verb}");
            found.extend(variable.map(str::to_owned));
        }
    }
    assert_eq!(found.len(), machine.len(), "{found:?}");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/machines.md");
    let page = fs_err::read_to_string(page).unwrap();
    let (help, page) = (variables(super::ENVIRONMENT), variables(&page));
    for (flag, name) in machine {
        let line = super::ENVIRONMENT.lines().find(|line| line.trim_start().starts_with(name));
        assert!(line.unwrap().contains(&format!("(--{flag})")), "{name}");
    }
    let undocumented: Vec<_> = help.difference(&page).collect();
    assert!(undocumented.is_empty(), "docs/machines.md lacks {undocumented:?}");
}

/// What a mistake leads to: its message, its hint and the exit code.
fn answer(line: &str) -> String {
    let ended = match Arguments::try_parse_from(line.split(' ')) {
        Err(error) => format!("{}exit code {}", error.render(), error.exit_code()),
        Ok(arguments) => match run(arguments) {
            Ok(()) => "exit code 0".to_owned(),
            Err(failure) => {
                let hint = failure.hint();
                let hint = hint.map_or(String::new(), |hint| format!("hint: {hint}\n"));
                let code = failure.blame().exit_code();
                format!("error: {failure}\n{hint}exit code {code}")
            }
        },
    };
    format!("$ {line}\n{ended}\n")
}

#[test]
fn mistakes() {
    let lines = [
        "wardround runn",
        "wardround run --limit few",
        "wardround generate --logits --tokens 1 --model no-such-model",
        "wardround generate --logits --tokens 1 --model ./no-such-folder",
        "wardround generate --logits --tokens 1 --model src",
        "wardround generate --model src",
        "wardround generate --model src --prompt Hello --temperature hot",
        "wardround generate --logits --model src --tokens 1 --device tpu",
        "wardround run --plan no-such-plan --corpus a --sources a",
        "wardround compare no-such-run other",
        "wardround compare src/cli src/cli",
        "wardround verify src/cli",
        "wardround report no-such-run",
        "wardround rate score no-such-key ratings",
        "wardround models verify no-such-model",
        "wardround models synth llama src",
        "wardround bench",
        "wardround serve no-such-model",
        "wardround serve src",
        "wardround serve a=src b=openai:m@http://127.0.0.1",
        "wardround serve src --host 0.0.0.0",
    ];
    keep("mistakes", &lines.map(answer).join("\n"));
}
