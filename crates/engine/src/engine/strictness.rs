//! What llguidance 1.9 lets through though a JSON schema forbids it: said in another way, which it keeps to, or refused by name.

use serde_json::{Map, Number, Value, json};

use super::EngineError;
use super::annotations::each;

/// All but `u`: a name has one spelling then, and is no other beside those that `properties` lists.
const ESCAPES: &str = r#"nrbtf\""#;

/// From it on a whole number may be another once it was read.
const MOST_EXACT: f64 = (1_u64 << 53) as f64;

const LONGEST_KIND: usize = 64;

/// Narrows patterns, bounds and names of additional properties to what a schema allows.
///
/// # Errors
/// A number with more digits than are kept; a `minProperties` that doubled names would come up to.
pub(super) fn tighten(schema: &mut Value) -> Result<(), EngineError> {
    let (mut problem, mut has_open_names) = (None, false);
    each(schema, &mut |fields| {
        problem = problem.take().or_else(|| find_problem(fields));
        has_open_names |= fields.contains_key("properties")
            && fields.get("additionalProperties") != Some(&Value::Bool(false));
        if let Some(Value::String(pattern)) = fields.get_mut("pattern") {
            *pattern = without_nul(pattern);
        }
        if let Some(Value::Object(patterns)) = fields.get_mut("patternProperties") {
            let own = std::mem::take(patterns).into_iter();
            patterns.extend(own.map(|(pattern, schema)| (without_nul(&pattern), schema)));
        }
        narrow(fields, ["exclusiveMinimum", "minimum"], ["exclusiveMaximum", "maximum"], 1.0);
        narrow(fields, ["exclusiveMaximum", "maximum"], ["exclusiveMinimum", "minimum"], -1.0);
    });
    if let (true, Value::Object(fields)) = (has_open_names, schema) {
        let options = fields.entry("x-guidance").or_insert_with(|| json!({}));
        if let Value::Object(options) = options {
            options.entry("json_allowed_escapes").or_insert_with(|| json!(ESCAPES));
        }
    }
    problem.map_or(Ok(()), |problem| Err(EngineError::Grammar(problem)))
}

fn find_problem(fields: &Map<String, Value>) -> Option<String> {
    let of = |(name, value): (&String, &Value)| match name.as_str() {
        "default" | "examples" => None,
        "const" | "enum" => inexact(value).map(|number| (name.clone(), number)),
        _ => Some(value)
            .filter(|value| value.is_number())
            .and_then(inexact)
            .map(|number| (name.clone(), number)),
    };
    if let Some((name, number)) = fields.iter().find_map(of) {
        return Some(format!("{number} in `{name}` has more digits than are kept"));
    }
    let required = fields.get("required").and_then(Value::as_array).map_or(0, Vec::len) as u64;
    let least = fields.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
    let is_open = fields.get("additionalProperties") != Some(&Value::Bool(false))
        || fields.contains_key("patternProperties");
    (is_open && least > required + 1).then(|| {
        format!("a name that comes twice would count twice for `minProperties` {least}: list the names under `required`")
    })
}

/// A number in a value that would be written as another.
fn inexact(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => {
            let double = number.as_f64().unwrap_or(f64::NAN);
            let is_exact = double.abs() < MOST_EXACT || number.to_string() == double.to_string();
            Some(number.clone()).filter(|_| !is_exact)
        }
        Value::Array(items) => items.iter().find_map(inexact),
        Value::Object(fields) => fields.values().find_map(inexact),
        _ => None,
    }
}

/// A pattern whose classes hold no NUL unless it names it: one that has all control characters has quotation marks and backslashes too,
/// whatever it says.
fn without_nul(pattern: &str) -> String {
    let mut narrowed = String::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let replaced = [
            ("[^]", r"[^\x00\]"),
            ("[^-", r"[^\x00\-"),
            ("[^", r"[^\x00"),
            (r"[\x00-", r"[\x01-"),
            (r"[\u0000-", r"[\x01-"),
        ];
        if let Some((own, other)) = replaced.into_iter().find(|(own, _)| rest.starts_with(own)) {
            narrowed.push_str(other);
            rest = &rest[own.len()..];
            continue;
        }
        let escaped = rest[first.len_utf8()..].chars().next().filter(|_| first == '\\');
        let (taken, after) = rest.split_at(first.len_utf8() + escaped.map_or(0, char::len_utf8));
        // What is not of a kind, all control characters among it. Names of kinds are short.
        let end = after.bytes().take(LONGEST_KIND).position(|byte| byte == b'}');
        match (escaped, end) {
            (Some('P'), Some(end)) if after.starts_with('{') => {
                let (kind, behind) = after.split_at(end + 1);
                narrowed.push_str(&format!(r"[^\x00\p{kind}]"));
                rest = behind;
            }
            _ => {
                narrowed.push_str(taken);
                rest = after;
            }
        }
    }
    narrowed
}

/// Moves a whole bound that is excluded itself by a step, where the other bound is less than one from it: else it is let through.
/// `sign` is that of numbers beyond it.
fn narrow(fields: &mut Map<String, Value>, own: [&str; 2], other: [&str; 2], sign: f64) {
    let number = |name: &str| fields.get(name).and_then(Value::as_f64);
    let [excluded, included] = own;
    let bound = match fields.get(excluded) {
        Some(Value::Bool(true)) => number(included),
        _ => number(excluded),
    };
    let (Some(bound), Some(end)) = (bound, number(other[0]).or(number(other[1]))) else {
        return;
    };
    let (bound, end) = (sign * bound, sign * end);
    if bound < 0.0 || bound.fract() != 0.0 || end <= bound || end.trunc() != bound {
        return;
    }
    let step = if bound == 0.0 { 1e-17 } else { bound * f64::EPSILON };
    let moved = number(included).map_or(bound + step, |own| (sign * own).max(bound + step));
    fields.shift_remove(excluded);
    fields.insert(included.to_owned(), json!(sign * moved));
}

#[cfg(test)]
mod tests {
    use llguidance::api::TopLevelGrammar;

    use super::*;
    use crate::engine::Grammar;
    use crate::engine::constraint::tests::{compiler, matcher};
    use crate::engine::schema::{prepare, with_spacing};

    /// Whether a schema, as it is compiled here, takes a text to its end.
    fn takes(schema: &Value, text: &str) -> bool {
        let schema = prepare(with_spacing(schema.clone())).unwrap();
        let (mut matcher, ids) = matcher(TopLevelGrammar::from_json_schema(schema), text);
        let is_taken = ids.into_iter().all(|id| matcher.consume_token(id).is_ok());
        is_taken && matcher.is_accepting().unwrap_or(false)
    }

    fn pattern(pattern: &str) -> Value {
        json!({"type": "string", "pattern": pattern})
    }

    #[test]
    fn what_a_pattern_forbids_is_not_let_through_in_an_escape() {
        for (own, wrong, right) in [
            (r#"^[^"]{2,60}$"#, r#""a \"yes\"""#, r#""a yes""#),
            (r"^[^\\]{2,60}$", r#""a\\b""#, r#""a\"b\n""#),
            (r#"^[^<>"]+$"#, r#""\"\"""#, r#""a\\""#),
            (r#"^[^\n"]+$"#, r#""a\"""#, r#""a\t""#),
            (r"^[\x00-\x1f]+$", r#""\\""#, r#""\n\t""#),
            (r"^\P{P}+$", r#""a\"""#, r#""a b""#),
            (r#"^[^]"]+$"#, r#""a\"""#, r#""a[""#),
            (r#"^[^-"]+$"#, r#""a\"""#, r#""a+""#),
            (r#"^\[[^"]\]$"#, r#""[\"]""#, r#""[a]""#),
        ] {
            let names = json!({"type": "object", "patternProperties": {own: {"type": "integer"}}, "additionalProperties": false});
            assert!(!takes(&pattern(own), wrong) && takes(&pattern(own), right), "{own}");
            let record = |name: &str| format!("{{{name}:1}}");
            assert!(!takes(&names, &record(wrong)) && takes(&names, &record(right)), "{own}");
        }
        for same in [r"^\d{3}$", r"a\[^b", r"^.*$", "^[a-z]+$", r"\\", ""] {
            assert_eq!(without_nul(same), same);
        }
    }

    #[test]
    fn a_bound_that_is_excluded_is_not_let_through() {
        let number = |fields: Value| {
            let mut schema = json!({"type": "number"});
            schema.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            schema
        };
        for (fields, wrong, right) in [
            (
                json!({"exclusiveMinimum": 0, "exclusiveMaximum": 0.5}),
                &["0", "0.0", "0.5"][..],
                "0.25",
            ),
            (json!({"exclusiveMinimum": 10, "maximum": 10.5}), &["10", "10.0"], "10.5"),
            (json!({"exclusiveMaximum": 0, "minimum": -0.5}), &["0", "-0", "-0.0"], "-0.5"),
            (json!({"exclusiveMaximum": -3, "exclusiveMinimum": -3.5}), &["-3", "-3.5"], "-3.25"),
            (json!({"exclusiveMinimum": true, "minimum": 0, "maximum": 0.5}), &["0"], "0.5"),
            (
                json!({"exclusiveMinimum": 0, "minimum": 0.25, "maximum": 0.5}),
                &["0", "0.125"],
                "0.25",
            ),
            (json!({"exclusiveMinimum": 0, "exclusiveMaximum": 1}), &["0", "1"], "0.5"),
        ] {
            let schema = number(fields);
            assert!(takes(&schema, right), "{schema}");
            for wrong in wrong {
                assert!(!takes(&schema, wrong), "{schema}: {wrong}");
            }
        }
    }

    #[test]
    fn a_name_has_one_spelling() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "é": {"type": "integer"}}});
        for (text, is_right) in [
            (r#"{"a":1}"#, true),
            (r#"{"b":"x"}"#, true),
            (r#"{"\u0061":"x"}"#, false),
            (r#"{"\u00e9":"x"}"#, false),
            (r#"{"c":"\n\"é\\"}"#, true),
        ] {
            assert_eq!(takes(&schema, text), is_right, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_kept_to_is_refused_by_name() {
        let compiler = compiler(&[1]);
        let problem = |schema: &Value| {
            let refusal = compiler.compile(&Grammar::JsonSchema(schema.to_string())).err();
            refusal.map(|error| error.to_string()).unwrap_or_default()
        };
        for (schema, name) in [
            (json!({"const": 9_007_199_254_740_993_u64}), "9007199254740993 in `const`"),
            (json!({"enum": [1, {"a": [12_345_678_901_234_567_890_u64]}]}), "in `enum`"),
            (json!({"properties": {"a": {"minimum": -9_007_199_254_740_993_i64}}}), "in `minimum`"),
            (json!({"type": "object", "minProperties": 2}), "`minProperties` 2"),
            (
                json!({"items": {"type": "object", "minProperties": 3, "required": ["a"]}}),
                "`minProperties` 3",
            ),
        ] {
            assert!(problem(&schema).contains(name), "{schema}: {}", problem(&schema));
        }
        for schema in [
            json!({"const": 9_007_199_254_740_992_u64}),
            json!({"enum": [1.5, 1e3], "default": 9_007_199_254_740_993_u64}),
            json!({"type": "object", "minProperties": 2, "required": ["a"]}),
        ] {
            assert_eq!(problem(&schema), "", "{schema}");
        }
    }

    /// Where this fails, llguidance keeps to a schema by itself, and what is written here for it may go.
    #[test]
    fn llguidance_still_needs_it() {
        let raw = |schema: Value, text: &str| {
            let (mut matcher, ids) = matcher(TopLevelGrammar::from_json_schema(schema), text);
            ids.into_iter().all(|id| matcher.consume_token(id).is_ok())
        };
        assert!(raw(pattern(r#"^[^"]+$"#), r#""a\"b""#));
        assert!(raw(
            json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5}),
            "0"
        ));
        assert!(raw(json!({"const": 9_007_199_254_740_993_u64}), "9007199254740992"));
        assert!(raw(json!({"type": "object", "properties": {"a": false}}), r#"{"\u0061":1}"#));
        let twice = json!({"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}});
        assert!(raw(twice, r#"{"x":1,"x":2}"#));
    }
}
