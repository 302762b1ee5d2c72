//! A case's calls in steps: the answers to one question at one stage with their vote, or the calls of one purpose.

use minijinja::context;
use minijinja::value::Value;

use super::card::card;
use super::prompts::Prompts;
use super::question::{self, Answers};
use super::{ItemRecords, note};
use crate::analysis::notes::capitalised;
use crate::experiment::plan::MemberPlan;
use crate::record::{AnswerLine, CallLine, ItemLine, NoteLine, RoundLine, Stage};

/// Calls that belong together, with what their answers came to.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    pub round: u32,
    pub stage: Stage,
    /// Of calls that give no answer; empty of answers.
    pub purpose: &'a str,
    /// `None` where the calls give no answer, or an error ended the item.
    pub record: Option<&'a RoundLine>,
    /// In the order of the round's answers.
    pub calls: Vec<&'a CallLine>,
}

/// A question's calls round by round, in the order in which they were begun.
pub fn rounds<'a>(
    item: &'a AnswerLine,
    calls: &[&'a CallLine],
    panel: &[MemberPlan],
) -> Vec<Group<'a>> {
    let recorded = item.rounds.iter().map(|record| Group {
        round: record.round,
        stage: record.stage,
        purpose: "",
        record: Some(record),
        calls: Vec::new(),
    });
    let mut groups = grouped(recorded.collect(), calls, |call| {
        let is_aside = call.stage == Stage::Aside;
        (call.round, call.stage, if is_aside { call.purpose.as_str() } else { "" })
    });
    for group in &mut groups {
        let agents = group.record.map_or(&[][..], |record| &record.agents);
        // Agents in the order of the round's answers, then of the panel, then others; of one agent, samples in order.
        group.calls.sort_by_key(|call| {
            let answering = agents.iter().position(|agent| *agent == call.agent);
            let seat = panel.iter().position(|one| one.agent == call.agent);
            let place = (answering.unwrap_or(agents.len()), seat.unwrap_or(panel.len()));
            (place, &call.agent, call.sample, call.seq)
        });
    }
    groups.sort_by_key(|group| {
        let began = group.calls.iter().map(|call| call.seq).min();
        (group.round, began.unwrap_or(u64::MAX), group.stage)
    });
    groups
}

/// The calls that have the same key together.
fn grouped<'a>(
    mut groups: Vec<Group<'a>>,
    calls: &[&'a CallLine],
    key: impl Fn(&'a CallLine) -> (u32, Stage, &'a str),
) -> Vec<Group<'a>> {
    for &call in calls {
        let (round, stage, purpose) = key(call);
        let is_own = |group: &&mut Group<'a>| {
            (group.round, group.stage, group.purpose) == (round, stage, purpose)
        };
        match groups.iter_mut().find(is_own) {
            Some(group) => group.calls.push(call),
            None => {
                let (record, calls) = (None, vec![call]);
                groups.push(Group { round, stage, purpose, record, calls });
            }
        }
    }
    groups
}

/// Which of a round's answers belongs to which call: an agent's first answer to its first sample, and so on; `None` where a call has none.
/// The calls are of one agent's samples in order.
pub fn places(calls: &[&CallLine], agents: &[String]) -> Vec<Option<usize>> {
    let place = |index: usize| {
        let agent = &calls[index].agent;
        let before = calls[..index].iter().filter(|call| call.agent == *agent);
        nth(agents, agent, before.count())
    };
    (0..calls.len()).map(place).collect()
}

/// What the agent whose answer is at `place` had answered in the round before: the same sample of the same agent.
pub fn before<'a>(last: Option<&'a RoundLine>, round: &RoundLine, place: usize) -> Option<&'a str> {
    let (last, agent) = (last?, round.agents.get(place)?);
    let sample = round.agents[..place].iter().filter(|other| *other == agent);
    last.answers.get(nth(&last.agents, agent, sample.count())?).map(String::as_str)
}

/// The place of an agent's sample, from 0.
fn nth(agents: &[String], agent: &str, sample: usize) -> Option<usize> {
    (0..agents.len()).filter(|place| agents[*place] == agent).nth(sample)
}

/// The steps of a case in the order in which they began.
pub fn steps<'a>(source: &ItemRecords<'a, '_>, prompts: &mut Prompts<'a>) -> Vec<Value> {
    match source.item {
        ItemLine::Answer(item) => {
            let mut last = None;
            let groups = rounds(item, source.calls, source.panel);
            let steps = groups.iter().map(|group| {
                let round = Answers {
                    options: question::options(source.text),
                    gold: item.gold.as_deref(),
                    last,
                };
                last = group.record.or(last);
                round.step(group, prompts)
            });
            steps.collect()
        }
        ItemLine::Note(note) => {
            let by_purpose = |call: &'a CallLine| (0, Stage::Aside, call.purpose.as_str());
            let groups = grouped(Vec::new(), source.calls, by_purpose);
            groups.iter().map(|group| of_note(note, group, prompts)).collect()
        }
    }
}

fn of_note<'a>(note: &'a NoteLine, group: &Group<'a>, prompts: &mut Prompts<'a>) -> Value {
    let cards = group.calls.iter().map(|&call| {
        let said = note::said(call, note);
        card(call, &said, prompts.number(call), note::arbitrates(call, note))
    });
    context! {
        title => capitalised(group.purpose),
        about => note::settled(note, group.purpose).unwrap_or_default(),
        // The way to the answer says what they said.
        folded => note.search.is_some(),
        doctors => (),
        brief => "",
        cards => cards.collect::<Vec<_>>(),
        vote => (),
        uncounted => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SettledBy;
    use crate::report::tests::fixtures::{call, item, plan, round};
    use crate::report::tests::notes::{called, detected, note};

    fn said(agent: &str, round: u32, stage: Stage, purpose: &str, seq: u64) -> CallLine {
        let mut said = call("x", agent, round);
        (said.stage, said.purpose, said.seq) = (stage, purpose.to_owned(), seq);
        said
    }

    fn agents(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn asides_stand_between_answers_where_they_were_made() {
        let mut review = round(1, ["A", "B"]);
        review.agents = agents(&["doctor-1", "doctor-2"]);
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
        let groups = rounds(&case, &calls, &plan().panel);
        let told: Vec<(u32, &str, bool, usize)> = groups
            .iter()
            .map(|group| {
                let purpose = group.calls[0].purpose.as_str();
                (group.round, purpose, group.record.is_some(), group.calls.len())
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
        assert_eq!(groups[4].calls[0].agent, "doctor-1");
    }

    #[test]
    fn a_round_without_calls_is_a_step_too() {
        let case = item("x", None, vec![round(0, ["A"]), round(1, ["B"])], "B");
        assert_eq!(rounds(&case, &[], &plan().panel).len(), 2);
    }

    #[test]
    fn samples_of_one_agent_take_its_answers_in_order() {
        let calls = ["sym", "sym", "ddx", "passer-by", "sym"].map(|agent| call("x", agent, 0));
        let calls: Vec<&CallLine> = calls.iter().collect();
        assert_eq!(
            places(&calls, &agents(&["sym", "ddx", "sym", "ddx"])),
            [Some(0), Some(2), Some(1), None, None]
        );
    }

    #[test]
    fn an_answer_is_compared_with_the_same_agents_own() {
        let mut last = round(0, ["A", "B", "C"]);
        last.agents = agents(&["a", "b", "a"]);
        let mut now = round(1, ["A", "A", "A", "A", "A"]);
        now.agents = agents(&["b", "a", "c", "a", "a"]);
        let found: Vec<Option<&str>> = (0..5).map(|at| before(Some(&last), &now, at)).collect();
        assert_eq!(found, [Some("B"), Some("A"), None, Some("C"), None]);
    }

    #[test]
    fn calls_about_a_note_stand_by_purpose_in_the_order_of_their_beginning() {
        let mut checked = note("x");
        let flags = [Some(true), None, Some(true)];
        checked.detection = Some(detected(SettledBy::Arbitration, &flags));
        let item = ItemLine::from(checked);
        let calls = [
            called("x", "det1", "detection"),
            called("x", "det2", "detection"),
            called("x", "det3", "detection"),
            called("x", "corr1", "correction"),
        ];
        let calls: Vec<&CallLine> = calls.iter().collect();
        let source = ItemRecords {
            item: &item,
            text: None,
            calls: &calls,
            searches: &[],
            runs: &[],
            panel: &[],
            neural: &Default::default(),
        };
        let steps = serde_json::to_value(steps(&source, &mut Prompts::default())).unwrap();
        let told = [0, 1].map(|place| {
            let step = &steps[place];
            (&step["title"], step["cards"].as_array().unwrap().len(), &step["about"])
        });
        assert_eq!(told[0], (&"Detection".into(), 3, &"settled by arbitration".into()));
        assert_eq!(told[1], (&"Correction".into(), 1, &"".into()));
        assert!(steps.get(2).is_none());
    }
}
