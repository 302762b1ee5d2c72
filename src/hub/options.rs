//! How models and datasets are found and fetched: what the environment's variables say, read at once, so that nothing deeper asks the process,
//! and what a command says besides.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::proxy::Proxies;
use super::{HubError, OfflineReason, fetch};
use crate::{outside, variable};

const DEFAULT_ENDPOINT: &str = "https://huggingface.co";
/// Any of them forbids connections.
const OFFLINE: [&str; 3] = ["WARDROUND_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"];
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// What the variables and the command say.
#[derive(Clone, Debug, Default)]
pub struct HubOptions {
    /// What forbids connections, if anything: the command, or the variable that is set.
    pub offline: Option<OfflineReason>,
    /// Whether fetching prints nothing to stderr.
    pub quiet: bool,
    /// Where cached repositories lie; `None` without any of the variables and without a home directory.
    pub cache: Option<PathBuf>,
    /// The hub's address, without a slash at the end, name and password.
    pub endpoint: String,
    pub login: Option<Token>,
    pub metadata_timeout: Duration,
    pub download_timeout: Duration,
    pub proxies: Proxies,
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
    /// [`HubError::BadVariable`] for a timeout that is not a number of seconds, or a switch that is neither on nor off.
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
        let bad = |name, expected| HubError::BadVariable {
            name,
            value: text(name).unwrap_or_default(),
            expected,
        };
        // As huggingface_hub expands them; a variable that is not set stays as it is written.
        let path = |name: &'static str| {
            let Some(value) = raw(name) else { return Ok(None) };
            let set = |name: &str| raw(name)?.into_string().ok();
            let expand = |value: &str| {
                shellexpand::full_with_context_no_errors(value, || set("HOME"), &set).into_owned()
            };
            // The home of another user is not looked up.
            let path = value.to_str().map(expand).filter(|path| !path.starts_with('~'));
            let expected = "a path in UTF-8 that begins with ~/, / or a variable's value";
            path.map(|path| Some(PathBuf::from(path))).ok_or_else(|| bad(name, expected))
        };
        let seconds = |name: &'static str| {
            let Some(value) = text(name) else { return Ok(DEFAULT_TIMEOUT) };
            let value =
                value.parse().ok().and_then(|value| Duration::try_from_secs_f64(value).ok());
            let value = value.filter(|duration| !duration.is_zero());
            value.ok_or_else(|| bad(name, "a number of seconds"))
        };
        let mut offline = None;
        for name in OFFLINE {
            let forbids = variable::boolean(&text(name).unwrap_or_default());
            let forbids = forbids.ok_or_else(|| bad(name, variable::WORDS))?;
            offline = offline.or(forbids.then_some(OfflineReason::Variable(name)));
        }
        let of_home = || Some(PathBuf::from(raw("HOME")?).join(".cache/huggingface"));
        let huggingface = path("HF_HOME")?
            .or(path("XDG_CACHE_HOME")?.map(|cache| cache.join("huggingface")))
            .or_else(of_home);
        let below = |name| huggingface.as_ref().map(|folder| folder.join(name));
        let (endpoint, login) =
            without_login(text("HF_ENDPOINT").as_deref().unwrap_or(DEFAULT_ENDPOINT));
        Ok(Self {
            offline,
            quiet: false,
            cache: path("HF_HUB_CACHE")?
                .or(path("HUGGINGFACE_HUB_CACHE")?)
                .or_else(|| below("hub")),
            endpoint,
            login,
            metadata_timeout: seconds("HF_HUB_ETAG_TIMEOUT")?,
            download_timeout: seconds("HF_HUB_DOWNLOAD_TIMEOUT")?,
            proxies: Proxies::from_lookup(&lookup),
            token: text("HF_TOKEN").map(Token),
            token_path: path("HF_TOKEN_PATH")?.or_else(|| below("token")),
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

/// A server's address without a slash at the end, and apart from it the name and password in it: what an error may show, and what not.
pub fn without_login(address: &str) -> (String, Option<Token>) {
    let address = address.trim_end_matches('/');
    let start = address.find("://").map_or(0, |at| at + 3);
    // A password may be spelled with what else ends a host.
    match address[start..].rsplit_once('@') {
        Some((login, place)) => {
            (format!("{}{place}", &address[..start]), Some(Token(login.to_owned())))
        }
        None => (address.to_owned(), None),
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
        let all = [
            ("HF_HUB_CACHE", "/a"),
            ("HUGGINGFACE_HUB_CACHE", "/b"),
            ("HF_HOME", "/c"),
            ("XDG_CACHE_HOME", "/d"),
            ("HOME", "/e"),
        ];
        let expected = ["/a", "/b", "/c/hub", "/d/huggingface/hub", "/e/.cache/huggingface/hub"];
        for (skip, path) in expected.iter().enumerate() {
            assert_eq!(cache(&all[skip..]), Some(PathBuf::from(path)));
        }
        assert_eq!(cache(&[]), None);
        assert_eq!(
            cache(&[("HF_HUB_CACHE", ""), ("HF_HOME", "~/hf"), ("HOME", "/e")]),
            Some(PathBuf::from("/e/hf/hub"))
        );
    }

    #[test]
    fn paths_expand_as_huggingface_hub_expands_them() {
        let hub = |value: &str| {
            cache(&[("HF_HOME", value), ("HOME", "/home/ward"), ("DISK", "/mnt/d"), ("A_1", "a")])
        };
        for (value, path) in [
            ("$HOME/hf", "/home/ward/hf/hub"),
            ("${DISK}/hf", "/mnt/d/hf/hub"),
            ("~/hf/${A_1}b$A_1", "/home/ward/hf/aba/hub"),
            ("~", "/home/ward/hub"),
            ("/a~/$UNSET/${DISK", "/a~/$UNSET/${DISK/hub"),
            ("/a$/=,é", "/a$/=,é/hub"),
        ] {
            assert_eq!(hub(value), Some(PathBuf::from(path)), "{value}");
        }
        let error = try_options(&[("HF_HOME", "~other/hf"), ("HOME", "/h")]).unwrap_err();
        assert!(error.to_string().starts_with("HF_HOME is `~other/hf`, not a path"), "{error}");
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
    fn the_name_and_password_of_a_mirror_are_in_no_address() {
        for (value, address, login) in [
            ("https://nurse:secret@mirror:8443/hf/", "https://mirror:8443/hf", "nurse:secret"),
            ("http://nurse:se/cr@t@mirror", "http://mirror", "nurse:se/cr@t"),
            ("nurse:secret@mirror", "mirror", "nurse:secret"),
        ] {
            let mirror = options(&[("HF_ENDPOINT", value)]);
            assert_eq!(
                (mirror.endpoint.as_str(), mirror.login.as_ref().unwrap().secret()),
                (address, login)
            );
            assert!(!format!("{mirror:?}").contains("secret"));
        }
        assert_eq!(options(&[]).login, None);
    }

    #[test]
    fn a_timeout_must_be_a_number_of_seconds() {
        let half = options(&[("HF_HUB_ETAG_TIMEOUT", "0.5"), ("HF_ENDPOINT", "http://mirror/")]);
        assert_eq!(half.metadata_timeout, Duration::from_millis(500));
        assert_eq!(half.endpoint, "http://mirror");
        for value in ["soon", "0", "-1", "inf"] {
            let error = try_options(&[("HF_HUB_DOWNLOAD_TIMEOUT", value)]).unwrap_err();
            assert!(error.to_string().contains("HF_HUB_DOWNLOAD_TIMEOUT"), "{error}");
        }
    }
}
