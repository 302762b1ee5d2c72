// Attention of a prompt's queries on Hopper, by wgmma, with the bits of attention_chunk.cuh.
//
// Transposed: a page's keys, and then its values' dims, are the rows of products, and come from memory to the registers that they
// are multiplied from. Queries and weights are columns: rows of 128 bytes in shared memory, for 64 dims or keys each, in the
// order of inputs that attention_chunk.cuh says. A CTA is a warpgroup. For scores, of each four pages in a row a warp has one; for
// sums, of each 64 dims sixteen. The lanes of a quad have the same queries, 8j + 2q and the one after it for each j.
#pragma once

#include "attention_inputs.cuh"
#include "wgmma.cuh"

namespace attention {

// Of a CTA, as registers allow.
template <int DIM>
constexpr int WARPGROUP_QUERIES = DIM > 128 ? 32 : 64;

constexpr unsigned HALF_PAGES = CHUNK_PAGES / 2;  // of a chunk, which are scored at once

template <int DIM>
struct WarpgroupMeeting {
    static constexpr int QUERIES = WARPGROUP_QUERIES<DIM>;

    unsigned char queries[DIM / 64][QUERIES * 128];
    unsigned char weights[CHUNK / 64][QUERIES * 128];  // of two pages each; in the end results, of 64 dims each
    alignas(16) Span seen[QUERIES];                    // keys
    alignas(16) Span common;                           // keys that all queries see
    alignas(16) float maxima[WARPS][QUERIES];
    float totals[CHUNK_PAGES][QUERIES];
    alignas(16) Factors factors[QUERIES];
    float denominators[QUERIES];

    // The largest score of two neighbouring queries each; of those that see no key, see `weigh`.
    __device__ float2 maximum(int query) const {
        float2 largest = {-INFINITY, -INFINITY};
#pragma unroll
        for (int warp = 0; warp < WARPS; ++warp) {
            largest = {fmaxf(largest.x, maxima[warp][query]), fmaxf(largest.y, maxima[warp][query + 1])};
        }
        return {largest.x == -INFINITY ? 0 : largest.x, largest.y == -INFINITY ? 0 : largest.y};
    }
};

// The queries, zeros for those that the CTA lacks, and what each sees.
template <int DIM>
__device__ __forceinline__ void gather(const Inputs &inputs, const Packing &packing, Span common, WarpgroupMeeting<DIM> &meeting) {
    constexpr int QUERIES = WARPGROUP_QUERIES<DIM>;
    const unsigned lane = threadIdx.x % 32;
    for (unsigned n = threadIdx.x / 32; n < QUERIES / 8 * (DIM / 32); n += WARPS) {
        const unsigned block = n % (DIM / 32), index = n / (DIM / 32) * 8 + lane / 4;
        uint4 dims = {};
        if (packing.holds(index)) {
            const size_t query = static_cast<size_t>(packing.row(index)) * inputs.heads + packing.head(index);
            dims = inputs.queries[query * (DIM / 8) + block * 4 + lane % 4];
        }
        const unsigned pairs[4] = {dims.x, dims.y, dims.z, dims.w};
#pragma unroll
        for (int piece = 0; piece < 4; ++piece) {
            unsigned char *to = meeting.queries[block / 2] + place_in_stage(index, block % 2 * 4 + piece);
            store_operand(to + lane % 4 * 4, pairs[piece]);
        }
    }
    if (threadIdx.x < QUERIES) meeting.seen[threadIdx.x] = inputs.seen(packing.row(threadIdx.x), packing.holds(threadIdx.x));
    if (threadIdx.x == 0) meeting.common = common;
    fence_stores();
    __syncthreads();
}

// Rows g and g + 8 of products, thirty-two inputs a step, on their way to registers so many steps before they are multiplied.
template <int STEPS, int MOST_AHEAD, class Load, class Multiply>
__device__ __forceinline__ void multiply_rows(const Load &load, const Multiply &multiply) {
    constexpr int AHEAD = MOST_AHEAD < STEPS ? MOST_AHEAD : STEPS;
    uint4 rows[AHEAD][2];
#pragma unroll
    for (int step = 0; step < AHEAD; ++step) load(step, rows[step]);
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        const uint4 first = rows[step % AHEAD][0], second = rows[step % AHEAD][1];
        unsigned halves[2][4] = {{first.x, second.x, first.y, second.y}, {first.z, second.z, first.w, second.w}};
        move_operand(halves[0]);
        move_operand(halves[1]);
        if (step + AHEAD < STEPS) load(step + AHEAD, rows[step % AHEAD]);
        begin_products();
        multiply(step, 0, halves[0]);
        multiply(step, 1, halves[1]);
        commit_products();
        await_products<1>();
    }
    await_products<0>();
}

// scores[tile of sixteen keys][4j + …] of half a chunk from page `first` on; where nobody sees a page of it they stay.
template <int DIM, int SUMS>
__device__ __forceinline__ void score_half(const Cache<DIM> &cache, const WarpgroupMeeting<DIM> &meeting, unsigned first, Span pages,
                                           float (&scores)[2][SUMS]) {
    if (first >= pages.end || first + HALF_PAGES <= pages.first) return;
    const unsigned page = min(max(first + threadIdx.x / 32, pages.first), pages.end - 1);
    const uint4 *keys = cache.keys_of(page) + key_place();
    // A step is sixteen keys, by a block of 32 dims.
    multiply_rows<DIM / 16, DIM == 128 ? 4 : 8>(
        [&](int step, uint4(&rows)[2]) {
            const uint4 *from = keys + step / 2 * 128 + step % 2 * 2 * TILE_STEP;
            rows[0] = load_once_in_order(from);
            rows[1] = load_once_in_order(from + TILE_STEP);
        },
        [&](int step, int half, const unsigned(&rows)[4]) {
            const int block = step / 2;
            multiply_async(scores[step % 2], rows, describe_rows(meeting.queries[block / 2], block % 2 * 64 + half * 32));
        });
}

// sums[tile of 64 dims][4j + …] += Σ value · weight over the keys of half a chunk, page by page. Pages that nobody sees have
// weights of zero, and a neighbour stands in for them: which adds nothing, if its values are numbers.
template <int DIM, int SUMS>
__device__ __forceinline__ void add_half(const Cache<DIM> &cache, const WarpgroupMeeting<DIM> &meeting, unsigned first, Span pages,
                                         float (&sums)[DIM / 64][SUMS]) {
    if (first >= pages.end || first + HALF_PAGES <= pages.first) return;
    constexpr int TILES = DIM / 64;
    const auto *weights = meeting.weights + first % CHUNK_PAGES / 2;
    const unsigned own = threadIdx.x / 32 * 64 + threadIdx.x % 32;
    multiply_rows<static_cast<int>(HALF_PAGES) * TILES, 8>(
        [&](int step, uint4(&rows)[2]) {
            const unsigned page = min(max(first + step / TILES, pages.first), pages.end - 1);
            const uint4 *from = cache.values_of(page) + step % TILES * 256 + own;
            rows[0] = load_once_in_order(from);
            rows[1] = load_once_in_order(from + 32);
        },
        [&](int step, int half, const unsigned(&rows)[4]) {
            const int page = step / TILES;
            multiply_async(sums[step % TILES], rows, describe_rows(weights[page / 2], page % 2 * 64 + half * 32));
        });
}

// One step of the next: lanes so far apart share what they have, so that each keeps LEFT numbers.
template <int LEFT, int COUNT, class Fold>
__device__ __forceinline__ void fold_with(int distance, float (&numbers)[COUNT], const Fold &fold) {
    const bool upper = (threadIdx.x & distance) != 0;
#pragma unroll
    for (int n = 0; n < LEFT; ++n) {
        const float kept = upper ? numbers[n + LEFT] : numbers[n], given = upper ? numbers[n] : numbers[n + LEFT];
        numbers[n] = fold(kept, __shfl_xor_sync(0xFFFFFFFF, given, distance));
    }
}

// Folds what the lanes of equal q have for 2j + e, a query each, as a tree over g, neighbours first. What is left are the numbers
// of queries `first_of_folded` and, of COUNT 16, the next one.
template <int COUNT, class Fold>
__device__ __forceinline__ void fold_over_keys(float (&numbers)[COUNT], const Fold &fold) {
    fold_with<COUNT / 2>(4, numbers, fold);
    fold_with<COUNT / 4>(8, numbers, fold);
    fold_with<COUNT / 8>(16, numbers, fold);
}

template <int COUNT>
__device__ __forceinline__ unsigned first_of_folded() {
    const unsigned g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
    const unsigned first = ((g & 1) << 2 | (g & 2) | g >> 2) * (COUNT / 8);
    return first / 2 * 8 + 2 * q + first % 2;
}

template <int COUNT>
__device__ __forceinline__ void keep_folded(const float (&numbers)[COUNT], float *by_query) {
#pragma unroll
    for (int n = 0; n < COUNT / 8; ++n) by_query[first_of_folded<COUNT>() + n] = numbers[n];
}

// Scales the scores of query 8j + 2q of n = 2j, or of the one after it, makes those of keys that it does not see −∞, and says the
// largest. `first_key` is the thread's first.
template <bool ALL_SEEN, int SUMS>
__device__ __forceinline__ float mask_query(int n, Span seen, unsigned first_key, float scale, float (&scores)[2][2][SUMS]) {
    // Counted from the first key, so that keys compare as constants.
    const int first = static_cast<int>(seen.first - first_key), end = static_cast<int>(seen.end - first_key);
    float maximum = -INFINITY;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int tile = 0; tile < PAGE_TILES; ++tile) {
            const int key = half * static_cast<int>(HALF_PAGES * PAGE) + 2 * tile;
            float &score = scores[half][tile / 2][n / 2 * 4 + tile % 2 * 2 + n % 2];
            const float scaled = __fmul_rn(score, scale);
            score = ALL_SEEN || (key >= first && key < end) ? scaled : -INFINITY;
            maximum = fmaxf(maximum, score);
        }
    }
    return maximum;
}

// As `mask` of attention_chunk.cuh.
template <int DIM, int SUMS>
__device__ __forceinline__ void mask(unsigned chunk, float scale, float (&scores)[2][2][SUMS], WarpgroupMeeting<DIM> &meeting) {
    const unsigned warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
    const unsigned first_key = chunk * CHUNK + warp * PAGE + g / 2 * 8 + g % 2;
    float maxima[SUMS / 2];
    if (meeting.common.first <= chunk * CHUNK && (chunk + 1) * CHUNK <= meeting.common.end) {
#pragma unroll
        for (int n = 0; n < SUMS / 2; ++n) maxima[n] = mask_query<true>(n, {}, first_key, scale, scores);
    } else {
#pragma unroll
        for (int n = 0; n < SUMS / 2; ++n) {
            maxima[n] = mask_query<false>(n, meeting.seen[n / 2 * 8 + 2 * q + n % 2], first_key, scale, scores);
        }
    }
    fold_over_keys(maxima, [](float one, float other) { return fmaxf(one, other); });
    keep_folded(maxima, meeting.maxima[warp]);
}

// As `weigh` of attention_chunk.cuh.
template <int DIM, int SUMS>
__device__ __forceinline__ void weigh(const float (&scores)[2][2][SUMS], WarpgroupMeeting<DIM> &meeting) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float totals[2][SUMS / 2];
#pragma unroll
    for (int eight = 0; eight < SUMS / 4; ++eight) {
        const float2 maximum = meeting.maximum(eight * 8 + lane % 4 * 2);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            unsigned pairs[PAGE_TILES];
            float first = 0, second = 0;
#pragma unroll
            for (int tile = 0; tile < PAGE_TILES; ++tile) {
                const float *score = &scores[half][tile / 2][eight * 4 + tile % 2 * 2];
                const float one = exponential_below_one(__fsub_rn(score[0], maximum.x));
                const float other = exponential_below_one(__fsub_rn(score[1], maximum.y));
                first = tile == 0 ? one : __fadd_rn(first, one);
                second = tile == 0 ? other : __fadd_rn(second, other);
                pairs[tile] = pack_bf16(one, other);
            }
            totals[half][2 * eight] = first;
            totals[half][2 * eight + 1] = second;
            unsigned char *panel = meeting.weights[half * 2 + warp / 2];
            store_matrices_transposed(panel + place_in_stage(eight * 8 + lane % 8, warp % 2 * 4 + lane / 8), pairs);
        }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        fold_over_keys(totals[half], [](float one, float other) { return __fadd_rn(one, other); });
        keep_folded(totals[half], meeting.totals[half * HALF_PAGES + warp]);
    }
}

// The sums of one more chunk come to those before.
template <int DIM, int SUMS>
__device__ __forceinline__ void merge(const WarpgroupMeeting<DIM> &meeting, float (&sums)[DIM / 64][SUMS],
                                      const float (&chunk_sums)[DIM / 64][SUMS]) {
#pragma unroll
    for (int eight = 0; eight < SUMS / 4; ++eight) {
        const int query = eight * 8 + threadIdx.x % 4 * 2;
        const Factors factors[2] = {meeting.factors[query], meeting.factors[query + 1]};
#pragma unroll
        for (int n = 0; n < DIM / 64 * 4; ++n) {
            float &sum = sums[n / 4][eight * 4 + n % 4];
            sum = factors[n % 2].add(sum, chunk_sums[n / 4][eight * 4 + n % 4]);
        }
    }
}

// The queries' results, by rows of shared memory, where the weights were.
template <int DIM, int SUMS>
__device__ __forceinline__ void write(const Packing &packing, const float (&sums)[DIM / 64][SUMS], WarpgroupMeeting<DIM> &meeting,
                                      const Result &result) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int eight = 0; eight < SUMS / 4; eight += 2) {
#pragma unroll
        for (int tile = 0; tile < DIM / 64; ++tile) {
            unsigned matrices[4];
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                const float *pair = &sums[tile][(eight + n / 2) * 4 + n % 2 * 2];
                const float *totals = &meeting.denominators[(eight + n / 2) * 8 + lane % 4 * 2];
                matrices[n] = pack_bf16(quotient(pair[0], totals[0]), quotient(pair[1], totals[1]));
            }
            const int query = (eight + lane / 16) * 8 + lane % 8;
            store_matrices_transposed(meeting.weights[tile] + place_in_stage(query, warp * 2 + lane / 8 % 2), matrices);
        }
    }
    __syncthreads();
    for (unsigned index = warp; index < SUMS * 2; index += WARPS) {
        if (!packing.holds(index)) return;
        unsigned *to = result.pairs(packing.row(index), packing.head(index));
        for (unsigned dim = lane * 2; dim < result.head_dim; dim += 64) {
            const unsigned char *from = meeting.weights[dim / 64] + place_in_stage(index, dim % 64 / 8);
            to[dim / 2] = reinterpret_cast<const unsigned *>(from)[dim % 8 / 2];
        }
    }
}

template <int DIM>
__device__ __forceinline__ void attend_by_warpgroup([[maybe_unused]] const Inputs &inputs, [[maybe_unused]] const uint2 *blocks,
                                                    [[maybe_unused]] const Result &result) {
    if constexpr (HAS_WGMMA) {
        constexpr int QUERIES = WARPGROUP_QUERIES<DIM>, SUMS = QUERIES / 2;  // a thread's, of sixteen rows of products by queries
        using Meeting = WarpgroupMeeting<DIM>;
        static_assert(sizeof(Meeting) <= QUERIES * (2 * DIM + 600), "see crates/ops/src/cuda/kernels.rs");
        Meeting &meeting = *reinterpret_cast<Meeting *>(dynamic_shared());
        let_dependents_start();
        wait_for_inputs();
        const Packing packing = inputs.packing(blocks, QUERIES);
        if (!packing.holds(0)) return;
        const Views views(inputs, packing, QUERIES);
        gather(inputs, packing, views.common, meeting);

        const Cache<DIM> cache = inputs.cache<DIM>(packing.first_row, packing.kv_head);
        Merged merged;  // of the query that has the thread's number
        float sums[DIM / 64][SUMS] = {};
        for (unsigned chunk = views.any.first / CHUNK; chunk * CHUNK < views.any.end; ++chunk) {
            const Span pages = pages_seen(chunk, views.any);
            float scores[2][2][SUMS] = {}, chunk_sums[DIM / 64][SUMS] = {};
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                score_half(cache, meeting, chunk * CHUNK_PAGES + half * HALF_PAGES, pages, scores[half]);
            }
            mask(chunk, inputs.scale, scores, meeting);
            __syncthreads();
            weigh(scores, meeting);
            fence_stores();
            __syncthreads();
            if (threadIdx.x < QUERIES) {
                const int query = threadIdx.x;
                float maximum = -INFINITY;
                for (int warp = 0; warp < WARPS; ++warp) maximum = fmaxf(maximum, meeting.maxima[warp][query]);
                merged.merge({maximum == -INFINITY ? 0 : maximum, add_pages(meeting.totals, query)});
                meeting.factors[query] = merged.factors;
            }
            __syncwarp();
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                add_half(cache, meeting, chunk * CHUNK_PAGES + half * HALF_PAGES, pages, chunk_sums);
            }
            __syncthreads();
            merge(meeting, sums, chunk_sums);
        }
        if (threadIdx.x < QUERIES) meeting.denominators[threadIdx.x] = merged.stats.total;
        __syncthreads();
        write(packing, sums, meeting, result);
    }
}

}  // namespace attention
