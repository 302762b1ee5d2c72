//! The systemd units: what keeps texts in memory, and a server that takes too much of it from ending others.

use std::collections::BTreeMap;

/// The settings of a unit's `[Service]`, the last of a name.
fn service(text: &str) -> BTreeMap<&str, &str> {
    let (_, rest) = text.split_once("[Service]\n").unwrap();
    let lines = rest.lines().take_while(|line| !line.starts_with('['));
    lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('=')).collect()
}

#[test]
fn every_unit_bounds_its_memory_and_ends_as_a_whole() {
    let entries = std::fs::read_dir("deploy").unwrap().map(|entry| entry.unwrap().path());
    let units: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|kind| kind == "service")).collect();
    assert!(units.len() >= 2, "{units:?}");
    for path in units {
        let text = std::fs::read_to_string(&path).unwrap();
        let (unit, settings) = (path.display(), service(&text));
        for (name, value) in [
            // A kernel that is short of memory ends all of it, and not a thread or another service; and systemd begins it again.
            ("OOMPolicy", "kill"),
            ("Restart", "on-failure"),
            // Texts reach no disk.
            ("MemorySwapMax", "0"),
            ("LimitCORE", "0"),
        ] {
            assert_eq!(settings.get(name), Some(&value), "{unit}: {name}");
        }
        let most = settings.get("MemoryMax").and_then(|most| most.strip_suffix('%'));
        let percent = most.and_then(|most| most.parse::<u32>().ok());
        assert!(percent.is_some_and(|most| (1..=95).contains(&most)), "{unit}: MemoryMax");
    }
}
