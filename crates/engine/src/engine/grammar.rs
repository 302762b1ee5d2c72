//! The grammars of constrained decoding.

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
/// What a text must match.
pub enum Grammar {
    /// Any JSON object.
    JsonObject,
    /// A JSON schema, as JSON text.
    JsonSchema(String),
    /// A regular expression that the whole text matches.
    Regex(String),
    /// llguidance's variant of Lark.
    Lark(String),
}

impl Grammar {
    /// As it was sent.
    pub fn text(&self) -> &str {
        match self {
            Grammar::JsonObject => "",
            Grammar::JsonSchema(text) | Grammar::Regex(text) | Grammar::Lark(text) => text,
        }
    }
}
