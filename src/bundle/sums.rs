//! `SHA256SUMS` as coreutils write and check it: `SUM  NAME`. Names that coreutils would escape go into no bundle.

use std::collections::BTreeMap;

use crate::digest::is_sha256;

/// Whether coreutils would write the name otherwise.
pub fn is_escaped(name: &str) -> bool {
    name.contains(['\\', '\n', '\r'])
}

/// A line of the list.
pub fn line(name: &str, sum: &str) -> String {
    format!("{sum}  {name}\n")
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
    let (sum, name) = line.strip_suffix('\n')?.split_once("  ")?;
    let is_one = is_sha256(sum) && !is_escaped(name);
    is_one.then(|| (name.to_owned(), sum))
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
        let names = ["a", "b c/d", " *i", "ä/ß", "j\u{1b}"];
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
