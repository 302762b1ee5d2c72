//! The words that a model's licence asks for, where it is served: from a bundle, whose models lie as in the hub's cache.

use std::fs;

use serde_json::Value;
use wardround::model::Family;

use crate::client::{Server, wardround};
use crate::common;

#[test]
fn a_model_of_a_bundle_is_served_by_its_name_with_the_words_that_its_licence_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    let card = wardround::hub::Card::find("llama3.2-3b").unwrap();
    let repository = format!("hub/models--{}", card.repository.replace('/', "--"));
    let snapshot = folder.path().join(repository).join("snapshots").join(&card.revision);
    fs::create_dir_all(&snapshot).unwrap();
    for entry in fs::read_dir(common::synthetic(Family::Llama)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), snapshot.join(entry.file_name())).unwrap();
    }
    let mut command = wardround(folder.path());
    command.env("HF_HOME", folder.path());
    let server = Server::run(command, folder, "llama3.2-3b --context 1024");
    let list = server.get("/v1/models").json();
    assert_eq!(list["data"][0]["id"], "llama3.2-3b");
    assert_eq!(list["data"][0]["wardround"]["notice"], "Built with Llama");
}

#[test]
fn a_model_whose_licence_asks_for_no_words_has_none() {
    let server = Server::one(Family::Qwen3, "");
    let list = server.get("/v1/models").json();
    assert_eq!(list["data"][0]["wardround"]["notice"], Value::Null);
}
