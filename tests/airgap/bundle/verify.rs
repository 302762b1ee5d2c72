//! Checking bundles: who signed, what was changed, added, taken away or led elsewhere, all told in one pass.

use std::collections::BTreeMap;
use std::path::Path;

use wardround::bundle::deep;
use wardround::bundle::verify::open;
use wardround::digest::sha256;
use wardround::model::Family;
use wardround::synth::{Recipe, Shape, write_checkpoint};

use super::maker::{Scratch, Signer, append, check, copy, manifest_of};

/// The message of a check that must fail.
#[track_caller]
fn wrong(bundle: &Path, signer: &Signer) -> String {
    check(bundle, &[signer.trusted()]).map(|checked| checked.files).unwrap_err().to_string()
}

#[test]
fn everything_that_is_wrong_is_told_in_one_pass() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let bundle = scratch.bundle("bundle", &signer, |_| {});
    assert!(check(&bundle, &[signer.trusted()]).unwrap().files > 5);
    append(&bundle.join("models/llama/config.json"), b" ");
    std::fs::write(bundle.join("models/llama/tokenizer.json"), "{\"a\": 2}").unwrap();
    std::fs::remove_file(bundle.join("recipes/table1.toml")).unwrap();
    std::fs::write(bundle.join("models/llama/extra.bin"), "").unwrap();
    std::fs::write(bundle.join("models/llama/CONFIG.json"), "{}").unwrap();
    let setuid = std::os::unix::fs::PermissionsExt::from_mode(0o4777);
    std::fs::set_permissions(bundle.join("licences/LICENSE-MIT"), setuid).unwrap();
    std::fs::create_dir(bundle.join("empty")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", bundle.join("models/llama/link")).unwrap();
    std::fs::remove_file(bundle.join("bin/wardround")).unwrap();
    std::os::unix::fs::symlink(scratch.path("program"), bundle.join("bin/wardround")).unwrap();
    let message = wrong(&bundle, &signer);
    for part in [
        "changed  models/llama/config.json: it has 3 bytes, not 2",
        "changed  models/llama/tokenizer.json: its sha256 is",
        "missing  recipes/table1.toml",
        "missing  bin/wardround",
        "extra    bin/wardround: it is a link",
        "extra    models/llama/extra.bin",
        "extra    models/llama/CONFIG.json",
        "extra    empty: it is an empty folder",
        "extra    models/llama/link: it is a link",
        "extra    recipes: it is an empty folder",
        "changed  licences/LICENSE-MIT: its mode is 4777",
        "11 problems",
    ] {
        assert!(message.contains(part), "{part} in {message}");
    }
}

#[test]
fn a_folder_that_is_a_link_is_not_followed() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let bundle = scratch.bundle("bundle", &signer, |_| {});
    copy(&bundle.join("models"), &scratch.path("elsewhere"));
    std::fs::remove_dir_all(bundle.join("models")).unwrap();
    std::os::unix::fs::symlink(scratch.path("elsewhere"), bundle.join("models")).unwrap();
    let message = wrong(&bundle, &signer);
    assert!(message.contains("extra    models: it is a link"), "{message}");
    assert!(message.contains("missing  models/llama/config.json"), "{message}");
}

#[test]
fn only_the_keys_that_were_given_count_and_each_of_them() {
    let scratch = Scratch::new();
    let (vendor, ward, other) = (Signer::new(), Signer::new(), Signer::new());
    let bundle = scratch.bundle("bundle", &vendor, |_| {});
    check(&bundle, &[vendor.trusted()]).unwrap();
    check(&bundle, &[]).unwrap();
    let message = wrong(&bundle, &other);
    assert!(message.contains("no signature of SHA256SUMS by RW"), "{message}");
    // Two persons, each with a signature of its own.
    let two = [vendor.trusted(), ward.trusted()];
    assert!(check(&bundle, &two).is_err());
    ward.sign_as(&bundle, "SHA256SUMS.ward.minisig");
    check(&bundle, &two).unwrap();
    assert!(check(&bundle, &[vendor.trusted(), other.trusted()]).is_err());
    // A signature of another file, or under a name that no signature has.
    std::fs::write(bundle.join("SHA256SUMS.minisig"), vendor.sign(b"other")).unwrap();
    assert!(wrong(&bundle, &vendor).contains("signature verification failed"));
    std::fs::remove_file(bundle.join("SHA256SUMS.minisig")).unwrap();
    vendor.sign_as(&bundle, "SHA256SUMS.minisig.bak");
    assert!(wrong(&bundle, &vendor).contains("has no signature"));
}

#[test]
fn nothing_is_read_before_the_signature() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let bundle = scratch.bundle("bundle", &signer, |_| {});
    std::fs::write(bundle.join("MANIFEST.json"), "[[[[").unwrap();
    append(&bundle.join("SHA256SUMS"), b"nonsense\n");
    assert!(wrong(&bundle, &signer).contains("signature verification failed"));
    assert!(check(&bundle, &[]).unwrap_err().to_string().contains("SHA256SUMS, line"));
}

/// Writes manifest and sums anew after a change of the manifest's text, and signs them: a sender that means harm, or errs.
fn sign_changed(bundle: &Path, signer: &Signer, change: impl Fn(&str) -> String, more: &[&str]) {
    let manifest = std::fs::read_to_string(bundle.join("MANIFEST.json")).unwrap();
    let changed = change(&manifest);
    assert!(changed != manifest || !more.is_empty());
    std::fs::write(bundle.join("MANIFEST.json"), &changed).unwrap();
    let sums = std::fs::read_to_string(bundle.join("SHA256SUMS")).unwrap();
    let mut lines: BTreeMap<String, String> = sums
        .lines()
        .map(|line| line.split_once("  ").unwrap())
        .map(|(sum, path)| (path.to_owned(), sum.to_owned()))
        .collect();
    lines.insert("MANIFEST.json".to_owned(), sha256(&changed));
    lines.extend(more.iter().map(|path| ((*path).to_owned(), sha256("x"))));
    let text: String = lines.iter().map(|(path, sum)| format!("{sum}  {path}\n")).collect();
    std::fs::write(bundle.join("SHA256SUMS"), text).unwrap();
    signer.sign_bundle(bundle);
}

#[test]
fn a_good_signature_does_not_make_a_bad_manifest_good() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let whole = scratch.bundle("whole", &signer, |_| {});
    let cases: [(&str, &str, &str); 7] = [
        ("models/llama/config.json", "../../../etc/cron.d/x", "begins with a dot"),
        ("models/llama/config.json", "/etc/cron.d/x", "an empty part"),
        ("models/llama/config.json", "models/llama/MODEL.safetensors", "one on some file systems"),
        ("models/llama/config.json", "mode/config.json", "the folder of its role"),
        ("\"mode\": \"0644\"", "\"mode\": \"0755\"", "a mode that its role has not"),
        ("\"mode\": \"0755\"", "\"mode\": \"4755\"", "4755"),
        ("\"format\": 1", "\"format\": 9", "format 9"),
    ];
    for (index, (from, to, part)) in cases.into_iter().enumerate() {
        let bundle = scratch.path(&format!("case{index}"));
        copy(&whole, &bundle);
        sign_changed(&bundle, &signer, |text| text.replacen(from, to, 1), &[]);
        let message = wrong(&bundle, &signer);
        assert!(message.contains(part), "{to}: {message}");
    }
    for (index, path) in
        ["../x", "models/llama/unlisted", "a b", "SHA256SUMS"].into_iter().enumerate()
    {
        let bundle = scratch.path(&format!("line{index}"));
        copy(&whole, &bundle);
        sign_changed(&bundle, &signer, str::to_owned, &[path]);
        let message = wrong(&bundle, &signer);
        assert!(message.contains(path) || message.contains("no path"), "{message}");
    }
}

#[test]
fn a_deep_check_looks_into_the_files() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let family = Family::Llama;
    let model = scratch.path("real");
    write_checkpoint(&Recipe { family, shape: Shape::Tiny, seed: 1, tokenizer: None }, &model)
        .unwrap();
    let models = |name: &str| vec![scratch.path(name).to_str().unwrap().to_owned()];
    let look = |bundle: &Path| {
        let opened = open(bundle, &[signer.trusted()]).unwrap();
        assert!(opened.check(true).unwrap().problems.is_empty());
        deep::check(bundle, &opened.manifest)
    };
    let sound = scratch.bundle("sound", &signer, |request| request.models = models("real"));
    let found = look(&sound);
    assert!(found.problems.is_empty() && found.looked_into > 5, "{:?}", found.problems);
    assert!(sound.join("models/real/synthetic.json").is_file(), "noise must be known as noise");

    // A vendor that signs rubbish: the sums are right, the files are not.
    let harms: [(&str, &[u8], &str); 4] = [
        (
            "model.safetensors",
            b"\xff\xff\xff\xff\xff\xff\xff\x7f{}",
            "not a sound safetensors file",
        ),
        ("tokenizer.json", b"{}", "tokenizer.json"),
        ("chat_template.jinja", b"{% if %}", "does not compile"),
        ("generation_config.json", b"{", "EOF"),
    ];
    for (index, (file, bytes, part)) in harms.into_iter().enumerate() {
        let name = format!("real{index}");
        copy(&model, &scratch.path(&name));
        std::fs::write(scratch.path(&name).join(file), bytes).unwrap();
        let bundle = scratch
            .bundle(&format!("harmed{index}"), &signer, |request| request.models = models(&name));
        let problems = look(&bundle).problems.join("\n");
        assert!(problems.contains(part), "{file}: {problems}");
    }
}

#[test]
fn an_encoder_among_the_models_is_held_against_its_card_and_not_run() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    let encoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/encoders/tiny-mean");
    copy(&encoder, &scratch.path("minilm"));
    let provenance =
        "repository = \"sentence-transformers/all-MiniLM-L6-v2\"\nrevision = \"0\"\n\n[sha256]\n";
    scratch.write("minilm/provenance.toml", provenance);
    let models = vec![scratch.path("minilm").to_str().unwrap().to_owned()];
    let bundle = scratch.bundle("bundle", &signer, |request| request.models = models);
    let manifest = manifest_of(&bundle);
    assert!(manifest.file("models/all-minilm-l6-v2/config.json").is_some());
    let problems = deep::check(&bundle, &manifest).problems;
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn a_model_that_only_calls_itself_one_of_the_cards_is_found() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    scratch.model("qwen3-4b");
    let models = vec![scratch.path("qwen3-4b").to_str().unwrap().to_owned()];
    let bundle = scratch.bundle("bundle", &signer, |request| request.models = models);
    let manifest = manifest_of(&bundle);
    let problems = deep::check(&bundle, &manifest).problems.join("\n");
    assert!(
        problems.contains("qwen3-4b: the repository is not stated, its card says Qwen/Qwen3-4B"),
        "{problems}"
    );
}

#[test]
fn the_command_says_loudly_what_nobody_vouched_for() {
    let scratch = Scratch::new();
    let signer = Signer::new();
    scratch.bundle("bundle", &signer, |_| {});
    let said = |arguments: &[&str]| {
        let output = scratch.wardround(arguments);
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code().unwrap(), text)
    };
    let (code, text) = said(&["bundle", "verify", "bundle"]);
    assert!(code == 0 && text.contains("NOT AUTHENTICATED: sums alone"), "{text}");
    let (code, text) = said(&["bundle", "verify", "bundle", "--sandbox", "require"]);
    assert!(code == 3 && text.contains("is not authenticated"), "{text}");
    let key = signer.key();
    let (code, text) = said(&["bundle", "verify", "bundle", "--trust", &key]);
    assert!(code == 0 && text.contains("signed  by RW") && text.ends_with("intact\n"), "{text}");
    assert!(!text.contains("AUTHENTICATED"), "{text}");
    let (code, text) = said(&["bundle", "verify", "bundle", "--trust", &key, "--sandbox", "auto"]);
    assert!(code == 0, "{text}");
    signer.sign_for_ssh(&scratch.path("bundle"));
    let (code, text) = said(&["bundle", "verify", "bundle", "--trust", &key]);
    let note = "SHA256SUMS.sig is not checked here: ssh-keygen -Y verify";
    assert!(code == 0 && text.contains(note), "{text}");
    let (code, text) = said(&["bundle", "verify", "bundle", "--trust", &Signer::new().key()]);
    assert!(code == 3 && text.contains("hint: do not use it"), "{text}");
    let (code, text) = said(&["bundle", "verify", "bundle", "--trust", "nonsense"]);
    assert!(code == 2 && text.contains("no public key of minisign"), "{text}");
    let (code, text) = said(&["bundle", "verify", "nowhere"]);
    assert!(code == 3 && text.contains("nowhere is no bundle: it has no SHA256SUMS"), "{text}");
    let (code, text) = said(&["bundle", "ls", "bundle"]);
    assert!(code == 0 && text.contains("llama") && text.contains("SHA256SUMS.minisig"), "{text}");
    append(&scratch.path("bundle/models/llama/config.json"), b" ");
    let (code, text) = said(&["bundle", "verify", "bundle", "--trust", &key]);
    assert!(code == 3 && text.contains("changed  models/llama/config.json"), "{text}");
}
