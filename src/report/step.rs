//! A case's calls in the steps in which they were made: answers to one question at one stage, or notes of one purpose.

use super::panel::Panel;
use crate::record::{AnswerLine, CallLine, RoundLine, Stage};

/// One step of a case.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    pub round: u32,
    pub stage: Stage,
    /// What the answers came to; a step of notes has none, nor has one that an error ended.
    pub record: Option<&'a RoundLine>,
    /// In the order of the round's answers.
    pub calls: Vec<&'a CallLine>,
}

impl<'a> Step<'a> {
    fn is_of(&self, call: &CallLine) -> bool {
        let same = (self.round, self.stage) == (call.round, call.stage);
        let purpose = self.calls.first().map(|first| &first.purpose);
        same && (self.stage != Stage::Aside || purpose == Some(&call.purpose))
    }

    /// Whether the step asks for answers.
    pub fn answers(&self) -> bool {
        self.stage != Stage::Aside
    }

    fn began(&self) -> u64 {
        let calls = self.calls.iter().map(|call| call.seq);
        calls.min().unwrap_or(u64::MAX)
    }
}

/// The steps of a case, round by round in the order in which they were begun.
pub fn steps<'a>(item: &'a AnswerLine, calls: &[&'a CallLine], panel: Panel<'a>) -> Vec<Step<'a>> {
    let recorded = item.rounds.iter().map(|record| Step {
        round: record.round,
        stage: record.stage,
        record: Some(record),
        calls: Vec::new(),
    });
    let mut steps: Vec<Step<'a>> = recorded.collect();
    for call in calls {
        match steps.iter_mut().find(|step| step.is_of(call)) {
            Some(step) => step.calls.push(call),
            None => steps.push(Step {
                round: call.round,
                stage: call.stage,
                record: None,
                calls: vec![call],
            }),
        }
    }
    for step in &mut steps {
        let agents = step.record.map_or(&[][..], |record| &record.agents);
        step.calls
            .sort_by_key(|call| (panel.order(call, agents), call.seq));
    }
    steps.sort_by_key(|step| (step.round, step.began(), step.stage));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures::{call, item, plan, round};

    fn said(agent: &str, round: u32, stage: Stage, purpose: &str, seq: u64) -> CallLine {
        let mut said = call("x", agent, round);
        (said.stage, said.purpose, said.seq) = (stage, purpose.to_owned(), seq);
        said
    }

    #[test]
    fn notes_stand_between_answers_where_they_were_made() {
        let mut review = round(1, ["A", "B"]);
        review.agents = vec!["doctor-1".to_owned(), "doctor-2".to_owned()];
        let case = item("x", Some("A"), vec![round(0, ["A"]), review], "A");
        let calls = [
            said("decision", 1, Stage::Final, "decision", 9),
            said("doctor-2", 1, Stage::Round, "review", 7),
            said("doctor-1", 1, Stage::Round, "review", 8),
            said("meta", 1, Stage::Aside, "synthesis", 6),
            said("doctor-1", 1, Stage::Aside, "analysis", 5),
            said("sym", 0, Stage::Initial, "initial", 2),
            said("gatherer", 0, Stage::Aside, "specialties", 1),
        ];
        let calls: Vec<&CallLine> = calls.iter().collect();
        let panel = plan().panel;
        let steps = steps(&case, &calls, Panel::new(&panel));
        let told: Vec<(u32, &str, bool, usize)> = steps
            .iter()
            .map(|step| {
                let purpose = step.calls[0].purpose.as_str();
                (step.round, purpose, step.record.is_some(), step.calls.len())
            })
            .collect();
        assert_eq!(
            told,
            [
                (0, "specialties", false, 1),
                (0, "initial", true, 1),
                (1, "analysis", false, 1),
                (1, "synthesis", false, 1),
                (1, "review", true, 2),
                (1, "decision", false, 1),
            ]
        );
        assert_eq!(steps[4].calls[0].agent, "doctor-1");
    }

    #[test]
    fn a_round_without_calls_is_a_step_too() {
        let case = item("x", None, vec![round(0, ["A"]), round(1, ["B"])], "B");
        let panel = plan().panel;
        let steps = steps(&case, &[], Panel::new(&panel));
        assert_eq!(steps.len(), 2);
        assert!(steps.iter().all(Step::answers));
    }
}
