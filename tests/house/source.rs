//! Files of `src/` and `crates/` as the tests of the house see them: what production code names by `crate::`, and how long they are.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A crate whose folders the upper crate names as if they were its own.
const ENGINE: &str = "crates/engine/src";
/// Crates that count as one folder each.
const FOLDERS: [(&str, &str); 2] = [("ops", "crates/ops/src"), ("candle", "crates/candle/src")];

/// One file of the house.
pub struct SourceFile {
    /// Its path from the repository's root.
    pub name: String,
    /// The top folder of its crate, or the file's stem where it stands in `src/` itself.
    pub folder: String,
    pub lines: usize,
    /// As `tools/lines.py` counts: down to its tests.
    pub production_lines: usize,
    /// Without tests and comments, literals blanked; lines stay where they are.
    pub code: String,
    /// What its code outside tests names by `crate::`.
    pub paths: Vec<CratePath>,
}

/// `crate::FOLDER` in code.
pub struct CratePath {
    /// From 1.
    pub line: usize,
    pub folder: String,
}

/// Every Rust file, those of tests too.
pub fn all() -> Vec<SourceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for sources in ["src", ENGINE].into_iter().chain(FOLDERS.map(|(_, sources)| sources)) {
        collect(&root.join(sources), &mut paths);
    }
    paths.sort();
    paths.iter().map(|path| read(root, path)).collect()
}

/// The files that are compiled without `cfg(test)`.
pub fn production() -> &'static [SourceFile] {
    static FILES: LazyLock<Vec<SourceFile>> = LazyLock::new(read_production);
    &FILES
}

fn read_production() -> Vec<SourceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = all();
    let of_tests: BTreeSet<PathBuf> =
        files.iter().flat_map(|file| test_modules(&root.join(&file.name))).collect();
    let is_of_tests = |file: &SourceFile| {
        let path = root.join(&file.name);
        path.ancestors().any(|ancestor| of_tests.contains(&ancestor.with_extension("")))
    };
    files.into_iter().filter(|file| !is_of_tests(file)).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

fn read(root: &Path, path: &Path) -> SourceFile {
    let text = std::fs::read_to_string(path).unwrap();
    let name = path.strip_prefix(root).unwrap();
    let own = FOLDERS.into_iter().find(|(_, sources)| name.starts_with(sources));
    let sources = if name.starts_with(ENGINE) { Path::new(ENGINE) } else { Path::new("src") };
    let folder = match own {
        Some((folder, _)) => OsStr::new(folder),
        None => name.strip_prefix(sources).unwrap().iter().next().unwrap(),
    };
    SourceFile {
        name: name.display().to_string(),
        folder: Path::new(folder).with_extension("").display().to_string(),
        lines: text.lines().count(),
        production_lines: text[..start_of_tests(&text)].matches('\n').count(),
        code: without_tests(&without_comments_and_strings(&text)),
        paths: if own.is_some() { Vec::new() } else { paths(&text) },
    }
}

/// Where the first inline module of tests begins; the end of `text` if there is none.
fn start_of_tests(text: &str) -> usize {
    static INLINE: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r"\n#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))? )?mod \w+ \{",
        )
        .unwrap()
    });
    INLINE.find(text).map_or(text.len(), |found| found.start())
}

/// The files, without extension, of the modules that `path` declares for tests: `#[cfg(test)] mod name;`.
fn test_modules(path: &Path) -> Vec<PathBuf> {
    let code = without_comments_and_strings(&std::fs::read_to_string(path).unwrap());
    let stem = path.file_stem().unwrap().to_str().unwrap();
    let folder = match stem {
        "mod" | "lib" | "main" => path.parent().unwrap().to_owned(),
        _ => path.with_extension(""),
    };
    code.match_indices(FOR_TESTS)
        .filter_map(|(at, _)| {
            let item = item(&code[at..]);
            let (_, rest) = item.split_once("mod ")?;
            Some(folder.join(rest.trim().strip_suffix(';')?.trim()))
        })
        .collect()
}

const FOR_TESTS: &str = "#[cfg(test)]";

/// What production code names by `crate::`, in order.
pub fn paths(text: &str) -> Vec<CratePath> {
    let code = without_tests(&without_comments_and_strings(text));
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let is_word = code[..at].ends_with(|last: char| last.is_alphanumeric() || last == '_');
        if is_word {
            continue;
        }
        let start = at + "crate::".len();
        for at in branches(&code, start) {
            let end = code[at..].find(|char: char| !char.is_alphanumeric() && char != '_');
            let folder = &code[at..end.map_or(code.len(), |end| at + end)];
            let line = code[..at].matches('\n').count() + 1;
            paths.push(CratePath { line, folder: folder.to_owned() });
        }
    }
    paths
}

/// Where the first words after `crate::` begin: one, or one a branch of `{…}`.
fn branches(code: &str, start: usize) -> Vec<usize> {
    if !code[start..].starts_with('{') {
        return vec![start];
    }
    let (mut depth, mut wants_word, mut branches) = (0, false, Vec::new());
    for (offset, char) in code[start..].char_indices() {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && ['{', ','].contains(&char) {
            wants_word = true;
        } else if depth == 1 && wants_word && !char.is_whitespace() {
            branches.push(start + offset);
            wants_word = false;
        }
    }
    branches
}

/// `code` with the items under `#[cfg(test)]` blanked, line by line.
fn without_tests(code: &str) -> String {
    let mut rest = code;
    let mut kept = String::with_capacity(code.len());
    while let Some(at) = rest.find(FOR_TESTS) {
        let (before, from) = rest.split_at(at);
        let item = item(from);
        kept += before;
        kept.extend(item.chars().filter(|char| *char == '\n'));
        rest = &from[item.len()..];
    }
    kept + rest
}

/// The item that begins here with its attributes: to its `;` or `,` outside of brackets, or to the end of its block.
fn item(code: &str) -> &str {
    let mut depth = 0;
    for (at, char) in code.char_indices() {
        match char {
            '(' | '[' => depth += 1,
            '{' => depth += 1,
            ')' | ']' => depth -= 1,
            '}' => {
                depth -= 1;
                if depth <= 0 {
                    return &code[..at + 1];
                }
            }
            ';' | ',' if depth == 0 => return &code[..at + 1],
            _ => {}
        }
    }
    code
}

/// `text` with comments and the insides of literals blanked; lines stay where they are.
fn without_comments_and_strings(text: &str) -> String {
    static LITERAL: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(
            r####"(?sx)
        //[^\n]*
        | \bb?r"[^"]*"
        | \bb?r\#".*?"\#
        | \bb?r\#\#".*?"\#\#
        | b?"(?:[^"\\]|\\.)*"
        | b?'(?:[^'\\]|\\[^'\n]+|\\')'
        | /\*"####,
        )
        .unwrap()
    });
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = LITERAL.find_at(text, at) {
        kept += &text[at..found.start()];
        let end = match found.as_str() {
            "/*" => found.start() + block_comment(&text[found.start()..]),
            _ => found.end(),
        };
        kept.extend(text[found.start()..end].chars().filter(|char| *char == '\n'));
        kept.push(' ');
        at = end;
    }
    kept + &text[at..]
}

/// How many bytes the block comment at the start of `text` takes, those nested in it included.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}
