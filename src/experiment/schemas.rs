//! The JSON Schemas of a run directory's files, made from the types that write them. `INSTA_UPDATE=always cargo test --lib schemas` takes
//! what they say now into `docs/schemas/`.

use std::path::Path;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::results::Results;
use crate::data::Item;
use crate::record::{CallLine, ItemLine, SCHEMA, SearchLine};

/// Of a file of such records; `around` are the fields that a sealed line has besides ([`super::line`]).
fn schema<T: JsonSchema>(file: &str, around: &[&str]) -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    schema["title"] = file.into();
    let records: Vec<&mut Value> = if schema.get("oneOf").is_some() {
        schema["oneOf"].as_array_mut().unwrap().iter_mut().collect()
    } else {
        vec![&mut schema]
    };
    for record in records {
        for name in around {
            let is_number = *name == "schema";
            record["properties"][name] =
                if is_number { json!({"const": SCHEMA}) } else { json!({"type": "string"}) };
            record["required"].as_array_mut().unwrap().push((*name).into());
        }
    }
    schema
}

#[test]
fn each_file_has_the_schema_in_docs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas");
    let is_taken = std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always");
    for (name, schema) in [
        ("dataset", schema::<Item>("A line of dataset.jsonl", &["schema", "hash"])),
        ("calls", schema::<CallLine>("A line of calls.jsonl", &["schema"])),
        ("searches", schema::<SearchLine>("A line of searches.jsonl", &["schema"])),
        ("items", schema::<ItemLine>("A line of items.jsonl", &["schema"])),
        ("results", schema::<Results>("results.json of a run", &[])),
    ] {
        let path = folder.join(format!("{name}.json"));
        let text = format!("{schema:#}\n");
        if is_taken {
            fs_err::create_dir_all(&folder).unwrap();
            fs_err::write(&path, &text).unwrap();
        }
        let found = fs_err::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "{} is not what its type says: INSTA_UPDATE=always cargo test --lib schemas",
            path.display()
        );
    }
}
