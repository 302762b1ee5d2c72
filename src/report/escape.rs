//! Makes any text harmless inside an HTML page: markup is escaped, characters that hide or reorder text are spelled out.

use minijinja::{Error, Output, State, Value};

use crate::text::spell_hidden;

/// Writes a template's value: what the template itself calls safe as it is, everything else escaped.
pub fn write_value(out: &mut Output, _: &mut State, value: &Value) -> Result<(), Error> {
    if value.is_safe() {
        out.write_str(value.as_str().unwrap_or_default())?;
    } else if let Some(text) = value.as_str() {
        out.write_str(&escape(text))?;
    } else if !value.is_none() {
        out.write_str(&escape(&value.to_string()))?;
    }
    Ok(())
}

/// The text for an element's content or a quoted attribute.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for character in spell_hidden(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&#34;"),
            '\'' => escaped.push_str("&#39;"),
            plain => escaped.push(plain),
        }
    }
    escaped
}

/// `1 call`, `2 calls`.
pub fn plural(count: u32, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_markup_in_text_and_in_attributes() {
        assert_eq!(
            escape(r#"</script><a title='x' b="y">&amp;]]>"#),
            "&lt;/script&gt;&lt;a title=&#39;x&#39; b=&#34;y&#34;&gt;&amp;amp;]]&gt;"
        );
    }

    #[test]
    fn spells_out_what_hides_or_reorders() {
        assert_eq!(escape("a\0b\u{202E}c\u{7f}"), "a⟨U+0000⟩b⟨U+202E⟩c⟨U+007F⟩");
        assert_eq!(escape("tab\tline\r\nعربي é 漢"), "tab\tline\r\nعربي é 漢");
    }
}
