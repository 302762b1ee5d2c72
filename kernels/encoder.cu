// What encoders of BERT's shape compute beside products and attention: sums of embeddings, norms with a mean, biases, GELU.
//
// One CTA of 256 threads a row of `width` numbers. What products read is written as bf16, or as f32 for products in f32:
// the suffix of a kernel. A row's sums have a tree that depends on its width alone.
#include "common.cuh"

namespace encoder {

constexpr int THREADS = 256, WARPS = THREADS / 32;

__device__ __forceinline__ void put(Bf16 *out, float value) { *out = bf16_from_float(value); }
__device__ __forceinline__ void put(float *out, float value) { *out = value; }

// x [rows][width] becomes norm(x) or, where there are products [rows][width], norm(x + (products + bias)), with
// norm(x) = (x − mean) / √(variance + epsilon) · weight + shift; out [rows][out_stride] the same.
template <class Number>
__device__ __forceinline__ void layer_norm(float *x, const float *products, const float *bias, const float *weight,
                                           const float *shift, float epsilon, int width, Number *out, int out_stride) {
    let_dependents_start();
    wait_for_inputs();
    const size_t row = blockIdx.x;
    x += row * width;
    float sum = 0.0f;
    for (int column = threadIdx.x; column < width; column += THREADS) {
        if (products != nullptr) {
            x[column] = __fadd_rn(x[column], __fadd_rn(products[row * width + column], bias[column]));
        }
        sum = __fadd_rn(sum, x[column]);
    }
    const float mean = __fdiv_rn(sum_over_cta(sum, WARPS), static_cast<float>(width));
    float squares = 0.0f;
    for (int column = threadIdx.x; column < width; column += THREADS) {
        const float off = __fsub_rn(x[column], mean);
        squares = __fmaf_rn(off, off, squares);
    }
    const float scale = inverse_root_mean(sum_over_cta<1>(squares, WARPS), width, epsilon);
    for (int column = threadIdx.x; column < width; column += THREADS) {
        const float scaled = __fmul_rn(__fmul_rn(__fsub_rn(x[column], mean), scale), weight[column]);
        x[column] = __fadd_rn(scaled, shift[column]);
        put(out + row * out_stride + column, x[column]);
    }
}

// max(x, 0) − |x|/2 · erfc(|x|/√2), by the steps of crates/ops/src/cpu/text.rs.
__device__ __forceinline__ float gelu(float x) {
    constexpr float root_half = 0.70710678f;
    constexpr float coefficients[10] = {0.14781748f, -0.6892878f,  1.159033f,    -0.6751264f, -0.1184277f,
                                        0.03290842f, 0.019826446f, 0.39060673f, 0.9980645f,  -1.2654145f};
    const float size = fabsf(x), z = __fmul_rn(size, root_half);
    const float t = __fdiv_rn(1.0f, __fmaf_rn(z, 0.5f, 1.0f));
    float q = coefficients[0];
#pragma unroll
    for (int index = 1; index < 10; ++index) q = __fmaf_rn(q, t, coefficients[index]);
    const float complement = __fmul_rn(t, exponential(__fsub_rn(q, __fmul_rn(z, z))));
    return __fsub_rn(fmaxf(x, 0.0f), __fmul_rn(__fmul_rn(size, 0.5f), complement));
}

// out [rows][out_stride] = gelu(products + bias)
template <class Number>
__device__ __forceinline__ void add_gelu(const float *products, const float *bias, int width, Number *out,
                                         int out_stride) {
    let_dependents_start();
    wait_for_inputs();
    const size_t row = blockIdx.x;
    for (int column = threadIdx.x; column < width; column += THREADS) {
        put(out + row * out_stride + column, gelu(__fadd_rn(products[row * width + column], bias[column])));
    }
}

}  // namespace encoder

// residual [rows][width] += the row's segment's numbers, then its position's; rows that only fill a bucket stay.
extern "C" __global__ void __launch_bounds__(encoder::THREADS)
    add_places(const unsigned *positions, const unsigned *segments, const float *position_table,
               const float *segment_table, int width, float *residual) {
    let_dependents_start();
    wait_for_inputs();
    const size_t row = blockIdx.x, position = positions[row];
    if (position == NOTHING) return;
    const float *place = position_table + position * width;
    const float *segment = segment_table + static_cast<size_t>(segments[row]) * width;
    residual += row * width;
    for (int column = threadIdx.x; column < width; column += encoder::THREADS) {
        residual[column] = __fadd_rn(__fadd_rn(residual[column], segment[column]), place[column]);
    }
}
EMULATED_KERNEL(add_places)

// x [rows][width] += bias
extern "C" __global__ void __launch_bounds__(encoder::THREADS) add_bias(float *x, const float *bias, int width) {
    let_dependents_start();
    wait_for_inputs();
    x += static_cast<size_t>(blockIdx.x) * width;
    for (int column = threadIdx.x; column < width; column += encoder::THREADS) {
        x[column] = __fadd_rn(x[column], bias[column]);
    }
}
EMULATED_KERNEL(add_bias)

#define LAYER_NORM(name, Number)                                                                                       \
    extern "C" __global__ void __launch_bounds__(encoder::THREADS)                                                     \
        name(float *x, const float *products, const float *bias, const float *weight, const float *shift,              \
             float epsilon, int width, Number *out, int out_stride) {                                                  \
        encoder::layer_norm<Number>(x, products, bias, weight, shift, epsilon, width, out, out_stride);                \
    }                                                                                                                  \
    EMULATED_KERNEL(name)

LAYER_NORM(layer_norm_bf16, Bf16)
LAYER_NORM(layer_norm_f32, float)

#define GELU(name, Number)                                                                                             \
    extern "C" __global__ void __launch_bounds__(encoder::THREADS)                                                     \
        name(const float *products, const float *bias, int width, Number *out, int out_stride) {                       \
        encoder::add_gelu<Number>(products, bias, width, out, out_stride);                                             \
    }                                                                                                                  \
    EMULATED_KERNEL(name)

GELU(gelu_bf16, Bf16)
GELU(gelu_f32, float)
