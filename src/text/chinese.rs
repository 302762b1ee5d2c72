//! Chinese text cut into words by jieba, with its own dictionary and its model of unknown words.

use std::sync::LazyLock;

use jieba_rs::Jieba;

/// Every word in order, punctuation and blanks too: joined they are `text`. The first call loads the dictionary.
pub fn chinese_words(text: &str) -> Vec<&str> {
    static JIEBA: LazyLock<Jieba> = LazyLock::new(Jieba::new);
    let tokens = JIEBA.cut(text, true);
    tokens.into_iter().map(|token| token.word).collect()
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
}
