//! A question's way by its complexity: one doctor; experts and a decision; or teams, their reports and a decision.

use serde_json::{Value, json};

use super::letter::clean_letter;
use super::messages::Messages;
use super::recruits::{Expert, Member, Team, read_experts, read_teams, recruited};
use super::settings::{
    AGENTS, EXPERTS, MEMBERS, MODERATOR, RECRUITER, Settings, TEAMS, agent_name,
};
use crate::data::Question;
use crate::panel::PanelError;
use crate::prompts::{PromptError, PromptSet, fill};
use crate::run::records::{CallRecord, FinishReason, ItemRecord, Message, Parse, Stage};
use crate::systems::case::{Ask, Case, Verdict, option_lines};
use crate::systems::decoding::Shape;
use crate::systems::form::{answer, array, choice, object};
use crate::systems::json_object::without_thinking;
use crate::systems::majority::{round_record, support};
use crate::systems::medmad::brief::truncate;
use crate::systems::reply::{Reply, field};
use crate::systems::step::{Step, Templates};

const LEVELS: [&str; 3] = ["basic", "intermediate", "advanced"];

/// Doctors by need.
pub struct MdAgents {
    settings: Settings,
    messages: Messages,
}

impl MdAgents {
    /// # Errors
    /// When an overridden prompt lost what is filled in.
    pub fn new(settings: &Settings, prompts: &PromptSet) -> Result<MdAgents, PromptError> {
        Ok(MdAgents {
            settings: settings.clone(),
            messages: Messages::new(prompts)?,
        })
    }

    /// # Errors
    /// When a call could not be made or recorded.
    pub fn answer(&self, case: Case<'_>) -> Result<ItemRecord, PanelError> {
        let complexity = self.complexity(&case)?;
        let (first, decision) = match complexity.as_str() {
            "basic" => (vec![self.answer_alone(&case)?], None),
            "advanced" => {
                let (reports, decision) = self.ask_teams(&case)?;
                (reports, Some(decision))
            }
            _ => {
                let (opinions, decision) = self.ask_experts(&case)?;
                (opinions, Some(decision))
            }
        };
        let agents = first.iter().map(|call| call.agent.clone()).collect();
        let answers: Vec<String> = first.iter().map(|c| field(&c.record, "answer")).collect();
        let last = decision.as_ref().unwrap_or(&first[0]);
        let answer = field(&last.record, "answer");
        let verdict = Verdict {
            team_confidence: support(&answers, &answer),
            rationale: field(&last.record, "explanation"),
            answer,
            tie: false,
        };
        let round = round_record(0, Stage::Initial, agents, answers, String::new());
        Ok(case.close(vec![round], verdict))
    }

    /// What is asked before anything was answered.
    pub fn opening(&self, question: &Question) -> Vec<(usize, Vec<Message>)> {
        let messages = fill_case(&self.messages.complexity, question, &[]);
        vec![(MODERATOR, messages)]
    }

    /// One of [`LEVELS`].
    fn complexity(&self, case: &Case<'_>) -> Result<String, PanelError> {
        let fields = vec![("complexity", choice(&LEVELS))];
        let step = self.record_step(Stage::Aside, "complexity", fields);
        let messages = fill_case(&self.messages.complexity, case.question, &[]);
        let call = case.ask(step.ask(MODERATOR, "moderator", messages), &read_complexity)?;
        Ok(field(&call.record, "complexity"))
    }

    fn answer_alone(&self, case: &Case<'_>) -> Result<CallRecord, PanelError> {
        let step = self.opinion_step(case, Stage::Initial, "answer");
        let messages = fill_case(&self.messages.basic, case.question, &[]);
        case.ask(step.ask(0, agent_name(0), messages), &self.reader())
    }

    /// The experts' opinions and the decision on them.
    fn ask_experts(&self, case: &Case<'_>) -> Result<(Vec<CallRecord>, CallRecord), PanelError> {
        let expert = object(vec![
            ("role", self.settings.decoding.string()),
            ("expertise", self.settings.decoding.string()),
            ("hierarchy", self.settings.decoding.string()),
        ]);
        let fields = vec![("experts", array(expert, EXPERTS, EXPERTS))];
        let step = self.record_step(Stage::Aside, "recruitment", fields);
        let count = [("count", &*EXPERTS.to_string())];
        let messages = fill_case(&self.messages.experts, case.question, &count);
        let call = case.ask(step.ask(RECRUITER, "recruiter", messages), &read_experts)?;
        let experts: Vec<Expert> = recruited(&call.record, "experts");

        let step = self.opinion_step(case, Stage::Initial, "opinion");
        let asks = experts.iter().enumerate().map(|(at, expert)| {
            let values = [
                ("role", expert.role.as_str()),
                ("expertise", &expert.expertise),
            ];
            let messages = fill_case(&self.messages.opinion, case.question, &values);
            step.ask(at % AGENTS, format!("expert-{}", at + 1), messages)
        });
        let opinions = case.ask_all(asks.collect(), &self.reader())?;

        let shown = experts.iter().zip(&opinions).map(|(expert, call)| {
            let explanation = field(&call.record, "explanation");
            let values = [
                ("role", expert.role.as_str()),
                ("answer", &field(&call.record, "answer")),
                (
                    "explanation",
                    &truncate(&explanation, self.settings.truncate_chars),
                ),
            ];
            fill(&self.messages.opinion_block, &values)
        });
        let shown = shown.collect::<Vec<_>>().join("\n\n");
        let templates = &self.messages.decision_on_opinions;
        let decision = self.decide(case, templates, ("opinions", &shown))?;
        Ok((opinions, decision))
    }

    /// The teams' reports and the decision on them. No team reads another's report, so that all work at once.
    fn ask_teams(&self, case: &Case<'_>) -> Result<(Vec<CallRecord>, CallRecord), PanelError> {
        let teams = self.form_teams(case)?;
        let requests = self.request(case, &teams)?;
        let investigations = self.investigate(case, &teams, &requests)?;
        let reports = self.report(case, &teams, &requests, &investigations)?;
        let shown = teams.iter().zip(&reports).map(|(team, call)| {
            let values = [
                ("group", team.group_id.as_str()),
                ("goal", &team.goal),
                ("answer", &field(&call.record, "answer")),
                ("explanation", &field(&call.record, "explanation")),
            ];
            fill(&self.messages.report_block, &values)
        });
        let shown = shown.collect::<Vec<_>>().join("\n\n");
        let templates = &self.messages.decision_on_reports;
        let decision = self.decide(case, templates, ("reports", &shown))?;
        Ok((reports, decision))
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
        let fields = vec![("teams", array(team, TEAMS, TEAMS))];
        let step = self.record_step(Stage::Aside, "recruitment", fields);
        let counts = [
            ("count", &*TEAMS.to_string()),
            ("members", &*MEMBERS.to_string()),
        ];
        let messages = fill_case(&self.messages.teams, case.question, &counts);
        let call = case.ask(step.ask(RECRUITER, "recruiter", messages), &read_teams)?;
        Ok(recruited(&call.record, "teams"))
    }

    /// What every lead wants of its team.
    fn request(&self, case: &Case<'_>, teams: &[Team]) -> Result<Vec<String>, PanelError> {
        let step = self.step(Stage::Aside, "request", self.settings.decoding.passage());
        let asks = teams.iter().enumerate().map(|(at, team)| {
            let assistants: Vec<&str> = assistants(team).map(|one| one.role.as_str()).collect();
            let assistants = match assistants.is_empty() {
                true => "nobody but you".to_owned(),
                false => assistants.join(", "),
            };
            let more = [("assistants", assistants.as_str())];
            self.ask_member(case, &step, &self.messages.request, (at, 0), team, &more)
        });
        let calls = case.ask_all(asks.collect(), &read_passage)?;
        Ok(calls
            .iter()
            .map(|call| field(&call.record, "text"))
            .collect())
    }

    /// What every assistant reports to its lead, team by team.
    fn investigate(
        &self,
        case: &Case<'_>,
        teams: &[Team],
        requests: &[String],
    ) -> Result<Vec<Vec<String>>, PanelError> {
        let step = self.step(
            Stage::Aside,
            "investigation",
            self.settings.decoding.passage(),
        );
        let templates = &self.messages.investigation;
        let asks = teams
            .iter()
            .zip(requests)
            .enumerate()
            .flat_map(|(at, (team, request))| {
                let more = [
                    ("request", request.as_str()),
                    ("lead", &team.members[0].role),
                ];
                let ask =
                    |member| self.ask_member(case, &step, templates, (at, member), team, &more);
                (1..team.members.len()).map(ask).collect::<Vec<_>>()
            });
        let calls = case.ask_all(asks.collect(), &read_passage)?;
        let mut reports = calls.iter().map(|call| field(&call.record, "text"));
        let of_team = |team: &Team| reports.by_ref().take(team.members.len() - 1).collect();
        Ok(teams.iter().map(of_team).collect())
    }

    /// What every lead makes of it: the team's answer.
    fn report(
        &self,
        case: &Case<'_>,
        teams: &[Team],
        requests: &[String],
        investigations: &[Vec<String>],
    ) -> Result<Vec<CallRecord>, PanelError> {
        let step = self.opinion_step(case, Stage::Initial, "report");
        let asks = teams.iter().enumerate().map(|(at, team)| {
            let reported = assistants(team)
                .zip(&investigations[at])
                .map(|(one, report)| {
                    let values = [("role", one.role.as_str()), ("report", report)];
                    fill(&self.messages.investigation_block, &values)
                });
            let reported: Vec<String> = reported.collect();
            let reported = match reported.is_empty() {
                true => "nothing: nobody was with you".to_owned(),
                false => reported.join("\n"),
            };
            let more = [
                ("request", requests[at].as_str()),
                ("investigations", &reported),
            ];
            self.ask_member(case, &step, &self.messages.report, (at, 0), team, &more)
        });
        case.ask_all(asks.collect(), &self.reader())
    }

    /// A call of one member of a team.
    fn ask_member(
        &self,
        case: &Case<'_>,
        step: &Step,
        templates: &Templates,
        (team_at, member_at): (usize, usize),
        team: &Team,
        more: &[(&str, &str)],
    ) -> Ask {
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
        let messages = fill_case(templates, case.question, &values);
        step.ask(seat_of(team_at, member_at), name, messages)
    }

    /// The moderator's decision on what was said.
    fn decide(
        &self,
        case: &Case<'_>,
        templates: &Templates,
        said: (&str, &str),
    ) -> Result<CallRecord, PanelError> {
        let step = self.opinion_step(case, Stage::Final, "decision");
        let messages = fill_case(templates, case.question, &[said]);
        case.ask(step.ask(MODERATOR, "moderator", messages), &self.reader())
    }

    fn opinion_step(&self, case: &Case<'_>, stage: Stage, purpose: &'static str) -> Step {
        let fields = vec![
            ("explanation", self.settings.decoding.string()),
            ("answer", answer(case.question)),
        ];
        self.record_step(stage, purpose, fields)
    }

    fn record_step(&self, stage: Stage, purpose: &'static str, fields: Vec<(&str, Value)>) -> Step {
        self.step(stage, purpose, self.settings.decoding.record(fields))
    }

    /// Everything is round 0: nobody answers twice.
    fn step(&self, stage: Stage, purpose: &'static str, shape: Shape) -> Step {
        Step {
            stage,
            round: 0,
            purpose,
            shape,
        }
    }

    /// Reads a record with an answer.
    fn reader(&self) -> impl Fn(&str, FinishReason) -> (Value, Parse) + use<> {
        let mab_compat = self.settings.mab_compat;
        move |text, finish_reason| {
            let reply = Reply::read(text, finish_reason, "answer");
            let answer = match mab_compat {
                true => clean_letter(&reply.given()),
                false => reply.answer(),
            };
            let record = json!({"explanation": reply.prose("explanation"), "answer": answer});
            (record, reply.parse)
        }
    }
}

/// Where a team's member sits: the leads on different models, and a lead's assistants on others than its own.
fn seat_of(team_at: usize, member_at: usize) -> usize {
    (team_at + member_at) % AGENTS
}

fn assistants(team: &Team) -> impl Iterator<Item = &Member> {
    team.members.iter().skip(1)
}

/// The messages on a question, with what else there is to fill in.
fn fill_case(templates: &Templates, question: &Question, more: &[(&str, &str)]) -> Vec<Message> {
    let options = option_lines(question);
    let case = [
        ("question", question.question.as_str()),
        ("options", &options),
    ];
    templates.fill(&[&case, more].concat())
}

/// What is no level is intermediate.
fn read_complexity(text: &str, finish_reason: FinishReason) -> (Value, Parse) {
    let reply = Reply::read(text, finish_reason, "complexity");
    let given = match reply.get("complexity") {
        Value::String(level) => level.trim().to_lowercase(),
        _ => String::new(),
    };
    let level = LEVELS.into_iter().find(|level| *level == given);
    let record = json!({"complexity": level.unwrap_or("intermediate")});
    let parse = match level {
        Some(_) => reply.parse,
        None => Parse::Fallback,
    };
    (record, parse)
}

fn read_passage(text: &str, finish_reason: FinishReason) -> (Value, Parse) {
    let text = without_thinking(text).trim();
    let parse = match finish_reason {
        FinishReason::Length => Parse::Fallback,
        _ => Parse::Ok,
    };
    (json!({"text": text}), parse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::scripted::Script;
    use crate::run::records::CallKey;
    use crate::systems::fixtures::{play, said};

    const TEAMS_SAID: &str = r#"{"teams": [
        {"group_id": "Last", "goal": "Final Review and Decision Team (FRDT)", "members": [{"role": "R1"}, {"role": "R2", "is_lead": true}, {"role": "R3"}]},
        {"group_id": "Middle", "goal": "Psychiatry", "members": [{"role": "P1"}, {"role": "P2"}, {"role": "P3"}]},
        {"group_id": "First", "goal": "Initial Assessment Team (IAT)", "members": [{"role": "A1"}, {"role": "A2"}, {"role": "A3"}]}]}"#;

    /// A question of this complexity that goes its way without surprises.
    fn usual(key: &CallKey, complexity: &str) -> String {
        match (key.purpose.as_str(), complexity) {
            ("complexity", _) => format!(r#"{{"complexity": "{complexity}"}}"#),
            ("recruitment", "advanced") => TEAMS_SAID.into(),
            ("recruitment", _) => r#"{"experts": ["Ea", "Eb", "Ec", "Ed", "Ee"]}"#.into(),
            ("request", _) => format!("{} asks", key.agent),
            ("investigation", _) => format!("{} found it", key.agent),
            _ => said("B"),
        }
    }

    fn run_with(
        pairs: &[(&str, &str)],
        script: impl Fn(&CallKey) -> String + Send + Sync + 'static,
    ) -> (ItemRecord, Vec<CallRecord>) {
        let agents: Vec<String> = Settings::seats().into_iter().map(|s| s.agent).collect();
        let mut settings = Settings::default();
        for (key, value) in pairs {
            settings.set(key, value).unwrap();
        }
        let system = MdAgents::new(&settings, &PromptSet::embedded()).unwrap();
        let script = Script::new(move |key, _| script(key));
        play(&agents, script, |case| system.answer(case))
    }

    fn run(
        script: impl Fn(&CallKey) -> String + Send + Sync + 'static,
    ) -> (ItemRecord, Vec<CallRecord>) {
        run_with(&[], script)
    }

    fn user<'a>(calls: &'a [CallRecord], agent: &str, purpose: &str) -> &'a str {
        let call = calls
            .iter()
            .find(|c| c.agent == agent && c.purpose == purpose);
        &call.unwrap().messages[1].content
    }

    #[test]
    fn a_question_takes_2_8_or_15_calls_by_its_complexity() {
        let calls = |complexity: &'static str| run(move |key| usual(key, complexity)).0.calls;
        assert_eq!(calls("basic"), 2);
        assert_eq!(calls("intermediate"), 8);
        assert_eq!(calls("advanced"), 15);
        assert_eq!(calls("hard"), 8);
        // The usual teams have two members each.
        let (usual_teams, _) = run(|key| match key.purpose.as_str() {
            "recruitment" => "no teams".into(),
            _ => usual(key, "advanced"),
        });
        assert_eq!(usual_teams.calls, 12);
    }

    #[test]
    fn what_is_no_complexity_is_intermediate() {
        let level = |text: &str| {
            let (record, parse) = read_complexity(text, FinishReason::Stop);
            (field(&record, "complexity"), parse)
        };
        assert_eq!(
            level(r#"{"complexity": " Basic"}"#),
            ("basic".into(), Parse::Ok)
        );
        assert_eq!(
            level("Complexity: advanced"),
            ("advanced".into(), Parse::Fallback)
        );
        for text in [
            "basic",
            r#"{"complexity": 3}"#,
            r#"{"complexity": "basic or not"}"#,
            "",
        ] {
            assert_eq!(
                level(text),
                ("intermediate".into(), Parse::Fallback),
                "{text}"
            );
        }
    }

    #[test]
    fn a_basic_question_has_one_answer_and_no_decision() {
        let (item, calls) = run(|key| usual(key, "basic"));
        assert_eq!(
            (calls[1].agent.as_str(), calls[1].stage),
            ("agent-1", Stage::Initial)
        );
        assert_eq!((item.answer.as_str(), item.team_confidence), ("B", 1.0));
        assert_eq!(item.rounds[0].answers, ["B"]);
        assert_eq!(item.rationale, "for B");
    }

    #[test]
    fn experts_speak_for_themselves_and_the_moderator_decides() {
        let (item, calls) = run(|key| match key.agent.as_str() {
            "moderator" if key.purpose == "decision" => said("D"),
            "expert-1" | "expert-4" => said("A"),
            "expert-2" | "expert-5" => said("E"),
            _ => usual(key, "intermediate"),
        });
        let round = &item.rounds[0];
        assert_eq!(
            round.agents,
            ["expert-1", "expert-2", "expert-3", "expert-4", "expert-5"]
        );
        assert_eq!(round.answers, ["A", "E", "B", "A", "E"]);
        // Two of each: the first stands for round 0, and the decision for the case.
        assert_eq!((round.aggregate.as_str(), item.answer.as_str()), ("A", "D"));
        assert_eq!((item.team_confidence, item.rounds.len()), (0.0, 1));
        let decision = user(&calls, "moderator", "decision");
        assert!(decision.contains("Ea\nAnswer: A\nExplanation: for A\n\nEb\nAnswer: E"));
        assert_eq!(calls.last().unwrap().stage, Stage::Final);
    }

    #[test]
    fn long_explanations_are_cut_for_the_decision() {
        let (_, calls) = run(|key| match key.purpose.as_str() {
            "opinion" => format!(r#"{{"explanation": "{}", "answer": "B"}}"#, "x".repeat(201)),
            _ => usual(key, "intermediate"),
        });
        let cut = format!("Explanation: {}…\n", "x".repeat(200));
        assert!(user(&calls, "moderator", "decision").contains(&cut));
    }

    #[test]
    fn teams_work_apart_and_report_in_order() {
        let (item, calls) = run(|key| match (key.purpose.as_str(), key.agent.as_str()) {
            ("report", "team-2-lead") => said("C"),
            _ => usual(key, "advanced"),
        });
        assert_eq!(
            item.rounds[0].agents,
            ["team-1-lead", "team-2-lead", "team-3-lead"]
        );
        assert_eq!(item.rounds[0].answers, ["B", "C", "B"]);
        assert_eq!(item.team_confidence, 2.0 / 3.0);
        let decision = user(&calls, "moderator", "decision");
        let at = |text: &str| decision.find(text).unwrap();
        assert!(
            at("First: Initial") < at("Middle: Psych") && at("Middle: Psych") < at("Last: Final")
        );
        let request = user(&calls, "team-3-lead", "request");
        assert!(request.contains("Your team: R1, R3"));
        let asked = user(&calls, "team-3-assistant-2", "investigation");
        assert!(asked.contains("The lead of your team, a R2, asks:\nteam-3-lead asks"));
        let report = user(&calls, "team-2-lead", "report");
        assert!(
            report.contains("P2: team-2-assistant-1 found it\nP3: team-2-assistant-2 found it")
        );
        assert!(!report.contains("team-1"));
        let count = |stage| calls.iter().filter(|call| call.stage == stage).count();
        assert_eq!(
            (
                count(Stage::Initial),
                count(Stage::Final),
                count(Stage::Aside)
            ),
            (3, 1, 11)
        );
    }

    #[test]
    fn every_team_and_every_place_in_it_has_all_models() {
        for at in 0..AGENTS {
            let mut team: Vec<usize> = (0..AGENTS).map(|member| seat_of(at, member)).collect();
            let mut place: Vec<usize> = (0..AGENTS).map(|team| seat_of(team, at)).collect();
            team.sort();
            place.sort();
            assert_eq!((team, place), (vec![0, 1, 2], vec![0, 1, 2]));
        }
    }

    #[test]
    fn a_lead_without_a_team_reports_alone() {
        let (item, calls) = run(|key| match key.purpose.as_str() {
            "recruitment" => r#"{"teams": [{"goal": "IAT", "members": ["Surgeon"]}]}"#.into(),
            _ => usual(key, "advanced"),
        });
        assert_eq!((item.calls, item.answer.as_str()), (5, "B"));
        assert!(user(&calls, "team-1-lead", "request").contains("nobody but you"));
    }

    #[test]
    fn the_harness_clean_up_is_a_switch() {
        let loose = |key: &CallKey| match key.purpose.as_str() {
            "answer" => r#"{"explanation": "", "answer": "Option B"}"#.to_owned(),
            _ => usual(key, "basic"),
        };
        assert_eq!(run(loose).0.answer, "B");
        assert_eq!(run_with(&[("mab_compat", "on")], loose).0.answer, "");
        let letter = |key: &CallKey| match key.purpose.as_str() {
            "answer" => r#"{"explanation": "", "answer": "(B) Vitamin C"}"#.to_owned(),
            _ => usual(key, "basic"),
        };
        assert_eq!(run_with(&[("mab_compat", "on")], letter).0.answer, "B");
    }

    #[test]
    fn silence_stops_nothing_and_is_wrong() {
        let (item, calls) = run(|_| String::new());
        assert_eq!(
            (item.answer.as_str(), item.correct, item.calls),
            ("", Some(false), 8)
        );
        assert!(calls.iter().all(|call| call.parse == Parse::Fallback));
        assert!(user(&calls, "moderator", "decision").contains("Pathologist\nAnswer: \n"));
    }
}
