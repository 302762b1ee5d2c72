//! HTML to text: tags are left out, blocks end lines, scripts and styles are not read. What tags say of a number stays.

use html5gum::{DefaultEmitter, Token, Tokenizer};

/// Elements whose content is no text. Without its tags a formula would be another one: a word stands in its place.
const SILENT: &[&str] =
    &["script", "style", "noscript", "template", "svg", "math", "iframe", "noembed", "noframes"];
const FORMULA: &str = "[formula]";
/// Elements that stand within a line. Every other one ends it: nobody wants two entries of a list as one word.
const INLINE: &str = "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd mark math nobr q rp rt ruby s \
                      samp small span strike strong sub sup svg time tt u var wbr";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Of `<title>`; empty without one.
    pub title: String,
    /// A line a block, without empty ones.
    pub text: String,
}

/// Reads what it can, as browsers do: nothing is refused.
pub fn read(html: &str) -> Page {
    let mut emitter = DefaultEmitter::default();
    // Within scripts, styles and titles there are no tags.
    emitter.naively_switch_states(true);
    let tokens = Tokenizer::new_with_emitter(html, emitter).flatten();
    let mut tokens = tokens.filter(|token| !matches!(token, Token::Error(_))).peekable();
    let (mut title, mut text) = (String::new(), String::new());
    let mut in_title = false;
    while let Some(token) = tokens.next() {
        let (name, is_end, is_empty) = match token {
            Token::StartTag(tag) => (tag.name, false, tag.self_closing),
            Token::EndTag(tag) => (tag.name, true, false),
            Token::String(part) => {
                // Line breaks of the source are spaces; blocks alone end lines.
                let part = String::from_utf8_lossy(&part).replace(['\n', '\r'], " ");
                let to = if in_title { &mut title } else { &mut text };
                to.push_str(&part);
                continue;
            }
            _ => continue,
        };
        let tag = String::from_utf8_lossy(&name);
        if SILENT.contains(&&*tag) && !is_end && !is_empty {
            tokens.any(|token| matches!(token, Token::EndTag(end) if end.name == name));
            text.push_str(if tag == "math" { FORMULA } else { "" });
        }
        // `10<sup>9</sup>` is not 109.
        match &*tag {
            "sup" if !is_end => text.push('^'),
            "sub" if !is_end && text.ends_with(|last: char| last.is_ascii_digit()) => {
                text.push('_');
            }
            "sup" | "sub" if is_end && tokens.peek().is_some_and(begins_with_digit) => {
                text.push(' ');
            }
            "title" => in_title = !is_end && title.is_empty(),
            _ => {}
        }
        if !INLINE.split(' ').any(|inline| inline == tag) {
            text.push('\n');
        }
    }
    let lines = text.lines().map(join_words).filter(|line| !line.is_empty());
    Page { title: join_words(&title), text: lines.collect::<Vec<_>>().join("\n") }
}

fn begins_with_digit(token: &Token) -> bool {
    matches!(token, Token::String(text) if text.first().is_some_and(u8::is_ascii_digit))
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
