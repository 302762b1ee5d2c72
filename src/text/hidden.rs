//! Characters that hide or reorder text, spelled out wherever text of models or files is shown.

/// The text with what hides or reorders spelled out, for wherever it is shown as text: `⟨U+202E⟩`.
pub fn spell_hidden(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for character in text.chars() {
        match is_hidden(character) {
            true => spelled.push_str(&format!("⟨U+{:04X}⟩", u32::from(character))),
            false => spelled.push(character),
        }
    }
    spelled
}

/// Controls, directional overrides and tag characters: a page drops them, or lets them reorder what follows.
pub fn is_hidden(character: char) -> bool {
    match character {
        '\n' | '\r' | '\t' => false,
        '\u{061C}' | '\u{200E}' | '\u{200F}' => true,
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => true,
        '\u{FFFE}' | '\u{FFFF}' | '\u{E0000}'..='\u{E007F}' => true,
        other => other.is_control(),
    }
}
