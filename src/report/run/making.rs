//! How a run was made: weights, decoding, engine and host, as the plan has them.

use serde::Serialize;

use crate::experiment::contents::Contents;
use crate::experiment::plan::MemberPlan;

#[derive(Serialize)]
pub struct Making {
    /// Of each member.
    sampling: Vec<String>,
    /// Each switch of the system as `name = value`.
    settings: Vec<String>,
    thinking: &'static str,
    memory_gib: String,
    /// Those that wrote the run.
    versions: String,
}

impl Making {
    pub fn new(contents: &Contents) -> Making {
        let plan = &contents.plan;
        let settings = plan.settings.iter();
        Making {
            versions: contents.versions.join(", then "),
            sampling: plan.panel.iter().map(sampling).collect(),
            settings: settings.map(|(name, value)| format!("{name} = {value}")).collect(),
            thinking: thinking(&plan.panel),
            memory_gib: format!("{:.1}", plan.host.memory_bytes as f64 / f64::from(1 << 30)),
        }
    }
}

fn thinking(panel: &[MemberPlan]) -> &'static str {
    let thinking = panel.iter().filter(|member| member.thinking).count();
    match thinking {
        0 => "off",
        all if all == panel.len() => "on",
        _ => "on for some members",
    }
}

fn sampling(member: &MemberPlan) -> String {
    let temperature = match member.temperature {
        None => return "as the provider decodes".into(),
        Some(0.0) => return "greedy".into(),
        Some(temperature) => temperature,
    };
    let optional = [
        member.top_k.map(|k| format!("top-k {k}")),
        member.top_p.map(|p| format!("top-p {p}")),
        member.min_p.map(|p| format!("min-p {p}")),
        member.repetition_penalty.map(|penalty| format!("repetition penalty {penalty}")),
    ];
    let mut parts = vec![format!("temperature {temperature}")];
    parts.extend(optional.into_iter().flatten());
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::questions as debates;

    #[test]
    fn sampling_names_what_is_on() {
        let mut member = debates::records().0.panel.remove(0);
        member.temperature = Some(0.6);
        (member.top_k, member.top_p, member.min_p) = (Some(20), Some(0.95), None);
        assert_eq!(sampling(&member), "temperature 0.6, top-k 20, top-p 0.95");
        member.temperature = Some(0.0);
        assert_eq!(sampling(&member), "greedy");
    }

    #[test]
    fn mixed_thinking_is_said() {
        let mut panel = debates::records().0.panel;
        assert_eq!(thinking(&panel), "off");
        panel[2].thinking = true;
        assert_eq!(thinking(&panel), "on for some members");
    }
}
