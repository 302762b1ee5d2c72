//! A backend that notes what each operation gave for each row, under all that it may depend on: the row's tokens up to there. Where a
//! schedule gives a row something else than another schedule did, it says at which operation, row and columns.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use wardround::ops::checkpoint::RawTensor;
use wardround::ops::cpu::{Buffer, KvPages, Matrix, Rope, Vector};
use wardround::ops::sampling::{Drawn, SamplingRequest};
use wardround::ops::{
    Activation, AttentionShape, Backend, BranchNorms, Cpu, HeadNorms, HostStep, LayerPages,
    Machine, Numbers, OpsError, PAGE, PageShape, Precision, Rows, StepLimits, StoredType,
};

use super::faults::Fault;

/// Columns that are noted as one: a tile of weights.
const TILE: usize = 16;

/// The CPU with hashes for numbers, and what is known of rows. Clones share that.
#[derive(Clone, Debug)]
pub struct Witness {
    pub cpu: Cpu,
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
    fn begin(&mut self, rows: Rows<'_>) {
        self.all.clear();
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

    /// Only these rows are left.
    fn keep(&mut self, chosen: &[usize]) {
        self.rows = chosen.iter().map(|&index| self.all[index]).collect();
    }

    fn note(&mut self, operation: &'static str, given: &Buffer) {
        for (row, from) in self.rows.iter().enumerate() {
            let tile = |tile: &[f32]| {
                tile.iter().fold(7, |hash, value| mix(hash, u64::from(value.to_bits()))) as u32
            };
            let tiles: Vec<u32> = given.row(row).chunks(TILE).map(tile).collect();
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

impl Witness {
    pub fn new(cpu: Cpu) -> Witness {
        Witness { cpu, fault: None, notes: Arc::default() }
    }

    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }

    /// The same notes, and another machine.
    pub fn on(&self, cpu: &Cpu) -> Witness {
        Witness { cpu: cpu.clone(), ..self.clone() }
    }
}

impl Backend for Witness {
    type Buffer = Buffer;
    type Matrix = Matrix;
    type Vector = Vector;
    type Rope = Rope;
    type Pages = KvPages;
    type Stage = ();
    type Step<'a> = HostStep<'a>;

    const MACHINE: Machine = Machine::Cpu;

    fn run<T: Send>(&self, step: impl FnOnce() -> T + Send) -> T {
        self.cpu.run(step)
    }

    fn for_each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        self.cpu.for_each(count, body);
    }

    fn pack(
        &self,
        parts: &[RawTensor<'_>],
        inputs: usize,
        precision: Precision,
    ) -> Result<Matrix, OpsError> {
        self.cpu.pack(parts, inputs, precision)
    }

    fn vector(&self, values: Vec<f32>) -> Result<Vector, OpsError> {
        self.cpu.vector(values)
    }

    fn rope(&self, inverse_frequencies: &[f32], positions: usize) -> Result<Rope, OpsError> {
        self.cpu.rope(inverse_frequencies, positions)
    }

    fn pages(&self, shape: PageShape, kept: StoredType, pages: usize) -> Result<KvPages, OpsError> {
        self.cpu.pages(shape, kept, pages)
    }

    fn buffer(&self, rows: usize, width: usize, numbers: Numbers) -> Result<Buffer, OpsError> {
        self.cpu.buffer(rows, width, numbers)
    }

    fn stage(&self, shape: PageShape, heads: usize, limits: StepLimits) -> Result<(), OpsError> {
        self.cpu.stage(shape, heads, limits)
    }

    fn compute<'a>(
        &self,
        rows: Rows<'a>,
        logit_rows: &'a [usize],
        stage: &'a mut (),
        body: impl FnMut(HostStep<'a>),
    ) {
        self.notes().begin(rows);
        self.cpu.compute(rows, logit_rows, stage, body);
    }

    fn embed(&self, table: &Matrix, step: HostStep<'_>, scale: f32, out: &mut Buffer) {
        self.cpu.embed(table, step, scale, out);
        self.notes().note("embed", out);
    }

    fn rms_norm(&self, x: &Buffer, weight: &Vector, epsilon: f32, out: &mut Buffer) {
        match self.fault {
            Some(Fault::BlockAt256) if x.rows() >= 256 => {
                super::faults::norm_by_halves(&self.cpu, x, weight, epsilon, out);
            }
            _ => self.cpu.rms_norm(x, weight, epsilon, out),
        }
        self.notes().note("norm", out);
    }

    fn add_norm(
        &self,
        residual: &mut Buffer,
        branch: &Buffer,
        norms: BranchNorms<'_, Vector>,
        normed: &mut Buffer,
    ) {
        let (next, epsilon) = (norms.next, norms.epsilon);
        self.cpu.add_norm(residual, branch, norms, normed);
        if let (Some(Fault::FusedNorm), Some(next)) = (self.fault, next)
            && residual.rows() <= 4
        {
            super::faults::norm_by_halves(&self.cpu, residual, next, epsilon, normed);
        }
        let mut notes = self.notes();
        notes.note("addition", residual);
        if next.is_some() {
            notes.note("norm of the sum", normed);
        }
        notes.additions += 1;
    }

    fn keep_logit_rows(&self, step: HostStep<'_>, buffers: [&mut Buffer; 2]) -> bool {
        let keeps = self.cpu.keep_logit_rows(step, buffers);
        if keeps {
            self.notes().keep(step.logit_rows);
        }
        keeps
    }

    fn gather_norm(
        &self,
        x: &Buffer,
        step: HostStep<'_>,
        weight: &Vector,
        epsilon: f32,
        out: &mut Buffer,
    ) {
        self.cpu.gather_norm(x, step, weight, epsilon, out);
        let mut notes = self.notes();
        notes.keep(step.logit_rows);
        notes.note("norm", out);
    }

    fn matmul(&self, x: &Buffer, weights: &Matrix, out: &mut Buffer) {
        match self.fault {
            Some(fault) => fault.multiply(&self.cpu, x, weights, out),
            None => self.cpu.matmul(x, weights, out),
        }
        self.notes().note("matmul", out);
    }

    fn matmul_gated(
        &self,
        x: &Buffer,
        weights: &Matrix,
        activation: Activation,
        products: &mut Buffer,
        out: &mut Buffer,
    ) {
        self.cpu.matmul_gated(x, weights, activation, products, out);
        self.notes().note("gated matmul", out);
    }

    fn rotate_and_store(
        &self,
        qkv: &mut Buffer,
        queries: &mut Buffer,
        norms: Option<&HeadNorms<Vector>>,
        rope: &Rope,
        step: HostStep<'_>,
        pages: LayerPages<&mut KvPages>,
    ) {
        self.cpu.rotate_and_store(qkv, queries, norms, rope, step, pages);
        self.notes().note("rotation", queries);
    }

    fn attention(
        &self,
        queries: &Buffer,
        shape: AttentionShape,
        step: HostStep<'_>,
        pages: LayerPages<&KvPages>,
        out: &mut Buffer,
    ) {
        self.cpu.attention(queries, shape, step, pages, out);
        let mut notes = self.notes();
        notes.note("attention", out);
        notes.attentions += 1;
    }

    fn draw(
        &self,
        logits: &mut Buffer,
        requests: &[Option<SamplingRequest>],
        stage: &mut (),
    ) -> Result<Vec<Drawn>, OpsError> {
        self.cpu.draw(logits, requests, stage)
    }

    fn read(&self, buffer: &Buffer, rows: usize) -> Result<Vec<f32>, OpsError> {
        self.cpu.read(buffer, rows)
    }
}
