// Number by number, a CTA of 256 threads a row.
#include "common.cuh"

namespace elements {

constexpr int THREADS = 256;

// Calls `change` with each column below `width` once.
template <typename Change>
__device__ __forceinline__ void for_each_column(int width, Change change) {
    let_dependents_start();
    wait_for_inputs();
    for (int column = threadIdx.x; column < width; column += THREADS) change(column);
}

}  // namespace elements

// out bf16 [rows][out_stride] = x f32 [rows][width].
extern "C" __global__ void __launch_bounds__(elements::THREADS) narrow(const float *x, int width, Bf16 *out, int out_stride) {
    const size_t row = blockIdx.x;
    elements::for_each_column(width, [=](int column) { out[row * out_stride + column] = bf16_from_float(x[row * width + column]); });
}
EMULATED_KERNEL(narrow)

// out bf16 [rows][out_stride] = the activated gate f32 [rows][width] · as many columns of `by` f32 [rows][by_stride].
extern "C" __global__ void __launch_bounds__(elements::THREADS)
    gate_columns(const float *gate, int width, const float *by, int by_stride, Gate kind, Bf16 *out, int out_stride) {
    const size_t row = blockIdx.x;
    elements::for_each_column(width, [=](int column) {
        const float product = gated(kind, gate[row * width + column], by[row * by_stride + column]);
        out[row * out_stride + column] = bf16_from_float(product);
    });
}
EMULATED_KERNEL(gate_columns)

// Of rows of so many words [rows][words], those of `indices` [count], which rise, come to the front. A thread takes a column, from the first
// row on, so that it writes over none that it has yet to read.
extern "C" __global__ void __launch_bounds__(elements::THREADS) keep_rows(unsigned *rows, int words, const unsigned *indices, int count) {
    constexpr int AT_ONCE = 8;
    let_dependents_start();
    wait_for_inputs();
    const int column = blockIdx.x * elements::THREADS + threadIdx.x;
    if (column >= words) return;
    unsigned *own = rows + column;
    for (int first = 0; first < count; first += AT_ONCE) {
        unsigned held[AT_ONCE];
#pragma unroll
        for (int n = 0; n < AT_ONCE; ++n) {
            held[n] = first + n < count ? own[static_cast<size_t>(indices[first + n]) * words] : 0;
        }
#pragma unroll
        for (int n = 0; n < AT_ONCE; ++n) {
            if (first + n < count) own[static_cast<size_t>(first + n) * words] = held[n];
        }
    }
}
EMULATED_KERNEL(keep_rows)

// x f32 [rows][width] = most · tanh(x / most), tanh(u) = 1 − 2 / (e²ᵘ + 1), in the order of crates/ops/src/cpu/activation.rs.
extern "C" __global__ void __launch_bounds__(elements::THREADS) cap(float *x, int width, float most) {
    const float twice_inverse = __fdiv_rn(2.0f, most);
    float *row = x + static_cast<size_t>(blockIdx.x) * width;
    elements::for_each_column(width, [=](int column) {
        const float power = exponential(__fmul_rn(row[column], twice_inverse));
        row[column] = __fmul_rn(__fsub_rn(1.0f, __fdiv_rn(2.0f, __fadd_rn(power, 1.0f))), most);
    });
}
EMULATED_KERNEL(cap)
