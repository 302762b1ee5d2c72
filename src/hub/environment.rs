//! The environment variables that the hub reads, all at once, so that nothing deeper asks the process.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::proxy::Proxies;
use super::{HubError, read_if_there};
use crate::variable;

const DEFAULT_ENDPOINT: &str = "https://huggingface.co";
/// Any of them forbids connections.
const OFFLINE: [&str; 3] = ["WARDROUND_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"];
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// What the variables say.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Where cached repositories lie; `None` without any of the variables and without a home directory.
    pub cache: Option<PathBuf>,
    /// The hub's address, without a slash at the end.
    pub endpoint: String,
    /// The variable that forbids connections, where one does.
    pub offline: Option<&'static str>,
    pub progress_bars: bool,
    pub metadata_timeout: Duration,
    pub download_timeout: Duration,
    pub proxies: Proxies,
    token: Option<Token>,
    token_path: Option<PathBuf>,
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

impl Environment {
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
    /// See [`Environment::capture`].
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Self, HubError> {
        let raw = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let text = |name: &str| raw(name).map(|value| value.to_string_lossy().trim().to_owned());
        let home = raw("HOME").or_else(|| raw("USERPROFILE")).map(PathBuf::from);
        let path = |name: &'static str| match raw(name) {
            None => Ok(None),
            Some(value) => expand(&value, home.as_deref(), raw)
                .filter(|path| path.to_str().is_some())
                .map(Some)
                .ok_or_else(|| HubError::BadVariable {
                    name,
                    value: value.to_string_lossy().into_owned(),
                    expected: "a path in UTF-8 that begins with ~/, / or a variable's value",
                }),
        };

        let huggingface = path("HF_HOME")?
            .or(path("XDG_CACHE_HOME")?.map(|cache| cache.join("huggingface")))
            .or_else(|| home.as_ref().map(|home| home.join(".cache/huggingface")));
        let seconds = |name: &'static str| match text(name) {
            None => Ok(DEFAULT_TIMEOUT),
            Some(value) => value
                .parse::<f64>()
                .ok()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .filter(|duration| !duration.is_zero())
                .ok_or(HubError::BadVariable { name, value, expected: "a number of seconds" }),
        };
        let is_true = |name: &'static str| {
            let value = text(name).unwrap_or_default();
            let known = variable::boolean(&value);
            known.ok_or(HubError::BadVariable { name, value, expected: variable::WORDS })
        };
        let mut offline = None;
        for name in OFFLINE {
            let forbids = is_true(name)?;
            offline = offline.or(forbids.then_some(name));
        }
        Ok(Self {
            cache: path("HF_HUB_CACHE")?
                .or(path("HUGGINGFACE_HUB_CACHE")?)
                .or_else(|| huggingface.as_ref().map(|home| home.join("hub"))),
            endpoint: text("HF_ENDPOINT")
                .map(|endpoint| endpoint.trim_end_matches('/').to_owned())
                .unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned()),
            offline,
            progress_bars: !is_true("HF_HUB_DISABLE_PROGRESS_BARS")?,
            metadata_timeout: seconds("HF_HUB_ETAG_TIMEOUT")?,
            download_timeout: seconds("HF_HUB_DOWNLOAD_TIMEOUT")?,
            proxies: Proxies::from_lookup(&lookup),
            token: text("HF_TOKEN").map(Token),
            token_path: path("HF_TOKEN_PATH")?
                .or_else(|| huggingface.as_ref().map(|home| home.join("token"))),
        })
    }

    /// The access token: `HF_TOKEN`, else what the token file holds.
    ///
    /// # Errors
    /// The token file is there and cannot be read.
    pub fn token(&self) -> Result<Option<Token>, HubError> {
        if self.token.is_some() {
            return Ok(self.token.clone());
        }
        let Some(path) = &self.token_path else {
            return Ok(None);
        };
        let text = read_if_there(path)?.unwrap_or_default();
        Ok(Some(text.trim()).filter(|text| !text.is_empty()).map(|text| Token(text.to_owned())))
    }
}

/// A path as huggingface_hub expands it: `~`, then `$NAME` and `${NAME}`; a variable that is not set stays as it is written. `None`:
/// the home of another user, which is not looked up.
fn expand(
    value: &OsStr,
    home: Option<&Path>,
    lookup: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let mut bytes = value.as_bytes();
    let mut path = Vec::new();
    if let Some(rest) = bytes.strip_prefix(b"~") {
        if !rest.is_empty() && !rest.starts_with(b"/") {
            return None;
        }
        path.extend(home?.as_os_str().as_bytes());
        bytes = rest;
    }
    while let Some((&first, rest)) = bytes.split_first() {
        let braced = rest.strip_prefix(b"{");
        let name = braced.unwrap_or(rest);
        let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let length = name.iter().take_while(is_word).count();
        let end = match braced {
            Some(_) => name[length..].strip_prefix(b"}"),
            None => Some(&name[length..]),
        };
        let known = str::from_utf8(&name[..length]).ok().filter(|name| !name.is_empty());
        match (first, end, known.and_then(&lookup)) {
            (b'$', Some(end), Some(value)) => {
                path.extend(value.as_bytes());
                bytes = end;
            }
            _ => {
                path.push(first);
                bytes = rest;
            }
        }
    }
    Some(PathBuf::from(OsString::from_vec(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        try_environment(variables).unwrap()
    }

    fn try_environment(variables: &[(&str, &str)]) -> Result<Environment, HubError> {
        Environment::from_lookup(|name| {
            variables
                .iter()
                .find(|(variable, _)| *variable == name)
                .map(|(_, value)| OsString::from(value))
        })
    }

    fn cache(variables: &[(&str, &str)]) -> Option<PathBuf> {
        environment(variables).cache
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
        let error = try_environment(&[("HF_HOME", "~other/hf"), ("HOME", "/h")]).unwrap_err();
        assert!(error.to_string().starts_with("HF_HOME is `~other/hf`, not a path"), "{error}");
    }

    #[test]
    fn offline_takes_four_words_in_any_case_and_names_its_variable() {
        for name in OFFLINE {
            for value in ["1", "ON", "yes", "True"] {
                assert_eq!(environment(&[(name, value)]).offline, Some(name));
            }
            for value in ["0", "off", "No", "false", ""] {
                assert_eq!(environment(&[(name, value)]).offline, None);
            }
            // Whoever means to forbid connections must not be taken to allow them.
            let error = try_environment(&[(name, "enabled")]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name} is `enabled`, not 1, true")), "{error}");
        }
        assert!(environment(&[("HF_HUB_DISABLE_PROGRESS_BARS", "off")]).progress_bars);
        let transformers = environment(&[("HF_HUB_OFFLINE", "0"), ("TRANSFORMERS_OFFLINE", "1")]);
        assert_eq!(transformers.offline, Some("TRANSFORMERS_OFFLINE"));
    }

    #[test]
    fn the_token_comes_from_its_variable_then_its_file_and_is_never_shown() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().to_str().unwrap();
        assert_eq!(environment(&[("HF_HOME", home)]).token().unwrap(), None);
        fs_err::write(directory.path().join("token"), "hf_file\n").unwrap();
        let from_file = environment(&[("HF_HOME", home)]);
        assert_eq!(from_file.token().unwrap().unwrap().secret(), "hf_file");
        let from_variable = environment(&[("HF_HOME", home), ("HF_TOKEN", "hf_variable\n")]);
        assert_eq!(from_variable.token().unwrap().unwrap().secret(), "hf_variable");
        assert!(!format!("{from_variable:?}").contains("hf_variable"));
    }

    #[test]
    fn a_timeout_must_be_a_number_of_seconds() {
        let half =
            environment(&[("HF_HUB_ETAG_TIMEOUT", "0.5"), ("HF_ENDPOINT", "http://mirror/")]);
        assert_eq!(half.metadata_timeout, Duration::from_millis(500));
        assert_eq!(half.endpoint, "http://mirror");
        for value in ["soon", "0", "-1", "inf"] {
            let error = try_environment(&[("HF_HUB_DOWNLOAD_TIMEOUT", value)]).unwrap_err();
            assert!(error.to_string().contains("HF_HUB_DOWNLOAD_TIMEOUT"), "{error}");
        }
    }
}
