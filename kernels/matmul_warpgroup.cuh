// Matmuls of many rows on Hopper, by wgmma: weights are registers, activations lie in shared memory.
//
// A CTA takes 128 outputs, sixteen to a warp, and 128 or 256 rows. No two warps share weights, so these come straight
// from memory to the registers they are multiplied from, four tiles ahead; activations pass through shared memory in
// steps of 64 inputs. While one tile is multiplied the next becomes bf16. The sums of earlier chunks of K wait in shared
// memory: a thread's registers hold one chunk's alone.
#pragma once

#include "matmul_output.cuh"
#include "weights.cuh"
#include "wgmma.cuh"

namespace matmul {

constexpr int WARPGROUP_THREADS = 256;

// What a CTA of so many rows has in shared memory: steps of activations, two of which may be in use, then the totals.
template <int ROWS>
struct WarpgroupShared {
    static constexpr int STAGES = ROWS == 256 ? 3 : 6;
    static constexpr int STAGE = ROWS * 128;
    static constexpr int TOTALS_AT = STAGES * STAGE;
    static constexpr int BYTES = TOTALS_AT + 128 * ROWS * 4;
};

template <class Format, Epilogue EPILOGUE, int ROWS>
__device__ __forceinline__ void multiply_by_warpgroups(const Weights &weights, const Activations &activations,
                                                       const Output &output, const Chunks &chunks) {
    using Shared = WarpgroupShared<ROWS>;
    constexpr int STAGES = Shared::STAGES, STAGE = Shared::STAGE, BLOCKS = ROWS / 128, FRAGMENTS = ROWS / 8;
    constexpr int AHEAD = 4;  // tiles of weights
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, end = weights.k_tiles;
    const int group = blockIdx.y * 8 + warp, last_group = (output.n + 15) / 16 - 1;
    const Weights own = weights.of_group<Format>(min(group, last_group));
    unsigned char *stages = dynamic_shared();
    float4 *totals = reinterpret_cast<float4 *>(stages + Shared::TOTALS_AT) + threadIdx.x;  // [fragment][thread]

    let_dependents_start();
    typename Format::Share shares[AHEAD];
#pragma unroll
    for (int index = 0; index < AHEAD; ++index) shares[index] = own.share<Format>(min(index, end - 1), lane);
    wait_for_inputs();
#pragma unroll
    for (int step = 0; step < STAGES - 2; ++step) {
        copy_rows<ROWS, WARPGROUP_THREADS>(stages + step * STAGE, activations, step * 2, end);
        commit_copies();
    }

    float sums[BLOCKS][64] = {};
    int slot = -1, chunk_end = min(chunks.length, end);
    for (int first = 0; first < end; first += AHEAD) {
#pragma unroll
        for (int index = 0; index < AHEAD; ++index) {
            const int tile = first + index;
            if (tile >= end) break;
            if (index % 2 == 0) {
                slot = slot + 1 == STAGES ? 0 : slot + 1;
                await_copies<STAGES - 3>();
                fence_copies();
                // Everyone's copies have landed; everyone's products with the last step but one are done.
                __syncthreads();
                const int free_slot = slot < 2 ? slot + STAGES - 2 : slot - 2;
                copy_rows<ROWS, WARPGROUP_THREADS>(stages + free_slot * STAGE, activations, tile + (STAGES - 2) * 2, end);
                commit_copies();
            }
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
                float *c = sums[each / 16] + each % 16 * 4;
                const float4 sum = {c[0], c[1], c[2], c[3]};
                float4 &total = totals[each * WARPGROUP_THREADS];
                total = tile < chunks.length ? sum : add(total, sum);
                c[0] = c[1] = c[2] = c[3] = 0.0f;
            }
            chunk_end = min(chunk_end + chunks.length, end);
        }
    }
    await_products<0>();
    await_copies<0>();
#pragma unroll
    for (int each = 0; each < FRAGMENTS; ++each) {
        const float *c = sums[each / 16] + each % 16 * 4;
        const float4 sum = {c[0], c[1], c[2], c[3]};
        const float4 total = chunks.count == 1 ? sum : add(totals[each * WARPGROUP_THREADS], sum);
        store<EPILOGUE>(output, total, Format::ONE, group, blockIdx.x * ROWS + each * 8, lane);
    }
}

}  // namespace matmul
