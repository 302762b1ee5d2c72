//! The debate on one question, from first answers to vote: Algorithm 1 of the paper (App. B.9).

use super::brief::BriefTemplate;
use super::evidence::EvidenceTemplate;
use super::messages::Messages;
use super::record::{Record, parse};
use super::schema::schema;
use super::settings::{Evidence, Letters, Settings};
use super::vote::{rationale, weights};
use crate::data::Item;
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet};
use crate::record::{ItemLine, Message, RoundLine, Stage};
use crate::systems::case::{Case, Step, Verdict};
use crate::systems::decoding::Shape;
use crate::systems::permutation::permutation;
use crate::systems::vote::{Vote, WHOLE, consensus, of_whole, round_line, vote};
use crate::systems::{Opening, System, Task};

/// The debate, with the prompts of a run.
pub struct MedMad {
    settings: Settings,
    messages: Messages,
    brief: BriefTemplate,
    evidence: EvidenceTemplate,
}

impl MedMad {
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<MedMad, PromptError> {
        Ok(MedMad {
            settings: settings.clone(),
            messages: Messages::new(prompts, settings)?,
            brief: BriefTemplate::new(prompts, settings)?,
            evidence: EvidenceTemplate::new(prompts, settings)?,
        })
    }
}

impl System for MedMad {
    /// Independent first answers, up to `t_max` rounds of debate while the panel disagrees (with `always_debate` all of them), a vote.
    /// With a `gate`, the first agent's answer alone where that is sure enough.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let case = match self.settings.letters {
            Letters::Item => task.question()?,
            Letters::AToJ => task.question()?.with_any_letter(),
        };
        let question = case.item;
        let agents: Vec<(usize, &str)> = case.agents().collect();
        let found = self.evidence.find(&case, Evidence::First)?;
        let initial = |agent: usize| {
            let role = self.settings.roles[agent];
            let write = |below: &str| self.messages.initial(role, question, below);
            self.evidence.beside(found.as_ref(), write)
        };
        let first = match self.settings.gate {
            Some(_) if self.settings.samples == 1 => 1,
            _ => 0,
        };
        let mut records = self.ask(&case, 0, &agents[..first.min(agents.len())], initial)?;
        let is_sure = records.first().is_some_and(|record| self.is_sure(record));
        if !is_sure {
            records.extend(self.ask(&case, 0, &agents[first.min(agents.len())..], initial)?);
        }
        let mut rounds = vec![self.round_line(&case, 0, &records, &[], String::new())];
        let mut found = None;
        let last = if self.settings.samples > 1 || is_sure { 0 } else { self.settings.t_max };
        for round in 1..=last {
            if !self.settings.always_debate && consensus(&answers(&records)) {
                break;
            }
            // A new permutation in every round, so that labels do not identify agents across rounds (§3, App. C.5).
            let order = permutation(case.seed("labels", round), agents.len());
            let briefs = self.brief.shown(&records, &order);
            if round == 1 {
                found = self.evidence.find(&case, Evidence::Brief)?;
            }
            records = self.ask(&case, round, &agents, |agent| {
                let role = self.settings.roles[agent];
                let write = |below: &str| {
                    let brief = [&briefs[agent], below].concat();
                    self.messages.debate(role, question, round, &brief)
                };
                self.evidence.beside(found.as_ref(), write)
            })?;
            rounds.push(self.round_line(&case, round, &records, &order, together(briefs)));
        }
        let (_, vote) = self.vote(&records);
        let verdict = Verdict {
            rationale: rationale(&records, &vote.answer, self.settings.truncate_chars),
            answer: vote.answer,
            team_confidence: vote.team_confidence,
            tie: vote.tie,
        };
        Ok(case.close(rounds, verdict).into())
    }

    /// As long as the texts of all records in a brief, and passages below it.
    fn longest_prompt(&self, item: &Item, passage_chars: usize) -> Option<usize> {
        let evidence = self.evidence.longest(passage_chars)?;
        let question = item.question()?;
        let role = self.settings.roles.into_iter();
        let brief = self.brief.longest();
        let chars = |role| {
            let initial = self.messages.initial(role, question, "");
            let debate = self.messages.debate(role, question, 1, "");
            let chars = |messages: Vec<Message>| -> usize {
                messages.iter().map(|message| message.content.chars().count()).sum()
            };
            chars(initial).max(chars(debate) + brief)
        };
        Some(role.map(chars).max()? + evidence)
    }

    fn opening(&self, _: &str, item: &Item) -> Option<Vec<Opening>> {
        let question = item.question()?;
        let roles = self.settings.roles.iter().enumerate();
        let messages = |role| self.messages.initial(role, question, "");
        let opening = |(member, role): (usize, &_)| Opening { member, messages: messages(*role) };
        Some(roles.map(opening).collect())
    }
}

impl MedMad {
    /// Whether the answer stands without the others'.
    fn is_sure(&self, record: &Record) -> bool {
        let stated = record.confidence * f64::from(WHOLE);
        let is_enough = self.settings.gate.is_some_and(|from| stated >= f64::from(from));
        is_enough && !record.answer.is_empty()
    }

    /// Asks these agents at once; in round 0, as often as `samples` says, a whole panel at a time.
    fn ask(
        &self,
        case: &Case<'_>,
        round: u32,
        agents: &[(usize, &str)],
        messages: impl Fn(usize) -> Vec<Message>,
    ) -> Result<Vec<Record>, PanelError> {
        let options = self.settings.letters.of(case.item);
        let (stage, purpose, samples) = match round {
            0 => (Stage::Initial, "initial", self.settings.samples),
            _ => (Stage::Round, "debate", 1),
        };
        let step =
            Step::new(stage, round, purpose, Shape::under(&schema(case.item, &self.settings)));
        let draws = (0..samples).flat_map(|sample| agents.iter().map(move |agent| (sample, agent)));
        let calls = draws.map(|(sample, &(member, agent))| {
            let mut call = case.call(&step, member, agent, messages(member));
            call.key.sample = sample;
            call
        });
        let asked = case.ask_all(calls, |text, finish_reason| {
            parse(text, finish_reason, &options, &self.settings)
        })?;
        Ok(asked.into_iter().map(|asked| asked.value).collect())
    }

    fn vote(&self, records: &[Record]) -> (Vec<u32>, Vote) {
        let weights = weights(records, &self.settings);
        let vote = vote(&answers(records), &weights);
        (weights, vote)
    }

    fn round_line(
        &self,
        case: &Case<'_>,
        round: u32,
        records: &[Record],
        order: &[usize],
        brief: String,
    ) -> RoundLine {
        let (weights, vote) = self.vote(records);
        let agents: Vec<&str> = case.agents().map(|(_, agent)| agent).collect();
        let stage = if round == 0 { Stage::Initial } else { Stage::Round };
        let gave = (0..records.len()).map(|index| agents[index % agents.len()].to_owned());
        let answers = records.iter().map(|record| record.answer.clone());
        RoundLine {
            labels: order.iter().map(|&agent| agents[agent].to_owned()).collect(),
            confidences: records.iter().map(|record| record.confidence).collect(),
            weights: weights.into_iter().map(of_whole).collect(),
            aggregate: vote.answer,
            ..round_line(round, stage, gave.collect(), answers.collect(), brief)
        }
    }
}

/// What a round showed: the one brief of all, or in panel order each agent's own, a line between two.
fn together(mut briefs: Vec<String>) -> String {
    briefs.dedup();
    briefs.join("\n\n----\n\n")
}

fn answers(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| record.answer.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::diagnosis::Failure;
    use crate::panel::scripted::{Script, panel};
    use crate::record::Passage;
    use crate::retrieval::{Retrieve, SearchRequest, SearchResult, Searched};
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
    fn a_sure_first_agent_answers_alone_and_an_unsure_one_asks_the_panel() {
        for (gate, confidence, calls, rounds) in
            [("0.9", 0.9, 1, 0), ("0.9", 0.89, 6, 1), ("disagreement", 0.9, 6, 1)]
        {
            let gate = format!("gate={gate}");
            let config = SystemConfig::parse("medmad", &["t_max=1", &gate]).unwrap();
            let said = Script::new(move |key, _| {
                let letter = if key.agent == "sym" { 'B' } else { 'C' };
                format!(r#"{{"answer": "{letter}", "confidence": {confidence}}}"#)
            });
            let (line, made) = answer(&config, &question(5), said);
            assert_eq!((made.len(), line.rounds_run), (calls, rounds), "{gate}");
            let alone = line.rounds[0].agents == ["sym"];
            assert_eq!(
                (alone, line.answer.as_str()),
                (calls == 1, if calls == 1 { "B" } else { "C" })
            );
        }
        // Nothing read is never sure.
        let config = SystemConfig::parse("medmad", &["t_max=0", "gate=0"]).unwrap();
        let (_, made) = answer(&config, &question(5), Script::new(|_, _| String::new()));
        assert_eq!(made.len(), 3);
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

    /// One passage for whatever is searched for.
    struct Library(Searched);

    impl Retrieve for Library {
        fn searched(&self) -> &Searched {
            &self.0
        }

        fn search(&self, request: &SearchRequest) -> Result<SearchResult, Failure> {
            assert_eq!(
                (request.query.as_str(), request.rerank_top_k),
                ("Which one {examples}?", 5)
            );
            let passage = Passage {
                chunk: "a/1#0".into(),
                source: "guideline".into(),
                title: "Asthma".into(),
                paragraph: 0,
                score: 1.0,
                sha256: String::new(),
                text: Some("Beta agonists open the airways.".into()),
                url: None,
                date: None,
                licence: None,
            };
            Ok(SearchResult { shown: vec![passage], ..SearchResult::default() })
        }
    }

    #[test]
    fn passages_stand_below_first_questions_or_below_briefs() {
        for (when, rounds) in [("first", [true, false, false]), ("brief", [false, true, true])] {
            let config = SystemConfig::parse("medmad", &["t_max=2", &format!("evidence={when}")]);
            let config = config.unwrap();
            assert!(config.search().is_some());
            let agents: Vec<String> = config.slots().into_iter().map(|slot| slot.agent).collect();
            let said = Script::new(|key, _| {
                let letter = if key.agent == "sym" { 'B' } else { 'C' };
                format!(r#"{{"answer": "{letter}", "confidence": 0.9}}"#)
            });
            let (mut panel, calls) = panel(&agents, said);
            panel.retriever = Some(Arc::new(Library(Searched::default())));
            let system = config.build(&PromptSet::embedded(), &Default::default()).unwrap();
            let item = question(5).into();
            system.answer(&Task { panel: &panel, dataset: "d", item: &item, run: 1 }).unwrap();
            let shown = "[1.1] guideline: Asthma\nBeta agonists open the airways.";
            let longest = system.longest_prompt(&item, 40).unwrap();
            for call in calls.try_iter() {
                let user = &call.messages[1].content;
                assert_eq!(user.contains(shown), rounds[call.round as usize], "{when}: {user}");
                // The log refers to what was found: a corpus that may not be copied is not.
                let logged = serde_json::to_string(&call).unwrap();
                assert!(!logged.contains("open the airways"), "{logged}");
                let sent: usize =
                    call.messages.iter().map(|message| message.content.chars().count()).sum();
                assert!(sent <= longest, "{sent} {longest}");
            }
        }
        assert!(SystemConfig::named("medmad").unwrap().search().is_none());
    }
}
