// Products in f32, for weights that are kept as f32: [outputs up to 16s][stride], zeros beyond `inputs`.
//
// A CTA of 256 threads takes 64 rows by 64 outputs, a thread four rows by outputs g, g + 1, g + 8 and g + 9 of sixteen.
// Each sum is taken input by input, so that a row's bits depend on nothing beside it.
#include "common.cuh"

namespace products {

constexpr int THREADS = 256, SIDE = 64, STEP = 16;
// Beside a row's numbers so many lie unused, so that a column's are on different banks.
constexpr int PITCH = SIDE + 4;

struct Operands {
    const float *weights;  // [outputs up to 16s][stride]
    const float *x;        // [rows][x_stride]
    int x_stride, rows, outputs, inputs, stride;
};

// to[input][row] = the numbers of `rows` rows from `from` on at inputs `first` …; zeros for what is not there.
__device__ __forceinline__ void load(float (&to)[STEP][PITCH], const float *from, int stride, int rows, int first,
                                     int inputs) {
    for (int index = threadIdx.x; index < SIDE * STEP; index += THREADS) {
        const int row = index / STEP, input = index % STEP;
        const bool is_there = row < rows && first + input < inputs;
        to[input][row] = is_there ? from[static_cast<size_t>(row) * stride + first + input] : 0.0f;
    }
}

// Gives `write` each row's number, the first of its outputs g, and the four sums.
template <class Write>
__device__ __forceinline__ void multiply(const Operands &operands, Write write) {
    alignas(16) __shared__ float x[STEP][PITCH];
    alignas(16) __shared__ float weights[STEP][PITCH];
    const int first_row = blockIdx.x * SIDE, first_output = blockIdx.y * SIDE;
    const int row = threadIdx.x / 16 * 4, output = threadIdx.x % 16 / 4 * 16 + threadIdx.x % 4 * 2;
    let_dependents_start();
    wait_for_inputs();
    const float *x_rows = operands.x + static_cast<size_t>(first_row) * operands.x_stride;
    const float *weight_rows = operands.weights + static_cast<size_t>(first_output) * operands.stride;
    const int outputs = (operands.outputs + 15) / 16 * 16 - first_output;
    float sums[4][4] = {};
    for (int first = 0; first < operands.inputs; first += STEP) {
        __syncthreads();
        load(x, x_rows, operands.x_stride, operands.rows - first_row, first, operands.inputs);
        load(weights, weight_rows, operands.stride, outputs, first, operands.inputs);
        __syncthreads();
#pragma unroll
        for (int input = 0; input < STEP; ++input) {
            const float4 four = *reinterpret_cast<const float4 *>(&x[input][row]);
            const float2 low = *reinterpret_cast<const float2 *>(&weights[input][output]);
            const float2 high = *reinterpret_cast<const float2 *>(&weights[input][output + 8]);
            const float rows[4] = {four.x, four.y, four.z, four.w}, columns[4] = {low.x, low.y, high.x, high.y};
#pragma unroll
            for (int index = 0; index < 16; ++index) {
                float &sum = sums[index / 4][index % 4];
                sum = __fmaf_rn(rows[index / 4], columns[index % 4], sum);
            }
        }
    }
#pragma unroll
    for (int index = 0; index < 4; ++index) {
        if (first_row + row + index < operands.rows) write(first_row + row + index, first_output + output, sums[index]);
    }
}

}  // namespace products

// out [rows][out_stride]
extern "C" __global__ void __launch_bounds__(products::THREADS)
    matmul_f32(const float *weights, const float *x, int x_stride, int rows, int outputs, int inputs, int stride,
               float *out, int out_stride) {
    products::multiply({weights, x, x_stride, rows, outputs, inputs, stride},
                       [=](int row, int output, const float(&sums)[4]) {
#pragma unroll
                           for (int index = 0; index < 4; ++index) {
                               const int column = output + index % 2 + index / 2 * 8;
                               if (column < outputs) out[static_cast<size_t>(row) * out_stride + column] = sums[index];
                           }
                       });
}
EMULATED_KERNEL(matmul_f32)
