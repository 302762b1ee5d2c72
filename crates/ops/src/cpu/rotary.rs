//! Per-head norms, rotary position embedding, and the write of keys and values to their pages.

use super::kept::Kept;
use super::lanes::{Lanes, vectorised};
use super::norm::normalise;
use super::pages::PagesOf;
use super::{Buffer, Cpu, Disjoint, Vector};
use crate::{Angles, HeadNorms, LayerPages, PAGE, Rotation, Rows};

/// What a position does to queries and keys.
#[derive(Debug)]
pub struct Rope {
    angles: Angles,
    half: usize,
}

impl Rope {
    /// Half-split pairs turn together.
    pub fn new(rotation: &Rotation, positions: usize) -> Rope {
        let half = rotation.inverse_frequencies.len();
        Rope { angles: rotation.angles(positions), half }
    }

    /// Cosines and sines at `position`.
    fn at(&self, position: usize) -> (&[f32], &[f32]) {
        let place = position * self.half..(position + 1) * self.half;
        (&self.angles.cosines[place.clone()], &self.angles.sines[place])
    }

    /// Multiplies turned queries at `position` by what they grow by, if they do.
    fn grow(&self, queries: &mut [f32], position: usize) {
        if let Some(growth) = self.angles.growth.get(position) {
            queries.iter_mut().for_each(|number| *number *= growth);
        }
    }
}

vectorised! {
    /// Turns one head in place: component `i` with component `i + half`.
    fn turn(head: &mut [f32], cosines: &[f32], sines: &[f32]) = turn_kernel
}

#[inline(always)]
fn turn_kernel<L: Lanes>(head: &mut [f32], cosines: &[f32], sines: &[f32]) {
    let (first, second) = head.split_at_mut(cosines.len());
    for (((a, b), cosine), sine) in first.iter_mut().zip(second).zip(cosines).zip(sines) {
        let (x, y) = (*a, *b);
        *a = x * cosine - y * sine;
        *b = y * cosine + x * sine;
    }
}

impl Cpu {
    /// Norms and turns heads of `head_dim` in place, all of them queries.
    pub(super) fn turn_all(
        &self,
        heads: &mut Buffer,
        norm: Option<(&Vector, f32)>,
        rope: &Rope,
        rows: Rows<'_>,
        head_dim: usize,
    ) {
        let work = 8 * heads.data.len();
        self.each_row(heads, work, |row, heads| {
            let position = rows.positions[row] as usize;
            let (cosines, sines) = rope.at(position);
            let mut normed = vec![0.0; head_dim];
            for head in heads.chunks_exact_mut(head_dim) {
                if let Some((weight, epsilon)) = norm {
                    normalise(self.isa, head, &weight.0, epsilon, &mut normed);
                    head.copy_from_slice(&normed);
                }
                turn(self.isa, head, cosines, sines);
            }
            rope.grow(heads, position);
        });
    }

    /// Norms and turns the queries and keys of `qkv` `[rows, (heads + 2 · kv_heads) · head_dim]` in place, and
    /// writes keys and values to their pages. Shapes follow from `pages`.
    pub(super) fn store<T: Kept>(
        &self,
        qkv: &mut Buffer,
        norms: Option<&HeadNorms<Vector>>,
        rope: &Rope,
        rows: Rows<'_>,
        LayerPages { pages, layer }: LayerPages<&mut PagesOf<T>>,
    ) {
        let (kv_heads, head_dim) = (pages.kv_heads, pages.head_dim);
        let key_start = qkv.width - 2 * kv_heads * head_dim;
        let value_start = qkv.width - kv_heads * head_dim;
        let width = qkv.width;
        let work = 8 * qkv.data.len();
        let qkv = Disjoint::new(&mut qkv.data);
        let writer = pages.writer(layer);
        self.split(rows.len(), work, |range| {
            let mut normed = vec![0.0; head_dim];
            for row in range {
                let position = rows.positions[row] as usize;
                let page = rows.tables[rows.sequences[row] as usize][position / PAGE];
                // SAFETY: each row is turned by one thread alone.
                let row = unsafe { qkv.slice(row * width, width) };
                let (turned, values) = row.split_at_mut(value_start);
                let (cosines, sines) = rope.at(position);
                for (index, head) in turned.chunks_exact_mut(head_dim).enumerate() {
                    if let Some(norms) = norms {
                        let weight =
                            if index * head_dim < key_start { &norms.query } else { &norms.key };
                        normalise(self.isa, head, &weight.0, norms.epsilon, &mut normed);
                        head.copy_from_slice(&normed);
                    }
                    turn(self.isa, head, cosines, sines);
                }
                rope.grow(&mut turned[..key_start], position);
                if let Some(weight) = norms.and_then(|norms| norms.value.as_ref()) {
                    let epsilon = norms.map_or(0.0, |norms| norms.epsilon);
                    for head in values.chunks_exact_mut(head_dim) {
                        normalise(self.isa, head, &weight.0, epsilon, &mut normed);
                        head.copy_from_slice(&normed);
                    }
                }
                let keys = turned[key_start..].chunks_exact(head_dim);
                for (head, (key, value)) in keys.zip(values.chunks_exact(head_dim)).enumerate() {
                    // SAFETY: a sequence's page is in the pool, and no two rows have the same place in it.
                    unsafe { writer.write(page, head, position % PAGE, key, value) };
                }
            }
        });
    }
}
