//! The grammars of constrained decoding.

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Grammar {
    /// Any JSON object.
    JsonObject,
    /// A JSON schema, as JSON text.
    JsonSchema(String),
    Regex(String),
    /// llguidance's variant of Lark.
    Lark(String),
}
