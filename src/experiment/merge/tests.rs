//! Tests of `merge.rs`.

use super::*;
use crate::diagnosis::Blame;
use crate::experiment::compare::compare;
use crate::experiment::fixtures::{
    ITEMS, call, failed_item, item, plan, shard_of, start, texts, write_finished, write_results,
};
use crate::experiment::plan::Plan;
use crate::experiment::verify::verify;

fn write_shard(path: &Path, plan: &Plan) {
    let log = start(path, plan);
    for run in 0..plan.runs {
        for name in plan.dataset.items.iter().rev() {
            log.call(call(name, run, "ddx")).unwrap();
            log.call(call(name, run, "sym")).unwrap();
            log.item(failed_item(name, run)).unwrap();
            log.item(item(name, run)).unwrap();
        }
    }
    log.finish().unwrap();
    write_results(path, 100).unwrap();
}

fn shard(part: &str) -> Plan {
    shard_of(plan(), part, texts(&ITEMS)).0
}

/// A folder with the shards that were named.
fn shards(parts: &[&str]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let scratch = tempfile::tempdir().unwrap();
    let paths = parts.iter().map(|part| {
        let path = scratch.path().join(part.replace('/', "-of-"));
        write_shard(&path, &shard(part));
        path
    });
    let paths = paths.collect();
    (scratch, paths)
}

#[test]
fn shards_in_any_order_make_the_whole() {
    for parts in [&["1/1"][..], &["2/2", "1/2"], &["3/3", "1/3", "2/3"]] {
        let (scratch, paths) = shards(parts);
        let (out, whole) = (scratch.path().join("out"), scratch.path().join("whole"));
        let merged = merge(&paths, &out).unwrap();
        assert_eq!(merged.elapsed_ms, 100 * parts.len() as u64);
        let results = write_results(&out, merged.elapsed_ms).unwrap();
        let expected = write_finished(&whole);
        assert_eq!(compare(&whole, &out).unwrap(), Vec::<String>::new());
        assert_eq!(results.parse, expected.parse);
        assert_eq!(verify(&out, None).unwrap().results, Some(results));
        let contents = Contents::read(&out).unwrap();
        assert_eq!(contents.plan, plan());
        let order = contents.items.records.iter();
        let mut order: Vec<&str> = order.map(|line| line.item()).collect();
        assert_eq!(order.len(), 12);
        order.dedup();
        assert_eq!(order, ["q1", "q2", "q3"]);
    }
}

fn refusal(paths: &[PathBuf], out: &Path) -> String {
    let error = merge(paths, out).unwrap_err();
    assert!(error.hint().is_some(), "{error}");
    error.to_string().replace(&format!("{}/", out.parent().unwrap().display()), "")
}

#[test]
fn what_makes_no_whole_is_refused_and_nothing_is_written() {
    let (scratch, paths) = shards(&["1/3", "2/3", "3/3"]);
    let out = scratch.path().join("out");
    assert_eq!(refusal(&paths[..2], &out), "shard 3/3 is missing");
    assert_eq!(refusal(&paths[1..2], &out), "shards 1/3, 3/3 are missing");
    let twice = [&paths[..], &paths[1..2]].concat();
    let expected = "2-of-3 and 2-of-3 are both shard 2/3";
    assert_eq!(refusal(&twice, &out), expected);

    let other = scratch.path().join("other");
    let mut reseeded = shard("3/3");
    reseeded.seed = 43;
    reseeded.runs = 1;
    write_shard(&other, &reseeded);
    let mixed = [&paths[..2], std::slice::from_ref(&other)].concat();
    let expected = "1-of-3 and other are not shards of one plan: seed is 42 against 43";
    assert_eq!(refusal(&mixed, &out), expected);
    fs_err::remove_dir_all(&other).unwrap();

    write_shard(&other, &shard("2/2"));
    let mixed = [&paths[..2], std::slice::from_ref(&other)].concat();
    let expected = "1-of-3 and other are not shards of one plan: dataset.shard.part is \"1/3\" against \"2/2\"";
    assert_eq!(refusal(&mixed, &out), expected);
    fs_err::remove_dir_all(&other).unwrap();

    let mut longer = plan();
    longer.dataset.items.push("q4".to_owned());
    write_shard(&other, &shard_of(longer, "3/3", texts(&["q1", "q2", "q3", "q4"])).0);
    let mixed = [&paths[..2], std::slice::from_ref(&other)].concat();
    let expected =
        "1-of-3 and other are not shards of one plan: dataset.shard.whole_items is 3 against 4";
    assert_eq!(refusal(&mixed, &out), expected);
    fs_err::remove_dir_all(&other).unwrap();

    write_finished(&other);
    let mixed = [&paths[..2], std::slice::from_ref(&other)].concat();
    assert_eq!(refusal(&mixed, &out), "other is no shard: it was run whole");
    assert!(!fs_err::exists(&out).unwrap());

    fs_err::create_dir(&out).unwrap();
    fs_err::write(out.join("thesis.tex"), "").unwrap();
    assert_eq!(refusal(&paths, &out), "out exists and is not empty");
}

#[test]
fn shards_of_another_kind_of_device_are_refused_and_of_another_host_are_merged() {
    let (scratch, paths) = shards(&["1/2"]);
    let (out, second) = (scratch.path().join("out"), scratch.path().join("second"));
    let both = [&paths[..], std::slice::from_ref(&second)].concat();
    let mut elsewhere = shard("2/2");
    elsewhere.engine.device_kind = "aarch64".to_owned();
    write_shard(&second, &elsewhere);
    let kind = &plan().engine.device_kind;
    let expected = format!(
        "1-of-2 and second are not shards of one plan: engine.device_kind is \"{kind}\" against \"aarch64\""
    );
    assert_eq!(refusal(&both, &out), expected);
    fs_err::remove_dir_all(&second).unwrap();

    let mut elsewhere = shard("2/2");
    elsewhere.host.cpu = "another with AVX-512".to_owned();
    elsewhere.engine.threads += 6;
    elsewhere.engine.max_batch += 1;
    write_shard(&second, &elsewhere);
    merge(&both, &out).unwrap();
    write_results(&out, 0).unwrap();
    verify(&out, None).unwrap();
}

#[test]
fn an_unfinished_shard_is_refused() {
    let (scratch, paths) = shards(&["1/2"]);
    let (second, out) = (scratch.path().join("second"), scratch.path().join("out"));
    let log = start(&second, &shard("2/2"));
    log.item(item("q2", 0)).unwrap();
    let both = [&paths[..], std::slice::from_ref(&second)].concat();
    let expected = "second: 1 of the planned items have no line, the first of them q2";
    assert_eq!(refusal(&both, &out), expected);
    log.item(item("q2", 1)).unwrap();
    assert_eq!(refusal(&both, &out), "second has not finished");
    log.finish().unwrap();
    write_results(&second, 1).unwrap();
    merge(&both, &out).unwrap();
}

#[test]
fn a_changed_shard_is_refused() {
    let (scratch, paths) = shards(&["1/2", "2/2"]);
    let log = paths[1].join("calls.jsonl");
    let text = fs_err::read_to_string(&log).unwrap();
    fs_err::write(&log, text.replacen("0.85", "0.95", 1)).unwrap();
    let error = merge(&paths, &scratch.path().join("out")).unwrap_err();
    assert_eq!(error.blame(), Blame::Artefact);
    assert!(error.to_string().contains("calls.jsonl, line 1"), "{error}");
}

#[test]
fn shards_whose_items_were_changed_are_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = ["1/2", "2/2"]
        .iter()
        .map(|part| {
            let mut plan = shard(part);
            if *part == "2/2" {
                plan.dataset.items = vec!["q9".to_owned()];
            }
            let path = scratch.path().join(part.replace('/', "-"));
            write_shard(&path, &plan);
            path
        })
        .collect();
    let error = merge(&paths, &scratch.path().join("out")).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(MergeError::Items)), "{error}");
}

#[test]
fn a_plan_of_very_many_shards_names_the_first_that_are_missing() {
    let (scratch, paths) = shards(&["1/1000000"]);
    let out = scratch.path().join("out");
    let message = refusal(&paths, &out);
    assert!(message.starts_with("shards 2/1000000, 3/1000000, "), "{message}");
    assert!(message.ends_with(", 11/1000000 and 999989 more are missing"), "{message}");
}
