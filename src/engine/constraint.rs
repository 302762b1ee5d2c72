//! Grammars over a model's own vocabulary: which tokens may come next, and which must.

use std::collections::HashMap;
use std::sync::Arc;

use llguidance::api::{StopReason, TopLevelGrammar};
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{
    InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv,
};
use llguidance::{Matcher, ParserFactory};

use super::EngineError;
use crate::record::Grammar;
use crate::tokenizer::{Piece, Tokenizer};

/// What a completion must look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    pub grammar: Grammar,
    /// A token that must have come before the grammar holds: the end of a `<think>` section.
    pub after: Option<u32>,
}

/// Compiles grammars for one model; each is compiled once.
pub struct Compiler {
    factory: ParserFactory,
    compiled: HashMap<Grammar, Matcher>,
}

/// The model's tokenizer as llguidance wants it: canonical, so that dictated text becomes the tokens that the
/// tokenizer itself would make of it, and can be forced.
struct Environment {
    tokenizer: Arc<Tokenizer>,
    trie: TokTrie,
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie
            .tokenize_with_greedy_fallback(bytes, |text| match self.tokenizer.encode(text) {
                Ok(ids) => ids,
                Err(_) => self.trie.greedy_tokenize(text.as_bytes()),
            })
    }
}

impl Compiler {
    /// For a model of `vocab_size` rows, of which those without a token are never allowed.
    ///
    /// # Errors
    /// When the vocabulary has no end-of-turn token, or llguidance cannot use it.
    pub fn new(
        tokenizer: Arc<Tokenizer>,
        vocab_size: usize,
        eos_ids: &[u32],
    ) -> Result<Compiler, EngineError> {
        let eos = *eos_ids
            .first()
            .ok_or_else(|| EngineError::Grammar("the model has no end-of-turn id".into()))?;
        let mut words: Vec<Vec<u8>> = tokenizer.pieces().iter().map(word).collect();
        words.resize(vocab_size, Vec::new());
        let info = TokRxInfo::new(vocab_size as u32, eos);
        let trie = TokTrie::from(&info, &words).with_eos_tokens(eos_ids);
        let environment: TokEnv = Arc::new(Environment { tokenizer, trie });
        let capabilities = InferenceCapabilities {
            ff_tokens: true,
            ..InferenceCapabilities::default()
        };
        let slices = SlicedBiasComputer::json_slices();
        let mut factory =
            ParserFactory::new(&environment, capabilities, &slices).map_err(refuse)?;
        factory.quiet();
        Ok(Compiler {
            factory,
            compiled: HashMap::new(),
        })
    }

    /// A fresh state at the start of `grammar`. Nothing in it is shared: no other sequence's cache decides here.
    ///
    /// # Errors
    /// When the grammar does not compile.
    pub fn start(&mut self, grammar: &Grammar) -> Result<State, EngineError> {
        if !self.compiled.contains_key(grammar) {
            let top = match grammar {
                Grammar::JsonSchema(text) => {
                    let schema = serde_json::from_str::<serde_json::Value>(text).map_err(refuse)?;
                    TopLevelGrammar::from_json_schema(schema)
                }
                Grammar::Regex(text) => TopLevelGrammar::from_regex(text),
                Grammar::Lark(text) => TopLevelGrammar::from_lark(text.clone()),
            };
            let matcher = Matcher::new(self.factory.create_parser(top));
            if let Some(problem) = matcher.get_error() {
                return Err(EngineError::Grammar(problem));
            }
            self.compiled.insert(grammar.clone(), matcher);
        }
        Ok(State {
            matcher: self.compiled[grammar].deep_clone(),
        })
    }
}

fn refuse(error: impl ToString) -> EngineError {
    EngineError::Grammar(error.to_string())
}

/// A token's bytes in the trie; a control token is its name behind a byte that no text has.
fn word(piece: &Piece) -> Vec<u8> {
    match piece {
        Piece::Text(bytes) => bytes.clone(),
        Piece::Control(name) => [&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat(),
        Piece::Absent => Vec::new(),
    }
}

/// How far one sequence is in its grammar.
pub struct State {
    matcher: Matcher,
}

impl State {
    /// The tokens that the grammar dictates from here, taken.
    pub fn force(&mut self) -> Vec<u32> {
        self.matcher.consume_ff_tokens()
    }

    /// Takes a sampled token; `false` when the grammar cannot (it is dead, or a limit was exceeded).
    pub fn accept(&mut self, token: u32) -> bool {
        self.matcher.consume_token(token).is_ok()
    }

    /// A bit a token: what the grammar allows of what is `present`; `None` when it cannot say any more.
    pub fn allowed(&mut self, present: &[u32]) -> Option<Arc<[u32]>> {
        let allowed = self.matcher.compute_mask().ok()?;
        let words = allowed.as_slice().iter().zip(present);
        Some(words.map(|(allowed, present)| allowed & present).collect())
    }

    /// Whether the grammar is complete and nothing can follow. One that failed is not.
    pub fn is_complete(&self) -> bool {
        matches!(
            self.matcher.stop_reason(),
            StopReason::NoExtension | StopReason::EndOfSentence
        )
    }

    /// Why the grammar failed, if it did.
    pub fn problem(&self) -> Option<String> {
        self.matcher.get_error()
    }
}
