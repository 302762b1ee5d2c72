//! Logits and greedy tokens against transformers, on tiny checkpoints of the true architectures.
#![allow(clippy::unwrap_used)]

mod common;

use common::golden::cases;
use wardround::engine::{EngineOptions, Request};
use wardround::model::WantedType;

#[test]
fn logits_equal_transformers_and_do_not_depend_on_chunks() {
    let cases = cases();
    assert!(cases.len() >= 11);
    for case in cases {
        let decoder = common::load(&case.directory, WantedType::Auto);
        let tokens = [&case.prompt[..], &case.greedy[..]].concat();
        let whole = common::logits(&decoder, &tokens, tokens.len());
        case.check(&whole);
        for step in [1, 7, 33] {
            assert!(
                common::logits(&decoder, &tokens, step) == whole,
                "{} in steps of {step}",
                case.name
            );
        }
    }
}

#[test]
fn sixty_four_greedy_tokens_equal_transformers_through_the_engine() {
    for case in cases() {
        let size = case.logits[0].len();
        let options = EngineOptions {
            prefill_rows: 16,
            ..common::OPTIONS
        };
        let engine = common::engine(
            &case.directory,
            common::numbered_tokenizer(size),
            options,
            2,
        );
        let request = Request {
            tokens: case.prompt.clone(),
            sampling: common::GREEDY,
            max_tokens: case.greedy.len(),
            ..Request::default()
        };
        let completion = common::complete(&engine, request);
        assert_eq!(completion.tokens, case.greedy, "{}", case.name);
    }
}
