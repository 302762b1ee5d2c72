//! What every handler of the server shares: its set-up, what it serves, and how it stands.

use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use super::admission::{Admission, KeyLoad};
use super::audit::Audit;
use super::case::pool::Cases;
use super::error::{ApiError, Code};
use super::failures::Failures;
use super::keys::{Key, Keys};
use super::metrics::Metrics;
use super::models::Served;
use super::options::ServeOptions;
use crate::diagnosis::Failure;

/// The number of counters for the users whom a reverse proxy names.
const USER_LOADS: usize = 4096;

/// How far the server is on its way to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Serving,
    /// What runs may finish; nothing new is taken.
    Draining,
    /// What still runs is ended.
    Cut,
}

/// The keys that hold now, and the load of each.
#[derive(Debug, Default)]
pub struct KeyRing {
    keys: Keys,
    loads: Vec<KeyLoad>,
}

impl KeyRing {
    pub fn new(keys: Keys) -> KeyRing {
        let loads = keys.list.iter().map(|_| KeyLoad::default()).collect();
        KeyRing { keys, loads }
    }

    /// Who holds this key.
    pub fn find(&self, given: &str) -> Option<Caller> {
        let key = self.keys.find(given)?;
        let index = self.keys.list.iter().position(|other| other == key)?;
        Some(Caller { key: key.clone(), load: self.loads[index].clone() })
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.keys.list.iter().map(|key| key.name.as_str())
    }

    /// Who holds the key of this name.
    pub fn named(&self, name: &str) -> Option<Caller> {
        let index = self.keys.list.iter().position(|key| key.name == name)?;
        Some(Caller { key: self.keys.list[index].clone(), load: self.loads[index].clone() })
    }
}

/// Who asks, where there are keys.
#[derive(Clone, Debug)]
pub struct Caller {
    pub key: Key,
    pub load: KeyLoad,
}

/// What every handler shares.
pub struct App {
    pub options: ServeOptions,
    pub phase: watch::Receiver<Phase>,
    /// `None` where everyone may ask.
    pub keys: watch::Receiver<Option<Arc<KeyRing>>>,
    pub failures: Failures,
    pub metrics: Metrics,
    pub audit: Audit,
    pub cases: Cases,
    /// What the tokens of the page's forms are made with.
    pub page_secret: String,
    /// When the process started, in seconds since 1970.
    pub created: u64,
    /// The loads of users whom a reverse proxy names, each shared by the users of a bucket.
    user_loads: Vec<KeyLoad>,
    served: OnceLock<Served>,
    admission: OnceLock<Arc<Admission>>,
}

impl App {
    /// # Errors
    /// An audit log that cannot be opened; a thread that cannot be started.
    pub fn new(
        options: ServeOptions,
        phase: watch::Receiver<Phase>,
        keys: watch::Receiver<Option<Arc<KeyRing>>>,
    ) -> Result<App, Failure> {
        let metrics = Metrics::new(&options.metrics_prefix);
        let audit = options.audit.as_ref().map(Audit::open).transpose()?.unwrap_or_default();
        let created =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let page_secret =
            super::session::random_id().map_err(|error| std::io::Error::other(error.message))?;
        Ok(App {
            cases: Cases::start(options.limits.cases, &metrics.cases, &audit)?,
            options,
            phase,
            keys,
            failures: Failures::default(),
            metrics,
            audit,
            page_secret,
            created,
            user_loads: (0..USER_LOADS).map(|_| KeyLoad::default()).collect(),
            served: OnceLock::new(),
            admission: OnceLock::new(),
        })
    }

    /// A user whom a reverse proxy names.
    pub fn proxied_user(&self, name: &str) -> Caller {
        let key = Key::of_user(name);
        let load = self.user_loads[key.bucket() % USER_LOADS].clone();
        Caller { key, load }
    }

    /// From now on these answer.
    pub fn begin(&self, served: Served) {
        let admission = Admission::new(&self.options.limits, served.kv_tokens());
        let _ = self.admission.set(Arc::new(admission));
        self.audit.served(&served, &self.options.arguments);
        let _ = self.served.set(served);
    }

    /// What is served.
    ///
    /// # Errors
    /// While models are loading, when the server is on its way to its end, and when an engine died.
    pub fn served(&self) -> Result<&Served, ApiError> {
        if *self.phase.borrow() != Phase::Serving {
            return Err(ApiError::draining());
        }
        let served = self.served.get().ok_or_else(loading)?;
        match served.failure() {
            None => Ok(served),
            Some(error) => {
                Err(ApiError::new(Code::EngineFailed, error.to_string()).retry_after(10))
            }
        }
    }

    /// What is served, however the server stands.
    pub fn loaded(&self) -> Option<&Served> {
        self.served.get()
    }

    /// The queue; there is one as soon as something is served.
    ///
    /// # Errors
    /// While models are loading.
    pub fn admission(&self) -> Result<&Arc<Admission>, ApiError> {
        self.admission.get().ok_or_else(loading)
    }
}

fn loading() -> ApiError {
    ApiError::new(Code::Loading, "the models are loading").retry_after(5)
}
