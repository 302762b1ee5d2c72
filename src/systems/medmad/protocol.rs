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
use crate::systems::quote::Found;
use crate::systems::vote::{Vote, WHOLE, consensus, of_whole, round_line, vote};
use crate::systems::{System, Task};

/// The debate, with the prompts of a run.
pub struct MedMad {
    settings: Settings,
    messages: Messages,
    brief: BriefTemplate,
    evidence: EvidenceTemplate,
}

impl System for MedMad {
    /// Algorithm 1: independent first answers, rounds of debate while the panel disagrees, a vote.
    fn answer(&self, task: &Task<'_>) -> Result<ItemLine, PanelError> {
        let mut debate = Debate::open(self, task)?;
        let mut records = debate.first_answers()?;
        let mut rounds = vec![debate.line(0, &records, Shown::default())];
        for round in 1..=self.settings.rounds() {
            if debate.is_over(&records) {
                break;
            }
            let shown = debate.show(round, &records)?;
            records = debate.answers(round, &shown)?;
            rounds.push(debate.line(round, &records, shown));
        }
        Ok(debate.vote(rounds, &records))
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

/// The debate on one question.
struct Debate<'a> {
    system: &'a MedMad,
    settings: &'a Settings,
    case: Case<'a>,
    agents: Vec<(usize, &'a str)>,
    /// What the prompts of now quote of a corpus.
    found: Option<Found>,
}

/// What a round shows: doctor A is the agent `order[0]`, and each agent has a brief of its own.
#[derive(Default)]
struct Shown {
    order: Vec<usize>,
    briefs: Vec<String>,
}

impl<'a> Debate<'a> {
    fn open(system: &'a MedMad, task: &'a Task<'_>) -> Result<Debate<'a>, PanelError> {
        let settings = &system.settings;
        let case = match settings.letters {
            Letters::Item => task.question()?,
            Letters::AToJ => task.question()?.with_any_letter(),
        };
        let agents = case.agents().collect();
        let found = system.evidence.find(&case, Evidence::First)?;
        Ok(Debate { system, settings, case, agents, found })
    }

    /// All agents' answers; with a gate the first one's alone, where that is sure enough.
    fn first_answers(&self) -> Result<Vec<Record>, PanelError> {
        let write = |agent: usize, below: &str| {
            let role = self.settings.roles[agent];
            self.system.messages.initial(role, self.case.item, below)
        };
        let Some(gate) = self.settings.gate() else { return self.ask(0, &self.agents, write) };
        let (first, others) = self.agents.split_at(1);
        let mut records = self.ask(0, first, write)?;
        let is_sure = |record: &Record| {
            record.confidence * f64::from(WHOLE) >= f64::from(gate) && !record.answer.is_empty()
        };
        if !records.iter().all(is_sure) {
            records.extend(self.ask(0, others, write)?);
        }
        Ok(records)
    }

    /// Whether all agree, or the first agent's answer stands without the others'.
    fn is_over(&self, records: &[Record]) -> bool {
        let is_alone = records.len() < self.agents.len();
        is_alone || !self.settings.always_debate && consensus(&answers(records))
    }

    /// A new permutation in every round, so that labels do not identify agents across rounds (§3, App. C.5).
    fn show(&mut self, round: u32, records: &[Record]) -> Result<Shown, PanelError> {
        if round == 1 {
            self.found = self.system.evidence.find(&self.case, Evidence::Brief)?;
        }
        let order = permutation(self.case.seed("labels", round), self.agents.len());
        let briefs = self.system.brief.shown(records, &order);
        Ok(Shown { order, briefs })
    }

    fn answers(&self, round: u32, shown: &Shown) -> Result<Vec<Record>, PanelError> {
        self.ask(round, &self.agents, |agent, below| {
            let (role, brief) = (self.settings.roles[agent], &shown.briefs[agent]);
            self.system.messages.debate(role, self.case.item, round, &[brief, below].concat())
        })
    }

    /// Asks these agents at once; in round 0, as often as `samples` says, a whole panel at a time.
    fn ask(
        &self,
        round: u32,
        agents: &[(usize, &str)],
        write: impl Fn(usize, &str) -> Vec<Message>,
    ) -> Result<Vec<Record>, PanelError> {
        let (case, settings) = (&self.case, self.settings);
        let options = settings.letters.of(case.item);
        let (purpose, samples) =
            if round == 0 { ("initial", settings.samples) } else { ("debate", 1) };
        let shape = Shape::under(&schema(case.item, settings));
        let step = Step::new(stage(round), round, purpose, shape);
        let draws = (0..samples).flat_map(|sample| agents.iter().map(move |agent| (sample, agent)));
        let calls = draws.map(|(sample, &(member, agent))| {
            let write = |below: &str| write(member, below);
            let messages = self.system.evidence.beside(self.found.as_ref(), write);
            let mut call = case.call(&step, member, agent, messages);
            call.key.sample = sample;
            call
        });
        let asked = case
            .ask_all(calls, |text, finish_reason| parse(text, finish_reason, &options, settings))?;
        Ok(asked.into_iter().map(|asked| asked.value).collect())
    }

    /// A round as the log has it, with the vote that would end it.
    fn line(&self, round: u32, records: &[Record], shown: Shown) -> RoundLine {
        let weights = weights(records, self.settings);
        let gave =
            self.agents.iter().cycle().take(records.len()).map(|(_, name)| (*name).to_owned());
        let label = |agent: usize| self.agents[agent].1.to_owned();
        let letters = records.iter().map(|record| record.answer.clone());
        let brief = together(shown.briefs);
        RoundLine {
            labels: shown.order.into_iter().map(label).collect(),
            confidences: records.iter().map(|record| record.confidence).collect(),
            aggregate: vote(&answers(records), &weights).answer,
            weights: weights.into_iter().map(of_whole).collect(),
            ..round_line(round, stage(round), gave.collect(), letters.collect(), brief)
        }
    }

    fn vote(self, rounds: Vec<RoundLine>, records: &[Record]) -> ItemLine {
        let Vote { answer, tie, team_confidence } =
            vote(&answers(records), &weights(records, self.settings));
        let rationale = rationale(records, &answer, self.settings.truncate_chars);
        self.case.close(rounds, Verdict { answer, team_confidence, rationale, tie }).into()
    }
}

fn stage(round: u32) -> Stage {
    if round == 0 { Stage::Initial } else { Stage::Round }
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
                score: 1.0,
                text: Some("Beta agonists open the airways.".into()),
                ..Passage::default()
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
