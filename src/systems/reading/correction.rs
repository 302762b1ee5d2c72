//! The sentence that a text gives as a correction, without what announces it.

use crate::text::Pattern;

/// A correction without a label («Corrected sentence: …»), the sentence's number, and marks around it.
pub fn corrected(text: &str) -> &str {
    static LABEL: Pattern = Pattern::new(
        r"(?i)\A[\s*_>#-]*(?:sure\W+|certainly\W+)?(?:here(?:['’]s| is) )?(?:the )?(?:(?:corrected|correct|revised)(?: (?:sentence|version|text))?|sentence|correction|修改后的句子)(?: (?:is|reads|should be|should read))?[\s*_]*(?:[:：][\s*_>]*|([\x22“]))",
    );
    static NUMBERED: Pattern = Pattern::new(r"\A\s*\d{1,3}[.):]?\s+");
    let label = LABEL.captures(text);
    let start = label.map_or(0, |label| match (label.get(1), label.get(0)) {
        (Some(quote), _) => quote.start(),
        (None, label) => label.map_or(0, |label| label.end()),
    });
    let text = ["->", "→"]
        .iter()
        .fold(&text[start..], |text, arrow| text.split_once(arrow).map_or(text, |(_, new)| new));
    let text = text.trim().split("\n\n").next().unwrap_or_default();
    let number = NUMBERED.find(text).map_or(0, |number| number.end());
    let is_sentence = text[number..].starts_with(char::is_uppercase);
    without_marks(if is_sentence { &text[number..] } else { text })
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
