//! `SHA256SUMS` as coreutils write and check it: `SUM  NAME`, and where a name has a backslash or a line break, `\SUM  NAME` with these escaped.

use std::collections::BTreeMap;

use crate::digest::is_sha256;

const ESCAPED: [(char, char); 3] = [('\\', '\\'), ('\n', 'n'), ('\r', 'r')];

/// A line of the list.
pub fn line(name: &str, sum: &str) -> String {
    let mut escaped = String::new();
    for char in name.chars() {
        match ESCAPED.iter().find(|(plain, _)| *plain == char) {
            Some((_, letter)) => escaped.extend(['\\', *letter]),
            None => escaped.push(char),
        }
    }
    let mark = if escaped == name { "" } else { "\\" };
    format!("{mark}{sum}  {escaped}\n")
}

/// The sums by name.
///
/// # Errors
/// The first line that is none, names a file twice or one that lies elsewhere; two names that some file systems take for one.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut sums = BTreeMap::new();
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let (name, sum) = entry(line).ok_or_else(|| format!("line {number} is no `SUM  NAME`"))?;
        if name.split('/').any(|part| ["", ".", ".."].contains(&part)) {
            return Err(format!("line {number} names `{name}`, which leads elsewhere"));
        }
        if sums.insert(name, sum.to_owned()).is_some() {
            return Err(format!("line {number} names a file again"));
        }
    }
    match twins(sums.keys()) {
        None => Ok(sums),
        Some([one, other]) => Err(format!("{one} and {other} are one on some file systems")),
    }
}

fn entry(line: &str) -> Option<(String, &str)> {
    let line = line.strip_suffix('\n')?;
    let (is_escaped, line) = line.strip_prefix('\\').map_or((false, line), |rest| (true, rest));
    let (sum, name) = line.split_once("  ").filter(|(sum, _)| is_sha256(sum))?;
    if !is_escaped {
        return Some((name.to_owned(), sum));
    }
    let mut chars = name.chars();
    let mut plain = String::new();
    while let Some(char) = chars.next() {
        match char {
            '\\' => {
                let letter = chars.next()?;
                plain.push(ESCAPED.iter().find(|(_, own)| *own == letter)?.0);
            }
            char => plain.push(char),
        }
    }
    Some((plain, sum))
}

/// Two names, or folders of names, that differ in nothing but capitals.
pub fn twins<'a>(names: impl IntoIterator<Item = &'a String>) -> Option<[String; 2]> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for name in names {
        let ends = name.match_indices('/').map(|(at, _)| at).chain([name.len()]);
        for part in ends.map(|end| &name[..end]) {
            let other = *seen.entry(part.to_lowercase()).or_insert(part);
            if other != part {
                return Some([other.to_owned(), part.to_owned()]);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256;

    #[test]
    fn lines_read_back_and_what_leads_elsewhere_is_refused() {
        let sum = sha256("abc");
        let names = ["a", "b c/d", "e\\f", "g\nh\r", " *i", "ä/ß", "\\", "j\u{1b}"];
        let text: String = names.iter().map(|name| line(name, &sum)).collect();
        let sums = parse(&text).unwrap();
        assert_eq!(sums.len(), names.len());
        assert!(names.iter().all(|name| sums[*name] == sum));
        for bad in [
            format!("{sum}  a"),
            format!("{sum} *a\n"),
            format!("{sum} a\n"),
            format!("{}  a\n", sum.to_uppercase()),
            format!("{sum}  a\n\n"),
            format!("{sum}  a\n{sum}  a\n"),
            format!("{sum}  \n"),
            format!("{sum}  ../a\n"),
            format!("{sum}  /etc/passwd\n"),
            format!("{sum}  a/../../b\n"),
            format!("{sum}  ./a\n"),
            format!("{sum}  a//b\n"),
            format!("{sum}  a/\n"),
            format!("\\{sum}  a\\tb\n"),
            format!("\\{sum}  a\\\n"),
            format!("{sum}  a\n{sum}  A\n"),
            format!("{sum}  a/b\n{sum}  A/c\n"),
            format!("{sum}  a\n{sum}  A/c\n"),
            format!("{sum}  Ä\n{sum}  ä\n"),
        ] {
            assert!(parse(&bad).is_err(), "{bad:?}");
        }
    }
}
