//! What every page is made with: templates, one style, escaping, and a content policy that allows the page's own script alone.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error, Output, State, UndefinedBehavior, context};
use sha2::{Digest, Sha256};

use super::ReportError;
use crate::text::spell_hidden;

const STYLE: &str = include_str!("report.css");
const TEMPLATES: [(&str, &str); 11] = [
    ("shell.html", include_str!("shell.html")),
    ("noise.html", include_str!("noise.html")),
    ("warnings.html", include_str!("warnings.html")),
    ("notes.html", include_str!("notes.html")),
    ("run.html", include_str!("run/page.html")),
    ("making.html", include_str!("run/making.html")),
    ("case.html", include_str!("item/case.html")),
    ("card.html", include_str!("item/card.html")),
    ("trajectory.html", include_str!("item/trajectory.html")),
    ("beside.html", include_str!("beside.html")),
    ("rating.html", include_str!("rating/page.html")),
];

/// A kind of page.
pub struct Page {
    pub template: &'static str,
    /// CSS rules besides those that all pages share.
    pub style: &'static str,
    pub script: &'static str,
}

impl Page {
    /// The page with these values in its template.
    ///
    /// # Errors
    /// A template that cannot be filled in.
    pub fn render(&self, values: Value) -> Result<String, ReportError> {
        let context = context! {
            style => Value::from_safe_string(format!("{STYLE}{}", self.style)),
            script => Value::from_safe_string(self.script.to_owned()),
            policy => Value::from_safe_string(content_policy(self.script)),
            ..values
        };
        Ok(environment()?.get_template(self.template)?.render(context)?)
    }
}

/// The policy for a page whose only running script is exactly `script`: nothing may be loaded.
pub fn content_policy(script: &str) -> String {
    let hash = STANDARD.encode(Sha256::digest(script));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'"
    )
}

/// Templates of pages, where what is undefined is an error and every value is escaped.
///
/// # Errors
/// A template that cannot be parsed.
fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(write_value);
    environment.add_filter("grouped", grouped);
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    Ok(environment)
}

/// Writes a template's value: what the template itself calls safe as it is, everything else escaped.
fn write_value(out: &mut Output, _: &mut State, value: &Value) -> Result<(), Error> {
    if value.is_safe() {
        out.write_str(value.as_str().unwrap_or_default())?;
    } else if let Some(text) = value.as_str() {
        out.write_str(&escape(text))?;
    } else if !value.is_none() {
        out.write_str(&escape(&value.to_string()))?;
    }
    Ok(())
}

/// The text for an element's content or a quoted attribute, harmless there: markup is escaped, characters that hide or reorder are spelled out.
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

/// A count with a comma after every three digits.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_hash_of_the_script() {
        let policy = content_policy("");
        assert!(policy.contains("'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"));
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

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
