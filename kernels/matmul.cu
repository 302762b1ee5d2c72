// out = x · weightsᵀ, for weights in three formats and two epilogues. The bits of a row depend neither on the kernel
// nor on the rows beside it: all sum over K by the same instructions, in the same order, by the tree of `Chunks`.
//
//   kernel                               rows   grid                                     threads  dynamic shared bytes
//   matmul_small_<format>_<epilogue>_R   ≤ R    (ceil(n / small_outputs(R)), 1, 1)       128      small_shared_bytes(R)
//   matmul_medium_<format>_<epilogue>    any    (ceil(rows/64), ceil(n/128), 1 or 4)     256      LARGE_SHARED_BYTES
//   matmul_wave_<format>_<epilogue>_W    ≤ W    (1 or 4, ceil(n / (16 · groups)), 1)     32 · groups, ≤ wave_groups(W)
//   matmul_large_<format>_<epilogue>     any    (ceil(rows/128), ceil(n/128), 1)         256      LARGE_SHARED_BYTES
//   matmul_units_<…>_<…>_B               any    (as many as run at once, 1, 1)           512      UnitsShared<B>::BYTES
//
// R is 8, 16 or 32. gridDim.z = 4 is for fewer blocks than the device has room for. W is 16, 64 or 128; its four CTAs along
// x are a cluster; its dynamic shared memory: see `WaveRing`. B is 128 or 256. Waves and units are for compute capability 9.0, and do
// nothing elsewhere.
#include "matmul_large.cuh"
#include "matmul_small.cuh"
#include "matmul_units.cuh"
#include "matmul_wave.cuh"

// weights, scales, units: see `Weights`; x: bf16 [rows][x_stride]; n: outputs, gates and ups counted; k_tiles: K/32
// rounded up; chunk_tiles: see `Chunks`; out: f32 [rows][out_stride], or bf16 where gates are activated; gate
// means nothing elsewhere.
#define MATMUL_PARAMETERS                                                                                           \
    const unsigned char *weights, const unsigned char *scales, const unsigned char *units, const Bf16 *x,           \
        int x_stride, int rows, int n, int k_tiles, int chunk_tiles, void *out, int out_stride, Gate gate
#define MATMUL_ARGUMENTS                                                                                            \
    {weights, scales, units, k_tiles}, {x, x_stride, rows}, {out, out_stride, rows, n, gate}, {k_tiles, chunk_tiles}

#define MATMUL_SMALL(format, Format, epilogue, Epilogue_, most_rows)                                               \
    extern "C" __global__ void __launch_bounds__(matmul::SMALL_THREADS, 2)                                         \
        matmul_small_##format##_##epilogue##_##most_rows(MATMUL_PARAMETERS) {                                      \
        matmul::multiply_small<matmul::Format, matmul::Epilogue::Epilogue_, most_rows / 8>(MATMUL_ARGUMENTS);      \
    }                                                                                                              \
    EMULATED_KERNEL(matmul_small_##format##_##epilogue##_##most_rows)

// sums and tickets: see `Meeting`; not used where gridDim.z is 1.
#define MATMUL_MEDIUM(format, Format, epilogue, Epilogue_)                                                         \
    extern "C" __global__ void __launch_bounds__(matmul::LARGE_THREADS, matmul::MEDIUM_CTAS)                       \
        matmul_medium_##format##_##epilogue(MATMUL_PARAMETERS, float4 *sums, unsigned *tickets) {                  \
        matmul::multiply_large<matmul::Format, matmul::Epilogue::Epilogue_, matmul::MEDIUM_ROWS / 16, true>(       \
            MATMUL_ARGUMENTS, {sums, tickets});                                                                    \
    }                                                                                                              \
    EMULATED_KERNEL(matmul_medium_##format##_##epilogue)

#define MATMUL_WAVE(format, Format, epilogue, Epilogue_, most_rows)                                                \
    extern "C" __global__ void                                                                                     \
        __launch_bounds__(32 * matmul::wave_groups(most_rows), matmul::wave_ctas(most_rows))                       \
        matmul_wave_##format##_##epilogue##_##most_rows(MATMUL_PARAMETERS, const GRID_CONSTANT RowsMap map) {      \
        if constexpr (HAS_WGMMA) {                                                                                 \
            matmul::multiply_in_a_wave<matmul::Format, matmul::Epilogue::Epilogue_, most_rows>(                    \
                {weights, scales, units, k_tiles}, {&map, x, x_stride, rows},                                      \
                {out, out_stride, rows, n, gate}, {k_tiles, chunk_tiles});                                         \
        }                                                                                                          \
    }                                                                                                              \
    EMULATED_KERNEL(matmul_wave_##format##_##epilogue##_##most_rows)

#define MATMUL_LARGE(format, Format, epilogue, Epilogue_)                                                          \
    extern "C" __global__ void __launch_bounds__(matmul::LARGE_THREADS, 1)                                         \
        matmul_large_##format##_##epilogue(MATMUL_PARAMETERS) {                                                    \
        matmul::multiply_large<matmul::Format, matmul::Epilogue::Epilogue_, matmul::LARGE_ROWS / 16, false>(       \
            MATMUL_ARGUMENTS, {});                                                                                 \
    }                                                                                                              \
    EMULATED_KERNEL(matmul_large_##format##_##epilogue)

// whole, row_blocks, chunks, pieces: see `Pieces`; sums and tickets: see `UnitsMeeting`.
#define MATMUL_UNITS(format, Format, epilogue, Epilogue_, rows_of_tile)                                             \
    extern "C" __global__ void __launch_bounds__(matmul::UNITS_THREADS, 1)                                         \
        matmul_units_##format##_##epilogue##_##rows_of_tile(MATMUL_PARAMETERS, int whole, int row_blocks, int chunks, \
                                                            int pieces, float4 *sums, unsigned *tickets,           \
                                                            const GRID_CONSTANT RowsMap map) {                     \
        if constexpr (HAS_WGMMA) {                                                                                 \
            matmul::multiply_units<matmul::Format, matmul::Epilogue::Epilogue_, rows_of_tile>(                     \
                {weights, scales, units, k_tiles}, {&map, x, x_stride, rows}, {out, out_stride, rows, n, gate},    \
                chunk_tiles, {whole, row_blocks, chunks, pieces}, {sums, tickets});                                \
        }                                                                                                          \
    }                                                                                                              \
    EMULATED_KERNEL(matmul_units_##format##_##epilogue##_##rows_of_tile)

#define MATMUL_EPILOGUE(format, Format, epilogue, Epilogue_) \
    MATMUL_SMALL(format, Format, epilogue, Epilogue_, 8)     \
    MATMUL_SMALL(format, Format, epilogue, Epilogue_, 16)    \
    MATMUL_SMALL(format, Format, epilogue, Epilogue_, 32)    \
    MATMUL_MEDIUM(format, Format, epilogue, Epilogue_)       \
    MATMUL_WAVE(format, Format, epilogue, Epilogue_, 16)     \
    MATMUL_WAVE(format, Format, epilogue, Epilogue_, 64)     \
    MATMUL_WAVE(format, Format, epilogue, Epilogue_, 128)    \
    MATMUL_LARGE(format, Format, epilogue, Epilogue_)        \
    MATMUL_UNITS(format, Format, epilogue, Epilogue_, 128)   \
    MATMUL_UNITS(format, Format, epilogue, Epilogue_, 256)

#define MATMUL_FORMAT(format, Format)         \
    MATMUL_EPILOGUE(format, Format, f32, F32) \
    MATMUL_EPILOGUE(format, Format, gated, Gated)

MATMUL_FORMAT(bf16, Bf16Weights)
MATMUL_FORMAT(q8_0, Q8Weights)
MATMUL_FORMAT(q4_k, Q4Weights)
