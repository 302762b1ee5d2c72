// Numbers that are hashes of how they were made, of the operation and its operands in their order, in an f32's own 32 bits: by the rules,
// and with the functions, of crates/ops/src/cpu/lanes/symbolic.rs. Besides, x · 1 is x, and a tensor core's product is one operation:
// what an output held and its sixteen products, in the order of the inputs, of which one with a factor of 0 leaves no trace.
#pragma once

#include "emulator.h"

namespace emulator {

// Operations, by what tells them apart.
namespace tag {
constexpr unsigned ADD = 0x9e3779b9, SUBTRACT = 0x85ebca6b, MULTIPLY = 0xc2b2ae35, FUSE = 0x27d4eb2f, DIVIDE = 0x165667b1,
                   POWER = 0xfd7046c5, ROOT = 0xb55a4f09, TILE = 0x5851f42d;
}

namespace {

// All of these are of one hash, or of several side by side.

// A hash as a number between 2⁻⁶³ and 2, of either sign, by its bits; every one depends on every bit of `x`.
template <typename T>
__forceinline__ T number(T x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return ((x ^ x >> 16) & 0x9fffffffu) | 0x20000000u;
}

// The same for `a` and `b` as for `b` and `a`.
template <typename T>
__forceinline__ T either(unsigned tag, T a, T b) {
    a ^= tag, b ^= tag;
    const T product = (a << 1 | 1) * (b << 1 | 1);
    return (product ^ product >> 16) + (a + b) * (tag | 1);
}

template <typename T>
__forceinline__ T after(unsigned tag, T a, T b) {
    a = (a ^ tag) * 0x9e3779b1u;
    return (a ^ a >> 15) + b;
}

float made(unsigned hash) { return __uint_as_float(number(hash)); }

}  // namespace

float add(float a, float b) {
    if (a == 0) return b;
    return b == 0 ? a : made(either(tag::ADD, __float_as_uint(a), __float_as_uint(b)));
}

float subtract(float a, float b) {
    return b == 0 || a == -INFINITY ? a : made(after(tag::SUBTRACT, __float_as_uint(a), __float_as_uint(b)));
}

float multiply(float a, float b) {
    if (a == 0 || b == 0) return 0;
    if (a == 1 || b == 1) return a == 1 ? b : a;
    return made(either(tag::MULTIPLY, __float_as_uint(a), __float_as_uint(b)));
}

float fuse(float a, float b, float addend) {
    if (a == 0 || b == 0) return addend;
    const unsigned product = either(tag::FUSE, __float_as_uint(a), __float_as_uint(b));
    return made(after(tag::FUSE, product, __float_as_uint(addend)));
}

float divide(float a, float b) { return made(after(tag::DIVIDE, __float_as_uint(a), __float_as_uint(b))); }
float root(float x) { return made(after(tag::ROOT, __float_as_uint(x), 0u)); }
float power(float x) { return made(after(tag::POWER, __float_as_uint(x), 0u)); }

// As `multiply_tiles`: a row's eight outputs go side by side.
#ifdef __x86_64__
__attribute__((target_clones("avx2", "default")))
#endif
void hash_tiles(TileOperands *operands) {
    using Eight = unsigned __attribute__((vector_size(32)));
    Eight b[16], are_there[16];  // [k][n]
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned part = 0; part < 2; ++part) {
            const unsigned k = lane % 4 * 2 + part * 8, pair = operands[lane].b[part], n = lane / 4;
            b[k][n] = pair << 16;
            b[k + 1][n] = pair & 0xFFFF0000u;
        }
    }
    for (unsigned k = 0; k < 16; ++k) are_there[k] = reinterpret_cast<Eight>((b[k] << 1) != 0);
    for (unsigned m = 0; m < 16; ++m) {
        TileOperands *quad = operands + m % 8 * 4;
        Eight hash, any = {};
        for (unsigned n = 0; n < 8; ++n) hash[n] = __float_as_uint(quad[n / 2].c[m / 8 * 2 + n % 2]);
        const Eight held = hash;
        for (unsigned k = 0; k < 16; ++k) {
            const unsigned pair = quad[k % 8 / 2].a[m / 8 + k / 8 * 2];
            const unsigned a = k % 2 == 0 ? pair << 16 : pair & 0xFFFF0000u;
            if (a << 1 == 0) continue;
            const Eight more = after(tag::TILE, hash, either(tag::TILE, Eight{} + a, b[k]));
            hash = (more & are_there[k]) | (hash & ~are_there[k]);
            any |= are_there[k];
        }
        hash = (number(hash) & any) | (held & ~any);
        for (unsigned n = 0; n < 8; ++n) quad[n / 2].c[m / 8 * 2 + n % 2] = __uint_as_float(hash[n]);
    }
}

}  // namespace emulator
