//! Which doctors come: MedAgentBoard knows five specialties, and drops every other that the gatherer names.

use serde_json::{Value, json};

use super::settings::DOCTORS;
use crate::record::{FinishReason, Parse};
use crate::systems::json_object;

/// What a name has to contain, in the order in which it is looked for, and the specialty that it then is.
const KNOWN: [(&str, &str); 5] = [
    ("pediatr", "Pediatrics"),
    ("cardio", "Cardiology"),
    ("pulmon", "Pulmonology"),
    ("neonat", "Neonatology"),
    ("genet", "Genetics"),
];

/// Who comes when the gatherer's reply cannot be read.
const UNREAD: [&str; DOCTORS] = ["Cardiology", "Pulmonology", "Neonatology"];

/// Reads the gatherer's reply. Places that known names leave open are filled with the known specialties in order, those
/// before as many as there are names left out, whether or not they are among the names.
pub fn read(text: &str, finish_reason: FinishReason) -> (Value, Parse) {
    let object = |value: &Value| value.as_object().cloned();
    let Some((object, parse)) = json_object::read(text, finish_reason, object) else {
        return (json!({"fields": UNREAD}), Parse::Fallback);
    };
    let names = object.get("fields").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    let mut specialties: Vec<&str> = names.filter_map(known).take(DOCTORS).collect();
    let defaults = KNOWN.iter().take(DOCTORS).skip(specialties.len());
    specialties.extend(defaults.map(|(_, specialty)| *specialty));
    (json!({"fields": specialties}), parse)
}

fn known(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let found = KNOWN.iter().find(|(part, _)| name.contains(part));
    found.map(|(_, specialty)| *specialty)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specialties(text: &str) -> (Vec<String>, Parse) {
        let (record, parse) = read(text, FinishReason::Stop);
        let names = record["fields"].as_array().unwrap().iter();
        let names = names.map(|name| name.as_str().unwrap().to_owned());
        (names.collect(), parse)
    }

    fn names(text: &str) -> Vec<String> {
        specialties(text).0
    }

    #[test]
    fn names_are_known_by_a_part_of_them() {
        assert_eq!(
            names(
                r#"{"fields": ["Medical Genetics", "pediatric cardiology", "Cardiothoracic surgery", "Neonatology"]}"#
            ),
            ["Genetics", "Pediatrics", "Cardiology"]
        );
    }

    #[test]
    fn unknown_names_are_dropped_and_the_defaults_after_as_many_as_remain_fill_up() {
        assert_eq!(
            names(r#"{"fields": ["Neurology", "Genetics", "Surgery"]}"#),
            ["Genetics", "Cardiology", "Pulmonology"]
        );
        // A specialty can so come twice.
        assert_eq!(
            names(r#"{"fields": ["Cardiology", "Neurology"]}"#),
            ["Cardiology", "Cardiology", "Pulmonology"]
        );
        let defaults = ["Pediatrics", "Cardiology", "Pulmonology"];
        assert_eq!(names(r#"{"fields": ["Neurology"]}"#), defaults);
        assert_eq!(names(r#"{"fields": "Genetics"}"#), defaults);
        assert_eq!(names(r#"{"fields": [1, null]}"#), defaults);
        assert_eq!(names("{}"), defaults);
    }

    #[test]
    fn a_reply_that_is_no_object_brings_other_defaults() {
        let unread = (UNREAD.map(String::from).to_vec(), Parse::Fallback);
        assert_eq!(specialties("Pediatrics, Genetics"), unread);
        let (record, parse) = read(r#"{"fields": ["Genetics"]}"#, FinishReason::Length);
        assert_eq!((record, parse), (json!({"fields": UNREAD}), Parse::Fallback));
    }
}
