//! How many tokens each agent may write, and how warm it is.

use super::*;

/// A turn that is rejected, so that every agent speaks.
fn rejected_once() -> Said {
    Said { review: |round, _| score(if round == 0 { "2" } else { "4" }), ..Said::default() }
}

/// What each purpose's calls were limited to, and their temperature.
fn limits(calls: &[CallLine]) -> Vec<(&str, usize, f32)> {
    let mut found: Vec<(&str, usize, f32)> = Vec::new();
    for call in calls {
        let sampling = &call.sampling;
        let limit =
            (call.purpose.as_str(), sampling.max_tokens.unwrap(), sampling.temperature.unwrap());
        if !found.contains(&limit) {
            found.push(limit);
        }
    }
    found
}

/// The release's `config.yaml` has these for each of its agents.
#[test]
fn each_agent_has_the_limit_and_the_temperature_of_the_release() {
    let (_, _, calls) = run("medreflex", &[], rejected_once());
    let published =
        [("step", 1024, 0.1), ("review", 1200, 1.0), ("reflexion", 512, 0.1), ("parse", 512, 0.0)];
    assert_eq!(limits(&calls), published);
    // MedReAct alone has no reviews, and steps of its own.
    let (_, _, calls) = run("medreact", &[], Said::default());
    assert_eq!(limits(&calls), [("step", 4096, 0.0), ("parse", 512, 0.0)]);
}

#[test]
fn limits_of_the_run_hold_where_the_models_own_are_asked_for() {
    let (_, _, calls) = run("medreflex", &["temperatures=model"], rejected_once());
    // A model's own temperature, here none but the default.
    let own = crate::engine::Sampling::default().temperature;
    let expected = ["step", "review", "reflexion", "parse"].map(|purpose| (purpose, 4096, own));
    assert_eq!(limits(&calls), expected);
}
