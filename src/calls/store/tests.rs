use super::super::line::tests::kept;
use super::super::segment::HEADER;
use super::*;

fn key(name: &str) -> Key {
    Key::of(name, None)
}

fn only_file(directory: &Path) -> PathBuf {
    let files = list(directory).unwrap().unwrap();
    assert_eq!(files.len(), 1);
    files[0].clone()
}

#[test]
fn what_one_store_keeps_another_finds_at_once_or_a_second_later() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("new/calls");
    let (one, two) =
        (Store::open(&directory, false).unwrap(), Store::open(&directory, false).unwrap());
    assert_eq!(one.get(&key("a")), None);
    one.put(&key("a"), &kept("A"));
    one.put(&key("a"), &kept("other"));
    two.put(&key("b"), &kept("B"));
    assert_eq!(one.get(&key("a")), Some(kept("A")));
    assert_eq!(Store::open(&directory, false).unwrap().get(&key("b")), Some(kept("B")));
    two.index().read_at = None;
    assert_eq!(two.get(&key("a")), Some(kept("A")));
    assert_eq!((one.taken(), two.taken()), (1, 1));
    assert_eq!(list(&directory).unwrap().unwrap().len(), 2);
}

#[test]
fn a_damaged_call_is_never_used_and_its_neighbours_are() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path();
    let store = Store::open(directory, false).unwrap();
    for name in ["a", "b"] {
        store.put(&key(name), &kept(name));
    }
    drop(store);
    let file = only_file(directory);
    let whole = fs_err::read(&file).unwrap();
    let first = HEADER.len() + 1..(whole.len() + HEADER.len()).div_ceil(2);
    for place in first.clone() {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        fs_err::write(&file, bytes).unwrap();
        let store = Store::open(directory, false).unwrap();
        assert_eq!(store.get(&key("a")), None, "{place}");
        // A newline more may part a line, none less may join the next one.
        let is_end = place == first.end - 1;
        assert_eq!(store.get(&key("b")).is_some(), !is_end, "{place}");
    }
    // Cut off anywhere, as by a kill: what was whole is there.
    for length in 0..whole.len() {
        fs_err::write(&file, &whole[..length]).unwrap();
        let store = Store::open(directory, false).unwrap();
        assert_eq!(store.get(&key("a")).is_some(), length >= first.end, "{length}");
        assert_eq!(store.get(&key("b")), None);
    }
}

#[test]
fn a_full_disk_costs_no_call() {
    let scratch = tempfile::tempdir().unwrap();
    let store = Store::open(scratch.path(), false).unwrap();
    store.put(&key("a"), &kept("A"));
    let mut own = store.own.lock().unwrap();
    let Own::Open(appender) = &mut *own else { panic!() };
    appender.onto("/dev/full");
    drop(own);
    for name in ["b", "c"] {
        store.put(&key(name), &kept(name));
        assert_eq!(store.get(&key(name)), None);
    }
    assert!(store.has_told.load(Ordering::Relaxed));
    assert_eq!(store.get(&key("a")), Some(kept("A")));
}

#[test]
fn a_directory_of_other_things_is_no_store() {
    let scratch = tempfile::tempdir().unwrap();
    fs_err::write(scratch.path().join("calls.jsonl"), "").unwrap();
    let error = Store::open(scratch.path(), false).err().unwrap().to_string();
    assert!(error.ends_with("is no store of calls: it holds calls.jsonl"), "{error}");
}
