//! How models and datasets are found and fetched: what the environment's variables say, read at once, so that nothing deeper asks the process,
//! and what a command says besides.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::proxy::PROXY;
use super::{HubError, OfflineReason, fetch};
use crate::{outside, variable};

pub(super) const HUB: &str = "https://huggingface.co";
/// Any of them forbids connections.
const OFFLINE: [&str; 3] = ["WARDROUND_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"];
/// How long a silent server is waited for.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What the variables and the command say.
#[derive(Clone, Debug, Default)]
pub struct HubOptions {
    /// What forbids connections, if anything: the command, or the variable that is set.
    pub offline: Option<OfflineReason>,
    /// Whether fetching prints nothing to stderr.
    pub quiet: bool,
    /// Where cached repositories lie; `None` without any of the variables and without a home directory.
    pub cache: Option<PathBuf>,
    /// The hub's address, without a slash at the end.
    pub endpoint: String,
    pub timeout: Duration,
    /// What connections go through.
    pub proxy: Option<Token>,
    /// That of `HF_TOKEN`.
    pub token: Option<Token>,
    /// Where another may be.
    pub token_path: Option<PathBuf>,
}

/// An access token, or another text that its debug form does not show.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Token(pub(super) String);

impl Token {
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(***)")
    }
}

impl HubOptions {
    /// Reads the process's variables.
    ///
    /// # Errors
    /// [`HubError::BadVariable`] for a switch that is neither on nor off, or an address with a password.
    pub fn capture() -> Result<Self, HubError> {
        Self::from_lookup(|name| env::var_os(name))
    }

    /// Reads the variables through `lookup`; an empty one counts as unset.
    ///
    /// # Errors
    /// See [`HubOptions::capture`].
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Self, HubError> {
        let raw = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let text = |name: &str| raw(name).map(|value| value.to_string_lossy().trim().to_owned());
        let path = |name: &str| raw(name).map(PathBuf::from);
        let mut offline = None;
        for name in OFFLINE {
            let value = text(name).unwrap_or_default();
            let bad = || HubError::BadVariable {
                name,
                problem: format!("`{value}`, not {}", variable::WORDS),
            };
            let forbids = variable::boolean(&value).ok_or_else(bad)?;
            offline = offline.or(forbids.then_some(OfflineReason::Variable(name)));
        }
        let of_home = || Some(path("HOME")?.join(".cache"));
        let huggingface = path("HF_HOME")
            .or_else(|| Some(path("XDG_CACHE_HOME").or_else(of_home)?.join("huggingface")));
        let below = |name| huggingface.as_ref().map(|folder| folder.join(name));
        let endpoint = text("HF_ENDPOINT").unwrap_or_else(|| HUB.to_owned());
        // Errors show the address.
        if endpoint.contains('@') {
            let problem = "an address with a name or password; HF_TOKEN says who asks".to_owned();
            return Err(HubError::BadVariable { name: "HF_ENDPOINT", problem });
        }
        Ok(Self {
            offline,
            quiet: false,
            cache: path("HF_HUB_CACHE").or_else(|| below("hub")),
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            timeout: TIMEOUT,
            proxy: text(PROXY).map(Token),
            token: text("HF_TOKEN").map(Token),
            token_path: path("HF_TOKEN_PATH").or_else(|| below("token")),
        })
    }

    /// The same for a command that only looks at what is there.
    pub fn local(&self) -> Self {
        let reason = self.offline.unwrap_or(OfflineReason::Command);
        Self { offline: Some(reason), ..self.clone() }
    }

    /// Why nothing may be fetched; `None` where it may.
    pub fn fetch_refusal(&self) -> Option<OfflineReason> {
        let build = (!fetch::AVAILABLE).then_some(OfflineReason::Build);
        self.offline.or(build)
    }

    /// Refuses before any connection where one is forbidden; `name` is what `models` or `data` would fetch.
    ///
    /// # Errors
    /// [`HubError::Forbidden`].
    pub fn allow_fetch(&self, verb: &'static str, name: &str) -> Result<(), HubError> {
        let forbidden = |reason| HubError::Forbidden { verb, name: name.to_owned(), reason };
        self.fetch_refusal().map_or(Ok(()), |reason| Err(forbidden(reason)))
    }

    /// # Errors
    /// [`HubError::NoCache`]: no variable names a place and there is no home directory.
    pub fn cache(&self) -> Result<PathBuf, HubError> {
        self.cache.clone().ok_or(HubError::NoCache)
    }

    /// The access token: `HF_TOKEN`, else what the token file holds.
    ///
    /// # Errors
    /// The token file is there and cannot be read.
    pub fn token(&self) -> Result<Option<Token>, HubError> {
        let (None, Some(path)) = (&self.token, &self.token_path) else {
            return Ok(self.token.clone());
        };
        let text = outside::if_there(outside::text(path))?.unwrap_or_default();
        Ok(Some(text.trim()).filter(|text| !text.is_empty()).map(|text| Token(text.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(variables: &[(&str, &str)]) -> HubOptions {
        try_options(variables).unwrap()
    }

    fn try_options(variables: &[(&str, &str)]) -> Result<HubOptions, HubError> {
        HubOptions::from_lookup(|name| {
            variables
                .iter()
                .find(|(variable, _)| *variable == name)
                .map(|(_, value)| OsString::from(value))
        })
    }

    fn cache(variables: &[(&str, &str)]) -> Option<PathBuf> {
        options(variables).cache
    }

    #[test]
    fn the_cache_is_named_by_the_first_variable_that_is_set() {
        let all =
            [("HF_HUB_CACHE", "/a"), ("HF_HOME", "/c"), ("XDG_CACHE_HOME", "/d"), ("HOME", "/e")];
        let expected = ["/a", "/c/hub", "/d/huggingface/hub", "/e/.cache/huggingface/hub"];
        for (skip, path) in expected.iter().enumerate() {
            assert_eq!(cache(&all[skip..]), Some(PathBuf::from(path)));
        }
        assert_eq!(cache(&[]), None);
        assert_eq!(
            cache(&[("HF_HUB_CACHE", ""), ("HF_HOME", "/hf"), ("HOME", "/e")]),
            Some(PathBuf::from("/hf/hub"))
        );
    }

    #[test]
    fn offline_takes_four_words_in_any_case_and_names_its_variable() {
        for name in OFFLINE {
            for value in ["1", "ON", "yes", "True"] {
                assert_eq!(options(&[(name, value)]).offline, Some(OfflineReason::Variable(name)));
            }
            for value in ["0", "off", "No", "false", ""] {
                assert_eq!(options(&[(name, value)]).offline, None);
            }
            // Whoever means to forbid connections must not be taken to allow them.
            let error = try_options(&[(name, "enabled")]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name} is `enabled`, not 1, true")), "{error}");
        }
        let transformers = options(&[("HF_HUB_OFFLINE", "0"), ("TRANSFORMERS_OFFLINE", "1")]);
        let named = OfflineReason::Variable("TRANSFORMERS_OFFLINE");
        assert_eq!(transformers.offline, Some(named));
    }

    #[test]
    fn the_token_comes_from_its_variable_then_its_file_and_is_never_shown() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().to_str().unwrap();
        assert_eq!(options(&[("HF_HOME", home)]).token().unwrap(), None);
        fs_err::write(directory.path().join("token"), "hf_file\n").unwrap();
        let from_file = options(&[("HF_HOME", home)]);
        assert_eq!(from_file.token().unwrap().unwrap().secret(), "hf_file");
        let from_variable = options(&[("HF_HOME", home), ("HF_TOKEN", "hf_variable\n")]);
        assert_eq!(from_variable.token().unwrap().unwrap().secret(), "hf_variable");
        assert!(!format!("{from_variable:?}").contains("hf_variable"));
    }

    #[test]
    fn a_mirror_is_named_without_a_password() {
        assert_eq!(options(&[("HF_ENDPOINT", "http://mirror/")]).endpoint, "http://mirror");
        assert_eq!(options(&[]).endpoint, HUB);
        let error = try_options(&[("HF_ENDPOINT", "https://nurse:secret@mirror:8443/hf/")]);
        let said = error.unwrap_err().to_string();
        assert!(said.contains("HF_TOKEN says who asks") && !said.contains("secret"), "{said}");
    }
}
