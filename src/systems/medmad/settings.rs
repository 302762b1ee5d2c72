//! The switches of MED-MAD: parsed from `key=value`, checked, and written into the plan, every one of them.

use crate::systems::decoding::Decoding;
use crate::systems::settings::{SettingsError, bad, on_off, one_of, set_pairs, switch, within};

/// Agents of a panel, and roles in `roles`.
pub const AGENTS: usize = 3;

const KEYS: [&str; 10] = [
    "t_max",
    "confidence",
    "counterfactual",
    "roles",
    "analysis_first",
    "record_chars",
    "thinking",
    "truncate_chars",
    "max_tokens",
    "samples",
];

/// The mindset that an agent is given (App. C.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Symptom-oriented.
    Sym,
    /// Differential diagnosis.
    Ddx,
    /// Safety and evidence.
    Guide,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::Sym, Role::Ddx, Role::Guide];

    pub fn name(self) -> &'static str {
        match self {
            Role::Sym => "sym",
            Role::Ddx => "ddx",
            Role::Guide => "guide",
        }
    }
}

/// How far the counterfactual check is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counterfactual {
    /// It stays.
    On,
    /// The paper's ablation: step 4 of the debate prompt alone is replaced (App. C.4).
    Paper,
    /// Besides, step 4 of the initial prompt, field 6 of the record and the brief's line are left out;
    /// the other steps and fields keep their numbers.
    Strict,
}

impl Counterfactual {
    fn name(self) -> &'static str {
        match self {
            Counterfactual::On => "on",
            Counterfactual::Paper => "paper",
            Counterfactual::Strict => "strict",
        }
    }
}

/// How MED-MAD runs; the defaults are the paper's open panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Debate rounds at most; 0 votes on the initial answers.
    pub t_max: u32,
    /// Whether self-reported confidence weighs the votes and shows in the brief.
    pub confidence: bool,
    pub counterfactual: Counterfactual,
    /// In panel order.
    pub roles: [Role; AGENTS],
    /// Whether the grammar puts `option_analysis` before `answer`.
    pub analysis_first: bool,
    /// Characters of a passage in the brief before it is cut.
    pub truncate_chars: usize,
    /// First answers that each agent gives; where more than one, all of them vote and nobody debates.
    pub samples: u32,
    pub decoding: Decoding,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            t_max: 3,
            confidence: true,
            counterfactual: Counterfactual::On,
            roles: Role::ALL,
            analysis_first: false,
            truncate_chars: 200,
            samples: 1,
            decoding: Decoding::default(),
        }
    }
}

impl Settings {
    /// The ensemble without debate: two independent answers an agent, the same vote over all of them (App. A.3).
    pub fn no_debate() -> Settings {
        Settings {
            t_max: 0,
            samples: 2,
            ..Settings::default()
        }
    }

    /// The defaults, changed by `key=value` pairs.
    ///
    /// # Errors
    /// The first pair that is no setting with an allowed value.
    pub fn parse(pairs: &[&str]) -> Result<Settings, SettingsError> {
        let mut settings = Settings::default();
        set_pairs(pairs, |key, value| settings.set(key, value))?;
        Ok(settings)
    }

    /// Every setting, spelled as [`Settings::set`] reads it.
    pub fn to_table(&self) -> toml::Table {
        let mut table = self.decoding.to_table();
        table.insert("t_max".into(), i64::from(self.t_max).into());
        table.insert("confidence".into(), on_off(self.confidence).into());
        table.insert("counterfactual".into(), self.counterfactual.name().into());
        table.insert("roles".into(), self.roles.map(Role::name).join(",").into());
        table.insert("analysis_first".into(), on_off(self.analysis_first).into());
        table.insert("truncate_chars".into(), (self.truncate_chars as i64).into());
        table.insert("samples".into(), i64::from(self.samples).into());
        table
    }

    /// The agents' names in panel order: their roles, numbered where a role comes more than once.
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

    /// Calls on a question, at most.
    pub fn max_calls(&self) -> u32 {
        match self.samples {
            1 => AGENTS as u32 * (1 + self.t_max),
            samples => AGENTS as u32 * samples,
        }
    }

    /// Changes one setting.
    ///
    /// # Errors
    /// A key that is none, or a value that it cannot have.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingsError> {
        match key {
            "t_max" => self.t_max = within(key, value, 0..=100)?,
            "confidence" => self.confidence = switch(key, value)?,
            "counterfactual" => {
                use Counterfactual::{On, Paper, Strict};
                self.counterfactual = one_of(key, value, [On, Paper, Strict], Counterfactual::name)?
            }
            "roles" => self.roles = roles(key, value)?,
            "analysis_first" => self.analysis_first = switch(key, value)?,
            "truncate_chars" => self.truncate_chars = within(key, value, 1..=10_000)?,
            "samples" => self.samples = within(key, value, 1..=100)?,
            _ => self.decoding.set(key, value, &KEYS)?,
        }
        Ok(())
    }
}

/// One role stands for all agents.
fn roles(key: &str, value: &str) -> Result<[Role; AGENTS], SettingsError> {
    let names: Vec<&str> = value.split(',').map(str::trim).collect();
    let role = |name| one_of(key, name, Role::ALL, Role::name);
    match names[..] {
        [all] => Ok([role(all)?; AGENTS]),
        [first, second, third] => Ok([role(first)?, role(second)?, role(third)?]),
        _ => Err(bad(key, value, format!("one role or {AGENTS}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_change_the_defaults() {
        let settings = Settings::parse(&[
            "t_max=0",
            "confidence=off",
            "counterfactual=strict",
            "roles=guide, sym,ddx",
            "analysis_first=on",
            "record_chars=32",
            "thinking=on",
            "truncate_chars=80",
            "t_max=2",
        ])
        .unwrap();
        assert_eq!(settings.t_max, 2);
        assert!(!settings.confidence);
        assert_eq!(settings.counterfactual, Counterfactual::Strict);
        assert_eq!(settings.roles, [Role::Guide, Role::Sym, Role::Ddx]);
        assert!(settings.analysis_first && settings.decoding.thinking);
        assert_eq!(settings.decoding.record_chars, 32);
        assert_eq!(settings.truncate_chars, 80);
    }

    #[test]
    fn agents_of_one_role_are_numbered() {
        let agents = |pair| Settings::parse(&[pair]).unwrap().agents();
        assert_eq!(agents("roles=sym,ddx,guide"), ["sym", "ddx", "guide"]);
        assert_eq!(agents("roles=ddx"), ["ddx-1", "ddx-2", "ddx-3"]);
        assert_eq!(agents("roles=sym,ddx,sym"), ["sym-1", "ddx", "sym-2"]);
    }
}
