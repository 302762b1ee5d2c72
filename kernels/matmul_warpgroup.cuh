// Matmuls of many rows on Hopper, by wgmma: weights are registers, activations lie in shared memory.
//
// A CTA takes 128 outputs, sixteen to a warp, and 128 or 256 rows. No two warps share weights, so these come straight
// from memory to the registers they are multiplied from, four tiles ahead; activations pass through shared memory tile by
// tile. While one tile is multiplied the next becomes bf16. The sums of earlier chunks of K wait in shared memory: a
// thread's registers hold one chunk's alone. Where blocks are few, the CTAs of a cluster take a chunk each and meet in one
// another's shared memory.
#pragma once

#include "matmul_block.cuh"
#include "weights.cuh"
#include "wgmma.cuh"

namespace matmul {

constexpr int WARPGROUP_THREADS = 256;

// What a CTA of so many rows has in shared memory: stages of activations, two tiles to each, then the totals.
template <int ROWS>
struct WarpgroupShared {
    static constexpr int STAGES = ROWS == 256 ? 3 : 6;
    static constexpr int STAGE = ROWS * 128;
    static constexpr int TOTALS_AT = STAGES * STAGE;
    static constexpr int BYTES = TOTALS_AT + 128 * ROWS * 4;
    static constexpr int AHEAD = 2 * STAGES - 2;  // tiles on their way: products of one more tile may still be under way
    static_assert(BlockRows<Epilogue::F32, ROWS>::BYTES <= BYTES);
    static_assert(BlockRows<Epilogue::F32, ROWS / 4>::BYTES <= TOTALS_AT);
};

// A thread's part of the copies of a tile: sixteen bytes of every 64th row.
template <int ROWS>
struct TileCopies {
    const Bf16 *from;
    int rows, stride, place;  // rows from the thread's first on

    __device__ __forceinline__ TileCopies(const Activations &activations, int first_row) : stride(activations.stride) {
        // Rows r and r + 4 lie in opposite halves of a stage's 128 bytes, so that eight lanes' pieces meet in no bank.
        const int lane = threadIdx.x % 32, piece = lane % 4;
        const int row = threadIdx.x / 32 * 8 + lane / 8 + lane / 4 % 2 * 4;
        place = place_in_stage(row, piece);
        rows = activations.rows - first_row - row;
        from = activations.x + static_cast<size_t>(first_row + row) * stride + piece * 8;
    }

    // Starts copying a tile to the first or second half of a stage; zeros for rows that are not there.
    __device__ __forceinline__ void start(unsigned char *stage, int half, int tile) const {
#pragma unroll
        for (int row = 0; row < ROWS; row += 64) {
            const Bf16 *at = from + static_cast<size_t>(row) * stride + tile * 32;
            copy_async_16(stage + (place ^ half * 64) + row * 128, at, row < rows);
        }
    }
};

template <class Format, Epilogue EPILOGUE, int ROWS>
__device__ __forceinline__ void multiply_by_warpgroups(const Weights &weights, const Activations &activations,
                                                       const Output &output, const Chunks &chunks) {
    using Shared = WarpgroupShared<ROWS>;
    constexpr int STAGES = Shared::STAGES, STAGE = Shared::STAGE, BLOCKS = ROWS / 128, FRAGMENTS = ROWS / 8;
    constexpr int AHEAD = 4;  // tiles of weights
    const bool split = cluster_size() > 1;
    const int begin = split ? cluster_rank() * chunks.length : 0;
    const int end = split ? min(begin + chunks.length, weights.k_tiles) : weights.k_tiles;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int group = blockIdx.y * 8 + warp, last_group = (output.n + 15) / 16 - 1;
    const int first_row = blockIdx.x / cluster_size() * ROWS;
    const Weights own = weights.of_group<Format>(min(group, last_group));
    unsigned char *stages = dynamic_shared();
    float4 *totals = reinterpret_cast<float4 *>(stages + Shared::TOTALS_AT) + threadIdx.x;  // [fragment][thread]

    let_dependents_start();
    typename Format::Share shares[AHEAD];
#pragma unroll
    for (int index = 0; index < AHEAD; ++index) shares[index] = own.share<Format>(min(begin + index, end - 1), lane);
    const TileCopies<ROWS> copies(activations, first_row);
    wait_for_inputs();
#pragma unroll
    for (int index = 0; index < Shared::AHEAD; ++index) {
        if (begin + index < end) copies.start(stages + index / 2 * STAGE, index % 2, begin + index);
        commit_copies();
    }

    float sums[BLOCKS][64] = {};
    int slot = STAGES - 1, free_slot = 0, chunk_end = min(begin + chunks.length, end);
    for (int first = begin; first < end; first += AHEAD) {
#pragma unroll
        for (int index = 0; index < AHEAD; ++index) {
            const int tile = first + index;
            if (tile >= end) break;
            if (index % 2 == 0) {
                free_slot = slot;
                slot = slot + 1 == STAGES ? 0 : slot + 1;
            }
            await_copies<Shared::AHEAD - 1>();
            fence_copies();
            // Everyone's copies have landed; everyone's products with the last tile but one are done.
            __syncthreads();
            if (tile + Shared::AHEAD < end) copies.start(stages + free_slot * STAGE, index % 2, tile + Shared::AHEAD);
            commit_copies();
            Fragment fragment = Format::fragment(shares[index], lane);
            move_operand(fragment.half[0]);
            move_operand(fragment.half[1]);
            if (tile + AHEAD < end) shares[index] = own.share<Format>(tile + AHEAD, lane);
            begin_products();
#pragma unroll
            for (int half = 0; half < 2; ++half) {
#pragma unroll
                for (int block = 0; block < BLOCKS; ++block) {
                    const unsigned char *rows = stages + slot * STAGE + block * 128 * 128;
                    multiply_async(sums[block], fragment.half[half], describe_rows(rows, index % 2 * 64 + half * 32));
                }
            }
            commit_products();
            if (tile + 1 != chunk_end || tile + 1 == end) {
                await_products<1>();
                continue;
            }
            await_products<0>();
#pragma unroll
            for (int each = 0; each < FRAGMENTS; ++each) {
                float4 &total = totals[each * WARPGROUP_THREADS];
                const float4 sum = fragment_of(sums[each / 16], each % 16);
                total = tile < chunks.length ? sum : add(total, sum);
                put_fragment(sums[each / 16], each % 16, {0, 0, 0, 0});
            }
            chunk_end = min(chunk_end + chunks.length, end);
        }
    }
    await_products<0>();
    if (split) {
        // Each adds up all chunks of a quarter of the rows.
        constexpr int EACH = FRAGMENTS / 4;
        float4 joined[EACH];
#pragma unroll
        for (int each = 0; each < FRAGMENTS; ++each) {
            totals[each * WARPGROUP_THREADS] = fragment_of(sums[each / 16], each % 16);
        }
        cluster_barrier();
#pragma unroll
        for (int each = 0; each < EACH; ++each) {
            joined[each] = add_of_cluster(&totals[(cluster_rank() * EACH + each) * WARPGROUP_THREADS], chunks.count);
        }
        cluster_barrier();  // whose memory is read must stay
        const auto results = [&](int each) { return joined[each]; };
        write_block<Format, EPILOGUE, ROWS / 4>(output, results, first_row + cluster_rank() * (ROWS / 4));
        return;
    }
    if (chunks.count > 1) {
#pragma unroll
        for (int each = 0; each < FRAGMENTS; ++each) {
            const float4 sum = fragment_of(sums[each / 16], each % 16);
            put_fragment(sums[each / 16], each % 16, add(totals[each * WARPGROUP_THREADS], sum));
        }
    }
    const auto results = [&](int each) { return fragment_of(sums[each / 16], each % 16); };
    write_block<Format, EPILOGUE, ROWS>(output, results, first_row);
}

}  // namespace matmul
