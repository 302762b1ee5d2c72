use super::super::{Isa, KvPages, Rope, Vector};
use super::*;
use crate::{Backend, HeadNorms, HostStep, PageShape, Rotation, StoredType};

fn first_layer<P>(pages: P) -> LayerPages<P> {
    LayerPages { pages, layer: 0 }
}

struct Case {
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    length: usize,
    window: Option<usize>,
    kept: StoredType,
}

impl Case {
    fn pages(&self) -> PageShape {
        PageShape { layers: 1, kv_heads: self.kv_heads, head_dim: self.head_dim }
    }
}

fn value(seed: usize) -> f32 {
    ((seed as f32) * 12.989_8).sin() * 2.0
}

/// Feeds `length` positions through pages in steps of `step` rows; gives every row's output.
fn run(case: &Case, step: usize, isa: Isa, page_order: impl Fn(u32) -> u32) -> Vec<Vec<f32>> {
    let mut cpu = Cpu::new(2).unwrap();
    cpu.isa = isa;
    let count = case.length.div_ceil(PAGE) as u32;
    let table: Vec<u32> = (0..count).map(page_order).collect();
    let mut pages = KvPages::new(case.pages(), case.kept, count as usize).unwrap();
    let width = (case.heads + 2 * case.kv_heads) * case.head_dim;
    let rope = Rope::new(&Rotation::by(vec![0.0; case.head_dim / 2]), case.length);
    let shape =
        AttentionShape { heads: case.heads, scale: 0.3, window: case.window, both_ways: false };
    let mut outputs = Vec::new();
    for start in (0..case.length).step_by(step) {
        let positions: Vec<u32> =
            (start..case.length.min(start + step)).map(|p| p as u32).collect();
        let zeros = vec![0; positions.len()];
        let tables = [table.as_slice()];
        let rows = Rows {
            tokens: &zeros,
            positions: &positions,
            sequences: &zeros,
            segments: &[],
            tables: &tables,
            states: &[],
        };
        let mut qkv = Buffer::default();
        qkv.reshape(positions.len(), width);
        for (row, &position) in qkv.rows_mut().zip(&positions) {
            for (k, x) in row.iter_mut().enumerate() {
                *x = value(position as usize * width + k);
            }
        }
        let step = HostStep { rows, logit_rows: &[] };
        let (mut queries, mut out) = (Buffer::default(), Buffer::default());
        let written = first_layer(&mut pages);
        cpu.rotate_and_store(&mut qkv, &mut queries, None, &rope, step, written);
        cpu.run(|| cpu.attention(&queries, shape, step, first_layer(&pages), &mut out));
        outputs.extend((0..out.rows()).map(|row| out.row(row).to_vec()));
    }
    outputs
}

/// Whether queries and weights are rounded to bf16.
fn is_paired(case: &Case, isa: Isa) -> bool {
    case.kept == StoredType::Bf16 && isa.pairs_keys() && case.head_dim.is_multiple_of(32)
}

fn exact(case: &Case, position: usize, isa: Isa) -> Vec<f64> {
    let width = (case.heads + 2 * case.kv_heads) * case.head_dim;
    let at = |position: usize, k: usize| {
        let number = value(position * width + k);
        let is_query = k < case.heads * case.head_dim;
        let is_exact = is_query && !is_paired(case, isa);
        f64::from(if is_exact { number } else { case.kept.round(number) })
    };
    let first = case.window.map_or(0, |window| (position + 1).saturating_sub(window));
    let mut out = Vec::new();
    for head in 0..case.heads {
        let kv_head = head / (case.heads / case.kv_heads);
        let weights: Vec<f64> = (first..=position)
            .map(|key| {
                let dot: f64 = (0..case.head_dim)
                    .map(|d| {
                        at(position, head * case.head_dim + d)
                            * at(key, (case.heads + kv_head) * case.head_dim + d)
                    })
                    .sum();
                (dot * f64::from(0.3f32)).exp()
            })
            .collect();
        let total: f64 = weights.iter().sum();
        for d in 0..case.head_dim {
            let offset = (case.heads + case.kv_heads + kv_head) * case.head_dim + d;
            let sum: f64 =
                (first..=position).zip(&weights).map(|(key, w)| w * at(key, offset)).sum();
            out.push(sum / total);
        }
    }
    out
}

#[test]
fn equals_the_formula_and_itself_however_it_is_fed() {
    use StoredType::{Bf16, F32};
    let cases = [
        Case { heads: 2, kv_heads: 1, head_dim: 8, length: 70, window: None, kept: F32 },
        Case { heads: 4, kv_heads: 2, head_dim: 20, length: 300, window: Some(33), kept: F32 },
        Case { heads: 1, kv_heads: 1, head_dim: 16, length: 530, window: None, kept: F32 },
        Case { heads: 2, kv_heads: 2, head_dim: 4, length: 530, window: Some(1), kept: Bf16 },
        Case { heads: 1, kv_heads: 1, head_dim: 4, length: 600, window: Some(280), kept: F32 },
        Case { heads: 8, kv_heads: 2, head_dim: 20, length: 300, window: Some(33), kept: Bf16 },
        Case { heads: 3, kv_heads: 1, head_dim: 64, length: 530, window: None, kept: Bf16 },
        Case { heads: 4, kv_heads: 2, head_dim: 32, length: 300, window: Some(33), kept: Bf16 },
    ];
    for case in &cases {
        let last = case.length.div_ceil(PAGE) as u32 - 1;
        let mut plain = None;
        for isa in Isa::available() {
            let whole = run(case, case.length, isa, |page| page);
            // A weight that is rounded to bf16 is off by 2⁻⁹ of it, of values of at most 2; so is a total.
            let bound = if is_paired(case, isa) { 4.0 * 2f64.powi(-9) } else { 2e-5 };
            for (position, row) in whole.iter().enumerate() {
                for (y, exact) in row.iter().zip(exact(case, position, isa)) {
                    let off = (f64::from(*y) - exact).abs();
                    assert!(off < bound, "{isa:?}, {position}: {y}, not {exact}");
                }
            }
            assert_eq!(run(case, 1, isa, |page| last - page), whole, "{isa:?}");
            assert_eq!(run(case, 37, isa, |page| page), whole, "{isa:?}");
            if !is_paired(case, isa) {
                assert_eq!(plain.get_or_insert_with(|| whole.clone()), &whole, "{isa:?}");
            }
        }
    }
}

#[test]
fn head_norms_come_before_the_turn() {
    let cpu = Cpu::new(1).unwrap();
    let mut pages =
        PagesOf::<f32>::new(PageShape { layers: 1, kv_heads: 1, head_dim: 4 }, 1).unwrap();
    let rope = Rope::new(&Rotation::by(vec![1.0, 0.1]), 8);
    let norms = HeadNorms {
        query: Vector(vec![1.0, 2.0, 1.0, 1.0]),
        key: Vector(vec![1.0; 4]),
        value: None,
        epsilon: 0.0,
    };
    let mut qkv = Buffer::default();
    qkv.reshape(1, 12);
    qkv.data.copy_from_slice(&[3.0, 0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
    let table = [0u32];
    let rows = Rows {
        tokens: &[0],
        positions: &[3],
        sequences: &[0],
        segments: &[],
        tables: &[&table],
        states: &[],
    };
    cpu.store(&mut qkv, Some(&norms), &rope, rows, first_layer(&mut pages));
    let (sine, cosine) = 3.0f32.sin_cos();
    let close = |a: f32, b: f32| (a - b).abs() < 1e-6;
    assert!(close(qkv.row(0)[0], 2.0 * cosine) && close(qkv.row(0)[2], 2.0 * sine));
    let (sine, cosine) = 0.3f32.sin_cos();
    assert!(close(qkv.row(0)[5], 2.0 * cosine) && close(qkv.row(0)[7], 2.0 * sine));
    let page = pages.page(0, 0, 0);
    assert!(close(page.keys[PAGE + 3], 2.0 * cosine));
    assert_eq!(&page.values[3 * pages.stride..][..4], &[1.0, 2.0, 3.0, 4.0]);
}
