//! A linear layer after the mean, as sentence-transformers' `Dense` module keeps it in a folder of its own.

use serde_json::Value;

use super::EncoderError;
use super::folder::{CONFIG, Folder};
use super::vector::multiply;

/// Its activation is none.
const IDENTITY: &str = "torch.nn.modules.linear.Identity";
/// No layer is wider.
const MOST: u64 = 1 << 16;

/// `[outputs][inputs]`.
pub(super) struct Linear {
    pub(super) weight: Vec<f32>,
    pub(super) bias: Option<Vec<f32>>,
}

impl Linear {
    /// # Errors
    /// A file that is missing or damaged; another activation; a layer that does not take `inputs` numbers.
    pub(super) fn read(folder: &Folder, inputs: usize) -> Result<Linear, EncoderError> {
        let config: Value = folder.json(CONFIG)?;
        folder.expect(&config, "activation_function", IDENTITY)?;
        folder.expect(&config, "in_features", inputs)?;
        let outputs = config["out_features"].as_u64().filter(|outputs| (1..MOST).contains(outputs));
        let outputs = outputs.ok_or_else(|| {
            folder.unsupported(
                CONFIG,
                "out_features",
                &config["out_features"].to_string(),
                "a width",
            )
        })?;
        let outputs = outputs as usize;
        folder.weights("", |weights| {
            let bias = match config["bias"] == true {
                true => Some(weights.get(outputs, "linear.bias")?.to_vec1()?),
                false => None,
            };
            let weight = weights.get((outputs, inputs), "linear.weight")?;
            Ok(Linear { weight: weight.flatten_all()?.to_vec1()?, bias })
        })
    }

    /// Numbers of what it makes of `inputs` numbers.
    pub(super) fn outputs(&self, inputs: usize) -> usize {
        self.weight.len() / inputs
    }

    pub(super) fn apply(&self, vector: &[f64]) -> Vec<f64> {
        multiply(&self.weight, self.bias.as_deref(), vector)
    }
}
