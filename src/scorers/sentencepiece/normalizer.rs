//! What SentencePiece does to a text before it is split: characters replaced by its compiled table, spaces folded.

/// Stands for a space inside pieces.
const SPACE: &str = "\u{2581}";

/// The normaliser that a model carries.
#[derive(Debug)]
pub(super) struct Normalizer {
    table: Option<Table>,
    pub(super) add_dummy_prefix: bool,
    pub(super) remove_extra_whitespaces: bool,
    pub(super) escape_whitespaces: bool,
}

impl Default for Normalizer {
    fn default() -> Self {
        Self {
            table: None,
            add_dummy_prefix: true,
            remove_extra_whitespaces: true,
            escape_whitespaces: true,
        }
    }
}

impl Normalizer {
    /// Takes in `precompiled_charsmap`; false where it is none.
    pub(super) fn set_table(&mut self, bytes: &[u8]) -> bool {
        if bytes.is_empty() {
            return true;
        }
        self.table = Table::read(bytes);
        self.table.is_some()
    }

    /// `kept` gives the length of a symbol at the start of a text that is to stay as it is.
    pub(super) fn normalize(&self, text: &str, kept: impl Fn(&str) -> Option<usize>) -> String {
        let prefix = |text: &str| -> (String, usize) {
            if let Some(length) = kept(text) {
                return (text[..length].to_owned(), length);
            }
            let replaced = self.table.as_ref().and_then(|table| table.longest(text));
            replaced.unwrap_or_else(|| {
                let first = text.chars().next().map_or(0, char::len_utf8);
                (text[..first].to_owned(), first)
            })
        };
        let space = if self.escape_whitespaces { SPACE } else { " " };
        let mut rest = text;
        if self.remove_extra_whitespaces {
            while !rest.is_empty() {
                let (replaced, length) = prefix(rest);
                if replaced != " " {
                    break;
                }
                rest = &rest[length..];
            }
        }
        let mut normalized = String::new();
        if rest.is_empty() {
            return normalized;
        }
        if self.add_dummy_prefix {
            normalized.push_str(space);
        }
        let mut after_space = self.remove_extra_whitespaces;
        while !rest.is_empty() {
            let (replaced, length) = prefix(rest);
            let mut added = replaced.as_str();
            if after_space {
                added = added.trim_start_matches(' ');
            }
            if !added.is_empty() {
                normalized.push_str(&added.replace(' ', space));
                after_space = added.ends_with(' ');
            }
            rest = &rest[length..];
            after_space &= self.remove_extra_whitespaces;
        }
        if self.remove_extra_whitespaces {
            let end = normalized.trim_end_matches(space).len();
            normalized.truncate(end);
        }
        normalized
    }
}

/// `precompiled_charsmap`: the length of a double-array trie, the trie, and the replacements it leads to, each ended by
/// a zero byte.
#[derive(Debug)]
struct Table {
    units: Vec<u32>,
    replacements: Vec<u8>,
}

impl Table {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (trie, replacements) = rest.split_at_checked(length)?;
        let (units, odd) = trie.as_chunks::<4>();
        let units: Vec<u32> = units.iter().copied().map(u32::from_le_bytes).collect();
        let is_whole = odd.is_empty() && !units.is_empty();
        is_whole.then(|| Self { units, replacements: replacements.to_vec() })
    }

    /// The replacement of the longest entry that `text` begins with, and that entry's length.
    fn longest(&self, text: &str) -> Option<(String, usize)> {
        let mut found = None;
        let mut node = offset(*self.units.first()?);
        for (at, byte) in text.bytes().enumerate() {
            node ^= usize::from(byte);
            let unit = self.units.get(node).copied().unwrap_or_default();
            // A label, and no leaf's value.
            if unit & 0x8000_00ff != u32::from(byte) {
                break;
            }
            node ^= offset(unit);
            if unit >> 8 & 1 == 1 {
                let value = self.units.get(node)? & 0x7fff_ffff;
                found = Some((value, at + 1));
            }
        }
        let (value, length) = found?;
        let replacement = self.replacements.get(usize::try_from(value).ok()?..)?;
        let end = replacement.iter().position(|&byte| byte == 0)?;
        let replacement = str::from_utf8(&replacement[..end]).ok()?;
        text.is_char_boundary(length).then(|| (replacement.to_owned(), length))
    }
}

/// Where a trie's unit says its children lie.
fn offset(unit: u32) -> usize {
    ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_are_folded_only_where_the_model_says_so() {
        let folding = Normalizer::default();
        let normalize = |text| folding.normalize(text, |_| None);
        assert_eq!(normalize("  a   b "), "\u{2581}a\u{2581}b");
        assert_eq!(normalize("   "), "");
        assert_eq!(normalize(""), "");
        let plain = Normalizer {
            add_dummy_prefix: false,
            remove_extra_whitespaces: false,
            escape_whitespaces: false,
            ..Normalizer::default()
        };
        assert_eq!(plain.normalize("  a   b ", |_| None), "  a   b ");
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for bytes in [&b"\x04\x00"[..], b"\x08\x00\x00\x00abcd", b"\x03\x00\x00\x00abc"] {
            assert!(!Normalizer::default().set_table(bytes), "{bytes:?}");
        }
        assert!(Normalizer::default().set_table(b""));
    }
}
