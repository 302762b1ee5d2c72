//! A server that a bundle brought: its models by their names, the words that their licences ask for, and how its selftest ended.

use std::fs;
use std::path::Path;

use serde_json::Value;
use wardround::model::Family;

use crate::client::Server;
use crate::common;

/// A root as `bundle install` leaves it, as far as a server looks.
fn install(root: &Path) {
    let version = root.join("versions/1.0");
    let model = version.join("models/llama3.2-3b");
    fs::create_dir_all(&model).unwrap();
    fs::create_dir_all(version.join("bin")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_wardround"), version.join("bin/wardround")).unwrap();
    fs::write(version.join("MANIFEST.json"), "{\"components\": []}").unwrap();
    let weights = common::synthetic(Family::Llama);
    for entry in fs::read_dir(weights).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), model.join(entry.file_name())).unwrap();
    }
    let card = wardround::hub::Card::find("llama3.2-3b").unwrap();
    let provenance = format!(
        "repository = \"{}\"\nrevision = \"{}\"\n\n[sha256]\n",
        card.repository, card.revision
    );
    fs::write(model.join("provenance.toml"), provenance).unwrap();
}

#[test]
fn an_installed_server_shows_what_licences_ask_for_and_its_last_selftest() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    install(&root);
    let program = root.join("versions/1.0/bin/wardround");
    let server = Server::by(&program, folder, "llama3.2-3b --context 1024");
    let list = server.get("/v1/models").json();
    assert_eq!(list["data"][0]["id"], "llama3.2-3b");
    assert_eq!(list["data"][0]["wardround"]["notice"], "Built with Llama");
    assert_eq!(list["wardround"]["selftest"]["outcome"], "not_made");
    let folder = server.kill();

    let told = root.join("selftest/1.0");
    fs::create_dir_all(&told).unwrap();
    let report = "{\"created_at\": \"2026-03-01T08:00:00Z\", \"outcome\": \"ok\"}";
    fs::write(told.join("selftest.json"), report).unwrap();
    let server = Server::by(&program, folder, "llama3.2-3b --context 1024");
    let selftest = &server.get("/v1/models").json()["wardround"]["selftest"];
    assert_eq!(selftest["outcome"], "passed");
    assert_eq!(selftest["created_at"], "2026-03-01T08:00:00Z");
}

#[test]
fn a_server_that_no_bundle_brought_says_nothing_of_a_selftest() {
    let server = Server::one(Family::Qwen3, "");
    let list = server.get("/v1/models").json();
    assert_eq!(list["wardround"]["selftest"], Value::Null);
    assert_eq!(list["data"][0]["wardround"]["notice"], Value::Null);
    assert!(!server.get("/").body.contains("selftest"));
}
