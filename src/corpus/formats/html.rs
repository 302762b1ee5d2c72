//! HTML to text by a small tokenizer: tags are left out, blocks end lines, scripts and styles are not read.

use quick_xml::escape::resolve_html5_entity;

/// Elements whose content is no text.
const SILENT: &[&str] = &["script", "style", "noscript", "template", "svg"];
/// Elements that stand on lines of their own.
const BLOCKS: &str = "address article aside blockquote br dd div dl dt figcaption figure footer form h1 h2 h3 h4 h5 h6 \
                      header hr li main nav ol p pre section table td th title tr ul";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Of `<title>`; empty without one.
    pub title: String,
    /// A line a block, without empty ones.
    pub text: String,
}

/// Reads what it can: nothing is refused.
pub fn read(html: &str) -> Page {
    let mut page = Page::default();
    let mut text = String::new();
    let mut rest = html;
    let mut in_title = false;
    while let Some(at) = rest.find('<') {
        push(&rest[..at], in_title, &mut page.title, &mut text);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("<!--") {
            rest = after.find("-->").map_or("", |end| &after[end + 3..]);
            continue;
        }
        let Some(tag) = Tag::read(rest) else {
            // A `<` that opens no tag is text.
            push("<", in_title, &mut page.title, &mut text);
            rest = &rest[1..];
            continue;
        };
        rest = &rest[tag.length..];
        if SILENT.contains(&&*tag.name) && !tag.is_end {
            rest = after_end(rest, &tag.name);
        }
        if tag.name == "title" {
            in_title = !tag.is_end && page.title.is_empty();
        }
        if BLOCKS.split(' ').any(|block| block == tag.name) {
            text.push('\n');
        }
    }
    push(rest, in_title, &mut page.title, &mut text);
    page.title = join_words(&page.title);
    let lines = text.lines().map(join_words).filter(|line| !line.is_empty());
    page.text = lines.collect::<Vec<_>>().join("\n");
    page
}

struct Tag {
    /// In lower case.
    name: String,
    is_end: bool,
    /// In bytes, brackets included.
    length: usize,
}

impl Tag {
    /// The tag at the start of `rest`, which begins with `<`.
    fn read(rest: &str) -> Option<Tag> {
        let inside = &rest[1..];
        let (is_end, inside) = match inside.strip_prefix('/') {
            Some(inside) => (true, inside),
            None => (false, inside),
        };
        if !inside.starts_with(|first: char| first.is_ascii_alphabetic() || "!?".contains(first)) {
            return None;
        }
        let name = inside.find(|end: char| end.is_whitespace() || "/>".contains(end));
        let name = inside[..name.unwrap_or(inside.len())].to_ascii_lowercase();
        let mut quote = None;
        for (at, byte) in rest.bytes().enumerate() {
            match (quote, byte) {
                (None, b'>') => return Some(Tag { name, is_end, length: at + 1 }),
                (None, b'"' | b'\'') => quote = Some(byte),
                (Some(open), byte) if open == byte => quote = None,
                _ => {}
            }
        }
        Some(Tag { name, is_end, length: rest.len() })
    }
}

/// What follows the end of an element whose content is not read.
fn after_end<'a>(rest: &'a str, name: &str) -> &'a str {
    let mut from = 0;
    while let Some(at) = rest[from..].find("</") {
        let end = from + at + 2;
        if rest.as_bytes()[end..]
            .get(..name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
        {
            return rest[end..].find('>').map_or("", |close| &rest[end + close + 1..]);
        }
        from = end;
    }
    ""
}

fn push(part: &str, in_title: bool, title: &mut String, text: &mut String) {
    let to = if in_title { title } else { text };
    // Line breaks of the source are spaces; blocks alone end lines.
    let mut rest = part;
    while let Some(at) = rest.find('&') {
        spaces(&rest[..at], to);
        rest = &rest[at..];
        let end = rest.bytes().take(34).position(|byte| byte == b';');
        let resolved = end.and_then(|end| Some((entity(&rest[1..end])?, end + 1)));
        let (resolved, length) = resolved.unwrap_or_else(|| ("&".to_owned(), 1));
        spaces(&resolved, to);
        rest = &rest[length..];
    }
    spaces(rest, to);
}

fn spaces(part: &str, to: &mut String) {
    to.extend(part.chars().map(|character| match character {
        '\n' | '\r' => ' ',
        character => character,
    }));
}

fn entity(name: &str) -> Option<String> {
    let number = match name.strip_prefix('#') {
        None => return resolve_html5_entity(name).map(str::to_owned),
        Some(number) => number,
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => number.parse().ok(),
    };
    code.filter(|code| *code != 0).and_then(char::from_u32).map(String::from)
}

fn join_words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_lines() {
        let page = read(
            "<!DOCTYPE html><html><head><title>Otitis\n media</title><style>p { color: red }</style>\
             <SCRIPT>if (a < b) { \"</p>\" }</SCRIPT></head><body><!-- <p>gone</p> --><h1>Care</h1>\
             <p title=\"a > b\">Give 5&nbsp;mg &amp; wait &#8805; 3&#x2014;4 h, if x < y.</p>A&B<br/>end &unknown; <b",
        );
        assert_eq!(page.title, "Otitis media");
        assert_eq!(page.text, "Care\nGive 5 mg & wait ≥ 3—4 h, if x < y.\nA&B\nend &unknown;");
    }
}
