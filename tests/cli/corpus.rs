//! `corpus`: a small one of our own, built, searched, added to, checked and damaged.

use std::path::Path;

use serde_json::Value;

use crate::binary::Scratch;

const DESCRIPTION: &str = "name = \"own\"\n[[source]]\nlabel = \"ward\"\nformat = \"jsonl\"\npath = \"ward.jsonl\"\nlicence = \"internal\"\n";
const ROWS: &str = "{\"id\": \"a\", \"title\": \"Eclampsia\", \"text\": \"Magnesium is the first choice in eclampsia.\", \"date\": \"2021-05-03\"}\n{\"id\": \"b\", \"title\": \"Asthma\", \"text\": \"Salbutamol by inhaler, then steroids.\"}\n{\"id\": \"c\", \"text\": \"Rest and fluids.\"}\n{\"id\": \"d\", \"text\": \"No treatment.\"}\n";

/// With a tiny encoder beside the rows.
fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("own.toml", DESCRIPTION);
    scratch.write("ward.jsonl", ROWS);
    let encoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/encoders/tiny-mean");
    std::os::unix::fs::symlink(encoder, scratch.path("encoder")).unwrap();
    scratch
}

const BUILD: &str = "corpus build own.toml --encoder encoder --out out --bm25";

#[test]
fn a_corpus_is_built_shown_searched_and_checked() {
    let scratch = scratch();
    let dry = scratch.wardround(format!("{BUILD} --dry-run"));
    assert!(
        dry.code == Some(0) && dry.stdout.contains("4 chunks") && dry.stdout.contains("tokens"),
        "{dry:#?}"
    );
    assert!(!scratch.path("out").exists());
    let built = scratch.wardround(BUILD);
    assert_eq!(built.code, Some(0), "{built:#?}");
    let id = built.stdout.trim().to_owned();
    assert_eq!(id.len(), 64);
    let info = scratch.wardround("corpus info out");
    assert!(
        info.stdout.contains("internal (not to be handed on)") && info.stdout.contains(&id),
        "{info:#?}"
    );
    let search = |more: &str| {
        let found = scratch.wardround(format!("corpus search out eclampsia --json {more}"));
        assert_eq!(found.code, Some(0), "{found:#?}");
        serde_json::from_str::<Value>(&found.stdout).unwrap()
    };
    let plain = search("");
    assert_eq!(plain["corpus"][0], *id);
    assert_eq!(plain["shown"].as_array().unwrap().len(), 4);
    assert_eq!(search("--hybrid")["shown"][0]["chunk"], "ward/a#0");
    let newer = search("--newer-than 2020-01-01");
    assert_eq!(
        (newer["shown"].as_array().unwrap().len(), &newer["shown"][0]["date"]),
        (1, &"2021-05-03".into())
    );
    assert_eq!(scratch.wardround("corpus verify out").code, Some(0));
    scratch.write("more.md", "# Sepsis\nThirty millilitres a kilogram.\n");
    let added =
        scratch.wardround("corpus add out --source more.md --label more --licence internal");
    assert!(added.code == Some(0) && added.stdout.trim() != id, "{added:#?}");
    assert_eq!(search("--sources more")["shown"][0]["title"], "Sepsis");
    let page = scratch.wardround("corpus search out sepsis --sources more");
    assert!(page.stdout.contains("Sepsis  more/more.md#0"), "{page:#?}");
}

#[test]
fn a_corpus_that_holds_the_notes_is_told() {
    let scratch = scratch();
    let note = "0 The patient was given magnesium because it is the first choice in eclampsia and she improved.\n1 She went home.";
    scratch.write("ward.jsonl", format!("{}\n", serde_json::json!({"id": "n", "text": note})));
    assert_eq!(scratch.wardround(BUILD).code, Some(0));
    let notes = serde_json::json!({"id": "n1", "text": note});
    let other = serde_json::json!({"id": "n2", "text": "0 A note of ten other words that stand in no corpus at all."});
    scratch.write("notes.jsonl", format!("{notes}\n{other}\n"));
    let info = scratch.wardround("corpus info out --against notes.jsonl");
    assert!(
        info.stdout.contains("n1\t")
            && info.stdout.contains("ward/n")
            && !info.stdout.contains("n2\t"),
        "{info:#?}"
    );
    assert!(info.stderr.contains("1 of 2 notes share half or more"), "{info:#?}");
}

#[test]
fn what_cannot_be_is_refused_with_its_code() {
    let scratch = scratch();
    scratch
        .wardround("corpus build medquad --data-dir . --encoder encoder --out out")
        .refused(3, &["source `medquad` has no input at", "hint: name the folder"]);
    scratch
        .wardround("corpus build nothing --data-dir . --encoder encoder --out out")
        .refused(2, &["no corpus is called `nothing`", "medquad"]);
    scratch
        .wardround("corpus build own.toml --out out")
        .refused(2, &["an encoder makes the vectors", "--encoder DIR"]);
    scratch.write("bad.toml", format!("{DESCRIPTION}colour = 1\n"));
    scratch
        .wardround("corpus build bad.toml --encoder encoder --out out")
        .refused(2, &["bad.toml does not describe a corpus: unknown field `colour`"]);
    scratch.write("ward.jsonl", "{\"text\": \"x\"}\n{\"text\"\n");
    scratch.wardround(BUILD).refused(2, &["ward.jsonl, line 2: is not a JSON object"]);
    scratch.write("ward.jsonl", ROWS);
    // What a build left that was refused half way goes on once its input is right again, and here it is not.
    scratch.wardround("corpus build --resume --out out").refused(3, &["ward.jsonl has changed"]);
    scratch
        .wardround("corpus info out")
        .refused(3, &["was not built to its end", "hint: `wardround corpus build --resume"]);
    scratch.wardround("corpus info absent").refused(3, &["there is no corpus at absent"]);
    std::fs::remove_dir_all(scratch.path("out")).unwrap();
    assert_eq!(scratch.wardround(BUILD).code, Some(0));
    scratch.wardround(BUILD).refused(2, &["out exists and is not empty"]);
    scratch
        .wardround("corpus search out x --sources wards")
        .refused(2, &["no source is called `wards`; known: ward"]);
    scratch
        .wardround("corpus search out x --rerank cross-encoder")
        .refused(2, &["reranking by a cross-encoder needs one"]);
    scratch
        .wardround("corpus search out x --rerank embedding")
        .refused(2, &["has no vectors at full width"]);
    let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/encoders/tiny-cls");
    scratch
        .wardround(format!("corpus search out x --encoder {}", other.display()))
        .refused(2, &["the encoder's `", "differs"]);
    std::fs::write(scratch.path("out/vectors.bin"), "short").unwrap();
    scratch
        .wardround("corpus search out x")
        .refused(3, &["vectors.bin has 5 bytes, and corpus.toml says"]);
    let verify = scratch.wardround("corpus verify out");
    verify.refused(3, &["out is damaged"]);
    assert!(verify.stdout.contains("vectors.bin      has 5 bytes"), "{verify:#?}");
}
