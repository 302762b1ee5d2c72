//! Trails that do not agree with their head or their key, and those that others may change.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::audit::Accepted;
use crate::audit::key::Key;

fn refused(options: &AuditOptions) -> String {
    Trail::open(options).map(|_| ()).unwrap_err().to_string()
}

/// Goes on as `audit accept` does.
fn accept(options: &AuditOptions) {
    let (actor, why) = ("uid 0".to_owned(), "a disk was restored".to_owned());
    let accepted = Some(Accepted { actor, why });
    let trail = Trail::open(&AuditOptions { accepted, ..options.clone() }).unwrap();
    trail.finish(Event::new("stop")).unwrap();
}

/// A trail as a command writes it: its first line is a `start`.
fn started(folder: &Path, content: AuditContent) -> AuditOptions {
    let options = options(folder, content);
    let trail = Trail::open(&options).unwrap();
    trail.write(Event::new("start")).unwrap();
    trail.write(case("a note")).unwrap();
    trail.finish(Event::new("stop")).unwrap();
    options
}

#[test]
fn a_trail_that_is_not_as_its_head_says_is_gone_on_with_when_somebody_says_why() {
    let scratch = tempfile::tempdir().unwrap();
    let accept = |options: &AuditOptions| {
        accept(options);
        let found = check(options, &[]);
        assert_eq!(found.problems, [""; 0]);
        assert!(found.notes.iter().any(|note| note.contains("a disk was restored")), "{found:?}");
        Trail::open(options).unwrap().finish(Event::new("stop")).unwrap();
    };
    for damage in ["cut", "forked", "all", "all and the head", "no head"] {
        let options = written(&scratch.path().join(damage), AuditContent::Hash, 8);
        let directory = &options.directory;
        let mut whole = lines(directory);
        let says = match damage {
            "cut" => {
                write(directory, &whole[..5]);
                "its head is of line 9, and it ends with line 5"
            }
            "forked" => {
                whole[6] = whole[6].replace("\"event\":", "\"event\":\"x\",\"was\":");
                reseal(&mut whole, 6);
                write(directory, &whole);
                "its line 9 is not the one that its head is of"
            }
            "all" => {
                fs_err::remove_file(files::current(directory)).unwrap();
                "its head is of line 9, and it ends with line 0"
            }
            all => {
                fs_err::remove_file(directory.join(head::FILE)).unwrap();
                if all != "no head" {
                    fs_err::remove_file(files::current(directory)).unwrap();
                }
                "trail.head is missing"
            }
        };
        let said = refused(&options);
        assert!(said.contains("was cut off or written again") && said.contains(says), "{said}");
        if !damage.starts_with("all") {
            assert!(check(&options, &[]).problem_count > 0, "{damage}");
        }
        accept(&options);
    }
}

#[test]
fn a_trail_whose_key_is_gone_or_another_is_gone_on_with_when_somebody_says_why() {
    let scratch = tempfile::tempdir().unwrap();
    let other = |directory: &Path| Key::make().unwrap().write(directory).unwrap();
    for (damage, says) in [
        ("gone", "its key is missing"),
        ("another", "its key is not the one that its last start had"),
    ] {
        let options = started(&scratch.path().join(damage), AuditContent::Full);
        let directory = &options.directory;
        let first: Value = serde_json::from_str(&lines(directory)[0]).unwrap();
        let key = Key::find(directory).unwrap().unwrap();
        assert_eq!(first["key"], key.fingerprint());
        assert_eq!(check(&options, &[]).unchecked, 0);
        fs_err::remove_file(directory.join("key")).unwrap();
        match damage {
            "gone" => {
                let found = check(&options, &[]);
                assert_eq!((found.problem_count, found.unchecked), (0, 3), "{found:?}");
            }
            _ => {
                other(directory);
                let found = check(&options, &[]);
                assert!(found.problems[0].contains("the key is not the one"), "{found:?}");
            }
        }
        let said = refused(&options);
        assert!(said.contains("was cut off or written again") && said.contains(says), "{said}");
        assert_eq!(directory.join("key").exists(), damage == "another");
        accept(&options);
        // What the lost key summed cannot be compared with any other.
        let found = check(&options, &[]);
        assert_eq!((found.problem_count, found.unchecked), (0, 3), "{found:?}");
        assert!(found.notes.iter().any(|note| note.contains(says)), "{found:?}");
        Trail::open(&options).unwrap().write(case("another note")).unwrap();
        assert_eq!(check(&options, &[]).unchecked, 3);
        other(directory);
        assert!(refused(&options).contains("its key is not the one"));
    }
}

/// Versions that told no fingerprint wrote such trails.
#[test]
fn a_trail_without_fingerprints_is_verified_and_gone_on_with() {
    let scratch = tempfile::tempdir().unwrap();
    let options = written(scratch.path(), AuditContent::Full, 2);
    assert!(!lines(&options.directory).iter().any(|line| line.contains("\"key\":")));
    let found = check(&options, &[]);
    assert_eq!((found.problem_count, found.unchecked, found.texts.kept), (0, 0, 2), "{found:?}");
    Trail::open(&options).unwrap().finish(Event::new("start")).unwrap();
    let found = check(&options, &[]);
    assert_eq!((found.problem_count, found.unchecked, found.texts.kept), (0, 0, 2), "{found:?}");
    // Its key may be lost all the same.
    fs_err::remove_file(options.directory.join("key")).unwrap();
    assert!(refused(&options).contains("its key is missing"));
    // Three of a text.
    assert_eq!(check(&options, &[]).unchecked, 6);
}

#[test]
fn a_trail_of_no_texts_needs_no_key_to_be_verified() {
    let scratch = tempfile::tempdir().unwrap();
    let options = started(scratch.path(), AuditContent::None);
    fs_err::remove_file(options.directory.join("key")).unwrap();
    let found = check(&options, &[]);
    assert_eq!((found.problem_count, found.unchecked), (0, 0), "{found:?}");
}

#[test]
fn a_first_start_that_was_cut_off_is_begun_again() {
    let scratch = tempfile::tempdir().unwrap();
    let options = options(scratch.path(), AuditContent::Hash);
    fs_err::create_dir(&options.directory).unwrap();
    fs_err::set_permissions(&options.directory, Permissions::from_mode(0o700)).unwrap();
    Head::before_the_first().write(&options.directory).unwrap();
    Trail::open(&options).unwrap().finish(Event::new("start")).unwrap();
    assert_eq!(check(&options, &[]).problem_count, 0);
}

#[test]
fn a_trail_that_others_may_read_or_write_is_not_gone_on_with() {
    let scratch = tempfile::tempdir().unwrap();
    let options = started(scratch.path(), AuditContent::Hash);
    let key = options.directory.join("key");
    for (path, mode, own) in [
        (&options.directory, 0o777, 0o700),
        (&options.directory, 0o705, 0o700),
        (&key, 0o666, 0o600),
        (&key, 0o604, 0o600),
    ] {
        fs_err::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let error = Trail::open(&options).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(&format!("has mode {mode:03o}")), "{error}");
        let chmod = format!("chmod {own:03o} {}", path.display());
        assert!(error.hint().is_some_and(|hint| hint.contains(&chmod)), "{error}");
        fs_err::set_permissions(path, Permissions::from_mode(own)).unwrap();
    }
    // A volume's group has its rights.
    fs_err::set_permissions(&options.directory, Permissions::from_mode(0o770)).unwrap();
    fs_err::set_permissions(&key, Permissions::from_mode(0o660)).unwrap();
    Trail::open(&options).unwrap().finish(Event::new("stop")).unwrap();
}
