//! Grammars over a model's own vocabulary: which tokens may come next, and which must.

use std::sync::Arc;

use llguidance::api::{StopReason, TopLevelGrammar};
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{
    InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv,
};
use llguidance::{Matcher, ParserFactory};
use serde_json::json;

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

/// Compiled grammars that are kept: a panel asks under a few at a time, a run of notes under one or more a note.
const KEPT_GRAMMARS: usize = 64;

/// Compiles grammars for one model and keeps the most recently used ones. Nothing is built before a grammar is asked for.
pub struct Compiler {
    tokenizer: Arc<Tokenizer>,
    /// Rows of the model's embedding table; those without a token are never allowed.
    vocab_size: usize,
    eos_ids: Vec<u32>,
    factory: Option<ParserFactory>,
    /// The most recently used one last.
    compiled: Vec<(Grammar, Matcher)>,
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
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            let encoded = self.tokenizer.encode_writing(text);
            encoded.unwrap_or_else(|_| self.trie.greedy_tokenize(text.as_bytes()))
        })
    }
}

impl Compiler {
    pub fn new(tokenizer: Arc<Tokenizer>, vocab_size: usize, eos_ids: &[u32]) -> Compiler {
        Compiler {
            tokenizer,
            vocab_size,
            eos_ids: eos_ids.to_vec(),
            factory: None,
            compiled: Vec::new(),
        }
    }

    /// With the trie of the whole vocabulary.
    fn factory(&self) -> Result<ParserFactory, EngineError> {
        let eos = *self
            .eos_ids
            .first()
            .ok_or_else(|| EngineError::Grammar("the model has no end-of-turn id".into()))?;
        let mut words: Vec<Vec<u8>> = self.tokenizer.pieces().iter().map(word).collect();
        words.resize(self.vocab_size, Vec::new());
        let info = TokRxInfo::new(self.vocab_size as u32, eos);
        let trie = TokTrie::from(&info, &words).with_eos_tokens(&self.eos_ids);
        let tokenizer = self.tokenizer.clone();
        let environment: TokEnv = Arc::new(Environment { tokenizer, trie });
        let capabilities =
            InferenceCapabilities { ff_tokens: true, ..InferenceCapabilities::default() };
        let slices = SlicedBiasComputer::json_slices();
        let mut factory =
            ParserFactory::new(&environment, capabilities, &slices).map_err(refuse)?;
        factory.quiet();
        Ok(factory)
    }

    /// A fresh state at the start of `grammar`. Nothing in it is shared: no other sequence's cache decides here.
    ///
    /// # Errors
    /// When the grammar does not compile, or the model has no end-of-turn token.
    pub fn start(&mut self, grammar: &Grammar) -> Result<State, EngineError> {
        let known = self.compiled.iter().position(|(known, _)| known == grammar);
        let entry = match known {
            Some(index) => self.compiled.remove(index),
            None => (grammar.clone(), self.compile(grammar)?),
        };
        let matcher = entry.1.deep_clone();
        if self.compiled.len() == KEPT_GRAMMARS {
            self.compiled.remove(0);
        }
        self.compiled.push(entry);
        Ok(State { matcher })
    }

    fn compile(&mut self, grammar: &Grammar) -> Result<Matcher, EngineError> {
        let top = match grammar {
            Grammar::JsonObject => TopLevelGrammar::from_json_schema(json!({"type": "object"})),
            Grammar::JsonSchema(text) => {
                let schema = serde_json::from_str::<serde_json::Value>(text).map_err(refuse)?;
                TopLevelGrammar::from_json_schema(schema)
            }
            Grammar::Regex(text) => TopLevelGrammar::from_regex(text),
            Grammar::Lark(text) => TopLevelGrammar::from_lark(text.clone()),
        };
        let factory = match &self.factory {
            Some(factory) => factory,
            None => self.factory.insert(self.factory()?),
        };
        let matcher = Matcher::new(factory.create_parser(top));
        match matcher.get_error() {
            Some(problem) => Err(EngineError::Grammar(problem)),
            None => Ok(matcher),
        }
    }
}

fn refuse(error: impl ToString) -> EngineError {
    EngineError::Grammar(error.to_string())
}

/// A token's bytes in the trie; a control token is its name behind a byte that occurs in no text.
fn word(piece: &Piece) -> Vec<u8> {
    match piece {
        Piece::Text(bytes) => bytes.clone(),
        Piece::Control(name) => [&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat(),
        Piece::Absent => Vec::new(),
    }
}

/// The parser state of one sequence.
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

    /// The token mask, one bit a token: what the grammar allows among the tokens of `present`. `None` when the grammar failed.
    pub fn allowed(&mut self, present: &[u32]) -> Option<Arc<[u32]>> {
        let allowed = self.matcher.compute_mask().ok()?;
        let words = allowed.as_slice().iter().zip(present);
        Some(words.map(|(allowed, present)| allowed & present).collect())
    }

    /// Whether the grammar is complete and nothing can follow. One that failed is not.
    pub fn is_complete(&self) -> bool {
        matches!(self.matcher.stop_reason(), StopReason::NoExtension | StopReason::EndOfSentence)
    }

    /// Why the grammar failed, if it did.
    pub fn problem(&self) -> Option<String> {
        self.matcher.get_error()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Family;
    use crate::synth::{Recipe, Shape, write_checkpoint};

    fn compiler(eos_ids: &[u32]) -> Compiler {
        let directory = tempfile::tempdir().unwrap();
        let recipe = Recipe { family: Family::Qwen3, shape: Shape::Tiny, seed: 1, tokenizer: None };
        write_checkpoint(&recipe, directory.path()).unwrap();
        let tokenizer = Tokenizer::load(&directory.path().join("tokenizer.json")).unwrap();
        let rows = tokenizer.pieces().len();
        Compiler::new(Arc::new(tokenizer), rows, eos_ids)
    }

    fn word(index: usize) -> Grammar {
        Grammar::Regex(format!("word {index}"))
    }

    #[test]
    fn only_the_most_recently_used_grammars_are_kept() {
        let mut compiler = compiler(&[1]);
        for index in 0..KEPT_GRAMMARS {
            compiler.start(&word(index)).unwrap();
        }
        // The first is used again, so the second is the one that goes.
        compiler.start(&word(0)).unwrap();
        compiler.start(&word(KEPT_GRAMMARS)).unwrap();
        assert_eq!(compiler.compiled.len(), KEPT_GRAMMARS);
        let is_kept = |index| compiler.compiled.iter().any(|(known, _)| *known == word(index));
        assert!(is_kept(0) && !is_kept(1) && is_kept(2) && is_kept(KEPT_GRAMMARS));
    }

    #[test]
    fn nothing_is_built_before_a_grammar_is_asked_for() {
        let mut compiler = compiler(&[]);
        assert!(compiler.factory.is_none());
        let error = compiler.start(&word(0)).err().unwrap();
        assert!(error.to_string().contains("end-of-turn"), "{error}");
    }
}
