//! The environment variables that the hub reads, all at once, so that nothing deeper asks the process.
//!
//! `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` are read too, by the HTTP client itself.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::{HubError, installed, read_if_there};

const DEFAULT_ENDPOINT: &str = "https://huggingface.co";
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
    /// The folder of the models that were installed with this program by a bundle.
    pub installed: Option<PathBuf>,
    token: Option<Token>,
    token_path: Option<PathBuf>,
}

/// An access token; its debug form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

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
    /// [`HubError::BadVariable`] for a timeout that is not a number of seconds.
    pub fn capture() -> Result<Self, HubError> {
        let program = env::current_exe().ok();
        let installed = program.and_then(|program| installed::beside_program(&program));
        Ok(Self { installed, ..Self::from_lookup(|name| env::var_os(name))? })
    }

    /// Reads the variables through `lookup`; an empty one counts as unset.
    ///
    /// # Errors
    /// [`HubError::BadVariable`] for a timeout that is not a number of seconds.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Self, HubError> {
        let raw = |name| lookup(name).filter(|value| !value.is_empty());
        let text = |name| raw(name).map(|value| value.to_string_lossy().trim().to_owned());
        let home = raw("HOME").or_else(|| raw("USERPROFILE")).map(PathBuf::from);
        let path = |name| raw(name).map(|value| expand_home(PathBuf::from(value), home.as_ref()));

        let huggingface = path("HF_HOME")
            .or_else(|| path("XDG_CACHE_HOME").map(|cache| cache.join("huggingface")))
            .or_else(|| home.as_ref().map(|home| home.join(".cache/huggingface")));
        let seconds = |name| match text(name) {
            None => Ok(DEFAULT_TIMEOUT),
            Some(value) => value
                .parse::<f64>()
                .ok()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .filter(|duration| !duration.is_zero())
                .ok_or(HubError::BadVariable { name, value }),
        };
        Ok(Self {
            cache: path("HF_HUB_CACHE")
                .or_else(|| path("HUGGINGFACE_HUB_CACHE"))
                .or_else(|| huggingface.as_ref().map(|home| home.join("hub"))),
            endpoint: text("HF_ENDPOINT")
                .map(|endpoint| endpoint.trim_end_matches('/').to_owned())
                .unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned()),
            offline: ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"]
                .into_iter()
                .find(|name| text(name).is_some_and(|value| is_true(&value))),
            progress_bars: !text("HF_HUB_DISABLE_PROGRESS_BARS")
                .is_some_and(|value| is_true(&value)),
            metadata_timeout: seconds("HF_HUB_ETAG_TIMEOUT")?,
            download_timeout: seconds("HF_HUB_DOWNLOAD_TIMEOUT")?,
            installed: None,
            token: text("HF_TOKEN").map(Token),
            token_path: path("HF_TOKEN_PATH")
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

/// The hub's own reading of a boolean variable.
fn is_true(value: &str) -> bool {
    ["1", "on", "yes", "true"].contains(&value.to_ascii_lowercase().as_str())
}

fn expand_home(path: PathBuf, home: Option<&PathBuf>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    }
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
    fn offline_takes_four_words_in_any_case_and_names_its_variable() {
        for value in ["1", "ON", "yes", "True"] {
            assert_eq!(environment(&[("HF_HUB_OFFLINE", value)]).offline, Some("HF_HUB_OFFLINE"));
        }
        for value in ["0", "off", "2", ""] {
            assert_eq!(environment(&[("HF_HUB_OFFLINE", value)]).offline, None);
        }
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
