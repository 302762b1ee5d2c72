//! Which model was evaluated, by the names that others use: the one of a panel, or a system of several.

use crate::experiment::contents::Contents;
use crate::experiment::plan::MemberPlan;

/// The program, which makes synthetic weights and the systems of several models.
pub const PROGRAM: &str = "wardround";
/// How the scheme of a remote member begins.
const REMOTE: &str = "openai:";

/// What was evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Such as `google/gemma-3-4b-it`; without a slash where nobody is known to provide it.
    pub id: String,
    /// For people: it says so where the weights are synthetic.
    pub name: String,
    /// Who provides it; `None` where the run does not know.
    pub developer: Option<String>,
    pub is_one_model: bool,
}

impl Identity {
    pub fn of(contents: &Contents) -> Identity {
        let plan = &contents.plan;
        let mut models: Vec<&MemberPlan> = Vec::new();
        for member in &plan.panel {
            if models.iter().all(|known| known.backbone != member.backbone) {
                models.push(member);
            }
        }
        let names: Vec<String> = models.iter().map(|member| name(member)).collect();
        let one = match models.as_slice() {
            [one] => one.repository.clone().or_else(|| names.first().cloned()),
            _ => None,
        };
        let is_one_model = one.is_some();
        let last = |name: &String| name.rsplit('/').next().unwrap_or(name).to_owned();
        let of_several = || {
            let models: Vec<String> = names.iter().map(last).collect();
            format!(
                "{PROGRAM}/{}",
                path_component(&format!("{}+{}", plan.system, models.join("+")))
            )
        };
        let mut id = one.unwrap_or_else(of_several);
        if plan.synthetic && is_one_model {
            id = format!("{PROGRAM}/{}", path_component(&id));
        }
        let what = match is_one_model {
            true => names.join(", "),
            false => format!("{} of {}", plan.system, names.join(", ")),
        };
        let name = match plan.synthetic {
            true => format!("{what} (synthetic weights: random numbers)"),
            false => what,
        };
        let developer = id.split_once('/').map(|(developer, _)| developer.to_owned());
        Identity { id, name, developer, is_one_model }
    }

    /// The folders of the provider and the model in a store of evaluations.
    pub fn folders(&self) -> [String; 2] {
        match self.id.split_once('/') {
            Some((developer, model)) => [path_component(developer), path_component(model)],
            None => ["unknown".to_owned(), path_component(&self.id)],
        }
    }
}

/// A model's name: of an endpoint, the one that it is asked for.
fn name(member: &MemberPlan) -> String {
    let address = member.backbone.strip_prefix(REMOTE).and_then(|rest| rest.rsplit_once('@'));
    address.map_or(member.backbone.as_str(), |(model, _)| model).to_owned()
}

/// A name that every file system takes.
pub fn path_component(name: &str) -> String {
    let is_odd = |char: char| char.is_control() || "<>:\"/\\|?*".contains(char);
    let plain = name.replace(is_odd, "_");
    let plain = plain.trim_end_matches(['.', ' ']);
    let stem = plain.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let is_number = |rest: &str| rest.len() == 1 && ("1"..="9").contains(&rest);
    let is_device = ["CON", "PRN", "AUX", "NUL", ""].contains(&stem.as_str())
        || ["COM", "LPT"].iter().any(|port| stem.strip_prefix(port).is_some_and(is_number));
    if is_device || plain == "data" { format!("_{plain}") } else { plain.to_owned() }
}
