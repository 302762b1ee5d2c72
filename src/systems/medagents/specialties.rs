//! MedAgents' specialties: the fields of medicine that its gatherer names, of the five that MedAgentBoard knows.

use serde_json::{Map, Value};

use super::DOCTORS;
use crate::record::{FinishReason, Parse};
use crate::systems::reading::words::{list_items, parts};
use crate::systems::reading::{record, said};

/// Parts of names, in the order in which they are looked for, and the specialty of a name that contains one.
const KNOWN: [(&str, &str); 5] = [
    ("pediatr", "Pediatrics"),
    ("cardio", "Cardiology"),
    ("pulmon", "Pulmonology"),
    ("neonat", "Neonatology"),
    ("genet", "Genetics"),
];

/// The specialties where the gatherer's reply cannot be parsed.
pub(super) const UNREAD: [&str; DOCTORS] = ["Cardiology", "Pulmonology", "Neonatology"];

/// Parses the gatherer's reply; as in MedAgentBoard, every specialty but five is dropped. Where `n` names are known, the remaining doctors
/// get the known specialties from number `n` on, even if one of them is among the names.
pub fn read_specialties(text: &str, finish_reason: FinishReason) -> (Vec<&'static str>, Parse) {
    let object = |fields: &record::Object| Some(fields.clone());
    let found = record::read(text, finish_reason, object).or_else(|| {
        let items: Vec<Value> = list_items(said(text)).into_iter().map(Value::from).collect();
        let is_list = !items.is_empty();
        is_list.then(|| (Map::from_iter([("fields".to_owned(), items.into())]), Parse::Fallback))
    });
    let Some((object, parse)) = found else {
        return (UNREAD.to_vec(), Parse::Unread);
    };
    // The only list of the object, whatever its key.
    let lists = || object.values().filter(|value| value.is_array());
    let other = || lists().next().filter(|_| lists().count() == 1);
    let names: Vec<&str> = match object.get("fields").or_else(other) {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(line)) => parts(line),
        _ => Vec::new(),
    };
    let mut specialties: Vec<&'static str> =
        names.into_iter().filter_map(known).take(DOCTORS).collect();
    let parse = parse.if_read(!specialties.is_empty());
    let defaults = KNOWN.iter().take(DOCTORS).skip(specialties.len());
    specialties.extend(defaults.map(|(_, specialty)| *specialty));
    (specialties, parse)
}

fn known(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let found = KNOWN.iter().find(|(part, _)| name.contains(part));
    found.map(|(_, specialty)| *specialty)
}
