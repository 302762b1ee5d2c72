//! Both decoders against transformers, on medical prose, a chat, code, Chinese, Arabic, and more than Gemma's window: ids, logits, greedy
//! tokens.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use wardround::chat::{ChatTemplate, Message};
use wardround::engine::{Constraint, Grammar, Request, Sampling};
use wardround::model::{WantedPrecision, WantedType};
use wardround::ops::Cpu;

use super::{golden, real_model};
use crate::{common, formats};

/// How far a logit may be from transformers', as a share of the row's largest, which is 18 to 98: rounding of f32 in sums of another order.
/// The furthest seen: 1.02e-5, by AVX2.
const TOLERANCE: f32 = 2e-5;

#[derive(Deserialize)]
struct Case {
    case: String,
    text: Option<String>,
    messages: Option<Vec<Message>>,
    ids: Vec<u32>,
    greedy: Vec<u32>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    position: usize,
    /// The best ones and some others, by token.
    logits: BTreeMap<u32, f32>,
    /// Of all: the logarithm of the sum of their exponentials.
    log_sum_exp: f64,
}

fn cases(model: &str) -> Vec<Case> {
    let cases: Vec<Case> = serde_json::from_value(golden(model)["cases"].clone()).unwrap();
    assert_eq!(cases.len(), 6);
    cases
}

fn ids_are_those_of_transformers(model: &str) {
    let directory = real_model(model);
    let tokenizer = common::tokenizer(&directory);
    let template = ChatTemplate::load(&directory).unwrap();
    for case in cases(model) {
        let ids = match (&case.text, &case.messages) {
            (Some(text), None) => tokenizer.encode(text).unwrap(),
            (None, Some(messages)) => template.prompt(&tokenizer, messages, false).unwrap().tokens,
            other => panic!("{other:?}"),
        };
        // A text alone gets no token of its beginning from us; Gemma's has one.
        let begins = usize::from(model.starts_with("gemma3") && case.text.is_some());
        assert_eq!(ids, case.ids[begins..], "{model}, {}", case.case);
    }
}

fn logits_are_those_of_transformers(model: &str) {
    let decoder = common::load(&real_model(model), WantedType::Auto);
    let cpu = common::exact(2);
    let mut furthest = 0.0_f32;
    for case in cases(model) {
        let tokens = [&case.ids[..], &case.greedy[..]].concat();
        let wanted = |position| case.rows.iter().any(|row| row.position == position);
        let ours = common::logits_of(&cpu, &decoder, &tokens, 128, wanted);
        assert_eq!(ours.len(), case.rows.len());
        for (row, ours) in case.rows.iter().zip(&ours) {
            let place = format!("{model}, {} at {}", case.case, row.position);
            let scale = row.logits.values().fold(0.0_f32, |most, logit| most.max(logit.abs()));
            for (&token, &theirs) in &row.logits {
                let off = (ours[token as usize] - theirs).abs() / scale;
                assert!(off <= TOLERANCE, "{place}: {token} off by {off} of {theirs}");
                furthest = furthest.max(off);
            }
            let largest = f64::from(ours.iter().copied().fold(f32::MIN, f32::max));
            let sum: f64 = ours.iter().map(|logit| (f64::from(*logit) - largest).exp()).sum();
            let off = (largest + sum.ln() - row.log_sum_exp).abs();
            assert!(off <= f64::from(TOLERANCE * scale), "{place}: log-sum-exp off by {off}");
        }
    }
    println!("{model}: logits within {furthest:.1e} of the largest from transformers'");
}

fn greedy_tokens_are_those_of_transformers(model: &str) {
    let directory = real_model(model);
    let cpu = common::exact(2);
    let kv = WantedType::Exactly(wardround::ops::StoredType::F32);
    let decoder =
        common::load_on(&cpu, &directory, WantedPrecision { kv, ..WantedPrecision::default() });
    let engine = common::start(decoder, common::tokenizer(&directory), common::OPTIONS, &cpu);
    let ticket = |case: &Case| {
        let request = Request {
            tokens: case.ids.clone(),
            sampling: common::GREEDY,
            max_tokens: case.greedy.len(),
            min_tokens: case.greedy.len(),
            ..Request::default()
        };
        engine.submit(request).unwrap()
    };
    let cases = cases(model);
    let tickets: Vec<_> = cases.iter().map(ticket).collect();
    for (case, ticket) in cases.iter().zip(tickets) {
        assert_eq!(case.greedy.len(), 64);
        assert_eq!(ticket.wait().unwrap().tokens, case.greedy, "{model}, {}", case.case);
    }
}

#[test]
#[ignore = "needs WARDROUND_REAL_MODELS"]
fn with_real_models_texts_and_chats_are_the_tokens_of_transformers() {
    ids_are_those_of_transformers("smollm2");
    ids_are_those_of_transformers("gemma3-270m");
}

#[test]
#[ignore = "needs WARDROUND_REAL_MODELS"]
fn with_real_models_logits_equal_transformers() {
    logits_are_those_of_transformers("smollm2");
    logits_are_those_of_transformers("gemma3-270m");
}

#[test]
#[ignore = "needs WARDROUND_REAL_MODELS"]
fn with_real_models_sixty_four_greedy_tokens_equal_transformers() {
    greedy_tokens_are_those_of_transformers("smollm2");
    greedy_tokens_are_those_of_transformers("gemma3-270m");
}

/// Of what it would rarely say, too: at a temperature that draws nearly anything.
fn words_of_a_grammar_are_spelled_as_the_tokenizer_does(model: &str) {
    let directory = real_model(model);
    let (cpu, tokenizer) = (Cpu::new(2).unwrap(), common::tokenizer(&directory));
    let decoder = common::load(&directory, WantedType::Auto);
    let engine = common::start(decoder, tokenizer.clone(), common::OPTIONS, &cpu);
    let words = "(CORRECT|INCORRECT)\n<confidence>(100|[1-9][0-9]?)</confidence>";
    let prompt = "Is the note CORRECT or INCORRECT, and how sure are you?\n";
    let ask = |seed| {
        let request = Request {
            tokens: tokenizer.encode(prompt).unwrap(),
            sampling: Sampling { temperature: 5.0, ..common::GREEDY },
            constraint: Some(Constraint { grammar: Grammar::Regex(words.to_owned()), after: None }),
            max_tokens: 64,
            seed,
            ..Request::default()
        };
        engine.submit(request).unwrap()
    };
    let mut labels = BTreeSet::new();
    for ticket in (0..32).map(ask).collect::<Vec<_>>() {
        let said = ticket.wait().unwrap();
        assert_eq!(said.tokens, tokenizer.encode_writing(&said.text).unwrap(), "{}", said.text);
        labels.insert(said.text.starts_with("IN"));
    }
    assert_eq!(labels.len(), 2, "{model}: {labels:?}");
}

#[test]
#[ignore = "needs WARDROUND_REAL_MODELS"]
fn with_real_models_words_of_a_grammar_are_spelled_as_the_tokenizer_does() {
    words_of_a_grammar_are_spelled_as_the_tokenizer_does("smollm2");
    words_of_a_grammar_are_spelled_as_the_tokenizer_does("gemma3-270m");
}

/// The mean divergence may be so much; the surprise at a token grows by the divergence on average, and varies by twice it.
fn formats_stay_near_f32(model: &str, bounds: [(&str, f64); 5]) {
    let (directory, cpu) = (real_model(model), Cpu::new(2).unwrap());
    let tokens = &cases(model)[0].ids;
    let exact = formats::read(&cpu, &directory, "f32", tokens);
    for (format, most) in bounds {
        let rounded = formats::read(&cpu, &directory, format, tokens);
        let divergence = formats::divergence(&exact, &rounded);
        assert!(divergence <= most, "{model} in {format}: {divergence}, not {most}");
        let grown = formats::surprise(&rounded, tokens) - formats::surprise(&exact, tokens);
        let noise = 3.0 * (2.0 * most / (tokens.len() - 1) as f64).sqrt();
        assert!(grown < most + noise, "{model} in {format}: {grown}");
    }
}

#[test]
#[ignore = "needs WARDROUND_REAL_MODELS"]
fn with_real_models_each_weight_format_stays_near_f32() {
    let bounds = |q4_k| {
        [("bf16", 0.005), ("q8_0", 0.008), ("int8", 0.03), ("q4_k", q4_k), ("kv-bf16", 0.002)]
    };
    formats_stay_near_f32("smollm2", bounds(0.02));
    formats_stay_near_f32("gemma3-270m", bounds(0.06));
}
