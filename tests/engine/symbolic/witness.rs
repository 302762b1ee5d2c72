//! A backend that notes what each operation gave for each row, under all that it may depend on: the row's tokens up to there. Where a
//! schedule gives a row something else than another schedule did, it says at which operation, row and columns.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use wardround::ops::checkpoint::RawTensor;
use wardround::ops::cpu;
use wardround::ops::sampling::{Drawn, SamplingRequest};
use wardround::ops::{
    Activation, AttentionShape, Backend, BranchNorms, Cpu, HeadNorms, LayerPages, Machine, Numbers,
    OpsError, PAGE, PageShape, Precision, Rows, StepLimits, StoredType,
};

use super::faults::Fault;

/// Columns that are noted as one: a tile of weights.
const TILE: usize = 16;

/// A machine whose numbers are hashes, and what lies in its memory.
pub trait Hashing: Backend {
    /// Rows, and numbers in each.
    fn shape(buffer: &Self::Buffer) -> [usize; 2];
    fn held(&self, buffer: &Self::Buffer, rows: usize) -> Vec<f32>;
    /// So many rows, as an operation would leave them.
    fn put(&self, rows: usize, numbers: &[f32], buffer: &mut Self::Buffer);
    fn numbers(&self, vector: &Self::Vector) -> Vec<f32>;
}

impl Hashing for Cpu {
    fn shape(buffer: &cpu::Buffer) -> [usize; 2] {
        [buffer.rows(), buffer.row(0).len()]
    }

    fn held(&self, buffer: &cpu::Buffer, rows: usize) -> Vec<f32> {
        self.read(buffer, rows).unwrap()
    }

    fn put(&self, rows: usize, numbers: &[f32], buffer: &mut cpu::Buffer) {
        buffer.reshape(rows, numbers.len() / rows);
        let numbers = numbers.iter();
        buffer.rows_mut().flatten().zip(numbers).for_each(|(to, from)| *to = *from);
    }

    fn numbers(&self, vector: &cpu::Vector) -> Vec<f32> {
        vector.0.clone()
    }
}

/// Such a machine, and what is known of rows. Clones share that.
#[derive(Clone, Debug)]
pub struct Witness<B> {
    pub machine: B,
    pub fault: Option<Fault>,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Debug, Default)]
pub struct Notes {
    /// Of each sequence of tokens, by its hash: what each operation gave for the last of them, a number a tile.
    known: HashMap<u64, Vec<Vec<u32>>>,
    /// Of the tokens up to each place of the pages.
    prefixes: HashMap<(u32, usize), u64>,
    /// The step under way: its rows, of them those that are left, and its operations so far.
    all: Vec<Row>,
    rows: Vec<Row>,
    chosen: Vec<usize>,
    operation: usize,
    /// Of the step: attentions, and additions of a branch.
    attentions: usize,
    additions: usize,
    /// Steps, by their rows, and rows' operations that were compared.
    pub steps: HashMap<usize, usize>,
    pub compared: usize,
    /// The first row that was not as it was known.
    pub parting: Option<Parting>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    index: usize,
    position: usize,
    prefix: u64,
}

/// Where two schedules part.
#[derive(Clone, Debug)]
pub struct Parting {
    pub operation: &'static str,
    layer: usize,
    pub row: usize,
    pub rows: usize,
    pub position: usize,
    columns: usize,
}

impl fmt::Display for Parting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parting { operation, layer, row, rows, position, columns } = self;
        let end = columns + TILE;
        write!(
            formatter,
            "{operation} of layer {layer}, row {row} of {rows} (position {position}), columns {columns}..{end}"
        )
    }
}

fn mix(hash: u64, value: u64) -> u64 {
    let mixed = (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

impl Notes {
    fn begin(&mut self, rows: Rows<'_>, chosen: &[usize]) {
        self.all.clear();
        self.chosen = chosen.to_vec();
        (self.operation, self.attentions, self.additions) = (0, 0, 0);
        for index in 0..rows.len() {
            let table = rows.tables[rows.sequences[index] as usize];
            let position = rows.positions[index] as usize;
            let place = |position: usize| (table[position / PAGE], position % PAGE);
            let before = match position {
                0 => 1,
                _ => self.prefixes[&place(position - 1)],
            };
            let prefix = mix(before, u64::from(rows.tokens[index]) + 1);
            self.prefixes.insert(place(position), prefix);
            self.all.push(Row { index, position, prefix });
        }
        self.rows = self.all.clone();
        *self.steps.entry(rows.len()).or_default() += 1;
    }

    /// Only the rows that give logits are left.
    fn keep(&mut self) {
        self.rows = self.chosen.iter().map(|&index| self.all[index]).collect();
    }

    fn note(&mut self, operation: &'static str, given: &[f32]) {
        let width = given.len() / self.rows.len().max(1);
        for (row, from) in self.rows.iter().enumerate() {
            let tile = |tile: &[f32]| {
                tile.iter().fold(7, |hash, value| mix(hash, u64::from(value.to_bits()))) as u32
            };
            let tiles: Vec<u32> = given[row * width..][..width].chunks(TILE).map(tile).collect();
            let known = self.known.entry(from.prefix).or_default();
            match known.get(self.operation) {
                None => known.push(tiles),
                Some(known) => {
                    self.compared += 1;
                    if let Some(tile) = known.iter().zip(&tiles).position(|(a, b)| a != b) {
                        self.parting.get_or_insert(Parting {
                            operation,
                            layer: self.attentions
                                - usize::from(self.additions < 2 * self.attentions),
                            row: from.index,
                            rows: self.all.len(),
                            position: from.position,
                            columns: tile * TILE,
                        });
                    }
                }
            }
        }
        self.operation += 1;
    }
}

impl<B: Hashing> Witness<B> {
    pub fn new(machine: B) -> Witness<B> {
        Witness { machine, fault: None, notes: Arc::default() }
    }

    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }

    /// The same notes, and another machine.
    pub fn on(&self, machine: &B) -> Witness<B> {
        Witness { machine: machine.clone(), ..self.clone() }
    }

    fn note(&self, operation: &'static str, given: &B::Buffer) {
        let mut notes = self.notes();
        let given = self.machine.held(given, notes.rows.len());
        notes.note(operation, &given);
    }

    /// The fault, with the rows of the step.
    fn planted(&self) -> Option<(Fault, usize)> {
        Some((self.fault?, self.notes().all.len()))
    }
}

impl<B: Hashing> Backend for Witness<B> {
    type Buffer = B::Buffer;
    type Matrix = B::Matrix;
    type Vector = B::Vector;
    type Rope = B::Rope;
    type Pages = B::Pages;
    type Stage = B::Stage;
    type Step<'a> = B::Step<'a>;

    const MACHINE: Machine = B::MACHINE;

    fn run<T: Send>(&self, step: impl FnOnce() -> T + Send) -> T {
        self.machine.run(step)
    }

    fn for_each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        self.machine.for_each(count, body);
    }

    fn pack(
        &self,
        parts: &[RawTensor<'_>],
        inputs: usize,
        precision: Precision,
    ) -> Result<B::Matrix, OpsError> {
        self.machine.pack(parts, inputs, precision)
    }

    fn pack_gated(
        &self,
        gate_up: &[RawTensor<'_>; 2],
        inputs: usize,
        precision: Precision,
    ) -> Result<B::Matrix, OpsError> {
        self.machine.pack_gated(gate_up, inputs, precision)
    }

    fn vector(&self, values: Vec<f32>) -> Result<B::Vector, OpsError> {
        self.machine.vector(values)
    }

    fn rope(&self, inverse_frequencies: &[f32], positions: usize) -> Result<B::Rope, OpsError> {
        self.machine.rope(inverse_frequencies, positions)
    }

    fn pages(
        &self,
        shape: PageShape,
        kept: StoredType,
        pages: usize,
    ) -> Result<B::Pages, OpsError> {
        self.machine.pages(shape, kept, pages)
    }

    fn buffer(&self, rows: usize, width: usize, numbers: Numbers) -> Result<B::Buffer, OpsError> {
        self.machine.buffer(rows, width, numbers)
    }

    fn stage(
        &self,
        shape: PageShape,
        heads: usize,
        limits: StepLimits,
    ) -> Result<B::Stage, OpsError> {
        self.machine.stage(shape, heads, limits)
    }

    fn compute<'a>(
        &self,
        rows: Rows<'a>,
        logit_rows: &'a [usize],
        stage: &'a mut B::Stage,
        body: impl FnMut(B::Step<'a>),
    ) {
        self.notes().begin(rows, logit_rows);
        self.machine.compute(rows, logit_rows, stage, body);
    }

    fn embed(&self, table: &B::Matrix, step: B::Step<'_>, scale: f32, out: &mut B::Buffer) {
        self.machine.embed(table, step, scale, out);
        self.note("embed", out);
    }

    fn rms_norm(&self, x: &B::Buffer, weight: &B::Vector, epsilon: f32, out: &mut B::Buffer) {
        match self.planted() {
            Some((Fault::BlockAt256, 256..)) => {
                super::faults::norm_backwards(&self.machine, x, weight, epsilon, out);
            }
            _ => self.machine.rms_norm(x, weight, epsilon, out),
        }
        self.note("norm", out);
    }

    fn add_norm(
        &self,
        residual: &mut B::Buffer,
        branch: &B::Buffer,
        norms: BranchNorms<'_, B::Vector>,
        normed: &mut B::Buffer,
    ) {
        let (next, epsilon) = (norms.next, norms.epsilon);
        self.machine.add_norm(residual, branch, norms, normed);
        if let (Some((Fault::FusedNorm, ..=4)), Some(next)) = (self.planted(), next) {
            super::faults::norm_backwards(&self.machine, residual, next, epsilon, normed);
        }
        self.note("addition", residual);
        if next.is_some() {
            self.note("norm of the sum", normed);
        }
        self.notes().additions += 1;
    }

    fn keep_logit_rows(&self, step: B::Step<'_>, buffers: [&mut B::Buffer; 2]) -> bool {
        let keeps = self.machine.keep_logit_rows(step, buffers);
        if keeps {
            self.notes().keep();
        }
        keeps
    }

    fn gather_norm(
        &self,
        x: &B::Buffer,
        step: B::Step<'_>,
        weight: &B::Vector,
        epsilon: f32,
        out: &mut B::Buffer,
    ) {
        self.machine.gather_norm(x, step, weight, epsilon, out);
        self.notes().keep();
        self.note("norm", out);
    }

    fn matmul(&self, x: &B::Buffer, weights: &B::Matrix, out: &mut B::Buffer) {
        match self.planted() {
            Some(planted) => super::faults::multiply(planted, &self.machine, x, weights, out),
            None => self.machine.matmul(x, weights, out),
        }
        self.note("matmul", out);
    }

    fn matmul_gated(
        &self,
        x: &B::Buffer,
        weights: &B::Matrix,
        activation: Activation,
        products: &mut B::Buffer,
        out: &mut B::Buffer,
    ) {
        self.machine.matmul_gated(x, weights, activation, products, out);
        self.note("gated matmul", out);
    }

    fn rotate_and_store(
        &self,
        qkv: &mut B::Buffer,
        queries: &mut B::Buffer,
        norms: Option<&HeadNorms<B::Vector>>,
        rope: &B::Rope,
        step: B::Step<'_>,
        pages: LayerPages<&mut B::Pages>,
    ) {
        self.machine.rotate_and_store(qkv, queries, norms, rope, step, pages);
        self.note("rotation", queries);
    }

    fn attention(
        &self,
        queries: &B::Buffer,
        shape: AttentionShape,
        step: B::Step<'_>,
        pages: LayerPages<&B::Pages>,
        out: &mut B::Buffer,
    ) {
        self.machine.attention(queries, shape, step, pages, out);
        self.note("attention", out);
        self.notes().attentions += 1;
    }

    fn draw(
        &self,
        logits: &mut B::Buffer,
        requests: &[Option<SamplingRequest>],
        stage: &mut B::Stage,
    ) -> Result<Vec<Drawn>, OpsError> {
        self.machine.draw(logits, requests, stage)
    }

    fn read(&self, buffer: &B::Buffer, rows: usize) -> Result<Vec<f32>, OpsError> {
        self.machine.read(buffer, rows)
    }
}
