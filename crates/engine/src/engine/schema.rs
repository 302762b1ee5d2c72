//! Bounds on JSON schemas: on the time a compiler takes beyond what its fuel bounds, and on whitespace.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::strictness::tighten;
use super::{EngineError, annotations};

/// Comparisons of two patterns that a compile may take: some 0.1 to 0.4 ms each.
const MOST_COMPARISONS: u64 = 2000;

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

/// A whole number is a multiple of another by a table of remainders, as many as the least common multiple of all that hold together.
const MOST_REMAINDERS: u64 = 10_000;

/// # Errors
/// A schema whose patterns of properties may take longer than a second to compare, or whose divisors a table of remainders that is too
/// large.
fn refuse_costly(schema: &Value) -> Result<(), EngineError> {
    let mut extent = Extent { alternatives: 1, ..Extent::default() };
    extent.add(schema);
    if extent.remainders() > MOST_REMAINDERS {
        let problem = format!("its multipleOf come to more than {MOST_REMAINDERS} together");
        return Err(EngineError::Grammar(problem));
    }
    let pairs = extent.patterns.saturating_mul(extent.patterns.saturating_sub(1)) / 2;
    let comparisons =
        pairs.saturating_mul(extent.alternatives).saturating_mul(1 + extent.references);
    match comparisons > MOST_COMPARISONS {
        true => Err(EngineError::Grammar(
            "too many patternProperties for its alternatives and references".to_owned(),
        )),
        false => Ok(()),
    }
}

impl Extent {
    /// The least common multiple of all divisors, of as many decimals as the longest has.
    fn remainders(&self) -> u64 {
        let decimals = self.divisors.iter().map(|(_, decimals)| *decimals).max().unwrap_or(0);
        let whole = |(digits, own): &(u64, u32)| {
            10_u64.checked_pow(decimals - own)?.checked_mul((*digits).max(1))
        };
        let mut all = self.divisors.iter().map(whole);
        all.try_fold(1, |all, one| least_common_multiple(all, one?)).unwrap_or(u64::MAX)
    }

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
}

/// The digits of a number as a whole one, and how many stand behind the point: 25 and 2 of `0.25`. What is written with an exponent is
/// beyond all bounds.
fn digits(number: &str) -> (u64, u32) {
    let (whole, rest) = number.trim_start_matches('-').split_once('.').unwrap_or((number, ""));
    let digits = format!("{}{rest}", whole.trim_start_matches('-'));
    (digits.parse().unwrap_or(u64::MAX), rest.len() as u32)
}

/// `None`: beyond what can be counted.
fn least_common_multiple(one: u64, other: u64) -> Option<u64> {
    let (mut divisor, mut rest) = (one, other);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    one.checked_div(divisor)?.checked_mul(other)
}

/// A schema as it is compiled: without what only annotates it, and as strict as it says.
///
/// # Errors
/// See [`refuse_costly`] and [`tighten`].
pub fn prepare(mut schema: Value) -> Result<Value, EngineError> {
    annotations::strip(&mut schema);
    refuse_costly(&schema)?;
    tighten(&mut schema)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(count: usize) -> Value {
        let each = (0..count).map(|index| (format!("^a{index}$"), json!({})));
        json!({"patternProperties": serde_json::Map::from_iter(each)})
    }

    #[test]
    fn comparisons_grow_with_pairs_alternatives_and_references() {
        let two = |schema: Value| json!({"anyOf": [schema, {}]});
        let with_reference = json!({"properties": {"a": patterns(60), "b": {"$ref": "#"}}});
        for (schema, is_cheap) in [
            (json!({"type": "object"}), true),
            (patterns(60), true),
            (patterns(70), false),
            (two(patterns(40)), true),
            (two(patterns(60)), false),
            (two(two(two(two(patterns(12))))), true),
            (with_reference, false),
            (json!({"allOf": [patterns(40), patterns(40)]}), false),
            // Alternatives alone are bounded by the compiler.
            (json!({"allOf": vec![two(json!({})); 80]}), true),
        ] {
            assert_eq!(refuse_costly(&schema).is_ok(), is_cheap, "{schema}");
        }
    }

    #[test]
    fn divisors_are_bounded_together_and_schemas_inside_of_a_grammar_as_others() {
        let of = |divisors: &[f64]| {
            let each = divisors.iter().map(|divisor| json!({"multipleOf": divisor}));
            json!({"type": "integer", "allOf": each.collect::<Vec<_>>()})
        };
        let whole = |divisor: u64| json!({"properties": {"a": {"multipleOf": divisor}}});
        for (schema, is_cheap) in [
            (whole(1000), true),
            (whole(99_999_989), false),
            (of(&[0.01, 0.25, 5.5]), true),
            (of(&[7.5, 11.5, 13.5, 17.5]), false),
            // Of four decimals, as the smallest has.
            (of(&[0.0001, 9999.0]), false),
            (of(&[0.0, 99_999_989.0]), false),
            (of(&[100.0, 200.0, 1000.0]), true),
            (of(&[1e-30]), false),
        ] {
            assert_eq!(refuse_costly(&schema).is_ok(), is_cheap, "{schema}");
            let lark = format!("start: \"a\" | %json {schema} | b\nb: \"c\"");
            assert_eq!(prepare_inside(&lark).is_ok(), is_cheap, "{lark}");
        }
        assert!(prepare_inside("start: %json {").is_err());
        for same in ["start: \"a\"", "start: %json {\"type\":\"null\"} | %json true\nb: \"c\""] {
            assert_eq!(prepare_inside(same).unwrap(), same);
        }
    }

    #[test]
    fn whitespace_is_bounded_unless_a_schema_says_otherwise() {
        let own = json!({"type": "object", "x-guidance": {"whitespace_flexible": false}});
        assert_eq!(with_spacing(own.clone()), own);
        assert_eq!(with_spacing(json!(false)), json!(false));
        for any in [json!(true), json!({})] {
            assert!(with_spacing(any)["x-guidance"]["whitespace_pattern"].is_string());
        }
    }
}
