//! How GGUF files keep numbers: ggml's blocks, each a few scales and small integers, widened to f32 by their published definition, in its order
//! of operations.

use half::{bf16, f16};

use crate::checkpoint::RawType;

/// A type of tensor that can be widened.
#[derive(Debug)]
pub struct BlockFormat {
    /// As files write it.
    pub id: u32,
    pub name: &'static str,
    /// Numbers of a block, which is never in two rows.
    pub values: usize,
    /// Bytes of a block.
    pub bytes: usize,
    /// What holds its numbers, and nothing is lost.
    pub widened: RawType,
    read: fn(&[u8], &mut [f32]),
}

macro_rules! formats {
    ($($id:literal $name:ident: $values:literal in $bytes:literal, $widened:ident, $read:expr;)*) => {
        static FORMATS: &[BlockFormat] = &[$(BlockFormat {
            id: $id,
            name: stringify!($name),
            values: $values,
            bytes: $bytes,
            widened: RawType::$widened,
            read: $read,
        }),*];
    };
}

formats! {
    0 F32: 1 in 4, F32, |block, out| out[0] = f32::from_le_bytes([block[0], block[1], block[2], block[3]]);
    1 F16: 1 in 2, F16, |block, out| out[0] = f16_at(block, 0);
    30 BF16: 1 in 2, Bf16, |block, out| out[0] = bf16::from_le_bytes([block[0], block[1]]).to_f32();
    2 Q4_0: 32 in 18, F32, q4_0;
    3 Q4_1: 32 in 20, F32, q4_1;
    6 Q5_0: 32 in 22, F32, q5_0;
    7 Q5_1: 32 in 24, F32, q5_1;
    8 Q8_0: 32 in 34, F32, q8_0;
    10 Q2_K: 256 in 84, F32, q2_k;
    11 Q3_K: 256 in 110, F32, q3_k;
    12 Q4_K: 256 in 144, F32, q4_k;
    13 Q5_K: 256 in 176, F32, q5_k;
    14 Q6_K: 256 in 210, F32, q6_k;
    20 IQ4_NL: 32 in 18, F32, iq4_nl;
    23 IQ4_XS: 256 in 136, F32, iq4_xs;
}

/// Types that are known by their names alone.
const OTHERS: [(u32, &str); 18] = [
    (9, "Q8_1"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
    (40, "NVFP4"),
];

impl BlockFormat {
    /// The format of this number in files; otherwise its name, or the number itself.
    pub fn find(id: u32) -> Result<&'static BlockFormat, String> {
        let found = FORMATS.iter().find(|format| format.id == id);
        found.ok_or_else(|| {
            let name = OTHERS.iter().find(|(other, _)| *other == id);
            name.map_or_else(|| id.to_string(), |(_, name)| (*name).to_owned())
        })
    }

    /// The names of all of them.
    pub fn names() -> String {
        FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", ")
    }

    /// Whole blocks, widened to the numbers that they stand for.
    pub fn read(&self, blocks: &[u8], out: &mut [f32]) {
        let blocks = blocks.chunks_exact(self.bytes);
        for (block, out) in blocks.zip(out.chunks_exact_mut(self.values)) {
            (self.read)(block, out);
        }
    }
}

impl RawType {
    /// Appends numbers as files keep them, rounded to the nearest where the type has fewer bits.
    pub fn write(self, values: &[f32], out: &mut Vec<u8>) {
        match self {
            RawType::F32 => out.extend(values.iter().flat_map(|value| value.to_le_bytes())),
            RawType::F16 => {
                out.extend(values.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()));
            }
            RawType::Bf16 => {
                out.extend(values.iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes()));
            }
        }
    }
}

fn f16_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

fn u32_at(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

/// Sixteen bytes of 32 integers, the second half in the high four bits; the fifth bit of each, where there is one, in `high`.
fn nibbles(bytes: &[u8], high: u32, out: &mut [f32], number: impl Fn(u8) -> f32) {
    let (first, second) = out.split_at_mut(16);
    for (index, ((byte, low), up)) in bytes.iter().zip(first).zip(second).enumerate() {
        let fifth = |at: usize| (high >> at & 1) as u8 * 16;
        *low = number(byte & 15 | fifth(index));
        *up = number(byte >> 4 | fifth(index + 16));
    }
}

fn q4_0(block: &[u8], out: &mut [f32]) {
    let scale = f16_at(block, 0);
    nibbles(&block[2..], 0, out, |value| scale * (f32::from(value) - 8.0));
}

fn q4_1(block: &[u8], out: &mut [f32]) {
    let (scale, least) = (f16_at(block, 0), f16_at(block, 2));
    nibbles(&block[4..], 0, out, |value| scale * f32::from(value) + least);
}

fn q5_0(block: &[u8], out: &mut [f32]) {
    let scale = f16_at(block, 0);
    nibbles(&block[6..], u32_at(block, 2), out, |value| scale * (f32::from(value) - 16.0));
}

fn q5_1(block: &[u8], out: &mut [f32]) {
    let (scale, least) = (f16_at(block, 0), f16_at(block, 2));
    nibbles(&block[8..], u32_at(block, 4), out, |value| scale * f32::from(value) + least);
}

fn q8_0(block: &[u8], out: &mut [f32]) {
    let scale = f16_at(block, 0);
    for (value, byte) in out.iter_mut().zip(&block[2..]) {
        *value = scale * f32::from(byte.cast_signed());
    }
}

/// Where number `at` of 256 lies in 64 bytes of four each: 32 bytes have 128 numbers, 32 of them in each pair of bits.
fn pair(bytes: &[u8], at: usize) -> u8 {
    bytes[at / 128 * 32 + at % 32] >> (at / 32 % 4 * 2) & 3
}

/// The same of 128 bytes of two each: `run` bytes have twice as many numbers.
fn nibble(bytes: &[u8], at: usize, run: usize) -> u8 {
    bytes[at / (2 * run) * run + at % run] >> (at / run % 2 * 4) & 15
}

fn q2_k(block: &[u8], out: &mut [f32]) {
    let (scale, least) = (f16_at(block, 80), f16_at(block, 82));
    for (at, value) in out.iter_mut().enumerate() {
        let both = block[at / 16];
        let (own, offset) = (scale * f32::from(both & 15), least * f32::from(both >> 4));
        *value = own * f32::from(pair(&block[16..80], at)) - offset;
    }
}

fn q3_k(block: &[u8], out: &mut [f32]) {
    let (scale, scales) = (f16_at(block, 108), &block[96..108]);
    for (at, value) in out.iter_mut().enumerate() {
        let group = at / 16;
        let low = scales[group % 8] >> (group / 8 * 4) & 15;
        let high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
        let own = scale * (f32::from(low | high << 4) - 32.0);
        let lacks_bit = block[at % 32] >> (at / 32) & 1 == 0;
        let offset = if lacks_bit { 4.0 } else { 0.0 };
        *value = own * (f32::from(pair(&block[32..96], at)) - offset);
    }
}

/// The six-bit scale and offset of group `at` of eight.
fn scale_and_offset(bytes: &[u8], at: usize) -> (f32, f32) {
    let (scale, offset) = match at {
        0..4 => (bytes[at] & 63, bytes[at + 4] & 63),
        _ => {
            (bytes[at + 4] & 15 | bytes[at - 4] >> 2 & 48, bytes[at + 4] >> 4 | bytes[at] >> 2 & 48)
        }
    };
    (f32::from(scale), f32::from(offset))
}

/// What Q4_K and Q5_K share: four bits of each integer in `bytes`, and the rest from `fifth`.
fn with_offsets(block: &[u8], bytes: &[u8], out: &mut [f32], fifth: impl Fn(usize) -> u8) {
    let (scale, least) = (f16_at(block, 0), f16_at(block, 2));
    for (group, out) in out.chunks_exact_mut(32).enumerate() {
        let (own, offset) = scale_and_offset(&block[4..16], group);
        let (own, offset) = (scale * own, least * offset);
        for (index, value) in out.iter_mut().enumerate() {
            let at = group * 32 + index;
            *value = own * f32::from(nibble(bytes, at, 32) | fifth(at) << 4) - offset;
        }
    }
}

fn q4_k(block: &[u8], out: &mut [f32]) {
    with_offsets(block, &block[16..], out, |_| 0);
}

fn q5_k(block: &[u8], out: &mut [f32]) {
    with_offsets(block, &block[48..], out, |at| block[16 + at % 32] >> (at / 32) & 1);
}

fn q6_k(block: &[u8], out: &mut [f32]) {
    let scale = f16_at(block, 208);
    for (at, value) in out.iter_mut().enumerate() {
        let own = scale * f32::from(block[192 + at / 16].cast_signed());
        let number = nibble(&block[..128], at, 64) | pair(&block[128..192], at) << 4;
        *value = own * (f32::from(number) - 32.0);
    }
}

/// What the integers of IQ4_NL and IQ4_XS stand for.
const STEPS: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

fn iq4_nl(block: &[u8], out: &mut [f32]) {
    let scale = f16_at(block, 0);
    nibbles(&block[2..], 0, out, |value| scale * f32::from(STEPS[usize::from(value)]));
}

fn iq4_xs(block: &[u8], out: &mut [f32]) {
    let (scale, high) = (f16_at(block, 0), u16::from_le_bytes([block[2], block[3]]));
    for (group, out) in out.chunks_exact_mut(32).enumerate() {
        let low = block[4 + group / 2] >> (group % 2 * 4) & 15;
        let own = f32::from(low) + f32::from(high >> (2 * group) & 3) * 16.0 - 32.0;
        let bytes = &block[8 + group * 16..][..16];
        nibbles(bytes, 0, out, |value| scale * own * f32::from(STEPS[usize::from(value)]));
    }
}
