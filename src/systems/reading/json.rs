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
}

/// Every object of a text that is not part of another, in their order.
///
/// A string ends at the quote that opened it where what follows can follow a string, so quotes and apostrophes in it need no
/// backslash. `=` stands for `:`, a line's end for a comma, Python's and JavaScript's words for JSON's; other bare words are strings.
/// Keys without a value are dropped. No words are made up.
pub fn objects(text: &str) -> Vec<Found> {
    let mut reader = Reader { rest: text, depth: 0 };
    let mut found = Vec::new();
    while let Some(open) = reader.rest.find('{') {
        let start = text.len() - reader.rest.len() + open;
        reader.skip(open + 1);
        let object = reader.object();
        let place = start..text.len() - reader.rest.len();
        found.push(Found { object, place });
        reader.depth = 0;
    }
    found
}

/// The list that a text is, fenced or not.
pub fn list(text: &str) -> Option<Vec<Value>> {
    let text = text.trim().trim_start_matches('`');
    let rest = text.strip_prefix("json").unwrap_or(text).trim_start().strip_prefix('[')?;
    let list = Reader { rest, depth: 1 }.array();
    (!list.is_empty()).then_some(list)
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.skip(next.len_utf8());
        Some(next)
    }

    /// Takes the next character if it is one of these.
    fn take(&mut self, of: &[char]) -> bool {
        self.rest.strip_prefix(of).map(|rest| self.rest = rest).is_some()
    }

    /// Takes what stands before one of these.
    fn until(&mut self, ends: &[char]) -> &'a str {
        let (taken, rest) = self.rest.split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
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

    /// Whether what is read ends here: at its own bracket, at one that was opened around it, which the caller sees, or with the text.
    fn ends(&mut self, own: &[char], around: &[char]) -> bool {
        self.skip_blank();
        self.rest.is_empty() || self.take(own) || self.rest.starts_with(around)
    }

    /// What follows an opening brace.
    fn object(&mut self) -> Map<String, Value> {
        let mut object = Map::new();
        let around: &[char] = if self.depth > 0 { &[']'] } else { &[] };
        while !self.ends(&['}'], around) {
            if self.take(&[',', ';', ']', '{', '[', ':', ')']) {
                continue;
            }
            let key = self.key();
            self.skip_blank();
            if self.take(&[':', '=', '：']) {
                self.take(&['>']);
                object.extend(self.value().map(|value| (key, value)));
            }
        }
        object
    }

    /// What follows an opening bracket.
    fn array(&mut self) -> Vec<Value> {
        let mut array = Vec::new();
        while !self.ends(&[']', ')'], &['}']) {
            if !self.take(&[',', ';', ':']) {
                array.extend(self.value());
            }
        }
        array
    }

    fn key(&mut self) -> String {
        match self.peek().and_then(closing) {
            Some(close) => self.string(close, true),
            None => self.until(&[':', '=', '：', ',', '{', '}', '[', ']', '\n']).trim().to_owned(),
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
                let value = if c == '{' { self.object().into() } else { self.array().into() };
                self.depth -= 1;
                Some(value)
            }
            ',' | '}' | ']' | ')' => None,
            c => Some(match closing(c) {
                Some(close) => self.string(close, false).into(),
                None => self.bare(),
            }),
        }
    }

    /// A number, a word of JSON's, Python's or JavaScript's, or a string that has no quotes.
    fn bare(&mut self) -> Value {
        let word = self.until(&[',', '}', ']', '\n']).trim();
        let json = match word {
            "None" | "undefined" | "NaN" | "nan" => "null",
            "True" | "TRUE" => "true",
            "False" | "FALSE" => "false",
            word => word,
        };
        serde_json::from_str(json).unwrap_or_else(|_| word.into())
    }

    /// A quoted string that one of `close` ends; of a key, the quote before a colon.
    fn string(&mut self, close: &str, is_key: bool) -> String {
        self.next();
        let mut text = String::new();
        while let Some(c) = self.next() {
            match c {
                '\\' => self.escaped(&mut text),
                c if close.contains(c) && ends_string(self.rest, is_key) => return text,
                c => text.push(c),
            }
        }
        text
    }

    /// What follows a backslash, as JSON has it; one that escapes nothing stands for itself, as in LaTeX.
    fn escaped(&mut self, text: &mut String) {
        // A sign, a character by its code, or by two codes.
        let lengths: &[usize] = if self.rest.starts_with(['b', 'f']) { &[] } else { &[1, 5, 11] };
        let code = lengths.iter().find_map(|length| {
            let code = format!("\"\\{}\"", self.rest.get(..*length)?);
            Some((*length, serde_json::from_str::<String>(&code).ok()?))
        });
        match code {
            Some((length, code)) => {
                self.skip(length);
                *text += &code;
            }
            None => match self.next() {
                Some(c @ ('\'' | '\n')) => text.push(c),
                Some(c) => text.extend(['\\', c]),
                None => {}
            },
        }
    }
}

/// The quotes that end what a quote opens.
fn closing(open: char) -> Option<&'static str> {
    match open {
        '"' => Some("\""),
        '\'' => Some("'"),
        '“' | '”' | '„' => Some("”“\""),
        '‘' | '’' | '‚' => Some("’‘'"),
        _ => None,
    }
}

/// Whether what follows a quote can follow a string: an end, a key's colon, a comma before something that can be a value or a key, or a
/// new line that begins with a quote or a comment.
fn ends_string(rest: &str, is_key: bool) -> bool {
    let after = rest.trim_start();
    let is_new_line = rest[..rest.len() - after.len()].contains('\n');
    let next = after.trim_start_matches(',').trim_start();
    let name = next.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').trim_start();
    match (after.chars().next(), next.chars().next()) {
        (None | Some('}' | ']'), _) => true,
        (Some(':' | '=' | '：'), _) => is_key,
        (Some('/'), _) => after.starts_with("//") || after.starts_with("/*") || is_new_line,
        (Some(','), None | Some('{' | '[' | '}' | ']' | '/' | '#' | '-' | ',')) => true,
        (Some(','), Some(c)) => closing(c).is_some() || name.starts_with([':', '=']),
        (Some(c), _) => is_new_line && (c == '#' || closing(c).is_some()),
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
        // Half a character, and a command of LaTeX that begins as one does.
        assert_eq!(first(r#"{a: "\ud83d \u00e9\unit"}"#), json!({"a": "\\ud83d é\\unit"}));
    }

    #[test]
    fn what_is_cut_keeps_what_was_said() {
        let cut = &objects(r#"{"answer": "B", "confidence": 0.85, "cot": ["a", "b c"#)[0];
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
