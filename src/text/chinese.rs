//! Chinese text cut into words as jieba 0.42.1 cuts it, with its dictionary and its model of unknown words.

use std::sync::LazyLock;

use jieba_rs::Jieba;

/// What joins letters and digits into one token in jieba-rs, and not in jieba.
const CONNECTORS: [char; 3] = ['.', '_', '-'];

/// Every word in order, punctuation and blanks too: joined they are `text`. The first call loads the dictionary.
pub fn chinese_words(text: &str) -> Vec<&str> {
    static JIEBA: LazyLock<Jieba> = LazyLock::new(Jieba::new);
    let mut words = Vec::new();
    for token in JIEBA.cut(text, true) {
        let joined = token.word.is_ascii() && token.word.contains(CONNECTORS);
        match joined && !JIEBA.has_word(token.word) {
            true => part(token.word, &mut words),
            false => words.push(token.word),
        }
    }
    words
}

/// Letters and digits with a decimal fraction and a percent sign are one word, what stands between them another:
/// `0.5`, `g`.
fn part<'t>(token: &'t str, words: &mut Vec<&'t str>) {
    let run = |text: &str, of: fn(&u8) -> bool| text.bytes().take_while(of).count();
    let mut rest = token;
    while !rest.is_empty() {
        let mut end = run(rest, u8::is_ascii_alphanumeric);
        if end == 0 {
            end = run(rest, |byte| !byte.is_ascii_alphanumeric());
        } else {
            let fraction = rest[end..].strip_prefix('.');
            let digits = fraction.map_or(0, |fraction| run(fraction, u8::is_ascii_digit));
            end += if digits > 0 { digits + 1 } else { 0 };
            end += usize::from(rest[end..].starts_with('%'));
        }
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_joined_are_the_text() {
        let text = "患者血氨升高，应限制蛋白质摄入。 BMI 30";
        let words = chinese_words(text);
        assert!(words.contains(&"患者") && words.contains(&"。"));
        assert_eq!(words.concat(), text);
        assert!(chinese_words("").is_empty());
    }

    #[test]
    fn numbers_are_cut_from_their_units() {
        assert_eq!(chinese_words("0.5g"), ["0.5", "g"]);
        assert_eq!(chinese_words("1.a%"), ["1", ".", "a%"]);
        assert_eq!(chinese_words("a-b_3.5.7%"), ["a", "-", "b", "_", "3.5", ".", "7%"]);
    }
}
