//! The served models, and systems, which clients use like models, by their names in the API.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use serde::Serialize;
use serde_json::{Value, json};

use super::app::App;
use super::encoders::ServedEncoder;
use super::error::{ApiError, Code, too_long};
use super::request::fields::quoted;
use super::response::reply::since_epoch;
use crate::data::ItemKind;
use crate::engine::EngineError;
use crate::experiment::case::Seated;
use crate::ops::PAGE;
use crate::panel::backbone::Backbone;

/// Bytes that a token of a text has at most, on average: three or four are usual, and of rows of spaces some more.
pub const LONGEST_TOKEN: usize = 16;

/// What a name in the API stands for, as the list of models has it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Model,
    System,
    Encoder,
}

/// What the list of models says of what answers by a name.
#[derive(Clone, Serialize)]
pub struct Entry {
    pub id: String,
    object: &'static str,
    /// When it was loaded.
    created: u64,
    owned_by: &'static str,
    max_model_len: Option<usize>,
    pub wardround: Described,
}

#[derive(Clone, Serialize)]
pub struct Described {
    kind: Kind,
    /// Of equal fingerprints equal requests get equal bytes.
    pub fingerprint: String,
    synthetic: bool,
    /// What its licence requires wherever the model is used.
    notice: Option<String>,
}

impl Entry {
    pub fn new(
        id: &str,
        (kind, fingerprint): (Kind, String),
        max_model_len: Option<usize>,
        synthetic: bool,
        notice: Option<&str>,
    ) -> Entry {
        Entry {
            id: id.to_owned(),
            object: "model",
            created: since_epoch().as_secs(),
            owned_by: "wardround",
            max_model_len,
            wardround: Described {
                kind,
                fingerprint,
                synthetic,
                notice: notice.map(str::to_owned),
            },
        }
    }
}

/// The served models and systems.
#[derive(Default)]
pub struct Served {
    pub models: Vec<Arc<ServedModel>>,
    pub systems: Vec<Arc<ServedSystem>>,
    pub encoders: Vec<Arc<ServedEncoder>>,
}

pub struct ServedModel {
    pub entry: Entry,
    pub backbone: Arc<Backbone>,
    /// The most tokens of a prompt and its completion together.
    pub context: usize,
}

/// Refuses a text of so many bytes that cannot fit into a context, before it is tokenised.
pub fn refuse_length(bytes: usize, context: usize, param: &str) -> Result<(), ApiError> {
    let tokens = bytes / LONGEST_TOKEN;
    if tokens < context { Ok(()) } else { Err(too_long(tokens, 1, context).at(param)) }
}

impl ServedModel {
    /// `pages` has the KV cache.
    pub fn new(id: &str, backbone: Arc<Backbone>, pages: usize) -> ServedModel {
        let description = &backbone.description;
        let context = description.context.min(pages * PAGE);
        let notice = description.checkpoint.card.and_then(|card| card.licence.shown.as_deref());
        let own = (Kind::Model, description.fingerprint(&backbone.identity));
        let entry = Entry::new(id, own, Some(context), description.is_synthetic, notice);
        ServedModel { entry, backbone, context }
    }

    /// Whether thinking is enabled by default.
    pub fn thinks(&self) -> bool {
        let card = self.backbone.description.checkpoint.card.as_ref();
        card.and_then(|card| card.thinking).unwrap_or(false)
    }
}

pub struct ServedSystem {
    pub entry: Entry,
    pub seated: Seated,
}

impl ServedSystem {
    /// `models` are the names of each seat's model in the API, which `served` has.
    pub fn new(seated: Seated, models: Vec<String>, served: &[Arc<ServedModel>]) -> ServedSystem {
        let named = |name: &String| served.iter().find(|model| model.entry.id == *name);
        let own = || models.iter().filter_map(named);
        let fingerprints: Vec<&str> =
            own().map(|model| model.entry.wardround.fingerprint.as_str()).collect();
        // Of its models the smallest one.
        let context = own().map(|model| model.context).min();
        let kind = (Kind::System, seated.fingerprint(&fingerprints));
        let (name, is_synthetic) = (seated.config.entry.name, seated.is_synthetic);
        let entry = Entry::new(name, kind, context, is_synthetic, None);
        ServedSystem { entry, seated }
    }

    /// Refuses a text that cannot fit into a context by its length alone: before it is parsed or tokenised, which takes time.
    pub fn refuse_length(&self, text: &str, param: &str) -> Result<(), ApiError> {
        let context = self.entry.max_model_len;
        context.map_or(Ok(()), |context| refuse_length(text.len(), context, param))
    }

    pub fn takes(&self) -> ItemKind {
        self.seated.config.entry.takes
    }
}

/// All that answers.
pub async fn list(State(app): State<Arc<App>>) -> Result<Json<Value>, ApiError> {
    let entries: Vec<&Entry> = app.served()?.entries().collect();
    Ok(Json(json!({"object": "list", "data": entries})))
}

/// One of them.
pub async fn one(
    State(app): State<Arc<App>>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<Entry>, ApiError> {
    let refused = |error| ApiError::new(Code::INVALID_VALUE, format!("the address: {error}"));
    let Path(id) = path.map_err(refused)?;
    let served = app.served()?;
    let found = served.entries().find(|entry| entry.id == id);
    found.cloned().map(Json).ok_or_else(|| served.missing(Kind::Model, Some(&id)))
}

impl Served {
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        let models = self.models.iter().map(|model| &model.entry);
        let systems = self.systems.iter().map(|system| &system.entry);
        models.chain(systems).chain(self.encoders.iter().map(|encoder| &encoder.entry))
    }

    /// The model of this name; without a name the only model.
    pub fn find(&self, name: Option<&str>) -> Result<&Arc<ServedModel>, ApiError> {
        self.pick(Kind::Model, self.models.iter().map(|model| (&model.entry, model)), name)
    }

    /// The encoder of this name; without a name the only one.
    pub fn encoder(&self, name: Option<&str>) -> Result<&Arc<ServedEncoder>, ApiError> {
        self.pick(Kind::Encoder, self.encoders.iter().map(|one| (&one.entry, one)), name)
    }

    pub fn system(&self, name: &str) -> Option<&Arc<ServedSystem>> {
        self.systems.iter().find(|system| system.entry.id == name)
    }

    /// Of the systems that take notes the one of this name; without a name the only one.
    pub fn note_system(&self, name: Option<&str>) -> Result<&Arc<ServedSystem>, ApiError> {
        let fitting = self.systems.iter().filter(|system| system.takes() == ItemKind::Notes);
        let found = self.pick(Kind::System, fitting.map(|system| (&system.entry, system)), name);
        found.map_err(|error| error.at("system"))
    }

    /// Of what is of a kind the one of this name; without a name the only one.
    fn pick<'a, T>(
        &self,
        kind: Kind,
        all: impl Iterator<Item = (&'a Entry, T)>,
        name: Option<&str>,
    ) -> Result<T, ApiError> {
        let is_meant = |entry: &Entry| {
            entry.wardround.kind == kind && name.is_none_or(|name| entry.id == name)
        };
        let mut fitting = all.filter(|(entry, _)| is_meant(entry)).map(|(_, one)| one);
        match (fitting.next(), fitting.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(self.missing(kind, name)),
        }
    }

    /// The error for a request whose model is not there, or of another kind; it says what there is.
    pub fn missing(&self, wanted: Kind, name: Option<&str>) -> ApiError {
        let word = |kind: Kind| format!("{kind:?}").to_lowercase();
        let one = |entry: &Entry| format!("{} ({})", entry.id, word(entry.wardround.kind));
        let names = self.entries().map(one).collect::<Vec<_>>().join(", ");
        let is_wanted = |entry: &Entry| entry.wardround.kind == wanted;
        let mut there = self.entries().filter(|entry| is_wanted(entry));
        let is_there = name.is_some_and(|name| there.any(|entry| entry.id == name));
        let wanted = word(wanted);
        let problem = match name {
            Some(name) if is_there => format!("{wanted} {} is not for this", quoted(name)),
            Some(name) => format!("there is no {wanted} {}", quoted(name)),
            None => format!("the request must name the {wanted} that is meant"),
        };
        ApiError::of(Code::MODEL_NOT_FOUND, "model", format!("{problem}; there are {names}"))
    }

    /// The error of an engine that died, if any.
    pub fn failure(&self) -> Option<EngineError> {
        self.models.iter().find_map(|model| model.backbone.engine.failure())
    }
}
