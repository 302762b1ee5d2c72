// out = norm(residual + branch) · weightsᵀ for a few rows, for weights in three formats and three epilogues.
//
//   kernel                              rows   grid                threads  dynamic shared bytes
//   matmul_normed_<format>_<epilogue>   ≤ 8    (ceil(n / 16), 1, 1)  128    RINGS_BESIDE_ROWS + rows · (64 · k_tiles + 16)
#include "matmul_normed.cuh"

// weights, scales, units, rows, n, k_tiles, chunk_tiles, out, out_stride: as in matmul.cu; what else: see `Added`.
#define MATMUL_NORMED(format, Format, epilogue, Epilogue_)                                                             \
    extern "C" __global__ void __launch_bounds__(matmul::SMALL_THREADS, 3) matmul_normed_##format##_##epilogue(         \
        const unsigned char *weights, const unsigned char *scales, const unsigned char *units, const float *residual,  \
        const float *branch, int rows, int n, int k_tiles, int chunk_tiles, void *out, int out_stride,                 \
        const float *post_weight, const float *next_weight, float epsilon, int hidden, float *sums) {                  \
        matmul::multiply_normed<matmul::Format, matmul::Epilogue::Epilogue_>(                                          \
            {weights, scales, units, k_tiles}, {residual, branch, post_weight, next_weight, sums, epsilon, hidden},    \
            {out, out_stride, rows, n}, {k_tiles, chunk_tiles});                                                       \
    }                                                                                                                  \
    EMULATED_KERNEL(matmul_normed_##format##_##epilogue)

#define MATMUL_NORMED_FORMAT(format, Format)           \
    MATMUL_NORMED(format, Format, f32, F32)            \
    MATMUL_NORMED(format, Format, silu, Silu)          \
    MATMUL_NORMED(format, Format, gelu, Gelu)

MATMUL_NORMED_FORMAT(bf16, Bf16Weights)
MATMUL_NORMED_FORMAT(q8_0, Q8Weights)
MATMUL_NORMED_FORMAT(q4_k, Q4Weights)
