#include "matmul_large.cuh"
#include "matmul_small.cuh"

#define ARGUMENTS                                                                                                       \
    const unsigned char *weights, const unsigned char *scales, const unsigned char *units, const Bf16 *x, int x_stride, \
        int rows, int n, int k_tiles, void *out, int out_stride

#define SMALL(format, Format, epilogue, Epilogue_, rows_)                                                             \
    extern "C" __global__ void __launch_bounds__(matmul::SMALL_THREADS, 2)                                              \
        matmul_small_##format##_##epilogue##_##rows_(ARGUMENTS) {                                                    \
        matmul::multiply_small<matmul::Format, matmul::Epilogue::Epilogue_, rows_ / 8>(                              \
            {weights, scales, units, k_tiles}, {x, x_stride, rows}, {out, out_stride, rows, n});                     \
    }                                                                                                                \
    TWIN_KERNEL(matmul_small_##format##_##epilogue##_##rows_)

#define LARGE(format, Format, epilogue, Epilogue_)                                                                   \
    extern "C" __global__ void __launch_bounds__(matmul::LARGE_THREADS, 1)                                           \
        matmul_large_##format##_##epilogue(ARGUMENTS) {                                                              \
        matmul::multiply_large<matmul::Format, matmul::Epilogue::Epilogue_>(                                         \
            {weights, scales, units, k_tiles}, {x, x_stride, rows}, {out, out_stride, rows, n});                     \
    }                                                                                                                \
    TWIN_KERNEL(matmul_large_##format##_##epilogue)

#define EPILOGUE(format, Format, epilogue, Epilogue_)  \
    SMALL(format, Format, epilogue, Epilogue_, 8)      \
    SMALL(format, Format, epilogue, Epilogue_, 16)     \
    SMALL(format, Format, epilogue, Epilogue_, 32)     \
    SMALL(format, Format, epilogue, Epilogue_, 64)     \
    LARGE(format, Format, epilogue, Epilogue_)

#define FORMAT(format, Format)            \
    EPILOGUE(format, Format, f32, F32)    \
    EPILOGUE(format, Format, silu, Silu)  \
    EPILOGUE(format, Format, gelu, Gelu)

FORMAT(bf16, Bf16Weights)
FORMAT(q8_0, Q8Weights)
FORMAT(q4_k, Q4Weights)
