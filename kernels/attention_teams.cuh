// Attention of a prompt's rows on Hopper: three teams of four warps to a CTA, with 32 queries each, that read keys and
// values once from one ring in shared memory. What a team does, and in what order, is what a CTA of one team does.
#pragma once

#include "attention_inputs.cuh"

#if defined(WARDROUND_EMULATED) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900)
constexpr bool HAS_ROOM_FOR_TEAMS = true;
#else
constexpr bool HAS_ROOM_FOR_TEAMS = false;
#endif

namespace attention {

constexpr int TEAMS = 3;
constexpr int TEAM_TILES = 2;

// In dynamic shared memory: a chunk's pages as they lie in the cache, and where each team meets.
template <int DIM>
struct Shared {
    uint4 keys[CHUNK_PAGES][DIM * 4];
    uint4 values[CHUNK_PAGES][DIM * 4];
    Meeting<DIM, TEAM_TILES, TEAMS> meetings[TEAMS];
    Span seen[TEAMS], all;  // here, for registers are scarce

    __device__ const uint4 *keys_of(unsigned page) const { return keys[page % CHUNK_PAGES]; }
    __device__ const uint4 *values_of(unsigned page) const { return values[page % CHUNK_PAGES]; }
};

static_assert(sizeof(Shared<128>) == 2 * 512 * 128 + 3 * (64 * 128 + 17680) + 32);  // as src/ops/cuda/kernels.rs says

// All threads start copying the pages, of keys or values: a team every third.
template <int DIM>
__device__ __forceinline__ void copy_pages(uint4 (&to)[CHUNK_PAGES][DIM * 4], const uint4 *from, const Cache<DIM> &cache,
                                           Span pages) {
    const unsigned number = thread_anew(), thread = number % THREADS;
#pragma unroll 1
    for (unsigned page = pages.first + number / THREADS; page < pages.end; page += TEAMS) {
        const uint4 *pieces = from + cache.offset(page) + thread;
#pragma unroll
        for (unsigned n = 0; n < DIM * 4 / THREADS; ++n) {
            copy_async_16(&to[page % CHUNK_PAGES][thread + n * THREADS], pieces + n * THREADS);
        }
    }
    commit_copies();
}

// The team's queries of the CTA's: so many of its rows as fill the tiles.
__device__ __forceinline__ Packing packing_of_team(const Inputs &inputs, const uint2 *blocks, unsigned team) {
    const uint2 block = blocks[blockIdx.x];
    const unsigned group = inputs.heads / inputs.kv_heads, each = 16 * TEAM_TILES / group;
    const unsigned first = min(team * each, block.y);
    return {block.x + first, min(each, block.y - first), group};
}

template <int DIM>
__device__ __forceinline__ void attend_by_teams(const Inputs &inputs, const uint2 *blocks, const Result &result) {
    Shared<DIM> &shared = *reinterpret_cast<Shared<DIM> *>(dynamic_shared());
    const unsigned team = threadIdx.x / THREADS;
    auto &meeting = shared.meetings[team];
    let_dependents_start();
    wait_for_inputs();
    {
        const Packing packing = packing_of_team(inputs, blocks, team);
        const Span seen = seen_by_any(inputs, packing);
        if (threadIdx.x % THREADS == 0) shared.seen[team] = seen;
        gather(inputs, packing, meeting);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        Span all = {NOTHING, 0};
        for (const Span &seen : shared.seen) {
            if (!seen.is_empty()) all = {min(all.first, seen.first), max(all.end, seen.end)};
        }
        shared.all = all;
    }
    __syncthreads();

    const Cache<DIM> cache = inputs.cache<DIM>(blocks[blockIdx.x].x, blockIdx.y);
    Merged merged[2 * TEAM_TILES];
    float sums[TEAM_TILES][DIM / 32][4] = {};
    unsigned chunk = shared.all.first / CHUNK;
    if (!shared.all.is_empty()) copy_pages(shared.keys, cache.keys, cache, pages_seen(chunk, shared.all));
#pragma unroll 1
    for (; chunk * CHUNK < shared.all.end; ++chunk) {
        const Span pages = pages_seen(chunk, shared.seen[team]);
        float scores[TEAM_TILES][KEY_TILES][4] = {}, maxima[2 * TEAM_TILES];
        await_copies<0>();
        __syncthreads();  // all keys are there, and every team has done with the values before
        copy_pages(shared.values, cache.values, cache, pages_seen(chunk, shared.all));
        // A team that sees nothing here waits with the others.
        if (!pages.is_empty()) {
            score(shared, meeting, chunk, pages, scores);
            weigh_scores(chunk, inputs.scale, scores, meeting, maxima);
        }
        await_copies<0>();
        __syncthreads();  // all values are there, and every team has done with the keys
        copy_pages(shared.keys, cache.keys, cache, pages_seen(chunk + 1, shared.all));
        if (!pages.is_empty()) {
            float chunk_sums[TEAM_TILES][DIM / 32][4] = {};
            Stats stats[2 * TEAM_TILES];
            add_values(shared, pages, meeting, chunk_sums);
            read_stats(meeting, maxima, stats);
            merge(merged, sums, stats, chunk_sums);
        }
    }
    write<DIM, TEAMS>(packing_of_team(inputs, blocks, team), merged, sums, result);
}

}  // namespace attention
