//! From version to version: forwards, backwards when asked, and by what changed alone.

use wardround::bundle::manifest::Manifest;

use super::maker::{
    Scratch, Signer, check, current, files, install_to, install_with, manifest_of, told,
};

#[test]
fn versions_go_forwards_unless_asked_and_back_by_one_command() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let root = scratch.path("root");
    let bundle = |version: &str| {
        scratch.bundle(version, &signer, |request| request.version = version.parse().unwrap())
    };
    let (old, new) = (bundle("1.9"), bundle("1.10"));
    let install =
        |bundle| install_to(&root, bundle, &signer, &[]).map_err(|failure| told(&failure));
    install(&old).unwrap();
    let outcome = install(&new).unwrap();
    assert_eq!(outcome.before.unwrap().to_string(), "1.9");
    let refused = install(&old).unwrap_err();
    assert!(
        refused.contains("1.9 is older than 1.10") && refused.contains("--downgrade"),
        "{refused}"
    );
    assert_eq!(current(&root).as_deref(), Some("1.10"));

    let said = |arguments: &[&str]| {
        let output = scratch.wardround(arguments);
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code().unwrap(), text)
    };
    let (code, text) = said(&["bundle", "ls", "root"]);
    assert!(code == 0 && text.lines().count() == 2, "{text}");
    assert!(text.lines().nth(1).unwrap().starts_with("1.10         current"), "{text}");
    assert_eq!(said(&["bundle", "rollback", "root"]).0, 0);
    assert_eq!(current(&root).as_deref(), Some("1.9"));
    assert_eq!(said(&["bundle", "rollback", "root"]).0, 0);
    assert_eq!(current(&root).as_deref(), Some("1.10"));
    install_with(&root, &old, &[signer.trusted()], &[], true)
        .map_err(|failure| told(&failure))
        .unwrap();
    assert_eq!(current(&root).as_deref(), Some("1.9"));

    let (code, text) = said(&["bundle", "rollback", "root", "--to", "7.7"]);
    assert!(code == 3 && text.contains("7.7 is not in"), "{text}");
    let (code, text) = said(&["bundle", "rollback", "root", "--to", "../../x"]);
    assert!(code == 3, "{text}");
    let (code, text) = said(&["bundle", "rollback", "1.9"]);
    assert!(code == 3 && text.contains("holds no installed version"), "{text}");
    // A program that was changed is not gone back to.
    std::fs::write(root.join("versions/1.10/bin/wardround"), "#!/bin/sh\n").unwrap();
    let (code, text) = said(&["bundle", "rollback", "root"]);
    assert!(code == 3 && text.contains("changed  bin/wardround"), "{text}");
    assert_eq!(current(&root).as_deref(), Some("1.9"));
}

/// After a rollback the newest version is not the current one, and still the newest.
#[test]
fn after_a_rollback_an_older_version_is_still_older() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let root = scratch.path("root");
    let bundle = |version: &str| {
        scratch.bundle(version, &signer, |request| request.version = version.parse().unwrap())
    };
    for version in ["1.0", "3.0"] {
        install_to(&root, &bundle(version), &signer, &[])
            .map_err(|failure| told(&failure))
            .unwrap();
    }
    assert!(scratch.wardround(&["bundle", "rollback", "root"]).status.success());
    assert_eq!(current(&root).as_deref(), Some("1.0"));
    let second = bundle("2.0");
    let refused = || told(&install_to(&root, &second, &signer, &[]).unwrap_err());
    let expected = "2.0 is older than 3.0, which is or was installed";
    assert!(refused().contains(expected), "{}", refused());
    // Also once it is removed.
    std::fs::remove_dir_all(root.join("versions/3.0")).unwrap();
    assert!(refused().contains(expected), "{}", refused());
    let (key, bundle) = (signer.key(), second.to_str().unwrap());
    let all = ["bundle", "install", bundle, "--to", "root", "--trust", &key, "--downgrade"];
    assert!(scratch.wardround(&all).status.success());
    assert_eq!(current(&root).as_deref(), Some("2.0"));
}

/// Weights that were changed on the disk are not gone back to either.
#[test]
fn what_is_gone_back_to_is_checked_whole_and_by_its_signers() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let root = scratch.path("root");
    for version in ["1.0", "2.0"] {
        let bundle = scratch.bundle(version, &signer, |request| {
            request.version = version.parse().unwrap();
        });
        install_to(&root, &bundle, &signer, &[]).map_err(|failure| told(&failure)).unwrap();
    }
    let back = || {
        let output = scratch.wardround(&["bundle", "rollback", "root"]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let weights = root.join("versions/1.0/models/llama/model.safetensors");
    let whole = std::fs::read(&weights).unwrap();
    std::fs::write(&weights, vec![0; whole.len()]).unwrap();
    let (code, said) = back();
    assert!(code == Some(3) && said.contains("changed  models/llama/model.safetensors"), "{said}");
    std::fs::write(&weights, whole).unwrap();
    // Somebody who could write there signed it again with a key of their own.
    let signature = root.join("versions/1.0/SHA256SUMS.minisig");
    let genuine = std::fs::read(&signature).unwrap();
    let sums = std::fs::read(root.join("versions/1.0/SHA256SUMS")).unwrap();
    std::fs::write(&signature, Signer::new().sign(&sums)).unwrap();
    let (code, said) = back();
    assert!(code == Some(3) && said.contains("has no signature of SHA256SUMS by"), "{said}");
    std::fs::write(&signature, genuine).unwrap();
    assert_eq!(back().0, Some(0));
}

#[test]
fn a_root_takes_the_product_and_the_signers_of_its_first_bundle() {
    let scratch = Scratch::new();
    let (signer, other) = (Signer::new(), Signer::new());
    let root = scratch.path("root");
    let bundle = |version: &str, name: &str, signer: &Signer| {
        scratch.bundle(&format!("{name}-{version}"), signer, |request| {
            request.version = version.parse().unwrap();
            request.name = Some(name.to_owned());
        })
    };
    let install = |bundle: &std::path::Path, signer: &Signer| {
        install_to(&root, bundle, signer, &[]).map_err(|failure| told(&failure))
    };
    let first = install(&bundle("1.0", "ward", &signer), &signer).unwrap();
    let [(_, comment)] = &first.signers[..] else { panic!("{:?}", first.signers) };
    assert_eq!(comment, "bundle");
    let refused = install(&bundle("2.0", "clinic", &signer), &signer).unwrap_err();
    assert!(refused.contains("the bundle is of clinic, and") && refused.contains("--new-signer"));
    let theirs = bundle("2.0", "ward", &other);
    let refused = install(&theirs, &other).unwrap_err();
    assert!(refused.contains("no --trust names the key"), "{refused}");
    assert_eq!(current(&root).as_deref(), Some("1.0"));
    let theirs = theirs.to_str().unwrap();
    let key = other.key();
    let new = ["bundle", "install", theirs, "--to", "root", "--trust", &key, "--new-signer"];
    let output = scratch.wardround(&new);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("signed  by"), "{said}");
    install(&bundle("3.0", "ward", &signer), &signer).unwrap_err();
    install(&bundle("3.1", "ward", &other), &other).unwrap();
}

/// Whoever may remove the file could otherwise bring in versions of their own.
#[test]
fn a_root_that_lost_the_names_of_its_signers_takes_no_bundle_without_being_told() {
    let scratch = Scratch::new();
    let (signer, other) = (Signer::new(), Signer::new());
    let root = scratch.path("root");
    let bundle = |version: &str, signer: &Signer| {
        scratch.bundle(version, signer, |request| request.version = version.parse().unwrap())
    };
    let install = |bundle: &std::path::Path, signer: &Signer| {
        install_to(&root, bundle, signer, &[]).map_err(|failure| told(&failure))
    };
    for version in ["1.0", "2.0"] {
        install(&bundle(version, &signer), &signer).unwrap();
    }
    std::fs::remove_file(root.join("trust.json")).unwrap();
    let (theirs, ours) = (bundle("3.0", &other), bundle("4.0", &signer));
    for refused in [install(&theirs, &other).unwrap_err(), install(&ours, &signer).unwrap_err()] {
        assert!(
            refused.contains("no trust.json") && refused.contains("--trust KEY --new-signer"),
            "{refused}"
        );
    }
    let back = || scratch.wardround(&["bundle", "rollback", "root"]);
    let output = back();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(3) && said.contains("no trust.json"), "{said}");
    assert_eq!(current(&root).as_deref(), Some("2.0"));
    let (ours, key) = (ours.to_str().unwrap(), signer.key());
    let again = ["bundle", "install", ours, "--to", "root", "--trust", &key, "--new-signer"];
    assert!(scratch.wardround(&again).status.success());
    assert_eq!(back().status.code(), Some(0));
    assert_eq!(current(&root).as_deref(), Some("2.0"));
    assert!(install(&bundle("5.0", &other), &other).unwrap_err().contains("no --trust names"));
}

/// The first version of a root may fail its selftest, and is gone back to under its signers all the same.
#[test]
fn a_first_version_that_is_not_current_has_its_signers() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let root = scratch.path("root");
    let differing = scratch.program("differing", Some(1));
    let bundle = scratch.bundle("first", &signer, |request| request.binaries = vec![differing]);
    install_to(&root, &bundle, &signer, &[]).unwrap_err();
    assert_eq!(current(&root), None);
    let output = scratch.wardround(&["bundle", "rollback", "root", "--to", "1.0"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(current(&root).as_deref(), Some("1.0"));
}

#[test]
fn one_version_is_one_bundle() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let root = scratch.path("root");
    let first = scratch.bundle("first", &signer, |_| {});
    let other = scratch.bundle("other", &signer, |request| {
        request.version = "1.0.0".parse().unwrap();
        request.kernel = Some("1.0".to_owned());
    });
    install_to(&root, &first, &signer, &[]).map_err(|failure| told(&failure)).unwrap();
    let refused = told(&install_to(&root, &other, &signer, &[]).unwrap_err());
    assert!(refused.contains("it is another bundle"), "{refused}");
}

#[test]
fn a_bundle_of_changes_takes_the_rest_from_the_version_that_it_names() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let root = scratch.path("root");
    let first = scratch.bundle("first", &signer, |_| {});
    let more = scratch.model("gemma");
    let both = [scratch.path("llama"), more];
    let both: Vec<String> = both.iter().map(|path| path.to_str().unwrap().to_owned()).collect();
    let since = first.join("MANIFEST.json");
    let changes = scratch.bundle("changes", &signer, |request| {
        request.version = "1.1".parse().unwrap();
        request.models = both.clone();
        request.since = Some(since);
    });
    let names = files(&changes);
    assert!(names.contains(&"models/gemma/model.safetensors".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("models/llama/")), "{names:?}");
    let checked = check(&changes, &[signer.trusted()]).unwrap();
    assert_eq!(checked.unchanged, 11, "three files of the model, the recipe, seven of system/");

    let refused = install_to(&root, &changes, &signer, &[]).unwrap_err();
    assert_eq!(refused.blame().exit_code(), 3);
    assert!(told(&refused).contains("install that version first"), "{}", told(&refused));
    install_to(&root, &first, &signer, &[]).map_err(|failure| told(&failure)).unwrap();
    install_to(&root, &changes, &signer, &[]).map_err(|failure| told(&failure)).unwrap();
    assert_eq!(current(&root).as_deref(), Some("1.1"));
    let llama = root.join("current/models/llama/model.safetensors");
    assert_eq!(
        std::fs::read(&llama).unwrap(),
        std::fs::read(scratch.path("llama/model.safetensors")).unwrap()
    );
    let whole = check(&root.join("versions/1.1"), &[signer.trusted()]).unwrap();
    assert_eq!(whole.unchanged, 0);
    // The same as the whole bundle would have brought.
    let whole = scratch.bundle("whole", &signer, |request| {
        request.version = "1.1".parse().unwrap();
        request.models = both;
    });
    let sums = |manifest: Manifest| -> Vec<_> {
        let files = manifest.files.into_iter().filter(|file| file.path.as_str() != "README.html");
        files.map(|file| (file.path, file.sha256)).collect()
    };
    assert_eq!(sums(manifest_of(&whole)), sums(manifest_of(&changes)));

    // What is damaged in the version before does not come along.
    std::fs::write(root.join("versions/1.0/models/llama/config.json"), "[]").unwrap();
    std::fs::remove_file(root.join("current")).unwrap();
    std::fs::remove_dir_all(root.join("versions/1.1")).unwrap();
    let refused = told(&install_to(&root, &changes, &signer, &[]).unwrap_err());
    assert!(refused.contains("config.json: its sha256 is"), "{refused}");
}
