//! The teams of an advanced question: each lead sends its assistants a request, they report to it, and it reports to the moderator.

use itertools::Itertools;
use serde_json::json;

use super::recruits::{Member, Team, read_teams};
use super::{AGENTS, Answered, MEMBERS, MdAgents, TEAMS};
use crate::panel::{Call, PanelError};
use crate::prompts::fill;
use crate::record::Stage;
use crate::systems::case::{Case, Step};
use crate::systems::form::{array, object};
use crate::systems::messages::Templates;
use crate::systems::reading::reply::{Explained, passage};
use crate::systems::vote::round_of;

impl MdAgents {
    /// The teams' reports and the decision on them. No team reads another's report, so all work in parallel.
    pub(super) fn ask_teams(&self, case: &Case<'_>) -> Result<Answered, PanelError> {
        let teams = self.form_teams(case)?;
        let prose =
            |purpose: &str| Step::new(Stage::Aside, 0, purpose, self.settings.decoding.passage());
        let said = |calls: Vec<Call>| -> Result<Vec<String>, PanelError> {
            let replies = case.ask_all(calls, |text, _| passage(text))?.into_iter();
            Ok(replies.map(|reply| reply.value.said).collect())
        };

        // Every lead's request to its team.
        let asked = (&prose("request"), &self.messages.request);
        let calls = teams.iter().enumerate().map(|(at, team)| {
            let roles = assistants(team).map(|one| &one.role).join(", ");
            let roles = if roles.is_empty() { "no assistants" } else { &roles };
            self.ask_member(case, asked, (at, 0), team, &[("assistants", roles)])
        });
        let requests = said(calls.collect())?;

        // Every assistant's report to its lead, by team.
        let asked = (&prose("investigation"), &self.messages.investigation);
        let calls = teams.iter().enumerate().zip(&requests).flat_map(|((at, team), request)| {
            let more = [("request", request.as_str()), ("lead", &team.members[0].role)];
            let ask = |member| self.ask_member(case, asked, (at, member), team, &more);
            (1..team.members.len()).map(ask).collect::<Vec<_>>()
        });
        let mut found = said(calls.collect())?.into_iter();

        // Every lead's report: the team's answer.
        let asked = (&self.opinion_step(case, Stage::Initial, "report"), &self.messages.report);
        let calls = teams.iter().enumerate().zip(&requests).map(|((at, team), request)| {
            let mut reported = assistants(team).zip(found.by_ref()).map(|(one, report)| {
                let values = [("role", &one.role), ("report", &report)];
                fill(&self.messages.investigation_block, &values)
            });
            let reports = reported.join("\n");
            let none = "No assistants were assigned.";
            let reports = if reports.is_empty() { none } else { &reports };
            let more = [("request", request.as_str()), ("investigations", reports)];
            self.ask_member(case, asked, (at, 0), team, &more)
        });
        let reports = case.ask_all(calls, Explained::reader(case.item))?;

        let mut shown = teams.iter().zip(&reports).map(|(team, report)| {
            let Explained { explanation, answer, .. } = &report.value;
            let values = [
                ("group", team.group_id.as_str()),
                ("goal", &team.goal),
                ("answer", answer),
                ("explanation", explanation),
            ];
            fill(&self.messages.report_block, &values)
        });
        let templates = &self.messages.decision_on_reports;
        let decision = self.decide(case, templates, ("reports", &shown.join("\n\n")))?;
        Ok((round_of(0, Stage::Initial, &reports, String::new()), decision))
    }

    fn form_teams(&self, case: &Case<'_>) -> Result<Vec<Team>, PanelError> {
        let string = || self.settings.decoding.string();
        let member = object(vec![
            ("role", string()),
            ("expertise", string()),
            ("is_lead", json!({"enum": [true, false]})),
        ]);
        let team = object(vec![
            ("group_id", string()),
            ("goal", string()),
            ("members", array(member, MEMBERS, MEMBERS)),
        ]);
        let asked = ("teams", array(team, TEAMS, TEAMS));
        let counts = [("count", &*TEAMS.to_string()), ("members", &*MEMBERS.to_string())];
        let messages = self.messages.teams.fill_question(case.item, &counts);
        self.recruit(case, asked, messages, read_teams)
    }

    /// A call of one member of a team, by the indices of both.
    fn ask_member(
        &self,
        case: &Case<'_>,
        (step, templates): (&Step, &Templates),
        (team_at, member_at): (usize, usize),
        team: &Team,
        more: &[(&str, &str)],
    ) -> Call {
        let member = &team.members[member_at];
        let own = [
            ("role", member.role.as_str()),
            ("expertise", &member.expertise),
            ("goal", &team.goal),
        ];
        let values = [&own, more].concat();
        let name = match member_at {
            0 => format!("team-{}-lead", team_at + 1),
            assistant => format!("team-{}-assistant-{assistant}", team_at + 1),
        };
        let messages = templates.fill_question(case.item, &values);
        case.call(step, member_of(team_at, member_at), name, messages)
    }
}

/// The panel's member for a team's member: leads have different models, and assistants other models than their lead.
pub(super) fn member_of(team_at: usize, member_at: usize) -> usize {
    (team_at + member_at) % AGENTS
}

fn assistants(team: &Team) -> impl Iterator<Item = &Member> {
    team.members.iter().skip(1)
}
