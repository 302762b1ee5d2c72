//! The switches of MED-MAD: parsed from `key=value`, checked, and written into the plan, every one of them.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Agents of a panel, and roles in `roles`.
pub const AGENTS: usize = 3;

const KEYS: [&str; 9] = [
    "t_max",
    "confidence",
    "counterfactual",
    "roles",
    "analysis_first",
    "record_chars",
    "thinking",
    "truncate_chars",
    "max_tokens",
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
    /// Characters that the grammar allows in a string of a record.
    pub record_chars: usize,
    /// Whether a `<think>` section is asked for, where the template knows the switch.
    pub thinking: bool,
    /// Characters of a passage in the brief before it is cut.
    pub truncate_chars: usize,
    /// Tokens of a completion at most; `None` (`auto`): as many as the longest record could take.
    pub max_tokens: Option<usize>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            t_max: 3,
            confidence: true,
            counterfactual: Counterfactual::On,
            roles: Role::ALL,
            analysis_first: false,
            record_chars: 240,
            thinking: false,
            truncate_chars: 200,
            max_tokens: None,
        }
    }
}

/// Why a setting was refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("\"{pair}\" is not key=value")]
    NoEquals { pair: String },
    #[error("medmad has no setting {key}")]
    UnknownKey { key: String },
    #[error("setting {key}: \"{value}\" is not {expected}")]
    BadValue {
        key: String,
        value: String,
        expected: String,
    },
}

impl SettingsError {
    /// What to do about it, for the line after `hint:`.
    pub fn hint(&self) -> Option<String> {
        match self {
            SettingsError::NoEquals { .. } => Some("write --set t_max=2".into()),
            SettingsError::UnknownKey { .. } => {
                Some(format!("the settings are {}", KEYS.join(", ")))
            }
            SettingsError::BadValue { .. } => None,
        }
    }
}

impl Settings {
    /// The defaults, changed by `key=value` pairs in order; the last of a key wins.
    ///
    /// # Errors
    /// [`SettingsError`], for the first pair that is no known setting with an allowed value.
    pub fn parse<S: AsRef<str>>(pairs: &[S]) -> Result<Settings, SettingsError> {
        let mut settings = Settings::default();
        for pair in pairs {
            let pair = pair.as_ref();
            let Some((key, value)) = pair.split_once('=') else {
                return Err(SettingsError::NoEquals { pair: pair.into() });
            };
            settings.set(key.trim(), value.trim())?;
        }
        Ok(settings)
    }

    /// The settings of a plan; a key that is left out keeps its default.
    ///
    /// # Errors
    /// As [`Settings::parse`].
    pub fn from_table(table: &toml::Table) -> Result<Settings, SettingsError> {
        let mut settings = Settings::default();
        for (key, value) in table {
            match value {
                toml::Value::String(value) => settings.set(key, value)?,
                other => settings.set(key, &other.to_string())?,
            }
        }
        Ok(settings)
    }

    /// Every setting, spelled as [`Settings::parse`] reads it.
    pub fn to_table(&self) -> toml::Table {
        let mut table = toml::Table::new();
        table.insert("t_max".into(), i64::from(self.t_max).into());
        table.insert("confidence".into(), on_off(self.confidence).into());
        table.insert("counterfactual".into(), self.counterfactual.name().into());
        table.insert("roles".into(), self.roles.map(Role::name).join(",").into());
        table.insert("analysis_first".into(), on_off(self.analysis_first).into());
        table.insert("record_chars".into(), (self.record_chars as i64).into());
        table.insert("thinking".into(), on_off(self.thinking).into());
        table.insert("truncate_chars".into(), (self.truncate_chars as i64).into());
        let max_tokens = match self.max_tokens {
            Some(count) => (count as i64).into(),
            None => "auto".into(),
        };
        table.insert("max_tokens".into(), max_tokens);
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

    fn set(&mut self, key: &str, value: &str) -> Result<(), SettingsError> {
        match key {
            "t_max" => self.t_max = within(key, value, 0..=100)?,
            "confidence" => self.confidence = switch(key, value)?,
            "counterfactual" => {
                use Counterfactual::{On, Paper, Strict};
                self.counterfactual = one_of(key, value, [On, Paper, Strict], Counterfactual::name)?
            }
            "roles" => self.roles = roles(key, value)?,
            "analysis_first" => self.analysis_first = switch(key, value)?,
            "record_chars" => self.record_chars = within(key, value, 1..=2000)?,
            "thinking" => self.thinking = switch(key, value)?,
            "truncate_chars" => self.truncate_chars = within(key, value, 1..=10_000)?,
            "max_tokens" if value == "auto" => self.max_tokens = None,
            "max_tokens" => self.max_tokens = Some(within(key, value, 1..=1_000_000)?),
            _ => return Err(SettingsError::UnknownKey { key: key.into() }),
        }
        Ok(())
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn switch(key: &str, value: &str) -> Result<bool, SettingsError> {
    one_of(key, value, [true, false], on_off)
}

fn one_of<T: Copy, const N: usize>(
    key: &str,
    value: &str,
    choices: [T; N],
    name: fn(T) -> &'static str,
) -> Result<T, SettingsError> {
    let chosen = choices.into_iter().find(|choice| name(*choice) == value);
    chosen.ok_or_else(|| bad(key, value, choices.map(name).join(" or ")))
}

fn within<T>(key: &str, value: &str, range: RangeInclusive<T>) -> Result<T, SettingsError>
where
    T: FromStr + PartialOrd + Display,
{
    let number = value.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        bad(key, value, expected)
    })
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

fn bad(key: &str, value: &str, expected: String) -> SettingsError {
    SettingsError::BadValue {
        key: key.into(),
        value: value.into(),
        expected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_change_the_defaults() {
        let none: [&str; 0] = [];
        assert_eq!(Settings::parse(&none).unwrap(), Settings::default());
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
        assert!(settings.analysis_first && settings.thinking);
        assert_eq!((settings.record_chars, settings.truncate_chars), (32, 80));
    }

    #[test]
    fn the_plan_names_every_setting_and_gives_them_back() {
        let settings = Settings::parse(&["roles=ddx", "counterfactual=paper", "t_max=1"]).unwrap();
        let table = settings.to_table();
        let mut keys = KEYS.to_vec();
        keys.sort();
        let mut written: Vec<_> = table.keys().map(String::as_str).collect();
        written.sort();
        assert_eq!(written, keys);
        assert_eq!(Settings::from_table(&table).unwrap(), settings);
        let text = toml::to_string(&table).unwrap();
        assert!(text.contains("roles = \"ddx,ddx,ddx\""), "{text}");
        assert_eq!(
            Settings::from_table(&text.parse().unwrap()).unwrap(),
            settings
        );
    }

    #[test]
    fn bad_settings_are_refused_by_name() {
        let message = |pair| Settings::parse(&[pair]).unwrap_err().to_string();
        assert_eq!(message("t_max"), "\"t_max\" is not key=value");
        assert_eq!(
            message("t_max=-1"),
            "setting t_max: \"-1\" is not a whole number from 0 to 100"
        );
        assert_eq!(
            message("thinking=yes"),
            "setting thinking: \"yes\" is not on or off"
        );
        assert_eq!(
            message("counterfactual=off"),
            "setting counterfactual: \"off\" is not on or paper or strict"
        );
        assert_eq!(
            message("roles=sym,ddx"),
            "setting roles: \"sym,ddx\" is not one role or 3"
        );
        assert_eq!(
            message("roles=sym,ddx,doc"),
            "setting roles: \"doc\" is not sym or ddx or guide"
        );
        assert!(message("record_chars=0").contains("from 1 to 2000"));
        let error = Settings::parse(&["tmax=1"]).unwrap_err();
        assert_eq!(error.to_string(), "medmad has no setting tmax");
        assert!(error.hint().unwrap().contains("t_max, confidence"));
    }

    #[test]
    fn agents_of_one_role_are_numbered() {
        let agents = |pair| Settings::parse(&[pair]).unwrap().agents();
        assert_eq!(agents("roles=sym,ddx,guide"), ["sym", "ddx", "guide"]);
        assert_eq!(agents("roles=ddx"), ["ddx-1", "ddx-2", "ddx-3"]);
        assert_eq!(agents("roles=sym,ddx,sym"), ["sym-1", "ddx", "sym-2"]);
    }
}
