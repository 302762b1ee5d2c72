//! Steps of every shape, by one machine or another, and what shows that they compute a row as alone; for each backend.

use std::time::Instant;

use wardround::engine::{EngineOptions, Request, Ticket};
use wardround::model::config::Layer;
use wardround::model::{Config, Decoder, Family, Scratch, WantedPrecision, precision_of};
use wardround::ops::{Backend, PAGE, Rows, StepLimits};

use super::faults::Fault;
use super::witness::{Hashing, Witness};
use crate::common::{self, OPTIONS, tokens};

/// Set: every shape that docs/determinism.md names, which takes minutes; else a choice of them.
pub const ALL: &str = "WARDROUND_ALL_SHAPES";

/// Of rows a step, at most.
pub const MOST: usize = 600;

/// A tiny model, whose windows are cut to fewer positions than most prompts have.
fn decoder<B: Hashing>(
    family: Family,
    wanted: WantedPrecision,
    ops: &Witness<B>,
) -> Decoder<Witness<B>> {
    let directory = common::synthetic(family);
    let mut config = Config::read(&directory.join("config.json")).unwrap();
    for layer in &mut config.layers {
        if let Layer::Sliding(window) = layer {
            *window = 40;
        }
    }
    let files = common::weight_files(&directory);
    let precision = precision_of(&config, &files, wanted, B::MACHINE).unwrap();
    Decoder::load(ops, config, &files, precision, 1024).unwrap()
}

/// One sequence: its tokens, how many of them are computed, and its pages.
#[derive(Clone, Default)]
pub struct Sequence {
    pub tokens: Vec<u32>,
    pub computed: usize,
    pub pages: Vec<u32>,
}

/// A decoder, pages for its sequences, and the machine that computes.
pub struct Bed<B: Hashing> {
    decoder: Decoder<Witness<B>>,
    pub ops: Witness<B>,
    pages: B::Pages,
    scratch: Scratch<Witness<B>>,
    taken: u32,
}

const PAGES: usize = 800;

impl<B: Hashing> Bed<B> {
    /// Rows alone are computed by `machine`.
    pub fn new(family: Family, wanted: WantedPrecision, machine: B) -> Bed<B> {
        let ops = Witness::new(machine);
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
    pub fn run(&mut self, sequence: &mut Sequence, rows: usize, end: usize) {
        while sequence.computed < end {
            let rows = rows.min(end - sequence.computed);
            // Logits of every row are worth comparing in some steps, and cost most in all.
            self.step(&mut [(&mut *sequence, rows)], rows < 40);
        }
    }

    /// Every shape of a step up to `most` sequences and chunks of `chunks` rows; what was known before is compared.
    pub fn all_shapes(&mut self, most: usize, chunks: &[usize], machines: &[B]) {
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
        let mut next_machine = |bed: &mut Bed<B>| {
            turn += 1;
            bed.ops = bed.ops.on(&machines[turn % machines.len()]);
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

/// The engine's steps for these requests: alone, by the first machine; by each other one together, with drafts, preempted, twice.
pub fn check_engine<B: Hashing>(
    family: Family,
    wanted: WantedPrecision,
    requests: usize,
    [first, others @ ..]: [B; 4],
) {
    let started = Instant::now();
    let shared = tokens(1, 352);
    let requests: Vec<Request> = (0..requests)
        .map(|index: usize| Request {
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
    let ops = Witness::new(first);
    let tokenizer = common::tokenizer(&common::synthetic(family));
    let engine = |ops: &Witness<B>, options: EngineOptions| {
        common::start(decoder(family, wanted, ops), tokenizer.clone(), options, ops)
    };
    let options = EngineOptions { context: 512, ..OPTIONS };
    let alone = engine(&ops, EngineOptions { max_batch: 1, prefill_rows: 1, ..options });
    for request in &requests {
        alone.submit(request.clone()).unwrap().wait().unwrap();
    }
    drop(alone);
    let known = ops.notes().compared;
    for (options, machine) in [
        EngineOptions { max_batch: 8, prefill_rows: 64, ..options },
        EngineOptions { max_batch: 5, prefill_rows: 7, draft: 4, ..options },
        EngineOptions { pages: 9, prefill_rows: 256, ..options },
    ]
    .into_iter()
    .zip(&others)
    {
        let engine = engine(&ops.on(machine), options);
        // Twice, the second time from the prefix index; in few pages until some are preempted.
        for round in 0.. {
            let tickets: Vec<Ticket> =
                requests.iter().map(|request| engine.submit(request.clone()).unwrap()).collect();
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
    assert!(notes.compared > 2 * known + 1000 * requests.len(), "{} compared", notes.compared);
    if let Some(parting) = &notes.parting {
        panic!("{}: {parting}", family.name());
    }
    println!("{}: {} compared, {:?}", family.name(), notes.compared, started.elapsed());
}

/// That each fault is found, and named.
pub fn check_faults<B: Hashing>([first, second]: [B; 2]) {
    let stream = Sequence { tokens: tokens(1, 300), ..Sequence::default() };
    for fault in Fault::ALL {
        // A shape that has the fault, one that has not (but for threads), and what is to be named.
        let (with, without, operation) = match fault {
            Fault::SplitByBatch => (9, Some(7), "matmul"),
            Fault::BlockAt256 => (256, Some(255), "norm"),
            Fault::OrderByThread => (2, None, "matmul"),
            Fault::FusedNorm => (4, Some(5), "norm of the sum"),
        };
        let mut bed = Bed::new(Family::Llama, WantedPrecision::default(), first.clone());
        // Known from a schedule without the fault, for a row a step has that of the fused norm; threads come by otherwise each time.
        bed.ops.fault = (fault == Fault::OrderByThread).then_some(fault);
        bed.run(&mut stream.clone(), 8, 256);
        bed.ops = bed.ops.on(&second);
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
