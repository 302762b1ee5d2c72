//! How well documents answer a query: one score a pair, by a classifier or by the probability of `yes`.

use super::form::{Form, document_text, query_text};
use super::identity::{EncoderIdentity, Particulars};
use super::network::{Head, Loading, Network, bert_config, load_bert};
use super::tokens::{Sequence, Tokens};
use super::vector::pool;
use super::{EncoderError, EncoderOptions, Pair, bert_precision};
use crate::hub::{EncoderCard, EncoderOutput};

/// A reranker. Its scores do not depend on the pairs beside them.
pub struct Reranker {
    network: Box<dyn Network>,
    head: Head,
    tokens: Tokens,
    card: EncoderCard,
    identity: EncoderIdentity,
}

impl Reranker {
    /// # Errors
    /// A file that is missing or damaged; weights that do not fit the config; a folder of an encoder.
    pub fn open(options: &EncoderOptions) -> Result<Reranker, EncoderError> {
        let form = Form::read(&options.directory, options.card)?;
        form.expect_score(true)?;
        let config = bert_config(&form.folder)?;
        let positions = config.max_position_embeddings;
        let limit = Form::cut_at(form.card.document_tokens, options.max_tokens, positions);
        let tokens = Tokens::read(&form.folder, config.vocab_size, limit)?;
        let precision = bert_precision(options.precision());
        let loading = Loading { folder: &form.folder, precision, device: &options.device };
        let (network, head) = load_bert(&loading, config, true)?;
        let Some(head) = head else {
            return Err(form.folder.wrong("", "has no classifier"));
        };
        let particulars = Particulars {
            card: options.card,
            dims: 1,
            width: 1,
            query_tokens: limit,
            document_tokens: limit,
            precision,
            device: &options.device,
            queries: None,
        };
        let identity = EncoderIdentity::of(&form, &particulars)?;
        Ok(Reranker { network, head, tokens, card: form.card, identity })
    }

    /// Of each pair, higher is better: a logit, or where [`Reranker::is_one_logit`] is false a probability.
    ///
    /// # Errors
    /// A pair cannot be tokenised; the machine fails.
    pub fn score(&self, pairs: &[Pair<'_>]) -> Result<Vec<f32>, EncoderError> {
        let sequences: Vec<Sequence> =
            pairs.iter().map(|pair| self.sequence(pair)).collect::<Result<_, _>>()?;
        let width = self.network.width();
        let scores = self.network.run(&sequences, &|states| {
            let first = pool(states, width, EncoderOutput::OneLogit);
            let Head { pooler, classifier } = &self.head;
            let mut pooled = pooler.apply(&first);
            pooled.iter_mut().for_each(|number| *number = libm::tanh(*number));
            classifier.apply(&pooled)
        })?;
        Ok(scores.iter().flatten().map(|score| *score as f32).collect())
    }

    /// Whether scores are logits, which a sigmoid brings between 0 and 1.
    pub fn is_one_logit(&self) -> bool {
        self.card.output == EncoderOutput::OneLogit
    }

    pub fn identity(&self) -> &EncoderIdentity {
        &self.identity
    }

    /// Pairs are cut at so many tokens, the longer part first.
    pub fn max_tokens(&self) -> usize {
        self.tokens.max_tokens()
    }

    fn sequence(&self, pair: &Pair<'_>) -> Result<Sequence, EncoderError> {
        let query = query_text(&self.card, pair.query);
        self.tokens.pair(&query, &document_text(&self.card, pair.title, pair.text))
    }
}
