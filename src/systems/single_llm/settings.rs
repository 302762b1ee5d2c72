//! The switches of the single-model baselines: parsed from `key=value`, checked, and written into the plan, every one of them.

use crate::systems::decoding::Decoding;
use crate::systems::settings::{SettingsError, on_off, switch, within};

const KEYS: [&str; 5] = [
    "samples",
    "record_chars",
    "thinking",
    "max_tokens",
    "mab_compat",
];

/// How the model is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    ZeroShot,
    /// Zero-shot with two examples.
    FewShot,
    /// Reasons first, then the letter.
    Cot,
    /// A vote over zero-shot answers.
    SelfConsistency,
    /// A vote over reasoned answers.
    CotSc,
}

impl Method {
    pub const ALL: [Method; 5] = [
        Method::ZeroShot,
        Method::FewShot,
        Method::Cot,
        Method::SelfConsistency,
        Method::CotSc,
    ];

    /// The method of this name, MedAgentBoard's or the short one.
    pub fn named(name: &str) -> Option<Method> {
        let mut methods = Method::ALL.into_iter();
        methods.find(|method| method.name() == name || method.short_name() == name)
    }

    /// MedAgentBoard's name, which plans have.
    pub fn name(self) -> &'static str {
        match self {
            Method::ZeroShot => "SingleLLM_zero_shot",
            Method::FewShot => "SingleLLM_few_shot",
            Method::Cot => "SingleLLM_cot",
            Method::SelfConsistency => "SingleLLM_self_consistency",
            Method::CotSc => "SingleLLM_cot_sc",
        }
    }

    pub fn short_name(self) -> &'static str {
        match self {
            Method::ZeroShot => "zero-shot",
            Method::FewShot => "few-shot",
            Method::Cot => "cot",
            Method::SelfConsistency => "self-consistency",
            Method::CotSc => "cot-sc",
        }
    }

    /// Whether reasons are asked for beside the letter.
    pub fn reasons(self) -> bool {
        matches!(self, Method::Cot | Method::CotSc)
    }

    /// K of MED-MAD's Table 1, open panel.
    fn samples(self) -> u32 {
        match self {
            Method::ZeroShot | Method::FewShot | Method::Cot => 1,
            Method::SelfConsistency => 5,
            Method::CotSc => 3,
        }
    }
}

/// How a baseline runs; the defaults are those of MED-MAD's Table 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub method: Method,
    /// Calls on a question, which vote.
    pub samples: u32,
    /// The grammar gives a thought [`crate::systems::form::STEPS`] strings.
    pub decoding: Decoding,
    /// Whether answers are read and counted as MedAgentBoard does, with its mistake.
    pub mab_compat: bool,
}

impl Settings {
    pub fn new(method: Method) -> Settings {
        Settings {
            method,
            samples: method.samples(),
            decoding: Decoding::default(),
            mab_compat: false,
        }
    }

    /// Every setting, spelled as [`Settings::set`] reads it.
    pub fn to_table(&self) -> toml::Table {
        let mut table = self.decoding.to_table();
        table.insert("samples".into(), i64::from(self.samples).into());
        table.insert("mab_compat".into(), on_off(self.mab_compat).into());
        table
    }

    /// Changes one setting.
    ///
    /// # Errors
    /// A key that is none, or a value that it cannot have.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingsError> {
        match key {
            "samples" => self.samples = within(key, value, 1..=100)?,
            "mab_compat" => self.mab_compat = switch(key, value)?,
            _ => self.decoding.set(key, value, &KEYS)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::systems::protocol::Protocol;

    #[test]
    fn plans_have_medagentboards_names_and_the_command_line_both() {
        for (short, name) in [
            ("zero-shot", "SingleLLM_zero_shot"),
            ("few-shot", "SingleLLM_few_shot"),
            ("cot", "SingleLLM_cot"),
            ("self-consistency", "SingleLLM_self_consistency"),
            ("cot-sc", "SingleLLM_cot_sc"),
        ] {
            let protocol = Protocol::named(short).unwrap();
            assert_eq!(protocol.name(), name);
            assert_eq!(Protocol::named(name), Ok(protocol));
            assert!(Protocol::NAMES.contains(&short));
        }
    }

    #[test]
    fn samples_are_those_of_table_1_unless_set() {
        let calls = |name, pairs: &[&str]| Protocol::parse(name, pairs).unwrap().max_calls();
        assert_eq!(calls("zero-shot", &[]), 1);
        assert_eq!(calls("few-shot", &[]), 1);
        assert_eq!(calls("cot", &[]), 1);
        assert_eq!(calls("self-consistency", &[]), 5);
        assert_eq!(calls("cot-sc", &[]), 3);
        assert_eq!(calls("cot-sc", &["samples=5"]), 5);
    }

    #[test]
    fn one_model_sits_alone() {
        let protocol = Protocol::named("cot").unwrap();
        let seats = protocol.seats();
        assert_eq!((seats.len(), protocol.models()), (1, 1));
        assert_eq!(seats[0].agent, "solo");
    }
}
