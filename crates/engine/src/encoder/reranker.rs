//! How well documents answer a query: one score a pair, the logit of a classifier.

use std::sync::Arc;

use super::bert::{Classifier, Network, bert_config, load};
use super::card::{EncoderCard, EncoderOutput};
use super::folder::Folder;
use super::tokens::Tokens;
use super::vector::pool;
use super::{EncoderError, EncoderOptions, Pair, expect_finite};

/// A reranker. Its scores do not depend on the pairs beside them.
pub struct Reranker {
    network: Arc<dyn Network>,
    classifier: Classifier,
    width: usize,
    tokens: Tokens,
    card: EncoderCard,
}

impl Reranker {
    pub fn open(options: &EncoderOptions) -> Result<Reranker, EncoderError> {
        let folder = Folder::of(options)?;
        let card = EncoderCard::read(&folder, options.known)?;
        card.expect_score(&folder, true)?;
        let config = bert_config(&folder)?;
        let tokens = Tokens::read(&folder, &config, card.document_tokens, options)?;
        let width = config.hidden_size;
        let classifier = Classifier::read(&folder, width)?;
        let network = load(&folder, config, options)?;
        Ok(Reranker { network, classifier, width, tokens, card })
    }

    /// Of each pair a logit: higher is better.
    pub fn score(&self, pairs: &[Pair<'_>]) -> Result<Vec<f32>, EncoderError> {
        let sequence = |pair: &Pair<'_>| {
            let query = self.card.query_text(pair.query);
            let document = self.card.document_text(pair.title, pair.text);
            self.tokens.pair(&query, &document)
        };
        let sequences = pairs.iter().map(sequence).collect::<Result<Vec<_>, _>>()?;
        let scores = self.network.run(&sequences, &|states| {
            self.classifier.score(&pool(states, self.width, EncoderOutput::OneLogit))
        })?;
        let scores = scores.iter().flatten().map(|score| [*score as f32]).collect();
        Ok(expect_finite(scores)?.concat())
    }
}

/// The logistic function of a reranker's score, which makes equals of great ones.
pub fn between_0_and_1(score: f32) -> f32 {
    (1.0 / (1.0 + libm::exp(-f64::from(score)))) as f32
}
