//! Logits and greedy tokens against transformers, on tiny checkpoints of the true architectures.

use wardround::engine::{EngineOptions, Request};
use wardround::model::{WantedPrecision, WantedType};

use crate::common;
use crate::common::golden::{cases, largest};

#[test]
fn logits_equal_transformers_and_do_not_depend_on_chunks() {
    let cases = cases();
    assert!(cases.len() >= 11);
    for case in cases {
        let decoder = common::load(&case.directory, WantedType::Auto);
        let tokens = [&case.prompt[..], &case.greedy[..]].concat();
        let whole = common::logits(&decoder, &tokens, tokens.len());
        case.check(&whole);
        let every_tenth = whole.iter().step_by(10);
        for cpu in common::exact_sets(2) {
            let (name, set) = (&case.name, cpu.describe());
            for step in [1, 7, 33, tokens.len()] {
                let logits = common::logits_on(&cpu, &decoder, &tokens, step);
                assert!(logits == whole, "{name} in steps of {step} on {set}");
            }
            // A step's last layer goes on with the rows that are wanted alone, in some of these steps with none.
            for step in [7, 33] {
                let wanted = |position: usize| position.is_multiple_of(10);
                let chosen = common::logits_of(&cpu, &decoder, &tokens, step, wanted);
                let is_equal = chosen.iter().eq(every_tenth.clone());
                assert!(is_equal, "{name} in steps of {step} on {set}");
            }
        }
    }
}

/// Where a machine multiplies bf16, activations are rounded to meet weights stored so. Each rounding moves a number by up to
/// 2⁻⁸ of itself, four in each of a tiny model's layers, and later layers carry it on: a few hundredths of the largest logit,
/// where a wrong layer is off by all of it. Products of bf16 move transformers' own logits by up to 0.085 of these families.
#[test]
fn rounded_activations_stay_near() {
    let sets = common::every_set(2);
    for (case, cpu) in cases().iter().flat_map(|case| sets.iter().map(move |cpu| (case, cpu))) {
        let decoder = common::load_on(cpu, &case.directory, WantedPrecision::default());
        let tokens = [&case.prompt[..], &case.greedy[..]].concat();
        let ours = common::logits_on(cpu, &decoder, &tokens, tokens.len());
        for (&position, expected) in case.positions.iter().zip(&case.logits) {
            let pairs = ours[position].iter().zip(expected);
            let off = pairs.map(|(ours, theirs)| (ours - theirs).abs());
            let off = off.fold(0.0, f32::max) / largest(expected);
            assert!(off <= 0.12, "{} at {position} on {}: {off}", case.name, cpu.describe());
        }
    }
}

#[test]
fn sixty_four_greedy_tokens_equal_transformers_through_the_engine() {
    let sets = common::exact_sets(2);
    for (case, cpu) in cases().iter().flat_map(|case| sets.iter().map(move |cpu| (case, cpu))) {
        let size = case.logits[0].len();
        let options = EngineOptions { prefill_rows: 16, ..common::OPTIONS };
        let decoder = common::load(&case.directory, WantedType::Auto);
        let tokenizer = common::numbered_tokenizer(size);
        let engine = common::start(decoder, tokenizer, options, cpu);
        let request = Request {
            tokens: case.prompt.clone(),
            sampling: common::GREEDY,
            max_tokens: case.greedy.len(),
            ..Request::default()
        };
        let completion = common::complete(&engine, request);
        assert_eq!(completion.tokens, case.greedy, "{} on {}", case.name, cpu.describe());
    }
}
