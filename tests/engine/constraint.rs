//! Constrained completions with the published vocabularies: every one is a record, and what is dictated is not sampled.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wardround::data::{Choice, Question};
use wardround::engine::constraint::Compiler;
use wardround::engine::{
    Completion, Constraint, Engine, EngineError, FinishReason, Grammar, Request, Stop, Ticket,
};
use wardround::generation::Generation;
use wardround::model::{Family, WantedType};
use wardround::ops::Cpu;
use wardround::record::Parse;
use wardround::synth::{Recipe, Shape, write_checkpoint};
use wardround::systems::medmad::record::parse;
use wardround::systems::medmad::schema::schema;
use wardround::systems::medmad::settings::Settings;
use wardround::tokenizer::{Piece, Tokenizer};

use crate::common::json_schema::is_valid;
use crate::common::{self, OPTIONS, tokens};

/// A tiny model with a published vocabulary.
struct Model {
    tokenizer: Arc<Tokenizer>,
    /// Of the embedding table, padding too.
    rows: usize,
    generation: Generation,
    engine: Engine,
}

impl Model {
    fn make(name: &'static str, family: Family, source: &Path) -> Model {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join(name);
        let recipe = Recipe { family, shape: Shape::Tiny, seed: 1, tokenizer: Some(source) };
        write_checkpoint(&recipe, &directory).unwrap();
        let decoder = common::load(&directory, WantedType::Auto);
        let rows = decoder.config.vocab_size;
        let path = directory.join("generation_config.json");
        let generation = Generation::read(Some(&path), &[]).unwrap();
        let tokenizer = common::tokenizer(&directory);
        let ops = Cpu::new(2).unwrap();
        let eos_ids = &generation.eos_ids;
        let engine = Engine::start(name, decoder, tokenizer.clone(), eos_ids, ops, OPTIONS);
        Model { tokenizer, rows, generation, engine: engine.unwrap() }
    }

    fn request(&self, grammar: Grammar, seed: u64) -> Request {
        Request {
            tokens: tokens(seed, 40),
            sampling: self.generation.sampling,
            seed,
            constraint: Some(Constraint { grammar, after: None }),
            stop: Stop { ids: self.generation.eos_ids.clone(), ..Stop::default() },
            max_tokens: 3000,
            ..Request::default()
        }
    }

    fn complete_all(&self, requests: Vec<Request>) -> Vec<Completion> {
        let submit = |request| self.engine.submit(request).unwrap();
        let tickets: Vec<Ticket> = requests.into_iter().map(submit).collect();
        tickets.into_iter().map(|ticket| ticket.wait().unwrap()).collect()
    }

    fn compiler(&self) -> Compiler {
        Compiler::new(self.tokenizer.clone(), self.rows, &self.generation.eos_ids)
    }
}

/// The record of a question with four options, as short as tests have it.
fn record_schema() -> Value {
    let settings = toml::from_str::<Settings>("record_chars = 32").unwrap();
    let choice = |letter: char| Choice { letter, text: format!("option {letter}") };
    let question = Question {
        id: "q".to_owned(),
        question: "Which?".to_owned(),
        options: ('A'..='D').map(choice).collect(),
        gold: None,
        ..Question::default()
    };
    schema(&question, &settings)
}

/// Walks a completion through its grammar again. Gives the tokens that it dictated, and how long each mask took.
fn walk(
    compiler: &Compiler,
    rows: usize,
    grammar: &Grammar,
    tokens: &[u32],
) -> (usize, Vec<Duration>) {
    let mut state = compiler.compile(grammar).unwrap().start();
    let (mut at, mut forced, mut masks) = (0, 0, Vec::new());
    let present = vec![u32::MAX; rows.div_ceil(32)];
    while at < tokens.len() {
        let dictated = state.force();
        assert!(tokens[at..].starts_with(&dictated), "token {at}: {dictated:?}");
        (at, forced) = (at + dictated.len(), forced + dictated.len());
        if at == tokens.len() {
            break;
        }
        let start = Instant::now();
        let allowed = state.allowed(&present);
        masks.push(start.elapsed());
        let allowed = allowed.unwrap_or_else(|| panic!("{:?}", state.problem()));
        let token = tokens[at] as usize;
        assert!(allowed[token / 32] >> (token % 32) & 1 == 1, "token {at} was forbidden");
        assert!(state.accept(tokens[at]));
        at += 1;
    }
    assert!(state.is_complete());
    (forced, masks)
}

fn records_are_constrained(name: &'static str, family: Family, vocabulary: usize) {
    let data = common::data();
    let model = Model::make(name, family, &data.join("tokenizers").join(name));
    assert!(
        model.tokenizer.pieces().len() > vocabulary && model.rows > model.tokenizer.pieces().len()
    );
    let schema = record_schema();
    let grammar = Grammar::JsonSchema(schema.to_string());
    let start = Instant::now();
    let requests = (0..2).map(|seed| model.request(grammar.clone(), seed));
    let completions = model.complete_all(requests.collect());
    let elapsed = start.elapsed();
    let compiler = model.compiler();
    let mut masks = Vec::new();
    for completion in &completions {
        let Completion { tokens, text, usage, .. } = completion;
        assert_eq!(completion.finish_reason, FinishReason::Stop, "{name}: {text}");
        let value: Value = serde_json::from_str(text).unwrap();
        assert!(is_valid(&schema, &value), "{name}: {text}");
        assert_eq!(
            parse(text, completion.finish_reason, &[], &Settings::default()).1,
            Parse::Ok,
            "{name}: {text}"
        );
        let is_absent = |id: &u32| {
            matches!(model.tokenizer.pieces().get(*id as usize), None | Some(Piece::Absent))
        };
        assert!(!tokens.iter().any(is_absent), "{name}: {tokens:?}");
        let (forced, took) = walk(&compiler, model.rows, &grammar, tokens);
        assert_eq!((usage.completion_tokens, usage.forced_tokens), (tokens.len(), forced));
        assert!(
            forced as f64 >= 0.15 * tokens.len() as f64,
            "{name}: {forced} of {}",
            tokens.len()
        );
        println!("{name}: {forced} of {} tokens were dictated", tokens.len());
        masks.extend(took);
    }
    let total: Duration = masks.iter().sum();
    println!(
        "{name}: {} masks over {} rows, {:?} on average, {:?} at most; records in {elapsed:?}",
        masks.len(),
        model.rows,
        total / masks.len() as u32,
        masks.iter().max().unwrap()
    );

    let mut cut = model.request(grammar, 0);
    cut.max_tokens = 50;
    let cut = model.complete_all(vec![cut]).remove(0);
    assert_eq!((cut.finish_reason, cut.tokens.len()), (FinishReason::Length, 50));
    assert!(completions[0].tokens.starts_with(&cut.tokens));
    // A record that was cut is never read as a whole one; where it is cut behind its answer, the answer is the whole one's.
    let (read, how) = parse(&cut.text, cut.finish_reason, &[], &Settings::default());
    let whole = parse(&completions[0].text, FinishReason::Stop, &[], &Settings::default()).0;
    let expected = if cut.text.contains("\"answer\": ") {
        (whole.answer, Parse::Repaired)
    } else {
        (String::new(), Parse::Unread)
    };
    assert_eq!((read.answer, how), expected, "{name}: {}", cut.text);
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_records_with_gemmas_vocabulary() {
    records_are_constrained("gemma3", Family::Gemma3, 262_000);
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_records_with_llamas_vocabulary() {
    records_are_constrained("llama3.2", Family::Llama, 128_000);
}

#[test]
#[ignore = "needs WARDROUND_DATA"]
fn with_data_records_with_qwens_vocabulary() {
    records_are_constrained("qwen3", Family::Qwen3, 151_000);
}

fn ask(engine: &Engine, grammar: Grammar, max_tokens: usize) -> Result<Completion, EngineError> {
    let request = Request {
        tokens: tokens(1, 5),
        constraint: Some(Constraint { grammar, after: None }),
        max_tokens,
        ..Request::default()
    };
    engine.submit(request)?.wait()
}

fn json_schema(schema: &Value) -> Grammar {
    Grammar::JsonSchema(schema.to_string())
}

#[test]
fn a_grammar_that_does_not_compile_says_why() {
    let engine = common::synthetic_engine(Family::Qwen3, OPTIONS);
    for (grammar, why) in [
        (Grammar::JsonSchema(r#"{"type": "#.to_owned()), "EOF while parsing"),
        (json_schema(&json!({"type": "strin"})), "strin"),
        (json_schema(&json!({"enum": []})), "Unsatisfiable"),
        (json_schema(&json!({"type": "string", "not": {"minLength": 3}})), "not"),
        (Grammar::Regex("([".to_owned()), "unclosed character class"),
        (Grammar::Regex("(?<=a)b".to_owned()), "look-around"),
        (Grammar::Lark("start: word".to_owned()), "unknown name: \"word\""),
    ] {
        let error = ask(&engine, grammar, 10).unwrap_err();
        let EngineError::Grammar(problem) = &error else {
            panic!("{error}");
        };
        assert!(problem.contains(why), "{problem}");
        assert!(error.to_string().starts_with("the grammar does not compile: "));
    }
    let next = ask(&engine, Grammar::Regex("yes|no".to_owned()), 10).unwrap();
    assert!(["yes", "no"].contains(&next.text.as_str()));
}

#[test]
fn a_regex_and_a_lark_grammar_hold_to_the_end() {
    let engine = common::synthetic_engine(Family::Gemma3, OPTIONS);
    let dose = regex::Regex::new("^[1-9][0-9]{0,3} (mg|µg|IU) (daily|twice a day)$").unwrap();
    let lark = "start: NUMBER \" \" unit \" \" how\nunit: \"mg\" | \"µg\" | \"IU\"\n\
        how: \"daily\" | \"twice a day\"\nNUMBER: /[1-9][0-9]{0,3}/";
    for grammar in [
        Grammar::Regex("[1-9][0-9]{0,3} (mg|µg|IU) (daily|twice a day)".to_owned()),
        Grammar::Lark(lark.to_owned()),
    ] {
        let completion = ask(&engine, grammar, 100).unwrap();
        assert!(dose.is_match(&completion.text), "{}", completion.text);
        assert_eq!(completion.finish_reason, FinishReason::Stop);
        assert!(completion.usage.forced_tokens > 0);
    }
}

/// With this project's own vocabulary a dictated text is several tokens, none of them sampled.
#[test]
fn dictated_text_that_is_cut_was_not_completed() {
    for family in [Family::Gemma3, Family::Llama, Family::Qwen3] {
        let engine = common::synthetic_engine(family, OPTIONS);
        let value = json!({"finding": "no acute distress", "plan": ["rest", "fluids"]});
        let grammar =
            json_schema(&json!({"const": value, "x-guidance": {"whitespace_flexible": false}}));
        let whole = ask(&engine, grammar.clone(), 200).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&whole.text).unwrap(), value);
        assert_eq!(whole.finish_reason, FinishReason::Stop);
        let length = whole.tokens.len();
        assert!(whole.usage.forced_tokens > 5, "{:?}", whole.usage);
        let exact = ask(&engine, grammar.clone(), length).unwrap();
        assert_eq!((exact.text, exact.finish_reason), (whole.text.clone(), FinishReason::Stop));
        for max_tokens in [1, length / 2, length - 1] {
            let cut = ask(&engine, grammar.clone(), max_tokens).unwrap();
            assert_eq!(cut.finish_reason, FinishReason::Length, "{max_tokens}: {}", cut.text);
            assert_eq!(cut.tokens, whole.tokens[..max_tokens]);
        }
    }
}

#[test]
fn a_grammar_beyond_its_limits_is_not_taken_for_complete() {
    let engine = common::synthetic_engine(Family::Qwen3, OPTIONS);
    for (grammar, why) in [
        (Grammar::Regex("a{300000}".to_owned()), "too many expressions constructed"),
        (Grammar::Regex("(a?){300}a{300}".to_owned()), "too many"),
        (json_schema(&optional_properties(500)), "Current row has"),
    ] {
        let completion = ask(&engine, grammar, 10).unwrap();
        assert_eq!(completion.finish_reason, FinishReason::Constraint);
        let problem = completion.problem.unwrap();
        assert!(problem.contains(why) && !problem.contains('\n'), "{problem:?}");
    }
    let whole = ask(&engine, Grammar::Regex("yes".to_owned()), 10).unwrap();
    assert_eq!((whole.finish_reason, whole.problem), (FinishReason::Stop, None));
}

fn optional_properties(count: usize) -> Value {
    let properties: serde_json::Map<String, Value> =
        (0..count).map(|index| (format!("field{index}"), json!({"type": "string"}))).collect();
    json!({"type": "object", "properties": properties})
}
