// From a row of logits to a token, with the result of crates/ops/src/shared/sampler.rs: all sums are of integers.
//
// A cluster of 1, 2, 4 or 8 CTAs a row, each of any multiple of 32 threads up to 1024, with the same result: a CTA reads
// its share of the row, and the cluster adds what its CTAs counted. A token is a key of 64 bits, smaller where it is likelier or else its id is lower.
// Each filter lowers the bound on the keys that stay; a bound is found digit by digit from histograms of the tokens'
// weights.
#include "sampler_row.cuh"

// How a row's token is drawn, 40 bytes.
struct Order {
    unsigned long long random;  // Philox of seed and position
    float temperature;          // 0: the likeliest token
    unsigned top_k;             // 0: off
    float top_p;                // from 1 on: off
    float min_p;                // 0: off
    float penalty;              // 1: off
    unsigned allowed_row;       // of the masks; NOTHING: none
    unsigned seen_row;          // likewise
    unsigned padding;
};

namespace sampler {

// Of keys: 9 more bits of how far the logit lies below the largest one, in 1/16. The field says nothing that the rank does
// not: it spreads the tokens over the bins of the first histogram.
constexpr int NEARNESS_SHIFT = 55, DIGIT_BITS = 11, BINS = 1 << DIGIT_BITS;
constexpr Key ID_MASK = (1 << ID_BITS) - 1;

constexpr int SHARED_BYTES = 51200;  // of a CTA

// A CTA's; dynamic, for the others of its cluster read it.
struct Shared {
    // A bin's sum over the CTA's tokens, in two halves since shared memory adds 32 bits at once.
    unsigned low[BINS], high[BINS];
    // Sums over the cluster, of the bins that are this CTA's part of them, and of each 32 of those.
    Mass sums[BINS], coarse[BINS / 32];
    Key few[FEW];
    Key best[MOST_THREADS / 32];
    Key best_of_all;
    int few_count;
    // What the last search found: a bin and what is missing of the target after those before it; −1: nothing.
    int bin;
    Mass missing;
};

// The key of a token whose logit is `below` the maximum, less than 28: 2⁻⁴⁰ is e⁻²⁷·⁷, and less has no mass.
__device__ __forceinline__ Key key_of(int id, float logit, float below) {
    return static_cast<Key>(static_cast<unsigned>(below * 16.0f)) << NEARNESS_SHIFT | rank_of(id, logit);
}

// Calls `visit` with the key and the mass of each token of the thread's share that may be drawn, in any order.
template <typename Visit>
__device__ __forceinline__ void for_each(const Row &row, const Shared &shared, Visit visit) {
    const auto visit_logit = [&](int id, float logit) {
        const float below = __fsub_rn(row.maximum, logit);
        if (!(below < 28.0f)) return;  // also what is not a number
        const Mass mass = whole_mass(exponential(-below));
        if (below > 27.5f && mass == 0) return;
        const Key key = key_of(id, logit, below);
        if (key <= row.bound) visit(key, mass);
    };
    if (row.is_few) {
        for (int index = threadIdx.x; index < shared.few_count; index += blockDim.x) {
            const Key key = shared.few[index];
            visit_logit(static_cast<int>(key & ID_MASK), logit_of(key));
        }
    } else {
        row.for_each_logit([&](int id, float logit) { visit_logit(id, row.tempered(logit)); });
    }
}

__device__ __forceinline__ void add_to_bin(Shared &shared, int bin, Mass weight) {
    const unsigned low = static_cast<unsigned>(weight), old = atomicAdd(&shared.low[bin], low);
    const unsigned high = static_cast<unsigned>(weight >> 32) + (old + low < old ? 1 : 0);
    if (high != 0) atomicAdd(&shared.high[bin], high);
}

__device__ __forceinline__ Mass bin_sum(const Shared &shared, int bin) {
    return static_cast<Mass>(shared.high[bin]) << 32 | shared.low[bin];
}

// The sum over the lanes up to this one.
__device__ __forceinline__ Mass sum_through_lane(Mass value) {
#pragma unroll
    for (unsigned distance = 1; distance < 32; distance *= 2) {
        const Mass before = __shfl_up_sync(0xFFFFFFFFu, value, distance);
        if (threadIdx.x % 32 >= distance) value += before;
    }
    return value;
}

// Adds up what the cluster's CTAs counted; each CTA adds its part of the bins. All of them see the sums afterwards.
__device__ __forceinline__ void add_up(const Row &row, Shared &shared) {
    const unsigned part = BINS / row.ctas;
    cluster_barrier();
    for (unsigned bin = row.cta * part + threadIdx.x; bin < (row.cta + 1) * part; bin += blockDim.x) {
        Mass sum = 0;
        for (unsigned cta = 0; cta < row.ctas; ++cta) sum += bin_sum(*of_cta(&shared, cta), bin);
        shared.sums[bin] = sum;
        const Mass through = sum_through_lane(sum);
        if (threadIdx.x % 32 == 31) shared.coarse[bin / 32] = through;
    }
    cluster_barrier();
}

// One warp finds the first bin up to which the sums reach the target: at first what `target_of` makes of the total,
// then what was missing of it. Each CTA's first warp does, with the same result.
template <typename Target>
__device__ __forceinline__ void find_bin(const Row &row, Shared &shared, bool is_first, Target target_of) {
    const unsigned lane = threadIdx.x % 32, part = BINS / row.ctas;
    const auto owner = [&](unsigned bin) { return of_cta(&shared, bin / part); };
    // Two groups of 32 bins a lane.
    const unsigned group = lane * 2;
    const Mass first = owner(group * 32)->coarse[group], second = owner(group * 32 + 32)->coarse[group + 1];
    const Mass through = sum_through_lane(first + second);
    Mass target = is_first ? target_of(__shfl_sync(0xFFFFFFFFu, through, 31)) : shared.missing;
    const unsigned reached = __ballot_sync(0xFFFFFFFFu, through >= target);
    int found = -1;
    if (reached != 0) {
        const int at = __ffs(static_cast<int>(reached)) - 1;
        target -= __shfl_sync(0xFFFFFFFFu, through - first - second, at);
        const Mass in_first = __shfl_sync(0xFFFFFFFFu, first, at);
        const bool is_second = in_first < target;
        if (is_second) target -= in_first;
        const unsigned bin = (at * 2 + is_second) * 32 + lane;
        const Mass sum = owner(bin)->sums[bin], up_to = sum_through_lane(sum);
        const unsigned here = __ballot_sync(0xFFFFFFFFu, up_to >= target);
        const int last = __ffs(static_cast<int>(here)) - 1;
        target -= __shfl_sync(0xFFFFFFFFu, up_to - sum, last);
        found = (at * 2 + is_second) * 32 + last;
    }
    if (lane == 0) {
        shared.bin = found;
        shared.missing = target;
    }
}

// Keeps the CTA's tokens with keys up to `last` aside if they are few.
__device__ __forceinline__ void keep_aside(Row &row, Shared &shared, Key last) {
    if (threadIdx.x == 0) shared.few_count = 0;
    __syncthreads();
    for_each(row, shared, [&](Key key, Mass) {
        if (key > last) return;
        const int place = atomicAdd(&shared.few_count, 1);
        if (place < FEW) shared.few[place] = key;
    });
    __syncthreads();
    row.is_few = shared.few_count <= FEW;
}

// The first place, the bits of a key under `mask`, such that the tokens up to it weigh what `target_of` makes of the
// weight of all; `otherwise` if all weigh less. The mask's highest digit is at `first_shift`.
template <typename Weigh, typename Target>
__device__ __forceinline__ Key search(Row &row, Shared &shared, Key mask, int first_shift, Key otherwise, Weigh weigh,
                                      Target target_of) {
    Key low = 0, high = mask;
    for (int shift = first_shift; shift >= 0; shift -= DIGIT_BITS) {
        for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) shared.low[bin] = shared.high[bin] = 0;
        __syncthreads();
        for_each(row, shared, [&](Key key, Mass mass) {
            const Key place = key & mask;
            if (low <= place && place <= high) add_to_bin(shared, place >> shift & (BINS - 1), weigh(mass));
        });
        add_up(row, shared);
        if (threadIdx.x < 32) find_bin(row, shared, shift == first_shift, target_of);
        __syncthreads();
        if (shared.bin < 0) return otherwise;
        low |= static_cast<Key>(shared.bin) << shift;
        high = low | ((1ull << shift) - 1);
        if (shift == NEARNESS_SHIFT && !row.is_few) keep_aside(row, shared, high);
    }
    return low;
}

// The rank of the likeliest token, with −0 as +0 as in a comparison; `EVERY_KEY` if there is none.
__device__ __forceinline__ Key likeliest(const Row &row, Shared &shared) {
    Key best = EVERY_KEY;
    row.for_each_logit([&](int id, float logit) {
        if (logit > -INFINITY) best = min(best, rank_of(id, __fadd_rn(logit, 0.0f)));
    });
    leave_best(shared, best);
    cluster_barrier();
    best = EVERY_KEY;
    for (unsigned cta = 0; cta < row.ctas; ++cta) best = min(best, of_cta(&shared, cta)->best_of_all);
    return best;
}

__device__ __forceinline__ unsigned draw(Row &row, Shared &shared, const Order &order) {
    const Key best = likeliest(row, shared);
    if (best == EVERY_KEY) return NOTHING;
    if (order.temperature == 0.0f) return static_cast<unsigned>(best & ID_MASK);
    row.maximum = __fdiv_rn(logit_of(best), order.temperature);
    const auto one = [](Mass) -> Mass { return 1; };
    const auto mass_itself = [](Mass mass) { return mass; };
    if (order.top_k != 0) {
        row.bound = search(row, shared, EVERY_KEY, NEARNESS_SHIFT, row.bound, one,
                           [&](Mass) -> Mass { return order.top_k; });
    }
    if (order.top_p < 1.0f) {
        row.bound = search(row, shared, EVERY_KEY, NEARNESS_SHIFT, row.bound, mass_itself, [&](Mass total) {
            const double wanted = __dmul_rn(static_cast<double>(order.top_p), static_cast<double>(total));
            return max(static_cast<Mass>(wanted), 1ull);
        });
    }
    const Mass least = whole_mass(order.min_p);
    const Key drawn = search(row, shared, ID_MASK, DIGIT_BITS, NOTHING,
                             [=](Mass mass) { return mass < least ? 0 : mass; },
                             [&](Mass total) { return __umul64hi(order.random, total) + 1; });
    return static_cast<unsigned>(drawn);
}

}  // namespace sampler

// out[row] = the token drawn from logits [rows][vocabulary] under orders[row], or NOTHING; a cluster a row. `allowed` and
// `seen` are [masks][ceil(vocabulary / 32)], a bit a token; the orders say which mask is whose. Dynamic shared memory:
// `Shared`.
extern "C" __global__ void __launch_bounds__(sampler::MOST_THREADS)
    draw(const float *logits, int vocabulary, const unsigned *allowed, const unsigned *seen, const Order *orders,
         unsigned *out) {
    using namespace sampler;
    static_assert(sizeof(Shared) <= SHARED_BYTES);
    Shared &shared = *reinterpret_cast<Shared *>(dynamic_shared());
    let_dependents_start();
    wait_for_inputs();
    const unsigned ctas = cluster_size(), number = blockIdx.x / ctas;
    const Order order = orders[number];
    const size_t words = (vocabulary + 31) / 32;
    Row row{logits + static_cast<size_t>(number) * vocabulary,
            order.allowed_row == NOTHING ? nullptr : allowed + order.allowed_row * words,
            order.seen_row == NOTHING ? nullptr : seen + order.seen_row * words,
            vocabulary,
            order.penalty,
            order.temperature,
            ctas,
            cluster_rank()};
    const unsigned token = sampler::draw(row, shared, order);
    if (threadIdx.x == 0 && row.cta == 0) out[number] = token;
    cluster_barrier();  // the others may still read what is this CTA's
}
EMULATED_KERNEL(draw)
