//! Who spoke: the plan's members, and where in a round's answers a call belongs.

use crate::experiment::plan::MemberPlan;
use crate::record::CallLine;

/// The panel of a plan.
#[derive(Clone, Copy)]
pub struct Panel<'a> {
    members: &'a [MemberPlan],
}

impl<'a> Panel<'a> {
    pub fn new(members: &'a [MemberPlan]) -> Panel<'a> {
        Panel { members }
    }

    /// A call's place among calls of its step: speakers in the order of the round's answers, then members in panel order, then others;
    /// of one speaker, draws in order.
    pub fn order(&self, call: &'a CallLine, agents: &[String]) -> (usize, usize, &'a str, u32) {
        let answering = agents.iter().position(|agent| *agent == call.agent);
        let seat = self.members.iter().position(|one| one.agent == call.agent);
        (
            answering.unwrap_or(agents.len()),
            seat.unwrap_or(self.members.len()),
            &call.agent,
            call.sample,
        )
    }
}

/// Which of a round's answers belongs to which call: an agent's first answer to its first draw, and so on; `None` where a call has none.
/// The calls are of one agent's draws in order.
pub fn places(calls: &[&CallLine], agents: &[String]) -> Vec<Option<usize>> {
    let place = |index: usize| {
        let agent = &calls[index].agent;
        let before = calls[..index].iter().filter(|call| call.agent == *agent);
        let mut own = (0..agents.len()).filter(|&place| agents[place] == *agent);
        own.nth(before.count())
    };
    (0..calls.len()).map(place).collect()
}

/// Which of the `before` answers is of the agent whose answer is at `place`: the same draw of the same agent.
pub fn same_place(agents: &[String], place: usize, before: &[String]) -> Option<usize> {
    let agent = agents.get(place)?;
    let draw = agents[..place].iter().filter(|other| *other == agent);
    let mut own = (0..before.len()).filter(|&other| before[other] == *agent);
    own.nth(draw.count())
}

/// What an agent's short name stands for (MED-MAD C.1); `None` for a name that says itself.
pub fn role_title(agent: &str) -> Option<&'static str> {
    match agent {
        "sym" => Some("Symptom-oriented GP"),
        "ddx" => Some("Differential-diagnosis GP"),
        "guide" => Some("Safety and evidence GP"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixtures::call;

    fn agents(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn draws_of_one_agent_take_its_answers_in_order() {
        let calls = ["sym", "sym", "ddx", "passer-by", "sym"].map(|agent| call("x", agent, 0));
        let calls: Vec<&CallLine> = calls.iter().collect();
        let answering = agents(&["sym", "ddx", "sym", "ddx"]);
        assert_eq!(
            places(&calls, &answering),
            [Some(0), Some(2), Some(1), None, None]
        );
    }

    #[test]
    fn an_answer_is_compared_with_the_same_agents_own() {
        let before = agents(&["a", "b", "a"]);
        let now = agents(&["b", "a", "c", "a", "a"]);
        let found: Vec<Option<usize>> = (0..5).map(|at| same_place(&now, at, &before)).collect();
        assert_eq!(found, [Some(1), Some(0), None, Some(2), None]);
    }
}
