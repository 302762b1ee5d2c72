// Attention of packed queries over one chunk of keys: what decode and prefill share, so that their bits agree.
//
// A query is a (row, head) pair; up to 16 · TILES of them that share a head of keys and values are the rows of TILES
// m16 tiles. Four warps work together: for the scores each takes a quarter of the chunk's keys, for the weighted sums
// a quarter of the dims over all keys in order. In between they meet in shared memory.
//
// Keys and values come 16 bytes a lane: lane 4g + q holds inputs 8q … 8q+7 of a block of 32, of key or dim g of a
// tile. One m16n8k16 product takes half of them. The order of its inputs is no matter as long as both operands share
// it, and queries and weights follow. Key g of a page's tile c is key 8·⌊g/2⌋ + 2c + g mod 2 of the page: so the scores of
// keys 8q … 8q+7 come to lane 4g + q, whose inputs their weights are.
//
// A page's total of weights: of each of its eights the even keys one by one, and the odd ones; then neighbours' sums two and
// two. Pages are added in order. Products that have keys as rows (attention_warpgroup.cuh) find the same order for nothing.
#pragma once

#include "common.cuh"

namespace attention {

constexpr int WARPS = 4;
constexpr int THREADS = 32 * WARPS;
constexpr unsigned PAGE = 32;    // keys
constexpr unsigned CHUNK = 256;  // keys, from a multiple of 256 on
constexpr unsigned CHUNK_PAGES = CHUNK / PAGE;
constexpr unsigned WARP_PAGES = CHUNK_PAGES / WARPS;
constexpr int PAGE_TILES = PAGE / 8;                // n8 tiles of keys
constexpr int KEY_TILES = WARP_PAGES * PAGE_TILES;  // that a warp scores

// Where lane 4g + q finds its part of key g of a page's first tile, in a block of 32 dims; that of the next tile lies TILE_STEP on.
constexpr int TILE_STEP = 8;
__device__ __forceinline__ unsigned key_place() {
    const unsigned g = threadIdx.x % 32 / 4;
    return (g / 2 * 8 + g % 2) * 4 + threadIdx.x % 4;
}

// From `first` up to, not including, `end`.
struct Span {
    unsigned first, end;

    __device__ bool is_empty() const { return first >= end; }
    __device__ bool holds(unsigned index) const { return index >= first && index < end; }
};

// The keys that a row at `position` sees; `window` is how many, itself included, and 0 is no limit.
__device__ __forceinline__ Span keys_seen(unsigned position, unsigned window) {
    if (position == NOTHING) return {0, 0};
    const unsigned end = position + 1;
    return {window != 0 && end > window ? end - window : 0, end};
}

// The same of a row that sees as far ahead in a text of `length` keys; where that is 0 it sees nothing ahead.
__device__ __forceinline__ Span keys_seen(unsigned position, unsigned window, unsigned length) {
    const Span seen = keys_seen(position, window);
    if (seen.is_empty() || length == 0) return seen;
    return {seen.first, window == 0 ? length : min(length, position + window)};
}

// The pages of `chunk` on which some key of `seen` lies.
__device__ __forceinline__ Span pages_seen(unsigned chunk, Span seen) {
    const unsigned first = max(seen.first, chunk * CHUNK), end = min(seen.end, (chunk + 1) * CHUNK);
    return {first / PAGE, (end + PAGE - 1) / PAGE};
}

// One head of a sequence's keys and values, 8 numbers to a uint4.
template <int DIM>
struct Cache {
    const uint4 *keys;    // [page][kv_heads][DIM/32][32 positions][4]
    const uint4 *values;  // [page][kv_heads][DIM][4]
    unsigned kv_heads, kv_head;
    const unsigned *table;  // page ids; none beyond the sequence's last position

    __device__ size_t offset(unsigned page) const { return offset_of(table[page]); }
    __device__ const uint4 *keys_of(unsigned page) const { return keys + offset(page); }
    __device__ const uint4 *values_of(unsigned page) const { return values + offset(page); }
    __device__ size_t offset_of(unsigned id) const {
        return (static_cast<size_t>(id) * kv_heads + kv_head) * (DIM * 4);
    }
};

// The sum of a query's totals over a chunk's pages.
template <int QUERIES>
__device__ __forceinline__ float add_pages(const float (&totals)[CHUNK_PAGES][QUERIES], int query) {
    float total = totals[0][query];
#pragma unroll
    for (int page = 1; page < static_cast<int>(CHUNK_PAGES); ++page) total = __fadd_rn(total, totals[page][query]);
    return total;
}

// What the four warps of a CTA share.
template <int DIM, int TILES>
struct Meeting {
    uint4 queries[DIM / 32][TILES][2][32];     // a fragments of a block's halves, by lane
    uint4 weights[CHUNK_PAGES][TILES][2][32];  // a fragments of a page's halves, by lane
    Span seen[16 * TILES];                     // keys, by query
    alignas(16) Span common;                   // keys that all queries see: those need no comparisons
    float maxima[WARPS][16 * TILES];
    float totals[CHUNK_PAGES][16 * TILES];

    __device__ float maximum(int query) const {
        return fmaxf(fmaxf(maxima[0][query], maxima[1][query]), fmaxf(maxima[2][query], maxima[3][query]));
    }
    __device__ float total(int query) const { return add_pages(totals, query); }
};

// sums[n] += a · b[n] over a block of 32 inputs, whose halves' fragments of a are `first` and `second`.
template <int COUNT>
__device__ __forceinline__ void multiply_block(float (&sums)[COUNT][4], uint4 first, uint4 second,
                                               const uint4 (&b)[COUNT]) {
#pragma unroll
    for (int n = 0; n < COUNT; ++n) multiply_add(sums[n], {first.x, first.y, first.z, first.w}, b[n].x, b[n].y);
#pragma unroll
    for (int n = 0; n < COUNT; ++n) multiply_add(sums[n], {second.x, second.y, second.z, second.w}, b[n].z, b[n].w);
}

// scores[tile][n8 tile of the warp's keys] = query · key, which come from where `source` has pages. What keys off `pages` get means nothing: nobody sees them.
template <class Source, int DIM, int TILES>
__device__ __forceinline__ void score(const Source &source, const Meeting<DIM, TILES> &meeting, unsigned chunk,
                                      Span pages, float (&scores)[TILES][KEY_TILES][4]) {
    const int lane = threadIdx.x % 32;
    const unsigned first = chunk * CHUNK_PAGES + threadIdx.x / 32 * WARP_PAGES;
    if (first >= pages.end || first + WARP_PAGES <= pages.first) return;
    const uint4 *page[WARP_PAGES];
#pragma unroll
    for (unsigned n = 0; n < WARP_PAGES; ++n) {
        // A neighbour stands in for a page that is off: cheaper than branches between loads.
        page[n] = source.keys_of(min(max(first + n, pages.first), pages.end - 1)) + key_place();
    }
#pragma unroll 1
    for (int block = 0; block < DIM / 32; ++block) {
        uint4 keys[KEY_TILES];
#pragma unroll
        for (int n = 0; n < KEY_TILES; ++n) keys[n] = page[n / PAGE_TILES][block * 128 + n % PAGE_TILES * TILE_STEP];
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) {
            const uint4(&queries)[2][32] = meeting.queries[block][tile];
            multiply_block(scores[tile], queries[0][lane], queries[1][lane], keys);
        }
    }
}

// Scales the scores, makes those of keys that a query does not see −∞, and leaves the warp's maxima in `meeting`.
template <int DIM, int TILES>
__device__ __forceinline__ void mask(unsigned chunk, float scale, float (&scores)[TILES][KEY_TILES][4],
                                     Meeting<DIM, TILES> &meeting) {
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
    const unsigned warps_first = chunk * CHUNK + warp * (CHUNK / WARPS), lanes_first = warps_first + 8 * q;
    // Of one tile memory binds, and there the test would cost registers.
    const bool all_seen = TILES > 1 && meeting.common.first <= warps_first &&
                          warps_first + CHUNK / WARPS <= meeting.common.end;
#pragma unroll
    for (int row = 0; row < 2 * TILES; ++row) {
        float maximum = -INFINITY;
        if (all_seen) {
#pragma unroll
            for (int n = 0; n < 2 * KEY_TILES; ++n) {
                float &score = scores[row / 2][n / 2][row % 2 * 2 + n % 2];
                score = __fmul_rn(score, scale);
                maximum = fmaxf(maximum, score);
            }
        } else {
            // Counted from the lane's first key, so that its keys compare as constants.
            const int first = static_cast<int>(meeting.seen[row * 8 + g].first - lanes_first);
            const int end = static_cast<int>(meeting.seen[row * 8 + g].end - lanes_first);
#pragma unroll
            for (int n = 0; n < 2 * KEY_TILES; ++n) {
                float &score = scores[row / 2][n / 2][row % 2 * 2 + n % 2];
                const int key = n / 8 * PAGE + n % 8;
                score = key >= first && key < end ? __fmul_rn(score, scale) : -INFINITY;
                maximum = fmaxf(maximum, score);
            }
        }
        maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFF, maximum, 1));
        maximum = fmaxf(maximum, __shfl_xor_sync(0xFFFFFFFF, maximum, 2));
        if (q == 0) meeting.maxima[warp][row * 8 + g] = maximum;
    }
}

// Leaves the weights of the warp's keys and their totals in `meeting`; `maxima` become the chunk's, of the lane's
// queries g, g + 8, …: 0 for one that sees no key, so that its weights are e^−∞ where −∞ − −∞ would be no number.
template <int DIM, int TILES>
__device__ __forceinline__ void weigh(const float (&scores)[TILES][KEY_TILES][4], Meeting<DIM, TILES> &meeting,
                                      float (&maxima)[2 * TILES]) {
    const int lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
#pragma unroll
    for (int row = 0; row < 2 * TILES; ++row) {
        const float maximum = meeting.maximum(row * 8 + g);
        maxima[row] = maximum == -INFINITY ? 0 : maximum;
    }
#pragma unroll
    for (int n = 0; n < TILES * static_cast<int>(WARP_PAGES); ++n) {
        const int tile = n / WARP_PAGES, first_tile = n % WARP_PAGES * PAGE_TILES;
        const int page = threadIdx.x / 32 * WARP_PAGES + n % WARP_PAGES;
        unsigned pairs[2][PAGE_TILES];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = 2 * tile + half;
            float evens = 0, odds = 0;
#pragma unroll
            for (int pair = 0; pair < PAGE_TILES; ++pair) {
                const float *score = &scores[tile][first_tile + pair][2 * half];
                const float even = exponential_below_one(__fsub_rn(score[0], maxima[row]));
                const float odd = exponential_below_one(__fsub_rn(score[1], maxima[row]));
                evens = __fadd_rn(evens, even);
                odds = __fadd_rn(odds, odd);
                pairs[half][pair] = pack_bf16(even, odd);
            }
            float total = __fadd_rn(evens, odds);
            total = __fadd_rn(total, __shfl_xor_sync(0xFFFFFFFF, total, 1));
            total = __fadd_rn(total, __shfl_xor_sync(0xFFFFFFFF, total, 2));
            if (q == 0) meeting.totals[page][row * 8 + g] = total;
        }
        uint4 *weights = &meeting.weights[page][tile][0][lane];
        weights[0] = {pairs[0][0], pairs[1][0], pairs[0][1], pairs[1][1]};
        weights[32] = {pairs[0][2], pairs[1][2], pairs[0][3], pairs[1][3]};
    }
}

// sums[tile][n8 tile of the warp's dims] += Σ weight · value over the keys of `pages`, in order.
template <class Source, int DIM, int TILES>
__device__ __forceinline__ void add_values(const Source &source, Span pages, const Meeting<DIM, TILES> &meeting,
                                           float (&sums)[TILES][DIM / 32][4]) {
    const int lane = threadIdx.x % 32;
    const unsigned quarter = threadIdx.x / 32 * DIM + lane;
    [[maybe_unused]] constexpr int PAGES_AHEAD = DIM * TILES <= 128 ? 4 : 512 / (DIM * TILES);  // as registers allow
#pragma unroll PAGES_AHEAD
    for (unsigned page = pages.first; page < pages.end; ++page) {
        const uint4 *from = source.values_of(page) + quarter;
        uint4 values[DIM / 32];
#pragma unroll
        for (int n = 0; n < DIM / 32; ++n) values[n] = from[n * 32];
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) {
            const uint4(&weights)[2][32] = meeting.weights[page % CHUNK_PAGES][tile];
            multiply_block(sums[tile], weights[0][lane], weights[1][lane], values);
        }
    }
}

// A query's largest score of some keys, and the sum of their weights e^(score − maximum) before they are rounded.
struct alignas(8) Stats {
    float maximum, total;
};

// From scores to weights in `meeting`; `maxima` as of `weigh`. All threads of the CTA.
template <int DIM, int TILES>
__device__ __forceinline__ void weigh_scores(unsigned chunk, float scale, float (&scores)[TILES][KEY_TILES][4],
                                             Meeting<DIM, TILES> &meeting, float (&maxima)[2 * TILES]) {
    mask(chunk, scale, scores, meeting);
    __syncthreads();
    weigh(scores, meeting, maxima);
    __syncthreads();
}

// The stats of queries g, g + 8, ….
template <int DIM, int TILES>
__device__ __forceinline__ void read_stats(const Meeting<DIM, TILES> &meeting, const float (&maxima)[2 * TILES],
                                           Stats (&stats)[2 * TILES]) {
#pragma unroll
    for (int row = 0; row < 2 * TILES; ++row) {
        stats[row] = {maxima[row], meeting.total(row * 8 + threadIdx.x % 32 / 4)};
    }
}

// The weighted sums of a chunk, c fragments of the warp's quarter of the dims, and the stats of queries g, g + 8, ….
template <int DIM, int TILES>
__device__ __forceinline__ void attend(const Cache<DIM> &cache, unsigned chunk, Span pages, float scale,
                                       Meeting<DIM, TILES> &meeting, float (&sums)[TILES][DIM / 32][4],
                                       Stats (&stats)[2 * TILES]) {
    float scores[TILES][KEY_TILES][4] = {}, maxima[2 * TILES];
    score(cache, meeting, chunk, pages, scores);
    weigh_scores(chunk, scale, scores, meeting, maxima);
#pragma unroll
    for (int n = 0; n < TILES * DIM / 8; ++n) sums[n / (DIM / 8)][n / 4 % (DIM / 32)][n % 4] = 0;
    add_values(cache, pages, meeting, sums);
    read_stats(meeting, maxima, stats);
}

// A dim of the result; zero where no key was seen.
__device__ __forceinline__ float quotient(float sum, float total) { return total == 0 ? 0 : __fdiv_rn(sum, total); }

// What the sums so far and a chunk's are multiplied by to be one.
struct alignas(8) Factors {
    float before, chunk;

    __device__ float add(float sum, float chunk_sum) const {
        return __fadd_rn(__fmul_rn(sum, before), __fmul_rn(chunk_sum, chunk));
    }
};

// A query's stats over the chunks merged so far, and the factors of the last one.
struct Merged {
    Stats stats = {-INFINITY, 0};
    Factors factors;

    // A chunk of which the query sees nothing changes no bit: sum · 1 + 0 · −0 is the sum, even where that is −0.
    __device__ void merge(Stats chunk) {
        const bool seen = chunk.total != 0;
        const float maximum = seen ? fmaxf(stats.maximum, chunk.maximum) : stats.maximum;
        factors.before = seen ? exponential_below_one(__fsub_rn(stats.maximum, maximum)) : 1.0f;
        factors.chunk = seen ? exponential_below_one(__fsub_rn(chunk.maximum, maximum)) : -0.0f;
        stats = {maximum, factors.add(stats.total, chunk.total)};
    }

    __device__ float add(float sum, float chunk_sum) const { return factors.add(sum, chunk_sum); }

    // Two neighbouring dims of the result in bf16.
    __device__ unsigned divide(float first, float second) const {
        return pack_bf16(quotient(first, stats.total), quotient(second, stats.total));
    }
};

}  // namespace attention
