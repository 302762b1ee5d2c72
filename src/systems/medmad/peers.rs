//! What a round shows each agent of the others: the paper's brief, or a control for what of it matters (ours).

use super::brief::BriefTemplate;
use super::record::{CounterfactualCheck, Record};
use super::settings::{Peers, Settings};
use crate::prompts::{PromptError, PromptSet};

/// Reasons of questions that are none of a run's.
const UNRELATED: &str = "medmad/unrelated";

/// The brief, and who is shown what of it.
pub struct Shown {
    peers: Peers,
    brief: BriefTemplate,
    /// For [`Peers::Noise`].
    unrelated: Vec<Record>,
}

impl Shown {
    pub fn new(prompts: &PromptSet, settings: &Settings) -> Result<Shown, PromptError> {
        Ok(Shown {
            peers: settings.peers,
            brief: BriefTemplate::new(prompts, settings)?,
            unrelated: unrelated(&prompts.get(UNRELATED, &[])?)?,
        })
    }

    /// In panel order; Doctor A is the agent `order[0]`.
    pub fn to_each(&self, records: &[Record], order: &[usize]) -> Vec<String> {
        let shown = |agent: usize| match self.peers {
            Peers::All => self.brief.write(records, order),
            Peers::Own => self.brief.write(records, &[agent]),
            Peers::Noise => self.brief.write(&self.with_unrelated_reasons(records, agent), order),
            Peers::None => self.brief.write(records, &[]),
        };
        (0..records.len()).map(shown).collect()
    }

    /// Each record but the agent's own with the reasons of another question where it has any.
    fn with_unrelated_reasons(&self, records: &[Record], own: usize) -> Vec<Record> {
        let mut unrelated = self.unrelated.iter().cycle();
        let swap = |(agent, record): (usize, &Record)| match unrelated.next() {
            Some(other) if agent != own => other.in_place_of(record),
            _ => record.clone(),
        };
        records.iter().enumerate().map(swap).collect()
    }
}

/// Paragraphs of five lines: two steps, what supports the answer, what choosing another would risk, what to watch for.
fn unrelated(text: &str) -> Result<Vec<Record>, PromptError> {
    let reasons = text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty());
    let record = |paragraph: &str| {
        let mut lines = paragraph.lines().map(str::to_owned);
        let mut record = Record { cot: lines.by_ref().take(2).collect(), ..Record::default() };
        record.structured_reasoning.final_support = lines.next().unwrap_or_default();
        let if_chose_other = lines.next().unwrap_or_default();
        record.counterfactual_check =
            Some(CounterfactualCheck { if_chose_other, ..Default::default() });
        record.debate_moves.risk_check = lines.next().unwrap_or_default();
        record
    };
    let records: Vec<Record> = reasons.map(record).collect();
    match records.len() {
        0 => Err(PromptError::NoEntry { name: format!("{UNRELATED}.txt"), entry: 1 }),
        _ => Ok(records),
    }
}

#[cfg(test)]
mod tests {
    use super::super::brief::tests::{full_record, minimal_record};
    use super::*;
    use crate::systems::scripted::settings;

    #[test]
    fn controls_show_ones_own_unrelated_reasons_or_nothing() {
        let records = [full_record(), minimal_record("D")];
        let shown = |pair: &str| {
            let shown = Shown::new(&PromptSet::embedded(), &settings(&[pair])).unwrap();
            shown.to_each(&records, &[1, 0])
        };
        let instructions = "Instructions for debate:";
        let all = shown("peers=all");
        assert!(all[0] == all[1] && all[0].matches("[Doctor").count() == 2);
        let own = shown("peers=own");
        assert!(own[0].contains("Answer: B") && !own[0].contains("Answer: D"));
        assert!(own[1].starts_with("[Doctor A] -> Answer: D") && !own[1].contains("Answer: B"));
        let none = shown("peers=none");
        assert!(none[0] == none[1] && none[0].starts_with(instructions));
        let noise = shown("peers=noise");
        // Its own reasons are an agent's own; of the others' there are answers, confidence and scores.
        assert_eq!(noise[0], all[0]);
        let head = "[Doctor B] -> Answer: B | Conf: 0.9\nOption scores: B=5, A=4, D=4\nCoT[1]: The swelling";
        assert!(noise[1].contains(head), "{}", noise[1]);
        for text in ["first step", "second", "too slow", "fits best", "delay", "allergy"] {
            assert!(all[1].contains(text) && !noise[1].contains(text), "{text}");
        }
        assert_eq!(
            noise[1].lines().count(),
            all[1].lines().count() - 1,
            "eliminations name options"
        );
        assert!(unrelated("\n\n").is_err());
    }
}
