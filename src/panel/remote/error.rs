//! Errors of a remote endpoint, and whether each fails one item or ends the run.

use std::path::PathBuf;

use thiserror::Error;

use super::Address;
use super::key::{WARDROUND_API_KEY, own_variable};
use crate::fault::faults;
use crate::hub::OfflineReason;
use crate::hub::proxy::ProxyError;

faults! {
    #[derive(Debug, Error)]
    pub enum RemoteError {
        #[error("`{member}` is no address of a remote member: {reason}")]
        BadAddress { member: String, reason: &'static str } => Usage,
            format!("write openai:MODEL@URL, as in openai:gpt-4o@https://api.openai.com/v1; a key goes into {WARDROUND_API_KEY}");
        #[error("{variable} holds characters that no key has")]
        BadKey { variable: String } => Usage;
        #[error("the key in {variable} is not sent to {address}: the connection is not encrypted")]
        KeyInTheClear { address: Address, variable: String } => Usage,
            format!("use https, or set {} to a key that others may read on its way", own_variable(address.host()));
        #[error("{address} is not asked: no argument of this command names it")]
        NotNamed { address: Address } => Usage,
            format!("if the items may go there, name it with --panel, or set {} to its key (to any word if it needs none)", own_variable(address.host()));
        #[error("{address} cannot be asked: this build lacks the feature `remote`")]
        NoFeature { address: Address } => Usage,
            "build with the feature `remote`, which is on by default, or name a local model";
        #[error("{address} cannot be asked: {reason}")]
        Forbidden { address: Address, reason: OfflineReason } => Usage,
            "name a local model, or run where connections are allowed";
        #[error("{address} cannot be asked: {problem}")]
        Proxy { address: Address, problem: ProxyError } => Usage, problem.hint();
        #[error("the image {path} cannot be sent: {reason}")]
        Image { path: PathBuf, reason: String } => Usage;
        /// Of whatever is asked there.
        #[error("{address} refuses to be asked (HTTP {status}): {message}")]
        Refused { address: Address, status: u16, message: String } => Usage,
            match status {
                401..=403 | 429 => format!(
                    "check the key, its rights and its quota: it is read from {}, or from {WARDROUND_API_KEY} where an argument names the endpoint; \
                     OPENAI_API_KEY goes to openai.com alone",
                    own_variable(address.host())
                ),
                400 | 422 => "check the model's name; a sampling parameter that the endpoint does not take is set for other agents alone, as \
                     --set slot.AGENT.NAME=VALUE".to_owned(),
                _ => format!("check the model's name and the URL: {} lists what is there", address.models()),
            };
        #[error("{address} refuses the prompt (HTTP {status}): {message}")]
        Rejected { address: Address, status: u16, message: String } => Usage;
        #[error("{address} gave no answer ({attempts} {}): {reason}", if *attempts == 1 { "attempt" } else { "attempts" })]
        Exhausted {
            address: Address,
            attempts: u32,
            /// Why the last attempt failed.
            reason: String,
        } => Machine, "once the endpoint answers again, `wardround resume DIR` tries the item again";
        #[error("interrupted")]
        Interrupted => Interrupted;
    }
}

impl RemoteError {
    /// Whether only the current item fails and the run goes on.
    pub fn concerns_item(&self) -> bool {
        matches!(
            self,
            RemoteError::Image { .. }
                | RemoteError::Rejected { .. }
                | RemoteError::Exhausted { .. }
        )
    }
}
