//! The JSON objects in a text as models write them: single or curly quotes, raw line breaks, comments, words around, brackets left open.

use std::ops::Range;

use serde_json::{Map, Value};

/// Nesting beyond which nothing is read.
const MAX_DEPTH: usize = 64;

/// An object of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub object: Map<String, Value>,
    /// Its bytes in the text.
    pub place: Range<usize>,
    /// Whether the text stops before the object ends; what it was saying last may be cut.
    pub is_cut: bool,
}

/// Every object of a text that is not part of another, in their order.
///
/// A string ends at the quote that opened it where what follows can follow a string, so quotes and apostrophes in it need no
/// backslash. `=` stands for `:`, a line's end for a comma, Python's and JavaScript's words for JSON's; other bare words are strings.
/// Keys without a value are dropped. No words are made up.
pub fn objects(text: &str) -> Vec<Found> {
    let mut reader = Reader { rest: text, depth: 0, is_cut: false };
    let mut found = Vec::new();
    while let Some(open) = reader.rest.find('{') {
        let start = text.len() - reader.rest.len() + open;
        reader.skip(open + 1);
        if is_latex(&text[..start]) {
            continue;
        }
        let object = reader.object();
        let place = start..text.len() - reader.rest.len();
        found.push(Found { object, place, is_cut: reader.is_cut });
        (reader.depth, reader.is_cut) = (0, false);
    }
    found
}

/// Whether what a brace follows is a command of LaTeX: `\boxed{`.
fn is_latex(before: &str) -> bool {
    let command = before.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    command.len() < before.len() && command.ends_with('\\')
}

/// The list that a text is, fenced or not.
pub fn list(text: &str) -> Option<Vec<Value>> {
    let text = text.trim().trim_start_matches('`');
    let text = text.strip_prefix("json").unwrap_or(text).trim_start();
    let rest = text.strip_prefix('[')?;
    let mut reader = Reader { rest, depth: 1, is_cut: false };
    let list = reader.array();
    (!list.is_empty()).then_some(list)
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
    is_cut: bool,
}

impl<'a> Reader<'a> {
    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Takes the next character if it is one of these.
    fn take(&mut self, of: &[char]) -> bool {
        match self.peek().filter(|c| of.contains(c)) {
            Some(c) => {
                self.skip(c.len_utf8());
                true
            }
            None => false,
        }
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            let end = match self.rest.as_bytes() {
                [b'/', b'/', ..] | [b'#', ..] => self.rest.find('\n'),
                [b'/', b'*', ..] => self.rest.find("*/").map(|at| at + 2),
                _ => return,
            };
            self.skip(end.unwrap_or(self.rest.len()));
        }
    }

    /// What follows an opening brace.
    fn object(&mut self) -> Map<String, Value> {
        let mut object = Map::new();
        loop {
            self.skip_blank();
            match self.peek() {
                None => {
                    self.is_cut = true;
                    return object;
                }
                Some('}') => {
                    self.skip(1);
                    return object;
                }
                // A bracket that was opened outside of the object ends it; the caller sees it.
                Some(']') if self.depth > 0 => return object,
                // No key: the braces around stand in prose.
                Some('{' | '[') if object.is_empty() && self.depth == 0 => return object,
                Some(',' | ';' | ']' | '{' | '[' | ':' | ')') => {
                    self.skip(1);
                }
                Some(_) => {
                    let key = self.key();
                    self.skip_blank();
                    if self.take(&[':', '=', '：']) {
                        self.take(&['>']);
                        if let Some(value) = self.value() {
                            object.insert(key, value);
                        }
                    }
                }
            }
        }
    }

    /// What follows an opening bracket.
    fn array(&mut self) -> Vec<Value> {
        let mut array = Vec::new();
        loop {
            self.skip_blank();
            match self.peek() {
                None => {
                    self.is_cut = true;
                    return array;
                }
                Some(']' | ')') => {
                    self.skip(1);
                    return array;
                }
                Some('}') => return array,
                Some(',' | ';' | ':') => self.skip(1),
                Some(_) => array.extend(self.value()),
            }
        }
    }

    fn key(&mut self) -> String {
        match self.peek().and_then(closing) {
            Some(_) => self.string(true),
            None => {
                let ends =
                    |c: char| matches!(c, ':' | '=' | '：' | ',' | '{' | '}' | '[' | ']' | '\n');
                let length = self.rest.find(ends).unwrap_or(self.rest.len());
                let key = self.rest[..length].trim().trim_matches('*').to_owned();
                self.skip(length);
                key
            }
        }
    }

    /// `None` where there is none, or it lies too deep.
    fn value(&mut self) -> Option<Value> {
        self.skip_blank();
        match self.peek()? {
            c @ ('{' | '[' | '(') => {
                if self.depth >= MAX_DEPTH {
                    self.skip(self.rest.len());
                    return None;
                }
                self.skip(1);
                self.depth += 1;
                let value = match c {
                    '{' => Value::Object(self.object()),
                    _ => Value::Array(self.array()),
                };
                self.depth -= 1;
                Some(value)
            }
            ',' | '}' | ']' | ')' => None,
            c if closing(c).is_some() => Some(Value::String(self.string(false))),
            _ => Some(self.bare()),
        }
    }

    /// A number, a word of JSON's, Python's or JavaScript's, or a string that has no quotes.
    fn bare(&mut self) -> Value {
        let ends = |c: char| matches!(c, ',' | '}' | ']' | '\n');
        let length = self.rest.find(ends).unwrap_or(self.rest.len());
        let whole = &self.rest[..length];
        let word = match whole.find(" //").or_else(|| whole.find(" #")) {
            Some(comment) => whole[..comment].trim(),
            None => whole.trim(),
        };
        self.skip(length);
        match word {
            "null" | "None" | "undefined" | "NaN" | "nan" => Value::Null,
            "true" | "True" | "TRUE" => Value::Bool(true),
            "false" | "False" | "FALSE" => Value::Bool(false),
            _ => match serde_json::from_str::<serde_json::Number>(word) {
                Ok(number) => Value::Number(number),
                Err(_) => Value::String(word.to_owned()),
            },
        }
    }

    /// A quoted string; of a key, the quote before a colon ends it.
    fn string(&mut self, is_key: bool) -> String {
        // Python's three quotes are one.
        let triple = ["\"\"\"", "'''"].into_iter().find(|quotes| self.rest.starts_with(quotes));
        if let Some(quotes) = triple {
            self.skip(3);
            let end = self.rest.find(quotes);
            let text = self.rest[..end.unwrap_or(self.rest.len())].to_owned();
            self.is_cut |= end.is_none();
            self.skip(end.map_or(self.rest.len(), |end| end + 3));
            return text;
        }
        let Some((open, close)) = self.peek().and_then(|open| Some((open, closing(open)?))) else {
            return String::new();
        };
        self.skip(open.len_utf8());
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.skip(c.len_utf8());
            match c {
                '\\' => self.escaped(&mut text),
                c if close.contains(c) && ends_string(self.rest, is_key) => return text,
                c => text.push(c),
            }
        }
        self.is_cut = true;
        text
    }

    /// What follows a backslash; one that escapes nothing stands for itself, as in LaTeX.
    fn escaped(&mut self, text: &mut String) {
        let Some(c) = self.peek() else {
            return;
        };
        let code = self.rest.get(1..5).filter(|_| c == 'u');
        let code = code.and_then(|code| u32::from_str_radix(code, 16).ok());
        self.skip(c.len_utf8());
        match c {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'b' | 'f' if !self.peek().is_some_and(char::is_alphabetic) => text.push(' '),
            'u' if code.is_some() => {
                self.skip(4);
                text.push(self.character(code.unwrap_or_default()));
            }
            '"' | '\'' | '\\' | '/' | '\n' => text.push(c),
            c => text.extend(['\\', c]),
        }
    }

    /// A code point, or one of two surrogates.
    fn character(&mut self, high: u32) -> char {
        let low = self.rest.strip_prefix("\\u").and_then(|rest| rest.get(..4));
        let low = low.and_then(|low| u32::from_str_radix(low, 16).ok());
        match low.filter(|low| (0xD800..0xDC00).contains(&high) && (0xDC00..0xE000).contains(low)) {
            Some(low) => {
                self.skip(6);
                char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
            }
            None => char::from_u32(high),
        }
        .unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// The quotes that end what a quote opens.
fn closing(open: char) -> Option<&'static str> {
    match open {
        '"' => Some("\""),
        '\'' => Some("'"),
        '`' => Some("`"),
        '“' | '”' | '„' => Some("”“\""),
        '‘' | '’' | '‚' => Some("’‘'"),
        '«' => Some("»"),
        _ => None,
    }
}

/// Whether what follows a quote can follow a string: an end, a key's colon, a comma before something that can be a value or a key, or a
/// new line that begins with a quote.
fn ends_string(rest: &str, is_key: bool) -> bool {
    let after = rest.trim_start();
    let is_new_line = rest[..rest.len() - after.len()].contains('\n');
    let mut characters = after.chars();
    match characters.next() {
        None | Some('}' | ']') => true,
        Some(':' | '=' | '：') => is_key,
        Some('/' | '#') => after.starts_with("//") || after.starts_with("/*") || is_new_line,
        Some(',') => {
            let next = characters.as_str().trim_start();
            let word = next.split(|c: char| !c.is_alphanumeric() && c != '_').next();
            let word = word.unwrap_or_default();
            let follows = next[word.len()..].trim_start();
            match next.chars().next() {
                None | Some('{' | '[' | '}' | ']' | '/' | '#' | '-' | ',') => true,
                Some(c) if closing(c).is_some() => true,
                Some(_) => {
                    let is_literal =
                        matches!(word, "true" | "false" | "null" | "True" | "False" | "None")
                            || word.starts_with(|c: char| c.is_ascii_digit());
                    follows.starts_with([':', '='])
                        || is_literal && follows.starts_with([',', ']', '}', '.'])
                }
            }
        }
        Some(c) => is_new_line && closing(c).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn first(text: &str) -> Value {
        Value::Object(objects(text).into_iter().next().unwrap().object)
    }

    #[test]
    fn what_is_json_is_read_as_it_is() {
        let text = r#"{"a": [1, 2.50, -3e2, true, null, {"b": "\"x\" \u00e9 \ud83d\ude00 \\ \/"}], "c": ""}"#;
        assert_eq!(first(text), serde_json::from_str::<Value>(text).unwrap());
        assert!(!objects(text)[0].is_cut);
    }

    #[test]
    fn quotes_of_any_kind_and_none() {
        let expected = json!({"answer": "E", "why": "it's the patient's \"worst\" day", "n": 0.9});
        for text in [
            r#"{'answer': 'E', 'why': 'it's the patient's "worst" day', 'n': 0.9}"#,
            r#"{“answer”: “E”, “why”: “it's the patient's "worst" day”, “n”: 0.9}"#,
            r#"{answer: "E", why: "it's the patient's "worst" day", n: 0.9}"#,
            r#"{"answer" = "E", "why" = "it's the patient's \"worst\" day", "n" = 0.9}"#,
            "{\"answer\": E\n \"why\": \"it's the patient's \"worst\" day\"\n \"n\": .9e0\n}",
        ] {
            let mut read = first(text);
            if read["n"] == ".9e0" {
                read["n"] = 0.9.into();
            }
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn line_breaks_comments_commas_and_words_of_other_languages() {
        let text = "{\n// the list\n\"cot\": [\"a\nb\", 'c',, ], # reasons\n\"ok\": True, /* no */ \"x\": None, \"y\": NaN,}";
        assert_eq!(first(text), json!({"cot": ["a\nb", "c"], "ok": true, "x": null, "y": null}));
        assert_eq!(first(r#"{"a": "x", y", "b": 1}"#), json!({"a": "x\", y", "b": 1}));
        assert_eq!(first(r#"{"a": "5, 10", "b": "x"}"#), json!({"a": "5, 10", "b": "x"}));
        assert_eq!(first(r#"{"a": "\boxed{E} \alpha"}"#), json!({"a": "\\boxed{E} \\alpha"}));
    }

    #[test]
    fn what_is_cut_keeps_what_was_said() {
        let cut = &objects(r#"{"answer": "B", "confidence": 0.85, "cot": ["a", "b c"#)[0];
        assert!(cut.is_cut);
        assert_eq!(
            json!(cut.object),
            json!({"answer": "B", "confidence": 0.85, "cot": ["a", "b c"]})
        );
        let key = &objects(r#"{"answer": "B", "conf"#)[0];
        assert_eq!(json!(key.object), json!({"answer": "B"}));
    }

    #[test]
    fn words_around_and_braces_in_prose() {
        let all = objects(
            "Given {the case}, \\boxed{E}, {a {\"answer\": \"B\"} and {\"answer\": \"C\"} {x}",
        );
        let with: Vec<_> = all.iter().filter(|one| one.object.contains_key("answer")).collect();
        assert_eq!(with.len(), 2);
        assert_eq!(with[0].object["answer"], "B");
        assert_eq!(first("{\"a\": {\"b\": [1, 2}, \"c\": 3}"), json!({"a": {"b": [1, 2]}, "c": 3}));
    }

    #[test]
    fn hostile_text_ends() {
        let deep = "{\"answer\":[".repeat(50_000);
        objects(&deep);
        objects(&"{".repeat(200_000));
        objects(&"{'\"".repeat(50_000));
        objects(&format!("{{\"{}", "\",  ".repeat(50_000)));
    }
}
