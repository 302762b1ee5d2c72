//! Parses the recruiter's replies: experts, or teams with a lead; with defaults where none were named.

use serde::Serialize;
use serde_json::Value;

use super::{EXPERTS, MEMBERS, TEAMS};
use crate::record::Parse;
use crate::systems::reading::json;
use crate::systems::reading::reply::{Fields, text_of};
use crate::systems::reading::words::{is_name, list_items};

/// An expert on an intermediate question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expert {
    pub role: String,
    pub expertise: String,
    /// To whom the expert reports; logged, but no prompt shows it.
    pub hierarchy: String,
}

/// A team on an advanced question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Team {
    pub group_id: String,
    /// The team's purpose, by which the first assessment and the final review are recognised.
    pub goal: String,
    /// The lead is first.
    pub members: Vec<Member>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Member {
    pub role: String,
    pub expertise: String,
    pub is_lead: bool,
}

/// MedAgentBoard's, where no expert could be parsed.
const DEFAULT_EXPERTS: [&str; EXPERTS] =
    ["Internal Medicine", "Radiologist", "Surgeon", "Pathologist", "Pharmacist"];

/// MedAgentBoard's, where no team could be parsed: goal, lead, assistant.
const DEFAULT_TEAMS: [(&str, &str, &str); TEAMS] = [
    ("Initial Assessment Team (IAT)", "Emergency Physician", "Radiologist"),
    ("Diagnostic Team", "Cardiologist", "Neurologist"),
    ("Final Review and Decision Team (FRDT)", "Senior Consultant", "Clinical Pharmacist"),
];

/// What a list of experts is made of, and no expert is called.
const FIELDS: [&str; 6] = ["expert", "experts", "role", "roles", "expertise", "hierarchy"];

/// Parses the experts of a reply, the first `EXPERTS` that have a role.
pub fn read_experts(reply: &Fields) -> (Vec<Expert>, Parse) {
    // A sentence about experts is none, nor is the name of a field that was asked for.
    let is_field = |role: &str| FIELDS.contains(&&*role.to_lowercase());
    let is_named = |expert: &Expert| is_name(&expert.role) && !is_field(&expert.role);
    let named = elements(reply.get("experts")).filter_map(expert).filter(is_named);
    let mut named: Vec<Expert> = named.take(EXPERTS).collect();
    if named.is_empty() {
        let items = list_items(&reply.text).into_iter();
        let listed = items.filter(|_| reply.parse == Parse::Fallback).map(listed_expert);
        // An expert alone, where a list was asked for.
        let alone = json::objects(&reply.text).into_iter();
        let alone = alone.filter_map(|found| expert(&Value::Object(found.object)));
        named = listed.chain(alone).filter(is_named).take(EXPERTS).collect();
    }
    match named.is_empty() {
        true => (DEFAULT_EXPERTS.map(listed_expert).to_vec(), Parse::Unread),
        false => (named, reply.parse),
    }
}

/// Parses the teams of a reply, the first `TEAMS` that have members, in the order in which they work: the initial assessment is first and the
/// final review last.
pub fn read_teams(reply: &Fields) -> (Vec<Team>, Parse) {
    let named = elements(reply.get("teams")).zip(1..);
    let named = named.filter_map(|(value, number)| team(value, number));
    let mut named: Vec<Team> = named.take(TEAMS).collect();
    named.sort_by_key(|team| {
        let goal = team.goal.to_lowercase();
        let names = |word: &str| goal.split(|c: char| !c.is_alphanumeric()).any(|w| w == word);
        match () {
            () if goal.contains("initial assessment") || names("iat") => 0,
            () if goal.contains("final review") || names("frdt") => 2,
            () => 1,
        }
    });
    match named.is_empty() {
        true => (default_teams(), Parse::Unread),
        false => (named, reply.parse),
    }
}

/// The elements of a list, or of an object that numbers them.
fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    let list = value.as_array().into_iter().flatten();
    list.chain(value.as_object().into_iter().flat_map(|object| object.values()))
}

fn expert(value: &Value) -> Option<Expert> {
    let role = role(value)?;
    Some(Expert {
        expertise: or(text_of(&value["expertise"]), &role),
        hierarchy: or(text_of(&value["hierarchy"]), "Independent"),
        role,
    })
}

/// «Cardiologist - heart failure - Hierarchy: Independent», an item of a list.
fn listed_expert(item: &str) -> Expert {
    let item = item.replace("**", "");
    let mut parts = item.split([':', '(', '–', '—']).flat_map(|part| part.split(" - "));
    let role = parts.next().unwrap_or_default().trim().to_owned();
    let expertise = parts.next().unwrap_or_default().trim_end_matches(')').trim().to_owned();
    Expert { expertise: or(expertise, &role), hierarchy: "Independent".to_owned(), role }
}

fn team(value: &Value, number: u32) -> Option<Team> {
    let mut members: Vec<Member> = elements(&value["members"]).filter_map(member).collect();
    let marked = members.iter().position(|member| member.is_lead);
    let named = |member: &Member| member.role.to_lowercase().contains("lead");
    let lead = marked.or_else(|| members.iter().position(named)).unwrap_or(0);
    members.get_mut(..=lead)?.rotate_right(1);
    members.truncate(MEMBERS);
    for (at, member) in members.iter_mut().enumerate() {
        member.is_lead = at == 0;
    }
    let group_id = or(text_of(&value["group_id"]), &format!("Group {number}"));
    let goal = or(text_of(&value["goal"]), &format!("Goal of {group_id}"));
    Some(Team { group_id, goal, members })
}

fn member(value: &Value) -> Option<Member> {
    let role = role(value)?;
    let is_lead = match &value["is_lead"] {
        Value::String(word) => matches!(word.trim().to_lowercase().as_str(), "true" | "yes"),
        other => *other == true,
    };
    Some(Member { expertise: or(text_of(&value["expertise"]), &role), is_lead, role })
}

/// The role of an object, or of a plain text.
fn role(value: &Value) -> Option<String> {
    let role = match value {
        Value::String(role) => role.trim().to_owned(),
        other => text_of(&other["role"]),
    };
    Some(role).filter(|role| !role.is_empty())
}

fn or(text: String, default: &str) -> String {
    if text.is_empty() { default.to_owned() } else { text }
}

fn default_teams() -> Vec<Team> {
    let member =
        |role: &str, is_lead| Member { role: role.to_owned(), expertise: role.to_owned(), is_lead };
    let team = |(number, (goal, lead, assistant)): (u32, (&str, &str, &str))| Team {
        group_id: format!("Group {number}"),
        goal: goal.to_owned(),
        members: vec![member(lead, true), member(assistant, false)],
    };
    (1..).zip(DEFAULT_TEAMS).map(team).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::FinishReason;

    fn experts(text: &str) -> (Vec<Expert>, Parse) {
        read_experts(&Fields::read(text, FinishReason::Stop, "experts"))
    }

    fn teams(text: &str) -> (Vec<Team>, Parse) {
        read_teams(&Fields::read(text, FinishReason::Stop, "teams"))
    }

    #[test]
    fn experts_are_read_and_gaps_filled() {
        let text = r#"{"experts": [{"role": "Nephrologist", "expertise": "kidneys", "hierarchy": "Lead"},
            "Surgeon", {"role": " "}, 7, {"expertise": "none"}]}"#;
        let (read, parse) = experts(text);
        assert_eq!(parse, Parse::Ok);
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].expertise.as_str(), read[0].hierarchy.as_str()), ("kidneys", "Lead"));
        assert_eq!(
            (read[1].expertise.as_str(), read[1].hierarchy.as_str()),
            ("Surgeon", "Independent")
        );
        let seven: Vec<String> = (0..7).map(|at| format!("Expert {at}")).collect();
        assert_eq!(experts(&json!({"experts": seven}).to_string()).0.len(), EXPERTS);
    }

    #[test]
    fn where_no_expert_is_named_the_usual_ones_come() {
        for text in [
            "Ask a surgeon.",
            r#"{"experts": []}"#,
            r#"{"experts": "Surgeon"}"#,
            "",
            "- Experts: a list of 5 objects, each with a role\n- Role: the field",
            r#"{"experts": ["Role", {"role": "experts"}]}"#,
        ] {
            let (read, parse) = experts(text);
            let roles: Vec<&str> = read.iter().map(|expert| expert.role.as_str()).collect();
            assert_eq!((roles.as_slice(), parse), (&DEFAULT_EXPERTS[..], Parse::Unread), "{text}");
        }
    }

    #[test]
    fn teams_work_in_the_order_of_their_goals_and_leads_come_first() {
        let text = r#"{"teams": [
            {"group_id": "R", "goal": "Final review", "members": [{"role": "Consultant"}]},
            {"group_id": "P", "goal": "Pediatrics", "members": [{"role": "Nurse"}, {"role": "Team lead"}]},
            {"group_id": "E", "goal": "Nobody", "members": []},
            {"goal": "IAT", "members": [{"role": "Triage nurse"}, {"role": "Radiologist"}, {"role": "Intern"},
                {"role": "Emergency physician", "is_lead": "yes"}]},
            {"group_id": "X", "goal": "One too many", "members": ["Surgeon"]}]}"#;
        let (read, parse) = teams(text);
        assert_eq!(parse, Parse::Ok);
        let groups: Vec<&str> = read.iter().map(|team| team.group_id.as_str()).collect();
        assert_eq!(groups, ["Group 4", "P", "R"]);
        let roles = |team: &Team| -> Vec<String> {
            team.members.iter().map(|member| member.role.clone()).collect()
        };
        assert_eq!(roles(&read[0]), ["Emergency physician", "Triage nurse", "Radiologist"]);
        assert_eq!(roles(&read[1]), ["Team lead", "Nurse"]);
        let leads = read.iter().flat_map(|team| &team.members).filter(|m| m.is_lead);
        assert_eq!(leads.count(), 3);
    }

    #[test]
    fn where_no_team_is_named_the_usual_ones_come() {
        for text in ["Two teams.", r#"{"teams": [{"goal": "IAT"}]}"#, r#"{"teams": {}}"#] {
            let (read, parse) = teams(text);
            assert_eq!((read, parse), (default_teams(), Parse::Unread), "{text}");
        }
    }
}
