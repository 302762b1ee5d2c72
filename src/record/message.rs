//! One message of a chat.

use serde::{Deserialize, Serialize};

/// One message of a chat, as it was given to the template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: String,
    pub content: String,
}
