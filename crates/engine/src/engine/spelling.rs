//! The spelling of words that a grammar offers: in the tokens that the tokenizer itself gives for them.
//!
//! A grammar speaks of text, which can be cut into tokens in many ways, and a model has learnt one of them. What little it gives to the others
//! lies on short tokens: of two words the one would win whose first letter happens to be the likelier token.
//!
//! Byte pairs are merged by what stands next to them. A text is spelled as the tokenizer does where each two tokens that follow each other are
//! what it makes of their joint text (Vieira et al. 2025, arXiv:2506.07956). So neighbours decide, and none of the tokenizer's own spellings is
//! ever refused; what the grammar has next refuses those that could only go on in another one.

use std::sync::Arc;

use llguidance::Matcher;
use llguidance::api::StopReason;

use crate::tokenizer::{Piece, Tokenizer};

/// Where a grammar allows more tokens it offers no words, but takes text, which the model spells as it does. A note's forty sentences begin
/// with less than a hundred.
const MOST: u32 = 128;

/// So many tokens are looked at behind one: what is dictated shows its spelling in the first, words that begin alike in the second.
const AHEAD: usize = 2;

/// So many are looked at together: how a tokenizer cuts marks and blanks depends on what stands around them.
const TOGETHER: usize = 5;

/// What of a vocabulary words are spelled by.
pub struct Speller {
    pub tokenizer: Arc<Tokenizer>,
    /// Two letters that hardly any words of a grammar both go on with.
    letters: [Option<u32>; 2],
}

impl Speller {
    pub fn new(tokenizer: Arc<Tokenizer>) -> Speller {
        let id = |letter: u8| {
            let is_it = |piece: &Piece| matches!(piece, Piece::Text(bytes) if bytes == &[letter]);
            tokenizer.pieces().iter().position(is_it).map(|id| id as u32)
        };
        Speller { letters: [b'q', b'Z'].map(id), tokenizer }
    }
}

/// What a completion last said of its grammar's words.
#[derive(Default)]
pub struct Spelling {
    words: Vec<u32>,
    is_text: bool,
}

impl Spelling {
    /// Takes what the grammar dictated.
    pub fn dictated(&mut self, tokens: &[u32]) {
        self.words.extend(tokens);
    }

    /// Takes what was drawn from what [`Spelling::narrow`] was last given.
    pub fn drawn(&mut self, token: u32) {
        match self.is_text {
            true => self.words.clear(),
            false => self.words.push(token),
        }
    }

    /// Of the tokens `allowed` those that spell the grammar's words as the tokenizer does; all, should there be none, and where it takes text.
    pub fn narrow(
        &mut self,
        speller: &Speller,
        matcher: &Matcher,
        allowed: &Arc<[u32]>,
    ) -> Arc<[u32]> {
        let offered = offered(allowed);
        self.is_text = offered.is_none();
        let Some(mut kept) = offered.filter(|offered| offered.len() > 1) else {
            return allowed.clone();
        };
        // What it learns of the grammar, the sequence's own has learnt, and no other.
        let mut ahead = Ahead { speller, words: self.words.clone(), matcher: matcher.clone() };
        kept.retain(|token| ahead.is_spelled(*token, AHEAD));
        if kept.is_empty() { allowed.clone() } else { only(&kept, allowed.len()) }
    }
}

/// The tokens `allowed`, where a grammar offers words.
fn offered(allowed: &[u32]) -> Option<Vec<u32>> {
    let count: u32 = allowed.iter().map(|word| word.count_ones()).sum();
    let words = (0..).zip(allowed).filter(|(_, word)| **word != 0);
    let ids = words.flat_map(|(at, _)| 32 * at..32 * at + 32).filter(|id| has(allowed, *id));
    (count <= MOST && !is_text(allowed)).then(|| ids.collect())
}

struct Ahead<'a> {
    speller: &'a Speller,
    words: Vec<u32>,
    /// Behind the words.
    matcher: Matcher,
}

impl Ahead<'_> {
    /// Whether `token` goes on with the words in their spelling, and the grammar with it.
    fn is_spelled(&mut self, token: u32, ahead: usize) -> bool {
        self.words.push(token);
        let is_spelled = self.ends_well() && (ahead == 0 || self.goes_on(token, ahead - 1));
        self.words.pop();
        is_spelled
    }

    /// Whether the last of the words is a neighbour of the one before it.
    fn ends_well(&self) -> bool {
        let bytes = |token: &u32| self.speller.tokenizer.bytes(*token);
        let last = &self.words[self.words.len().saturating_sub(TOGETHER)..];
        // Control tokens and parts of characters are no text, and have no spelling.
        let last = last.rsplit(|token| bytes(token).is_empty()).next().unwrap_or_default();
        let Ok(text) = String::from_utf8(last.iter().flat_map(bytes).copied().collect()) else {
            return true;
        };
        let [.., _, token] = last else {
            return last.is_empty() || self.is_own(&text, last);
        };
        // A run of blanks is cut by what follows it.
        let is_run = text.trim_end().len() < text.len() - bytes(token).len();
        is_run || self.is_own(&text, &last[last.len() - 2..])
    }

    fn is_own(&self, text: &str, end: &[u32]) -> bool {
        self.speller.tokenizer.encode_writing(text).map_or(true, |own| own.ends_with(end))
    }

    fn goes_on(&mut self, token: u32, ahead: usize) -> bool {
        // Text takes any letter. Where it follows, its mask is not computed: that takes longer than all else here.
        let mut takes = |letter: &u32| {
            self.matcher.validate_tokens(&[token, *letter]).is_ok_and(|taken| taken == 2)
        };
        let mut letters = self.speller.letters.iter();
        let is_text = letters.all(|letter| letter.as_ref().is_some_and(&mut takes));
        if is_text || self.matcher.consume_token(token).is_err() {
            return true;
        }
        let next = match is_over(&self.matcher) {
            true => None,
            false => self.matcher.compute_mask().ok().and_then(|next| offered(next.as_slice())),
        };
        let goes_on =
            next.is_none_or(|next| next.into_iter().any(|next| self.is_spelled(next, ahead)));
        // A matcher that failed refuses nothing from here on.
        self.matcher.rollback(1).is_err() || goes_on
    }
}

/// Between the parts of a record a grammar allows few tokens, in a text most.
fn is_text(allowed: &[u32]) -> bool {
    let count: u32 = allowed.iter().map(|word| word.count_ones()).sum();
    count > 8 * allowed.len() as u32
}

pub fn is_over(matcher: &Matcher) -> bool {
    matches!(matcher.stop_reason(), StopReason::NoExtension | StopReason::EndOfSentence)
}

/// A mask of `words` words that allows `ids` alone.
pub fn only(ids: &[u32], words: usize) -> Arc<[u32]> {
    let mut mask = vec![0; words];
    for id in ids {
        mask[*id as usize / 32] |= 1 << (id % 32);
    }
    mask.into()
}

fn has(mask: &[u32], id: u32) -> bool {
    mask.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::super::Grammar;
    use super::super::constraint::Compiler;
    use super::super::constraint::tests::compiler;
    use super::*;
    use crate::random::SplitMix64;

    const EOS: u32 = 1;

    /// What a model writes that draws any token that is allowed.
    fn drawn(compiler: &Compiler, grammar: &Grammar, seed: u64) -> Vec<u32> {
        let mut random = SplitMix64::new(seed);
        let mut state = compiler.compile(grammar).unwrap().start();
        let mut tokens = state.force();
        let present = vec![u32::MAX; 1 << 13];
        while !state.is_complete() {
            let allowed = state.allowed(&present).unwrap();
            let ids: Vec<u32> =
                (0..32 * allowed.len() as u32).filter(|id| has(&allowed, *id)).collect();
            let token = ids[random.below(ids.len() as u64) as usize];
            if token == EOS {
                break;
            }
            tokens.push(token);
            assert!(state.accept(token));
            tokens.extend(state.force());
        }
        tokens
    }

    #[test]
    fn words_that_a_grammar_offers_are_spelled_as_the_tokenizer_does() {
        let compiler = compiler(&[EOS]);
        let tokenizer = compiler.tokenizer.clone();
        let schema = r#"{"type": "object", "properties": {"answer": {"enum": ["patient", "path", "patience"]}, "score": {"enum": [0.25, 0.5, 1]}}, "required": ["answer", "score"], "additionalProperties": false, "x-guidance": {"whitespace_flexible": false}}"#;
        for grammar in [
            Grammar::Regex(
                "(CORRECT|INCORRECT)\n<confidence>(100|[1-9][0-9]?)</confidence>".into(),
            ),
            Grammar::Regex("the (patient|patients|path|answer|an error) is (correct|wrong)".into()),
            Grammar::JsonSchema(schema.into()),
        ] {
            let mut texts = std::collections::BTreeSet::new();
            for seed in 0..60 {
                let tokens = drawn(&compiler, &grammar, seed);
                let text = tokenizer.decode(&tokens);
                assert_eq!(tokens, tokenizer.encode_writing(&text).unwrap(), "{text}");
                texts.insert(text);
            }
            // Nothing that the grammar offers is lost.
            assert!(texts.len() >= 6, "{texts:?}");
        }
    }

    #[test]
    #[ignore = "needs WARDROUND_DATA"]
    fn with_data_published_vocabularies_spell_words_as_their_tokenizers_do() {
        let data = std::env::var_os("WARDROUND_DATA").map(std::path::PathBuf::from).unwrap();
        // Words that begin alike, one within another, runs of blanks and of marks, numbers, other scripts.
        let enumerated = serde_json::json!({
            "type": "object",
            "properties": {
                "label": {"enum": ["CORRECT", "CORRECTED", "INCORRECT", "INCORRECTLY"]},
                "sentence": {"enum": ["The patient was afebrile.", "The patient's wife was.", "Three weeks ago", "test ALT   100",
                    "±-Fetoprotein 8 ng/mL", "He's 5'10\" and \\ was", "患者被诊断为肺炎。", "患者已出院。", "المريض بخير", "µg/dL", "naïve"]},
                "confidence": {"enum": (0..=100).map(|of| f64::from(of) / 100.0).collect::<Vec<_>>()},
            },
            "required": ["label", "sentence", "confidence"],
            "additionalProperties": false,
            "x-guidance": {"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": "},
        });
        let grammar = Grammar::JsonSchema(enumerated.to_string());
        for (name, end) in [("gemma3", 1), ("llama3.2", 128_009), ("qwen3", 151_645)] {
            let path = data.join("tokenizers").join(name).join("tokenizer.json");
            let tokenizer = Arc::new(Tokenizer::load(&path).unwrap());
            let compiler = Compiler::new(tokenizer.clone(), tokenizer.pieces().len(), &[end]);
            let (mut texts, mut own) = (std::collections::BTreeSet::new(), 0);
            for seed in 0..200 {
                let tokens = drawn(&compiler, &grammar, seed);
                let text = tokenizer.decode(&tokens);
                own += usize::from(tokens == tokenizer.encode_writing(&text).unwrap());
                texts.insert(text.split("confidence").next().unwrap_or_default().to_owned());
            }
            println!("{name}: {own} of 200, {} texts", texts.len());
            assert!(own >= 190 && texts.len() >= 40, "{name}: {own}, {}", texts.len());
        }
    }

    #[test]
    fn text_is_spelled_as_the_model_does() {
        let compiler = compiler(&[EOS]);
        let tokenizer = compiler.tokenizer.clone();
        let grammar = Grammar::Regex("<result>[^<]{40}</result>".into());
        let is_own = |seed| {
            let tokens = drawn(&compiler, &grammar, seed);
            tokens == tokenizer.encode_writing(&tokenizer.decode(&tokens)).unwrap()
        };
        assert!(!(0..20).all(is_own));
    }
}
