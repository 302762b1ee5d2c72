//! Tests of `schema.rs`.

use llguidance::api::TopLevelGrammar;

use super::*;
use crate::engine::Grammar;
use crate::engine::constraint::tests::{compiler, matcher};

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
        assert_eq!(prepare(schema.clone()).is_ok(), is_cheap, "{schema}");
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
        (of(&[0.01, 0.25, 1.5]), true),
        (of(&[7.5, 11.5, 13.5, 17.5]), false),
        // Of four decimals, as the smallest has.
        (of(&[0.0001, 9999.0]), false),
        (of(&[0.0, 99_999_989.0]), false),
        (of(&[100.0, 200.0, 1000.0]), false),
        (of(&[1.0, 2.0]), true),
        (of(&[1e-30]), false),
    ] {
        assert_eq!(prepare(schema.clone()).is_ok(), is_cheap, "{schema}");
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

#[test]
fn unknown_formats_go_and_whatever_else_is_called_format_stays() {
    let schema = json!({
        "type": "object",
        "format": "grid",
        "properties": {
            "format": {"type": "string", "format": "iri"},
            "enum": {"type": "string", "format": "int-or-string"},
            "day": {"type": "string", "format": "date"},
            "fixed": {"const": {"format": "csv"}, "default": {"format": "x"}},
        },
        "anyOf": [{"format": "x"}, {"items": {"format": "binary"}}],
        "$defs": {"default": {"type": "string", "format": "password"}},
    });
    assert_eq!(
        prepare(schema).unwrap(),
        json!({
            "type": "object",
            "properties": {
                "format": {"type": "string"},
                "enum": {"type": "string"},
                "day": {"type": "string", "format": "date"},
                "fixed": {"const": {"format": "csv"}, "default": {"format": "x"}},
            },
            "anyOf": [{}, {"items": {}}],
            "$defs": {"default": {"type": "string"}},
            "x-guidance": {"json_allowed_escapes": ESCAPES},
        })
    );
}

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

fn problem(schema: &Value) -> String {
    let refusal = prepare(schema.clone()).err();
    refusal.map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_pattern_that_would_let_through_in_an_escape_what_it_forbids_is_refused() {
    for own in [
        r#"^[^"]{2,60}$"#,
        r"^[^\\]{2,60}$",
        r#"^[^<>"]+$"#,
        r#"^[^\n"]+$"#,
        r"^[\x00-\x1f]+$",
        r"^(a|\P{P})+$",
        r#"^[^]"]+$"#,
        r#"^\[[^"]\]$"#,
    ] {
        let names = json!({"type": "object", "patternProperties": {own: {"type": "integer"}}});
        for schema in [pattern(own), json!({"items": pattern(own)}), names] {
            assert!(problem(&schema).contains("would let quotation marks"), "{schema}");
        }
    }
    for (own, wrong, right) in [
        (r#"^[^\x00"]+$"#, r#""a\"""#, r#""a\\""#),
        (r"^[^<>]+$", r#""<""#, r#""a\"\n""#),
        (r"^\d{3}$", r#""12""#, r#""123""#),
        (r"^.*$", "1", r#""\"""#),
    ] {
        assert_eq!(problem(&pattern(own)), "");
        assert!(!takes(&pattern(own), wrong) && takes(&pattern(own), right), "{own}");
    }
}

#[test]
fn a_bound_that_would_be_let_through_though_it_is_excluded_is_refused() {
    for (schema, name) in [
        (json!({"exclusiveMinimum": 0, "exclusiveMaximum": 0.5}), "exclusiveMinimum"),
        (json!({"exclusiveMinimum": 10, "maximum": 10.5}), "exclusiveMinimum"),
        (json!({"exclusiveMaximum": 0, "minimum": -0.5}), "exclusiveMaximum"),
        (json!({"exclusiveMaximum": -3, "minimum": -3.5}), "exclusiveMaximum"),
        (json!({"exclusiveMinimum": true, "minimum": 0, "maximum": 0.5}), "exclusiveMinimum"),
    ] {
        assert!(problem(&schema).contains(&format!("`{name}` would be let through")), "{schema}");
    }
    let schema = json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1});
    for (text, is_right) in [("0", false), ("0.5", true), ("1", false)] {
        assert_eq!(takes(&schema, text), is_right, "{text}");
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
    let compiled =
        compiler(&[1]).compile(&Grammar::JsonSchema(r#"{"minProperties": 2}"#.to_owned()));
    assert!(compiled.err().unwrap().to_string().contains("`minProperties` 2"));
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
    assert!(raw(json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5}), "0"));
    assert!(raw(json!({"const": 9_007_199_254_740_993_u64}), "9007199254740992"));
    assert!(raw(json!({"type": "object", "properties": {"a": false}}), r#"{"\u0061":1}"#));
    let twice =
        json!({"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}});
    assert!(raw(twice, r#"{"x":1,"x":2}"#));
}
