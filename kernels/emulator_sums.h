// How Hopper's tensor cores sum the sixteen products of bf16 that an output takes, and what it held (MMA-Sim, arXiv 2511.10909;
// `mma.sync` and `wgmma` alike): each is cut off 25 bits below the largest exponent among them, the sum of these is exact, and
// is cut off to f32. A product's exponent is the sum of its operands'.
#pragma once

#include "emulator.h"

namespace emulator::sums {

constexpr int bits = 25;
// Exponents of zeros, which never are the largest, and of what is no finite number, which always is, times zero too.
constexpr short of_zero = -8000, of_infinity = 16000;

// Of an f32, given by its bits; that of the least normal number for smaller ones.
inline short exponent(unsigned number) {
    const int field = static_cast<int>(number >> 23 & 0xFF);
    if (field == 0) return (number << 1) == 0 ? of_zero : -126;
    return field == 0xFF ? of_infinity : static_cast<short>(field - 127);
}

// A sum of `value` · 2^(top − 25), cut off.
inline float cut_off(int64_t value, int top) {
    if (value == 0) return 0.0f;
    const uint64_t magnitude = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    const int first = 63 - __builtin_clzll(magnitude), power = top - bits;  // of its leading bit, and of its last
    if (first + power > 127) return value < 0 ? -INFINITY : INFINITY;
    // Bits that f32 has no room for: below the 24th, or below the last of subnormal numbers.
    const int lost = max(max(first - 23, -149 - power), 0);
    const double kept = lost > 63 ? 0.0 : static_cast<double>(magnitude >> lost << lost);
    return static_cast<float>(ldexp(value < 0 ? -kept : kept, power));
}

// One output, of any numbers.
inline float sum(const unsigned (&a)[16], const unsigned (&b)[16], float c) {
    int top = exponent(__float_as_uint(c));
    for (int k = 0; k < 16; ++k) top = max(top, exponent(a[k]) + exponent(b[k]));
    if (top > 1000) {
        double total = c;
        for (int k = 0; k < 16; ++k) total += static_cast<double>(__uint_as_float(a[k])) * __uint_as_float(b[k]);
        return total != total ? __uint_as_float(0x7FFFFFFF) : static_cast<float>(total);
    }
    if (top < -1000) return 0.0f;
    const auto aligned = [top](double value) { return static_cast<int64_t>(ldexp(value, bits - top)); };
    int64_t total = aligned(c);
    for (int k = 0; k < 16; ++k) total += aligned(static_cast<double>(__uint_as_float(a[k])) * __uint_as_float(b[k]));
    return cut_off(total, top);
}

// As `emulator::multiply_tiles`. A row's eight outputs go side by side; those whose numbers are so large or small that an
// f32 could not hold them aligned go one by one.
inline void multiply_tiles(TileOperands *operands) {
    using Exponents = short __attribute__((vector_size(16)));
    using Floats = float __attribute__((vector_size(32)));
    using Ints = int __attribute__((vector_size(32)));
    unsigned b[16][8];  // [k][n]
    Floats b_values[16];
    Exponents b_exponents[16];
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned part = 0; part < 2; ++part) {
            const unsigned k = lane % 4 * 2 + part * 8, pair = operands[lane].b[part], n = lane / 4;
            b[k][n] = pair << 16;
            b[k + 1][n] = pair & 0xFFFF0000u;
        }
    }
    for (unsigned k = 0; k < 16; ++k) {
        for (unsigned n = 0; n < 8; ++n) {
            b_values[k][n] = __uint_as_float(b[k][n]);
            b_exponents[k][n] = exponent(b[k][n]);
        }
    }
    for (unsigned m = 0; m < 16; ++m) {
        TileOperands *quad = operands + m % 8 * 4;
        unsigned a[16];
        for (unsigned k = 0; k < 16; k += 2) {
            const unsigned pair = quad[k % 8 / 2].a[m / 8 + k / 8 * 2];
            a[k] = pair << 16;
            a[k + 1] = pair & 0xFFFF0000u;
        }
        Floats held;
        Exponents tops;
        for (unsigned n = 0; n < 8; ++n) {
            held[n] = quad[n / 2].c[m / 8 * 2 + n % 2];
            tops[n] = exponent(__float_as_uint(held[n]));
        }
        for (unsigned k = 0; k < 16; ++k) {
            const Exponents sum = b_exponents[k] + exponent(a[k]);
            tops = sum > tops ? sum : tops;
        }
        Floats scale;
        bool is_simple[8];
        for (unsigned n = 0; n < 8; ++n) {
            is_simple[n] = tops[n] >= -100 && tops[n] <= 100;
            scale[n] = is_simple[n] ? __uint_as_float(static_cast<unsigned>(127 + bits - tops[n]) << 23) : 0.0f;
        }
        // A product has sixteen bits: in f32 it and its multiples by powers of two are exact. Sums of eight fit an int.
        Ints halves[2] = {__builtin_convertvector(held * scale, Ints), Ints{}};
        for (unsigned k = 0; k < 16; ++k) {
            const Floats products = b_values[k] * __uint_as_float(a[k]) * scale;
            halves[k / 8] += __builtin_convertvector(products, Ints);
        }
        for (unsigned n = 0; n < 8; ++n) {
            float &out = quad[n / 2].c[m / 8 * 2 + n % 2];
            if (is_simple[n]) {
                // Exact as f64, and normal as f32 or zero: what f32 has no room for is cut off.
                const double total = static_cast<double>(int64_t{halves[0][n]} + halves[1][n]);
                const double power = __builtin_bit_cast(double, static_cast<uint64_t>(1023 + tops[n] - bits) << 52);
                const uint64_t kept = __builtin_bit_cast(uint64_t, total * power) & ~((uint64_t{1} << 29) - 1);
                out = static_cast<float>(__builtin_bit_cast(double, kept));
            } else {
                unsigned column[16];
                for (unsigned k = 0; k < 16; ++k) column[k] = b[k][n];
                out = sum(a, column, out);
            }
        }
    }
}

}  // namespace emulator::sums
