//! What was said about an item so far, and the outcome that it makes.

use std::collections::BTreeMap;

use super::form::answer::{Reading, verdict};
use super::reply::ParsedReply;
use super::schema::{Gives, StageEntry, Vote, When};
use crate::panel::Asked;
use crate::record::{self, RoundLine};
use crate::systems::case::Verdict;
use crate::systems::config::SOLO;
use crate::systems::opinion::{Opinion, Settled, apart, together};
use crate::systems::vote::{consensus, round_line};

/// The course of an item through the stages.
#[derive(Default)]
pub struct Transcript {
    /// Of each stage that was gone through, what its agents said last.
    pub stages: BTreeMap<String, String>,
    /// All that was said, in order, several agents' words behind their names.
    pub said: Vec<String>,
    /// Times that agents of a question were asked.
    pub steps: u32,
    /// A note's outcome so far.
    pub finding: Settled,
    /// The sentence that the last reply named.
    named: Option<usize>,
    /// A question's outcome so far, and its rounds.
    pub verdict: Verdict,
    answers: Vec<String>,
    pub rounds: Vec<RoundLine>,
}

impl Transcript {
    pub fn holds(&self, when: When) -> bool {
        let opinion = &self.finding.opinion;
        let has_error = opinion.flag.has_error();
        match when {
            When::Always => true,
            When::Disagree => !consensus(&self.answers),
            When::Error => has_error,
            When::NoError => !has_error,
            When::OtherSentence => {
                has_error && opinion.sentence_id.is_some() && self.named != opinion.sentence_id
            }
        }
    }

    /// Takes what a stage's agents said.
    pub fn hear(&mut self, stage: &StageEntry, asked: &[Asked<ParsedReply>]) {
        let agents: Vec<String> = asked.iter().map(|one| one.call.agent.clone()).collect();
        let shown: Vec<String> = asked.iter().map(ParsedReply::shown).collect();
        let lines = agents.iter().zip(&shown).map(|(agent, said)| format!("{agent}: {said}"));
        let lines: Vec<String> = lines.collect();
        let told = if let [one] = &shown[..] { one.clone() } else { lines.join("\n\n") };
        self.stages.insert(stage.name.clone(), told);
        // Who is alone needs no name.
        self.said.extend(if agents == [SOLO] { shown } else { lines });
        let opinions: Option<Vec<Opinion>> = asked.iter().map(ParsedReply::opinion).collect();
        match opinions {
            Some(opinions) => self.judge(stage, agents.into_iter().zip(opinions).collect()),
            None => self.answer(agents, asked),
        }
        self.steps += 1;
    }

    fn judge(&mut self, stage: &StageEntry, heard: Vec<(String, Opinion)>) {
        let opinions: Vec<&Opinion> = heard.iter().map(|(_, opinion)| opinion).collect();
        let voted = match stage.vote {
            Vote::Apart => apart(&opinions),
            Vote::Majority => together(&opinions),
        };
        self.named = voted.sentence_id;
        let Settled { opinion, heard: before } = &mut self.finding;
        match stage.gives {
            Gives::Opinion if voted.flag.is_read() || before.is_empty() => {
                self.finding = Settled { opinion: voted, heard };
            }
            Gives::Opinion => {}
            Gives::Correction => {
                opinion.correction = voted.correction.or(opinion.correction.take())
            }
            Gives::SameSentence => {
                if voted.sentence_id.is_some() && voted.sentence_id == opinion.sentence_id {
                    opinion.correction = voted.correction.or(opinion.correction.take());
                }
            }
        }
    }

    /// Where none of the answers could be read, the outcome of the stage before stands.
    fn answer(&mut self, agents: Vec<String>, asked: &[Asked<ParsedReply>]) {
        let readings = asked.iter().filter_map(|one| match &one.value {
            ParsedReply::Answer(reading) => Some(reading.clone()),
            _ => None,
        });
        let readings: Vec<Reading> = readings.collect();
        let answers: Vec<String> = readings.iter().map(|one| one.answer.clone()).collect();
        let verdict = verdict(&readings);
        let role = self.role(agents.len());
        self.rounds.push(RoundLine {
            aggregate: verdict.answer.clone(),
            ..round_line(self.steps, role, agents, answers.clone(), String::new())
        });
        if !verdict.answer.is_empty() || self.answers.is_empty() {
            (self.verdict, self.answers) = (verdict, answers);
        }
    }

    /// The role of so many calls on a question: the first answers, those of a round, or the answer of one who decides for all.
    pub fn role(&self, calls: usize) -> record::Stage {
        match (self.rounds.is_empty(), calls) {
            (true, _) => record::Stage::Initial,
            (false, 1) => record::Stage::Final,
            (false, _) => record::Stage::Round,
        }
    }
}
