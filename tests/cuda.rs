//! The CUDA backend's kernels and host code over whole tiny models, against the CPU and against themselves: on the
//! emulator (`cargo test --features cuda-emulated --test cuda`), or on a GPU (`--features cuda`).
#![cfg(any(feature = "cuda", feature = "cuda-emulated"))]
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::retrieval::{Copy, Goldens, cross, cut, medcpt};
use common::{OPTIONS, load_on, logits_on, places, tokens};
use wardround::encoder::{Encoder, EncoderOptions, Reranker};
use wardround::engine::{Completion, EngineOptions, Request, Sampling, Ticket};
use wardround::model::{Cache, Family, Scratch, WantedPrecision, WantedType};
use wardround::ops::{
    Backend, Cpu, Cuda, Device, Quantisation, Rows, StateRows, StepLimits, StoredType,
};

const FAMILIES: [Family; 7] = [
    Family::Gemma3,
    Family::Gemma4,
    Family::Llama,
    Family::Ministral3,
    Family::Qwen3,
    Family::Qwen35,
    Family::SmolLm3,
];

/// Every way to keep weights on a GPU.
const KEPT: [Quantisation; 3] = [Quantisation::None, Quantisation::Q8_0, Quantisation::Q4K];

/// How far logits may lie from the f32 arithmetic of the CPU over the same weights, relative to the largest: each of a
/// tiny model's dozen roundings to bf16 in a row moves a number by up to 2⁻⁸ of itself.
const TOLERANCE: f32 = 0.03;

/// The GPU of this build, or the emulated one.
fn gpu() -> Cuda {
    Cuda::open(0).unwrap()
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    let largest = b.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f32::max) / largest
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn logits_are_those_of_the_cpu_up_to_rounding() {
    let gpu = gpu();
    let cpu = Cpu::new(2).unwrap();
    let tokens = tokens(3, 90);
    for family in FAMILIES {
        let directory = common::synthetic(family);
        let wide = WantedPrecision {
            dtype: WantedType::Exactly(StoredType::F32),
            ..WantedPrecision::default()
        };
        let reference = load_on(&cpu, &directory, wide);
        let expected = logits_on(&cpu, &reference, &tokens, 90);
        let decoder = load_on(&gpu, &directory, WantedPrecision::default());
        let found = logits_on(&gpu, &decoder, &tokens, 90);
        // transformers in f32 moves by 0.085 (Qwen 3.5) and 0.055 (Gemma 4) where products alone read bf16: a head's reads are normed,
        // however small they are, and so are values and layers' inputs.
        let tolerance = match family {
            Family::Gemma4 | Family::Qwen35 => 0.1,
            _ => TOLERANCE,
        };
        for (position, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let distance = distance(found, expected);
            assert!(distance < tolerance, "{family:?}, position {position}: {distance}");
        }
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn blocks_of_weights_are_the_cpus() {
    let gpu = gpu();
    let cpu = Cpu::new(2).unwrap();
    let tokens = tokens(4, 40);
    for quantisation in [Quantisation::Q8_0, Quantisation::Q4K] {
        let directory = common::synthetic(Family::Qwen3);
        let wanted = WantedPrecision { quantisation, ..WantedPrecision::default() };
        let reference = load_on(&cpu, &directory, wanted);
        let expected = logits_on(&cpu, &reference, &tokens, 40);
        let decoder = load_on(&gpu, &directory, wanted);
        let found = logits_on(&gpu, &decoder, &tokens, 40);
        for (found, expected) in found.iter().zip(&expected) {
            // The CPU rounds activations to bytes.
            assert!(distance(found, expected) < 2.0 * TOLERANCE, "{quantisation}");
        }
    }
}

/// Steps of up to 64 rows take the small matmuls and attend chunk by chunk, longer ones the large matmuls and blocks. Attention, whose
/// chunks are of 256 keys, is the same for all weights.
fn check_steps(family: Family) {
    let gpu = gpu();
    let tokens = tokens(5, 300);
    let directory = common::synthetic(family);
    for quantisation in KEPT {
        let wanted = WantedPrecision { quantisation, ..WantedPrecision::default() };
        let decoder = load_on(&gpu, &directory, wanted);
        let steps: &[(usize, usize)] = match quantisation {
            Quantisation::None => &[(1, 300), (7, 300), (33, 300), (100, 300)],
            _ => &[(1, 40), (7, 70), (33, 100)],
        };
        let longest = steps.iter().map(|(_, length)| *length).max().unwrap();
        let whole = logits_on(&gpu, &decoder, &tokens[..longest], longest);
        for (step, length) in steps {
            let parts = logits_on(&gpu, &decoder, &tokens[..*length], *step);
            assert!(parts == whole[..*length], "{family:?} {quantisation}, steps of {step}");
        }
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn no_bit_of_gemma_depends_on_the_step() {
    check_steps(Family::Gemma3);
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn no_bit_of_gemma4_depends_on_the_step() {
    check_steps(Family::Gemma4);
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn no_bit_of_llama_depends_on_the_step() {
    check_steps(Family::Llama);
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn no_bit_of_qwen3_depends_on_the_step() {
    check_steps(Family::Qwen3);
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn no_bit_of_ministral3_depends_on_the_step() {
    check_steps(Family::Ministral3);
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn no_bit_of_qwen35_depends_on_the_step() {
    check_steps(Family::Qwen35);
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn no_bit_of_smollm3_depends_on_the_step() {
    check_steps(Family::SmolLm3);
}

/// Rows that an activation had when it was written last.
fn rows_of(scratch: &Scratch<Cuda>, name: &str) -> usize {
    let shown = format!("{scratch:?}");
    let (_, buffer) = shown.split_once(&format!(" {name}: Buffer {{")).unwrap();
    let (_, rows) = buffer.split_once(" rows: ").unwrap();
    rows[..rows.find(',').unwrap()].parse().unwrap()
}

/// A step of two rows of a long sequence and of a prompt: with the logits of all rows, and of few. Those alone go on where
/// nothing is kept any more for later steps: in Gemma 4's last two layers, and behind any last layer's attention.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn rows_without_logits_stay_behind_where_layers_share_keys() {
    let gpu = gpu();
    let (before, length) = (600, 90);
    let [old, new] = [tokens(8, before + 2), tokens(9, length)];
    let all: Vec<usize> = (0..2 + length).collect();
    for family in FAMILIES {
        let decoder = load_on(&gpu, &common::synthetic(family), WantedPrecision::default());
        let limits = StepLimits { rows: before, logit_rows: all.len(), positions: before + 2 };
        let tables: [Vec<u32>; 2] = [(0..19).rev().collect(), (19..22).collect()];
        let tables: [&[u32]; 2] = tables.each_ref().map(|table| &table[..]);
        let states = [0, 1].map(|slot| StateRows { slot, ..StateRows::default() });
        let compute = |logit_rows: &[usize]| {
            let config = &decoder.config;
            let mut cache = Cache::new(&gpu, config, decoder.precision, 22, 2).unwrap();
            let mut scratch = Scratch::new(&gpu, config, limits).unwrap();
            let mut step = |parts: [(&[u32], usize); 2], logit_rows: &[usize]| {
                let of_parts = parts.iter().zip(0..).flat_map(|((tokens, first), sequence)| {
                    let rows = tokens.iter().zip(*first as u32..);
                    rows.map(move |(token, position)| (*token, (position, sequence)))
                });
                let (tokens, places): (Vec<u32>, Vec<(u32, u32)>) = of_parts.unzip();
                let (positions, sequences): (Vec<u32>, Vec<u32>) = places.into_iter().unzip();
                let rows = Rows {
                    tokens: &tokens,
                    positions: &positions,
                    sequences: &sequences,
                    segments: &[],
                    tables: &tables,
                    states: &states,
                };
                decoder.forward(&gpu, rows, logit_rows, &mut cache, &mut scratch);
            };
            step([(&old[..before], 0), (&[], 0)], &[]);
            step([(&old[before..], before), (&new, 0)], logit_rows);
            let logits = gpu.read(scratch.logits().0, logit_rows.len()).unwrap();
            let logits: Vec<Vec<f32>> =
                logits.chunks(decoder.config.vocab_size).map(<[f32]>::to_vec).collect();
            (logits, ["queries", "gated"].map(|name| rows_of(&scratch, name)))
        };
        let (whole, counts) = compute(&all);
        assert_eq!(counts, [all.len(); 2], "{family:?}");
        for few in [&[0, 1, length + 1][..], &[1, 40, 41, 77], &[]] {
            let (logits, [queries, gated]) = compute(few);
            let attending = if family == Family::Gemma4 { few.len() } else { all.len() };
            assert_eq!([queries, gated], [attending, few.len()], "{family:?}, {few:?}");
            assert!(few.iter().map(|row| &whole[*row]).eq(&logits), "{family:?}, {few:?}");
        }
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn completions_do_not_depend_on_their_neighbours() {
    check_neighbours(Family::Gemma3);
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn completions_of_gemma4_do_not_depend_on_their_neighbours() {
    check_neighbours(Family::Gemma4);
}

/// Three prompts begin alike, so that states are copied.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn completions_with_states_do_not_depend_on_their_neighbours() {
    check_neighbours(Family::Qwen35);
}

fn check_neighbours(family: Family) {
    let gpu = gpu();
    let sampling = Sampling {
        temperature: 0.8,
        top_k: Some(40),
        top_p: Some(0.95),
        repetition_penalty: Some(1.1),
        ..Sampling::default()
    };
    let requests: Vec<Request> = (0..9)
        .map(|index| Request {
            tokens: tokens(index % 3, 20 + 23 * index as usize),
            sampling: if index % 2 == 0 { sampling } else { common::GREEDY },
            seed: index,
            max_tokens: 12,
            logprobs: (index == 4).then_some(3),
            prompt_logprobs: (index == 5).then_some(2),
            logit_bias: if index == 6 { vec![(301, 2.0), (302, -1.5)] } else { Vec::new() },
            ..Request::default()
        })
        .collect();
    let directory = common::synthetic(family);
    let engine = |options: EngineOptions| {
        let decoder = load_on(&gpu, &directory, WantedPrecision::default());
        common::start(decoder, common::tokenizer(&directory), options, &gpu)
    };
    let strip = |completion: Completion| {
        let Completion { tokens, text, logprobs, prompt_logprobs, .. } = completion;
        (tokens, text, logprobs, prompt_logprobs)
    };
    let alone: Vec<_> = requests
        .iter()
        .map(|request| strip(common::complete(&engine(OPTIONS), request.clone())))
        .collect();
    // The second has pages for two or three at once.
    for (pages, max_batch, prefill_rows) in [(512, 9, 256), (16, 5, 40)] {
        let together = engine(EngineOptions {
            pages,
            max_batch,
            prefill_rows,
            context: 400,
            draft: 3,
            ..OPTIONS
        });
        let tickets: Vec<Ticket> =
            requests.iter().map(|request| together.submit(request.clone()).unwrap()).collect();
        for (ticket, alone) in tickets.into_iter().zip(&alone) {
            assert!(strip(ticket.wait().unwrap()) == *alone);
        }
    }
}

/// An encoder on the GPU, its weights kept so.
fn encoding(folder: &Path, kept: (StoredType, Quantisation)) -> EncoderOptions {
    EncoderOptions {
        dtype: WantedType::Exactly(kept.0),
        quantisation: kept.1,
        ..EncoderOptions::new(folder, Device::Cuda(gpu()))
    }
}

const IN_F32: (StoredType, Quantisation) = (StoredType::F32, Quantisation::None);

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn encoders_and_rerankers_in_f32_equal_the_goldens() {
    let goldens = Goldens::read();
    for (name, copy, dims) in [("cut", cut(), Some(8)), ("medcpt", medcpt(), None)] {
        let options = EncoderOptions { dims, ..encoding(copy.path(), IN_F32) };
        goldens.check_encoder(name, &Encoder::open(&options).unwrap());
    }
    goldens.check_reranker(&Reranker::open(&encoding(cross().path(), IN_F32)).unwrap());
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn no_bit_of_an_encoder_in_f32_depends_on_the_batch() {
    Goldens::read().assert_no_bit_depends_on_the_batch(&|folder, _| encoding(folder, IN_F32));
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn no_bit_of_an_encoder_in_bf16_depends_on_the_batch() {
    let narrow = (StoredType::Bf16, Quantisation::None);
    Goldens::read().assert_no_bit_depends_on_the_batch(&|folder, _| encoding(folder, narrow));
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn no_bit_of_an_encoder_in_q8_0_depends_on_the_batch() {
    let narrow = (StoredType::F32, Quantisation::Q8_0);
    Goldens::read().assert_no_bit_depends_on_the_batch(&|folder, _| encoding(folder, narrow));
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn narrow_weights_of_encoders_keep_the_direction() {
    let goldens = Goldens::read();
    for copy in [cut(), medcpt()] {
        let folder = copy.path();
        let embed = |options: EncoderOptions| {
            Encoder::open(&options).unwrap().embed_documents(&goldens.documents()).unwrap()
        };
        let exact = embed(encoding(folder, IN_F32));
        let narrow = (StoredType::Bf16, Quantisation::None);
        for kept in [narrow, (StoredType::F32, Quantisation::Q8_0)] {
            for (ours, exact) in embed(encoding(folder, kept)).iter().zip(&exact) {
                let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
                let cosine = dot(ours, exact) / (dot(ours, ours) * dot(exact, exact)).sqrt();
                assert!(cosine > 0.995, "{} {kept:?}: {cosine}", folder.display());
            }
        }
    }
}

/// A corpus of three texts, by a tiny encoder and reranker.
struct Ward {
    folder: tempfile::TempDir,
    encoder: Copy,
    reranker: Copy,
}

impl Ward {
    fn new() -> Ward {
        let ward = Ward { folder: tempfile::tempdir().unwrap(), encoder: cut(), reranker: cross() };
        let source = "[[source]]\nlabel = \"ward\"\nformat = \"jsonl\"\npath = \"ward.jsonl\"\nlicence = \"internal\"\n";
        ward.write("own.toml", &format!("name = \"own\"\n{source}"));
        let texts =
            ["Magnesium is the first choice.", "Salbutamol by inhaler.", "Rest and fluids."];
        let row = |(id, text)| format!("{{\"id\": \"{id}\", \"text\": \"{text}\"}}\n");
        let rows: String = texts.into_iter().enumerate().map(row).collect();
        ward.write("ward.jsonl", &rows);
        ward
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn wardround(&self, arguments: &str, folder: &Path) -> String {
        let mut command = Command::new(places::program(env!("CARGO_BIN_EXE_wardround")));
        command.current_dir(self.folder.path()).args(arguments.split(' ')).arg(folder);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Builds the corpus there.
    fn build(&self, out: &str, device: &str) {
        let build =
            format!("corpus build own.toml --out {out} --device {device} --quiet --encoder");
        self.wardround(&build, self.encoder.path());
    }
}

const DEVICES: [&str; 2] = ["cpu", "cuda"];

/// In f32, so that passages come in the CPU's order.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn a_corpus_is_built_searched_and_reranked_on_the_gpu() {
    let ward = Ward::new();
    let [on_cpu, on_gpu] = DEVICES.map(|device| {
        ward.build(device, device);
        let more = "--rerank-top-k 3 --device";
        let search = format!("corpus search {device} eclampsia {more} {device} --reranker");
        let found = ward.wardround(&search, ward.reranker.path());
        let found: serde_json::Value = serde_json::from_str(&found).unwrap();
        let shown = found["shown"].as_array().unwrap().iter();
        shown.map(|passage| passage["chunk"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    });
    assert_eq!((on_gpu.len(), on_gpu), (3, on_cpu));
}

/// A run's queries are encoded and its passages reranked on the panel's device; the panel answers over HTTP.
#[cfg(feature = "remote")]
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn medreflex_searches_on_the_panels_gpu() {
    let ward = Ward::new();
    let note = "{\"id\": \"a\", \"text\": \"0 Seen on the ward.\", \"gold\": {\"flag\": 0}}\n";
    ward.write("notes.jsonl", note);
    let member = common::endpoint::serve(|request| {
        let user = request["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
        common::endpoint::said(if user.contains("Assess the final answer") {
            r#"{"final_reasoning": "so", "final_score": 5}"#
        } else if !user.contains("Write the next step") {
            r#"{"is_error": false, "reasoning": "r", "sentence_id": -1, "error_sentence": "NA", "corrected_sentence": "NA"}"#
        } else if user.contains("STEP 1") {
            r#"{"observation": "o", "thought": "t", "action": "final_mistake(\"NA\", \"NA\")"}"#
        } else {
            r#"{"observation": "o", "thought": "t", "action": "search(\"attack of asthma\")"}"#
        })
    });
    ward.build("corpus", "cpu");
    let [on_cpu, on_gpu] = DEVICES.map(|device| {
        let run = format!(
            "run medreflex --decoding text --data notes.jsonl --format notes --panel {member} --corpus corpus --out {device} --quiet --device {device} --reranker"
        );
        ward.wardround(&run, ward.reranker.path());
        let log = fs::read_to_string(ward.folder.path().join(device).join("searches.jsonl"));
        let search: serde_json::Value = serde_json::from_str(log.unwrap().trim()).unwrap();
        search["shown"].as_array().unwrap().len()
    });
    assert_eq!((on_gpu, on_gpu), (3, on_cpu));
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn a_run_on_the_gpu_is_made_again_byte_for_byte() {
    let ward = Ward::new();
    let question = r#"{"id": "q1", "question": "Seven times one?", "options": ["7", "8", "9"], "answer": "A"}"#;
    ward.write("questions.jsonl", &format!("{question}\n"));
    let run = "run zero-shot --format mcq --data questions.jsonl --set record_chars=4 --quiet --out run --device cuda --panel";
    ward.wardround(run, &common::synthetic(Family::Qwen3));
    let again = ward.wardround("replay --device cuda", Path::new("run"));
    assert!(again.contains("1 call replayed, 0 differences"), "{again}");
}

/// As on a GPU machine that has neither Rust nor the folders that this was built in: runs itself again from elsewhere.
#[test]
fn a_carried_binary_finds_its_files() {
    const CARRIED: &str = "WARDROUND_TEST_CARRIED";
    let built = env!("CARGO_BIN_EXE_wardround");
    if std::env::var_os(CARRIED).is_some() {
        println!("goldens {}", common::goldens().display());
        println!("program {}", places::program(built).display());
        return;
    }
    let away = tempfile::tempdir().unwrap();
    let away = away.path().canonicalize().unwrap();
    fs::create_dir_all(away.join("tree/tests/goldens")).unwrap();
    let carried = away.join("cuda-tests");
    fs::copy(std::env::current_exe().unwrap(), &carried).unwrap();
    let found = |folder: &str, named: [Option<&str>; 2]| {
        let mut command = Command::new(&carried);
        command.args(["--exact", "a_carried_binary_finds_its_files", "--nocapture"]);
        command.env(CARRIED, "1").current_dir(away.join(folder));
        for (name, value) in ["WARDROUND_REPOSITORY", "WARDROUND_PROGRAM"].into_iter().zip(named) {
            command.env_remove(name).envs(value.map(|value| (name, value)));
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let nothing_near = found("", [None, None]);
    let goldens = format!("goldens {}/tests/goldens\n", env!("CARGO_MANIFEST_DIR"));
    assert!(nothing_near.contains(&goldens), "{nothing_near}");
    assert!(nothing_near.contains(&format!("program {built}\n")), "{nothing_near}");
    fs::write(away.join("wardround"), "").unwrap();
    let near = found("tree", [None, None]);
    assert!(near.contains(&format!("goldens {}/tree/tests/goldens\n", away.display())), "{near}");
    assert!(near.contains(&format!("program {}/wardround\n", away.display())), "{near}");
    let named = found("tree", [Some("/one"), Some("/two")]);
    assert!(named.contains("goldens /one/tests/goldens\nprogram /two\n"), "{named}");
}
