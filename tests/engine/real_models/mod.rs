//! Three small real models, where `WARDROUND_REAL_MODELS` names the folder that has them: smollm2 (SmolLM2-135M-Instruct), gemma3-270m
//! (the base model) and minilm (all-MiniLM-L6-v2). They write as models write, which random weights do not.

mod decoders;
mod encoder;

use crate::common;

/// The folder of one of the models.
fn real_model(name: &str) -> std::path::PathBuf {
    let models = std::env::var_os("WARDROUND_REAL_MODELS");
    std::path::PathBuf::from(models.expect("WARDROUND_REAL_MODELS names a folder")).join(name)
}

/// What a reference makes of it (`tests/goldens/real_models.py`).
fn golden(name: &str) -> serde_json::Value {
    common::golden::read(&common::goldens().join("real_models").join(format!("{name}.json")))
}
