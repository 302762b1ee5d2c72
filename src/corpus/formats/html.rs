//! HTML to text by a small tokenizer: tags are left out, blocks end lines, scripts and styles are not read. What tags say of a number stays.

use quick_xml::escape::resolve_html5_entity;

/// Elements whose content is no text. Without its tags a formula would be another one: a word stands in its place.
const SILENT: &[&str] = &["script", "style", "noscript", "template", "svg", "math"];
const FORMULA: &str = "[formula]";
/// Elements that stand within a line. Every other one ends it: nobody wants two entries of a list as one word.
const INLINE: &str = "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd mark math nobr q rp rt ruby s \
                      samp small span strike strong sub sup svg time tt u var wbr";
/// What the references to 128 to 159 mean, which are none of Unicode's: the characters of Windows at these places.
const WINDOWS: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";

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
        if rest.starts_with("<!--") {
            // `<!-->` is a whole one.
            rest = rest[2..].find("-->").map_or("", |end| &rest[end + 5..]);
            continue;
        }
        let Some(tag) = Tag::read(rest) else {
            // A `<` that opens no tag is text.
            push("<", in_title, &mut page.title, &mut text);
            rest = &rest[1..];
            continue;
        };
        let is_closed = tag.is_end || rest[..tag.length].ends_with("/>");
        rest = &rest[tag.length..];
        if SILENT.contains(&&*tag.name) && !is_closed {
            rest = after_end(rest, &tag.name);
            text.push_str(if tag.name == "math" { FORMULA } else { "" });
        }
        // `10<sup>9</sup>` is not 109.
        match &*tag.name {
            "sup" if !tag.is_end => text.push('^'),
            "sub" if !tag.is_end && text.ends_with(is_digit) => text.push('_'),
            "sup" | "sub" if tag.is_end && rest.starts_with(is_digit) => text.push(' '),
            _ => {}
        }
        if tag.name == "title" {
            in_title = !tag.is_end && page.title.is_empty();
        }
        if !INLINE.split(' ').any(|inline| inline == tag.name) {
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
        let (mut quote, mut before) = (None, b' ');
        for (at, byte) in rest.bytes().enumerate() {
            match (quote, byte) {
                (None, b'>') => return Some(Tag { name, is_end, length: at + 1 }),
                // Within a word it is an apostrophe.
                (None, b'"' | b'\'') if before == b'=' => quote = Some(byte),
                (Some(open), byte) if open == byte => quote = None,
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                before = byte;
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
        let (resolved, length) = reference(&rest[1..]).unwrap_or_else(|| ("&".to_owned(), 0));
        spaces(&resolved, to);
        rest = &rest[1 + length..];
    }
    spaces(rest, to);
}

fn spaces(part: &str, to: &mut String) {
    to.extend(part.chars().map(|character| match character {
        '\n' | '\r' => ' ',
        character => character,
    }));
}

/// What a reference means whose `&` stands before `rest`, and its length. One by a number needs no semicolon.
fn reference(rest: &str) -> Option<(String, usize)> {
    let Some(number) = rest.strip_prefix('#') else {
        let end = rest.bytes().take(33).position(|byte| byte == b';')?;
        return Some((resolve_html5_entity(&rest[..end])?.to_owned(), end + 1));
    };
    let (radix, digits) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (16, digits),
        None => (10, number),
    };
    let after = digits.trim_start_matches(|digit: char| digit.is_digit(radix));
    let length = rest.len() - after.len() + usize::from(after.starts_with(';'));
    let digits = Some(&digits[..digits.len() - after.len()]).filter(|digits| !digits.is_empty())?;
    let character = match u32::from_str_radix(digits, radix) {
        Ok(code @ 128..=159) => WINDOWS.chars().nth(code as usize - 128),
        Ok(code) => char::from_u32(code).filter(|character| *character != '\0'),
        Err(_) => None,
    };
    Some((character.unwrap_or(char::REPLACEMENT_CHARACTER).to_string(), length))
}

fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
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

    #[test]
    fn a_number_stays_the_one_that_it_was() {
        for (html, text) in [
            ("platelets 10<sup>9</sup>/L", "platelets 10^9/L"),
            ("10<SUP class='x'>-9</SUP> mol", "10^-9 mol"),
            ("5 mg<sup><a href='#f'>3</a></sup>", "5 mg^3"),
            ("10<sup>9</sup>5", "10^9 5"),
            ("H<sub>2</sub>O, SpO<sub>2</sub>95 %, log<sub>10</sub>2", "H2O, SpO2 95 %, log10 2"),
            ("10<sub>2</sub>", "10_2"),
            ("1<b>0</b> mg", "10 mg"),
            (
                "<math><msup><mn>10</mn><mn>9</mn></msup></math>/L <math/>or <math>1</math>",
                "[formula]/L or [formula]",
            ),
        ] {
            assert_eq!(read(html).text, text, "{html}");
        }
    }

    #[test]
    fn references_mean_what_browsers_show() {
        for (html, text) in [
            ("5&#150;10 &#x96; &#146;s &#128; &#149 x", "5–10 – ’s € • x"),
            ("&#8211;&#x2013 &#65;&#65B", "–– AAB"),
            ("&#0; &#xd800; &#99999999999; &#x110000;", "\u{fffd} \u{fffd} \u{fffd} \u{fffd}"),
            ("&#; &#x; &# &#xg; &amp;#150;", "&#; &#x; &# &#xg; &#150;"),
        ] {
            assert_eq!(read(html).text, text, "{html}");
        }
    }

    #[test]
    fn what_is_of_two_elements_is_no_word() {
        for (html, text) in [
            ("<details><summary>Dose</summary>5 mg</details>", "Dose\n5 mg"),
            ("<select><option>5 mg<option>10 mg</select>", "5 mg\n10 mg"),
            ("<fieldset><legend>Adults</legend>1 g</fieldset>", "Adults\n1 g"),
            ("<button>Yes</button><button>No</button>", "Yes\nNo"),
            ("<caption>Doses</caption><tr><td>1</td><td>2</td>", "Doses\n1\n2"),
            ("<ward-note>Yes</ward-note><ward-note>No</ward-note>", "Yes\nNo"),
            ("<optgroup>a</optgroup><label>b</label><dialog>c</dialog>d", "a\nb\nc\nd"),
            ("para<wbr>ceta<em>mol</em> <q>x</q>", "paracetamol x"),
        ] {
            assert_eq!(read(html).text, text, "{html}");
        }
    }

    #[test]
    fn no_tag_swallows_what_follows_it() {
        for (html, text) in [
            ("<p class=don't>Fluids.</p><p title='x'>Oxygen.</p>", "Fluids.\nOxygen."),
            ("a<svg viewBox=\"0 0 1 1\"/>b<svg><text>no</text></svg>c", "abc"),
            ("a<!-->b<!-- c -->d<!--->e", "abde"),
        ] {
            assert_eq!(read(html).text, text, "{html}");
        }
    }
}
