//! The wall clock, as the run directory spells it.

use std::time::SystemTime;

/// Now, in UTC to the second (RFC 3339), as in `2026-03-01T09:30:00Z`.
pub fn utc_now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
