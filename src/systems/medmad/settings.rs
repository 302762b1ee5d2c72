//! The settings of MED-MAD.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strum::{EnumString, IntoStaticStr, VariantNames};

use super::protocol::MedMad;
use crate::systems::config::{self, Built, Given, Slot};
use crate::systems::decoding::Decoding;
use crate::systems::settings::{settings, spelled, switch, whole};

/// The number of agents, and of roles in `roles`.
pub const AGENTS: usize = 3;

/// The mindset that an agent's prompt gives it (App. C.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Role {
    /// Symptom-oriented.
    Sym,
    /// Differential diagnosis.
    Ddx,
    /// Safety and evidence.
    Guide,
}

impl Role {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Whether the counterfactual check is removed (an ablation).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Counterfactual {
    /// It is kept.
    On,
    /// The paper's ablation: only step 4 of the debate prompt is replaced (App. C.4).
    Paper,
    /// In addition, step 4 of the initial prompt, field 6 of the record and the brief's line are removed; the other steps and fields keep
    /// their numbers.
    Strict,
}

/// What an agent writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordForm {
    /// The paper's seven fields (App. C.2).
    #[default]
    Full,
    /// Ours, for small models: reasons, the text of an option, and a confidence.
    Short,
}

/// What a round of debate shows an agent of the others: the paper's brief, or a control for what of it matters (ours).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Peers {
    /// All records.
    #[default]
    All,
    /// Its own alone: whether it corrects itself without the others.
    Own,
    /// The others' answers, confidence and scores with reasons of unrelated questions: whether their reasons matter.
    Noise,
    /// None, not even its own: a second call.
    None,
}

/// How the `answer` of a record is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerReading {
    /// By what it says, a letter or the text of an option, as in every other system.
    Plain,
    /// By the paper's rule alone: the first letter that stands alone, else the last of any word (App. B.2).
    Paper,
}

settings! {
    /// How MED-MAD runs; the defaults are the paper's open panel.
    pub struct Settings {
        /// Debate rounds at most; with 0 the initial answers are voted on.
        #[serde(deserialize_with = "whole::<0, 100, _, _>")]
        pub t_max: u32 = 3,
        /// Whether a panel that agrees debates all the same, so that every question takes the same number of calls.
        #[serde(with = "switch")]
        pub always_debate: bool = false,
        /// Whether self-reported confidence weights the votes and is shown in the brief.
        #[serde(with = "switch")]
        pub confidence: bool = true,
        pub answer_reading: AnswerReading = AnswerReading::Plain,
        pub peers: Peers = Peers::All,
        pub counterfactual: Counterfactual = Counterfactual::On,
        pub record: RecordForm = RecordForm::Full,
        /// In panel order.
        #[serde(with = "roles")]
        pub roles: [Role; AGENTS] = [Role::Sym, Role::Ddx, Role::Guide],
        /// Characters of a text in the brief before it is cut.
        #[serde(deserialize_with = "whole::<1, 10000, _, _>")]
        pub truncate_chars: usize = 200,
        /// Initial answers of each agent; with more than one, all of them are voted on without a debate.
        #[serde(deserialize_with = "whole::<1, 100, _, _>")]
        pub samples: u32 = 1,
    } with decoding: Decoding
}

impl Settings {
    /// Rounds of debate at most: several first answers of each agent are voted on without one.
    pub fn rounds(&self) -> u32 {
        if self.samples > 1 { 0 } else { self.t_max }
    }

    /// The agents' names in panel order: their roles, numbered where several have the same.
    pub fn agents(&self) -> [String; AGENTS] {
        let count = |roles: &[Role], role| roles.iter().filter(|other| **other == role).count();
        std::array::from_fn(|agent| {
            let role = self.roles[agent];
            match count(&self.roles, role) {
                1 => role.name().to_string(),
                _ => format!("{}-{}", role.name(), count(&self.roles[..=agent], role)),
            }
        })
    }
}

impl config::Settings for Settings {
    fn slots(&self) -> Vec<Slot> {
        Slot::in_order(self.agents(), &[])
    }

    fn max_calls(&self) -> u32 {
        AGENTS as u32 * (self.samples + self.rounds())
    }

    fn build(&self, given: &Given<'_>) -> Built {
        Ok(Box::new(MedMad::new(self, given.prompts)?))
    }
}

/// Roles separated by commas; a single one is that of all agents.
mod roles {
    use super::*;

    pub fn serialize<S: Serializer>(roles: &[Role; AGENTS], to: S) -> Result<S::Ok, S::Error> {
        roles.map(Role::name).join(",").serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(value: D) -> Result<[Role; AGENTS], D::Error> {
        let spelled = spelled(value)?;
        let role = |name: &str| name.trim().parse().ok();
        let roles: Option<Vec<Role>> = spelled.split(',').map(role).collect();
        match roles.as_deref() {
            Some([all]) => Ok([*all; AGENTS]),
            Some([first, second, third]) => Ok([*first, *second, *third]),
            _ => {
                let known = Role::VARIANTS.join(", ");
                Err(D::Error::custom(format!("expected one or {AGENTS} of {known}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::scripted::settings;

    #[test]
    fn pairs_change_the_defaults() {
        let settings: Settings = settings(&[
            "t_max=0",
            "confidence=off",
            "counterfactual=strict",
            "roles=guide, sym,ddx",
            "record_chars=32",
            "thinking=on",
            "truncate_chars=80",
            "peers=noise",
        ]);
        assert_eq!(settings.peers, Peers::Noise);
        assert_eq!(settings.t_max, 0);
        assert!(!settings.confidence);
        assert_eq!(settings.counterfactual, Counterfactual::Strict);
        assert_eq!(settings.roles, [Role::Guide, Role::Sym, Role::Ddx]);
        assert!(settings.decoding.thinking.is_on());
        assert_eq!(settings.decoding.record_chars, 32);
        assert_eq!(settings.truncate_chars, 80);
    }

    #[test]
    fn agents_of_one_role_are_numbered() {
        let agents = |pair| settings::<Settings>(&[pair]).agents();
        assert_eq!(agents("roles=sym,ddx,guide"), ["sym", "ddx", "guide"]);
        assert_eq!(agents("roles=ddx"), ["ddx-1", "ddx-2", "ddx-3"]);
        assert_eq!(agents("roles=sym,ddx,sym"), ["sym-1", "ddx", "sym-2"]);
    }
}
