// What a model says of a token: the parts of its log-probability, its rank, and the likeliest tokens beside it, with the
// result of `logprobs` in crates/ops/src/shared/sampling.rs: all sums are of integers.
//
// A cluster a row, as for draws, with the same result whatever its size. The row is read twice: for its largest logit, then
// for the masses below it and for the rank. The likeliest tokens lie at or before the worst of as many groups' best ones,
// which the first pass knows; the second puts what lies there aside.
#include "sampler_row.cuh"

// A token under a row of logits, 16 bytes.
struct Wanted {
    unsigned row;    // of the logits
    unsigned token;
    unsigned count;  // of the likeliest tokens
    unsigned place;  // of the first of them
};

// What was found, 24 bytes.
struct Found {
    unsigned long long total;  // of the masses
    float maximum, own;        // the row's largest logit, and the token's
    unsigned rank, padding;    // 1: the likeliest
};

namespace scores {

using namespace sampler;

// Lanes that count as one where the likeliest are bounded: many groups bound them closely.
constexpr int GROUP = 8;

constexpr int SHARED_BYTES = 18432;  // of a CTA

// A CTA's; dynamic, for the others of its cluster read it.
struct Shared {
    Key few[FEW];
    Key groups[MOST_THREADS / GROUP];
    // Of the warps; then of the CTA.
    Mass totals[MOST_THREADS / 32];
    Key best[MOST_THREADS / 32];
    unsigned ranks[MOST_THREADS / 32], maxima[MOST_THREADS / 32];
    Mass total;
    Key bound, best_of_all;
    unsigned rank, maximum;
    int few_count;
};

// The sum over a warp's lanes, in all of them.
__device__ __forceinline__ Mass sum_of_lanes(Mass sum) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
    return sum;
}

// Calls `visit` with the key and the logit of each token of the thread's share, eight of which are asked for at once; with
// `EVERY_KEY` and −∞ beyond the last: under a condition the compiler would ask for one after another.
template <typename Visit>
__device__ __forceinline__ void for_each_key(const Row &row, Visit visit) {
    constexpr int TOGETHER = 8;
    const int step = static_cast<int>(row.ctas * blockDim.x), last = row.vocabulary - 1;
    for (int first = static_cast<int>(row.cta * blockDim.x + threadIdx.x); first <= last; first += TOGETHER * step) {
        float values[TOGETHER];
        unsigned words[TOGETHER];
#pragma unroll
        for (int each = 0; each < TOGETHER; ++each) {
            const int id = min(first + each * step, last);
            values[each] = row.logits[id];
            words[each] = row.allowed[id / 32];
        }
#pragma unroll
        for (int each = 0; each < TOGETHER; ++each) {
            const int id = first + each * step;
            const bool is_there = id <= last;
            const float logit = is_there && (words[each] >> id % 32 & 1) != 0 ? values[each] : -INFINITY;
            visit(is_there ? rank_of(id, logit) : EVERY_KEY, logit);
        }
    }
}

// The first pass over the row: its largest logit; and a bound that at least `count` keys are not above.
__device__ __forceinline__ void bound_keys(Row &row, Shared &shared, unsigned count) {
    const unsigned warp = threadIdx.x / 32, warps = blockDim.x / 32;
    float maximum = -INFINITY;
    Key best = EVERY_KEY;
    for_each_key(row, [&](Key key, float logit) {
        maximum = fmaxf(maximum, logit);  // of what is a number
        best = min(best, key);
    });
#pragma unroll
    for (int distance = GROUP / 2; distance > 0; distance /= 2) {
        best = min(best, __shfl_xor_sync(0xFFFFFFFFu, best, distance));
    }
    if (threadIdx.x % GROUP == 0) shared.groups[threadIdx.x / GROUP] = best;
    const unsigned largest = __reduce_max_sync(0xFFFFFFFFu, ordered(maximum));
    if (threadIdx.x % 32 == 0) shared.maxima[warp] = largest;
    if (threadIdx.x == 0) {
        shared.bound = count != 0 ? EVERY_KEY - 1 : 0;
        shared.few_count = 0;
    }
    __syncthreads();
    if (warp == 0) {
        const unsigned of_warp = threadIdx.x < warps ? shared.maxima[threadIdx.x] : 0;
        const unsigned of_all = __reduce_max_sync(0xFFFFFFFFu, of_warp);
        if (threadIdx.x == 0) shared.maximum = of_all;
    }
    const unsigned groups = blockDim.x / GROUP;
    if (count != 0 && threadIdx.x < groups) {
        const Key own = shared.groups[threadIdx.x];
        unsigned before = 0;
#pragma unroll 4
        for (unsigned group = 0; group < groups; ++group) before += shared.groups[group] < own ? 1 : 0;
        // Keys are different, but for those of groups that have no token.
        if (own != EVERY_KEY && before == count - 1) shared.bound = own;
    }
    cluster_barrier();
    // A CTA a lane, so that all are asked at once.
    const Shared &theirs = *of_cta(&shared, threadIdx.x % row.ctas);
    const unsigned their_maximum = theirs.maximum;
    row.bound = best_of_lanes(theirs.bound);
    row.maximum = from_ordered(__reduce_max_sync(0xFFFFFFFFu, their_maximum));
}

// The second: the CTA's masses and what it has of the tokens before `own`, added up for the cluster to read; and its keys up
// to the bound.
__device__ __forceinline__ void add_masses(const Row &row, Shared &shared, Key own) {
    const unsigned warp = threadIdx.x / 32, warps = blockDim.x / 32;
    Mass total = 0;
    unsigned before = 0;
    for_each_key(row, [&](Key key, float logit) {
        const float below = __fsub_rn(row.maximum, logit);
        if (below < 28.0f) total += whole_mass(exponential(-below));  // 2⁻⁴⁰ is e⁻²⁷·⁷
        before += key < own ? 1 : 0;
        if (key <= row.bound) {
            const int place = atomicAdd(&shared.few_count, 1);
            if (place < FEW) shared.few[place] = key;
        }
    });
    total = sum_of_lanes(total);
    before = __reduce_add_sync(0xFFFFFFFFu, before);
    if (threadIdx.x % 32 == 0) {
        shared.totals[warp] = total;
        shared.ranks[warp] = before;
    }
    __syncthreads();
    if (warp == 0) {
        total = sum_of_lanes(threadIdx.x < warps ? shared.totals[threadIdx.x] : 0);
        before = __reduce_add_sync(0xFFFFFFFFu, threadIdx.x < warps ? shared.ranks[threadIdx.x] : 0);
        if (threadIdx.x == 0) {
            shared.total = total;
            shared.rank = before;
        }
    }
    cluster_barrier();
}

// The keys that the CTA put aside, each to its place among those of all: a warp a key, and in it each CTA is some lanes'.
__device__ __forceinline__ void place_few(const Row &row, const Shared &shared, unsigned count, Key *likeliest) {
    const int lane = static_cast<int>(threadIdx.x % 32), ctas = static_cast<int>(row.ctas);
    const Shared &theirs = *of_cta(&shared, static_cast<unsigned>(lane % ctas));
    constexpr int TOGETHER = 4;
    const int few = theirs.few_count, own_few = shared.few_count, step = 32 / ctas;
    for (int index = static_cast<int>(threadIdx.x / 32); index < own_few; index += static_cast<int>(blockDim.x / 32)) {
        const Key key = shared.few[index];
        unsigned place = 0;
#pragma unroll 1
        for (int first = lane / ctas; first < few; first += TOGETHER * step) {
            Key others[TOGETHER];
#pragma unroll
            for (int each = 0; each < TOGETHER; ++each) others[each] = theirs.few[min(first + each * step, few - 1)];
#pragma unroll
            for (int each = 0; each < TOGETHER; ++each) {
                place += first + each * step < few && others[each] < key ? 1 : 0;
            }
        }
        place = __reduce_add_sync(0xFFFFFFFFu, place);
        if (lane == 0 && place < count) likeliest[place] = key;
    }
}

// The same by a pass over the row for each, where more lie at or before the bound than a CTA has room for: the likeliest
// ones lie close together in the row, or there are hardly more groups than tokens are wanted.
__device__ __forceinline__ void find_one_by_one(const Row &row, Shared &shared, unsigned count, Key *likeliest) {
    Key last = 0;
    for (unsigned place = 0; place < count; ++place) {
        Key best = EVERY_KEY;
        for_each_key(row, [&](Key key, float) {
            if (place == 0 || key > last) best = min(best, key);
        });
        leave_best(shared, best);
        cluster_barrier();
        last = best_of_lanes(of_cta(&shared, threadIdx.x % row.ctas)->best_of_all);
        if (last == EVERY_KEY) return;
        if (threadIdx.x == 0 && row.cta == 0) likeliest[place] = last;
        cluster_barrier();  // before what was read is written again
    }
}

}  // namespace scores

// found[i] = what logits [rows][vocabulary] say of wanted[i], a cluster each; its likeliest tokens, as keys, likeliest first,
// from likeliest[place] on, as many as there are. Ids that have no bit in `present`, [ceil(vocabulary / 32)], are as good as not there.
// Dynamic shared memory: `Shared`.
extern "C" __global__ void __launch_bounds__(sampler::MOST_THREADS)
    score(const float *logits, int vocabulary, const unsigned *present, const Wanted *wanted, Found *found,
          unsigned long long *likeliest) {
    using namespace scores;
    static_assert(sizeof(Shared) <= SHARED_BYTES);
    Shared &shared = *reinterpret_cast<Shared *>(dynamic_shared());
    let_dependents_start();
    wait_for_inputs();
    const unsigned ctas = cluster_size(), number = blockIdx.x / ctas;
    const Wanted order = wanted[number];
    Row row{logits + static_cast<size_t>(order.row) * vocabulary, present, nullptr, vocabulary, 1.0f, 1.0f, ctas,
            cluster_rank()};
    const float unmasked = row.logits[order.token];
    const float own = (present[order.token / 32] >> order.token % 32 & 1) != 0 ? unmasked : -INFINITY;
    bound_keys(row, shared, order.count);
    add_masses(row, shared, rank_of(static_cast<int>(order.token), own));
    const Shared &theirs = *of_cta(&shared, threadIdx.x % ctas);
    const bool is_few = __all_sync(0xFFFFFFFFu, theirs.few_count <= FEW) != 0;
    if (threadIdx.x < 32 && row.cta == 0) {
        const bool counts = threadIdx.x < ctas;
        const Mass total = sum_of_lanes(counts ? theirs.total : 0);
        const unsigned before = __reduce_add_sync(0xFFFFFFFFu, counts ? theirs.rank : 0);
        if (threadIdx.x == 0) found[number] = {total, row.maximum, own, before + 1, 0};
    }
    if (is_few) {
        place_few(row, shared, order.count, likeliest + order.place);
    } else {
        find_one_by_one(row, shared, order.count, likeliest + order.place);
    }
    cluster_barrier();  // the others may still read what is this CTA's
}
EMULATED_KERNEL(score)
