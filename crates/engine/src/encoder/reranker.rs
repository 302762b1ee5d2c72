//! How well documents answer a query: one score a pair, the logit of a classifier.

use std::sync::Arc;

use super::bert::{Classifier, Network, bert_config, load};
use super::card::{EncoderCard, EncoderOutput, cut_at};
use super::folder::Folder;
use super::tokens::{Sequence, Tokens};
use super::vector::pool;
use super::{EncoderError, EncoderIdentity, EncoderOptions, Pair, expect_finite};

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

    /// What the scores of a reranker depend on that is opened so. Its files are summed, which opening does without.
    pub fn identity(options: &EncoderOptions) -> Result<EncoderIdentity, EncoderError> {
        let folder = Folder::of(options)?;
        let card = EncoderCard::read(&folder, options.known)?;
        let positions = bert_config(&folder)?.max_position_embeddings;
        let limit = cut_at(card.document_tokens, options.max_tokens, positions);
        EncoderIdentity::of((&folder, &card), options, [1, 1], [limit, limit], None)
    }

    /// Of each pair a logit: higher is better.
    pub fn score(&self, pairs: &[Pair<'_>]) -> Result<Vec<f32>, EncoderError> {
        let sequences: Vec<Sequence> =
            pairs.iter().map(|pair| self.sequence(pair)).collect::<Result<_, _>>()?;
        self.score_sequences(&sequences)
    }

    /// The same of what is read of pairs.
    pub fn score_sequences(&self, pairs: &[Sequence]) -> Result<Vec<f32>, EncoderError> {
        let scores = self.network.run(pairs, &|states| {
            self.classifier.score(&pool(states, self.width, EncoderOutput::OneLogit))
        })?;
        let scores = scores.iter().flatten().map(|score| [*score as f32]).collect();
        Ok(expect_finite(scores)?.concat())
    }

    /// Pairs are cut at so many tokens, the longer part first.
    pub fn max_tokens(&self) -> usize {
        self.tokens.max_tokens()
    }

    /// What is read of a pair.
    pub fn sequence(&self, pair: &Pair<'_>) -> Result<Sequence, EncoderError> {
        let query = self.card.query_text(pair.query);
        let document = self.card.document_text(pair.title, pair.text);
        self.tokens.pair(&query, &document)
    }
}

/// The logistic function of a reranker's score, which makes equals of great ones.
pub fn between_0_and_1(score: f32) -> f32 {
    (1.0 / (1.0 + libm::exp(-f64::from(score)))) as f32
}
