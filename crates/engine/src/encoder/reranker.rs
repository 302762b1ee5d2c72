//! How well documents answer a query: one score a pair, by a classifier or by the probability of `yes`.

use super::bert::Classifier;
use super::card::{EncoderCard, EncoderOutput};
use super::folder::{Folder, TOKENIZER};
use super::form::{Form, document_text, query_text};
use super::identity::Particulars;
use super::network::{Described, Network, Place};
use super::tokens::{Sequence, Tokens};
use super::vector::pool;
use super::{EncoderError, EncoderIdentity, EncoderOptions, Pair, expect_finite};

/// A reranker. Its scores do not depend on the pairs beside them.
pub struct Reranker {
    network: Box<dyn Network>,
    judge: Judge,
    tokens: Tokens,
    card: EncoderCard,
}

/// How states become a score.
enum Judge {
    Classifier {
        classifier: Classifier,
        width: usize,
    },
    /// The tokens whose logits are compared.
    YesNo {
        yes: u32,
        no: u32,
    },
}

impl Reranker {
    /// # Errors
    /// A file that is missing or damaged; weights that do not fit the config; a folder of an encoder.
    pub fn open(options: &EncoderOptions) -> Result<Reranker, EncoderError> {
        let form = Form::read(&options.directory, options.known)?;
        form.expect_score(true)?;
        let folder = &form.folder;
        let described = Described::read(folder)?;
        let tokens = Tokens::read(folder, &described, form.card.document_tokens, options)?;
        let limit = tokens.max_tokens();
        let output = form.card.output;
        let judge = match output {
            EncoderOutput::YesNo => Judge::yes_no(folder, &tokens)?,
            _ => Judge::Classifier {
                classifier: Classifier::read(folder, described.width())?,
                width: described.width(),
            },
        };
        let precision = described.precision(folder, options)?;
        let network =
            described.load(folder, output, limit, &Place { precision, device: &options.device })?;
        Ok(Reranker { network, judge, tokens, card: form.card })
    }

    /// What the scores of a reranker depend on that is opened so. Its files are summed, which opening does without.
    pub fn identity(options: &EncoderOptions) -> Result<EncoderIdentity, EncoderError> {
        let form = Form::read(&options.directory, options.known)?;
        let described = Described::read(&form.folder)?;
        let limit = form.card.document_tokens;
        let limit = Form::cut_at(limit, options.max_tokens, described.positions());
        let particulars = Particulars {
            known: options.known,
            dims: 1,
            width: 1,
            query_tokens: limit,
            document_tokens: limit,
            precision: described.precision(&form.folder, options)?,
            device: &options.device,
            queries: None,
        };
        EncoderIdentity::of(&form, &particulars)
    }

    /// Of each pair, higher is better: a logit, or where [`Reranker::is_one_logit`] is false a probability.
    pub fn score(&self, pairs: &[Pair<'_>]) -> Result<Vec<f32>, EncoderError> {
        let sequences: Vec<Sequence> =
            pairs.iter().map(|pair| self.sequence(pair)).collect::<Result<_, _>>()?;
        self.score_sequences(&sequences)
    }

    /// The same of what is read of pairs.
    pub fn score_sequences(&self, pairs: &[Sequence]) -> Result<Vec<f32>, EncoderError> {
        let scores = self.network.run(pairs, &|states| match &self.judge {
            Judge::Classifier { classifier, width } => {
                classifier.score(&pool(states, *width, EncoderOutput::Cls))
            }
            Judge::YesNo { yes, no } => {
                let [yes, no] = [yes, no].map(|token| f64::from(states[*token as usize]));
                vec![1.0 / (1.0 + libm::exp(no - yes))]
            }
        })?;
        let scores = scores.iter().flatten().map(|score| [*score as f32]).collect();
        Ok(expect_finite(scores)?.concat())
    }

    /// A score between 0 and 1: a probability as it is, the logistic function of a logit, which makes equals of great ones.
    pub fn between_0_and_1(&self, score: f32) -> f32 {
        match self.is_one_logit() {
            true => (1.0 / (1.0 + libm::exp(-f64::from(score)))) as f32,
            false => score,
        }
    }

    /// Whether scores are logits, which a sigmoid brings between 0 and 1.
    pub fn is_one_logit(&self) -> bool {
        self.card.output == EncoderOutput::OneLogit
    }

    /// Pairs are cut at so many tokens: of a classifier's the longer part first, else the end.
    pub fn max_tokens(&self) -> usize {
        self.tokens.max_tokens()
    }

    /// What is read of a pair.
    ///
    /// # Errors
    /// A text that cannot be tokenised.
    pub fn sequence(&self, pair: &Pair<'_>) -> Result<Sequence, EncoderError> {
        let query = query_text(&self.card, pair.query);
        let document = document_text(&self.card, pair.title, pair.text);
        match self.judge {
            Judge::Classifier { .. } => self.tokens.pair(&query, &document),
            Judge::YesNo { .. } => {
                self.tokens.framed(&self.card.prefix, &(query + &document), &self.card.suffix)
            }
        }
    }
}

impl Judge {
    fn yes_no(folder: &Folder, tokens: &Tokens) -> Result<Judge, EncoderError> {
        let id = |text: &str| {
            let id = tokens.id(text);
            id.ok_or_else(|| {
                folder.bad_tokenizer(TOKENIZER, &format!("`{text}` is no token of it"))
            })
        };
        Ok(Judge::YesNo { yes: id("yes")?, no: id("no")? })
    }
}
