//! How a run was made: weights, decoding, engine and host, as the plan has them.

use minijinja::context;
use minijinja::value::Value;

use crate::experiment::contents::Contents;
use crate::experiment::plan::MemberPlan;

/// What a system's calls have in place of their model's sampling.
const OF_PAPER: &str =
    "each call at the paper's temperature, without top-k and top-p; calls.jsonl has it";

pub fn making(contents: &Contents) -> Value {
    let plan = &contents.plan;
    let is_paper = plan.settings.get("temperatures").and_then(|one| one.as_str()) == Some("paper");
    let sampling = |member| if is_paper { OF_PAPER.to_owned() } else { sampling(member) };
    let settings = plan.settings.iter().map(|(name, value)| format!("{name} = {value}"));
    context! {
        // Those that wrote the run.
        versions => contents.versions.join(", then "),
        // Of each member.
        sampling => plan.panel.iter().map(sampling).collect::<Vec<_>>(),
        settings => settings.collect::<Vec<_>>(),
        memory_gib => format!("{:.1}", plan.host.machine.memory_bytes as f64 / f64::from(1 << 30)),
    }
}

fn sampling(member: &MemberPlan) -> String {
    let is_greedy = member.temperature == Some(0.0);
    let named = [
        member
            .temperature
            .map(|t| if is_greedy { "greedy".into() } else { format!("temperature {t}") }),
        member.top_k.filter(|_| !is_greedy).map(|k| format!("top-k {k}")),
        member.top_p.filter(|_| !is_greedy).map(|p| format!("top-p {p}")),
        member.min_p.filter(|_| !is_greedy).map(|p| format!("min-p {p}")),
        member.repetition_penalty.map(|penalty| format!("repetition penalty {penalty}")),
        member.seed.map(|seed| format!("random seed {seed}")),
        member.is_remote().then(|| "the rest as the provider decodes".into()),
    ];
    let parts: Vec<String> = named.into_iter().flatten().collect();
    match &parts[..] {
        [_] if member.is_remote() => "as the provider decodes".into(),
        parts => parts.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::conditions::thinking;
    use crate::panel::SamplingChoice;
    use crate::report::tests::questions as debates;

    #[test]
    fn sampling_names_what_is_on() {
        let mut member = debates::records().0.panel.remove(0);
        member.temperature = Some(0.6);
        (member.top_k, member.top_p, member.min_p) = (Some(20), Some(0.95), None);
        assert_eq!(sampling(&member), "temperature 0.6, top-k 20, top-p 0.95");
        member.temperature = Some(0.0);
        assert_eq!(sampling(&member), "greedy");
        member.seed = Some(7);
        assert_eq!(sampling(&member), "greedy, random seed 7");
        let (address, none) = ("openai:m@http://box/v1", SamplingChoice::default());
        let mut remote = MemberPlan::remote("doctor", address, None, none);
        assert_eq!(sampling(&remote), "as the provider decodes");
        (remote.temperature, remote.top_p) = (Some(0.2), Some(1.0));
        assert_eq!(sampling(&remote), "temperature 0.2, top-p 1, the rest as the provider decodes");
    }

    #[test]
    fn mixed_thinking_is_said() {
        let mut panel = debates::records().0.found.panel;
        assert_eq!(thinking(&panel), "off");
        panel[2].thinking = Some(true);
        assert_eq!(thinking(&panel), "on for some members");
    }
}
