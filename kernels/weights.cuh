// A matmul's weights on their way from memory through shared memory into A fragments, in three formats.
//
// Tiles of 16 outputs (a group) × 32 inputs, [groups][k_tiles]. Half s of a tile, its inputs 16s … 16s+15, is one
// step of k16; lane = 4·g + q owns outputs g and g+8: a0, a1 are rows g, g+8 at inputs 16s+2q+{0,1}, a2, a3 at +{8,9}.
#pragma once

#include "common.cuh"
#include "mbarrier.cuh"

namespace matmul {

// Where weights lie; a format without scales or units has null there.
struct Weights {
    const unsigned char *values;  // [groups][k_tiles][Format::VALUES]
    const unsigned char *scales;  // [groups][k_tiles][Format::SCALES]
    const unsigned char *units;   // [groups][ceil(k_tiles/8)][Format::UNITS]
    int k_tiles;

    // The same of one group alone.
    template <class Format>
    __device__ __forceinline__ Weights of_group(int group) const {
        const size_t tile = static_cast<size_t>(group) * k_tiles;
        const size_t block = static_cast<size_t>(group) * ((k_tiles + 7) / 8);
        return {values + tile * Format::VALUES, scales + tile * Format::SCALES, units + block * Format::UNITS, k_tiles};
    }

    // A lane's share of a tile of the first group, from where it lies.
    template <class Format>
    __device__ __forceinline__ typename Format::Share share(int tile, int lane) const {
        return Format::read(values + tile * Format::VALUES, scales + tile * Format::SCALES,
                            units + tile / 8 * Format::UNITS, lane);
    }
};

// A tile as the mma's first operand: a0 … a3 of its two steps.
struct Fragment {
    unsigned half[2][4];
};

// VALUES, SCALES and UNITS are a tile's bytes of each part; units are those of its 256 inputs. A lane's `Share` is what
// it reads of a tile. A fragment holds its weights divided by ONE, a power of two, and results are to be multiplied by
// it: all roundings are the same.
struct Bf16Weights {
    static constexpr int VALUES = 1024, SCALES = 0, UNITS = 0;
    static constexpr float ONE = 1;

    // values: [half][lane][4 × 2 bf16]
    struct Share {
        uint4 half[2];
    };

    static __device__ __forceinline__ Share read(const unsigned char *values, const unsigned char *,
                                                 const unsigned char *, int lane) {
        const uint4 *from = reinterpret_cast<const uint4 *>(values) + lane;
        return {{from[0], from[32]}};
    }

    static __device__ __forceinline__ Fragment fragment(const Share &share, int) {
        Fragment fragment;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            fragment.half[half][0] = share.half[half].x;
            fragment.half[half][1] = share.half[half].y;
            fragment.half[half][2] = share.half[half].z;
            fragment.half[half][3] = share.half[half].w;
        }
        return fragment;
    }
};

// w = bf16(d · q)
struct Q8Weights {
    static constexpr int VALUES = 512, SCALES = 32, UNITS = 0;
    static constexpr float ONE = 1;

    // values: i8 [half][lane][row g, g+8][4]; scales: f16 d [16 rows]
    struct Share {
        uint2 half[2];
        unsigned short scales[2];
    };

    static __device__ __forceinline__ Share read(const unsigned char *values, const unsigned char *scales,
                                                 const unsigned char *, int lane) {
        const uint2 *from = reinterpret_cast<const uint2 *>(values) + lane;
        const unsigned short *d = reinterpret_cast<const unsigned short *>(scales) + lane / 4;
        return {{from[0], from[32]}, {d[0], d[8]}};
    }

    static __device__ __forceinline__ Fragment fragment(const Share &share, int) {
        const float scale[2] = {float_from_half(share.scales[0]), float_from_half(share.scales[1])};
        Fragment fragment;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                const unsigned offset_binary = (row == 0 ? share.half[half].x : share.half[half].y) ^ 0x80808080u;
                fragment.half[half][row] = pair(offset_binary, 0, scale[row]);
                fragment.half[half][row + 2] = pair(offset_binary, 2, scale[row]);
            }
        }
        return fragment;
    }

    // Two neighbours of four bytes q + 128, times d.
    static __device__ __forceinline__ unsigned pair(unsigned bytes, int first, float d) {
        return pack_bf16(product(bytes, first, d), product(bytes, first + 1, d));
    }

    // A byte in the middle of the mantissa of 2¹⁵ makes 2¹⁵ + 128 + q. The multiply-add takes d · (2¹⁵ + 128) away
    // again and is exact: d has 11 bits, so that neither product needs more than 24 and d · q is an f32.
    static __device__ __forceinline__ float product(unsigned bytes, int index, float d) {
        const float shifted = __uint_as_float(byte_permute(bytes, 0x47000000u, 0x7404 | index << 4));
        return __fmaf_rn(d, shifted, __fmul_rn(d, -32896.0f));
    }
};

// w = bf16(d·s · q − dmin·m)
//
// A nibble is never converted: where it stands it is, as the bits of an f32, a subnormal number (or one just above, of
// the same spacing), q · 2^(p−149) for the bit p that it begins at, and d·s · 2^(149−p) makes up for it. ONE keeps that
// factor finite: d·s is below 2²⁴.
struct Q4Weights {
    static constexpr int VALUES = 256, SCALES = 32, UNITS = 64;
    static constexpr float ONE = 0x1p48f;

    // values: u4 [half][lane][row g, g+8][4]; scales: u8 [s, m][16 rows]; units: f16 [d, dmin][16 rows]
    struct Share {
        unsigned half[2];
        unsigned short unit;
        unsigned char scale;
    };

    static __device__ __forceinline__ Share read(const unsigned char *values, const unsigned char *scales,
                                                 const unsigned char *units, int lane) {
        const unsigned *from = reinterpret_cast<const unsigned *>(values) + lane;
        return {{from[0], from[32]}, read_unit(units, lane), scales[mine(lane)]};
    }

    static __device__ __forceinline__ unsigned short read_unit(const unsigned char *units, int lane) {
        return reinterpret_cast<const unsigned short *>(units)[mine(lane)];
    }

    // Which of a tile's 32 scales and units a lane takes.
    static __device__ __forceinline__ int mine(int lane) { return lane % 4 * 8 + lane / 4; }

    // A lane's shares of two neighbouring tiles in shared memory, without units: the values lie as 8 × 8 matrices do, so that
    // one load brings all four words.
    static __device__ __forceinline__ void read_two(const unsigned char *values, const unsigned char *scales, int lane,
                                                    Share (&shares)[2]) {
        const uint4 words = load_matrices(values + lane * 16);
        shares[0] = {{words.x, words.y}, 0, scales[mine(lane)]};
        shares[1] = {{words.z, words.w}, 0, scales[SCALES + mine(lane)]};
    }

    static __device__ __forceinline__ Fragment fragment(const Share &share, int lane) {
        return fragment(share, of_unit(share.unit, lane), lane);
    }

    // What makes the lane's product of a scale, the same for 256 inputs. A unit has 11 bits and a scale 8, so that no product
    // of them and a power of two is rounded.
    static __device__ __forceinline__ float of_unit(unsigned short unit, int lane) {
        constexpr float lowest = 0x1p126f / ONE * 0x1p23f;  // 2¹⁴⁹ / ONE
        const int q = lane % 4;
        return __fmul_rn(float_from_half(unit), q == 0 ? lowest : q == 1 ? lowest / (1 << 16) : -1 / ONE);
    }

    static __device__ __forceinline__ Fragment fragment(const Share &share, float unit, int lane) {
        // The 32 products d·s and dmin·m of a tile: each lane forms one, and those of rows g and g+8 meet here.
        const float product = __fmul_rn(unit, __fsub_rn(__uint_as_float(0x4B000000u | share.scale), 0x1p23f));
        float met[4];
#pragma unroll
        for (int each = 0; each < 4; ++each) met[each] = __shfl_sync(0xFFFFFFFFu, product, lane - lane % 4 + each);
        const Row first = {met[0], met[2]}, second = {met[1], met[3]};
        Fragment fragment;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const unsigned rows = share.half[half];
            fragment.half[half][0] = pair<0, 0>(rows, first);
            fragment.half[half][1] = pair<16, 16>(rows, second);
            fragment.half[half][2] = pair<8, 0>(rows, first);
            fragment.half[half][3] = pair<16, 16>(rows >> 8, second);  // the last two come down to where they can stand
        }
        return fragment;
    }

    // Row g's d·s made up for a nibble at bit 0, row g+8's for one at bit 16, and −dmin·m; all divided by ONE.
    struct Row {
        float step, least;
    };

    // The nibbles at BIT and BIT + 4 of a row whose step is for one at BASE.
    template <int BIT, int BASE>
    static __device__ __forceinline__ unsigned pair(unsigned nibbles, Row row) {
        return pack_bf16(weight<BIT, BASE>(nibbles, row), weight<BIT + 4, BASE>(nibbles, row));
    }

    template <int BIT, int BASE>
    static __device__ __forceinline__ float weight(unsigned nibbles, Row row) {
        static_assert(BIT <= 20);
        // The compiler would multiply by one.
        const float step = BIT == BASE ? row.step : __fmul_rn(row.step, 1.0f / (1 << (BIT - BASE)));
        return __fmaf_rn(step, __uint_as_float(nibbles & 0xFu << BIT), row.least);
    }
};

// So many tiles of one group in shared memory: their values, then their scales, then the units of each.
template <class Format, int TILES>
struct Stage {
    static constexpr int SCALES_AT = TILES * Format::VALUES;
    static constexpr int UNITS_AT = SCALES_AT + TILES * Format::SCALES;
    static constexpr int BYTES = UNITS_AT + TILES * Format::UNITS;

    // A warp starts copying tiles `tile` … of a group's weights; from `end` on there are zeros instead.
    static __device__ __forceinline__ void copy(unsigned char *stage, const Weights &group, int tile, int end,
                                                int lane) {
#pragma unroll
        for (int first = 0; first < BYTES; first += 32 * 16) {
            const int at = first + lane * 16;
            if (at < BYTES) copy_piece(stage + at, group, at, tile, end);
        }
    }

    // Sixteen bytes, `at` counting from the stage's start.
    static __device__ __forceinline__ void copy_piece(unsigned char *to, const Weights &group, int at, int tile,
                                                      int end) {
        const unsigned char *from = group.values + tile * Format::VALUES + at;
        int index = at / Format::VALUES;
        if constexpr (Format::SCALES != 0) {
            if (at >= SCALES_AT) {
                from = group.scales + tile * Format::SCALES + at - SCALES_AT;
                index = (at - SCALES_AT) / Format::SCALES;
            }
        }
        if constexpr (Format::UNITS != 0) {
            if (at >= UNITS_AT) {
                index = (at - UNITS_AT) / Format::UNITS;
                from = group.units + (tile + index) / 8 * Format::UNITS + (at - UNITS_AT) % Format::UNITS;
            }
        }
        copy_async_16(to, from, tile + index < end);
    }

    // The copy engine brings `count` tiles from `tile` on, and the barrier counts their bytes. By one thread.
    static __device__ __forceinline__ void bring(unsigned char *stage, const Weights &group, int tile, int count,
                                                 Counter *barrier) {
        expect_bytes(barrier, count * (Format::VALUES + Format::SCALES + Format::UNITS));
        copy_bytes(stage, group.values + tile * Format::VALUES, count * Format::VALUES, barrier);
        if constexpr (Format::SCALES != 0) {
            copy_bytes(stage + SCALES_AT, group.scales + tile * Format::SCALES, count * Format::SCALES, barrier);
        }
        if constexpr (Format::UNITS != 0) {
            for (int index = 0; index < count; ++index) {
                const unsigned char *units = group.units + (tile + index) / 8 * Format::UNITS;
                copy_bytes(stage + UNITS_AT + index * Format::UNITS, units, Format::UNITS, barrier);
            }
        }
    }

    static __device__ __forceinline__ Fragment fragment(const unsigned char *stage, int index, int lane) {
        const auto share = Format::read(stage + index * Format::VALUES, stage + SCALES_AT + index * Format::SCALES,
                                        stage + UNITS_AT + index * Format::UNITS, lane);
        return Format::fragment(share, lane);
    }
};

// The same for stages that begin at a multiple of TILES, a power of two up to eight: the units are those of all its tiles.
template <class Format, int TILES>
struct AlignedStage {
    static constexpr int SCALES_AT = TILES * Format::VALUES;
    static constexpr int UNITS_AT = SCALES_AT + TILES * Format::SCALES;
    static constexpr int BYTES = UNITS_AT + Format::UNITS;
    // Pieces of sixteen bytes that all lanes copy of the values; what is left is one more of some lanes.
    static constexpr int WHOLE = SCALES_AT / 512, REST_AT = WHOLE * 512;
    static constexpr bool HAS_REST = BYTES > REST_AT;
    static_assert(8 % TILES == 0 && BYTES - REST_AT <= 512);

    // Where a lane's pieces of a group's first tiles lie. Its piece of the rest lies `tile >> down << up` bytes on.
    struct Source {
        const unsigned char *values, *rest;
        int down, up;
    };

    static __device__ __forceinline__ Source source(const Weights &group, int lane) {
        constexpr auto log2 = [](int power) {
            int log = 0;
            while (power > 1 << log) ++log;
            return log;
        };
        const int at = REST_AT + lane * 16;
        Source source{group.values + lane * 16, group.values + at, 0, log2(Format::VALUES)};
        if constexpr (Format::SCALES != 0) {
            if (at >= SCALES_AT) {
                source.rest = group.scales + at - SCALES_AT;
                source.up = log2(Format::SCALES);
            }
        }
        if constexpr (Format::UNITS != 0) {
            if (at >= UNITS_AT) {
                source.rest = group.units + at - UNITS_AT;
                source.down = 3;
                source.up = log2(Format::UNITS);
            }
        }
        return source;
    }

    // A warp starts copying tiles `tile` …, all of which are wanted; the lane's values of them are at `values`.
    static __device__ __forceinline__ void copy(unsigned char *stage, const Source &source, const unsigned char *values,
                                                int tile, int lane) {
        unsigned char *to = stage + lane * 16;
#pragma unroll
        for (int piece = 0; piece < WHOLE; ++piece) copy_async_16(to + piece * 512, values + piece * 512);
        if (HAS_REST && lane * 16 < BYTES - REST_AT) {
            copy_async_16(to + REST_AT, source.rest + (tile >> source.down << source.up));
        }
    }

    // The same where only tiles from `begin` to `end`−1 are; there are zeros instead of others.
    static __device__ __forceinline__ void copy_some(unsigned char *stage, const Source &source, int tile, int begin,
                                                     int end, int lane) {
        const auto is_wanted = [&](int index) { return begin <= tile + index && tile + index < end; };
        unsigned char *to = stage + lane * 16;
        const unsigned char *from = source.values + tile * Format::VALUES;
#pragma unroll
        for (int piece = 0; piece < WHOLE; ++piece) {
            copy_async_16(to + piece * 512, from + piece * 512, is_wanted((piece * 512 + lane * 16) / Format::VALUES));
        }
        const int at = REST_AT + lane * 16;
        if (at >= BYTES) return;
        bool wanted = is_wanted(at / Format::VALUES);
        if constexpr (Format::SCALES != 0) {
            if (at >= SCALES_AT) wanted = is_wanted((at - SCALES_AT) / Format::SCALES);
        }
        if (at >= UNITS_AT) wanted = begin < tile + TILES && tile < end;
        copy_async_16(to + REST_AT, source.rest + (tile >> source.down << source.up), wanted);
    }

    // What a lane makes of the units, where there are any.
    static __device__ __forceinline__ float unit(const unsigned char *stage, int lane) {
        if constexpr (Format::UNITS != 0) {
            return Format::of_unit(Format::read_unit(stage + UNITS_AT, lane), lane);
        }
        return 0.0f;
    }

    // Tiles that are read at once.
    static constexpr int TOGETHER = Format::UNITS != 0 && TILES % 2 == 0 ? 2 : 1;
    using Share = typename Format::Share;

    static __device__ __forceinline__ Share read(const unsigned char *stage, int index, int lane) {
        return Format::read(stage + index * Format::VALUES, stage + SCALES_AT + index * Format::SCALES, stage + UNITS_AT,
                            lane);
    }

    static __device__ __forceinline__ void read(const unsigned char *stage, int index, int lane, Share (&shares)[TOGETHER]) {
        if constexpr (TOGETHER == 2) {
            Format::read_two(stage + index * Format::VALUES, stage + SCALES_AT + index * Format::SCALES, lane, shares);
        } else {
            shares[0] = read(stage, index, lane);
        }
    }

    static __device__ __forceinline__ Fragment fragment(const Share &share, [[maybe_unused]] float unit, int lane) {
        if constexpr (Format::UNITS != 0) return Format::fragment(share, unit, lane);
        return Format::fragment(share, lane);
    }
};

// A warp asks for a group's tiles `tile` … `end`−1 to be in the second cache.
template <class Format>
__device__ __forceinline__ void prefetch(const Weights &group, int tile, int end, int lane) {
    const auto ask = [lane](const unsigned char *from, int bytes) {
        for (int at = lane * 128; at < bytes; at += 32 * 128) prefetch_to_l2(from + at);
    };
    ask(group.values + tile * Format::VALUES, (end - tile) * Format::VALUES);
    ask(group.scales + tile * Format::SCALES, (end - tile) * Format::SCALES);
    ask(group.units + tile / 8 * Format::UNITS, ((end + 7) / 8 - tile / 8) * Format::UNITS);
}

}  // namespace matmul
