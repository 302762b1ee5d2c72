//! Making bundles: the same twice, nothing unknown, nothing that may not be passed on, nothing half-written.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use wardround::bundle::create::{Added, create};
use wardround::bundle::manifest::Role;

use super::maker::{
    EPOCH, Scratch, Signer, append, check, files, install_to, manifest_of, refused,
};

#[test]
fn a_bundle_made_twice_is_the_same_to_the_byte() {
    let scratch = Scratch::new();
    for name in ["one", "two"] {
        let mut request = scratch.request(name);
        request.added.push(Added {
            role: Role::System,
            path: scratch.write("wardround.service", "[Unit]\n"),
        });
        request.data.push(scratch.write("own/notes.jsonl", "{\"id\": \"n1\", \"text\": \"a\"}\n"));
        create(&request).map_err(|failure| failure.to_string()).unwrap();
    }
    let (one, two) = (scratch.path("one"), scratch.path("two"));
    let names = files(&one);
    assert_eq!(names, files(&two));
    for expected in [
        "MANIFEST.json",
        "README.html",
        "SHA256SUMS",
        "bin/wardround",
        "data/notes.jsonl",
        "licences/LICENSE-MIT",
        "models/llama/model.safetensors",
        "recipes/table1.toml",
        "sbom/models.cdx.json",
        "system/wardround.service",
    ] {
        assert!(names.iter().any(|name| name == expected), "{expected} in {names:?}");
    }
    for name in &names {
        assert_eq!(
            std::fs::read(one.join(name)).unwrap(),
            std::fs::read(two.join(name)).unwrap(),
            "{name}"
        );
        let metadata = std::fs::metadata(one.join(name)).unwrap();
        assert_eq!(metadata.mtime(), EPOCH as i64, "{name}");
        let mode = if name.starts_with("bin/") { 0o755 } else { 0o644 };
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{name}");
    }
    assert_eq!(std::fs::metadata(&one).unwrap().mtime(), EPOCH as i64);
    let left = std::fs::read_dir(one.parent().unwrap()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_str().unwrap().contains("partial")), "{left:?}");
}

#[test]
fn coreutils_check_the_sums() {
    let scratch = Scratch::new();
    let bundle = scratch.bundle("bundle", &Signer::new(), |_| {});
    let checked = |bundle: &Path| {
        let mut command = Command::new("sha256sum");
        let command = command.args(["--quiet", "--strict", "-c", "SHA256SUMS"]).current_dir(bundle);
        command.output().unwrap().status.success()
    };
    assert!(checked(&bundle));
    append(&bundle.join("models/llama/config.json"), b" ");
    assert!(!checked(&bundle));
}

#[test]
fn the_page_opens_from_disk_and_says_what_to_do_first() {
    let scratch = Scratch::new();
    let mut request = scratch.request("bundle");
    request.models = vec![
        scratch.fetched("meta", "meta-llama/Llama-3.2-3B-Instruct").to_str().unwrap().to_owned(),
    ];
    let text = scratch.write("LICENSE.txt", "the agreement <b>as it is</b>\n");
    request.licences.push(("llama3.2-3b".to_owned(), text));
    request.policies.push(("llama3.2-3b".to_owned(), scratch.write("policy", "no harm\n")));
    request.accepted_by = Some("R. <script> Roe".to_owned());
    request.unverified = false;
    create(&request).map_err(|failure| failure.to_string()).unwrap();
    let page = std::fs::read_to_string(scratch.path("bundle/README.html")).unwrap();
    for part in [
        "ssh-keygen -Y verify -f vendor.allowed -I NAME -n wardround-bundle -s SHA256SUMS.sig &lt; SHA256SUMS &amp;&amp; sha256sum --quiet -c SHA256SUMS",
        "bundle install . --to /opt/wardround --trust KEY --accept llama3.2-3b",
        "Built with Llama",
        "Llama 3.2 Community License, Copyright © Meta Platforms",
        "R. &lt;script&gt; Roe",
        "default-src 'none'",
        "Known anomalies",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for foreign in ["<script", "src=", "http://", "https://", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    let links: Vec<&str> = page.split("href=\"").skip(1).collect();
    assert!(links.len() >= 2);
    for link in links {
        let path = link.split('"').next().unwrap();
        assert!(scratch.path("bundle").join(path).is_file(), "{path}");
    }
    // Nothing that root runs lies where others may exchange it.
    assert!(!page.contains("/tmp/") && page.contains("mktemp -d"));
    let acceptance =
        std::fs::read_to_string(scratch.path("bundle/licences/llama3.2-3b/acceptance.toml"))
            .unwrap();
    assert!(
        acceptance.contains("licence_sha256 = \"")
            && acceptance.contains("accepted_at = \"2023-11-14T")
    );
    let sbom = std::fs::read(scratch.path("bundle/sbom/models.cdx.json")).unwrap();
    let sbom: serde_json::Value = serde_json::from_slice(&sbom).unwrap();
    assert_eq!(sbom["specVersion"], "1.6");
    assert_eq!(sbom["metadata"]["component"]["bom-ref"], "bundle:ward");
    assert_eq!(sbom["components"][0]["type"], "machine-learning-model");
    let weights =
        wardround::digest::sha256(std::fs::read(scratch.path("meta/model.safetensors")).unwrap());
    assert!(sbom.to_string().contains(&weights));
}

#[test]
fn files_that_nothing_vouches_for_are_refused() {
    let scratch = Scratch::new();
    let mut request = scratch.request("bundle");
    request.unverified = false;
    let (message, code) = refused(&request);
    assert_eq!(code, 3);
    assert!(
        message.contains("models/llama/model.safetensors") && message.contains("--unverified"),
        "{message}"
    );
    assert!(!scratch.path("bundle").exists());

    request.models = Vec::new();
    request.data = vec![scratch.write("mine.jsonl", "{}\n")];
    assert!(refused(&request).0.contains("data/mine.jsonl"));

    // What was fetched is known, until it is changed; then --unverified does not help.
    request.data = Vec::new();
    request.models = vec![scratch.fetched("qwen", "org/name").to_str().unwrap().to_owned()];
    let created = create(&request).map_err(|failure| failure.to_string()).unwrap();
    assert!(created.unverified.is_empty());
    append(&scratch.path("qwen/model.safetensors"), b"x");
    request.directory = scratch.path("other");
    request.unverified = true;
    let (message, code) = refused(&request);
    assert_eq!(code, 3);
    assert!(message.contains("model.safetensors: provenance.toml says"), "{message}");
}

#[test]
fn notes_under_a_data_use_agreement_are_found_by_what_they_hold() {
    let scratch = Scratch::new();
    for (name, text) in [
        ("innocent.csv", "Text ID,Text\nms-test-1,a\nuw-test-7,b\n"),
        ("notes.txt", "id UW-train-3: a note"),
    ] {
        let mut request = scratch.request("bundle");
        request.data = vec![scratch.write(name, text)];
        let (message, code) = refused(&request);
        assert_eq!(code, 2);
        assert!(message.contains(name) && message.contains("MEDEC-UW"), "{message}");
    }
    let mut request = scratch.request("bundle");
    request.data = vec![scratch.write("fine.csv", "Text ID,Text\nms-test-1,a\n")];
    create(&request).map_err(|failure| failure.to_string()).unwrap();
}

#[test]
fn gated_models_need_a_name_and_a_text() {
    let scratch = Scratch::new();
    let mut request = scratch.request("bundle");
    request.models =
        vec![scratch.fetched("gemma", "google/gemma-3-4b-it").to_str().unwrap().to_owned()];
    let (message, code) = refused(&request);
    assert_eq!(code, 3);
    assert!(
        message.contains("--licence gemma3-4b=FILE")
            && message.contains("ai.google.dev/gemma/terms"),
        "{message}"
    );
    request.licences.push(("gemma3-4b".to_owned(), scratch.write("terms", "the terms\n")));
    let (message, code) = refused(&request);
    assert_eq!(code, 2);
    assert!(message.contains("--accepted-by"), "{message}");
    request.accepted_by = Some("R. Roe".to_owned());
    let (message, code) = refused(&request);
    assert!(code == 3 && message.contains("--policy gemma3-4b=FILE"), "{message}");
    request.policies.push(("gemma3-4b".to_owned(), scratch.write("policy", "no harm\n")));
    create(&request).map_err(|failure| failure.to_string()).unwrap();
    let policy = scratch.path("bundle/licences/gemma3-4b/USE-POLICY");
    assert_eq!(std::fs::read_to_string(policy).unwrap(), "no harm\n");
    let notice = std::fs::read_to_string(scratch.path("bundle/licences/gemma3-4b/NOTICE")).unwrap();
    assert!(notice.contains("Gemma Terms of Use found at ai.google.dev/gemma/terms"));
}

#[test]
fn what_cannot_be_is_told_before_anything_is_written() {
    let scratch = Scratch::new();
    let mut request = scratch.request("bundle");
    request.recipes = vec!["no-such-recipe".to_owned()];
    assert!(refused(&request).0.contains("no-such-recipe"));
    let mut request = scratch.request("bundle");
    request.models.push(request.models[0].clone());
    assert!(refused(&request).0.contains("two files would be models/llama/"));
    let mut request = scratch.request("bundle");
    request.added.push(Added { role: Role::System, path: scratch.write("a b.txt", "") });
    assert!(refused(&request).0.contains("a b.txt"));
    let mut request = scratch.request("bundle");
    request.name = Some("../x".to_owned());
    assert!(refused(&request).0.contains("no name for a bundle"));
    scratch.write("bundle/thesis.tex", "");
    let request = scratch.request("bundle");
    let (message, code) = refused(&request);
    assert!(code == 2 && message.contains("is not empty"), "{message}");
    assert_eq!(files(&scratch.path("bundle")), ["thesis.tex"]);
}

#[test]
fn what_a_killed_process_left_is_removed() {
    let scratch = Scratch::new();
    scratch.write(".bundle.partial/models/llama/model.safetensors", "half");
    scratch.write(".bundle.partial/rubbish", "");
    let signer = Signer::new();
    let bundle = scratch.bundle("bundle", &signer, |_| {});
    assert!(!bundle.join("rubbish").exists());
    check(&bundle, &[signer.trusted()]).unwrap();
}

#[test]
fn large_files_are_split_for_media_that_hold_none() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let bundle = scratch.bundle("bundle", &signer, |request| request.split_bytes = Some(300));
    let weights = std::fs::read(scratch.path("llama/model.safetensors")).unwrap();
    assert!(!bundle.join("models/llama/model.safetensors").exists());
    let manifest = manifest_of(&bundle);
    let parts = &manifest.file("models/llama/model.safetensors").unwrap().parts;
    assert_eq!(parts.len(), weights.len().div_ceil(300));
    let joined: Vec<u8> =
        parts.iter().flat_map(|part| std::fs::read(part.path.below(&bundle)).unwrap()).collect();
    assert_eq!(joined, weights);
    check(&bundle, &[signer.trusted()]).unwrap();
    let root = scratch.path("root");
    install_to(&root, &bundle, &signer, &[]).map_err(|failure| failure.to_string()).unwrap();
    assert_eq!(
        std::fs::read(root.join("current/models/llama/model.safetensors")).unwrap(),
        weights
    );
    // An installed version is a bundle too: whole files in the place of parts.
    check(&root.join("current"), &[signer.trusted()]).unwrap();
}
