//! How a tokenizer writes bytes as characters.

use tokenizers::Tokenizer as Inner;

/// Of a vocabulary whose tokens have fixed bytes.
pub(super) enum Style {
    /// Each byte is one printable character.
    ByteLevel,
    /// A space is `▁`, a byte outside the vocabulary `<0xNN>`.
    ByteFallback,
}

impl Style {
    pub fn of(inner: &Inner) -> Option<Style> {
        let decoder = serde_json::to_value(inner.get_decoder()?).ok()?;
        let steps = match decoder["decoders"].as_array() {
            Some(steps) => steps.clone(),
            None => vec![decoder],
        };
        let has = |kind: &str| steps.iter().any(|step| step["type"] == kind);
        if has("ByteLevel") {
            Some(Style::ByteLevel)
        } else if has("ByteFallback") {
            Some(Style::ByteFallback)
        } else {
            None
        }
    }

    /// Of an added word, which a byte-level vocabulary holds as the text that it is.
    pub fn bytes_of_added(&self, word: &str) -> Vec<u8> {
        match self {
            Style::ByteLevel => word.as_bytes().to_vec(),
            Style::ByteFallback => self.bytes(word),
        }
    }

    pub fn bytes(&self, token: &str) -> Vec<u8> {
        match self {
            Style::ByteLevel => {
                let bytes: Option<Vec<u8>> = token.chars().map(byte_of).collect();
                bytes.unwrap_or_else(|| token.as_bytes().to_vec())
            }
            Style::ByteFallback => {
                let byte = token.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
                match byte.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
                    Some(byte) => vec![byte],
                    None => token.replace('▁', " ").into_bytes(),
                }
            }
        }
    }
}

/// The byte that a character of a byte-level vocabulary stands for: printable Latin-1 for itself, the other 68
/// bytes, in order, for the characters from U+0100 on.
pub fn byte_of(character: char) -> Option<u8> {
    let printable = |code: u32| matches!(code, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    match u32::from(character) {
        code if printable(code) => Some(code as u8),
        code @ 0x100..=0x143 => {
            (0..=0xff).filter(|&byte| !printable(byte)).nth(code as usize - 0x100).map(|b| b as u8)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_level_characters_cover_every_byte_once() {
        let mut seen = [false; 256];
        for code in 0..0x200 {
            if let Some(byte) = char::from_u32(code).and_then(byte_of) {
                assert!(!seen[byte as usize]);
                seen[byte as usize] = true;
            }
        }
        assert!(seen.iter().all(|seen| *seen));
        assert_eq!(byte_of('Ġ'), Some(b' '));
        assert_eq!(byte_of('Ċ'), Some(b'\n'));
    }
}
