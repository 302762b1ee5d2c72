//! The served systems, which clients use like models: their agents and the agents' models.

use std::sync::Arc;

use serde_json::{Value, json};

use super::models::{Kind, ModelEntry, Served, ServedModel, refuse_length};
use crate::data::ItemKind;
use crate::experiment::case::Seated;
use crate::serve::error::ApiError;

pub struct ServedSystem {
    pub id: String,
    pub seated: Seated,
    models: Vec<String>,
    /// The smallest context of its models, in tokens.
    context: Option<usize>,
    /// Systems with equal fingerprints answer equal requests with equal bytes.
    pub fingerprint: String,
    pub is_synthetic: bool,
}

impl ServedSystem {
    /// `models` are the names of each seat's model in the API, which `served` has.
    pub fn new(seated: Seated, models: Vec<String>, served: &[Arc<ServedModel>]) -> ServedSystem {
        let named = |name: &String| served.iter().find(|model| model.id == *name);
        let own = || models.iter().filter_map(named);
        let fingerprints: Vec<&str> = own().map(|model| model.fingerprint.as_str()).collect();
        let context = own().map(|model| model.context()).min();
        let mut seats = seated.seats.iter();
        ServedSystem {
            id: seated.config.entry.name.to_owned(),
            fingerprint: seated.fingerprint(&fingerprints),
            is_synthetic: seats.all(|seat| seat.backbone.description.is_synthetic),
            seated,
            models,
            context,
        }
    }

    /// Refuses a text that cannot fit into a context by its length alone: before it is parsed or tokenised, which takes time.
    pub fn refuse_length(&self, text: &str, param: &str) -> Result<(), ApiError> {
        self.context.map_or(Ok(()), |context| refuse_length(text.len(), context, param))
    }

    pub fn takes(&self) -> ItemKind {
        self.seated.config.entry.takes
    }

    /// The agents and their models.
    pub fn seats(&self) -> Vec<Value> {
        let seats = self.seated.seats.iter().zip(&self.models);
        seats.map(|(seat, model)| json!({"agent": seat.plan.agent, "model": model})).collect()
    }

    /// The entry in the list of models.
    pub fn entry(&self) -> ModelEntry {
        let own = json!({
            "kind": "system",
            "takes": self.takes().to_string(),
            "seats": self.seats(),
            "settings": self.seated.config.table,
            "prompts_sha256": self.seated.prompts_sha256,
            "fingerprint": self.fingerprint,
            "synthetic": self.is_synthetic,
        });
        ModelEntry::new(&self.id, Some(self.id.clone()), self.context, own)
    }
}

impl Served {
    pub fn system(&self, name: &str) -> Option<&Arc<ServedSystem>> {
        self.systems.iter().find(|system| system.id == name)
    }

    /// The system of this name, or else the first one, of those that take notes.
    ///
    /// # Errors
    /// An unknown system, one for other items, or none for notes.
    pub fn note_system(&self, name: Option<&str>) -> Result<&Arc<ServedSystem>, ApiError> {
        let mut fitting = self.systems.iter().filter(|system| system.takes() == ItemKind::Notes);
        let found = fitting.find(|system| name.is_none_or(|name| system.id == name));
        found.ok_or_else(|| self.missing(Kind::System, name).at("system"))
    }
}
