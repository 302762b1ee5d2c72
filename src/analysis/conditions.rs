//! Under which conditions the rows of a table were made: what all have in common once, what differs by row.

use itertools::Itertools;

use crate::experiment::plan::{MemberPlan, Plan};
use crate::panel::DecodingMode;

/// What one row was made with: names and values, the same names in every row. Equal facts are equal texts.
pub type Conditions = Vec<(&'static str, String)>;

/// From a run's plan, and what the table of systems says of its prompts.
pub fn of(plan: &Plan) -> Conditions {
    let entry = plan.which().entry().ok();
    let setting = |name: &str| match plan.settings.get(name) {
        Some(value) => format!("{name} = {}", in_words(value)),
        None => format!("{name} not set"),
    };
    let prompts = match (&plan.prompts, entry) {
        (Some(folder), _) => format!("those in {folder}"),
        _ if plan.system_file.is_some() => "those of its file".to_owned(),
        (None, Some(entry)) => format!("{}{}", entry.wording, ours(plan, entry.prompts)),
        (None, None) => "unknown".to_owned(),
    };
    let examples = entry.and_then(|entry| entry.examples).unwrap_or("none");
    let mut limits_set = vec![setting("max_tokens")];
    // Without a system's grammar nothing bounds a string.
    limits_set.extend((plan.decoding == DecodingMode::Grammar).then(|| setting("record_chars")));
    let models = plan.panel.iter().map(|one| format!("{} {}", one.agent, one.backbone));
    let numbers = plan.panel.iter().map(|one| match (one.is_remote(), &*one.quantisation) {
        (true, _) => "a remote endpoint's".to_owned(),
        (false, "none") => one.dtype.clone(),
        (false, quantisation) => quantisation.to_owned(),
    });
    vec![
        ("prompts", prompts),
        ("few-shot examples", examples.to_owned()),
        ("decoding", decoding(plan.decoding).to_owned()),
        ("limits", limits_set.join(", ")),
        ("thinking", thinking(&plan.panel).to_owned()),
        ("models", models.collect_vec().join(", ")),
        ("weights in", numbers.unique().join(", ")),
    ]
}

/// The settings of MED-MAD with whose other values its prompts are no longer the paper's alone.
const OF_THE_PAPER: [(&str, &[&str]); 4] = [
    ("record", &["full"]),
    ("counterfactual", &["on", "paper"]),
    ("peers", &["all"]),
    ("evidence", &["off"]),
];

/// What of a paper's prompts a run's settings put in our words.
fn ours(plan: &Plan, prompts: &str) -> String {
    let mut words =
        OF_THE_PAPER.iter().filter(|_| prompts == "medmad").filter_map(|(name, paper)| {
            let value = plan.settings.get(*name)?;
            (!paper.contains(&value.as_str()?)).then(|| format!("{name} = {}", in_words(value)))
        });
    match words.join(" and ") {
        none if none.is_empty() => none,
        words => format!(", but for what {words} changes"),
    }
}

/// A setting's value without the quotes of TOML.
pub fn in_words(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether members think before they answer, in words.
pub fn thinking(panel: &[MemberPlan]) -> &'static str {
    if panel.iter().any(|member| member.thinking.is_none()) {
        return "as the endpoints have it";
    }
    match panel.iter().filter(|member| member.thinking == Some(true)).count() {
        0 => "off",
        all if all == panel.len() => "on",
        _ => "on for some members",
    }
}

/// How completions are decoded, in words.
pub fn decoding(mode: DecodingMode) -> &'static str {
    match mode {
        DecodingMode::Json => "JSON mode where MedAgentBoard has it, free text elsewhere",
        DecodingMode::Text => "free text",
        DecodingMode::Grammar => "text under a grammar",
    }
}

/// Sentences to stand under a table: one for what all rows have in common, one for each fact in which they differ. Rows that are equal
/// in all come once.
pub fn say<'a>(rows: &'a [(String, Conditions)]) -> Vec<String> {
    let Some((_, first)) = rows.first() else { return Vec::new() };
    let (mut common, mut differing) = (Vec::new(), Vec::new());
    for (place, (name, value)) in first.iter().enumerate() {
        let of_row = |row: &'a (String, Conditions)| row.1[place].1.as_str();
        if rows.iter().all(|row| of_row(row) == value) {
            common.push(format!("{name}: {value}"));
            continue;
        }
        let mut names = rows.iter().map(|row| (of_row(row), &row.0)).unique().into_group_map();
        let mut groups = rows.iter().filter_map(|row| {
            let (value, rows) = names.remove_entry(of_row(row))?;
            Some(format!("{value} ({})", rows.iter().join(", ")))
        });
        differing.push(format!("By row, {name}: {}.", groups.join("; ")));
    }
    let whose = if rows.len() == 1 { "Made with" } else { "All rows" };
    let common = (!common.is_empty()).then(|| format!("{whose}: {}.", common.join("; ")));
    common.into_iter().chain(differing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures::plan;

    #[test]
    fn a_plan_says_prompts_examples_decoding_bounds_and_seats() {
        let mut plan = plan();
        plan.system = "SingleLLM_few_shot".to_owned();
        plan.decoding = DecodingMode::Grammar;
        plan.settings = toml::from_str("max_tokens = 4096\nrecord_chars = 240").unwrap();
        let said = say(&[("a".to_owned(), of(&plan))]).concat();
        for part in [
            "Made with: prompts: ours, after the descriptions in MedAgentBoard",
            "few-shot examples: ours",
            "decoding: text under a grammar;",
            "limits: max_tokens = 4096, record_chars = 240",
            "thinking: off",
            &format!("models: sym {}", plan.panel[0].backbone),
        ] {
            assert!(said.contains(part), "{said}");
        }
        plan.system = "medmad".to_owned();
        plan.decoding = DecodingMode::Text;
        let said = say(&[("a".to_owned(), of(&plan))]).concat();
        assert!(said.contains("prompts: the paper's (MED-MAD, App. C); few-shot examples: none"));
        assert!(said.contains("limits: max_tokens = 4096;"), "{said}");
        plan.settings = toml::from_str("record = 'short'\npeers = 'all'").unwrap();
        let said = say(&[("a".to_owned(), of(&plan))]).concat();
        let but = "the paper's (MED-MAD, App. C), but for what record = short changes; few-shot";
        assert!(said.contains(but), "{said}");
        plan.prompts = Some("mine".to_owned());
        let said = say(&[("a".to_owned(), of(&plan))]).concat();
        assert!(said.contains("prompts: those in mine"), "{said}");
    }

    #[test]
    fn what_rows_share_is_said_once_and_the_rest_by_row() {
        let with = |system: &str| {
            let mut plan = plan();
            plan.system = system.to_owned();
            of(&plan)
        };
        let rows =
            [("few-shot", "few-shot"), ("CoT", "cot"), ("MED-MAD", "medmad"), ("CoT", "cot")];
        let rows = rows.map(|(label, system)| (label.to_owned(), with(system)));
        let said = say(&rows);
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].starts_with("All rows: decoding: "), "{}", said[0]);
        assert_eq!(
            said[1],
            "By row, prompts: ours, after the descriptions in MedAgentBoard (few-shot, CoT); the paper's (MED-MAD, App. C) (MED-MAD)."
        );
        assert_eq!(said[2], "By row, few-shot examples: ours (few-shot); none (CoT, MED-MAD).");
        assert!(say(&[]).is_empty());
    }
}
