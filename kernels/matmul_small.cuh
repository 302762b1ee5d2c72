// Matmuls of up to 32 rows, bound by the memory the weights lie in.
//
// A warp sums one chunk of K for one or two groups of 16 outputs; the four warps of a CTA are the four chunks. What a
// warp reads passes through a ring in shared memory that it shares with no other, so that until the chunks meet there
// is no barrier, and loads wait for nothing but room. The first weights are under way before the inputs are there, which
// pass through the ring too, or lie in shared memory as whole rows (matmul_normed.cuh).
#pragma once

#include "matmul_output.cuh"
#include "weights.cuh"

namespace matmul {

constexpr int SMALL_THREADS = 128;
// Outputs of a CTA, by the most rows the kernel takes. The grid is (ceil(n / small_outputs), 1, 1).
constexpr int small_outputs(int most_rows) { return most_rows >= 32 ? 32 : 16; }
// Dynamic shared memory: what lets three CTAs (8 and 16 rows) or two (32) share an H200's multiprocessor.
constexpr int small_shared_bytes(int most_rows) { return most_rows >= 32 ? 98304 : 65536; }
// Tiles of K in a stage, four at most: the fewer bytes a tile has, the more count the instructions between stages.
constexpr int small_tiles(int row_tiles, int tile_bytes) {
    return row_tiles >= 4 ? 1 : row_tiles == 2 || tile_bytes == 1024 ? 2 : 4;
}

template <class Format, int ROW_TILES>
struct Ring {
    static constexpr int GROUPS = small_outputs(8 * ROW_TILES) / 16;
    static constexpr int TILES = small_tiles(ROW_TILES, Format::VALUES);
    using Group = AlignedStage<Format, TILES>;
    static constexpr int X_AT = GROUPS * Group::BYTES;
    static constexpr int STAGE = X_AT + TILES * ROW_TILES * 512;
    static constexpr int BYTES = small_shared_bytes(8 * ROW_TILES) / 4;
    static constexpr int STAGES = BYTES / STAGE;
    static constexpr int AHEAD = (STAGES - 1) * TILES;  // tiles under way
    static_assert(STAGES >= 3 && BYTES >= GROUPS * ROW_TILES * 512);

    unsigned char *memory;
    typename Group::Source groups[GROUPS];
    const Bf16 *x;  // the lane's pieces of the first tile, where they are copied from
    int stride, rows, begin, end, lane;

    // The first stage's first tile.
    __device__ __forceinline__ int first() const { return begin / TILES * TILES; }

    // Stages begin at multiples of TILES. One is whole if all its tiles are of the chunk; others have zeros for those that
    // are not.
    __device__ __forceinline__ void copy_weights(int slot_at, int tile) const {
#pragma unroll
        for (int group = 0; group < GROUPS; ++group) {
            Group::copy_some(memory + slot_at + group * Group::BYTES, groups[group], tile, begin, end, lane);
        }
    }

    // Where the next whole stage lies that is to be copied: addresses that move on cost less than those made of a tile.
    struct Next {
        const unsigned char *values[GROUPS];
        const Bf16 *x;
    };

    __device__ __forceinline__ Next next(int tile) const {
        Next next;
#pragma unroll
        for (int group = 0; group < GROUPS; ++group) next.values[group] = groups[group].values + tile * Format::VALUES;
        next.x = x + tile * 32;
        return next;
    }

    __device__ __forceinline__ void copy_whole(int slot_at, int tile, Next &next) const {
#pragma unroll
        for (int group = 0; group < GROUPS; ++group) {
            unsigned char *to = memory + slot_at + group * Group::BYTES;
            Group::copy(to, groups[group], next.values[group], tile, lane);
            next.values[group] += TILES * Format::VALUES;
        }
        copy_x(slot_at, next.x, [](int) { return true; });
        next.x += TILES * 32;
    }

    // Eight rows of a tile lie side by side, 64 bytes each; their pieces of sixteen are exchanged so that eight rows'
    // reads of one piece meet in no bank.
    static __device__ __forceinline__ int place(int row, int piece) { return row * 64 + (piece ^ row / 2 % 4) * 16; }

    __device__ __forceinline__ void copy_x(int slot_at, int tile) const {
        copy_x(slot_at, x + tile * 32, [=, this](int index) { return begin <= tile + index && tile + index < end; });
    }

    template <typename Wanted>
    __device__ __forceinline__ void copy_x(int slot_at, const Bf16 *from, Wanted is_wanted) const {
        unsigned char *to = memory + slot_at + X_AT + place(lane / 4, lane % 4);
#pragma unroll
        for (int m = 0; m < ROW_TILES; ++m) {
#pragma unroll
            for (int index = 0; index < TILES; ++index) {
                const bool valid = m * 8 + lane / 4 < rows && is_wanted(index);
                copy_async_16_cached(to + (index * ROW_TILES + m) * 512, from + m * 8 * stride + index * 32, valid);
            }
        }
    }

    // The lane's inputs of eight rows of a stage's tile, for `load_matrices`.
    __device__ __forceinline__ const unsigned char *inputs_at(const unsigned char *stage, int index) const {
        return stage + X_AT + index * ROW_TILES * 512 + place(lane % 8, lane / 8);
    }

    __device__ __forceinline__ void multiply_whole(int slot_at, float (&sums)[GROUPS][ROW_TILES][4]) const {
        const unsigned char *stage = memory + slot_at;
        float units[GROUPS];
#pragma unroll
        for (int group = 0; group < GROUPS; ++group) units[group] = Group::unit(stage + group * Group::BYTES, lane);
#pragma unroll
        for (int index = 0; index < TILES; index += Group::TOGETHER) {
            typename Group::Share shares[GROUPS][Group::TOGETHER];
#pragma unroll
            for (int group = 0; group < GROUPS; ++group) {
                Group::read(stage + group * Group::BYTES, index, lane, shares[group]);
            }
#pragma unroll
            for (int each = 0; each < Group::TOGETHER; ++each) {
                Fragment weights[GROUPS];
#pragma unroll
                for (int group = 0; group < GROUPS; ++group) {
                    weights[group] = Group::fragment(shares[group][each], units[group], lane);
                }
                multiply_tile(inputs_at(stage, index + each), weights, sums);
            }
        }
    }

    __device__ __forceinline__ void multiply_some(int slot_at, int tile, float (&sums)[GROUPS][ROW_TILES][4]) const {
        const unsigned char *stage = memory + slot_at;
#pragma unroll 1
        for (int index = max(begin - tile, 0); index < min(end - tile, TILES); ++index) {
            Fragment weights[GROUPS];
#pragma unroll
            for (int group = 0; group < GROUPS; ++group) {
                const unsigned char *own = stage + group * Group::BYTES;
                weights[group] = Group::fragment(Group::read(own, index, lane), Group::unit(own, lane), lane);
            }
            multiply_tile(inputs_at(stage, index), weights, sums);
        }
    }

    __device__ __forceinline__ void multiply_tile(const unsigned char *inputs_at, const Fragment (&weights)[GROUPS],
                                                  float (&sums)[GROUPS][ROW_TILES][4]) const {
#pragma unroll
        for (int m = 0; m < ROW_TILES; ++m) {
            const uint4 inputs = load_matrices(inputs_at + m * 512);
#pragma unroll
            for (int group = 0; group < GROUPS; ++group) {
                multiply_add(sums[group][m], weights[group].half[0], inputs.x, inputs.y);
            }
#pragma unroll
            for (int group = 0; group < GROUPS; ++group) {
                multiply_add(sums[group][m], weights[group].half[1], inputs.z, inputs.w);
            }
        }
    }

    // The whole chunk, from its first stage on; those of the first tiles are under way.
    __device__ __forceinline__ void multiply(float (&sums)[GROUPS][ROW_TILES][4]) const {
        int slot_at = 0, free_at = (STAGES - 1) * STAGE, tile = first();
        Next next = this->next(first() + AHEAD);
        const auto await_slot = [] {
            await_copies<STAGES - 2>();
            __syncwarp();  // every lane's copies have landed, and every lane has read what the free slot held
        };
        // Nearly all stages are whole, and those are copied without conditions.
        for (; tile + TILES <= end; tile += TILES) {
            await_slot();
            const int copied = tile + AHEAD;
            if (copied + TILES <= end) {
                copy_whole(free_at, copied, next);
            } else if (copied < end) {
                copy_weights(free_at, copied);
                copy_x(free_at, copied);
            }
            commit_copies();
            // Before the chunk the ring has zeros.
            multiply_whole(slot_at, sums);
            free_at = slot_at;
            slot_at = slot_at + STAGE == STAGES * STAGE ? 0 : slot_at + STAGE;
        }
        if (tile < end) {
            await_slot();
            multiply_some(slot_at, tile, sums);
        }
    }
};

// Starts the copies of a warp's first weights, and calls to the second cache what comes after them: as much again as is in
// the ring, roughly, or all of a short chunk: until the inputs are there the memory has nothing else to do.
template <class Format, class Ring>
__device__ __forceinline__ void start_weights(Ring &ring, const Weights &weights, const Chunks &chunks, int n) {
    constexpr int PREFETCHED = 8192 / Format::VALUES, SHORT_CHUNK = 32;
    const int first_group = blockIdx.x * Ring::GROUPS, last_group = (n + 15) / 16 - 1;
    const auto group_weights = [&](int group) {
        return weights.of_group<Format>(min(first_group + group, last_group));
    };
#pragma unroll
    for (int group = 0; group < Ring::GROUPS; ++group) {
        ring.groups[group] = Ring::Group::source(group_weights(group), ring.lane);
    }
    const int first = ring.first();
#pragma unroll
    for (int slot = 0; slot < Ring::STAGES - 1; ++slot) {
        ring.copy_weights(slot * Ring::STAGE, first + slot * Ring::TILES);
    }
    const int prefetch_end = chunks.length <= SHORT_CHUNK ? ring.end : min(first + Ring::AHEAD + PREFETCHED, ring.end);
#pragma unroll
    for (int group = 0; group < Ring::GROUPS; ++group) {
        prefetch<Format>(group_weights(group), first + Ring::AHEAD, prefetch_end, ring.lane);
    }
}

// The sums of a CTA's chunks, added in order, become its outputs.
template <class Format, Epilogue EPILOGUE, int GROUPS, int ROW_TILES>
__device__ __forceinline__ void store_sums(const float (&sums)[GROUPS][ROW_TILES][4], const Output &output,
                                           const Chunks &chunks) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // The rings give way to the chunks' sums, [chunk][group][m][lane].
    await_copies<0>();
    __syncthreads();
    float4 *met = reinterpret_cast<float4 *>(dynamic_shared());
    constexpr int FRAGMENTS = GROUPS * ROW_TILES;
#pragma unroll
    for (int fragment = 0; fragment < FRAGMENTS; ++fragment) {
        const float(&c)[4] = sums[fragment / ROW_TILES][fragment % ROW_TILES];
        met[(warp * FRAGMENTS + fragment) * 32 + lane] = {c[0], c[1], c[2], c[3]};
    }
    __syncthreads();
    for (int fragment = warp; fragment < FRAGMENTS; fragment += 4) {
        float4 total = met[fragment * 32 + lane];
        for (int chunk = 1; chunk < chunks.count; ++chunk) {
            total = add(total, met[(chunk * FRAGMENTS + fragment) * 32 + lane]);
        }
        store<EPILOGUE>(output, total, Format::ONE, blockIdx.x * GROUPS + fragment / ROW_TILES, fragment % ROW_TILES * 8,
                        lane);
    }
}

template <class Format, Epilogue EPILOGUE, int ROW_TILES>
__device__ __forceinline__ void multiply_small(const Weights &weights, const Activations &activations,
                                               const Output &output, const Chunks &chunks) {
    using Ring = Ring<Format, ROW_TILES>;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int begin = warp * chunks.length, end = min(begin + chunks.length, weights.k_tiles);

    let_dependents_start();
    Ring ring{dynamic_shared() + warp * Ring::BYTES, {},
              activations.x + lane / 4 * activations.stride + lane % 4 * 8, activations.stride, activations.rows, begin,
              end, lane};
    start_weights<Format>(ring, weights, chunks, output.n);
    wait_for_inputs();
#pragma unroll
    for (int slot = 0; slot < Ring::STAGES - 1; ++slot) {
        ring.copy_x(slot * Ring::STAGE, ring.first() + slot * Ring::TILES);
        commit_copies();
    }
    float sums[Ring::GROUPS][ROW_TILES][4] = {};
    ring.multiply(sums);
    store_sums<Format, EPILOGUE>(sums, output, chunks);
}

}  // namespace matmul
