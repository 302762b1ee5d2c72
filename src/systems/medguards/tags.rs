//! The tags in an agent's text, and what stands in them.

pub use crate::systems::reading::correction::without_marks as plain;

/// What the last of these tags that holds something holds: up to its end, however that is spelt, or the end of the text. Of a tag that is
/// only closed, the line before it.
pub fn tagged(text: &str, tag: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let open = format!("<{tag}>");
    let inside = |at: usize| {
        let start = at + open.len();
        let end = lower[start..].find("</").or_else(|| lower[start..].find('<'));
        &text[start..end.map_or(text.len(), |end| start + end)]
    };
    let mut places = lower.rmatch_indices(&open).map(|(at, _)| inside(at));
    let first = places.next();
    let held = match first.filter(|last| last.trim().is_empty()) {
        Some(empty) => places.find(|held| !held.trim().is_empty()).or(Some(empty)),
        None => first,
    };
    let closed = || {
        let before = &text[..lower.find(&format!("</{tag}>"))?];
        before.trim().lines().last()
    };
    held.or_else(closed).map(str::to_owned)
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
