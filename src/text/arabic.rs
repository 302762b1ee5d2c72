//! Arabic spelling with its variants made one.

use super::split_words;

/// Without vowel signs (U+064B to U+0652), the forms of alif, ya, waw and ta marbuta made one each, whitespace
/// collapsed.
pub fn normalise_arabic(text: &str) -> String {
    let spelt: String = text
        .chars()
        .filter(|character| !('\u{064b}'..='\u{0652}').contains(character))
        .map(|character| match character {
            'آ' | 'أ' | 'إ' => 'ا',
            'ى' | 'ئ' => 'ي',
            'ؤ' => 'و',
            'ة' => 'ه',
            other => other,
        })
        .collect();
    split_words(&spelt).collect::<Vec<&str>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_of_one_spelling_become_equal() {
        assert_eq!(normalise_arabic(" الجُرْعَةُ  \n مُخَدِّرة "), "الجرعه مخدره");
        assert_eq!(normalise_arabic("أإآ ى ئ ؤ"), "ااا ي ي و");
        assert_eq!(normalise_arabic("BMI 30"), "BMI 30");
    }
}
