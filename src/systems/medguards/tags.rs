//! XML-like tags in an agent's text, and their contents. Tag names match in any case.

use std::ops::Range;

/// The contents of these tags, up to any closing tag, else to the next tag or the end of the text; empty where several differ.
pub fn tagged(text: &str, tag: &str) -> Option<String> {
    // ASCII lower case keeps every byte's position.
    let lower = text.to_ascii_lowercase();
    let open = format!("<{tag}>");
    let last_closing = lower.rfind("</").unwrap_or(0);
    let contents = lower.match_indices(&open).map(|(at, _)| {
        let start = at + open.len();
        // Without a closing tag ahead there is nothing to search for: texts with many opening tags take linear time.
        let closing = if start <= last_closing { lower[start..].find("</") } else { None };
        let end = closing.or_else(|| lower[start..].find('<'));
        text[start..end.map_or(text.len(), |end| start + end)].trim()
    });
    let contents: Vec<&str> = contents.collect();
    let mut said = contents.iter().filter(|contents| !contents.is_empty());
    let first = said.next().copied().unwrap_or_default();
    let is_one = said.all(|other| *other == first);
    (!contents.is_empty()).then(|| if is_one { first.to_owned() } else { String::new() })
}

/// The contents of the first pair of these tags.
pub fn section<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    first_pair(&text.to_ascii_lowercase(), tag).map(|(_, contents)| &text[contents])
}

/// Where the first pair of these tags stands in a text in lower case: with the tags, and its contents alone.
fn first_pair(lower: &str, tag: &str) -> Option<(Range<usize>, Range<usize>)> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let start = lower.find(&open)?;
    let contents = start + open.len();
    let end = contents + lower[contents..].find(&close)?;
    Some((start..end + close.len(), contents..end))
}

/// The text with a space in place of every pair of these tags and its contents.
pub fn without(text: &str, tag: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let (mut kept, mut from) = (String::new(), 0);
    while let Some((pair, _)) = first_pair(&lower[from..], tag) {
        kept.push_str(&text[from..from + pair.start]);
        kept.push(' ');
        from += pair.end;
    }
    kept + &text[from..]
}

/// What follows the `<think>` section: nothing where it is never closed. One without an opening tag was opened by the chat template.
pub fn without_thought(text: &str) -> String {
    let rest = without(text, "think");
    let lower = rest.to_ascii_lowercase();
    match (lower.rfind("</think>"), lower.find("<think>")) {
        (Some(close), _) => rest[close + "</think>".len()..].to_owned(),
        (None, Some(open)) => rest[..open].to_owned(),
        (None, None) => rest,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn pairs_are_taken_out_with_their_contents_in_any_case() {
        assert_eq!(without("a<THINK>x</think>b<think>y</Think>c", "think"), "a b c");
        assert_eq!(without("a<think>x", "think"), "a<think>x");
        assert_eq!(section("a<Result>x</RESULT>", "result"), Some("x"));
        assert_eq!(tagged("<result>x</result><result> </result>", "result").unwrap(), "x");
        assert_eq!(tagged("<result>x</result><result>y</result>", "result").unwrap(), "");
        assert_eq!(tagged("the sentence</result>", "result"), None);
    }

    #[test]
    fn a_text_of_many_tags_is_read_in_linear_time() {
        let started = Instant::now();
        let pairs = "<think></think>".repeat(100_000);
        assert_eq!(without(&pairs, "think").len(), 100_000);
        assert_eq!(tagged(&"<result>".repeat(200_000), "result").unwrap(), "");
        assert!(started.elapsed() < Duration::from_secs(20));
    }
}
