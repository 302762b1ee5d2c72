//! The memory that an encoder or a reranker takes, computed from its folder before it is loaded.

use super::causal::logit_rows;
use super::folder::Folder;
use super::form::Form;
use super::network::Described;
use super::{EncoderError, EncoderOptions};
use crate::model::Footprint;
use crate::ops::StepLimits;

/// Weights, and the most that a step takes at a time. What reading BERT's files takes for a moment counts as scratch.
pub fn footprint(options: &EncoderOptions) -> Result<Footprint, EncoderError> {
    let form = Form::read(&options.directory, options.known)?;
    let queries = form.card.query_folder.as_ref().map(|name| form.folder.subfolder(name));
    let queries = queries.transpose()?;
    let mut whole = Footprint::default();
    for folder in std::iter::once(&form.folder).chain(&queries) {
        let own = of_folder(folder, &form, options)?;
        whole.weights += own.weights;
        whole.kv += own.kv;
        whole.scratch += own.scratch;
    }
    for folder in &form.dense {
        whole.weights += file_bytes(folder)?;
    }
    Ok(whole)
}

fn of_folder(
    folder: &Folder,
    form: &Form,
    options: &EncoderOptions,
) -> Result<Footprint, EncoderError> {
    let described = Described::read(folder)?;
    let longest = form.card.query_tokens.max(form.card.document_tokens);
    let precision = described.precision(folder, options)?;
    let machine = options.device.machine();
    let limit = Form::cut_at(longest, options.max_tokens, described.positions());
    let rows = machine.prefill_rows().max(limit);
    Ok(match &described {
        Described::Bert(config) => {
            let own = Footprint::of_bert(config, precision, machine, rows);
            Footprint { scratch: own.scratch.max(file_bytes(folder)?), ..own }
        }
        Described::Decoder(config) => {
            let config = crate::model::Config { tied_embeddings: true, ..config.clone() };
            let limits = StepLimits { rows, logit_rows: rows, positions: limit };
            let logit_rows = logit_rows(form.card.output);
            Footprint::of_encoder(&config, precision, machine, limits, logit_rows)
        }
    })
}

/// Of the files of weights.
fn file_bytes(folder: &Folder) -> Result<usize, EncoderError> {
    let mut bytes = 0;
    for path in folder.weight_files()? {
        bytes += fs_err::metadata(path)?.len() as usize;
    }
    Ok(bytes)
}
