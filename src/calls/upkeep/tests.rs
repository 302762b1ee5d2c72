use super::super::line::tests::kept;
use super::*;
use std::os::unix::fs::PermissionsExt;

fn key(name: &str) -> Key {
    Key::of(name, None)
}

/// A store of these calls, each in a file of its own.
fn store_of(directory: &Path, names: &[&str]) {
    for name in names {
        Store::open(directory, false).unwrap().put_even_if_there(&key(name), &kept(name));
    }
}

fn files_of(directory: &Path) -> usize {
    files(directory).unwrap().len()
}

#[test]
fn clearing_puts_each_call_into_one_file_once_and_drops_what_is_damaged() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    store_of(directory, &["a", "b", "a"]);
    let busy = Store::open(directory, false).unwrap();
    busy.put(&key("c"), &kept("c"));
    let damaged = files(directory).unwrap()[0].clone();
    let text = fs_err::read_to_string(&damaged).unwrap() + "no call\n" + "half";
    fs_err::write(&damaged, text).unwrap();
    let held = inspect(directory).unwrap();
    assert_eq!((held.files, held.calls, held.twice), (4, 3, 1));
    assert_eq!((held.damaged.len(), held.damaged[0].line), (1, 3));
    assert_eq!(held.unfinished, [damaged]);

    let reader = Store::open(directory, false).unwrap();
    let cleared = clear(directory, &Chosen::default()).unwrap();
    assert_eq!(cleared, Cleared { kept: 2, dropped: 2, busy: 1 });
    let held = inspect(directory).unwrap();
    assert_eq!((held.files, held.calls, held.twice, held.damaged.len()), (2, 3, 0, 0));
    // Those who had read the old files find the new one.
    for name in ["a", "b", "c"] {
        assert_eq!(reader.get(&key(name)), Some(kept(name)));
        assert_eq!(busy.get(&key("c")), Some(kept("c")));
    }
    drop(busy);
    // What is not ours stays, and so does all else.
    let other = directory.join("other.calls");
    fs_err::write(&other, "someone's\nnotes\n").unwrap();
    let error = clear(directory, &Chosen::default()).unwrap_err().to_string();
    assert!(error.contains("other.calls is no file of calls"), "{error}");
    assert_eq!((files_of(directory), inspect(directory).unwrap().calls), (3, 3));
    assert_eq!(fs_err::read_to_string(&other).unwrap(), "someone's\nnotes\n");
    fs_err::remove_file(other).unwrap();
    let none = Chosen { since: Some(u64::MAX), ..Chosen::default() };
    assert_eq!(clear(directory, &none).unwrap(), Cleared { kept: 0, dropped: 3, busy: 0 });
    assert_eq!(files_of(directory), 0);
}

#[test]
fn what_is_exported_is_imported_elsewhere_unless_it_is_damaged() {
    let scratch = tempfile::tempdir().unwrap();
    let (from, to) = (scratch.path().join("from"), scratch.path().join("to"));
    fs_err::create_dir(&from).unwrap();
    store_of(&from, &["a", "b", "a", "c"]);
    let out = scratch.path().join("out");
    let two = Chosen { keys: Some([key("a"), key("c")].into()), ..Chosen::default() };
    assert_eq!(export(&from, &two, &out).unwrap(), 2);
    let whole = fs_err::read(&out).unwrap();
    assert!(export(&from, &two, &out).is_err(), "what is there stays");
    for length in 0..whole.len() {
        fs_err::write(&out, &whole[..length]).unwrap();
        match import(&to, &out) {
            // Without its last line it is as earlier versions wrote it, which is told.
            Ok(_) => assert_eq!(whole[length - 1], b'\n', "{length}"),
            Err(_) => assert_eq!(files(&to).map_or(0, |files| files.len()), 0, "{length}"),
        }
        let _ = fs_err::remove_dir_all(&to);
    }
    for place in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        fs_err::write(&out, bytes).unwrap();
        assert!(import(&to, &out).is_err(), "{place}");
    }
    let text = String::from_utf8(whole.clone()).unwrap();
    let less: Vec<&str> = text.split_inclusive('\n').collect();
    assert_eq!((less.len(), less[3]), (4, "end 2\n"));
    fs_err::write(&out, [less[0], less[1], less[3]].concat()).unwrap();
    let error = import(&to, &out).unwrap_err().to_string();
    assert!(error.ends_with("out is cut off"), "{error}");
    fs_err::remove_file(&out).unwrap();
    export(&from, &two, &out).unwrap();
    assert_eq!(fs_err::read(&out).unwrap(), whole);
    assert_eq!(fs_err::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!((import(&to, &out).unwrap(), import(&to, &out).unwrap()), (2, 0));
    let store = Store::open(&to, false).unwrap();
    assert_eq!([store.get(&key("a")), store.get(&key("b"))], [Some(kept("a")), None]);
}

#[test]
fn a_store_is_cleared_by_one_process_at_a_time() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    store_of(directory, &["a", "a"]);
    let other = outside::open_directory(directory).unwrap();
    assert!(held(&other).unwrap());
    let error = clear(directory, &Chosen::default()).unwrap_err();
    assert!(matches!(error, CallsError::Busy { .. }), "{error}");
    assert_eq!(files_of(directory), 2);
    drop(other);
    assert_eq!(clear(directory, &Chosen::default()).unwrap().kept, 1);
}

/// A clearing takes whatever nobody has locked: also what is new and not locked yet.
#[test]
fn a_new_file_that_a_clearing_takes_is_made_again() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..200 {
                clear(directory, &Chosen::default()).unwrap();
            }
        });
        for number in 0..200 {
            let name = number.to_string();
            Store::open(directory, false).unwrap().put_even_if_there(&key(&name), &kept(&name));
        }
    });
    assert_eq!(inspect(directory).unwrap().calls, 200);
}
