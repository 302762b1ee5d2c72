//! What goes into bundles: units, corpora, datasets, licences, lists, programs, golden files; and by whose leave.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use wardround::bundle::create::{Added, create};
use wardround::bundle::manifest::Role;
use wardround::model::Family;
use wardround::synth::{Recipe, Shape, write_checkpoint};

use super::maker::{Scratch, append, files, refused};

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
    append(&damaged, b"x");
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
