//! Whether one may act upon an outcome by itself, by a policy; the wire's form of it.

use std::fmt;

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Advice {
    Act,
    Escalate,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    pub decision: Advice,
    /// `null` where one may act.
    pub because: Option<String>,
    /// `null` where the outcome has none.
    pub score: Option<f64>,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.because {
            None => f.write_str("By the policy one may act upon this."),
            Some(because) => {
                write!(f, "By the policy a clinician looks at this, because {because}.")
            }
        }
    }
}
