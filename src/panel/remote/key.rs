//! The API key of an endpoint, from an environment variable; never shown.

use std::env;
use std::ffi::OsString;
use std::fmt;

use super::{Address, RemoteError};

/// The key of every endpoint without a variable of its own, whose name ends with the host: `WARDROUND_API_KEY_API_OPENAI_COM`.
pub const WARDROUND_API_KEY: &str = "WARDROUND_API_KEY";
/// The key of hosts under openai.com, as OpenAI's own tools read it.
pub const OPENAI_API_KEY: &str = "OPENAI_API_KEY";

/// An API key; its debug form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// The environment variable that it is from.
    pub variable: String,
    secret: String,
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ApiKey({}=***)", self.variable)
    }
}

impl ApiKey {
    /// The key for `address`, from the process's environment; `None` where no variable has one.
    ///
    /// # Errors
    /// [`RemoteError::BadKey`] for a key that cannot be sent in a header.
    pub fn capture(address: &Address) -> Result<Option<ApiKey>, RemoteError> {
        ApiKey::from_lookup(address, |name| env::var_os(name))
    }

    /// The first that is set of the endpoint's own variable, `WARDROUND_API_KEY` and, for openai.com alone, `OPENAI_API_KEY`: a key that
    /// is in the environment for another tool is sent to no other host. An empty variable counts as unset.
    pub fn from_lookup(
        address: &Address,
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<ApiKey>, RemoteError> {
        let host = address.host().to_ascii_lowercase();
        let is_openai = host == "openai.com" || host.ends_with(".openai.com");
        let mut variables = vec![own_variable(&host), WARDROUND_API_KEY.to_owned()];
        variables.extend(is_openai.then(|| OPENAI_API_KEY.to_owned()));
        for variable in variables {
            let Some(value) = lookup(&variable) else {
                continue;
            };
            let secret = value.to_string_lossy().trim().to_owned();
            if secret.is_empty() {
                continue;
            }
            return match secret.bytes().all(|byte| byte.is_ascii_graphic()) {
                true => Ok(Some(ApiKey { variable, secret })),
                false => Err(RemoteError::BadKey { variable }),
            };
        }
        Ok(None)
    }

    pub fn secret(&self) -> &str {
        &self.secret
    }
}

fn own_variable(host: &str) -> String {
    let name = host.chars().map(|char| match char.is_ascii_alphanumeric() {
        true => char.to_ascii_uppercase(),
        false => '_',
    });
    format!("{WARDROUND_API_KEY}_{}", name.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(url: &str, variables: &[(&str, &str)]) -> Result<Option<ApiKey>, RemoteError> {
        let address = Address::parse(&format!("openai:m@{url}")).unwrap();
        ApiKey::from_lookup(&address, |name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn an_endpoints_own_variable_comes_first() {
        let all = [
            ("WARDROUND_API_KEY_API_OPENAI_COM", "own\n"),
            (WARDROUND_API_KEY, "any"),
            (OPENAI_API_KEY, "openai"),
        ];
        for (skip, secret) in ["own", "any", "openai"].iter().enumerate() {
            let found = key("https://api.openai.com/v1", &all[skip..]).unwrap();
            assert_eq!(found.unwrap().secret(), *secret);
        }
        assert_eq!(key("https://api.openai.com", &[]).unwrap(), None);
        assert_eq!(key("http://box", &[(WARDROUND_API_KEY, " ")]).unwrap(), None);
    }

    #[test]
    fn openais_key_goes_to_openai_alone() {
        for url in ["http://box:8000", "https://api.openai.com.example.org"] {
            assert_eq!(key(url, &[(OPENAI_API_KEY, "secret")]).unwrap(), None);
        }
    }

    #[test]
    fn a_key_is_never_shown() {
        let shown = format!("{:?}", key("http://box", &[(WARDROUND_API_KEY, "hush")]));
        assert!(shown.contains(WARDROUND_API_KEY) && !shown.contains("hush"), "{shown}");
        let error = key("http://box", &[(WARDROUND_API_KEY, "hu\nsh")]).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hu\nsh"), "{error}");
    }
}
