// The residual, f32 [rows][hidden]: its rows from the embedding, and root-mean-square norms over them.
//
// One CTA of 256 threads a row; `hidden` is a multiple of 8. A sum's tree depends on the width alone, and warps that
// a narrow row has nothing for return.
#include "common.cuh"
#include "weights.cuh"

namespace norms {

constexpr int THREADS = 256, WARPS = THREADS / 32;

// Warps with a part of a row, four values a thread.
__device__ __forceinline__ int warps_of(int hidden) { return min((hidden + 127) / 128, WARPS); }

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
            if (input >= hidden) break;
            const unsigned pair = fragment.half[eight / 2][eight % 2 * 2 + high_row];
            reinterpret_cast<float2 *>(out + input)[quad_lane] =
                make_float2(__fmul_rn(low_bf16(pair), factor), __fmul_rn(high_bf16(pair), factor));
        }
    }
}

// `sum` and the squares of four values.
__device__ __forceinline__ float add_squares(float sum, float4 values) {
    sum = __fmaf_rn(values.x, values.x, sum);
    sum = __fmaf_rn(values.y, values.y, sum);
    sum = __fmaf_rn(values.z, values.z, sum);
    return __fmaf_rn(values.w, values.w, sum);
}

__device__ __forceinline__ float4 scaled(float4 values, float scale, float4 weight) {
    return make_float4(
        __fmul_rn(__fmul_rn(values.x, scale), weight.x), __fmul_rn(__fmul_rn(values.y, scale), weight.y),
        __fmul_rn(__fmul_rn(values.z, scale), weight.z), __fmul_rn(__fmul_rn(values.w, scale), weight.w));
}

// This thread's part of a row's sum of squares.
__device__ __forceinline__ float squares(const float4 *row, int quads) {
    float sum = 0.0f;
    for (int quad = threadIdx.x; quad < quads; quad += THREADS) sum = add_squares(sum, row[quad]);
    return sum;
}

// out = bf16(row · scale · weight)
__device__ __forceinline__ void write_scaled(const float4 *row, float scale, const float4 *weight, int quads,
                                             Bf16 *out) {
    for (int quad = threadIdx.x; quad < quads; quad += THREADS) {
        const float4 value = scaled(row[quad], scale, weight[quad]);
        reinterpret_cast<uint2 *>(out)[quad] = make_uint2(pack_bf16(value.x, value.y), pack_bf16(value.z, value.w));
    }
}

// out [hidden] = bf16(norm(row) · weight), rows and weight f32 [hidden].
__device__ __forceinline__ void normalise(const float *row, const float *weight, float epsilon, int hidden, Bf16 *out) {
    const float4 *values = reinterpret_cast<const float4 *>(row);
    const float sum = sum_over_cta(squares(values, hidden / 4), warps_of(hidden));
    const float scale = inverse_root_mean(sum, hidden, epsilon);
    write_scaled(values, scale, reinterpret_cast<const float4 *>(weight), hidden / 4, out);
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

// out [rows][out_stride] = bf16(norm(residual) · weight).
extern "C" __global__ void __launch_bounds__(norms::THREADS)
    rms_norm(const float *residual, const float *weight, float epsilon, int hidden, Bf16 *out, int out_stride) {
    let_dependents_start();
    if (static_cast<int>(threadIdx.x / 32) >= norms::warps_of(hidden)) return;
    fetch_ahead(weight, hidden);
    wait_for_inputs();
    const size_t row = blockIdx.x;
    norms::normalise(residual + row * hidden, weight, epsilon, hidden, out + row * out_stride);
}
EMULATED_KERNEL(rms_norm)

// residual += branch [rows][hidden], normed under `post_weight` unless that is null; then, unless `next_weight` is
// null, out [rows][out_stride] = bf16(norm(residual) · next_weight).
extern "C" __global__ void __launch_bounds__(norms::THREADS)
    add_norm(float *residual, const float *branch, const float *post_weight, const float *next_weight, float epsilon,
             int hidden, Bf16 *out, int out_stride) {
    let_dependents_start();
    if (static_cast<int>(threadIdx.x / 32) >= norms::warps_of(hidden)) return;
    fetch_ahead(post_weight, hidden);
    fetch_ahead(next_weight, hidden);
    wait_for_inputs();
    const size_t row = blockIdx.x;
    const int quads = hidden / 4, warps = norms::warps_of(hidden);
    float4 *sums = reinterpret_cast<float4 *>(residual + row * hidden);
    const float4 *addends = reinterpret_cast<const float4 *>(branch + row * hidden);
    float scale = 1.0f;
    if (post_weight != nullptr) {
        scale = inverse_root_mean(sum_over_cta(norms::squares(addends, quads), warps), hidden, epsilon);
    }
    float squares = 0.0f;
    for (int quad = threadIdx.x; quad < quads; quad += norms::THREADS) {
        float4 addend = addends[quad];
        if (post_weight != nullptr) {
            addend = norms::scaled(addend, scale, reinterpret_cast<const float4 *>(post_weight)[quad]);
        }
        const float4 old = sums[quad];
        const float4 sum = make_float4(__fadd_rn(old.x, addend.x), __fadd_rn(old.y, addend.y),
                                       __fadd_rn(old.z, addend.z), __fadd_rn(old.w, addend.w));
        sums[quad] = sum;
        squares = norms::add_squares(squares, sum);
    }
    if (next_weight == nullptr) return;
    scale = inverse_root_mean(sum_over_cta<1>(squares, warps), hidden, epsilon);
    norms::write_scaled(sums, scale, reinterpret_cast<const float4 *>(next_weight), quads, out + row * out_stride);
}
EMULATED_KERNEL(add_norm)

// out [row] = bf16(norm(residual[indices[row]]) · weight); zeros where there is no such row.
extern "C" __global__ void __launch_bounds__(norms::THREADS)
    gather_norm(const float *residual, const unsigned *indices, const float *weight, float epsilon, int hidden,
                Bf16 *out, int out_stride) {
    let_dependents_start();
    if (static_cast<int>(threadIdx.x / 32) >= norms::warps_of(hidden)) return;
    fetch_ahead(weight, hidden);
    wait_for_inputs();
    const unsigned index = indices[blockIdx.x];
    out += static_cast<size_t>(blockIdx.x) * out_stride;
    if (index != NOTHING) {
        norms::normalise(residual + static_cast<size_t>(index) * hidden, weight, epsilon, hidden, out);
    } else {
        for (int column = threadIdx.x; column < hidden; column += norms::warps_of(hidden) * 32) out[column] = 0;
    }
}
EMULATED_KERNEL(gather_norm)
