//! The teams of an advanced question: each lead sends its assistants a request, they report to it, and it reports to the moderator.

use serde_json::json;

use super::recruits::{Member, Team, read_teams};
use super::{AGENTS, Answered, MEMBERS, MdAgents, TEAMS, answers};
use crate::panel::{Asked, Call, PanelError};
use crate::prompts::fill;
use crate::record::Stage;
use crate::systems::case::{Case, Step};
use crate::systems::form::{array, object};
use crate::systems::messages::Templates;
use crate::systems::reading::reply::{Explained, passage};

impl MdAgents {
    /// The teams' reports and the decision on them. No team reads another's report, so all work in parallel.
    pub(super) fn ask_teams(&self, case: &Case<'_>) -> Result<Answered, PanelError> {
        let teams = self.form_teams(case)?;
        let requests = self.request(case, &teams)?;
        let investigations = self.investigate(case, &teams, &requests)?;
        let reports = self.report(case, &teams, &requests, &investigations)?;
        let shown = teams.iter().zip(&reports).map(|(team, report)| {
            let Explained { explanation, answer, .. } = &report.value;
            let values = [
                ("group", team.group_id.as_str()),
                ("goal", &team.goal),
                ("answer", answer),
                ("explanation", explanation),
            ];
            fill(&self.messages.report_block, &values)
        });
        let shown = shown.collect::<Vec<_>>().join("\n\n");
        let templates = &self.messages.decision_on_reports;
        let decision = self.decide(case, templates, ("reports", &shown))?;
        Ok((answers(&reports), decision))
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

    /// Every lead's request to its team.
    fn request(&self, case: &Case<'_>, teams: &[Team]) -> Result<Vec<String>, PanelError> {
        let step = Step::new(Stage::Aside, 0, "request", self.settings.decoding.passage());
        let templates = &self.messages.request;
        let calls = teams.iter().enumerate().map(|(at, team)| {
            let assistants: Vec<&str> = assistants(team).map(|one| one.role.as_str()).collect();
            let assistants = match assistants.is_empty() {
                true => "no assistants".to_owned(),
                false => assistants.join(", "),
            };
            let more = [("assistants", assistants.as_str())];
            self.ask_member(case, (&step, templates), (at, 0), team, &more)
        });
        let requests = case.ask_all(calls, |text, _| passage(text))?.into_iter();
        Ok(requests.map(|request| request.value.said).collect())
    }

    /// Every assistant's report to its lead, by team.
    fn investigate(
        &self,
        case: &Case<'_>,
        teams: &[Team],
        requests: &[String],
    ) -> Result<Vec<Vec<String>>, PanelError> {
        let step = Step::new(Stage::Aside, 0, "investigation", self.settings.decoding.passage());
        let templates = &self.messages.investigation;
        let calls = teams.iter().enumerate().zip(requests).flat_map(|((at, team), request)| {
            let more = [("request", request.as_str()), ("lead", &team.members[0].role)];
            let ask = |member| self.ask_member(case, (&step, templates), (at, member), team, &more);
            (1..team.members.len()).map(ask).collect::<Vec<_>>()
        });
        let reports = case.ask_all(calls, |text, _| passage(text))?.into_iter();
        let mut reports = reports.map(|report| report.value.said);
        let of_team = |team: &Team| reports.by_ref().take(team.members.len() - 1).collect();
        Ok(teams.iter().map(of_team).collect())
    }

    /// Every lead's report: the team's answer.
    fn report(
        &self,
        case: &Case<'_>,
        teams: &[Team],
        requests: &[String],
        investigations: &[Vec<String>],
    ) -> Result<Vec<Asked<Explained>>, PanelError> {
        let step = self.opinion_step(case, Stage::Initial, "report");
        let templates = &self.messages.report;
        let said = requests.iter().zip(investigations);
        let calls = teams.iter().enumerate().zip(said).map(|((at, team), (request, found))| {
            let reported = assistants(team).zip(found).map(|(one, report)| {
                let values = [("role", one.role.as_str()), ("report", report)];
                fill(&self.messages.investigation_block, &values)
            });
            let reported: Vec<String> = reported.collect();
            let reported = match reported.is_empty() {
                true => "No assistants were assigned.".to_owned(),
                false => reported.join("\n"),
            };
            let more = [("request", request.as_str()), ("investigations", &reported)];
            self.ask_member(case, (&step, templates), (at, 0), team, &more)
        });
        case.ask_all(calls, Explained::reader(case.item))
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
