//! Values as Python writes them, since templates were written for Python: `str`, `repr` and `json.dumps`.

use std::fmt::Write;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};

/// Lists within lists that are written; templates are not ours, and a thread's stack is not theirs.
const DEEPEST: usize = 100;
/// Spaces that `tojson` indents by at most, for the same reason.
pub(super) const MOST_INDENT: usize = 16;

/// What `str()` gives; nothing of what is undefined.
pub(super) fn to_str(value: &Value) -> Result<String, Error> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None if value.is_undefined() => Ok(String::new()),
        None => {
            let mut text = String::new();
            write_repr(value, &mut text, 0)?;
            Ok(text)
        }
    }
}

fn write_repr(value: &Value, text: &mut String, depth: usize) -> Result<(), Error> {
    if depth > DEEPEST {
        return Err(too_deep());
    }
    match value.kind() {
        ValueKind::Undefined => text.push_str("Undefined"),
        ValueKind::None => text.push_str("None"),
        ValueKind::Bool => text.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => text.push_str(&number(value)?),
        ValueKind::String => quote(value.as_str().unwrap_or_default(), text),
        ValueKind::Seq | ValueKind::Iterable => {
            let (open, close) = if value.is_tuple() { ("(", ")") } else { ("[", "]") };
            text.push_str(open);
            let mut count = 0;
            for item in value.try_iter()? {
                text.push_str(if count > 0 { ", " } else { "" });
                write_repr(&item, text, depth + 1)?;
                count += 1;
            }
            text.push_str(if value.is_tuple() && count == 1 { "," } else { "" });
            text.push_str(close);
        }
        ValueKind::Map => {
            text.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_repr(&key, text, depth + 1)?;
                text.push_str(": ");
                write_repr(&value.get_item(&key)?, text, depth + 1)?;
            }
            text.push('}');
        }
        _ => text.push_str(&value.to_string()),
    }
    Ok(())
}

/// In single quotes, unless only these occur in the text.
fn quote(value: &str, text: &mut String) {
    let mark = if value.contains('\'') && !value.contains('"') { '"' } else { '\'' };
    text.push(mark);
    for c in value.chars() {
        match c {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\\' => text.push_str("\\\\"),
            c if c == mark => text.extend(['\\', c]),
            c if c.is_control() || (c.is_whitespace() && c != ' ') => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0xff => write!(text, "\\x{code:02x}"),
                    _ => write!(text, "\\u{code:04x}"),
                };
            }
            c => text.push(c),
        }
    }
    text.push(mark);
}

fn number(value: &Value) -> Result<String, Error> {
    match value.is_integer() {
        true => Ok(value.to_string()),
        false => Ok(float(f64::try_from(value.clone())?)),
    }
}

/// The shortest digits that read back as the same number; with an exponent outside of 1e-4 .. 1e16.
fn float(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "nan"
        } else if value > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned();
    }
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{value:?}")
}

/// The arguments of `json.dumps` that transformers' `tojson` takes.
#[derive(Debug, Default)]
pub(super) struct Dumps {
    pub ensure_ascii: bool,
    /// What a level is indented by; without it all is one line.
    pub indent: Option<String>,
    /// Between items, and between a key and its value.
    pub separators: Option<(String, String)>,
    pub sort_keys: bool,
}

impl Dumps {
    pub fn write(&self, value: &Value) -> Result<String, Error> {
        let mut text = String::new();
        self.write_value(value, &mut text, 0)?;
        Ok(text)
    }

    fn separators(&self) -> (&str, &str) {
        match (&self.separators, &self.indent) {
            (Some((item, key)), _) => (item, key),
            (None, Some(_)) => (",", ": "),
            (None, None) => (", ", ": "),
        }
    }

    fn write_value(&self, value: &Value, text: &mut String, depth: usize) -> Result<(), Error> {
        if depth > DEEPEST {
            return Err(too_deep());
        }
        match value.kind() {
            ValueKind::None => text.push_str("null"),
            ValueKind::Bool => text.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => text.push_str(&json_number(value)?),
            ValueKind::String => self.quote(value.as_str().unwrap_or_default(), text),
            ValueKind::Seq => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.write_items('[', &items, ']', text, depth, |dumps, item, text| {
                    dumps.write_value(item, text, depth + 1)
                })?;
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sort_keys {
                    keys.sort();
                }
                let (_, separator) = self.separators();
                self.write_items('{', &keys, '}', text, depth, |dumps, key, text| {
                    dumps.quote(&json_key(key)?, text);
                    text.push_str(separator);
                    dumps.write_value(&value.get_item(key)?, text, depth + 1)
                })?;
            }
            kind => {
                let problem = format!("tojson: what is {kind} cannot be written as JSON");
                return Err(Error::new(ErrorKind::BadSerialization, problem));
            }
        }
        Ok(())
    }

    fn write_items(
        &self,
        open: char,
        items: &[Value],
        close: char,
        text: &mut String,
        depth: usize,
        write_item: impl Fn(&Dumps, &Value, &mut String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (separator, _) = self.separators();
        let line = |text: &mut String, depth: usize| {
            if let Some(indent) = &self.indent {
                text.push('\n');
                text.push_str(&indent.repeat(depth));
            }
        };
        text.push(open);
        for (index, item) in items.iter().enumerate() {
            text.push_str(if index > 0 { separator } else { "" });
            line(text, depth + 1);
            write_item(self, item, text)?;
        }
        if !items.is_empty() {
            line(text, depth);
        }
        text.push(close);
        Ok(())
    }

    fn quote(&self, value: &str, text: &mut String) {
        text.push('"');
        for c in value.chars() {
            match c {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '\u{8}' => text.push_str("\\b"),
                '\u{c}' => text.push_str("\\f"),
                '\0'..'\u{20}' => push_code(u32::from(c), text),
                ' '..='~' => text.push(c),
                // What stands in for a character of a control token stays what it is.
                '\u{fdd0}'..='\u{fdef}' | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' => {
                    text.push(c);
                }
                _ if self.ensure_ascii => {
                    let mut pair = [0; 2];
                    c.encode_utf16(&mut pair).iter().for_each(|&unit| push_code(unit.into(), text));
                }
                _ => text.push(c),
            }
        }
        text.push('"');
    }
}

fn push_code(code: u32, text: &mut String) {
    let _ = write!(text, "\\u{code:04x}");
}

fn json_number(value: &Value) -> Result<String, Error> {
    Ok(match number(value)?.as_str() {
        "nan" => "NaN".to_owned(),
        "inf" => "Infinity".to_owned(),
        "-inf" => "-Infinity".to_owned(),
        finite => finite.to_owned(),
    })
}

fn json_key(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
        ValueKind::Number => json_number(key),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_owned()),
        ValueKind::None => Ok("null".to_owned()),
        kind => {
            let problem = format!("tojson: a key that is {kind} cannot be written as JSON");
            Err(Error::new(ErrorKind::BadSerialization, problem))
        }
    }
}

fn too_deep() -> Error {
    let problem = format!("a value holds others more than {DEEPEST} deep");
    Error::new(ErrorKind::InvalidOperation, problem)
}
