//! Which lines of a trail are wanted: to be shown, or to have their texts deleted.

use std::path::Path;
use std::time::{Duration, SystemTime};

use clap::Args;

use super::key::Key;
use super::line::Line;
use crate::diagnosis::Failure;

const DAY: u64 = 24 * 60 * 60;

#[derive(Clone, Debug, Default, Args)]
pub struct Filter {
    /// Lines from this time on, in UTC: 2026-03-01 or 2026-03-01T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub from: Option<String>,
    /// Lines up to this time; a day counts whole
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub to: Option<String>,
    /// Lines of this key or user
    #[arg(long, value_name = "NAME")]
    pub actor: Option<String>,
    /// Of several with the name, lines of this one, as lines call it: key:…, unix:…
    #[arg(long, value_name = "IDENTITY")]
    pub identity: Option<String>,
    /// Lines of this event: request, case, run, forget, …
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,
    /// The lines of an answer, by its `wardround.request`
    #[arg(long, value_name = "SHA256")]
    pub request: Option<String>,
}

/// A time in UTC, or a day, as it was written.
fn time(text: &str) -> Result<String, String> {
    let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    let wrong = |_| "expected a time in UTC, such as 2026-03-01 or 2026-03-01T09:30:00Z".to_owned();
    humantime::parse_rfc3339(&whole).map(|_| text.to_owned()).map_err(wrong)
}

impl Filter {
    pub fn older_than(days: u32) -> Filter {
        let age = Duration::from_secs(u64::from(days) * DAY);
        let limit = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        let to = Some(humantime::format_rfc3339_seconds(limit).to_string());
        Filter { to, ..Filter::default() }
    }

    /// With the request as the lines of a directory have it.
    pub fn keyed(mut self, directory: &Path) -> Result<Filter, Failure> {
        let key = Key::read(directory)?;
        self.request = self.request.map(|digest| key.sum(digest));
        Ok(self)
    }

    pub fn wants(&self, line: &Line) -> bool {
        let at = line.at_utc.as_str();
        let is = |wanted: &Option<String>, name: &str| {
            wanted.as_deref().is_none_or(|wanted| line.text(name) == wanted)
        };
        self.from.as_deref().is_none_or(|from| at >= from)
            && self.to.as_deref().is_none_or(|to| at.get(..to.len()).unwrap_or(at) <= to)
            && is(&self.actor, "actor")
            && is(&self.identity, "identity")
            && is(&self.event, "event")
            && is(&self.request, "request")
    }
}
