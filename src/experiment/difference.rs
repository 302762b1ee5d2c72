//! Where two JSON values differ: the dotted path of each differing field, with both values.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// Characters of a value that are shown, and of them those before the first difference.
const SHOWN: usize = 60;
const BEFORE: usize = 20;

/// One differing field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldDifference {
    /// As in `messages[1].content`.
    pub field: String,
    /// The values as JSON, long ones cut around the first difference; `absent` where there is none.
    pub left: String,
    pub right: String,
}

impl fmt::Display for FieldDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {} against {}", self.field, self.left, self.right)
    }
}

/// The value as its JSON text reads back: an f32 keeps its short spelling, which `to_value` would widen.
pub(super) fn as_json<T: Serialize>(value: &T) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&serde_json::to_string(value)?)
}

/// Every differing field, in the left value's order. Of a list of scalars only the first differing place is given.
pub(super) fn differences(left: &Value, right: &Value) -> Vec<FieldDifference> {
    let mut found = Vec::new();
    walk(String::new(), Some(left), Some(right), &mut found);
    found
}

fn walk(
    field: String,
    left: Option<&Value>,
    right: Option<&Value>,
    found: &mut Vec<FieldDifference>,
) {
    if left == right {
        return;
    }
    match (left, right) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let added = right.keys().filter(|name| !left.contains_key(*name));
            for name in left.keys().chain(added) {
                let path = if field.is_empty() { name.clone() } else { format!("{field}.{name}") };
                walk(path, left.get(name), right.get(name), found);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for place in 0..left.len().max(right.len()) {
                let (a, b) = (left.get(place), right.get(place));
                walk(format!("{field}[{place}]"), a, b, found);
                let is_scalar = |value: Option<&Value>| {
                    !matches!(value, Some(Value::Object(_) | Value::Array(_)))
                };
                if a != b && is_scalar(a) && is_scalar(b) {
                    break;
                }
            }
        }
        _ => {
            let (left, right) = shorten(&show(left), &show(right));
            found.push(FieldDifference { field, left, right });
        }
    }
}

fn show(value: Option<&Value>) -> String {
    value.map_or_else(|| "absent".to_owned(), Value::to_string)
}

/// Both texts cut to `SHOWN` characters around their first difference.
fn shorten(left: &str, right: &str) -> (String, String) {
    let common = left.chars().zip(right.chars()).take_while(|(a, b)| a == b).count();
    let start = common.saturating_sub(BEFORE);
    let cut = |text: &str| {
        let shown: String = text.chars().skip(start).take(SHOWN).collect();
        let head = if start > 0 { "…" } else { "" };
        let tail = if text.chars().count() > start + SHOWN { "…" } else { "" };
        format!("{head}{shown}{tail}")
    };
    (cut(left), cut(right))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(left: Value, right: Value) -> Vec<String> {
        differences(&left, &right).iter().map(FieldDifference::to_string).collect()
    }

    #[test]
    fn every_field_is_named_with_both_values() {
        let left =
            json!({"a": 1, "b": {"c": "x", "d": null}, "tokens": [1, 2, 3, 4], "only": true});
        let right = json!({"a": 1, "b": {"c": "y", "d": 0.6}, "tokens": [1, 5, 6], "new": []});
        assert_eq!(
            shown(left, right),
            [
                "b.c is \"x\" against \"y\"",
                "b.d is null against 0.6",
                "tokens[1] is 2 against 5",
                "only is true against absent",
                "new is absent against []",
            ]
        );
    }

    #[test]
    fn a_long_text_is_cut_around_the_first_difference() {
        let left = format!("{}ß{}", "a".repeat(100), "b".repeat(100));
        let right = format!("{}c", "a".repeat(100));
        assert_eq!(
            shown(json!({ "text": left }), json!({ "text": right })),
            [format!(
                "text is …{}ß{}… against …{}c\"",
                "a".repeat(20),
                "b".repeat(39),
                "a".repeat(20)
            )]
        );
    }

    #[test]
    fn lists_of_objects_give_every_member() {
        let left = json!({"panel": [{"dtype": "f32"}, {"dtype": "f32"}]});
        let right = json!({"panel": [{"dtype": "bf16"}, {"dtype": "bf16"}, {"dtype": "bf16"}]});
        assert_eq!(
            shown(left, right),
            [
                "panel[0].dtype is \"f32\" against \"bf16\"",
                "panel[1].dtype is \"f32\" against \"bf16\"",
                "panel[2] is absent against {\"dtype\":\"bf16\"}",
            ]
        );
    }
}
