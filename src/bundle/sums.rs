//! `SHA256SUMS`: the sum of every file, as coreutils' `sha256sum` writes and checks it.

use std::collections::BTreeMap;
use std::fmt;

use super::path::BundlePath;
use super::{BundleError, SUMS};
use crate::digest::is_sha256;

/// Sums by path; written in the order of the paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums(pub BTreeMap<BundlePath, String>);

impl Sums {
    /// Reads lines `SUM  PATH`, which must be spelled and ordered as they are written.
    ///
    /// # Errors
    /// The first line that is not.
    pub fn parse(bytes: &[u8]) -> Result<Sums, BundleError> {
        let bad = |line: usize, why: String| BundleError::BadFile {
            file: format!("{SUMS}, line {line}"),
            why,
        };
        let text = std::str::from_utf8(bytes).map_err(|error| bad(1, error.to_string()))?;
        let mut sums = BTreeMap::new();
        let mut last: Option<BundlePath> = None;
        for (number, line) in (1..).zip(text.split_inclusive('\n')) {
            let line =
                line.strip_suffix('\n').ok_or_else(|| bad(number, "it does not end".to_owned()))?;
            let found = line.split_once("  ").filter(|(sum, _)| is_sha256(sum));
            let (sum, path) =
                found.ok_or_else(|| bad(number, "expected `SUM  PATH`".to_owned()))?;
            let path = BundlePath::parse(path).map_err(|error| bad(number, error.to_string()))?;
            if last.is_some_and(|last| last >= path) {
                return Err(bad(number, format!("{path} is out of order or comes twice")));
            }
            last = Some(path.clone());
            sums.insert(path, sum.to_owned());
        }
        Ok(Sums(sums))
    }
}

impl fmt::Display for Sums {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(path, sum)| writeln!(formatter, "{sum}  {path}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256;

    #[test]
    fn lines_read_back_and_anything_else_is_refused() {
        let sum = sha256("abc");
        let text = format!("{sum}  MANIFEST.json\n{sum}  bin/wardround\n");
        let sums = Sums::parse(text.as_bytes()).unwrap();
        assert_eq!(sums.0.len(), 2);
        assert_eq!(sums.to_string(), text);
        let upper = sum.to_uppercase();
        for bad in [
            format!("{sum}  a"),
            format!("{sum} *a\n"),
            format!("{sum} a\n"),
            format!("{sum}  a\r\n"),
            format!("{upper}  a\n"),
            format!("{sum}  ../a\n"),
            format!("{sum}  a\n{sum}  a\n"),
            format!("{sum}  b\n{sum}  a\n"),
            format!("{sum}  a\n\n"),
            format!("\\{sum}  a\n"),
        ] {
            assert!(Sums::parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
