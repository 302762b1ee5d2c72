//! The debate on one question, from first answers to vote.

use super::messages::Messages;
use super::peers::Shown;
use super::record::{Record, parse};
use super::schema::schema;
use super::settings::Settings;
use super::vote::{rationale, weights};
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet};
use crate::random::SplitMix64;
use crate::record::{Grammar, ItemLine, Message, RoundLine, Stage};
use crate::systems::case::{Case, Step, Verdict};
use crate::systems::vote::{consensus, of_whole, round_line, vote};
use crate::systems::{System, Task};

pub struct MedMad {
    settings: Settings,
    messages: Messages,
    shown: Shown,
}

impl System for MedMad {
    /// Algorithm 1 of the paper (App. B.9): independent first answers, rounds of debate while the panel disagrees, a vote.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = task.question()?;
        let mut records = self
            .ask(&case, 0, |agent| self.messages.initial(self.settings.roles[agent], case.item))?;
        let mut rounds = vec![self.line(&case, 0, &records, Brief::default())];
        for round in 1..=self.settings.rounds() {
            if !self.settings.always_debate && consensus(&answers(&records)) {
                break;
            }
            let brief = self.brief(&case, round, &records);
            records = self.ask(&case, round, |agent| {
                let (role, shown) = (self.settings.roles[agent], &brief.to_each[agent]);
                self.messages.debate(role, case.item, round, shown)
            })?;
            rounds.push(self.line(&case, round, &records, brief));
        }
        Ok(ItemLine::Answer(case.close(rounds, self.vote(&records))))
    }
}

/// What a round shows: doctor A is the agent `order[0]`; in panel order, what each agent reads.
#[derive(Default)]
struct Brief {
    order: Vec<usize>,
    to_each: Vec<String>,
}

impl MedMad {
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<MedMad, PromptError> {
        Ok(MedMad {
            settings: settings.clone(),
            messages: Messages::new(prompts, settings)?,
            shown: Shown::new(prompts, settings)?,
        })
    }

    /// A new permutation in every round, so that labels do not identify agents across rounds (§3, App. C.5).
    fn brief(&self, case: &Case<'_>, round: u32, records: &[Record]) -> Brief {
        let order = permutation(case.seed("labels", round), records.len());
        Brief { to_each: self.shown.to_each(records, &order), order }
    }

    /// Asks all agents at once; in round 0, as often as `samples` says, a whole panel at a time.
    fn ask(
        &self,
        case: &Case<'_>,
        round: u32,
        write: impl Fn(usize) -> Vec<Message>,
    ) -> Result<Vec<Record>, PanelError> {
        let settings = &self.settings;
        let (purpose, samples) =
            if round == 0 { ("initial", settings.samples) } else { ("debate", 1) };
        let grammar = Grammar::JsonSchema(schema(case.item, settings).to_string());
        let step = Step::new(stage(round), round, purpose, grammar);
        let draws = (0..samples).flat_map(|sample| case.agents().map(move |agent| (sample, agent)));
        let calls = draws.map(|(sample, (member, agent))| {
            let mut call = case.call(&step, member, agent, write(member));
            call.key.sample = sample;
            call
        });
        let asked = case.ask_all(calls, |text, finish_reason| {
            parse(text, finish_reason, &case.item.options, settings)
        })?;
        Ok(asked.into_iter().map(|asked| asked.value).collect())
    }

    /// A round as the log has it, with the vote that would end it.
    fn line(&self, case: &Case<'_>, round: u32, records: &[Record], brief: Brief) -> RoundLine {
        let agents: Vec<String> = case.agents().map(|(_, name)| name.to_owned()).collect();
        let labels = brief.order.into_iter().map(|agent| agents[agent].clone()).collect();
        let weights = weights(records, self.settings.confidence);
        let gave = agents.iter().cycle().take(records.len()).cloned().collect();
        let letters = records.iter().map(|record| record.answer.clone()).collect();
        RoundLine {
            labels,
            confidences: records.iter().map(|record| record.confidence).collect(),
            aggregate: vote(&answers(records), &weights).answer,
            weights: weights.into_iter().map(of_whole).collect(),
            ..round_line(round, stage(round), gave, letters, together(brief.to_each))
        }
    }

    fn vote(&self, records: &[Record]) -> Verdict {
        let vote = vote(&answers(records), &weights(records, self.settings.confidence));
        let rationale = rationale(records, &vote.answer, self.settings.truncate_chars);
        Verdict { rationale, ..vote }
    }
}

fn stage(round: u32) -> Stage {
    if round == 0 { Stage::Initial } else { Stage::Round }
}

/// The order in which `n` agents appear: doctor `i` is agent `permutation[i]`. Uniform over all `n!`.
///
/// The caller derives `seed` from (run seed, dataset, item, run, round), so that the labels change
/// from round to round and come out the same when the round runs again.
fn permutation(seed: u64, n: usize) -> Vec<usize> {
    let mut random = SplitMix64::new(seed);
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

/// As the log has them: the one brief of all, or each agent's own, a line between two.
fn together(mut briefs: Vec<String>) -> String {
    briefs.dedup();
    briefs.join("\n\n----\n\n")
}

fn answers(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| record.answer.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::permutation;
    use crate::panel::scripted::Script;
    use crate::systems::SystemConfig;
    use crate::systems::scripted::{answer, question};

    #[test]
    fn a_panel_that_agrees_stops_unless_it_is_always_to_debate() {
        for (always, calls, rounds) in [("off", 3, 0), ("on", 6, 1)] {
            let always = format!("always_debate={always}");
            let config = SystemConfig::parse("medmad", &["t_max=1", &always]).unwrap();
            let said = Script::new(|_, _| r#"{"answer": "B", "confidence": 0.9}"#.to_owned());
            let (line, made) = answer(&config, &question(5), said);
            assert_eq!((made.len(), line.rounds_run, line.answer.as_str()), (calls, rounds, "B"));
        }
    }

    #[test]
    fn an_item_without_an_answer_states_no_confidence() {
        let config = SystemConfig::parse("medmad", &["t_max=1"]).unwrap();
        let said = Script::new(|key, _| match (key.round, key.agent.as_str()) {
            (0, "sym") => r#"{"answer": "C", "confidence": 0.9}"#.to_owned(),
            (0, _) => r#"{"answer": "B", "confidence": 0.9}"#.to_owned(),
            _ => r#"{"confidence": 0.9}"#.to_owned(),
        });
        let (line, _) = answer(&config, &question(5), said);
        assert_eq!((line.answer.as_str(), line.team_confidence), ("", None));
        assert_eq!(line.rounds[0].aggregate, "B");
    }

    #[test]
    fn each_agent_is_shown_what_the_control_shows_it() {
        let config = SystemConfig::parse("medmad", &["t_max=1", "peers=own"]).unwrap();
        let said = Script::new(|key, _| {
            let letter = if key.agent == "sym" { 'B' } else { 'C' };
            format!(r#"{{"answer": "{letter}", "confidence": 0.9}}"#)
        });
        let (line, made) = answer(&config, &question(5), said);
        for call in made.iter().filter(|call| call.round == 1) {
            let shown = &call.messages[1].content;
            let (own, other) = if call.agent == "sym" { ('B', 'C') } else { ('C', 'B') };
            assert!(shown.contains(&format!("Answer: {own} |")), "{shown}");
            assert!(!shown.contains(&format!("Answer: {other} |")), "{shown}");
        }
        assert_eq!(
            line.rounds[1].brief.matches("\n----\n").count(),
            1,
            "two agree and are shown alike"
        );
    }

    #[test]
    fn every_permutation_is_as_likely() {
        let mut counts = BTreeMap::new();
        for seed in 0..6000 {
            *counts.entry(permutation(seed, 3)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        // Five standard deviations of a binomial with p = 1/6.
        for (order, count) in counts {
            assert!((856..=1144).contains(&count), "{order:?}: {count}");
        }
    }

    #[test]
    fn small_panels_and_repetition() {
        assert_eq!(permutation(7, 0), [0; 0]);
        assert_eq!(permutation(7, 1), [0]);
        assert_eq!(permutation(7, 10), permutation(7, 10));
        let mut sorted = permutation(u64::MAX, 10);
        sorted.sort();
        assert_eq!(sorted, (0..10).collect::<Vec<_>>());
    }
}
