//! Backslashes in a submission: the official scorer passes each line through the template of a Python `re.sub`.
//!
//! Its call has pattern, line and blank in the wrong places: meant to close up blanks, it replaces the one blank of the
//! text `" "` by the line, read as a template. A line without backslashes comes out as it went in.

use std::borrow::Cow;

/// The line with its escapes expanded.
///
/// # Errors
/// The escape at which Python raises: a letter that means nothing, a group that is not there, a backslash at the end.
pub(super) fn expand(line: &str) -> Result<Cow<'_, str>, String> {
    if !line.contains('\\') {
        return Ok(Cow::Borrowed(line));
    }
    let mut expanded = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\\') {
        expanded += &rest[..at];
        rest = &rest[at..];
        let (text, length) = escape(rest)?;
        expanded += &text;
        rest = &rest[length..];
    }
    expanded += rest;
    Ok(Cow::Owned(expanded))
}

/// What the escape that `text` begins with stands for, and its length in bytes.
fn escape(text: &str) -> Result<(String, usize), String> {
    let Some(letter) = text[1..].chars().next() else { return Err("\\".to_owned()) };
    let whole = 1 + letter.len_utf8();
    let one = |character: char| Ok((character.to_string(), whole));
    match letter {
        'a' => one('\u{7}'),
        'b' => one('\u{8}'),
        'f' => one('\u{c}'),
        'n' => one('\n'),
        'r' => one('\r'),
        't' => one('\t'),
        'v' => one('\u{b}'),
        '\\' => one('\\'),
        'g' => whole_match(text),
        '0' => octal(text, 1 + digits(&text[1..], 8).min(3)),
        // Two digits are a group, three of the right ones a character; there is no group but the whole match.
        '1'..='9' if digits(&text[1..], 8) >= 3 => octal(text, 4),
        '1'..='9' => Err(text[..1 + digits(&text[1..], 10).min(2)].to_owned()),
        _ if letter.is_ascii_alphabetic() => Err(text[..whole].to_owned()),
        _ => Ok((text[..whole].to_owned(), whole)),
    }
}

/// How many digits of a base `text` begins with.
fn digits(text: &str, base: u32) -> usize {
    text.chars().take_while(|c| c.is_digit(base)).count()
}

/// The character of an escape with octal digits, `length` bytes in all.
fn octal(text: &str, length: usize) -> Result<(String, usize), String> {
    let escape = &text[..length];
    match u8::from_str_radix(&escape[1..], 8) {
        Ok(code) => Ok((char::from(code).to_string(), length)),
        Err(_) => Err(escape.to_owned()),
    }
}

/// `\g<0>`, which is the blank that was matched.
fn whole_match(text: &str) -> Result<(String, usize), String> {
    let name = text[2..].strip_prefix('<').and_then(|rest| rest.split_once('>'));
    match name {
        Some((name, _)) if !name.is_empty() && name.chars().all(|c| c == '0') => {
            Ok((" ".to_owned(), 4 + name.len()))
        }
        _ => Err("\\g".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_backslashes_comes_out_as_it_went_in() {
        let line = "ms-test-1 1 2 A  b\tc";
        assert!(matches!(expand(line), Ok(Cow::Borrowed(text)) if text == line));
    }

    #[test]
    fn escapes_are_expanded_as_python_does() {
        let cases = [
            (r"a\nb\tc\\d\ae\vf\rg\fh\b", "a\nb\tc\\d\u{7}e\u{b}f\rg\u{c}h\u{8}"),
            (r#"\"q\" \. \é \%"#, r#"\"q\" \. \é \%"#),
            (r"\101\x".trim_end_matches(r"\x"), "A"),
            (r"\1019 \0 \07 \0123", "A9 \0 \u{7} \n3"),
            (r"\377", "ÿ"),
            (r"x\g<0>y\g<00>z", "x y z"),
            (r"\\n", r"\n"),
        ];
        for (line, expected) in cases {
            assert_eq!(expand(line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn python_raises_at_these() {
        for (line, escape) in [
            (r"a \d", r"\d"),
            (r"\x41", r"\x"),
            (r"\1", r"\1"),
            (r"\108", r"\10"),
            (r"\999", r"\99"),
            (r"\400", r"\400"),
            (r"\g<1>", r"\g"),
            (r"\g<a>", r"\g"),
            (r"\g0", r"\g"),
            (r"\g<>", r"\g"),
            (r"end\", r"\"),
        ] {
            assert_eq!(expand(line).unwrap_err(), escape, "{line}");
        }
    }
}
