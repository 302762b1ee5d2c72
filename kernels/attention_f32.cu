// Attention over keys and values that are kept as f32: a CTA of 128 threads for each row and head, over all the row's
// chunks in ascending order. The chunks are those of attention.cu, anchored at absolute positions.
#include "attention_chunk.cuh"

namespace attention {

__device__ __forceinline__ float max_over_cta(float value) {
    __shared__ float maxima[WARPS];
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, distance));
    }
    if (threadIdx.x % 32 == 0) maxima[threadIdx.x / 32] = value;
    __syncthreads();
    return fmaxf(fmaxf(maxima[0], maxima[1]), fmaxf(maxima[2], maxima[3]));
}

}  // namespace attention

// queries f32 [rows][heads][dim]; keys [page][kv_heads][dim/32][32 positions][32] and values
// [page][kv_heads][dim][32 positions], f32; `dim` is head_dim, up to 256, rounded up to 32. `lengths` [rows] of texts
// whose rows see ahead may be null. out [rows][out_stride], zeros for rows that only fill a bucket.
extern "C" __global__ void __launch_bounds__(attention::THREADS)
    attend_f32(const float *queries, const float *keys, const float *values, const unsigned *positions,
               const unsigned *sequences, const unsigned *tables, int table_stride, int heads, int kv_heads,
               int head_dim, int dim, int window, float scale, float *out, int out_stride, const unsigned *lengths) {
    using namespace attention;
    __shared__ float query[256], weights[CHUNK];
    let_dependents_start();
    wait_for_inputs();
    const size_t row = blockIdx.x;
    const int head = blockIdx.y, kv_head = head / (heads / kv_heads), thread = threadIdx.x;
    const unsigned sequence = sequences[row];
    const Span seen = keys_seen(positions[row], window, lengths == nullptr ? 0 : lengths[row]);
    const unsigned *table = tables + static_cast<size_t>(sequence) * table_stride;
    // Where a key's page begins, of keys and of values.
    const auto page_of = [=](unsigned key) {
        return (static_cast<size_t>(table[key / PAGE]) * kv_heads + kv_head) * dim * PAGE;
    };
    for (int at = thread; at < head_dim; at += THREADS) query[at] = queries[(row * heads + head) * dim + at];
    Merged merged;
    float sums[2] = {};
    for (unsigned chunk = seen.first / CHUNK; chunk * CHUNK < seen.end; ++chunk) {
        __syncthreads();  // the query is there, and nobody reads the last chunk's weights any more
        const unsigned begin = max(seen.first, chunk * CHUNK), end = min(seen.end, (chunk + 1) * CHUNK);
        float scores[2], maximum = -INFINITY;
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const unsigned key = chunk * CHUNK + n * THREADS + thread;
            scores[n] = -INFINITY;
            if (key < begin || key >= end) continue;
            const float *from = keys + page_of(key) + key % PAGE * 32;
            float score = 0.0f;
            for (int at = 0; at < head_dim; ++at) {
                score = __fmaf_rn(query[at], from[at / 32 * (PAGE * 32) + at % 32], score);
            }
            scores[n] = __fmul_rn(score, scale);
            maximum = fmaxf(maximum, scores[n]);
        }
        maximum = max_over_cta(maximum);
        float total = 0.0f;
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const float weight = exponential(__fsub_rn(scores[n], maximum));
            weights[n * THREADS + thread] = weight;
            total = __fadd_rn(total, weight);
        }
        merged.merge({maximum, sum_over_cta(total, WARPS)});
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const int at = n * THREADS + thread;
            if (at >= head_dim) break;
            float sum = 0.0f;
            for (unsigned key = begin; key < end; ++key) {
                const float value = values[page_of(key) + at * PAGE + key % PAGE];
                sum = __fmaf_rn(weights[key % CHUNK], value, sum);
            }
            sums[n] = merged.add(sums[n], sum);
        }
    }
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        const int at = n * THREADS + thread;
        if (at >= head_dim) break;
        out[row * out_stride + head * head_dim + at] = seen.is_empty() ? 0.0f : __fdiv_rn(sums[n], merged.stats.total);
    }
}
EMULATED_KERNEL(attend_f32)
