//! Statistics against numpy, scipy and scikit-learn (tests/goldens/metrics.json).

use serde_json::Value;
use wardround::analysis::facts::Facts;
use wardround::analysis::metrics::agreement::cohen_kappa;
use wardround::analysis::metrics::bootstrap::{Estimate, Units, paired_difference};
use wardround::analysis::metrics::net_gain::net_gain;
use wardround::analysis::metrics::over_runs::OverRuns;
use wardround::analysis::metrics::significance::mcnemar;

use crate::common;

/// The cases of one figure, and the tolerance.
fn cases(figure: &str) -> (Vec<Value>, f64) {
    let goldens = common::golden::read(&common::goldens().join("metrics.json"));
    let all = goldens["cases"].as_array().unwrap().iter();
    let cases: Vec<Value> = all.filter(|case| case["figure"] == figure).cloned().collect();
    assert!(!cases.is_empty(), "{figure}");
    (cases, goldens["tolerance"].as_f64().unwrap())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn count(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn verdicts(value: &Value) -> Vec<bool> {
    let text = value.as_str().unwrap();
    text.chars().map(|verdict| verdict == '1').collect()
}

fn runs(value: &Value) -> Facts<bool> {
    Facts(value.as_array().unwrap().iter().map(verdicts).collect())
}

fn each(n: usize) -> Units {
    Units::of(&(0..n).collect::<Vec<_>>())
}

fn near(found: f64, expected: f64, tolerance: f64, what: &str) {
    let off = (found - expected).abs();
    assert!(
        off <= tolerance * expected.abs().max(f64::MIN_POSITIVE) || off == 0.0,
        "{what}: {found}, not {expected}"
    );
}

/// The same resamples, drawn and averaged by numpy: to the last bit. Other resamples, drawn by scipy: as near as two
/// bootstraps are.
fn check(estimate: &Estimate, case: &Value) {
    let name = &case["case"];
    let found = (estimate.mean, estimate.low, estimate.high);
    let expected = (number(&case["mean"]), case["low"].as_f64(), case["high"].as_f64());
    assert_eq!(found, expected, "{name}");
    assert_eq!(estimate.n_units, count(&case["n_units"]), "{name}");
    let scipy = &case["scipy"];
    if !scipy.is_null() {
        let tolerance = number(&scipy["tolerance"]);
        let (low, high) = (estimate.low.unwrap(), estimate.high.unwrap());
        assert!(tolerance < 0.2 * (high - low), "{name}");
        assert!((low - number(&scipy["low"])).abs() <= tolerance);
        assert!((high - number(&scipy["high"])).abs() <= tolerance);
    }
}

#[test]
fn bootstraps_equal_numpys_to_the_last_bit_and_scipys_within_monte_carlo_error() {
    for case in cases("bootstrap").0 {
        let (left, right) = (runs(&case["left"]), runs(&case["right"]));
        let units = match case["units"].as_array() {
            Some(units) => Units::of(&units.iter().map(count).collect::<Vec<_>>()),
            None => each(left.0[0].len()),
        };
        let estimate = paired_difference(&left, &right, &units).unwrap();
        check(&estimate, &case);
        assert_eq!(estimate.n_questions, left.0[0].len());
    }
}

#[test]
fn net_gain_equals_numpys() {
    for case in cases("net_gain").0 {
        let (round0, last) = (runs(&case["round0"]), runs(&case["last"]));
        let gain = net_gain(&round0, &last, &each(last.0[0].len())).unwrap();
        check(&gain.estimate, &case);
        let n = last.0[0].len() as f64;
        for (run, gained) in gain.wrong_to_right.iter().enumerate() {
            assert_eq!(*gained, number(&case["wrong_to_right"][run]) / n);
            assert_eq!(gain.right_to_wrong[run], number(&case["right_to_wrong"][run]) / n);
        }
    }
}

#[test]
fn mcnemars_test_equals_scipys_binomial_test() {
    let (cases, tolerance) = cases("mcnemar");
    for case in cases {
        let (only_left, only_right) = (count(&case["only_left"]), count(&case["only_right"]));
        let left = [vec![true; only_left], vec![false; only_right]].concat();
        let right: Vec<bool> = left.iter().map(|right| !right).collect();
        let test = mcnemar(&left, &right, &each(left.len()));
        assert_eq!((test.only_left, test.only_right), (only_left, only_right));
        let what = format!("{only_left}, {only_right}");
        near(test.p_value, number(&case["p_value"]), tolerance, &what);
    }
}

#[test]
fn deviations_over_runs_equal_numpys() {
    let (cases, tolerance) = cases("over_runs");
    for case in cases {
        let per_run = case["per_run"].as_array().unwrap().iter().map(number);
        let figure = OverRuns::of(per_run.collect()).unwrap();
        near(figure.mean, number(&case["mean"]), tolerance, "mean");
        let std = figure.std.unwrap();
        assert!((std - number(&case["std"])).abs() <= tolerance, "{std}");
    }
}

#[test]
fn kappas_equal_scikit_learns() {
    let (cases, tolerance) = cases("kappa");
    for case in cases {
        let scores = |side: &str| -> Vec<u8> {
            let digits = case[side].as_str().unwrap().bytes();
            digits.map(|digit| digit - b'0').collect()
        };
        let (first, second) = (scores("first"), scores("second"));
        let found = cohen_kappa(&first, &second).unwrap();
        // Near 0 the difference of two numbers near 1 keeps their error.
        let off = (found - number(&case["unweighted"])).abs();
        assert!(off <= tolerance, "{found}, not {}", case["unweighted"]);
    }
}
