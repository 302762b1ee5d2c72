//! Trails that somebody wrote to lead this program astray: to files outside, to pipes that never end, to texts of another.

use super::*;

/// Puts a field into the last line, and seals it and the head again.
fn forge(directory: &Path, name: &str, value: Value) {
    let mut forged = lines(directory);
    let last = forged.len() - 1;
    let mut fields: Map<String, Value> = serde_json::from_str(&forged[last]).unwrap();
    fields.insert(name.to_owned(), value);
    forged[last] = Value::Object(fields).to_string();
    reseal(&mut forged, last);
    write(directory, &forged);
    tell_the_last(directory);
}

fn forget_all(options: &AuditOptions, days: u32) -> Result<usize, String> {
    let trail = Trail::open(options).map_err(|error| error.to_string())?;
    let request =
        Request { selection: Selection::OlderThan { days }, why: String::new(), actor: None };
    forget(&trail, &request).map(|forgotten| forgotten.texts).map_err(|error| error.to_string())
}

#[test]
fn ids_that_lead_out_of_a_trail_are_no_ids() {
    let scratch = tempfile::tempdir().unwrap();
    let outside = scratch.path().join("precious.json");
    fs_err::write(&outside, "{}").unwrap();
    let absolute = scratch.path().join("precious").display().to_string();
    for id in [absolute.as_str(), "../../../precious", "..", "precious", "\u{1b}[2J"] {
        for name in ["content", "forgotten"] {
            let folder = tempfile::tempdir().unwrap();
            let options = written(folder.path(), AuditContent::Full, 1);
            let value = if name == "content" { json!(id) } else { json!([id]) };
            forge(&options.directory, name, value);
            let found = check(&options, &[]);
            assert!(found.problems[0].contains("is no id of a text"), "{found:?}");
            assert!(!found.problems[0].contains('\u{1b}'), "{found:?}");
            let said = forget_all(&options, 0).unwrap_err();
            assert!(said.contains("is no id of a text"), "{said}");
            assert!(!content::exists(&options.directory, id));
            assert_eq!(fs_err::read_to_string(&outside).unwrap(), "{}");
            // Nothing else went either.
            assert_eq!(content::list(&options.directory).unwrap().len(), 1);
        }
    }
}

#[test]
fn links_and_files_of_other_names_are_no_texts() {
    use std::os::unix::fs::symlink;
    let scratch = tempfile::tempdir().unwrap();
    let victim = written(&scratch.path().join("victim"), AuditContent::Full, 1);
    let options = written(&scratch.path().join("hostile"), AuditContent::Full, 1);
    let (texts, theirs) = (options.directory.join("content"), victim.directory.join("content"));
    let kept = content::list(&victim.directory).unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    for path in &kept {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(long_ago).unwrap();
    }
    let note = texts.join("zz");
    fs_err::create_dir(&note).unwrap();
    fs_err::write(note.join("notes.txt"), "mine").unwrap();
    std::fs::File::options()
        .write(true)
        .open(note.join("notes.txt"))
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    symlink(kept[0].parent().unwrap(), texts.join("yy")).unwrap();
    symlink(&kept[0], note.join(kept[0].file_name().unwrap())).unwrap();
    forget_all(&options, 1000).unwrap();
    assert_eq!(fs_err::read_to_string(note.join("notes.txt")).unwrap(), "mine");
    assert_eq!(check(&victim, &[]).problem_count, 0);
    // Nor is all of it behind a link.
    fs_err::remove_dir_all(&texts).unwrap();
    symlink(&theirs, &texts).unwrap();
    let line = files::Line::open(lines(&victim.directory)[0].as_bytes()).unwrap();
    forge(&options.directory, "forgotten", json!([line.text("content")]));
    assert!(forget_all(&options, 1000).unwrap_err().contains("is a link"));
    assert_eq!(check(&victim, &[]).problem_count, 0);
}

/// Otherwise lines would be written to another's trail.
#[test]
fn links_beside_a_trail_are_refused_and_a_file_of_two_names_keeps_its_text() {
    let scratch = tempfile::tempdir().unwrap();
    let victim = written(&scratch.path().join("victim"), AuditContent::Hash, 1);
    let options = written(&scratch.path().join("hostile"), AuditContent::Full, 1);
    let theirs = lines(&victim.directory);
    let text = content::list(&options.directory).unwrap().remove(0);
    let precious = scratch.path().join("precious");
    fs_err::write(&precious, "mine").unwrap();
    fs_err::remove_file(&text).unwrap();
    fs_err::hard_link(&precious, &text).unwrap();
    content::erase(&text).unwrap();
    assert_eq!((fs_err::read_to_string(&precious).unwrap(), text.exists()), ("mine".into(), false));
    for name in ["trail.jsonl", "trail.head", "key"] {
        fs_err::remove_file(options.directory.join(name)).unwrap();
        std::os::unix::fs::symlink(victim.directory.join(name), options.directory.join(name))
            .unwrap();
    }
    assert!(forget_all(&options, 0).unwrap_err().contains("is a link"));
    assert_eq!(check(&victim, &[]).problem_count, 0);
    assert_eq!(lines(&victim.directory), theirs);
}

/// Otherwise `verify` and every start would wait without end.
#[test]
fn pipes_beside_a_trail_are_refused() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let scratch = tempfile::tempdir().unwrap();
    for name in ["trail.head", "key", "trail.jsonl", "lock"] {
        let options = written(&scratch.path().join(name), AuditContent::Hash, 1);
        let path = options.directory.join(name);
        fs_err::remove_file(&path).unwrap();
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        if name != "lock" {
            assert!(verify(&options.directory, &[]).is_err(), "{name}");
        }
        let said = Trail::open(&options).map(|_| ()).unwrap_err().to_string();
        assert!(said.contains("it is no file"), "{name}: {said}");
    }
}

#[test]
fn texts_of_a_name_that_several_have_are_deleted_by_identity() {
    let scratch = tempfile::tempdir().unwrap();
    let options = options(scratch.path(), AuditContent::Full);
    let trail = Trail::open(&options).unwrap();
    for identity in ["key:1111", "user:2222", "user:2222"] {
        trail.write(case("a note").with("identity", identity)).unwrap();
    }
    let asked = |identity: Option<&str>| {
        let selection =
            Selection::Actor { name: "ward".to_owned(), identity: identity.map(str::to_owned) };
        let request = Request { selection, why: String::new(), actor: None };
        forget(&trail, &request).map(|forgotten| forgotten.texts)
    };
    let error = asked(None).unwrap_err();
    let said = error.to_string();
    assert!(said.contains("several: key:1111, user:2222; nothing was deleted"), "{said}");
    assert!(error.hint().is_some_and(|hint| hint.contains("--identity")));
    assert_eq!(content::list(&options.directory).unwrap().len(), 3);
    assert_eq!(asked(Some("key:3333")).unwrap(), 0);
    assert_eq!(asked(Some("key:1111")).unwrap(), 1);
    // Only one of them has texts left.
    assert_eq!(asked(None).unwrap(), 2);
    assert_eq!(check(&options, &[]).problem_count, 0);
}
