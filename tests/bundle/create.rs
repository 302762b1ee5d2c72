//! Making bundles: the same twice, nothing unknown, nothing that may not be passed on, nothing half-written.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use wardround::bundle::create::{Added, create};
use wardround::bundle::manifest::Role;
use wardround::model::Family;
use wardround::synth::{Recipe, Shape, write_checkpoint};

use crate::maker::{EPOCH, Scratch, Signer, check, files, manifest_of, refused};

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
    crate::maker::append(&bundle.join("models/llama/config.json"), b" ");
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
    request.licences.insert("llama3.2-3b".to_owned(), text);
    request.policies.insert("llama3.2-3b".to_owned(), scratch.write("policy", "no harm\n"));
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
    crate::maker::append(&scratch.path("qwen/model.safetensors"), b"x");
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
    request.licences.insert("gemma3-4b".to_owned(), scratch.write("terms", "the terms\n"));
    let (message, code) = refused(&request);
    assert_eq!(code, 2);
    assert!(message.contains("--accepted-by"), "{message}");
    request.accepted_by = Some("R. Roe".to_owned());
    let (message, code) = refused(&request);
    assert!(code == 3 && message.contains("--policy gemma3-4b=FILE"), "{message}");
    request.policies.insert("gemma3-4b".to_owned(), scratch.write("policy", "no harm\n"));
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
    request.name = "../x".to_owned();
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
    crate::maker::install_to(&root, &bundle, &signer, &[])
        .map_err(|failure| failure.to_string())
        .unwrap();
    assert_eq!(
        std::fs::read(root.join("current/models/llama/model.safetensors")).unwrap(),
        weights
    );
    // An installed version is a bundle too: whole files in the place of parts.
    check(&root.join("current"), &[signer.trusted()]).unwrap();
}

#[test]
fn every_bundle_has_what_a_host_needs_and_a_senders_own_unit_goes_before() {
    let scratch = Scratch::new();
    let mut request = scratch.request("bundle");
    let own = scratch.write("wardround.service", "[Unit]\n");
    request.added.push(Added { role: Role::System, path: own });
    create(&request).map_err(|failure| failure.to_string()).unwrap();
    let system = scratch.path("bundle/system");
    assert_eq!(
        files(&system),
        [
            "CHANGELOG.md",
            "Containerfile",
            "SECURITY.md",
            "wardround-cuda.service",
            "wardround-unix.service",
            "wardround.nft",
            "wardround.service"
        ]
    );
    assert_eq!(std::fs::read_to_string(system.join("wardround.service")).unwrap(), "[Unit]\n");
}

#[test]
fn corpora_go_in_whole_where_their_sources_may_be_handed_on() {
    let scratch = Scratch::new();
    let encoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/encoders/tiny-mean");
    std::os::unix::fs::symlink(encoder, scratch.path("encoder")).unwrap();
    scratch.write("rows.jsonl", "{\"id\": \"a\", \"text\": \"Rest and fluids.\"}\n");
    for (name, redistribute) in [("ours", true), ("theirs", false)] {
        let text = format!(
            "name = \"{name}\"\n[[source]]\nlabel = \"ward\"\nformat = \"jsonl\"\npath = \"rows.jsonl\"\n\
             licence = \"of the {name}\"\nredistribute = {redistribute}\n"
        );
        let description = format!("{name}.toml");
        scratch.write(&description, text);
        let build = ["corpus", "build", &description, "--encoder", "encoder", "--out", name];
        let said = scratch.wardround(&build);
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }
    let mut request = scratch.request("refused");
    request.corpora = vec![scratch.path("theirs")];
    let (said, code) = refused(&request);
    assert!(
        code == 2 && said.contains("ward, whose licence") && said.contains("of the theirs"),
        "{said}"
    );

    request.allowed = vec!["ward".to_owned()];
    let made = create(&request).map_err(|failure| failure.to_string()).unwrap();
    assert!(made.by_leave.iter().eq(["ward"]));

    let mut request = scratch.request("bundle");
    request.corpora = vec![scratch.path("ours")];
    request.allowed = vec!["ward".to_owned()];
    assert!(refused(&request).0.contains("--allow ward: nothing of this name"));
    request.allowed.clear();
    let made = create(&request).map_err(|failure| failure.to_string()).unwrap();
    let component = made.manifest.components.iter().find(|component| component.name == "ours");
    assert_eq!(component.unwrap().licence, "of the ours");
    assert!(!made.unverified.contains("ours"));
    let said = scratch.wardround(&["corpus", "verify", "bundle/data/ours"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let manifest = std::fs::read_to_string(scratch.path("bundle/data/ours/corpus.toml")).unwrap();
    let here = scratch.path("").to_string_lossy().into_owned();
    assert!(!manifest.contains(&here), "{manifest}");

    let damaged = scratch.path("ours/chunks.bin");
    let damaged = if damaged.exists() { damaged } else { scratch.path("ours/vectors.bin") };
    crate::maker::append(&damaged, b"x");
    let mut request = scratch.request("again");
    request.corpora = vec![scratch.path("ours")];
    let (said, code) = refused(&request);
    assert!(code == 3 && said.contains("changed  "), "{said}");
}

#[test]
fn datasets_that_no_licence_lets_be_handed_on_need_leave() {
    let scratch = Scratch::new();
    let text = "{\"ms-test-1\": [\"fever\"]}\n";
    scratch.write("data/medec/medguards_keywords.json", text);
    let sum = wardround::digest::sha256(text);
    let record = format!(
        "[files.\"medec/medguards_keywords.json\"]\ndataset = \"medguards-keywords\"\nrepository = \"r\"\nrevision = \"v\"\n\
         source = \"s\"\nsource_sha256 = \"{sum}\"\nsha256 = \"{sum}\"\n"
    );
    scratch.write("data/provenance.toml", record);
    let mut request = scratch.request("bundle");
    request.data = vec![scratch.path("data")];
    let (said, code) = refused(&request);
    assert!(
        code == 2 && said.contains("none stated") && said.contains("--allow medguards-keywords"),
        "{said}"
    );
    request.allowed = vec!["medguards-keywords".to_owned()];
    let made = create(&request).map_err(|failure| failure.to_string()).unwrap();
    assert!(made.by_leave.iter().eq(["medguards-keywords"]));
}

#[test]
fn a_licence_whose_text_is_the_same_everywhere_travels_without_being_asked_for() {
    let scratch = Scratch::new();
    let mut request = scratch.request("bundle");
    request.models = vec![scratch.fetched("qwen", "Qwen/Qwen3-4B").to_str().unwrap().to_owned()];
    let made = create(&request).map_err(|failure| failure.to_string()).unwrap();
    let text = std::fs::read(scratch.path("bundle/licences/qwen3-4b/LICENCE")).unwrap();
    assert_eq!(text, std::fs::read("LICENSE-APACHE").unwrap());
    let component = made.manifest.components.iter().find(|own| own.name == "qwen3-4b").unwrap();
    assert_eq!(component.licence_sha256, Some(wardround::digest::sha256(&text)));
}

#[test]
fn what_scanners_ask_for_is_missed_and_said() {
    let scratch = Scratch::new();
    let mut request = scratch.request("bundle");
    request.added.push(Added {
        role: Role::Sbom,
        path: scratch.write("wardround.cdx.json", "{\"components\": []}\n"),
    });
    let made = create(&request).map_err(|failure| failure.to_string()).unwrap();
    assert_eq!(made.lacking, ["sbom/advisories.json", "licences/THIRD-PARTY.html"]);
    let page = std::fs::read_to_string(scratch.path("bundle/README.html")).unwrap();
    assert!(page.contains("href=\"sbom/wardround.cdx.json\""));
    // A program without a list of its own cannot be compared.
    let deep = wardround::bundle::deep::check(&scratch.path("bundle"), &made.manifest);
    assert!(deep.notes.join("\n").contains("bin/wardround carries no list"), "{:?}", deep.notes);
}

#[test]
fn a_program_says_itself_how_it_was_built() {
    let scratch = Scratch::new();
    let script = "#!/bin/sh\n[ \"$1\" = version ] || exit 64\necho '{\"version\": \"1\", \"commit\": \"abc\", \
                  \"dirty\": true, \"rustc\": \"rustc 1.95.0\", \"target\": \"riscv64gc-unknown-linux-gnu\", \"profile\": \"release\", \
                  \"features\": [\"serve\"], \"source_date_epoch\": 5}'\n";
    let program = scratch.write("other", script);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut request = scratch.request("bundle");
    request.binaries = vec![program];
    let manifest = create(&request).map_err(|failure| failure.to_string()).unwrap().manifest;
    let (source, build) = (manifest.source.unwrap(), manifest.build.unwrap());
    assert!(source.dirty && source.commit == "abc");
    assert_eq!((build.rustc.as_str(), build.source_date_epoch), ("rustc 1.95.0", Some(5)));
    assert_eq!(manifest.requires.cpu, "riscv64gc");
    let mut request = scratch.request("silent");
    request.kernel = Some("5.13".to_owned());
    let manifest = create(&request).map_err(|failure| failure.to_string()).unwrap().manifest;
    assert!(manifest.build.is_none() && manifest.requires.kernel.as_deref() == Some("5.13"));
}

#[test]
fn golden_files_of_other_machines_go_in_where_they_are_of_a_model_here() {
    let scratch = Scratch::new();
    for (folder, seed) in [("real", 1), ("elsewhere/real", 2)] {
        let recipe = Recipe { family: Family::Llama, shape: Shape::Tiny, seed, tokenizer: None };
        write_checkpoint(&recipe, &scratch.path(folder)).unwrap();
    }
    let made =
        scratch.wardround(&["selftest", "--model", "real", "--golden", "golden", "--write-golden"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let own = scratch.path("golden").join(&files(&scratch.path("golden"))[0]);
    let text = std::fs::read_to_string(own).unwrap();
    let (head, answers) = text.split_once('\n').unwrap();
    let mut head: serde_json::Value = serde_json::from_str(head).unwrap();
    head["device_kind"] = "cuda-sm_90".into();
    let given = scratch.write("of-a-gpu.jsonl", format!("{head}\n{answers}"));
    let request = |name: &str, model: &str| {
        let mut request = scratch.request(name);
        request.models = vec![scratch.path(model).to_str().unwrap().to_owned()];
        request.added.push(Added { role: Role::Golden, path: given.clone() });
        request
    };
    create(&request("bundle", "real")).map_err(|failure| failure.to_string()).unwrap();
    assert!(scratch.path("bundle/golden/real.cuda-sm_90.jsonl").is_file());
    let (said, code) = refused(&request("none", "llama"));
    assert!(code == 3 && said.contains("the bundle has no such model"), "{said}");
    let (said, code) = refused(&request("other", "elsewhere/real"));
    assert!(code == 3 && said.contains("it was made for weights of real"), "{said}");
    std::fs::write(&given, "{}\n").unwrap();
    assert_eq!(refused(&request("broken", "real")).1, 3);
}
