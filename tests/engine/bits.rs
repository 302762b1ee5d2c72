//! The bits of the engine: what it gave when its number was raised last, it gives today, on every instruction set that this machine has.

use std::collections::HashMap;
use std::env::consts::ARCH;

use wardround::calls::store_key;
use wardround::digest::sha256;
use wardround::engine::{Request, Sampling};
use wardround::hub::{HubOptions, resolve};
use wardround::model::{Family, WantedPrecision, WantedType};
use wardround::ops::{Cpu, Device, Machine, Precision, Quantisation, StoredType};
use wardround::panel::backbone::Description;

use crate::common::{self, OPTIONS, complete, tokens};

/// How matrices, keys and values are kept.
const KEPT: [(&str, WantedPrecision, &[Quantisation]); 3] = {
    let auto = WantedPrecision {
        dtype: WantedType::Auto,
        quantisation: Quantisation::None,
        kv: WantedType::Auto,
    };
    let wide = WantedType::Exactly(StoredType::F32);
    [
        ("nothing", WantedPrecision { dtype: wide, kv: wide, ..auto }, &Quantisation::ALL),
        ("keys", WantedPrecision { dtype: wide, ..auto }, &Quantisation::ALL),
        ("weights and keys", auto, &[Quantisation::None]),
    ]
};

/// Of numbers 1 to 3, which differ under a grammar alone (how words are spelled, what a limit cuts): the sums by what is kept as bf16, and by what the kind of a CPU has
/// beside the architecture. What is not kept so no instruction rounds, and its sum is one on every CPU.
const OF_FREE_TEXT: [(&str, &str, &str); 6] = [
    ("nothing", "", "f159b6666106e21c0d29d70a3fe56c7527b54625ed4dedae94b45813cf385ba5"),
    ("keys", "", "d2ca154a1364614a67595b992e5f0f6a1e6ae588c34152c4c095f5f7a2bc0834"),
    ("keys", PAIRS, "2362b5d0c1d03b72e6f43db20a8b1a4e515efd637f7eb35650251b94c3c389b1"),
    ("weights and keys", "", "2b3048ad82ddd29bdda530cddbb43bc36e38ab8525eed4ead3491b81fe3aa969"),
    ("weights and keys", PAIRS, "2b0a979626df48074928ff266157799042751f0ae9d09a8436ecade43caca975"),
    (
        "weights and keys",
        " avx512 amx",
        "815ff16ddcf0889986fd0c51a0fea14ce95c25eff4b23d463a51a861a03e87e3",
    ),
];

/// Pairs of bf16. Their sums above are an Intel's, which computes so when asked only; nobody has tried whether an AMD's, which does by
/// itself, are the same.
const PAIRS: &str = " avx512 bf16";

/// Where this fails, the engine's bits have changed: raise `wardround_engine::BITS`, so that no store of calls mixes both, and write the
/// new sums here.
#[test]
fn what_the_engine_gave_under_its_number_it_still_gives() {
    let hub = HubOptions::from_lookup(|_| None).unwrap().local();
    // Of each key of the store: what was given.
    let mut store = HashMap::new();
    for cpu in common::every_set(2) {
        for (name, wanted, quantisations) in KEPT {
            let (mut given, mut kept) = (String::new(), Vec::<Precision>::new());
            let all = [Family::Gemma3, Family::Llama, Family::Qwen3].into_iter();
            let all = all.flat_map(|family| quantisations.iter().map(move |kept| (family, *kept)));
            for (family, quantisation) in all {
                let checkpoint =
                    resolve(common::synthetic(family).to_str().unwrap(), &hub).unwrap();
                let wanted = WantedPrecision { quantisation, ..wanted };
                let description =
                    Description::read(checkpoint, wanted, Machine::Cpu, 4096).unwrap();
                let decoder = description.load(&cpu, 4096).unwrap();
                let engine = common::start(decoder, description.tokenizer.clone(), OPTIONS, &cpu);
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
                let mut one = format!("{family:?} {quantisation}: {:?}\n", completion.tokens);
                for logprobs in completion.logprobs.iter().flatten() {
                    one += &format!("{logprobs:?}\n");
                }
                let key = store_key(&description.identity(&Device::Cpu(cpu.clone())), None);
                let before = store.entry(key).or_insert_with(|| one.clone());
                assert!(
                    *before == one,
                    "one key for two texts: {family:?} {quantisation}, {name} as bf16"
                );
                given += &one;
                kept.push(description.precision);
            }
            let kind = Device::Cpu(cpu.clone()).kind(kept);
            let set = kind.strip_prefix(ARCH).unwrap();
            if set == PAIRS && cpu.describe() == Cpu::new(1).unwrap().describe() {
                continue;
            }
            let sum = OF_FREE_TEXT.iter().find(|(of, on, _)| (*of, *on) == (name, set));
            let sum = sum.map(|(_, _, sum)| *sum);
            assert_eq!((wardround::BITS, Some(sha256(&given).as_str())), (3, sum), "{name}{set}");
        }
    }
}
