//! Detects the language of a note from its script.

use crate::record::Language;

/// Chinese if a tenth of the letters are Han characters, Arabic if a tenth are Arabic, else English: such notes name drugs and units in Latin
/// letters, while English notes hardly ever use other scripts.
pub(super) fn language(text: &str) -> Language {
    let (mut letters, mut han, mut arabic) = (0, 0, 0);
    for letter in text.chars().filter(|c| c.is_alphabetic()) {
        letters += 1;
        match letter {
            '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' => han += 1,
            '\u{600}'..='\u{6ff}' | '\u{750}'..='\u{77f}' | '\u{fb50}'..='\u{feff}' => arabic += 1,
            _ => {}
        }
    }
    match letters {
        0 => Language::English,
        _ if han * 10 >= letters => Language::Chinese,
        _ if arabic * 10 >= letters => Language::Arabic,
        _ => Language::English,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_letters_settles_it() {
        let cases = [
            ("BP 110/70mmHg, WBC 3.22×10^9/L，巩膜黄染", Language::Chinese),
            ("pH = 7.30، PaCO₂ = 8.4 كيلوباسكال، HCO₃", Language::Arabic),
            ("The patient drinks 4‚Äì6 cups; 痰", Language::English),
            ("12.5", Language::English),
        ];
        for (text, expected) in cases {
            assert_eq!(language(text), expected, "{text}");
        }
    }
}
