//! The tags in an agent's text, and what stands in them.

/// What the first of these tags holds: up to its end, however that is spelt, or the end of the text.
pub fn tagged(text: &str, tag: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let start = lower.find(&format!("<{tag}>"))? + tag.len() + 2;
    let end = lower[start..].find("</").or_else(|| lower[start..].find('<'));
    Some(text[start..end.map_or(text.len(), |end| start + end)].to_owned())
}

/// A text without the marks or quotes around it.
pub fn plain(text: &str) -> &str {
    const PAIRS: [(&str, &str); 7] =
        [("**", "**"), ("*", "*"), ("`", "`"), ("\"", "\""), ("“", "”"), ("'", "'"), ("«", "»")];
    PAIRS.iter().fold(text.trim(), |text, (open, close)| {
        let inner = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        inner.map_or(text, str::trim)
    })
}

/// Whether a text is NAN, or another word for nothing.
pub fn is_nan(text: &str) -> bool {
    let around = |c: char| c.is_whitespace() || matches!(c, '.' | '"' | '\'' | '*' | '`');
    let text = text.trim_matches(around);
    ["nan", "n/a", "na", "none", "null"].iter().any(|nothing| text.eq_ignore_ascii_case(nothing))
}

/// What the first pair of these tags holds, whatever their case.
pub fn section<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    // ASCII lower case keeps every byte's place.
    let lower = text.to_ascii_lowercase();
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let start = lower.find(&open)? + open.len();
    let length = lower[start..].find(&close)?;
    Some(&text[start..start + length])
}

/// The text without any pair of these tags and what they hold.
pub fn without(text: &str, tag: &str) -> String {
    let mut rest = text.to_owned();
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    while let Some(held) = section(&rest, tag) {
        let start = held.as_ptr() as usize - rest.as_ptr() as usize;
        let end = start + held.len() + close.len();
        rest.replace_range(start - open.len()..end, " ");
    }
    rest
}

/// What follows the reasons. Where they are never closed, nothing does; where they are only closed, the chat template opened them.
pub fn without_thought(text: &str) -> String {
    let rest = without(text, "think");
    let lower = rest.to_ascii_lowercase();
    match (lower.rfind("</think>"), lower.find("<think>")) {
        (Some(close), _) => rest[close + "</think>".len()..].to_owned(),
        (None, Some(open)) => rest[..open].to_owned(),
        (None, None) => rest,
    }
}
