//! The sentence that a text gives as a correction, without what announces it.

use crate::text::Pattern;

/// A correction without a label («Corrected sentence: …»), the sentence's number, and marks around it.
pub fn corrected(text: &str) -> &str {
    static LABEL: Pattern = Pattern::new(
        r"(?i)\A[\s*_>#-]*(?:sure\W+|certainly\W+)?(?:here(?:['’]s| is) )?(?:the )?(?:(?:corrected|correct|revised)(?: (?:sentence|version|text))?|sentence|correction|修改后的句子)(?: (?:is|reads|should be|should read))?[\s*_]*(?:[:：][\s*_>]*|([\x22“]))",
    );
    let label = LABEL.captures(text);
    let start = label.map_or(0, |label| match (label.get(1), label.get(0)) {
        (Some(quote), _) => quote.start(),
        (None, label) => label.map_or(0, |label| label.end()),
    });
    let text = ["->", "→"]
        .iter()
        .fold(&text[start..], |text, arrow| text.split_once(arrow).map_or(text, |(_, new)| new));
    let text = text.trim().split("\n\n").next().unwrap_or_default();
    without_marks(without_number(text))
}

/// A text without the number that it begins with: «2. », «(2) », or «2 » before a capital letter; a dose is none.
pub fn without_number(text: &str) -> &str {
    let number = text.trim_start().trim_start_matches('(');
    let marked = number.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = number.len() - marked.len();
    let spaced = marked.trim_start_matches(['.', ')', ':']);
    let rest = spaced.trim_start();
    let is_sentence =
        rest.starts_with(char::is_uppercase) && rest.ends_with(['.', '!', '?', '"', '”']);
    let ends = spaced.len() < marked.len() && !rest.starts_with(|c: char| c.is_ascii_digit())
        || is_sentence;
    if (1..=3).contains(&digits) && rest.len() < spaced.len() && ends { rest } else { text }
}

/// A text without the marks or quotes around it.
pub fn without_marks(text: &str) -> &str {
    const PAIRS: [(&str, &str); 7] =
        [("**", "**"), ("*", "*"), ("`", "`"), ("\"", "\""), ("“", "”"), ("'", "'"), ("«", "»")];
    PAIRS.iter().fold(text.trim(), |text, (open, close)| {
        let inner = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        inner.map_or(text, str::trim)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_before_a_sentence_is_none_of_it() {
        for said in
            ["2. He had asthma.", " (2) He had asthma.", "2 He had asthma.", "12: He had asthma."]
        {
            assert_eq!(without_number(said), "He had asthma.");
        }
        for said in [
            "2 mg of it were given.",
            "20 Gy in 5 fractions",
            "5 L of oxygen",
            "12 Lead ECG",
            "1: 10 dilution",
            "110/70 mm Hg",
            "2.5 mg",
            "He had it.",
        ] {
            assert_eq!(without_number(said), said);
        }
    }
}
