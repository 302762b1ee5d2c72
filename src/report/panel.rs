//! Who sat on the panel: the members in panel order, and which of them made a call.

use crate::run::plan::MemberPlan;
use crate::run::records::CallRecord;

/// The panel of a plan. A seat is a position in it; calls of an unknown agent sit behind the last.
#[derive(Clone, Copy)]
pub struct Panel<'a> {
    members: &'a [MemberPlan],
}

impl<'a> Panel<'a> {
    pub fn new(members: &'a [MemberPlan]) -> Panel<'a> {
        Panel { members }
    }

    /// The seat that made a call: agent and backbone, since a panel may give one role to several backbones.
    pub fn seat_of(&self, call: &CallRecord) -> usize {
        let exact =
            |member: &MemberPlan| member.agent == call.agent && member.backbone == call.backbone;
        self.members
            .iter()
            .position(exact)
            .or_else(|| self.members.iter().position(|m| m.agent == call.agent))
            .unwrap_or(self.members.len())
    }

    pub fn agents(&self) -> impl Iterator<Item = &'a str> {
        self.members.iter().map(|member| member.agent.as_str())
    }
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
