//! Head norms, rotary embedding and the write to pages: where each number goes, and that it is the CPU's.

use super::sequences::Sequences;
use super::*;
use crate::{HeadNorms, PAGE, QueryGrowth};

struct Case {
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    has_norms: bool,
    grows: bool,
    /// Pairs of components that turn.
    turned: usize,
}

impl Case {
    fn width(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.head_dim
    }

    fn page_shape(&self) -> PageShape {
        PageShape { layers: 2, kv_heads: self.kv_heads, head_dim: self.head_dim }
    }

    /// What operations leave as queries, row after row, and the pages whose second layer they wrote. Prompts are one
    /// step, the last rows another that is filled up to a bucket.
    fn run<B: Host>(&self, ops: &B, sequences: &Sequences) -> (Vec<f32>, B::Pages) {
        let numbers = noise(sequences.rows() * self.width(), 1);
        let vector = |seed| ops.vector(noise(self.head_dim, seed)).unwrap();
        let norms = self.has_norms.then(|| HeadNorms {
            query: vector(2),
            key: vector(3),
            value: (self.kv_heads == 1).then(|| vector(4)),
            epsilon: 1e-6,
        });
        let frequencies = (0..self.turned).map(|pair| 0.8f32.powi(pair as i32));
        let positions = sequences.limits().positions;
        let growth = self.grows.then_some(QueryGrowth { beta: 0.5, every: 3.0 });
        let rotation = Rotation { magnitude: 1.1, growth, ..Rotation::by(frequencies.collect()) };
        let rope = ops.rope(&rotation, positions).unwrap();
        let mut pages = ops.pages(self.page_shape(), kept::<B>(), sequences.pages()).unwrap();
        let tables = sequences.tables();
        let mut all = Vec::new();
        for rows in [0..sequences.rows() - 9, sequences.rows() - 9..sequences.rows()] {
            let numbers = &numbers[rows.start * self.width()..rows.end * self.width()];
            let mut qkv = ops.hold(numbers, self.width(), Numbers::Wide);
            let width = self.heads * self.head_dim.next_multiple_of(32);
            let mut queries = ops.buffer(rows.len(), width, Numbers::Narrow).unwrap();
            let mut stage = ops.stage(self.page_shape(), self.heads, sequences.limits()).unwrap();
            let step = sequences.step(rows.clone(), &tables);
            ops.compute(step, &[], &mut stage, |step| {
                let to = LayerPages { pages: &mut pages, layer: 1 };
                ops.rotate_and_store(&mut qkv, &mut queries, norms.as_ref(), &rope, step, to);
            });
            all.extend(ops.numbers(&queries, rows.len(), Numbers::Narrow));
        }
        (all, pages)
    }
}

/// Compares the numbers of a layer's pool at `places` with `exact`; all others are zeros.
fn assert_pool(mut pool: Vec<f32>, places: &[usize], exact: &[f32], what: &str) {
    let found: Vec<f32> = places.iter().map(|place| pool[*place]).collect();
    assert_rounded(&found, exact, what);
    places.iter().for_each(|place| pool[*place] = 0.0);
    assert_eq!(largest(&pool), 0.0, "{what}: written elsewhere");
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn heads_are_turned_as_on_the_cpu_and_lie_where_attention_looks() {
    let gpu = gpu();
    let cpu = Cpu::new(1).unwrap();
    let sequences = Sequences::new(&[70, 33, 5], 3);
    for (head_dim, heads, kv_heads, has_norms, turned) in [
        (16, 3, 1, true, 8),
        (32, 4, 2, true, 4),
        (48, 4, 2, false, 24),
        (128, 4, 2, true, 64),
        (256, 3, 1, true, 32),
        (256, 3, 1, true, 128),
        (256, 4, 2, false, 128),
        (512, 3, 1, true, 256),
        (512, 4, 2, false, 256),
    ] {
        let case = Case { heads, kv_heads, head_dim, has_norms, grows: !has_norms, turned };
        let what = format!("{heads} heads of {head_dim} over {kv_heads}");
        // The CPU leaves keys and values behind the queries.
        let (exact, _) = case.run(&cpu, &sequences);
        let (found, pages) = case.run(&gpu, &sequences);
        let dim = head_dim.next_multiple_of(32);
        let [mut queries, mut exact_queries] = [Vec::new(), Vec::new()];
        let [mut key_places, mut value_places] = [Vec::new(), Vec::new()];
        let [mut keys, mut values] = [Vec::new(), Vec::new()];
        let rows = found.chunks_exact(heads * dim).zip(exact.chunks_exact(case.width()));
        for ((found, exact), (page, slot)) in rows.zip(sequences.slots()) {
            for head in found.chunks_exact(dim) {
                let (head, padding) = head.split_at(head_dim);
                queries.extend_from_slice(head);
                assert!(padding.iter().all(|number| *number == 0.0), "{what}");
            }
            let (turned, written) = exact.split_at(heads * head_dim);
            exact_queries.extend_from_slice(turned);
            let (turned, plain) = written.split_at(kv_heads * head_dim);
            keys.extend_from_slice(turned);
            values.extend_from_slice(plain);
            for (head, at) in (0..kv_heads).flat_map(|head| (0..head_dim).map(move |at| (head, at)))
            {
                let start = (page * kv_heads + head) * dim * PAGE;
                key_places.push(start + at / 32 * PAGE * 32 + slot * 32 + at % 32);
                value_places.push(start + at * PAGE + slot);
            }
        }
        assert_rounded(&queries, &exact_queries, &what);
        let numbers = pages.layer_bytes / 2;
        let [first, second] = [0, numbers].map(|first| {
            [&pages.keys, &pages.values].map(|pool| halves(&gpu, pool, first, numbers))
        });
        assert!(first.iter().all(|pool| largest(pool) == 0.0), "{what}: another layer's");
        let [key_pool, value_pool] = second;
        assert_pool(key_pool, &key_places, &keys, &format!("{what}, keys"));
        assert_pool(value_pool, &value_places, &values, &format!("{what}, values"));
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn queries_alone_are_turned_as_on_the_cpu() {
    fn run<B: Host>(ops: &B, sequences: &Sequences, head_dim: usize) -> Vec<f32> {
        let (rows, width) = (sequences.rows(), 3 * head_dim);
        let mut numbers = ops.hold(&noise(rows * width, 1), width, Numbers::Wide);
        let frequencies = (0..head_dim / 2).map(|pair| 0.8f32.powi(pair as i32));
        let positions = sequences.limits().positions;
        let rope = ops.rope(&Rotation::by(frequencies.collect()), positions).unwrap();
        let weight = ops.vector(noise(head_dim, 2)).unwrap();
        let mut queries = ops.buffer(rows, width, Numbers::Narrow).unwrap();
        let shape = PageShape { layers: 1, kv_heads: 1, head_dim };
        let mut stage = ops.stage(shape, 3, sequences.limits()).unwrap();
        let tables = sequences.tables();
        ops.compute(sequences.step(0..rows, &tables), &[], &mut stage, |step| {
            let norm = Some((&weight, 1e-6));
            ops.rotate(&mut numbers, &mut queries, norm, &rope, step, head_dim);
        });
        ops.numbers(&queries, rows, Numbers::Narrow)
    }
    let sequences = Sequences::new(&[70, 33, 5], 3);
    for head_dim in [32, 128, 256, 512] {
        let found = run(&gpu(), &sequences, head_dim);
        let exact = run(&Cpu::new(1).unwrap(), &sequences, head_dim);
        assert_rounded(&found, &exact, &format!("heads of {head_dim}"));
    }
}
