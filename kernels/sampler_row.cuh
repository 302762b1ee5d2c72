// A row of logits as a cluster of CTAs reads it: each thread its share, under a mask; tokens by their rank.
#pragma once

#include "common.cuh"

namespace sampler {

using Key = unsigned long long;
using Mass = unsigned long long;  // a share of the likeliest token's probability, in units of 2⁻⁴⁰

constexpr int MOST_THREADS = 1024;

// A key, smaller where a token is likelier or else its id is lower: 32 bits of the logit's rank, 23 of the id.
constexpr int ID_BITS = 23;
constexpr Key EVERY_KEY = ~0ull;

// Tokens that a CTA keeps aside once a bound has made them few.
constexpr int FEW = 2048;

struct Row {
    const float *logits;             // [vocabulary]
    const unsigned *allowed, *seen;  // [ceil(vocabulary / 32)], a bit a token, or null
    int vocabulary;
    float penalty, temperature;
    unsigned ctas, cta;      // of the cluster
    float maximum = 0.0f;    // of the logits over the temperature, once known
    Key bound = EVERY_KEY;   // keys up to here are of interest,
    bool is_few = false;     // and all of these of the CTA's share are in `few`

    // Calls `visit` with each token of the thread's share and its logit after mask and penalty. Eight are asked for at
    // once, forbidden ones too: to look at the mask first would be to wait twice.
    template <typename Visit>
    __device__ __forceinline__ void for_each_logit(Visit visit) const {
        constexpr int TOGETHER = 8;
        const int step = static_cast<int>(ctas * blockDim.x);
        for (int first = static_cast<int>(cta * blockDim.x + threadIdx.x); first < vocabulary; first += TOGETHER * step) {
            float values[TOGETHER];
            unsigned words[TOGETHER], seen_words[TOGETHER];
#pragma unroll
            for (int each = 0; each < TOGETHER; ++each) {
                const int id = min(first + each * step, vocabulary - 1);
                values[each] = logits[id];
                words[each] = allowed != nullptr ? allowed[id / 32] : ~0u;
                seen_words[each] = seen != nullptr ? seen[id / 32] : 0u;
            }
            unsigned penalised = 0;
#pragma unroll
            for (int each = 0; each < TOGETHER; ++each) {
                const int id = first + each * step;
                if (id >= vocabulary || (words[each] >> id % 32 & 1) == 0) values[each] = -INFINITY;
                penalised |= (seen_words[each] >> id % 32 & 1) << each;
            }
            // Not unrolled: what follows is long, and would be there eight times.
#pragma unroll 1
            for (int each = 0; each < TOGETHER; ++each) {
                const float logit = values[0];
#pragma unroll
                for (int next = 1; next < TOGETHER; ++next) values[next - 1] = values[next];
                if (first + each * step >= vocabulary) break;
                visit(first + each * step, (penalised >> each & 1) != 0 ? penalise(logit) : logit);
            }
        }
    }

    __device__ __forceinline__ float penalise(float logit) const {
        return logit > 0.0f ? __fdiv_rn(logit, penalty) : __fmul_rn(logit, penalty);
    }

    __device__ __forceinline__ float tempered(float logit) const {
        return temperature == 1.0f ? logit : __fdiv_rn(logit, temperature);
    }
};

// An unsigned number that orders floats as IEEE 754's total order does.
__device__ __forceinline__ unsigned ordered(float value) {
    const unsigned bits = __float_as_uint(value);
    return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float from_ordered(unsigned ordered) {
    return __uint_as_float(ordered >> 31 != 0 ? ordered & 0x7FFFFFFFu : ~ordered);
}

__device__ __forceinline__ Key rank_of(int id, float logit) {
    return static_cast<Key>(~ordered(logit)) << ID_BITS | static_cast<Key>(id);
}

__device__ __forceinline__ float logit_of(Key key) { return from_ordered(~static_cast<unsigned>(key >> ID_BITS)); }

// share · 2⁴⁰ without its fraction, 0 ≤ share ≤ 1: the mantissa, moved. Conversions to 64 bits are slow.
__device__ __forceinline__ Mass whole_mass(float share) {
    const unsigned bits = __float_as_uint(share);
    const int shift = static_cast<int>(bits >> 23) - (127 + 23 - 40);
    const Mass mantissa = (bits & 0x7FFFFFu) | 0x800000u;
    return shift >= 0 ? mantissa << shift : shift > -24 ? mantissa >> -shift : 0;
}

// The least key of a warp's lanes, in all of them.
__device__ __forceinline__ Key best_of_lanes(Key key) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) key = min(key, __shfl_xor_sync(0xFFFFFFFFu, key, distance));
    return key;
}

// The least key of a CTA's threads to `shared.best_of_all`, by its first thread.
template <typename Shared>
__device__ __forceinline__ void leave_best(Shared &shared, Key key) {
    key = best_of_lanes(key);
    if (threadIdx.x % 32 == 0) shared.best[threadIdx.x / 32] = key;
    __syncthreads();
    if (threadIdx.x < 32) {
        key = best_of_lanes(threadIdx.x < blockDim.x / 32 ? shared.best[threadIdx.x] : EVERY_KEY);
        if (threadIdx.x == 0) shared.best_of_all = key;
    }
}

}  // namespace sampler
