// What attention is given: a layer's queries and pages, a step's rows; and how a CTA's queries come to its warps.
#pragma once

#include "attention_chunk.cuh"

namespace attention {

// Which queries a CTA has: those of a group's heads in some rows, row by row, from the one of the number `skipped` on.
struct Packing {
    unsigned first_row, rows, group, kv_head, skipped = 0;

    __device__ bool holds(unsigned index) const { return skipped + index < rows * group; }
    __device__ unsigned row(unsigned index) const { return first_row + (skipped + index) / group; }
    __device__ unsigned head(unsigned index) const { return kv_head * group + (skipped + index) % group; }
    // The last of so many queries' rows, and one.
    __device__ unsigned end_row(unsigned queries) const {
        return first_row + (min(skipped + queries, rows * group) + group - 1) / group;
    }
};

// A layer's queries and pages, and a step's rows.
struct Inputs {
    const uint4 *queries;       // bf16 [rows][heads][DIM]
    const uint4 *keys;          // bf16 [page][kv_heads][DIM/32][32 positions][32 dims]
    const uint4 *values;        // bf16 [page][kv_heads][DIM][32 positions]
    const unsigned *positions;  // [rows]
    const unsigned *sequences;  // [rows]
    const unsigned *tables;     // page ids [sequences][table_stride]
    int table_stride, heads, kv_heads;
    int window;  // how many keys a row sees, itself included; 0: all before it
    float scale;
    const unsigned *lengths;  // [rows], of texts whose rows see as far ahead; else null

    // Nothing where there is no such row.
    __device__ Span seen(unsigned row, bool is_there) const {
        // Both are asked for at once; where there are no lengths, the position once more in their place.
        const unsigned position = is_there ? positions[row] : NOTHING;
        const unsigned length = is_there ? (lengths == nullptr ? positions : lengths)[row] : 0;
        return keys_seen(position, window, lengths == nullptr ? 0 : length);
    }

    template <int DIM>
    __device__ Cache<DIM> cache(unsigned row, unsigned kv_head) const {
        const unsigned *table = tables + static_cast<size_t>(load_past_l1(sequences + row)) * table_stride;
        return {keys, values, static_cast<unsigned>(kv_heads), kv_head, table};
    }

    // Of the y-th block (first row, rows) from the last, of which a CTA has so many queries, the z-th; its x is the kv head.
    __device__ Packing packing(const uint2 *blocks, unsigned queries) const {
        const uint2 block = blocks[gridDim.y - 1 - blockIdx.y];
        return {block.x, block.y, static_cast<unsigned>(heads / kv_heads), blockIdx.x, queries * blockIdx.z};
    }
};

// What becomes of the queries.
struct Result {
    Bf16 *out;  // [rows][stride], of which heads · head_dim columns are written
    int stride;
    unsigned head_dim;

    // A head's dims, two and two.
    __device__ unsigned *pairs(unsigned row, unsigned head) const {
        return reinterpret_cast<unsigned *>(out + static_cast<size_t>(row) * stride + head * head_dim);
    }
};

// What the rows of so many queries see.
struct Views {
    Span any, common;  // what some row sees, and what all do

    __device__ Views(const Inputs &inputs, const Packing &packing, unsigned queries) : any{NOTHING, 0}, common{0, NOTHING} {
        const unsigned end = packing.end_row(queries);
        for (unsigned row = packing.row(0) + threadIdx.x % 32; row < end; row += 32) {
            const Span seen = inputs.seen(row, true);
            if (!seen.is_empty()) any = {min(any.first, seen.first), max(any.end, seen.end)};
            common = {max(common.first, seen.first), min(common.end, seen.end)};
        }
        any = {__reduce_min_sync(0xFFFFFFFF, any.first), __reduce_max_sync(0xFFFFFFFF, any.end)};
        common = {__reduce_max_sync(0xFFFFFFFF, common.first), __reduce_min_sync(0xFFFFFFFF, common.end)};
    }
};

// Brings the queries, and zeros for those that the tiles lack, to where all warps find them after a barrier.
template <int DIM, int TILES>
__device__ __forceinline__ void gather_queries(const Inputs &inputs, const Packing &packing,
                                               Meeting<DIM, TILES> &meeting) {
    const unsigned lane = threadIdx.x % 32;
    for (unsigned n = threadIdx.x / 32; n < TILES * (DIM / 32); n += WARPS) {
        const unsigned block = n / TILES, tile = n % TILES;
        uint4 rows[2] = {};
#pragma unroll
        for (unsigned half = 0; half < 2; ++half) {
            const unsigned index = tile * 16 + half * 8 + lane / 4;
            if (!packing.holds(index)) continue;
            const size_t query = static_cast<size_t>(packing.row(index)) * inputs.heads + packing.head(index);
            rows[half] = inputs.queries[query * (DIM / 8) + block * 4 + lane % 4];
        }
        meeting.queries[block][tile][0][lane] = {rows[0].x, rows[1].x, rows[0].y, rows[1].y};
        meeting.queries[block][tile][1][lane] = {rows[0].z, rows[1].z, rows[0].w, rows[1].w};
    }
}

// The queries, and what each sees, where all warps find them.
template <int DIM, int TILES>
__device__ __forceinline__ void gather(const Inputs &inputs, const Packing &packing, Span common, Meeting<DIM, TILES> &meeting) {
    gather_queries(inputs, packing, meeting);
    const unsigned index = threadIdx.x;
    if (index < 16 * TILES) {
        meeting.seen[index] = inputs.seen(packing.row(index), packing.holds(index));
    }
    if (index == 0) meeting.common = common;
    __syncthreads();
}

// The first of a lane's two dims in the n-th n8 tile of its warp.
template <int DIM>
__device__ __forceinline__ unsigned first_dim(int n) {
    return threadIdx.x / 32 * (DIM / 4) + n * 8 + threadIdx.x % 4 * 2;
}

// The stats and sums of one more chunk come to those of the chunks before.
template <int TILES, int COUNT>
__device__ __forceinline__ void merge(Merged (&merged)[2 * TILES], float (&sums)[TILES][COUNT][4],
                                      const Stats (&stats)[2 * TILES], const float (&chunk_sums)[TILES][COUNT][4]) {
#pragma unroll
    for (int row = 0; row < 2 * TILES; ++row) {
        merged[row].merge(stats[row]);
#pragma unroll
        for (int n = 0; n < 2 * COUNT; ++n) {
            float &sum = sums[row / 2][n / 2][row % 2 * 2 + n % 2];
            sum = merged[row].add(sum, chunk_sums[row / 2][n / 2][row % 2 * 2 + n % 2]);
        }
    }
}

// The queries' results.
template <int DIM, int TILES>
__device__ __forceinline__ void write(const Packing &packing, const Merged (&merged)[2 * TILES],
                                      const float (&sums)[TILES][DIM / 32][4], const Result &result) {
#pragma unroll
    for (int row = 0; row < 2 * TILES; ++row) {
        const unsigned index = row * 8 + threadIdx.x % 32 / 4;
        if (!packing.holds(index)) continue;
        unsigned *to = result.pairs(packing.row(index), packing.head(index));
#pragma unroll
        for (int n = 0; n < DIM / 32; ++n) {
            const unsigned dim = first_dim<DIM>(n);
            const float *pair = &sums[row / 2][n][row % 2 * 2];
            if (dim < result.head_dim) to[dim / 2] = merged[row].divide(pair[0], pair[1]);
        }
    }
}

}  // namespace attention
