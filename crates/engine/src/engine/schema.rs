//! What of a JSON schema llguidance 1.9 does not keep to, or may take too long over, is refused by name; and whitespace is bounded.

use std::collections::BTreeSet;

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Number, Value, json};

use super::EngineError;

/// The formats that llguidance holds a string to; any other only annotates it (JSON Schema 2020-12, Validation §7).
const KNOWN_FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];

/// All but `u`: a name has one spelling then, and is no other beside those that `properties` lists.
const ESCAPES: &str = r#"nrbtf\""#;

/// From it on a whole number may be another once it was read.
const MOST_EXACT: f64 = (1_u64 << 53) as f64;

/// Comparisons of two patterns that a compile may take: some 0.1 to 0.4 ms each.
const MOST_COMPARISONS: u64 = 2000;

/// A whole number is a multiple of another by a table of remainders, as many as the product of all that hold together at most.
const MOST_REMAINDERS: u64 = 10_000;

/// A schema as it is compiled: without formats that only annotate it, and with one spelling of each name.
///
/// # Errors
/// What llguidance lets through though the schema forbids it, and what it may compare for longer than a second.
pub fn prepare(mut schema: Value) -> Result<Value, EngineError> {
    let mut extent = Extent { alternatives: 1, ..Extent::default() };
    extent.add(&schema);
    let (mut problem, mut has_open_names) = (None, false);
    each(&mut schema, &mut |fields| {
        let is_known =
            |format: &Value| format.as_str().is_none_or(|name| KNOWN_FORMATS.contains(&name));
        fields.retain(|name, value| name != "format" || is_known(value));
        problem = problem.take().or_else(|| not_kept(fields));
        has_open_names |= fields.contains_key("properties") && !is_closed(fields);
    });
    if let Some(problem) = problem.or_else(|| extent.problem()) {
        return Err(EngineError::Grammar(problem));
    }
    if let (true, Value::Object(fields)) = (has_open_names, &mut schema) {
        let options = fields.entry("x-guidance").or_insert_with(|| json!({}));
        if let Value::Object(options) = options {
            options.entry("json_allowed_escapes").or_insert_with(|| json!(ESCAPES));
        }
    }
    Ok(schema)
}

/// The same of each schema in a grammar of Lark's.
///
/// # Errors
/// See [`prepare`]; a `%json` without JSON behind it.
pub fn prepare_inside(lark: &str) -> Result<String, EngineError> {
    let mut parts = lark.split("%json");
    let mut prepared = parts.next().unwrap_or_default().to_owned();
    for after in parts {
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let Some(Ok(schema)) = values.next() else {
            return Err(EngineError::Grammar("no JSON follows a `%json`".to_owned()));
        };
        let rest = &after[values.byte_offset()..];
        prepared.push_str(&format!("%json {}{rest}", prepare(schema)?));
    }
    Ok(prepared)
}

/// The schema for documents without long runs of whitespace, in which small models otherwise lose themselves until their tokens are
/// used up. A schema's own choice stays.
pub fn with_spacing(schema: Value) -> Value {
    /// Room for a line end and a deep indentation.
    const SPACING: &str = r"[\x20\x0A\x0D\x09]{1,40}";
    let mut schema = match schema {
        Value::Bool(true) => json!({}),
        other => other,
    };
    if let Some(fields) = schema.as_object_mut() {
        fields.entry("x-guidance").or_insert_with(|| json!({"whitespace_pattern": SPACING}));
    }
    schema
}

fn is_closed(fields: &Map<String, Value>) -> bool {
    fields.get("additionalProperties") == Some(&Value::Bool(false))
}

/// What of these fields llguidance does not keep to.
fn not_kept(fields: &Map<String, Value>) -> Option<String> {
    let mut given = fields.iter().filter(|(name, value)| match name.as_str() {
        "const" | "enum" => true,
        "default" | "examples" => false,
        _ => value.is_number(),
    });
    if let Some((name, number)) = given.find_map(|(name, value)| Some((name, inexact(value)?))) {
        return Some(format!("{number} in `{name}` has more digits than are kept"));
    }
    let own = fields.get("pattern").and_then(Value::as_str);
    let names = fields.get("patternProperties").and_then(Value::as_object);
    let names = names.into_iter().flat_map(|patterns| patterns.keys().map(String::as_str));
    let mut patterns = own.into_iter().chain(names);
    if let Some(pattern) = patterns.find(|pattern| lets_quotes_through(pattern)) {
        return Some(format!(
            "`{pattern}` would let quotation marks and backslashes through: write [^\\x00…] for [^…]"
        ));
    }
    let number = |name: &str| fields.get(name).and_then(Value::as_f64);
    let low = number("exclusiveMinimum").or(number("minimum"));
    let high = number("exclusiveMaximum").or(number("maximum"));
    let is_narrow = low.zip(high).is_some_and(|(low, high)| high - low < 1.0);
    let mut excluded = ["exclusiveMinimum", "exclusiveMaximum"].into_iter();
    if let Some(name) = excluded.find(|name| is_narrow && fields.contains_key(*name)) {
        return Some(format!(
            "a number at its `{name}` would be let through: less than one is between its bounds"
        ));
    }
    let required = fields.get("required").and_then(Value::as_array).map_or(0, Vec::len) as u64;
    let least = fields.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
    let is_open = !is_closed(fields) || fields.contains_key("patternProperties");
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

/// Whether a class of characters has a NUL, but not both of those that JSON escapes by themselves: with all control characters llguidance
/// lets in every escape of one letter. What is no pattern is refused where it is compiled.
fn lets_quotes_through(pattern: &str) -> bool {
    fn is_wide(hir: &Hir) -> bool {
        match hir.kind() {
            HirKind::Class(Class::Unicode(class)) => {
                let has = |letter| {
                    class.ranges().iter().any(|of| (of.start()..=of.end()).contains(&letter))
                };
                has('\0') && !(has('"') && has('\\'))
            }
            HirKind::Class(Class::Bytes(_)) => true,
            HirKind::Repetition(repeated) => is_wide(&repeated.sub),
            HirKind::Capture(captured) => is_wide(&captured.sub),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(is_wide),
            HirKind::Empty | HirKind::Literal(_) | HirKind::Look(_) => false,
        }
    }
    regex_syntax::parse(pattern).is_ok_and(|hir| is_wide(&hir))
}

/// What of a schema multiplies the comparisons of its `patternProperties`: every two patterns of an object are compared, in
/// every combination of alternatives that the object is a part of.
#[derive(Debug, Default)]
struct Extent {
    patterns: u64,
    /// The product of the sizes of all `anyOf` and `oneOf`.
    alternatives: u64,
    references: u64,
    /// Those of `multipleOf`: their digits as a whole number, and how many of them stand behind the point.
    divisors: BTreeSet<(u64, u32)>,
}

impl Extent {
    /// Everything, for a `$ref` may lead anywhere.
    fn add(&mut self, schema: &Value) {
        match schema {
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(fields) => fields.iter().for_each(|(name, field)| {
                match (name.as_str(), field) {
                    ("patternProperties", Value::Object(patterns)) => {
                        self.patterns += patterns.len() as u64;
                    }
                    ("anyOf" | "oneOf", Value::Array(items)) => {
                        let items = items.len().max(1) as u64;
                        self.alternatives = self.alternatives.saturating_mul(items);
                    }
                    ("$ref", _) => self.references += 1,
                    ("multipleOf", Value::Number(divisor)) => {
                        self.divisors.insert(digits(&divisor.to_string()));
                    }
                    _ => {}
                }
                self.add(field);
            }),
            _ => {}
        }
    }

    fn problem(&self) -> Option<String> {
        if self.remainders() > MOST_REMAINDERS {
            return Some(format!("its multipleOf come to more than {MOST_REMAINDERS} together"));
        }
        let pairs = self.patterns.saturating_mul(self.patterns.saturating_sub(1)) / 2;
        let combined = self.alternatives.saturating_mul(1 + self.references);
        (pairs.saturating_mul(combined) > MOST_COMPARISONS)
            .then(|| "too many patternProperties for its alternatives and references".to_owned())
    }

    /// The product of all divisors, of as many decimals as the longest has.
    fn remainders(&self) -> u64 {
        let decimals = self.divisors.iter().map(|(_, decimals)| *decimals).max().unwrap_or(0);
        let whole = |(digits, own): &(u64, u32)| {
            10_u64.checked_pow(decimals - own)?.checked_mul((*digits).max(1))
        };
        let mut all = self.divisors.iter().map(whole);
        all.try_fold(1_u64, |all, one| all.checked_mul(one?)).unwrap_or(u64::MAX)
    }
}

/// The digits of a number as a whole one, and how many stand behind the point: 25 and 2 of `0.25`. What is written with an exponent is
/// beyond all bounds.
fn digits(number: &str) -> (u64, u32) {
    let (whole, rest) = number.trim_start_matches('-').split_once('.').unwrap_or((number, ""));
    let digits = format!("{}{rest}", whole.trim_start_matches('-'));
    (digits.parse().unwrap_or(u64::MAX), rest.len() as u32)
}

/// Visits a schema and those in it, values that only look like schemas left out.
fn each(schema: &mut Value, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    match schema {
        Value::Object(fields) => {
            visit(fields);
            each_inside(fields, visit);
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(|schema| each(schema, visit)),
        _ => {}
    }
}

fn each_inside(fields: &mut Map<String, Value>, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("const" | "enum" | "default" | "examples" | "x-guidance", _) => {}
            // The names in it are the user's.
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(schemas),
            ) => schemas.values_mut().for_each(|schema| each(schema, visit)),
            (_, value) => each(value, visit),
        }
    }
}

#[cfg(test)]
mod tests;
