//! The texts that a trail keeps: as they were, deleted, read.

use super::*;

fn texts(options: &AuditOptions) -> Vec<PathBuf> {
    let path = |sum| options.directory.join("content").join(format!("{sum}.json"));
    content::list(&options.directory).unwrap().into_iter().map(path).collect()
}

#[test]
fn texts_are_kept_as_they_were_sent_and_forgetting_them_keeps_the_chain() {
    let scratch = tempfile::tempdir().unwrap();
    let options = options(scratch.path(), AuditContent::Full);
    let trail = open(&options);
    let body = "{\"b\" : 1,\"a\":[0, 0 ]}";
    let (input, event) = (trail.input(body.as_bytes()), Event::new("request").with("actor", "lab"));
    trail.write(trail.ended(event, input, &json!("x"))).unwrap();
    // Equal notes have equal sums, and texts of their own.
    for _ in 0..3 {
        trail.write(case(&trail, "a note")).unwrap();
    }
    let all = lines(&options);
    assert_eq!(fields(&all[2])["input"], fields(&all[3])["input"]);
    let own = options.directory.join("content").join(fields(&all[1])["content"].as_str().unwrap());
    let own = own.with_extension("json");
    let kept = fs_err::read_to_string(&own).unwrap();
    assert!(kept.contains(body), "{kept}");
    fs_err::write(&own, kept.replace("\"x\"", "\"y\"")).unwrap();
    let said = check(&options).map(drop).unwrap_err().to_string();
    assert!(said.contains("line 2: the text was changed"), "{said}");
    fs_err::write(&own, kept).unwrap();
    // Lines that are not there, and one without a text, are passed over.
    assert_eq!(forget(&trail, |line| [1, 99].contains(&line.seq), "").unwrap(), 0);
    let asked = |line: &Line| [1, 2, 3].contains(&line.seq);
    assert_eq!(forget(&trail, asked, "the patient asked").unwrap(), 2);
    let said = fields(lines(&options).last().unwrap());
    assert_eq!(
        (&said["event"], &said["why"], &said["count"]),
        (&json!("forget"), &json!("the patient asked"), &json!(2))
    );
    let identity = said["identity"].as_str().unwrap();
    assert!(identity.starts_with("unix:"), "{identity}");
    let found = check(&options).unwrap();
    assert_eq!((found.kept, found.deleted, found.missing), (2, 2, 0));
    // Again is no error; one that goes without a line is missed.
    assert_eq!(forget(&trail, |line| line.seq == 3, "").unwrap(), 0);
    fs_err::remove_file(&texts(&options)[0]).unwrap();
    assert_eq!(check(&options).unwrap().missing, 1);
    forget(&trail, |line| line.text("actor") == "ward", "").unwrap();
    assert_eq!((check(&options).unwrap().deleted, texts(&options).len()), (4, 0));
    assert_eq!(forget(&trail, |_| true, "").unwrap(), 0);
}

#[test]
fn a_start_deletes_what_a_killed_process_left_and_nothing_else() {
    let scratch = tempfile::tempdir().unwrap();
    let options = written(scratch.path(), AuditContent::Full, 2);
    let folder = options.directory.join("content");
    let kept = texts(&options);
    let stray = folder.join(format!("{}.json", "ab".repeat(32)));
    fs_err::copy(&kept[0], &stray).unwrap();
    fs_err::write(folder.join("notes.txt"), "mine").unwrap();
    assert_eq!(check(&options).unwrap().strays, 1);
    // A line that was cut short, and a text that a line says is deleted.
    let path = options.directory.join(Line::FILE);
    let text = fs_err::read_to_string(&path).unwrap();
    fs_err::write(&path, format!("{text}{{\"schema\":1,\"seq\":5,")).unwrap();
    assert_eq!(check(&options).unwrap().survey.chain.torn_bytes, 20);
    let trail = open(&options);
    assert!(!stray.exists() && folder.join("notes.txt").exists());
    assert_eq!(fields(lines(&options).last().unwrap())["cut_bytes"], 20);
    let copy = fs_err::read(&kept[0]).unwrap();
    forget(&trail, |line| [2, 3].contains(&line.seq), "").unwrap();
    trail.finish().unwrap();
    fs_err::write(&kept[0], copy).unwrap();
    let said = check(&options).map(drop).unwrap_err().to_string();
    assert!(said.contains("was to be deleted, and is there"), "{said}");
    open(&options).finish().unwrap();
    assert_eq!(check(&options).unwrap().deleted, 2);
}

#[test]
fn no_more_is_kept_than_was_asked_for() {
    let scratch = tempfile::tempdir().unwrap();
    let options = options(scratch.path(), AuditContent::Hash);
    let trail = open(&options);
    trail.write(case(&trail, "a canary").with("request", trail.sum("sum"))).unwrap();
    let line = lines(&options).remove(1);
    assert!(!line.contains("canary"), "{line}");
    for name in ["input", "output", "request"] {
        assert!(line.contains(&format!("\"{name}\"")), "{name}: {line}");
    }
    assert!(texts(&options).is_empty());
}

/// A line with words that lead out of the directory, of somebody who has a key too.
#[test]
fn names_that_lead_out_of_a_trail_are_names_of_no_text() {
    let scratch = tempfile::tempdir().unwrap();
    let outside = scratch.path().join("precious.json");
    fs_err::write(&outside, "{}").unwrap();
    let absolute = scratch.path().join("precious").display().to_string();
    for sum in [absolute.as_str(), "../../../precious", "..", "\u{1b}[2J"] {
        for (name, value) in [("content", json!(sum)), ("forgotten", json!([sum]))] {
            let folder = tempfile::tempdir().unwrap();
            let options = written(folder.path(), AuditContent::Full, 1);
            let mut forged = lines(&options);
            let mut line = fields(&forged[1]);
            line[name] = value;
            forged[1] = line.to_string();
            // Its hash is its last field.
            let key = TrailKey::read(&options.directory).unwrap();
            let mut map: Map<String, Value> = serde_json::from_str(&forged[1]).unwrap();
            let prev = map.shift_remove("prev").unwrap();
            map.insert("prev".into(), prev);
            forged[1] = Value::Object(map).to_string();
            reseal(&mut forged, 1, &key.0);
            write(&options, &forged);
            tell_the_last(&options, &forged);
            let _ = check(&options);
            if let Ok(trail) = Trail::open(&options, "test") {
                let _ = forget(&trail, |_| true, "");
            }
            assert_eq!(fs_err::read_to_string(&outside).unwrap(), "{}", "{sum}");
        }
    }
}

#[test]
fn a_batch_that_cannot_be_kept_whole_leaves_no_text_and_no_line() {
    let scratch = tempfile::tempdir().unwrap();
    let options = options(scratch.path(), AuditContent::Full);
    let trail = open(&options);
    let content = options.directory.join("content");
    fs_err::write(&content, "").unwrap();
    assert!(trail.write(case(&trail, "a note")).is_err());
    assert_eq!(lines(&options).len(), 1);
    fs_err::remove_file(&content).unwrap();
    trail.write(case(&trail, "a note")).unwrap();
    let found = check(&options).unwrap();
    assert_eq!((found.survey.chain.lines, found.kept, found.strays), (3, 1, 0));
}
