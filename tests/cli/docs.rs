//! README, docs/, CONTRIBUTING and the notes beside: links lead somewhere, commands still parse, files that are named exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap::error::ErrorKind;
use regex::Regex;
use wardround::cli::Arguments;
use wardround::systems::{SYSTEMS, SystemConfig};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

struct Page {
    path: PathBuf,
    text: String,
}

fn pages() -> Vec<Page> {
    let top =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "tests/goldens/README.md"];
    let docs = std::fs::read_dir(root().join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let read = |path: PathBuf| Page { text: std::fs::read_to_string(&path).unwrap(), path };
    let top = top.into_iter().map(|name| root().join(name));
    top.chain(docs).map(read).collect()
}

impl Page {
    fn name(&self) -> String {
        let name = self.path.strip_prefix(root()).unwrap();
        name.display().to_string()
    }

    /// What `#…` may name: headings as their pages show them.
    fn anchors(&self) -> BTreeSet<String> {
        let heading = Regex::new(r"(?m)^#+ (.*)$").unwrap();
        let slug = |heading: &str| -> String {
            let kept = heading.to_lowercase().replace(' ', "-");
            kept.chars()
                .filter(|char| char.is_alphanumeric() || ['-', '_'].contains(char))
                .collect()
        };
        heading.captures_iter(&self.text).map(|heading| slug(&heading[1])).collect()
    }
}

#[test]
fn links_lead_somewhere() {
    let link = Regex::new(r"\]\(([^)\s]*)\)").unwrap();
    let pages = pages();
    let mut dead = Vec::new();
    for page in &pages {
        for found in link.captures_iter(&page.text) {
            let (file, anchor) = found[1].split_once('#').unwrap_or((&found[1], ""));
            if file.contains("://") {
                continue;
            }
            let target = match file {
                "" => page.path.clone(),
                file => page.path.parent().unwrap().join(file),
            };
            let target = target.canonicalize().unwrap_or(target);
            let anchors = pages.iter().find(|page| page.path == target);
            let has_anchor = anchors.is_none_or(|page| page.anchors().contains(anchor));
            if !target.exists() || (!anchor.is_empty() && !has_anchor) {
                dead.push(format!("{}: {}", page.name(), &found[1]));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

/// A command in a text: its words, and whether it stands for itself, so that nothing may be missing.
struct Command {
    place: String,
    words: Vec<String>,
    is_whole: bool,
}

/// Lines of shell blocks, with what they quote, and code between backticks.
fn commands() -> Vec<Command> {
    let block = Regex::new(r"(?ms)^[ ]*```sh\n(.*?)^[ ]*```").unwrap();
    let inline = Regex::new(r"`(wardround [^`\n]+)`").unwrap();
    let mut commands = Vec::new();
    for page in pages() {
        for found in block.captures_iter(&page.text) {
            for line in found[1].lines() {
                commands.extend(command(&page, line, true));
            }
        }
        for found in inline.captures_iter(&page.text) {
            commands.extend(command(&page, &found[1], false));
        }
    }
    commands
}

fn command(page: &Page, line: &str, is_whole: bool) -> Vec<Command> {
    let mut words = words(line);
    // What a scheduler's task is given to run.
    if let Some(script) = words.iter().position(|word| word == "shard.sh") {
        words.drain(..script);
        words[0] = "wardround".to_owned();
    }
    let quoted: Vec<Command> = words
        .iter()
        .filter(|word| word.starts_with("wardround "))
        .flat_map(|word| command(page, word, is_whole))
        .collect();
    if words.first().is_none_or(|word| word != "wardround") {
        return quoted;
    }
    vec![Command { place: format!("{}: {line}", page.name()), words, is_whole }]
}

/// As a shell splits a line: blanks, two kinds of quotes, a comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for char in line.chars() {
        match (char, quote) {
            (_, Some(open)) if char == open => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(char),
            ('\'' | '"', None) => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            ('#', None) if word.is_none() => break,
            (char, None) if char.is_whitespace() => words.extend(word.take()),
            (char, None) => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}

#[test]
fn commands_parse() {
    let mut wrong = Vec::new();
    let commands = commands();
    assert!(commands.len() > 30, "{} commands", commands.len());
    for command in commands {
        let parsed = Arguments::command().try_get_matches_from(&command.words);
        let Err(error) = parsed else { continue };
        let is_mention = matches!(
            error.kind(),
            ErrorKind::MissingRequiredArgument
                | ErrorKind::MissingSubcommand
                | ErrorKind::DisplayHelp
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        );
        if command.is_whole || !is_mention {
            wrong.push(format!("{}\n{error}", command.place));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_that_are_named_exist() {
    let named =
        Regex::new(r"`((?:src|crates|tests|tools|benches|recipes|prompts|models|kernels|docs|examples|\.ci)/[\w./-]*)`")
            .unwrap();
    let mut missing = Vec::new();
    for page in pages() {
        for found in named.captures_iter(&page.text) {
            let beside = page.path.parent().unwrap();
            let is_there = [root(), beside].map(|folder| folder.join(&found[1]).exists());
            // NAME stands for a file that the reader is to write.
            if !found[1].contains("NAME") && !is_there.contains(&true) {
                missing.push(format!("{}: {}", page.name(), &found[1]));
            }
        }
    }
    assert!(missing.is_empty(), "no such files:\n{}", missing.join("\n"));
}

#[test]
fn the_table_has_every_system_and_the_readme_links_every_page() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let readme = read("README.md");
    for page in pages() {
        let name = page.name();
        if name.starts_with("docs/") {
            let is_linked = ['#', ')'].iter().any(|end| readme.contains(&format!("]({name}{end}")));
            assert!(is_linked, "README links no {name}");
        }
    }
    let table = read("docs/systems.md");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    for system in SYSTEMS.iter() {
        let name = format!("`{}`", system.name);
        let is_there = rows.iter().any(|row| row[..row.find(" | ").unwrap()].contains(&name));
        assert!(is_there, "the table of docs/systems.md lacks {name}");
    }
}

/// Texts between quotation marks of what is compiled into the program, without comments and tests, and the files beside it.
fn texts(folder: &Path, texts: &mut Vec<(PathBuf, String)>) {
    let literal = Regex::new(r#""(?:[^"\\]|\\.)*""#).unwrap();
    let comment = Regex::new(r"(?m)^\s*//.*$").unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let of_tests = ["test", "fixtures", "snapshots", "build.rs", "benches", "examples"];
        if of_tests.iter().any(|part| name.contains(part)) {
            continue;
        }
        if path.is_dir() {
            self::texts(&path, texts);
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        if name.ends_with(".toml") || name.ends_with(".txt") {
            texts.push((path, text));
            continue;
        }
        if !name.ends_with(".rs") {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let code = comment.replace_all(code, "");
        let found = literal.find_iter(&code).map(|text| (path.clone(), text.as_str().to_owned()));
        texts.extend(found);
    }
}

/// The remedies that messages name are there.
#[test]
fn flags_verbs_and_settings_in_messages_exist() {
    fn collect(command: &clap::Command, flags: &mut BTreeSet<String>) {
        flags.extend(command.get_arguments().filter_map(|flag| flag.get_long()).map(str::to_owned));
        command.get_subcommands().for_each(|below| collect(below, flags));
    }
    let mut flags: BTreeSet<String> =
        ["features", "version", "lib", "from"].map(str::to_owned).into();
    collect(&Arguments::command(), &mut flags);
    let settings = SYSTEMS.iter().flat_map(|system| {
        SystemConfig::parse::<&str>(system.name, &[])
            .unwrap()
            .table
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    });
    let settings: BTreeSet<String> = settings.collect();
    let flag = Regex::new(r"(?:^|[^\w;-])--([a-z][a-z-]+)").unwrap();
    let setting = Regex::new(r"--set ([a-z_]+)").unwrap();
    let verb = Regex::new(r"`(wardround [^`]+)`").unwrap();
    let mut wrong = Vec::new();
    let mut all = Vec::new();
    for folder in ["src", "crates", "recipes", "systems", "models", "datasets", "corpora"] {
        texts(&root().join(folder), &mut all);
    }
    assert!(all.len() > 1000, "{} texts", all.len());
    for (path, text) in all {
        let name = path.display();
        let unknown = flag.captures_iter(&text).filter(|found| !flags.contains(&found[1]));
        wrong.extend(unknown.map(|found| format!("{name}: {}: {text}", &found[0])));
        let unknown = setting.captures_iter(&text);
        let unknown = unknown.filter(|found| !["slot", "max_tokens"].contains(&&found[1]));
        let unknown = unknown.filter(|found| !settings.contains(&found[1]));
        wrong.extend(unknown.map(|found| format!("{name}: {}: {text}", &found[0])));
        for found in verb.captures_iter(&text) {
            let words = words(&found[1]);
            // A verb that is put in.
            if words.iter().skip(1).take(2).any(|word| word.starts_with('{')) {
                continue;
            }
            let error = Arguments::command().try_get_matches_from(words).err();
            let is_wrong = |error: &clap::Error| {
                matches!(error.kind(), ErrorKind::InvalidSubcommand | ErrorKind::UnknownArgument)
            };
            wrong.extend(error.filter(is_wrong).map(|error| format!("{name}: {text}\n{error}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What somebody reads in an afternoon: what a page's own subject does not need goes.
#[test]
fn the_pages_stay_few_and_short() {
    let docs = pages().into_iter().filter(|page| page.name().starts_with("docs/"));
    let words: Vec<usize> = docs.map(|page| page.text.split_whitespace().count()).collect();
    assert!(words.len() <= 14, "{} pages", words.len());
    assert!(words.iter().sum::<usize>() <= 16_000, "{} words", words.iter().sum::<usize>());
}
