//! What plans of earlier versions hold of things that are gone since, and that their calls did not depend on.

use super::Plan;
use crate::prompts::PromptSet;
use crate::systems::settings::spelling;

/// The sums of folders of prompts, some of which are gone or had not come yet; the others are as they were.
const PROMPTS: [(&str, &str); 7] = [
    ("medmad", "34bf74db818f77bae43e881c45ebfc655c4432d51b103d60a53a669bace20654"),
    ("mediqa_corr", "dfe495cb69b9de76c727342588622982c6649ae33c11ca2b4ea03f1837c9f112"),
    ("mediqa_corr", "500950ffb4480d07460e2ed410b5f7078d676281f97a342fb142c4f327f41199"),
    ("medagents", "89a89c11bde3767b9e80a92603f383c40c51bcc7a14de23da649c366b5d61131"),
    ("mdagents", "39963074dea06225e72c83dba734e0137370be42cfb5366644b39461999ee906"),
    ("mdagents", "318b33c821eeb73817932379174dee81912a693df578de56c43b3e69c13ae25e"),
    ("reconcile", "4001c20218e176c89ba66ebf713bab7afbd76fa60cd110caa97660f1baa17268"),
];

/// Settings by the systems that had them, [`EVERY`] one or one, each with the value that left it without effect.
const SETTINGS: [(&str, &str, &str); 23] = [
    (EVERY, "reask", "off"),
    ("medmad", "evidence", "off"),
    ("medmad", "passages", "5"),
    ("no-debate", "evidence", "off"),
    ("no-debate", "passages", "5"),
    ("ikim", "clusters", "off"),
    ("ikim", "candidate", "position"),
    ("knowlab-reason", "members", "1"),
    ("medifact", "members", "1"),
    ("medprompt", "members", "1"),
    ("medagents", "form", "harness"),
    ("mdagents", "form", "harness"),
    ("mdagents", "max_rounds", "5"),
    ("mdagents", "max_turns", "5"),
    ("mdagents", "temperatures", "paper"),
    ("mdagents", "truncate_chars", "200"),
    ("reconcile", "form", "harness"),
    ("reconcile", "truncate_chars", "500"),
    ("reconcile", "confidence_reading", "clamped"),
    ("base-llm", "release_compat", "off"),
    ("medguards", "release_compat", "off"),
    ("medreflex", "release_compat", "off"),
    ("medreact", "release_compat", "off"),
];
const EVERY: &str = "";

/// The sum that a folder of prompts had while those that are gone were in it.
pub fn prompts_before(folder: &str) -> Option<&'static str> {
    PROMPTS.iter().find(|(name, _)| *name == folder).map(|(_, sum)| *sum)
}

/// Whether its recruiter of teams, who was shown no example, is shown one now.
fn asks_as_the_harness(settings: &toml::Table) -> bool {
    settings.get("mab_compat").and_then(toml::Value::as_str) == Some("on")
}

impl Plan {
    /// The plan without them, as this version would have written it.
    pub(in crate::experiment) fn without_gone(&self) -> Plan {
        let mut plan = self.clone();
        let had = |key: &str, value: &toml::Value| {
            let spelled = spelling(value.clone());
            let is = |system: &str| SETTINGS.contains(&(system, key, spelled.as_str()));
            is(EVERY) || is(&self.system)
        };
        plan.settings.retain(|key, value| !had(key, value));
        if let Some(exemplars) = &mut plan.exemplars {
            exemplars.files.retain(|file| file.is_known());
        }
        if let Ok(entry) = plan.which().entry()
            && PROMPTS.contains(&(entry.prompts, &plan.prompts_sha256))
            && !(entry.prompts == "mdagents" && asks_as_the_harness(&plan.settings))
        {
            plan.prompts_sha256 = PromptSet::embedded().sha256(entry.prompts);
        }
        plan
    }
}
