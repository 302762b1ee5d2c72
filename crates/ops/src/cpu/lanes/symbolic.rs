//! Sixteen lanes whose numbers are hashes of how they were made: of the operation and its operands, in their order.
//!
//! Two schedules that give equal hashes make every number by the same operations from the same operands, so they give equal
//! bits whatever the weights and inputs are. What holds of rounded numbers is built in, and nothing else:
//!
//! - `a + b`, `a · b`, and the product of a fused multiply-add do not depend on the order of the two; sums of integers on no order.
//! - `x + 0`, `x − 0` and `0 · y + x` are x, `0 · y` is 0, and −∞ − x is −∞: so keys that a row does not see leave no trace. (With
//!   numbers that are finite, and but for the sign of a zero.)
//! - A comparison is of the hashes as numbers: a maximum is one of its operands whatever the order, and depends on all of them.
//!
//! Hashes are of sign, mantissa and six bits of exponent, numbers below 2: none is 0, infinite or no number, so that these stand for
//! themselves, and so that a mask or an early exit finds what it would. Rounded to bf16, 14 of the 30 bits are left.

use std::ops::{Add, Div, Mul, Sub};

#[cfg(target_arch = "x86_64")]
use super::PairLanes;
use super::{LANES, Lanes, Number, Portable, Whole, by_halves};

/// Sixteen hashes, in the blocks of a machine whose registers hold so many tiles and rows.
#[derive(Clone, Copy)]
pub struct Symbolic<const TILES: usize, const ROWS: usize>(Whole);

impl<const TILES: usize, const ROWS: usize> Symbolic<TILES, ROWS> {
    #[inline(always)]
    pub fn of(Portable(lanes): Portable) -> Self {
        Symbolic(Whole::of(lanes))
    }

    #[inline(always)]
    fn lanes(self) -> [f32; LANES] {
        self.0.values()
    }
}

/// One hash.
#[derive(Clone, Copy)]
pub struct Hash(f32);

/// Operations, by what tells them apart.
mod tag {
    pub const ADD: u32 = 0x9e37_79b9;
    pub const SUBTRACT: u32 = 0x85eb_ca6b;
    pub const MULTIPLY: u32 = 0xc2b2_ae35;
    pub const FUSE: u32 = 0x27d4_eb2f;
    pub const DIVIDE: u32 = 0x1656_67b1;
    pub const ROUND: u32 = 0xd3a2_646d;
    pub const POWER: u32 = 0xfd70_46c5;
    pub const ROOT: u32 = 0xb55a_4f09;
    pub const WHOLE: u32 = 0x6c62_272f;
    #[cfg(target_arch = "x86_64")]
    pub const PAIR: u32 = 0x5851_f42d;
}

/// A hash as a number between 2⁻⁶³ and 2, of either sign; every bit of it depends on every bit of `x`.
#[inline(always)]
fn number(mut x: u32) -> f32 {
    x = (x ^ x >> 16).wrapping_mul(0x7feb_352d);
    x = (x ^ x >> 15).wrapping_mul(0x846c_a68b);
    f32::from_bits((x ^ x >> 16) & 0x9fff_ffff | 0x2000_0000)
}

/// The same for `a` and `b` as for `b` and `a`.
#[inline(always)]
fn either(tag: u32, a: f32, b: f32) -> u32 {
    let (a, b) = (a.to_bits() ^ tag, b.to_bits() ^ tag);
    let product = (a << 1 | 1).wrapping_mul(b << 1 | 1);
    (product ^ product >> 16).wrapping_add(a.wrapping_add(b).wrapping_mul(tag | 1))
}

#[inline(always)]
fn ordered(tag: u32, a: u32, b: u32) -> f32 {
    let a = (a ^ tag).wrapping_mul(0x9e37_79b1);
    number((a ^ a >> 15).wrapping_add(b))
}

// Both ways are computed, for a compiler that takes many lanes at a time.

#[inline(always)]
fn add(a: f32, b: f32) -> f32 {
    let sum = number(either(tag::ADD, a, b));
    let other = if a == 0.0 { b } else { a };
    if a == 0.0 || b == 0.0 { other } else { sum }
}

#[inline(always)]
fn subtract(a: f32, b: f32) -> f32 {
    let difference = ordered(tag::SUBTRACT, a.to_bits(), b.to_bits());
    if b == 0.0 || a == f32::NEG_INFINITY { a } else { difference }
}

#[inline(always)]
fn multiply(a: f32, b: f32) -> f32 {
    let product = number(either(tag::MULTIPLY, a, b));
    if a == 0.0 || b == 0.0 { 0.0 } else { product }
}

#[inline(always)]
fn fuse(a: f32, b: f32, addend: f32) -> f32 {
    let sum = ordered(tag::FUSE, either(tag::FUSE, a, b), addend.to_bits());
    if a == 0.0 || b == 0.0 { addend } else { sum }
}

#[inline(always)]
fn divide(a: f32, b: f32) -> f32 {
    ordered(tag::DIVIDE, a.to_bits(), b.to_bits())
}

/// An operation on one number.
#[inline(always)]
fn of_one(tag: u32, x: f32) -> f32 {
    ordered(tag, x.to_bits(), 0)
}

/// A sum of products of integers, which has no order.
#[inline(always)]
pub fn whole(sum: i32) -> f32 {
    ordered(tag::WHOLE, sum.cast_unsigned(), 0)
}

/// `sum` plus the products of two pairs of bf16 each, in an order that is the instruction's; one with a factor of 0 leaves no trace.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn pair_products(sum: f32, a: f32, b: f32) -> f32 {
    let (a, b) = (a.to_bits(), b.to_bits());
    let is_zero = |half: u32| a & 0x7fff << half == 0 || b & 0x7fff << half == 0;
    let kept = if is_zero(0) { 0 } else { 0xffff } | if is_zero(16) { 0 } else { 0xffff_0000 };
    let products = either(tag::PAIR, f32::from_bits(a & kept), f32::from_bits(b & kept));
    let given = ordered(tag::PAIR, products, sum.to_bits());
    if kept == 0 { sum } else { given }
}

impl From<f32> for Hash {
    fn from(value: f32) -> Hash {
        Hash(value)
    }
}

impl From<Hash> for f32 {
    fn from(hash: Hash) -> f32 {
        hash.0
    }
}

macro_rules! operators {
    ($($operator:ident $name:ident = $function:ident;)*) => {
        $(impl $operator for Hash {
            type Output = Hash;
            fn $name(self, other: Hash) -> Hash {
                Hash($function(self.0, other.0))
            }
        })*
    };
}
operators! {
    Add add = add;
    Sub sub = subtract;
    Mul mul = multiply;
    Div div = divide;
}

impl Number for Hash {
    fn sqrt(self) -> Hash {
        Hash(of_one(tag::ROOT, self.0))
    }
    fn whole(self) -> i32 {
        of_one(tag::WHOLE, self.0).to_bits().cast_signed()
    }
}

/// What is computed of each lane.
#[inline(always)]
fn each(of_lane: impl Fn(usize) -> f32) -> Portable {
    let mut lanes = [0.0; LANES];
    for (lane, to) in lanes.iter_mut().enumerate() {
        *to = of_lane(lane);
    }
    Portable(lanes)
}

/// The same with registers of eight lanes, of which a hash has need.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn each_by_eight(of_lane: impl Fn(usize) -> f32) -> Portable {
    each(of_lane)
}

/// The same, as the machine can.
#[inline(always)]
fn fast(of_lane: impl Fn(usize) -> f32) -> Portable {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: it is there.
        return unsafe { each_by_eight(of_lane) };
    }
    each(of_lane)
}

/// Each lane's result of two. Not inlined: kernels are long enough, and are compiled for each size of their blocks.
macro_rules! of_two {
    ($($name:ident = $function:expr;)*) => {
        $(#[inline(never)]
        fn $name(self, other: Self) -> Self {
            let (a, b) = (self.lanes(), other.lanes());
            Symbolic::of(fast(|lane| $function(a[lane], b[lane])))
        })*
    };
}

impl<const TILES: usize, const ROWS: usize> Lanes for Symbolic<TILES, ROWS> {
    const TILES: usize = TILES;
    const ROWS: usize = ROWS;
    const APART: bool = true;
    type Number = Hash;

    fn prefetch(_: *const u8) {}
    fn prefetch_far(_: *const u8) {}
    #[inline(never)]
    fn splat(value: f32) -> Self {
        Symbolic::of(Portable::splat(value))
    }
    #[inline(never)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: as the caller says.
        Symbolic::of(unsafe { Portable::load(from) })
    }
    #[inline(never)]
    unsafe fn load_bf16(from: *const u16) -> [Self; 2] {
        // SAFETY: as the caller says.
        unsafe { Portable::load_bf16(from) }.map(Symbolic::of)
    }
    #[inline(never)]
    unsafe fn load_bf16_row(from: *const u16) -> Self {
        // SAFETY: as the caller says.
        Symbolic::of(unsafe { Portable::load_bf16_row(from) })
    }
    unsafe fn load_f16(from: *const u16) -> Self {
        // SAFETY: as the caller says.
        Symbolic::of(unsafe { Portable::load_f16(from) })
    }
    unsafe fn load_u8(from: *const u8) -> Self {
        // SAFETY: as the caller says.
        Symbolic::of(unsafe { Portable::load_u8(from) })
    }
    #[inline(never)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: as the caller says.
        unsafe { Portable(self.lanes()).store(to) }
    }
    fn low_bytes(self) -> [u8; LANES] {
        Portable(self.lanes()).low_bytes()
    }
    #[inline(never)]
    fn fma(self, factor: Self, addend: Self) -> Self {
        let (a, b, c) = (self.lanes(), factor.lanes(), addend.lanes());
        Symbolic::of(fast(|lane| fuse(a[lane], b[lane], c[lane])))
    }
    of_two! {
        add = add;
        sub = subtract;
        mul = multiply;
        div = divide;
        max = f32::max;
        min = f32::min;
    }
    fn round(self) -> Self {
        Symbolic::of(Portable(self.lanes().map(|x| of_one(tag::ROUND, x))))
    }
    fn power_of_two(self) -> Self {
        Symbolic::of(Portable(self.lanes().map(|x| of_one(tag::POWER, x))))
    }
    fn zero_below(self, bound: Self, value: Self) -> Self {
        Symbolic::of(
            Portable(self.lanes()).zero_below(Portable(bound.lanes()), Portable(value.lanes())),
        )
    }
    unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        // SAFETY: as the caller says.
        unsafe { Portable::transpose(from, from_stride, to, to_stride) }
    }
    fn sum(self) -> f32 {
        by_halves(self.lanes(), add)
    }
}

#[cfg(target_arch = "x86_64")]
impl<const TILES: usize, const ROWS: usize> PairLanes for Symbolic<TILES, ROWS> {
    #[inline(never)]
    fn add_products(self, a: Self, b: Self) -> Self {
        let (sums, a, b) = (self.lanes(), a.lanes(), b.lanes());
        Symbolic::of(fast(|lane| pair_products(sums[lane], a[lane], b[lane])))
    }
    fn to_pairs(self) -> [f32; LANES / 2] {
        let round = |value| u32::from(half::bf16::from_f32(value).to_bits());
        std::array::from_fn(|n| {
            f32::from_bits(round(self.lanes()[2 * n]) | round(self.lanes()[2 * n + 1]) << 16)
        })
    }
    unsafe fn pair(first: *const u16, second: Option<*const u16>) -> Self {
        let at = |from: *const u16, lane| {
            // SAFETY: the caller vouches for sixteen.
            u32::from(unsafe { from.add(lane).read() })
        };
        let upper = |lane| second.map_or(0, |second| at(second, lane) << 16);
        Symbolic::of(Portable(std::array::from_fn(|lane| {
            f32::from_bits(at(first, lane) | upper(lane))
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(seed: u32) -> Symbolic<2, 12> {
        Symbolic::of(Portable(std::array::from_fn(|lane| number(seed * 16 + lane as u32))))
    }

    /// The bits of each lane.
    fn bits(lanes: Symbolic<2, 12>) -> [u32; LANES] {
        lanes.to_array().map(f32::to_bits)
    }

    #[test]
    fn hashes_know_what_rounding_keeps_and_no_more() {
        let [a, b, c, d] = [1, 2, 3, 4].map(lanes);
        let (zero, lowest) = (Symbolic::splat(0.0), Symbolic::splat(f32::NEG_INFINITY));
        let equal = [
            (a.add(b), b.add(a)),
            (a.mul(b), b.mul(a)),
            (a.fma(b, c), b.fma(a, c)),
            (a.add(zero), a),
            (zero.add(a), a),
            (a.sub(zero), a),
            (zero.fma(a, b), b),
            (a.mul(zero), zero),
            (lowest.sub(a), lowest),
            (lowest.max(a), a),
            (a.max(b).max(c), c.max(a).max(b)),
            (super::super::exp(lowest), zero),
        ];
        for (index, (one, other)) in equal.into_iter().enumerate() {
            assert_eq!(bits(one), bits(other), "pair {index}");
        }
        let unequal = [
            (a.add(b).add(c), a.add(b.add(c))),
            (a.mul(b).mul(c), a.mul(b.mul(c))),
            (a.mul(b).add(c), a.fma(b, c)),
            (a.fma(b, c.fma(d, zero)), c.fma(d, a.fma(b, zero))),
            (a.fma(b, zero), a.mul(b)),
            (a.sub(b), b.sub(a)),
            (a.div(b), b.div(a)),
            (a.add(b).sub(b), a),
            (a.mul(c).div(b), a.div(b).mul(c)),
            (a.max(b), a.min(b)),
        ];
        for (index, (one, other)) in unequal.into_iter().enumerate() {
            let pairs = bits(one).into_iter().zip(bits(other));
            assert!(pairs.clone().all(|(one, other)| one != other), "pair {index}: {pairs:?}");
        }
    }

    #[test]
    fn no_hash_is_zero_infinite_or_no_number_and_few_are_equal() {
        let mut hashes: Vec<u32> = (0..1 << 16).map(|seed| number(seed).to_bits()).collect();
        let numbers = hashes.iter().map(|bits| f32::from_bits(*bits));
        assert!(numbers.clone().all(|x| x.is_normal() && x.abs() < 2.0 && x.abs() > 1e-20));
        hashes.sort_unstable();
        hashes.dedup();
        // Of 2¹⁶ among 2³⁰, two pairs are to be expected.
        assert!(hashes.len() > (1 << 16) - 12, "{}", hashes.len());
    }
}
