//! `calibrate` and policies: what a policy is bound to, what it says of outcomes, and what it refuses.

use serde_json::Value;

use crate::binary::Scratch;
use crate::rating::{rate, read};

fn lines(scratch: &Scratch, path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(scratch.path(path)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_policy_says_of_each_outcome_what_its_score_says_and_is_bound_to_the_weights() {
    let scratch = Scratch::new();
    scratch.questions(8);
    scratch.run_one("own", "--set t_max=1").succeeded();
    let calibrate =
        |more: &str| scratch.wardround(format!("calibrate own --out policy.toml {more}"));
    // Eight answers of noise prove nothing.
    calibrate("--risk 0.05").refused(1, &["8 cases are too few", "45 are needed"]);
    assert!(!scratch.path("policy.toml").exists());
    // Nearly everything may be wrong: everything is acted upon.
    let made = calibrate("--risk 0.99 --delta 0.5 --score weight --json");
    let made: Value = serde_json::from_str(&made.succeeded().stdout).unwrap();
    let calibration = &made["policy"]["calibration"];
    let items = lines(&scratch, "own/items.jsonl");
    let answered = items.iter().filter(|item| item["answer"] != "").count();
    assert_eq!(calibration["cases"], 8);
    assert_eq!(calibration["acted"], answered);
    let wrong = |item: &&Value| item["answer"] != "" && item["correct"] == false;
    assert_eq!(calibration["wrong"], items.iter().filter(wrong).count());
    calibrate("--risk 0.99").refused(2, &["exists already"]);

    let run = scratch.run_one("again", "--set t_max=1 --policy policy.toml");
    let told = format!("act on {answered}, escalate {}", 8 - answered);
    assert!(run.succeeded().stdout.contains(&told), "{run:#?}");
    let decisions = lines(&scratch, "again/decisions.jsonl");
    assert_eq!(decisions.len(), 8);
    let threshold = made["policy"]["threshold"].as_f64().unwrap();
    for decision in &decisions {
        let acts = decision["score"].as_f64().is_some_and(|score| score >= threshold);
        assert_eq!(decision["decision"], if acts { "act" } else { "escalate" });
        assert_eq!(decision["because"].is_null(), acts);
    }
    scratch.wardround("verify again").succeeded();

    // A higher threshold escalates what is below it.
    let policy = std::fs::read_to_string(scratch.path("policy.toml")).unwrap();
    let threshold = format!("threshold = {threshold:?}");
    assert!(policy.contains(&threshold), "{policy}");
    let strict = policy.replacen(&threshold, "threshold = 2.0", 1);
    std::fs::write(scratch.path("strict.toml"), &strict).unwrap();
    let run = scratch.run_one("strict", "--set t_max=1 --policy strict.toml");
    run.refused(2, &["is no policy", "of its cases 0 have at least the threshold"]);
    let figure = |name: &str| format!("{name} = {}", calibration[name]);
    let bound = format!("bound = {:?}", 1.0 - 0.5_f64.powf(1.0 / 8.0));
    let strict = strict
        .replacen(&figure("acted"), "acted = 0", 1)
        .replacen(&figure("wrong"), "wrong = 0", 1)
        .replacen(&figure("bound"), &bound, 1);
    std::fs::write(scratch.path("strict.toml"), strict).unwrap();
    let run = scratch.run_one("strict", "--set t_max=1 --policy strict.toml");
    assert!(run.succeeded().stdout.contains("act on 0, escalate 8"), "{run:#?}");
    assert!(lines(&scratch, "strict/decisions.jsonl").iter().any(|line| {
        line["because"].as_str().unwrap().contains("below the threshold of 2.000")
    }));

    // Other settings, another way to keep the weights, another panel.
    for (more, field) in [
        ("--set t_max=2", "settings.t_max"),
        ("--set t_max=1 --quant q8_0", "quantisation"),
        ("--set t_max=1 --decoding text", "decoding"),
    ] {
        let refused = scratch.run_one("other", &format!("{more} --policy policy.toml"));
        refused.refused(2, &["its guarantee says nothing here", field, "calibrate anew"]);
        assert!(!scratch.path("other").exists());
    }
    std::fs::write(scratch.path("none.toml"), "threshold = 1").unwrap();
    scratch
        .run_one("other", "--set t_max=1 --policy none.toml")
        .refused(2, &["none.toml is no policy", "`wardround calibrate` makes policies"]);
}

#[test]
fn raters_say_what_is_wrong_and_all_of_it_has_to_be_rated() {
    let scratch = Scratch::new();
    scratch.questions(8);
    scratch.run_one("own", "--set t_max=0").succeeded();
    scratch.wardround("rate export own --notes 8 --out sheet").succeeded();
    let key = read(&scratch.path("sheet/rate-key.json"));
    let join = || {
        let flags = "rate score sheet/rate-key.json A.json B.json C.json --join own";
        scratch.wardround(flags).succeeded();
    };
    let calibrate = || {
        let flags = "calibrate own --by-raters --risk 0.99 --delta 0.5 --json --out policy.toml";
        scratch.wardround(flags)
    };
    // A takes every third for wrong and B one more, which is enough; C left one out.
    let by_a = |place: usize| Some(if place.is_multiple_of(3) { 1 } else { 3 });
    let by_b = |place: usize| Some(if place == 4 { 0 } else { 2 });
    rate(&scratch, "sheet", "A", by_a);
    rate(&scratch, "sheet", "B", by_b);
    rate(&scratch, "sheet", "C", |place| (place != 2).then_some(3));
    join();
    calibrate().refused(2, &["has no rating of every rater", "rate export --notes N"]);
    rate(&scratch, "sheet", "C", |_| Some(3));
    join();
    let made: Value = serde_json::from_str(&calibrate().succeeded().stdout).unwrap();
    let items = lines(&scratch, "own/items.jsonl");
    let entries = key["entries"].as_array().unwrap().iter().enumerate();
    let wrong = entries.filter(|(place, entry)| {
        let item = items.iter().find(|item| item["item"] == entry["item"]).unwrap();
        (place.is_multiple_of(3) || *place == 4) && item["answer"] != ""
    });
    assert_eq!(made["policy"]["calibration"]["wrong"], wrong.count());
}

#[test]
fn of_cases_that_ask_the_same_one_counts() {
    let scratch = Scratch::new();
    scratch.questions(12);
    let questions = std::fs::read_to_string(scratch.path("questions.jsonl")).unwrap();
    // The third asks what the first does, of other options; another file asks all of them again.
    let same = questions.replacen("Seven times 3, plus 3?", "Seven  times 1, plus 1?", 1);
    std::fs::write(scratch.path("questions.jsonl"), &same).unwrap();
    scratch.run_one("one", "--set t_max=0").succeeded();
    std::fs::write(scratch.path("questions.jsonl"), same.replace("\"id\":\"q", "\"id\":\"again-q"))
        .unwrap();
    scratch.run_one("two", "--set t_max=0").succeeded();
    for (runs, left_out) in [("one", 1), ("one two", 13)] {
        let flags = format!("calibrate {runs} --risk 0.99 --delta 0.5 --out {left_out}.toml");
        let outcome = scratch.wardround(flags);
        let told = &outcome.succeeded().stdout;
        assert!(told.contains(" of 11 cases"), "{told}");
        assert!(told.contains(&format!("\n{left_out} cases left out")), "{told}");
    }
}

#[test]
fn runs_that_cannot_be_calibrated_are_refused_by_name() {
    let scratch = Scratch::new();
    scratch.questions(2);
    scratch.run_one("one", "--set t_max=0").succeeded();
    scratch.run_one("two", "--set t_max=1").succeeded();
    let calibrate =
        |runs: &str| scratch.wardround(format!("calibrate {runs} --risk 0.9 --out policy.toml"));
    calibrate("one one").refused(2, &["is in the runs twice"]);
    calibrate("one two").refused(2, &["not of the same system", "settings.t_max is 0 against 1"]);
    let by_raters = scratch.wardround("calibrate one --risk 0.9 --by-raters --out policy.toml");
    by_raters.refused(2, &["one has no ratings", "--join"]);
    scratch
        .wardround("calibrate one --risk 5 --out policy.toml")
        .refused(2, &["a number between 0 and 1"]);
}
