// The residual, f32 [rows][hidden]: its rows from the embedding, and root-mean-square norms over them.
//
// One CTA of 256 threads a row; `hidden` is even, and of norms a multiple of 8. A sum's tree depends on the width alone, and warps that
// a narrow row has nothing for return.
#include "norm_row.cuh"
#include "weights.cuh"

namespace norms {

// residual[row] = scale · the weights of output `tokens[row]`, rounded to bf16 as in a product. A warp takes a tile.
template <class Format>
__device__ __forceinline__ void embed(const matmul::Weights &weights, const unsigned *tokens, float scale, int hidden,
                                      float *residual) {
    const unsigned token = tokens[blockIdx.x];
    const matmul::Weights group = weights.of_group<Format>(token / 16);
    // A fragment's weights are those divided by ONE, a power of two.
    const float factor = __fmul_rn(scale, Format::ONE);
    // Every quad of the warp takes the token's row, and the first one writes it.
    const int quad_lane = threadIdx.x % 4, tile_lane = token % 8 * 4 + quad_lane, high_row = token % 16 / 8;
    float *out = residual + static_cast<size_t>(blockIdx.x) * hidden;
    for (int tile = threadIdx.x / 32; tile < weights.k_tiles; tile += WARPS) {
        const matmul::Fragment fragment = Format::fragment(group.share<Format>(tile, tile_lane), tile_lane);
        if (threadIdx.x % 32 >= 4) continue;
#pragma unroll
        for (int eight = 0; eight < 4; ++eight) {
            const int input = tile * 32 + eight * 8;
            // The next row begins where this one ends.
            if (input + quad_lane * 2 >= hidden) break;
            const unsigned pair = fragment.half[eight / 2][eight % 2 * 2 + high_row];
            reinterpret_cast<float2 *>(out + input)[quad_lane] =
                make_float2(__fmul_rn(low_bf16(pair), factor), __fmul_rn(high_bf16(pair), factor));
        }
    }
}

// A thread's first quads of a row, all asked for at once. Of rows that have more the rest is read where it is used.
constexpr int HELD_QUADS = HELD * THREADS;

struct Held {
    float4 quads[HELD];

    // `row` may be null, and then nothing is read.
    __device__ __forceinline__ Held(const float *row, int count) {
#pragma unroll
        for (int n = 0; n < HELD; ++n) {
            const int quad = n * THREADS + static_cast<int>(threadIdx.x);
            quads[n] = row != nullptr && quad < count ? reinterpret_cast<const float4 *>(row)[quad] : float4{0, 0, 0, 0};
        }
    }
};

// Calls `visit` with each of the thread's quads, in order, and with its value: what `first` holds, then what `row` has.
template <typename Visit>
__device__ __forceinline__ void for_each_quad(const Held &first, const float *row, int count, Visit visit) {
#pragma unroll
    for (int n = 0; n < HELD; ++n) {
        const int quad = n * THREADS + static_cast<int>(threadIdx.x);
        if (quad < count) visit(n, quad, first.quads[n]);
    }
#pragma unroll 1
    for (int quad = HELD_QUADS + static_cast<int>(threadIdx.x); quad < count; quad += THREADS) {
        visit(HELD, quad, reinterpret_cast<const float4 *>(row)[quad]);
    }
}

// A quad's weight: the n-th that is held, or from where it lies.
__device__ __forceinline__ float4 weight_of(const Held &held, const float *weight, int n, int quad) {
    return n < HELD ? held.quads[n] : reinterpret_cast<const float4 *>(weight)[quad];
}

// This thread's part of a row's sum of squares.
__device__ __forceinline__ float squares(const Held &first, const float *row, int count) {
    float sum = 0.0f;
    for_each_quad(first, row, count, [&](int, int, float4 value) { sum = add_squares(sum, value); });
    return sum;
}

// out = row · scale · weight
__device__ __forceinline__ void write_scaled(const Held &first, const float *row, float scale, const Held &weights,
                                             const float *weight, int count, Bf16 *out) {
    for_each_quad(first, row, count, [&](int n, int quad, float4 value) {
        put(out, quad, scaled(value, scale, weight_of(weights, weight, n, quad)));
    });
}

// out [hidden] = norm(row) · weight, rows and weight f32 [hidden]; `weights` are those that were read ahead.
__device__ __forceinline__ void normalise(const float *row, const Held &weights, const float *weight, float epsilon,
                                          int hidden, Bf16 *out) {
    const Held values(row, hidden / 4);
    const float sum = sum_over_cta(squares(values, row, hidden / 4), warps_of(hidden));
    const float scale = inverse_root_mean(sum, hidden, epsilon);
    write_scaled(values, row, scale, weights, weight, hidden / 4, out);
}

// residual = factor · (residual + branch [rows][hidden]), the branch normed under `post_weight` unless that is null; then, unless `next_weight` is
// null, out [rows][out_stride] = norm(residual) · next_weight.
__device__ __forceinline__ void add_branch(float *residual, const float *branch, const float *post_weight,
                                           const float *next_weight, float epsilon, float factor, int hidden,
                                           Bf16 *out, int out_stride) {
    let_dependents_start();
    if (static_cast<int>(threadIdx.x / 32) >= warps_of(hidden)) return;
    const int quads = hidden / 4, warps = warps_of(hidden);
    const Held post_weights(post_weight, quads), next_weights(next_weight, quads);  // no kernel writes them
    wait_for_inputs();
    const size_t row = blockIdx.x;
    float *sums = residual + row * hidden;
    const float *addends = branch + row * hidden;
    const Held first_addends(addends, quads);
    Held first_sums(sums, quads);
    float scale = 1.0f;
    if (post_weight != nullptr) {
        scale = inverse_root_mean(sum_over_cta(squares(first_addends, addends, quads), warps), hidden, epsilon);
    }
    float sum_of_squares = 0.0f;
    for_each_quad(first_addends, addends, quads, [&](int n, int quad, float4 addend) {
        if (post_weight != nullptr) {
            addend = scaled(addend, scale, weight_of(post_weights, post_weight, n, quad));
        }
        float4 *at = reinterpret_cast<float4 *>(sums) + quad;
        const float4 old = n < HELD ? first_sums.quads[n] : *at;
        const float4 sum = make_float4(
            __fmul_rn(__fadd_rn(old.x, addend.x), factor), __fmul_rn(__fadd_rn(old.y, addend.y), factor),
            __fmul_rn(__fadd_rn(old.z, addend.z), factor), __fmul_rn(__fadd_rn(old.w, addend.w), factor));
        *at = sum;
        if (n < HELD) first_sums.quads[n] = sum;
        sum_of_squares = add_squares(sum_of_squares, sum);
    });
    if (next_weight == nullptr) return;
    scale = inverse_root_mean(sum_over_cta<1>(sum_of_squares, warps), hidden, epsilon);
    write_scaled(first_sums, sums, scale, next_weights, next_weight, quads, out + row * out_stride);
}

// out [row] = norm(residual[indices[row]]) · weight; zeros where there is no such row. Without indices (null), of all rows.
__device__ __forceinline__ void norm_rows(const float *residual, const unsigned *indices, const float *weight,
                                       float epsilon, int hidden, Bf16 *out, int out_stride) {
    let_dependents_start();
    if (static_cast<int>(threadIdx.x / 32) >= warps_of(hidden)) return;
    const Held weights(weight, hidden / 4);  // no kernel writes them
    wait_for_inputs();
    const unsigned index = indices == nullptr ? blockIdx.x : indices[blockIdx.x];
    out += static_cast<size_t>(blockIdx.x) * out_stride;
    if (index != NOTHING) {
        normalise(residual + static_cast<size_t>(index) * hidden, weights, weight, epsilon, hidden, out);
    } else {
        for (int column = threadIdx.x; column < hidden; column += warps_of(hidden) * 32) out[column] = 0;
    }
}

}  // namespace norms

// The parts that a format lacks are null.
#define EMBED(name, Format)                                                                                           \
    extern "C" __global__ void __launch_bounds__(norms::THREADS)                                                       \
        name(const unsigned char *weights, const unsigned char *scales, const unsigned char *units,                   \
             const unsigned *tokens, float scale, int hidden, int k_tiles, float *residual) {                         \
        let_dependents_start();                                                                                       \
        wait_for_inputs();                                                                                            \
        norms::embed<Format>({weights, scales, units, k_tiles}, tokens, scale, hidden, residual);                      \
    }                                                                                                                 \
    EMULATED_KERNEL(name)

EMBED(embed_bf16, matmul::Bf16Weights)
EMBED(embed_q8_0, matmul::Q8Weights)
EMBED(embed_q4_k, matmul::Q4Weights)

// residual[row] = scale · the weights f32 [outputs][32 · k_tiles] of output `tokens[row]`.
extern "C" __global__ void __launch_bounds__(norms::THREADS)
    embed_f32(const float *weights, const void *, const void *, const unsigned *tokens, float scale, int hidden,
              int k_tiles, float *residual) {
    let_dependents_start();
    wait_for_inputs();
    const size_t row = blockIdx.x;
    const float *from = weights + tokens[row] * static_cast<size_t>(32 * k_tiles);
    for (int column = threadIdx.x; column < hidden; column += norms::THREADS) {
        residual[row * hidden + column] = __fmul_rn(from[column], scale);
    }
}
EMULATED_KERNEL(embed_f32)

// What products read is written as bf16.
extern "C" __global__ void __launch_bounds__(norms::THREADS)
    add_norm(float *residual, const float *branch, const float *post_weight, const float *next_weight, float epsilon,
             float factor, int hidden, Bf16 *out, int out_stride) {
    norms::add_branch(residual, branch, post_weight, next_weight, epsilon, factor, hidden, out, out_stride);
}
EMULATED_KERNEL(add_norm)

extern "C" __global__ void __launch_bounds__(norms::THREADS)
    rms_norm(const float *residual, const unsigned *indices, const float *weight, float epsilon, int hidden, Bf16 *out,
             int out_stride) {
    norms::norm_rows(residual, indices, weight, epsilon, hidden, out, out_stride);
}
EMULATED_KERNEL(rms_norm)
