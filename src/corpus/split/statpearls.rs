//! Articles of StatPearls as MedRAG (Xiong et al. 2024) cuts them: by section and subtitle, short paragraphs joined.

use roxmltree::{Document, Node, ParsingOptions};

use crate::text::strip;

/// A paragraph shorter than this joins the chunk before it.
const SHORT: usize = 200;
/// Where a chunk stops growing.
const LONG: usize = 1000;
/// Deeper than any article, and with more elements and texts; what has more is refused.
const DEEPEST: usize = 128;
const MOST_NODES: u32 = 1 << 20;
const DASHES: &str = " -- ";

/// A chunk's title, `article -- section` or `article -- section -- subtitle`, and its text.
type Section = (String, String);
type Element<'a> = Node<'a, 'a>;

/// The chunks of one `.nxml` file, in order.
///
/// # Errors
/// What is not well-formed, or has no title, as a sentence about the file.
pub fn split(text: &str) -> Result<Vec<Section>, String> {
    if text.contains("<!ENTITY") {
        return Err("declares entities, which can make a text of any length".to_owned());
    }
    // Articles name a DTD, which is not read.
    let options =
        ParsingOptions { allow_dtd: true, nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options);
    let document = document.map_err(|error| format!("is no sound XML: {error}"))?;
    let all = || document.root_element().descendants().skip(1).filter(Node::is_element);
    if all().any(|element| element.ancestors().nth(DEEPEST).is_some()) {
        return Err(format!("has elements nested more than {DEEPEST} deep"));
    }
    let title = all().find(|element| element.has_tag_name("title")).ok_or("has no <title>")?;
    let mut sections = Vec::new();
    for section in all().filter(|element| element.has_tag_name("sec")) {
        cut(&text_from(title.first_child()), section, &mut sections);
    }
    Ok(sections)
}

/// The chunks of one section, its inner sections left out.
fn cut(article: &str, section: Element<'_>, chunks: &mut Vec<Section>) {
    let own = section.children().find(|child| child.has_tag_name("title"));
    let name = own.map(|title| text_from(title.first_child())).unwrap_or_default();
    let plain = [article, strip(&name)].join(DASHES);
    let mut title = plain.clone();
    // Whether the last chunk may grow.
    let mut is_open = false;
    let mut follows_subtitle = false;
    for child in section.children().filter(Node::is_element) {
        let begins_subtitle = is_subtitle(child);
        if begins_subtitle {
            is_open = false;
            let mut parts: Vec<&str> = title.split(DASHES).take(2).collect();
            let subtitle = content(child);
            parts.push(&subtitle);
            title = parts.join(DASHES);
        } else if child.has_tag_name("p") {
            let text = content(child);
            if !is_joined(chunks, is_open && length(&text) < SHORT, &text) {
                chunks.push((title.clone(), text));
            }
            is_open = true;
        } else if child.has_tag_name("list") {
            let items: Vec<String> =
                child.children().filter(Node::is_element).map(content).collect();
            let joined = items.join(" ");
            if !is_joined(chunks, is_open, &joined) {
                is_open = length(&joined) < LONG;
                let texts = if is_open { vec![joined] } else { items };
                chunks.extend(texts.into_iter().map(|text| (title.clone(), text)));
            }
            if follows_subtitle {
                title.clone_from(&plain);
            }
        }
        follows_subtitle = begins_subtitle;
    }
}

/// Whether a text joins the last chunk, which may grow.
fn is_joined(chunks: &mut [Section], may_grow: bool, text: &str) -> bool {
    let last = chunks.last_mut().filter(|_| may_grow);
    let last = last.filter(|(_, before)| length(before) + length(text) < LONG);
    last.map(|(_, before)| *before = format!("{before} {text}")).is_some()
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

/// The text from a node up to the next element, as Python's ElementTree keeps it.
fn text_from(first: Option<Element<'_>>) -> String {
    let siblings = std::iter::successors(first, Node::next_sibling);
    let before = siblings.take_while(|node| !node.is_element());
    before.filter(Node::is_text).filter_map(|node| node.text()).collect()
}

/// All of its text, white space at the ends of its parts gone. What is empty still leaves a space.
fn content(element: Element<'_>) -> String {
    let mut text = strip(&text_from(element.first_child())).to_owned();
    for child in element.children().filter(Node::is_element) {
        add(&mut text, &content(child));
        let tail = text_from(child.next_sibling());
        if !strip(&tail).is_empty() {
            add(&mut text, strip(&tail));
        }
    }
    strip(&text).to_owned()
}

/// A paragraph of one bold text and nothing after it.
fn is_subtitle(element: Element<'_>) -> bool {
    let mut children = element.children().filter(Node::is_element);
    let (first, second) = (children.next(), children.next());
    let is_bold = first.is_some_and(|only| {
        only.has_tag_name("bold") && strip(&text_from(only.next_sibling())).is_empty()
    });
    element.has_tag_name("p") && is_bold && second.is_none()
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
        assert!(split("<a><b></a>").unwrap_err().starts_with("is no sound XML: "));
        for text in ["<a><b>", "", "<a><title>a&b;</title></a>"] {
            assert!(split(text).unwrap_err().starts_with("is no sound XML: "));
        }
        let entity = "<!DOCTYPE a [<!ENTITY b 'b'>]><a>&b;</a>";
        assert!(split(entity).unwrap_err().contains("entities"));
        assert_eq!(split("<a>text</a>").unwrap_err(), "has no <title>");
        let deep = "<a>".repeat(200) + &"</a>".repeat(200);
        assert!(split(&deep).unwrap_err().contains("nested more than"));
    }
}
