//! The last selftest of the installation that this program is part of: the server shows it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::check::State;
use crate::hub::installed;
use crate::outside;

/// How it ended, and when it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastSelftest {
    pub outcome: Outcome,
    /// In UTC (RFC 3339); absent where none was made.
    pub created_at: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Passed,
    Failed,
    /// None was made of this version, or its report cannot be read.
    NotMade,
}

/// What matters here of `selftest.json`.
#[derive(Deserialize)]
struct LastOutcome {
    created_at: String,
    outcome: State,
}

impl LastSelftest {
    /// Of the version that a program was installed with; `None` of a program that no bundle brought.
    pub fn of(program: &Path) -> Option<LastSelftest> {
        let told = read(&installed::selftest_of_program(program)?);
        Some(match told {
            None => LastSelftest { outcome: Outcome::NotMade, created_at: None },
            Some(LastOutcome { created_at, outcome }) => {
                let passed = matches!(outcome, State::Note | State::Ok);
                let outcome = if passed { Outcome::Passed } else { Outcome::Failed };
                LastSelftest { outcome, created_at: Some(created_at) }
            }
        })
    }
}

fn read(folder: &Path) -> Option<LastOutcome> {
    let text = outside::text(folder.join(super::JSON)).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_that_of_the_version_the_program_was_installed_with() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let program = root.join("versions/1.2/bin/wardround");
        fs_err::create_dir_all(program.parent().unwrap()).unwrap();
        assert_eq!(LastSelftest::of(&program), None);
        fs_err::write(root.join("versions/1.2/MANIFEST.json"), "{}").unwrap();
        let last = || LastSelftest::of(&program).unwrap();
        assert_eq!((last().outcome, last().created_at), (Outcome::NotMade, None));
        let other = root.join("selftest/1.1");
        let own = root.join("selftest/1.2");
        fs_err::create_dir_all(&other).unwrap();
        fs_err::create_dir_all(&own).unwrap();
        let told = |outcome: &str| {
            format!(
                "{{\"created_at\": \"2026-03-01T00:00:00Z\", \"outcome\": \"{outcome}\", \"models\": []}}"
            )
        };
        fs_err::write(other.join("selftest.json"), told("ok")).unwrap();
        assert_eq!(last().outcome, Outcome::NotMade);
        for (word, outcome) in [
            ("ok", Outcome::Passed),
            ("note", Outcome::Passed),
            ("differs", Outcome::Failed),
            ("broken", Outcome::Failed),
            ("whatever", Outcome::NotMade),
        ] {
            fs_err::write(own.join("selftest.json"), told(word)).unwrap();
            assert_eq!(last().outcome, outcome, "{word}");
        }
    }
}
