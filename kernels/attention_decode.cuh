// Attention of one row over one chunk, as decode has it: bound by memory, so all it reads of a chunk is asked for at
// once. Keys are on their way before the queries are there, values before the scores are weights. The last CTA of a row's
// chunks merges them.
#pragma once

#include "attention_inputs.cuh"

namespace attention {

// With more rows than these, CTAs hide one another's waits, and what all of them asked for early would not fit a cache.
constexpr unsigned ROWS_TO_PREFETCH = 4;

// CTAs that share a multiprocessor, so that what is on its way has registers.
constexpr int chunk_ctas([[maybe_unused]] int dim) {
#ifdef FEWER_CTAS
    return 2;
#else
    return dim >= 256 ? 2 : 3;
#endif
}

// The ids of a chunk's pages; those of pages off the span that is seen are the nearest's in it.
struct PageIds {
    unsigned id = 0;  // the page that the lane's number says, of the eight

    // Before the wait: no kernel writes tables.
    __device__ __forceinline__ PageIds(const unsigned *table, unsigned chunk, Span pages) {
        if (pages.is_empty()) return;
        const unsigned page = chunk * CHUNK_PAGES + threadIdx.x % CHUNK_PAGES;
        id = load_past_l1(table + min(max(page, pages.first), pages.end - 1));
    }

    // All lanes of the warp must ask.
    __device__ __forceinline__ unsigned of(unsigned page) const {
        return __shfl_sync(0xFFFFFFFF, id, static_cast<int>(page));
    }
};

// Asks for keys and values, 128 bytes a request.
template <int DIM>
__device__ __forceinline__ void prefetch(const Cache<DIM> &cache, const PageIds &ids, Span pages) {
#pragma unroll 1
    for (unsigned page = pages.first; page < pages.end; ++page) {
        const size_t offset = cache.offset_of(ids.of(page % CHUNK_PAGES));
#pragma unroll
        for (unsigned first = 0; first < DIM; first += THREADS) {
            const unsigned line = first + threadIdx.x;
            const uint4 *from = line < DIM / 2 ? cache.keys : cache.values;
            if (line < DIM) prefetch_to_l2(from + offset + line % (DIM / 2) * 8);
        }
    }
}

// A warp's keys of a chunk, on their way to registers: so many blocks of 32 dims at once.
template <int DIM>
struct Keys {
    static constexpr int BLOCKS = DIM / 32, AHEAD = BLOCKS < 4 ? BLOCKS : 4;

    const uint4 *page[WARP_PAGES];
    uint4 blocks[AHEAD][KEY_TILES];

    __device__ __forceinline__ Keys(const Cache<DIM> &cache, const PageIds &ids) {
#pragma unroll
        for (unsigned n = 0; n < WARP_PAGES; ++n) {
            // A neighbour stands in for pages that are off: cheaper than branches around loads.
            page[n] = cache.keys + cache.offset_of(ids.of(threadIdx.x / 32 * WARP_PAGES + n)) + key_place();
        }
#pragma unroll
        for (int block = 0; block < AHEAD; ++block) load(block);
    }

    __device__ __forceinline__ void load(int block) {
#pragma unroll
        for (int n = 0; n < KEY_TILES; ++n) {
            blocks[block % AHEAD][n] = load_in_order(page[n / PAGE_TILES] + block * 128 + n % PAGE_TILES * TILE_STEP);
        }
    }

    // As `score`.
    __device__ __forceinline__ void score(const Meeting<DIM, 1> &meeting, float (&scores)[KEY_TILES][4]) {
        const int lane = threadIdx.x % 32;
#pragma unroll(BLOCKS > 8 ? AHEAD : BLOCKS)  // as registers allow
        for (int block = 0; block < BLOCKS; ++block) {
            const uint4(&queries)[2][32] = meeting.queries[block][0];
            multiply_block(scores, queries[0][lane], queries[1][lane], blocks[block % AHEAD]);
            if (block + AHEAD < BLOCKS) load(block + AHEAD);
        }
    }
};

// A warp's values of a chunk: its quarter of the dims, on their way so many pages at once.
template <int DIM>
struct Values {
    static constexpr int PAGES = CHUNK_PAGES, TILES = DIM / 32, AHEAD = DIM <= 64 ? PAGES : 512 / DIM;

    const uint4 *quarter;
    Span pages;
    unsigned first;  // page of the chunk
    const Cache<DIM> &cache;
    PageIds ids;
    uint4 tiles[AHEAD][TILES];

    __device__ __forceinline__ Values(const Cache<DIM> &cache, const PageIds &ids, unsigned chunk, Span pages)
        : quarter(cache.values + threadIdx.x / 32 * DIM + threadIdx.x % 32), pages(pages), first(chunk * CHUNK_PAGES),
          cache(cache), ids(ids) {
#pragma unroll
        for (int page = 0; page < AHEAD; ++page) load(page);
    }

    __device__ __forceinline__ void load(int page) {
        const uint4 *from = quarter + cache.offset_of(ids.of(page));
#pragma unroll
        for (int n = 0; n < TILES; ++n) tiles[page % AHEAD][n] = load_in_order(from + n * 32);
    }

    // As `add_values`.
    __device__ __forceinline__ void add(const Meeting<DIM, 1> &meeting, float (&sums)[TILES][4]) {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int page = 0; page < PAGES; ++page) {
            if (pages.holds(first + page)) {
                const uint4(&weights)[2][32] = meeting.weights[page][0];
                multiply_block(sums, weights[0][lane], weights[1][lane], tiles[page % AHEAD]);
            }
            if (page + AHEAD < PAGES) load(page + AHEAD);
        }
    }
};

// Where the chunks of a row meet, for each head.
struct Partials {
    int slots;          // chunks that there is room for
    float *sums;        // [rows][slots][heads][DIM]
    Stats *stats;       // [rows][slots][heads]
    unsigned *tickets;  // [rows][kv_heads], zero before and after

    __device__ size_t place(unsigned row, unsigned slot, int heads, unsigned head) const {
        return (static_cast<size_t>(row) * slots + slot) * heads + head;
    }
};

// Of a row's chunks the first `chunks` slots become its result, for a group's heads; a thread merges four dims.
template <int DIM>
__device__ __forceinline__ void merge_chunks(const Partials &partials, const Packing &packing, int heads,
                                             const Result &result, unsigned chunks) {
    for (unsigned column = threadIdx.x * 4; column < packing.group * DIM; column += THREADS * 4) {
        const unsigned row = packing.first_row, head = packing.head(column / DIM), dim = column % DIM;
        if (dim >= result.head_dim) continue;
        Merged merged;
        float4 sums = {0, 0, 0, 0};
#pragma unroll 4
        for (unsigned slot = 0; slot < chunks; ++slot) {
            const size_t place = partials.place(row, slot, heads, head);
            const float4 chunk_sums = *reinterpret_cast<const float4 *>(partials.sums + place * DIM + dim);
            merged.merge(partials.stats[place]);
            sums = {merged.add(sums.x, chunk_sums.x), merged.add(sums.y, chunk_sums.y),
                    merged.add(sums.z, chunk_sums.z), merged.add(sums.w, chunk_sums.w)};
        }
        unsigned *to = result.pairs(row, head) + dim / 2;
        to[0] = merged.divide(sums.x, sums.y);
        if (dim + 2 < result.head_dim) to[1] = merged.divide(sums.z, sums.w);
    }
}

// Slot z is the row's z-th chunk, from the one that holds the first key it sees.
template <int DIM>
__device__ __forceinline__ void attend_chunk(const Inputs &inputs, const Partials &partials, const Result &result) {
    __shared__ Meeting<DIM, 1> meeting;
    let_dependents_start();
    const unsigned row = blockIdx.x, slot = blockIdx.z;
    const Packing packing = {row, 1, static_cast<unsigned>(inputs.heads / inputs.kv_heads), blockIdx.y};
    const Cache<DIM> cache = inputs.cache<DIM>(row, blockIdx.y);
    const unsigned position = load_past_l1(inputs.positions + row);
    const Span seen = keys_seen(position, inputs.window);
    const unsigned chunk = seen.first / CHUNK + slot;
    const Span pages = pages_seen(chunk, seen);
    const PageIds ids(cache.table, chunk, pages);
    if (gridDim.x <= ROWS_TO_PREFETCH) prefetch<DIM>(cache, ids, pages);
    wait_for_inputs();
    const unsigned chunks = (seen.end + CHUNK - 1) / CHUNK - seen.first / CHUNK;
    if (pages.is_empty()) {
        // A row that only fills its bucket has zeros.
        if (chunks == 0 && slot == 0) merge_chunks<DIM>(partials, packing, inputs.heads, result, 0);
        return;
    }

    Keys<DIM> keys(cache, ids);
    gather_queries(inputs, packing, meeting);
    if (threadIdx.x < 16) meeting.seen[threadIdx.x] = packing.holds(threadIdx.x) ? seen : Span{0, 0};
    __syncthreads();
    float scores[1][KEY_TILES][4] = {}, maxima[2];
    keys.score(meeting, scores[0]);
    Values<DIM> values(cache, ids, chunk, pages);
    weigh_scores(chunk, inputs.scale, scores, meeting, maxima);
    float sums[1][DIM / 32][4] = {};
    values.add(meeting, sums[0]);
    Stats stats[2];
    read_stats(meeting, maxima, stats);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const unsigned index = half * 8 + threadIdx.x % 32 / 4, head = packing.head(index);
        if (!packing.holds(index)) continue;
        Merged alone;
        alone.merge(stats[half]);
        unsigned *to = result.pairs(row, head);
        const size_t place = partials.place(row, slot, inputs.heads, head);
        if (chunks > 1 && first_dim<DIM>(0) == 0) partials.stats[place] = stats[half];
#pragma unroll
        for (int n = 0; n < DIM / 32; ++n) {
            const unsigned dim = first_dim<DIM>(n);
            const float *pair = &sums[0][n][2 * half];
            if (chunks > 1) {
                *reinterpret_cast<float2 *>(partials.sums + place * DIM + dim) = {pair[0], pair[1]};
            } else if (dim < result.head_dim) {
                to[dim / 2] = alone.divide(alone.add(0, pair[0]), alone.add(0, pair[1]));
            }
        }
    }
    if (chunks > 1 && comes_last(partials.tickets + row * inputs.kv_heads + blockIdx.y, chunks)) {
        merge_chunks<DIM>(partials, packing, inputs.heads, result, chunks);
    }
}

}  // namespace attention
