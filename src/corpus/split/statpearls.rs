//! Articles of StatPearls as MedRAG (Xiong et al. 2024) cuts them: by section and subtitle, short paragraphs joined.

use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;

use crate::text::strip;

/// A paragraph shorter than this joins the chunk before it.
const SHORT: usize = 200;
/// Where a chunk stops growing.
const LONG: usize = 1000;
/// Deeper than any article; what is deeper is refused.
const DEEPEST: usize = 128;
const DASHES: &str = " -- ";

/// A chunk's title, `article -- section` or `article -- section -- subtitle`, and its text.
type Section = (String, String);

/// The chunks of one `.nxml` file, in order. Entities other than XML's own five are left as written.
///
/// # Errors
/// What is not well-formed, or has no title, as a sentence about the file.
pub fn split(text: &str) -> Result<Vec<Section>, String> {
    let root = parse(text)?;
    let titles = root.descendants("title");
    let title = titles.first().ok_or("has no <title>")?;
    let mut sections = Vec::new();
    for section in root.descendants("sec") {
        cut(&title.text, section, &mut sections);
    }
    Ok(sections)
}

/// The chunks of one section, its inner sections left out.
fn cut(article: &str, section: &Element, chunks: &mut Vec<Section>) {
    let own = section.children.iter().find(|child| child.name == "title");
    let name = own.map_or("", |title| strip(&title.text));
    let plain = [article, name].join(DASHES);
    let mut title = plain.clone();
    // Whether the last chunk may grow.
    let mut is_open = false;
    let mut follows_subtitle = false;
    for child in &section.children {
        if child.is_subtitle() {
            is_open = false;
            let mut parts: Vec<&str> = title.split(DASHES).take(2).collect();
            let subtitle = child.content();
            parts.push(&subtitle);
            title = parts.join(DASHES);
        } else if child.name == "p" {
            let text = child.content();
            let last = chunks.last_mut().filter(|_| is_open && length(&text) < SHORT);
            match last.filter(|(_, before)| length(before) + length(&text) < LONG) {
                Some((_, before)) => *before = format!("{before} {text}"),
                None => chunks.push((title.clone(), text)),
            }
            is_open = true;
        } else if child.name == "list" {
            let items: Vec<String> = child.children.iter().map(Element::content).collect();
            let joined = items.join(" ");
            let last = chunks.last_mut().filter(|_| is_open);
            match last.filter(|(_, before)| length(before) + length(&joined) < LONG) {
                Some((_, before)) => *before = format!("{before} {joined}"),
                None if length(&joined) < LONG => {
                    chunks.push((title.clone(), joined));
                    is_open = true;
                }
                None => {
                    is_open = false;
                    chunks.extend(items.into_iter().map(|text| (title.clone(), text)));
                }
            }
            if follows_subtitle {
                title.clone_from(&plain);
            }
        }
        follows_subtitle = child.is_subtitle();
    }
}

fn add(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(more);
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// An element as Python's ElementTree keeps it.
#[derive(Debug, Default)]
struct Element {
    name: String,
    /// Before the first child.
    text: String,
    /// After the end, up to the next element.
    tail: String,
    children: Vec<Element>,
}

impl Element {
    /// All of its text, white space at the ends of its parts gone. What is empty still leaves a space.
    fn content(&self) -> String {
        let mut text = strip(&self.text).to_owned();
        for child in &self.children {
            add(&mut text, &child.content());
            let tail = strip(&child.tail);
            if !tail.is_empty() {
                add(&mut text, tail);
            }
        }
        strip(&text).to_owned()
    }

    /// A paragraph of one bold text and nothing after it.
    fn is_subtitle(&self) -> bool {
        match &*self.children {
            [only] => self.name == "p" && only.name == "bold" && strip(&only.tail).is_empty(),
            _ => false,
        }
    }

    /// Those of that name, in the document's order.
    fn descendants(&self, name: &str) -> Vec<&Element> {
        let mut found = Vec::new();
        for child in &self.children {
            found.extend(Some(child).filter(|child| child.name == name));
            found.extend(child.descendants(name));
        }
        found
    }

    /// Where text goes that comes next: after the last child, or before any.
    fn place(&mut self) -> &mut String {
        match self.children.last_mut() {
            Some(child) => &mut child.tail,
            None => &mut self.text,
        }
    }
}

/// The root element.
fn parse(text: &str) -> Result<Element, String> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    // The document itself, around the root.
    let mut open = vec![Element::default()];
    loop {
        let event = reader.read_event();
        let event = event.map_err(|error| {
            format!("is no sound XML at byte {}: {error}", reader.error_position())
        })?;
        match event {
            Event::Start(tag) => {
                if open.len() > DEEPEST {
                    return Err(format!("has elements nested more than {DEEPEST} deep"));
                }
                let name = tag.local_name().into_inner().to_owned();
                open.push(Element { name, ..Element::default() });
            }
            // The reader holds its name against the tag that it ends.
            Event::End(_) => {
                let done = open.pop();
                if let Some(parent) = open.last_mut() {
                    parent.children.extend(done);
                }
            }
            Event::Text(text) => push(&mut open, &text),
            Event::CData(text) => push(&mut open, &text),
            Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                Ok(Some(character)) => push(&mut open, character.encode_utf8(&mut [0; 4])),
                _ => match resolve_xml_entity(&reference) {
                    Some(text) => push(&mut open, text),
                    None => push(&mut open, &format!("&{};", &*reference)),
                },
            },
            Event::Eof => break,
            Event::Empty(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_) => {}
        }
    }
    let mut document = open.pop().unwrap_or_default();
    if !open.is_empty() {
        return Err(format!("never ends <{}>", document.name));
    }
    document.children.pop().ok_or_else(|| "has no element".to_owned())
}

fn push(open: &mut [Element], text: &str) {
    if let Some(element) = open.last_mut() {
        element.place().push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_article_is_cut_as_medrag_cuts_it() {
        let article = include_str!("../../../tests/goldens/corpus/article.nxml");
        let expected = include_str!("../../../tests/goldens/corpus/article.jsonl");
        let sections = split(article).unwrap();
        let lines: Vec<serde_json::Value> =
            expected.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(sections.len(), lines.len());
        for (section, line) in sections.iter().zip(&lines) {
            assert_eq!(section.0, line["title"].as_str().unwrap());
            assert_eq!(section.1, line["content"].as_str().unwrap());
        }
    }

    #[test]
    fn what_is_no_article_is_said() {
        assert!(split("<a><b></a>").unwrap_err().starts_with("is no sound XML at byte"));
        assert_eq!(split("<a><b>").unwrap_err(), "never ends <b>");
        assert_eq!(split("").unwrap_err(), "has no element");
        assert_eq!(split("<a>text</a>").unwrap_err(), "has no <title>");
        let deep = "<a>".repeat(200);
        assert!(split(&deep).unwrap_err().contains("nested more than"));
    }
}
