//! The bits of the engine: what it gave when its number was raised last, it gives today.

use wardround::digest::sha256;
use wardround::engine::{Request, Sampling};
use wardround::model::{Family, WantedPrecision, WantedType};
use wardround::ops::{Cpu, Quantisation, StoredType};

use crate::common::{self, OPTIONS, complete, tokens};

/// Of number 1, on every CPU: instruction sets count for weights in bf16 alone, which are not asked here.
const OF_NUMBER_1: &str = "d2ca154a1364614a67595b992e5f0f6a1e6ae588c34152c4c095f5f7a2bc0834";

/// Where this fails, the engine's bits have changed: raise `wardround_engine::BITS`, so that no store of calls mixes both, and write the
/// new sum here.
#[test]
fn what_the_engine_gave_under_its_number_it_still_gives() {
    let mut given = String::new();
    for family in [Family::Gemma3, Family::Llama, Family::Qwen3] {
        for quantisation in
            [Quantisation::None, Quantisation::Q8_0, Quantisation::Int8, Quantisation::Q4K]
        {
            let dtype = WantedType::Exactly(StoredType::F32);
            let wanted = WantedPrecision { dtype, quantisation, ..WantedPrecision::default() };
            let ops = Cpu::new(2).unwrap();
            let directory = common::synthetic(family);
            let decoder = common::load_on(&ops, &directory, wanted);
            let tokenizer = common::tokenizer(&directory);
            let engine = common::start(decoder, tokenizer, OPTIONS, &ops);
            let completion = complete(
                &engine,
                Request {
                    tokens: tokens(7, 70),
                    seed: 3,
                    sampling: Sampling { temperature: 1.0, ..Sampling::default() },
                    max_tokens: 40,
                    logprobs: Some(3),
                    ..Request::default()
                },
            );
            given += &format!("{family:?} {quantisation}: {:?}\n", completion.tokens);
            for logprobs in completion.logprobs.iter().flatten() {
                given += &format!("{logprobs:?}\n");
            }
        }
    }
    assert_eq!((wardround::BITS, sha256(&given).as_str()), (1, OF_NUMBER_1));
}
