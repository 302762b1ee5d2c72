//! Installing: only what is signed, summed as it is written, tried by its own program, and never half of it.

use std::os::unix::fs::PermissionsExt;

use super::maker::{
    Scratch, Signer, append, check, current, files, install_to, install_with, told,
};

#[test]
fn a_signed_bundle_is_installed_tried_and_made_current() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let bundle = scratch.bundle("bundle", &signer, |_| {});
    let root = scratch.path("opt/wardround");
    let outcome =
        install_to(&root, &bundle, &signer, &[]).map_err(|failure| told(&failure)).unwrap();
    assert!(outcome.is_tested && outcome.before.is_none());
    assert_eq!(current(&root).as_deref(), Some("1.0"));
    let version = root.join("versions/1.0");
    assert_eq!(files(&version), files(&bundle));
    for name in files(&version) {
        let mode = std::fs::metadata(version.join(&name)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, if name.starts_with("bin/") { 0o755 } else { 0o644 }, "{name}");
        assert_eq!(
            std::fs::read(version.join(&name)).unwrap(),
            std::fs::read(bundle.join(&name)).unwrap()
        );
    }
    let called = std::fs::read_to_string(root.join("selftest/1.0/called")).unwrap();
    assert!(
        called.starts_with("selftest --root ") && called.contains("versions/1.0 --out "),
        "{called}"
    );
    // Again: it is checked, tried and current as before.
    install_to(&root, &bundle, &signer, &[]).map_err(|failure| told(&failure)).unwrap();
    check(&version, &[signer.trusted()]).unwrap();
    append(&version.join("models/llama/model.safetensors"), b"x");
    let failure = install_to(&root, &bundle, &signer, &[]).unwrap_err();
    let said = told(&failure);
    assert!(
        said.contains("changed  models/llama/model.safetensors") && said.contains("hint: remove "),
        "{said}"
    );
}

#[test]
fn what_killed_installations_left_is_removed_whatever_their_version() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let bundle = scratch.bundle("bundle", &signer, |_| {});
    let root = scratch.path("root");
    for version in ["0.9", "1.0"] {
        scratch.write(&format!("root/versions/.{version}.partial/models/rest"), "half");
    }
    scratch.write("root/versions/.own/notes", "kept");
    install_to(&root, &bundle, &signer, &[]).map_err(|failure| told(&failure)).unwrap();
    assert_eq!(files(&root.join("versions/1.0")), files(&bundle));
    let left = std::fs::read_dir(root.join("versions")).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".own", "1.0"]);
}

#[test]
fn whoever_installs_with_a_mask_of_their_own_installs_for_everybody() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let model = scratch.fetched("qwen", "Qwen/Qwen3-4B");
    scratch.bundle("bundle", &signer, |request| {
        request.models = vec![model.to_str().unwrap().to_owned()];
    });
    let said = scratch.masked(&[
        "bundle",
        "install",
        "bundle",
        "--to",
        "opt/ward",
        "--trust",
        &signer.key(),
    ]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let mut folders = vec![scratch.path("opt")];
    while let Some(folder) = folders.pop() {
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&folder) & 0o777, 0o755, "{}", folder.display());
        for entry in std::fs::read_dir(&folder).unwrap() {
            let (path, kind) =
                entry.map(|entry| (entry.path(), entry.file_type().unwrap())).unwrap();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && !path.ends_with(".lock") && !path.ends_with("called") {
                assert_eq!(mode(&path) & 0o444, 0o444, "{}", path.display());
            }
        }
    }
}

#[test]
fn a_machine_that_is_too_old_is_told_before_anything_is_written() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let root = scratch.path("root");
    let program = scratch.write("modern", "#!/bin/sh\nexit 64\n# GLIBC_99.0\n");
    let bundles = [
        (
            scratch.bundle("kernel", &signer, |request| request.kernel = Some("99.0".to_owned())),
            "the Linux kernel 99.0",
        ),
        (
            scratch.bundle("library", &signer, |request| request.binaries = vec![program]),
            "the GNU C library 99.0",
        ),
    ];
    for (bundle, part) in bundles {
        let failure = install_to(&root, &bundle, &signer, &[]).unwrap_err();
        assert_eq!(failure.blame().exit_code(), 3);
        assert!(told(&failure).contains(part), "{}", told(&failure));
        assert!(!root.exists());
    }
}

#[test]
fn nobody_installs_what_nobody_signed() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let bundle = scratch.bundle("bundle", &signer, |_| {});
    let root = scratch.path("root");
    for keys in
        [vec![], vec![Signer::new().trusted()], vec![signer.trusted(), Signer::new().trusted()]]
    {
        let failure = install_with(&root, &bundle, &keys, &[], false).unwrap_err();
        assert_eq!(failure.blame().exit_code(), 3, "{}", told(&failure));
    }
    let said = scratch.wardround(&["bundle", "install", "bundle", "--to", "root"]);
    assert_eq!(said.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&said.stderr).contains("hint: give --trust KEY"));
    assert!(!root.exists());
}

#[test]
fn what_changes_between_check_and_copy_is_noticed_and_nothing_stays() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let bundle = scratch.bundle("bundle", &signer, |_| {});
    let root = scratch.path("root");
    install_to(&root, &bundle, &signer, &[]).map_err(|failure| told(&failure)).unwrap();
    let next = scratch.bundle("next", &signer, |request| request.version = "2.0".parse().unwrap());
    // Of the same size, so that only the sum tells; names and sizes alone are looked at before the copy.
    let weights = next.join("models/llama/model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&weights, bytes).unwrap();
    let failure = install_to(&root, &next, &signer, &[]).unwrap_err();
    assert!(told(&failure).contains("model.safetensors: its sha256 is"), "{}", told(&failure));
    assert_eq!(failure.blame().exit_code(), 3);
    assert_eq!(current(&root).as_deref(), Some("1.0"));
    let versions = std::fs::read_dir(root.join("versions")).unwrap();
    assert_eq!(versions.count(), 1);
}

#[test]
fn a_version_whose_selftest_differs_is_there_and_not_current() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let root = scratch.path("root");
    let first = scratch.bundle("first", &signer, |_| {});
    install_to(&root, &first, &signer, &[]).map_err(|failure| told(&failure)).unwrap();
    let differing = scratch.program("differing", Some(1));
    let second = scratch.bundle("second", &signer, |request| {
        request.version = "2.0".parse().unwrap();
        request.binaries = vec![differing];
    });
    let failure = install_to(&root, &second, &signer, &[]).unwrap_err();
    assert_eq!(failure.blame().exit_code(), 1);
    assert!(told(&failure).contains("its selftest found differences"), "{}", told(&failure));
    assert_eq!(current(&root).as_deref(), Some("1.0"));
    assert!(root.join("versions/2.0/MANIFEST.json").is_file());
    // A person may decide otherwise.
    let said = scratch.wardround(&["bundle", "rollback", "root", "--to", "2.0"]);
    assert_eq!(said.status.code(), Some(0), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(current(&root).as_deref(), Some("2.0"));

    let broken = scratch.program("broken", Some(3));
    let third = scratch.bundle("third", &signer, |request| {
        request.version = "3.0".parse().unwrap();
        request.binaries = vec![broken];
    });
    let failure = install_to(&root, &third, &signer, &[]).unwrap_err();
    assert_eq!(failure.blame().exit_code(), 3);
    assert_eq!(current(&root).as_deref(), Some("2.0"));

    let untested = scratch.program("untested", None);
    let fourth = scratch.bundle("fourth", &signer, |request| {
        request.version = "4.0".parse().unwrap();
        request.binaries = vec![untested];
    });
    let outcome =
        install_to(&root, &fourth, &signer, &[]).map_err(|failure| told(&failure)).unwrap();
    assert!(!outcome.is_tested);
    assert_eq!(current(&root).as_deref(), Some("4.0"));
}

#[test]
fn two_at_once_do_not_meet() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let bundle = scratch.bundle("bundle", &signer, |_| {});
    let root = scratch.path("root");
    std::fs::create_dir_all(root.join("versions")).unwrap();
    let lock = std::fs::File::create(root.join(".lock")).unwrap();
    lock.lock().unwrap();
    let failure = install_to(&root, &bundle, &signer, &[]).unwrap_err();
    assert!(told(&failure).contains("is being written by another process"), "{}", told(&failure));
    lock.unlock().unwrap();
    install_to(&root, &bundle, &signer, &[]).map_err(|failure| told(&failure)).unwrap();
}

#[test]
fn what_a_cut_power_left_is_removed_by_the_next_attempt() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let bundle = scratch.bundle("bundle", &signer, |_| {});
    scratch.write("root/versions/.1.0.partial/models/llama/model.safetensors", "half");
    scratch.write("root/versions/.1.0.partial/rubbish", "");
    std::os::unix::fs::symlink("versions/0.9", scratch.path("root/.current.partial")).unwrap();
    let root = scratch.path("root");
    install_to(&root, &bundle, &signer, &[]).map_err(|failure| told(&failure)).unwrap();
    assert_eq!(files(&root.join("versions/1.0")), files(&bundle));
    assert_eq!(std::fs::read_dir(root.join("versions")).unwrap().count(), 1);
    assert!(!root.join(".current.partial").exists());
}

#[test]
fn the_service_is_written_where_it_is_asked_for_with_the_roots_own_place() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    scratch.bundle("bundle", &signer, |_| {});
    let key = signer.key();
    let install_to = |root: &str, unit: &str| {
        let to = ["bundle", "install", "bundle", "--to", root, "--trust", &key, "--systemd", unit];
        scratch.wardround(&to)
    };
    let install = |unit: &str| install_to("srv/ward", unit);
    std::fs::create_dir(scratch.path("units")).unwrap();
    for (wrong, told) in [
        ("units/none.service", "wardround-cuda.service, wardround-unix.service, wardround.service"),
        ("units/wardround.nft", "has no unit `wardround.nft`"),
        ("nowhere/wardround.service", "nowhere is no directory"),
    ] {
        let said = install(wrong);
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.code() == Some(2) && text.contains(told), "{text}");
        assert!(!scratch.path("srv").exists());
    }
    // systemd would read the rest as an argument, or put something in its place.
    for root in ["srv/ward round", "srv/%i"] {
        let said = install_to(root, "units/wardround.service");
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.code() == Some(2) && text.contains("a unit cannot name"), "{text}");
        assert!(!scratch.path("srv").exists());
    }
    let said = install("units/wardround.service");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let unit = std::fs::read_to_string(scratch.path("units/wardround.service")).unwrap();
    let root = scratch.path("srv/ward");
    let program = format!("ExecStart={}/current/bin/wardround serve ", root.display());
    assert!(unit.contains(&program) && !unit.contains("/opt/wardround"), "{unit}");
    assert_eq!(files(&scratch.path("units")), ["wardround.service"]);
}
