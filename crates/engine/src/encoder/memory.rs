//! The memory that an encoder or a reranker takes, computed from its folder before it is loaded.

use super::bert::bert_config;
use super::card::{EncoderCard, cut_at};
use super::folder::Folder;
use super::{EncoderError, EncoderOptions};
use crate::model::Footprint;

/// Weights, and the most that a step takes at a time. What reading the files takes for a moment counts as scratch.
pub fn footprint(options: &EncoderOptions) -> Result<Footprint, EncoderError> {
    let documents = Folder::of(options)?;
    let card = EncoderCard::read(&documents, options.known)?;
    let queries = card.query_folder.as_ref().map(|name| documents.subfolder(name)).transpose()?;
    let mut whole = Footprint::default();
    for folder in std::iter::once(&documents).chain(&queries) {
        let own = of_folder(folder, &card, options)?;
        whole.weights += own.weights;
        whole.kv += own.kv;
        whole.scratch += own.scratch;
    }
    Ok(whole)
}

fn of_folder(
    folder: &Folder,
    card: &EncoderCard,
    options: &EncoderOptions,
) -> Result<Footprint, EncoderError> {
    let config = bert_config(folder)?;
    let longest = card.query_tokens.max(card.document_tokens);
    let machine = options.device.machine();
    let limit = cut_at(longest, options.max_tokens, config.max_position_embeddings);
    let rows = machine.prefill_rows().max(limit);
    let own = Footprint::of_bert(&config, options.precision(), machine, rows);
    let file = folder.path().join(folder.weight_file()?);
    let file_bytes = fs_err::metadata(file)?.len() as usize;
    Ok(Footprint { scratch: own.scratch.max(file_bytes), ..own })
}
