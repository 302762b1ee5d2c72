//! Licences that every recipient accepts anew, and models that are not used before.

use std::path::PathBuf;

use super::maker::{Scratch, Signer, current, install_to, told};

fn gated(scratch: &Scratch, signer: &Signer, name: &str, version: &str, text: &str) -> PathBuf {
    let model = scratch.fetched("gemma", "google/gemma-3-4b-it");
    let text = scratch.write(&format!("terms-{version}"), text);
    scratch.bundle(name, signer, |request| {
        request.version = version.parse().unwrap();
        request.models = vec![model.to_str().unwrap().to_owned()];
        request.licences.push(("gemma3-4b".to_owned(), text));
        request.policies.push(("gemma3-4b".to_owned(), scratch.write("policy", "no harm\n")));
        request.accepted_by = Some("R. Roe".to_owned());
    })
}

#[test]
fn a_licence_is_accepted_once_for_each_text() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let root = scratch.path("root");
    let first = gated(&scratch, &signer, "first", "1.0", "the terms\n");
    let refused = install_to(&root, &first, &signer, &[]).unwrap_err();
    assert_eq!(refused.blame().exit_code(), 3);
    let message = told(&refused);
    assert!(
        message.contains("licences/gemma3-4b/LICENCE") && message.contains("--accept gemma3-4b"),
        "{message}"
    );
    assert_eq!(current(&root), None);
    assert_eq!(std::fs::read_dir(root.join("versions")).unwrap().count(), 0);
    let refused = told(&install_to(&root, &first, &signer, &["gemma"]).unwrap_err());
    assert!(refused.contains("--accept gemma: the bundle has no component"), "{refused}");

    install_to(&root, &first, &signer, &["gemma3-4b"]).map_err(|failure| told(&failure)).unwrap();
    let accepted = || std::fs::read_to_string(root.join("licences/accepted.jsonl")).unwrap();
    assert_eq!(accepted().lines().count(), 1);
    let line: serde_json::Value = serde_json::from_str(accepted().trim()).unwrap();
    assert_eq!(
        (line["model"].as_str(), line["how"].as_str()),
        (Some("gemma3-4b"), Some("--accept"))
    );
    assert_eq!(line["licence_sha256"], wardround::digest::sha256("the terms\n"));

    // The same text is not asked for again, another one is.
    let second = gated(&scratch, &signer, "second", "1.1", "the terms\n");
    install_to(&root, &second, &signer, &[]).map_err(|failure| told(&failure)).unwrap();
    let third = gated(&scratch, &signer, "third", "1.2", "other terms\n");
    assert!(
        told(&install_to(&root, &third, &signer, &[]).unwrap_err()).contains("was not accepted")
    );
    assert_eq!(current(&root).as_deref(), Some("1.1"));
    install_to(&root, &third, &signer, &["gemma3-4b"]).map_err(|failure| told(&failure)).unwrap();
    assert_eq!(accepted().lines().count(), 2);
}

#[test]
fn a_text_that_was_changed_is_shown_to_nobody() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let bundle = gated(&scratch, &signer, "bundle", "1.0", "the terms\n");
    std::fs::write(bundle.join("licences/gemma3-4b/LICENCE"), "free beer\n").unwrap();
    let root = scratch.path("root");
    let refused = told(&install_to(&root, &bundle, &signer, &["gemma3-4b"]).unwrap_err());
    assert!(refused.contains("changed  licences/gemma3-4b/LICENCE"), "{refused}");
    assert!(!root.join("licences").exists());
}

#[test]
fn a_gated_model_of_a_root_is_not_used_before_its_licence_is_accepted() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let root = scratch.path("root");
    let bundle = gated(&scratch, &signer, "bundle", "1.0", "the terms\n");
    install_to(&root, &bundle, &signer, &["gemma3-4b"]).map_err(|failure| told(&failure)).unwrap();
    let model = "root/current/models/gemma3-4b";
    let verified = scratch.wardround(&["models", "verify", model]);
    // Its files are looked at, and are no model's.
    let told = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert_eq!(verified.status.code(), Some(3), "{told}");
    assert!(told.contains("`architectures` is missing"), "{told}");
    std::fs::write(root.join("licences/accepted.jsonl"), "").unwrap();
    scratch.write("note.txt", "Fever for two days.");
    let commands: [&[&str]; 5] = [
        &["models", "verify", model],
        &["check", "note.txt", "--panel", model],
        &["check", "note.txt", "--panel", model, "--sandbox", "require"],
        &[
            "run", "base-llm", "--data", "note.txt", "--format", "notes", "--panel", model,
            "--out", "out",
        ],
        &["serve", model, "--port", "0"],
    ];
    for arguments in
        commands.into_iter().filter(|words| cfg!(feature = "serve") || words[0] != "serve")
    {
        let output = scratch.wardround(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {said}");
        assert!(said.contains("licences/accepted.jsonl") && said.contains("gemma3-4b"), "{said}");
    }
    assert!(!scratch.path("out").exists());
}
