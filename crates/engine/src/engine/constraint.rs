//! Grammars over a model's own vocabulary: which tokens may come next, and which must.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{
    InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv,
};
use llguidance::{Matcher, ParserFactory};
use serde_json::json;

use super::EngineError;
use super::effort::Effort;
use super::kept_grammars::KeptGrammars;
use super::schema::{prepare, prepare_inside, with_spacing};
use super::spelling::{Speller, Spelling, is_over};
use crate::ceiling::{Ceiling, CeilingError, Source, held};
use crate::tokenizer::{Piece, Tokenizer};

/// What a text must match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Grammar {
    JsonObject,
    /// A JSON schema, as JSON text.
    JsonSchema(String),
    /// A regular expression that the whole text matches.
    Regex(String),
    /// llguidance's variant of Lark.
    Lark(String),
}

impl Grammar {
    /// As it was sent.
    pub fn text(&self) -> &str {
        match self {
            Grammar::JsonObject => "",
            Grammar::JsonSchema(text) | Grammar::Regex(text) | Grammar::Lark(text) => text,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    pub grammar: Grammar,
    /// A token that must have come before the grammar holds: the end of a `<think>` section.
    pub after: Option<u32>,
}

/// What compiling a grammar and computing a mask may cost: llguidance's own limits, but for the items of a step, named because they bound
/// the time that a stranger's grammar takes. The fuel of a compile is worth some 20 ms, that of a mask as much, and so are a step's items;
/// a grammar that needs more is refused, or ends its completion.
const LIMITS: ParserLimits = ParserLimits {
    max_items_in_row: 2000,
    initial_lexer_fuel: 1_000_000,
    step_lexer_fuel: 200_000,
    step_max_items: 5_000,
    max_lexer_states: 250_000,
    max_grammar_size: 500_000,
    precompute_large_lexemes: true,
    // The text of a completion is nobody's but its asker's.
    verbose_errors: false,
};

/// What compiling one may take beyond what these bound: eight times what the costliest took that they let through.
const COMPILING: Ceiling = Ceiling {
    stack: 8 << 20,
    ..Ceiling::new("compiling the grammar", 512 << 20, Duration::from_secs(30))
};
/// A stranger's is begun only while half of what may be lost is left: whoever sends grammars must not end everybody's chats.
const COMPILING_A_STRANGERS: Ceiling = Ceiling { lost: COMPILING.lost / 2, ..COMPILING };

/// Compiles grammars for one model, on the threads of whoever asks, nothing before; the most recently used ones are kept.
pub struct Compiler {
    pub(super) tokenizer: Arc<Tokenizer>,
    /// Rows of the model's embedding table; those without a token are never allowed.
    vocab_size: usize,
    eos_ids: Vec<u32>,
    factory: OnceLock<Result<Arc<ParserFactory>, EngineError>>,
    speller: OnceLock<Arc<Speller>>,
    kept: KeptGrammars,
}

#[derive(Clone)]
pub struct CompiledGrammar {
    /// Behind `dictated`.
    matcher: Arc<Mutex<Matcher>>,
    /// The tokens that every text of the grammar begins with.
    dictated: Arc<[u32]>,
    speller: Arc<Speller>,
    effort: Arc<Effort>,
    /// What it holds in memory, and each of its states again; 0 where nobody counts it.
    pub bytes: usize,
}

impl CompiledGrammar {
    /// A fresh state at the grammar's start. Nothing in it is shared: no other sequence's cache decides here.
    pub fn start(&self) -> State {
        let matcher = self.matcher.lock().unwrap_or_else(PoisonError::into_inner);
        State {
            matcher: matcher.deep_clone(),
            dictated: self.dictated.to_vec(),
            spelling: Spelling::default(),
            speller: self.speller.clone(),
            effort: self.effort.clone(),
        }
    }
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
    /// For a model whose head has `vocab_size` rows; `eos_ids` end a text.
    pub fn new(tokenizer: Arc<Tokenizer>, vocab_size: usize, eos_ids: &[u32]) -> Compiler {
        Compiler {
            tokenizer,
            vocab_size,
            eos_ids: eos_ids.to_vec(),
            factory: OnceLock::new(),
            speller: OnceLock::new(),
            kept: KeptGrammars::default(),
        }
    }

    /// With the trie of the whole vocabulary.
    fn build_factory(&self) -> Result<ParserFactory, EngineError> {
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
        *factory.limits_mut() = LIMITS;
        Ok(factory)
    }

    /// `grammar` compiled, here or by an earlier call.
    pub fn compile(&self, grammar: &Grammar) -> Result<CompiledGrammar, EngineError> {
        let slot = self.kept.slot(grammar);
        let compiled = slot.get_or_init(|| self.compile_anew(grammar)).clone()?;
        match compiled.effort.is_beyond() {
            true => Err(refuse(TOO_SLOW)),
            false => Ok(compiled),
        }
    }

    fn compile_anew(&self, grammar: &Grammar) -> Result<CompiledGrammar, EngineError> {
        // Before the work below, which may stop for good.
        let factory = self.factory.get_or_init(|| self.build_factory().map(Arc::new));
        let factory = factory.as_ref().map_err(Clone::clone)?.clone();
        let speller = || Arc::new(Speller::new(self.tokenizer.clone()));
        let speller = self.speller.get_or_init(speller).clone();
        let ceiling = match grammar {
            Grammar::JsonObject => COMPILING,
            _ => COMPILING_A_STRANGERS,
        };
        let grammar = grammar.clone();
        let compile = move || {
            let before = held();
            let compiled = compile(&grammar, &factory, speller)?;
            Ok(CompiledGrammar { bytes: held().saturating_sub(before), ..compiled })
        };
        Source::default().bounded(ceiling, compile).map_err(|error| match error {
            CeilingError::Panicked { .. } => refuse("the compiler of grammars fails on it"),
            error => refuse(error),
        })?
    }
}

fn compile(
    grammar: &Grammar,
    factory: &ParserFactory,
    speller: Arc<Speller>,
) -> Result<CompiledGrammar, EngineError> {
    let top = match grammar {
        Grammar::JsonObject => {
            TopLevelGrammar::from_json_schema(with_spacing(json!({"type": "object"})))
        }
        Grammar::JsonSchema(text) => {
            let schema = serde_json::from_str(text).map_err(refuse)?;
            TopLevelGrammar::from_json_schema(prepare(with_spacing(schema))?)
        }
        Grammar::Regex(text) => TopLevelGrammar::from_regex(text),
        Grammar::Lark(text) => TopLevelGrammar::from_lark(prepare_inside(text)?),
    };
    let mut matcher = Matcher::new(factory.create_parser(top));
    match matcher.get_error() {
        Some(problem) => Err(EngineError::Grammar(in_short(&problem))),
        None => {
            let dictated = matcher.consume_ff_tokens().into();
            // Here, where nobody else waits: a grammar whose first mask takes long would hold up all others at each step.
            let effort = Effort::default();
            let is_open = !matcher.is_stopped();
            let first = effort.count(|| is_open.then(|| matcher.compute_mask()));
            if effort.is_long_for_one() {
                return Err(refuse(TOO_SLOW));
            }
            if let Some(Err(problem)) = first {
                return Err(refuse(problem));
            }
            let matcher = Arc::new(Mutex::new(matcher));
            let effort = Arc::new(effort);
            Ok(CompiledGrammar { matcher, dictated, speller, effort, bytes: 0 })
        }
    }
}

fn refuse(error: impl ToString) -> EngineError {
    EngineError::Grammar(in_short(&error.to_string()))
}

/// Characters of a problem that are told: it may repeat the whole grammar.
const PROBLEM_CHARS: usize = 300;

/// An option of the library's, which nobody sets here.
const ONE_OF: &str = ". Enable 'coerce_one_of' option to approximate oneOf with anyOf";

/// A problem as whoever sent the grammar is told it: without the mark of what `verbose_errors` would add, and without what the library
/// says to its authors where it panics.
fn in_short(problem: &str) -> String {
    let problem = problem.trim_end().trim_end_matches("<non-verbose/>").trim_end();
    if problem.contains("panic: ") {
        return "the compiler of grammars fails on it".to_owned();
    }
    let problem =
        problem.replace(ONE_OF, ": write anyOf, where no two of its alternatives can hold at once");
    match problem.char_indices().nth(PROBLEM_CHARS) {
        Some((end, _)) => format!("{}…", &problem[..end]),
        None => problem,
    }
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
    /// What the matcher has taken already, and the sequence has not got yet.
    dictated: Vec<u32>,
    spelling: Spelling,
    speller: Arc<Speller>,
    effort: Arc<Effort>,
}

/// Said where [`Effort`] has an end.
const TOO_SLOW: &str =
    "following the grammar takes too long: it has too many alternatives at a time";

impl State {
    /// The tokens that the grammar dictates from here, taken.
    pub fn force(&mut self) -> Vec<u32> {
        let mut dictated = std::mem::take(&mut self.dictated);
        let effort = self.effort.clone();
        dictated.extend(effort.count(|| self.matcher.consume_ff_tokens()));
        self.spelling.dictated(&dictated);
        dictated
    }

    /// Takes a sampled token; `false` when the grammar cannot (it is dead, or a limit was exceeded).
    pub fn accept(&mut self, token: u32) -> bool {
        self.spelling.drawn(token);
        let effort = self.effort.clone();
        effort.count(|| self.matcher.consume_token(token)).is_ok()
    }

    /// The token mask, one bit a token: what the grammar allows among the tokens of `present`, words in the tokenizer's own spelling.
    /// `None` when the grammar failed.
    pub fn allowed(&mut self, present: &[u32]) -> Option<Arc<[u32]>> {
        if self.effort.is_beyond() {
            return None;
        }
        let effort = self.effort.clone();
        effort.count(|| self.mask(present))
    }

    fn mask(&mut self, present: &[u32]) -> Option<Arc<[u32]>> {
        let allowed = self.matcher.compute_mask().ok()?;
        let words = allowed.as_slice().iter().zip(present);
        let allowed = words.map(|(allowed, present)| allowed & present).collect();
        Some(self.spelling.narrow(&self.speller, &self.matcher, &allowed))
    }

    /// Whether the grammar is complete and nothing can follow. One that failed is not.
    pub fn is_complete(&self) -> bool {
        is_over(&self.matcher)
    }

    pub fn problem(&self) -> Option<String> {
        let slow = || self.effort.is_beyond().then(|| TOO_SLOW.to_owned());
        self.matcher.get_error().map(|problem| in_short(&problem)).or_else(slow)
    }
}

#[cfg(test)]
pub(super) mod tests;
