//! The served models, by their names in the API.

use std::sync::Arc;

use serde_json::{Value, json};

use super::encoders::ServedEncoder;
use super::encoding::MOST_TOKENS;
use super::error::{ApiError, Code, too_long};
use super::metrics::{Metrics, ModelMetrics};
use super::request::fields::quoted;
use super::system::{LoadedSystem, ServedSystem};
use super::{completion, embeddings, rerank};
use crate::diagnosis::Failure;
use crate::engine::EngineError;
use crate::ops::PAGE;
use crate::panel::backbone::Backbone;

/// Bytes that a token of a text has at most, on average: three or four are usual, and of rows of spaces some more.
pub const LONGEST_TOKEN: usize = 16;

/// What a name in the API stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Model,
    System,
    Encoder,
    Reranker,
}

impl Kind {
    /// As the list of models has it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Model => "model",
            Kind::System => "system",
            Kind::Encoder => "encoder",
            Kind::Reranker => "reranker",
        }
    }

    fn one(self) -> String {
        let article = if self == Kind::Encoder { "an" } else { "a" };
        format!("{article} {}", self.name())
    }

    /// What it takes.
    fn takes(self) -> &'static str {
        match self {
            Kind::Model => "chats and completions",
            Kind::System => completion::CHAT,
            Kind::Encoder => embeddings::PATH,
            Kind::Reranker => rerank::PATH,
        }
    }
}

/// The served models and systems.
pub struct Served {
    pub models: Vec<Arc<ServedModel>>,
    pub systems: Vec<Arc<ServedSystem>>,
    pub encoders: Vec<Arc<ServedEncoder>>,
    /// A description of the process's sandbox; `None` without one.
    pub sandbox: Option<String>,
}

/// The loaded models and systems.
pub struct Loaded {
    pub models: Vec<LoadedModel>,
    pub systems: Vec<LoadedSystem>,
    pub encoders: Vec<ServedEncoder>,
    /// See `Served::sandbox`.
    pub sandbox: Option<String>,
}

pub struct ServedModel {
    pub id: String,
    pub backbone: Arc<Backbone>,
    /// Models with equal fingerprints answer equal requests with equal bytes.
    pub fingerprint: String,
    /// The kind of its device, as in plans.
    pub device_kind: String,
    /// The number of pages of its KV cache.
    pub pages: usize,
    pub metrics: ModelMetrics,
}

/// A loaded model, before it is served.
pub struct LoadedModel {
    pub id: String,
    pub backbone: Arc<Backbone>,
    pub device_kind: String,
    pub pages: usize,
}

/// Refuses a text of so many bytes that cannot fit into a context, before it is tokenised.
pub fn refuse_length(bytes: usize, context: usize, param: &str) -> Result<(), ApiError> {
    let tokens = bytes / LONGEST_TOKEN;
    if tokens < context { Ok(()) } else { Err(too_long(tokens, 1, context).at(param)) }
}

impl ServedModel {
    pub fn new(loaded: LoadedModel, metrics: &Metrics) -> ServedModel {
        let LoadedModel { id, backbone, device_kind, pages } = loaded;
        metrics.computes_on(&device_kind);
        ServedModel {
            metrics: metrics.of_model(&id),
            fingerprint: backbone.description.fingerprint(&backbone.identity),
            id,
            backbone,
            device_kind,
            pages,
        }
    }

    /// The context length: the most tokens of a prompt and its completion together.
    pub fn context(&self) -> usize {
        self.backbone.description.context.min(self.pages * PAGE)
    }

    /// Whether thinking is enabled by default.
    pub fn thinks(&self) -> bool {
        let card = self.backbone.description.checkpoint.card.as_ref();
        card.and_then(|card| card.thinking).unwrap_or(false)
    }

    /// The notice that its licence requires wherever the model is used.
    pub fn notice(&self) -> Option<&'static str> {
        self.backbone.description.checkpoint.card?.licence.shown.as_deref()
    }

    /// The entry in the list of models.
    pub fn entry(&self, created: u64) -> Value {
        let description = &self.backbone.description;
        let sampling = &description.generation.sampling;
        let root = description.checkpoint.repository.clone();
        let folder = || {
            let name = description.checkpoint.directory.file_name();
            name.map(|name| name.to_string_lossy().into_owned())
        };
        json!({
            "id": self.id,
            "object": "model",
            "created": created,
            "owned_by": "wardround",
            "root": root.or_else(folder),
            "parent": null,
            "max_model_len": self.context(),
            "permission": [],
            "wardround": {
                "kind": "model",
                "family": description.config.family.name(),
                "weights_sha256": description.weights_sha256,
                "tokenizer_sha256": description.tokenizer_sha256,
                "template_sha256": description.chat.sha256,
                "config_sha256": description.config_sha256,
                "dtype": description.precision.stored.to_string(),
                "quantisation": description.precision.quantisation.to_string(),
                "kv_dtype": description.precision.kv.to_string(),
                "device_kind": self.device_kind,
                "sampling": {
                    "temperature": sampling.temperature,
                    "top_k": sampling.top_k,
                    "top_p": sampling.top_p,
                    "min_p": sampling.min_p,
                    "repetition_penalty": sampling.repetition_penalty,
                },
                "fingerprint": self.fingerprint,
                "synthetic": description.is_synthetic,
                "notice": self.notice(),
            },
        })
    }
}

impl Served {
    /// # Errors
    /// As of [`ServedSystem::new`].
    pub fn new(loaded: Loaded, metrics: &Metrics) -> Result<Served, Failure> {
        let kinds = loaded.encoders.iter().map(|encoder| &encoder.identity.device_kind);
        kinds.for_each(|kind| metrics.computes_on(kind));
        let models = loaded.models.into_iter();
        let models = models.map(|model| Arc::new(ServedModel::new(model, metrics))).collect();
        let alone = Served {
            models,
            systems: Vec::new(),
            encoders: loaded.encoders.into_iter().map(Arc::new).collect(),
            sandbox: loaded.sandbox,
        };
        let systems = loaded.systems.into_iter();
        let systems = systems.map(|system| Ok(Arc::new(ServedSystem::new(system, &alone)?)));
        let systems = systems.collect::<Result<_, Failure>>()?;
        Ok(Served { systems, ..alone })
    }

    /// The model of this name; without a name the only model.
    pub fn find(&self, name: Option<&str>) -> Result<&Arc<ServedModel>, ApiError> {
        self.pick(Kind::Model, self.models.iter().map(|model| (&*model.id, model)), name)
    }

    /// The encoder or the reranker of this name; without a name the only one.
    pub fn encoder(&self, kind: Kind, name: Option<&str>) -> Result<&Arc<ServedEncoder>, ApiError> {
        let own = self.encoders.iter().filter(|one| one.reader.kind() == kind);
        self.pick(kind, own.map(|one| (&*one.id, one)), name)
    }

    /// Of what is of a kind the one of this name; without a name the only one.
    fn pick<'a, T>(
        &self,
        kind: Kind,
        own: impl Iterator<Item = (&'a str, T)>,
        name: Option<&str>,
    ) -> Result<T, ApiError> {
        let mut own: Vec<(&str, T)> = own.collect();
        let place = match name {
            None => (own.len() == 1).then_some(0),
            Some(name) => own.iter().position(|(id, _)| *id == name),
        };
        match place {
            Some(place) => Ok(own.swap_remove(place).1),
            None => Err(self.missing(kind, !own.is_empty(), name)),
        }
    }

    /// The error for a request whose model is not there, or of another kind; it says what there is.
    fn missing(&self, wanted: Kind, has_any: bool, name: Option<&str>) -> ApiError {
        let models = self.models.iter().map(|model| (&*model.id, Kind::Model));
        let systems = self.systems.iter().map(|system| (&*system.id, Kind::System));
        let encoders = self.encoders.iter().map(|encoder| (&*encoder.id, encoder.reader.kind()));
        let all: Vec<(&str, Kind)> = models.chain(systems).chain(encoders).collect();
        let named = |(id, kind): &(&str, Kind)| match kind {
            Kind::Model | Kind::System => (*id).to_owned(),
            kind => format!("{id} ({})", kind.name()),
        };
        let names = all.iter().map(named).collect::<Vec<_>>().join(", ");
        let found = name.and_then(|name| all.iter().find(|(id, _)| *id == name));
        let (code, problem) = match (name, found) {
            (None, _) if has_any => (Code::MissingParameter, "model is missing".to_owned()),
            (None, _) => {
                let problem = format!("this takes {}, and none is served", wanted.one());
                (Code::ModelNotFound, problem)
            }
            (Some(_), Some((id, kind))) => {
                let problem = format!("{id} is {}, which takes {} alone", kind.one(), kind.takes());
                (Code::ModelNotFound, problem)
            }
            (Some(name), None) => {
                (Code::ModelNotFound, format!("there is no model {}", quoted(name)))
            }
        };
        ApiError::of(code, "model", format!("{problem}; there are {names}"))
    }

    /// The size of all KV caches in tokens; of an encoder, which has none, the most tokens of a request.
    pub fn kv_tokens(&self) -> usize {
        let caches: usize = self.models.iter().map(|model| model.pages * PAGE).sum();
        caches + self.encoders.len() * MOST_TOKENS
    }

    /// The error of an engine that died, if any.
    pub fn failure(&self) -> Option<EngineError> {
        self.models.iter().find_map(|model| model.backbone.engine.failure())
    }
}
