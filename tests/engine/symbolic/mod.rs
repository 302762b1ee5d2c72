//! Equal bits whatever the batch, shown of the operations instead of numbers: every number is the hash of how it was made
//! (`crates/ops/src/cpu/lanes/symbolic.rs`), and a row's are those that it has alone, one row a step, in every shape of a step below.
//! What holds of the hashes holds of the bits, whatever the weights and the tokens.
//!
//! Covered: the CPU's operations of a decoder from the embedding to the logits, in the blocks of every instruction set, and the engine that
//! puts steps together. Assumed: what follows logits (it is given one row and its request), that the table of embeddings gives a
//! token its row, and what `symbolic.rs` says of finite numbers.

mod faults;
mod witness;

use std::time::Instant;

use wardround::engine::{EngineOptions, Request, Ticket};
use wardround::model::config::Layer;
use wardround::model::{
    Config, Decoder, Family, Scratch, WantedPrecision, WantedType, precision_of,
};
use wardround::ops::cpu::{Isa, KvPages};
use wardround::ops::{Backend, Cpu, Machine, PAGE, Quantisation, Rows, StepLimits, StoredType};

use crate::alone::FAMILIES;
use crate::common::{self, OPTIONS, tokens};
use faults::Fault;
use witness::Witness;

/// Whose blocks the schedules take turns in: all give the same bits, so the same hashes.
static LIKE: [&Isa; 4] = [&Isa::Portable, &Isa::Avx2, &Isa::AvxVnni, &Isa::Avx512Vnni];

/// Whose instructions round activations to meet bf16: their sums are of their own, opaque operations.
static ROUNDING: [&Isa; 2] = [&Isa::Avx512Bf16, &Isa::Amx];

/// Set: every shape up to 24 rows and chunks up to 600, which takes minutes; else a choice of them.
const ALL: &str = "WARDROUND_ALL_SHAPES";

/// Of rows a step, at most.
const MOST: usize = 600;

/// How weights, keys and values are kept: as stored (bf16), as f32, in blocks.
fn precisions() -> [WantedPrecision; 5] {
    let auto = WantedPrecision::default();
    let wide = WantedType::Exactly(StoredType::F32);
    [
        auto,
        WantedPrecision { dtype: wide, kv: wide, ..auto },
        WantedPrecision { quantisation: Quantisation::Q8_0, ..auto },
        WantedPrecision { quantisation: Quantisation::Int8, ..auto },
        WantedPrecision { quantisation: Quantisation::Q4K, kv: wide, ..auto },
    ]
}

/// A tiny model, whose windows are cut to fewer positions than most prompts have.
fn decoder(family: Family, wanted: WantedPrecision, ops: &Witness) -> Decoder<Witness> {
    let directory = common::synthetic(family);
    let mut config = Config::read(&directory.join("config.json")).unwrap();
    for layer in &mut config.layers {
        if let Layer::Sliding(window) = layer {
            *window = 40;
        }
    }
    let files = common::weight_files(&directory);
    let precision = precision_of(&config, &files, wanted, Machine::Cpu).unwrap();
    Decoder::load(ops, config, &files, precision, 1024).unwrap()
}

/// One sequence: its tokens, how many of them are computed, and its pages.
#[derive(Clone, Default)]
struct Sequence {
    tokens: Vec<u32>,
    computed: usize,
    pages: Vec<u32>,
}

/// A decoder, pages for its sequences, and the machine that computes.
struct Bed {
    decoder: Decoder<Witness>,
    ops: Witness,
    pages: KvPages,
    scratch: Scratch<Witness>,
    taken: u32,
}

const PAGES: usize = 800;

impl Bed {
    /// Rows alone are computed in the order of `like`.
    fn new(family: Family, wanted: WantedPrecision, like: &'static Isa) -> Bed {
        let ops = Witness::new(Cpu::symbolic(1, like).unwrap());
        let decoder = decoder(family, wanted, &ops);
        let limits = StepLimits { rows: MOST, logit_rows: MOST, positions: 1024 };
        let shape = decoder.config.page_shape();
        Bed {
            pages: ops.pages(shape, decoder.precision().kv, PAGES).unwrap(),
            scratch: Scratch::new(&ops, &decoder.config, limits).unwrap(),
            decoder,
            ops,
            taken: 0,
        }
    }

    /// The next `rows` rows of each of these sequences in one step; the last of each gives logits, or every one.
    fn step(&mut self, parts: &mut [(&mut Sequence, usize)], all_logits: bool) {
        let (mut ids, mut positions, mut sequences, mut chosen) = (vec![], vec![], vec![], vec![]);
        for (index, (sequence, rows)) in parts.iter_mut().enumerate() {
            let range = sequence.computed..sequence.computed + *rows;
            while sequence.pages.len() < range.end.div_ceil(PAGE) {
                // What pages held before is overwritten: a sequence that is done needs none.
                sequence.pages.push(self.taken % PAGES as u32);
                self.taken += 1;
            }
            ids.extend_from_slice(&sequence.tokens[range.clone()]);
            positions.extend(range.clone().map(|position| position as u32));
            sequences.extend(range.clone().map(|_| index as u32));
            let first = if all_logits { ids.len() - *rows } else { ids.len() - 1 };
            chosen.extend(first..ids.len());
            sequence.computed = range.end;
        }
        let tables: Vec<&[u32]> = parts.iter().map(|(sequence, _)| &*sequence.pages).collect();
        let rows = Rows {
            tokens: &ids,
            positions: &positions,
            sequences: &sequences,
            segments: &[],
            tables: &tables,
        };
        let Bed { decoder, ops, pages, scratch, .. } = self;
        ops.clone().run(|| decoder.forward(ops, rows, &chosen, pages, scratch));
    }

    /// All of a sequence in steps of `rows` rows, up to `end`.
    fn run(&mut self, sequence: &mut Sequence, rows: usize, end: usize) {
        while sequence.computed < end {
            let rows = rows.min(end - sequence.computed);
            // Logits of every row are worth comparing in some steps, and cost most in all.
            self.step(&mut [(&mut *sequence, rows)], rows < 40);
        }
    }

    /// Every shape of a step up to `most` sequences and chunks of `chunks` rows; what was known before is compared.
    fn all_shapes(&mut self, most: usize, chunks: &[usize], cpus: &[Cpu]) {
        let longest = chunks.iter().copied().max().unwrap_or(0).max(2 * most);
        let stream = Sequence { tokens: tokens(1, longest.max(360)), ..Sequence::default() };
        let batch: Vec<Sequence> = (0..most)
            .map(|index| {
                let length = 1 + index * 11 % 97;
                Sequence { tokens: tokens(2 + index as u64, length + most), ..Sequence::default() }
            })
            .collect();
        // Alone, a row a step.
        let mut alone = stream.clone();
        self.run(&mut alone, 1, longest);
        for sequence in &batch {
            self.run(&mut sequence.clone(), 1, sequence.tokens.len());
        }
        let mut turn = 0;
        let mut next_machine = |bed: &mut Bed| {
            turn += 1;
            bed.ops = bed.ops.on(&cpus[turn % cpus.len()]);
        };
        // Prompts in chunks.
        for rows in 1..=most {
            next_machine(self);
            self.run(&mut stream.clone(), rows, 2 * rows);
        }
        for &rows in chunks {
            next_machine(self);
            self.run(&mut stream.clone(), rows, rows);
        }
        // From the prefix index: pages that another schedule filled, up to their end, and a chunk after them.
        let kept = longest / PAGE * PAGE;
        for pages in 1..kept / PAGE {
            next_machine(self);
            let computed = pages * PAGE;
            let pages = alone.pages[..pages].to_vec();
            let mut resumed = Sequence { computed, pages, ..stream.clone() };
            self.run(&mut resumed, 1 + computed % 37, longest.min(computed + 40));
        }
        // Decoding together, and beside a prompt's chunk.
        let mut batch = batch;
        for sequence in &mut batch {
            next_machine(self);
            let end = sequence.tokens.len() - most;
            self.run(sequence, 29, end);
        }
        let mut beside = stream.clone();
        for count in 1..=most {
            next_machine(self);
            let mut parts: Vec<(&mut Sequence, usize)> =
                batch[..count].iter_mut().map(|sequence| (sequence, 1)).collect();
            if count % 3 == 0 && beside.computed + count < longest {
                parts.insert(count / 2, (&mut beside, count));
            }
            self.step(&mut parts, false);
        }
    }
}

/// Machines of one, two and three threads, in the blocks of each of `like`.
fn cpus(like: &[&'static Isa]) -> Vec<Cpu> {
    let threads = [2, 1, 3, 2];
    let both = like.iter().zip(threads.into_iter().cycle());
    both.map(|(like, threads)| Cpu::symbolic(threads, like).unwrap()).collect()
}

#[test]
fn every_shape_of_a_step_computes_a_row_as_alone() {
    let started = Instant::now();
    let (mut steps, mut compared) = (0, 0);
    let plain = precisions().map(|wanted| (wanted, LIKE.as_slice()));
    let rounding = ROUNDING.iter().map(|like| (precisions()[0], std::slice::from_ref(like)));
    let cases: Vec<(WantedPrecision, &[&'static Isa])> =
        plain.into_iter().chain(rounding).collect();
    let all = std::env::var_os(ALL).is_some();
    for family in FAMILIES {
        for (index, &(wanted, like)) in cases.iter().enumerate() {
            let mut bed = Bed::new(family, wanted, like[0]);
            let (most, chunks): (usize, &[usize]) = match (all, index) {
                (true, 0) => (24, &[96, 191, 193, 255, 256, 257, 385, MOST]),
                (true, _) => (13, &[33, 97, 256]),
                (false, 0) => (9, &[97, 257]),
                (false, _) => (5, &[33, 97]),
            };
            bed.all_shapes(most, chunks, &cpus(like));
            let notes = bed.ops.notes();
            if let Some(parting) = &notes.parting {
                panic!("{}, {wanted:?}, {like:?}: {parting}", family.name());
            }
            steps += notes.steps.values().sum::<usize>();
            compared += notes.compared;
            println!("{}, {wanted:?}, {like:?}: {:?}", family.name(), started.elapsed());
        }
    }
    println!("{steps} steps, {compared} rows' operations compared, {:?}", started.elapsed());
}

#[test]
fn the_engine_computes_a_row_as_alone() {
    let started = Instant::now();
    let shared = tokens(1, 352);
    let requests: Vec<Request> = (0..8)
        .map(|index| Request {
            tokens: [
                &shared[..[0, 64, 65, 96][index % 4]],
                &tokens(index as u64, 1 + 31 * index % 90),
            ]
            .concat(),
            seed: index as u64,
            max_tokens: 14,
            ..Request::default()
        })
        .collect();
    for (family, wanted) in FAMILIES.into_iter().zip(precisions()) {
        let ops = Witness::new(Cpu::symbolic(1, &Isa::Portable).unwrap());
        let tokenizer = common::tokenizer(&common::synthetic(family));
        let engine = |ops: &Witness, options: EngineOptions| {
            common::start(decoder(family, wanted, ops), tokenizer.clone(), options, ops)
        };
        let options = EngineOptions { context: 512, ..OPTIONS };
        let alone = engine(&ops, EngineOptions { max_batch: 1, prefill_rows: 1, ..options });
        for request in &requests {
            alone.submit(request.clone()).unwrap().wait().unwrap();
        }
        drop(alone);
        let known = ops.notes().compared;
        for (options, cpu) in [
            EngineOptions { max_batch: 8, prefill_rows: 64, ..options },
            EngineOptions { max_batch: 5, prefill_rows: 7, draft: 4, ..options },
            EngineOptions { pages: 9, prefill_rows: 256, ..options },
        ]
        .into_iter()
        .zip(cpus(&LIKE[1..]))
        {
            let engine = engine(&ops.on(&cpu), options);
            // Twice, the second time from the prefix index; in few pages until some are preempted.
            for round in 0.. {
                let tickets: Vec<Ticket> = requests
                    .iter()
                    .map(|request| engine.submit(request.clone()).unwrap())
                    .collect();
                tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
                let preempted = engine.snapshot().unwrap().stats.counts.preemptions > 0;
                if round > 0 && (preempted || options.pages > 9) {
                    break;
                }
                assert!(round < 20, "nothing was preempted");
            }
            let counts = engine.finish().unwrap().counts;
            assert!(counts.cached_tokens > 0, "nothing from the prefix index");
        }
        let notes = ops.notes();
        assert!(notes.compared > 2 * known + 10_000, "{} compared", notes.compared);
        if let Some(parting) = &notes.parting {
            panic!("{}: {parting}", family.name());
        }
        println!("{}: {} compared, {:?}", family.name(), notes.compared, started.elapsed());
    }
}

#[test]
fn planted_faults_are_found_and_named() {
    let cpus = cpus(&LIKE);
    let stream = Sequence { tokens: tokens(1, 300), ..Sequence::default() };
    for fault in Fault::ALL {
        // A shape that has the fault, one that has not (but for threads), and what is to be named.
        let (with, without, operation) = match fault {
            Fault::SplitByBatch => (9, Some(7), "matmul"),
            Fault::BlockAt256 => (256, Some(255), "norm"),
            Fault::OrderByThread => (2, None, "matmul"),
            Fault::FusedNorm => (4, Some(5), "norm of the sum"),
        };
        let mut bed = Bed::new(Family::Llama, precisions()[0], &Isa::Portable);
        // Known from a schedule without the fault, for a row a step has that of the fused norm; threads come by otherwise each time.
        bed.ops.fault = (fault == Fault::OrderByThread).then_some(fault);
        bed.run(&mut stream.clone(), 8, 256);
        bed.ops = bed.ops.on(&cpus[1]);
        bed.ops.fault = Some(fault);
        if let Some(rows) = without {
            bed.run(&mut stream.clone(), rows, 255 / rows * rows);
            assert!(bed.ops.notes().parting.is_none(), "{fault:?}: {:?}", bed.ops.notes().parting);
        }
        bed.run(&mut stream.clone(), with, with);
        let Some(parting) = bed.ops.notes().parting.clone() else { panic!("{fault:?} not found") };
        assert_eq!((parting.operation, parting.rows), (operation, with), "{fault:?}: {parting}");
        println!("{fault:?}: {parting}");
    }
}
