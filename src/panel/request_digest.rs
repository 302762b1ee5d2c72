//! The hash of everything that determines a completion, by which a store of calls knows it again.

use sha2::{Digest, Sha256};

use crate::engine::{Constraint, Grammar, Request, Sampling};

/// The sha256, in hex, of everything that determines a completion: the backbone's `identity` and the request. Numbers are hashed as
/// little-endian bytes and texts after their length, so that no two requests share an encoding.
pub fn digest(identity: &str, request: &Request) -> String {
    let mut hasher = Sha256::new();
    let mut text = |text: &str| {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    };
    text(identity);
    let Sampling { temperature, top_k, top_p, min_p, repetition_penalty, .. } = request.sampling;
    text(&format!("{temperature:?} {top_k:?} {top_p:?} {min_p:?} {repetition_penalty:?}"));
    match &request.constraint {
        None => text("free"),
        Some(Constraint { grammar, after }) => {
            let (kind, source) = match grammar {
                Grammar::JsonObject => ("object", ""),
                Grammar::JsonSchema(source) => ("schema", source.as_str()),
                Grammar::Regex(source) => ("regex", source.as_str()),
                Grammar::Lark(source) => ("lark", source.as_str()),
            };
            text(&format!("{kind} after {after:?}"));
            text(source);
        }
    }
    text(&request.stop.strings.len().to_string());
    for string in &request.stop.strings {
        text(string);
    }
    let numbers = |hasher: &mut Sha256, ids: &[u32]| {
        hasher.update((ids.len() as u64).to_le_bytes());
        ids.iter().for_each(|id| hasher.update(id.to_le_bytes()));
    };
    numbers(&mut hasher, &request.stop.ids);
    numbers(&mut hasher, &request.tokens);
    hasher.update(request.seed.to_le_bytes());
    hasher.update((request.max_tokens as u64).to_le_bytes());
    // Parameters that most requests leave at their defaults are hashed only where they are set.
    let Sampling { frequency_penalty, presence_penalty, .. } = request.sampling;
    let (bias, min_tokens) = (&request.logit_bias, request.min_tokens);
    let penalties = (frequency_penalty.is_some() || presence_penalty.is_some())
        .then(|| format!("penalties {frequency_penalty:?} {presence_penalty:?}"));
    let bias = (!bias.is_empty()).then(|| format!("bias {bias:?}"));
    let min_tokens = (min_tokens > 0).then(|| format!("at least {min_tokens}"));
    let stops_after = request.stop.after.map(|after| format!("stops after {after}: []"));
    for set in [penalties, bias, min_tokens, stops_after].into_iter().flatten() {
        hasher.update((set.len() as u64).to_le_bytes());
        hasher.update(set);
    }
    crate::digest::hex(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::engine::Stop;

    #[test]
    fn whatever_changes_an_answer_changes_the_digest() {
        let base = Request { tokens: vec![1, 2, 3], seed: 7, max_tokens: 9, ..Request::default() };
        let constrained = |grammar, after| Request {
            constraint: Some(Constraint { grammar, after }),
            ..base.clone()
        };
        let stops = |ids: &[u32], strings: &[&str]| Request {
            stop: Stop {
                ids: ids.to_vec(),
                strings: strings.iter().map(|text| text.to_string()).collect(),
                ..Stop::default()
            },
            ..base.clone()
        };
        let sampled = |sampling| Request { sampling, ..base.clone() };
        let variants = [
            base.clone(),
            Request { seed: 8, ..base.clone() },
            Request { max_tokens: 10, ..base.clone() },
            Request { tokens: vec![1, 2], ..base.clone() },
            stops(&[3], &[]),
            stops(&[], &["a"]),
            stops(&[], &["a", ""]),
            Request { stop: Stop { after: Some(9), ..stops(&[], &["a"]).stop }, ..base.clone() },
            constrained(Grammar::JsonObject, None),
            constrained(Grammar::Regex("a".into()), None),
            constrained(Grammar::Lark("a".into()), None),
            constrained(Grammar::Regex("a".into()), Some(1)),
            sampled(Sampling { temperature: 0.5, ..Sampling::default() }),
            sampled(Sampling { top_k: Some(1), ..Sampling::default() }),
            sampled(Sampling { repetition_penalty: Some(1.5), ..Sampling::default() }),
            sampled(Sampling { frequency_penalty: Some(1.5), ..Sampling::default() }),
            sampled(Sampling { presence_penalty: Some(1.5), ..Sampling::default() }),
            Request { logit_bias: vec![(1, 2.0)], ..base.clone() },
            Request { logit_bias: vec![(1, -2.0)], ..base.clone() },
            Request { logit_bias: vec![(1, 2.0), (2, 2.0)], ..base.clone() },
            Request { min_tokens: 1, ..base.clone() },
        ];
        let digests: HashSet<String> =
            variants.iter().map(|request| digest("weights", request)).collect();
        assert_eq!(digests.len(), variants.len());
        assert_ne!(digest("others", &base), digest("weights", &base));
        assert_eq!(digest("weights", &base), digest("weights", &base.clone()));
    }
}
