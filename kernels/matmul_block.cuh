// A CTA's results on their way to memory, by way of shared memory: so that a warp writes whole rows, sixteen bytes a lane,
// where a lane's own sums are of scattered ones.
#pragma once

#include "matmul_output.cuh"

namespace matmul {

// Sums of eight rows among a thread's, as `store` takes them.
template <int COUNT>
__device__ __forceinline__ float4 fragment_of(const float (&sums)[COUNT], int index) {
    const float *c = sums + index * 4;
    return {c[0], c[1], c[2], c[3]};
}

template <int COUNT>
__device__ __forceinline__ void put_fragment(float (&sums)[COUNT], int index, float4 sum) {
    float *c = sums + index * 4;
    c[0] = sum.x, c[1] = sum.y, c[2] = sum.z, c[3] = sum.w;
}

template <Epilogue EPILOGUE>
struct ResultOf {
    using Number = Bf16;
};
template <>
struct ResultOf<Epilogue::F32> {
    using Number = float;
};

// Results of so many rows and of 128 outputs in shared memory.
template <Epilogue EPILOGUE, int ROWS>
struct BlockRows {
    using Number = typename ResultOf<EPILOGUE>::Number;
    static constexpr int COLUMNS = EPILOGUE == Epilogue::F32 ? 128 : 64;  // a gate and its up become one
    static constexpr int PITCH = COLUMNS + 16 / sizeof(Number);           // so that neither writes nor reads meet in a bank
    static constexpr int BYTES = ROWS * PITCH * sizeof(Number);

    // Sixteen bytes: columns from `piece` · EACH on.
    static constexpr int EACH = 16 / sizeof(Number), PIECES = COLUMNS / EACH;
};

// Writes rows `first_row` … of a CTA of 256 threads, whose warps have sixteen outputs each: `results(n)` is a lane's
// fragment of the n-th eight rows. Uses dynamic shared memory from its start, where nothing else may be awaited.
template <class Format, Epilogue EPILOGUE, int ROWS, class Results>
__device__ __forceinline__ void write_block(const Output &output, const Results &results, int first_row) {
    using Block = BlockRows<EPILOGUE, ROWS>;
    using Number = typename Block::Number;
    constexpr int THREADS = 256, PITCH = Block::PITCH;
    Number *rows = reinterpret_cast<Number *>(dynamic_shared());  // [ROWS][PITCH]
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
    const auto whole = [](float sum) { return Format::ONE == 1.0f ? sum : __fmul_rn(sum, Format::ONE); };
    __syncthreads();  // everyone has done with what lay here
#pragma unroll
    for (int n = 0; n < ROWS / 8; ++n) {
        const float4 c = results(n);
        Number *to = rows + (n * 8 + q * 2) * PITCH + warp * (Block::COLUMNS / 8) + g;
        if constexpr (EPILOGUE == Epilogue::F32) {
            to[0] = whole(c.x), to[8] = whole(c.z);
            to[PITCH] = whole(c.y), to[PITCH + 8] = whole(c.w);
        } else {
            to[0] = bf16_from_float(gated(output.gate, whole(c.x), whole(c.z)));
            to[PITCH] = bf16_from_float(gated(output.gate, whole(c.y), whole(c.w)));
        }
    }
    __syncthreads();
    const int piece = threadIdx.x % Block::PIECES, columns = EPILOGUE == Epilogue::F32 ? output.n : output.n / 2;
    const int left = columns - (blockIdx.y * Block::COLUMNS + piece * Block::EACH);
    const int end = min(ROWS, output.rows - first_row);
    Number *out = static_cast<Number *>(output.out) + static_cast<size_t>(first_row) * output.stride + (columns - left);
    if (left >= Block::EACH && output.stride % Block::EACH == 0) {
#pragma unroll 4
        for (int row = threadIdx.x / Block::PIECES; row < end; row += THREADS / Block::PIECES) {
            *reinterpret_cast<uint4 *>(out + static_cast<size_t>(row) * output.stride) =
                *reinterpret_cast<const uint4 *>(rows + row * PITCH + piece * Block::EACH);
        }
        return;
    }
#pragma unroll 1
    for (int row = threadIdx.x / Block::PIECES; row < end; row += THREADS / Block::PIECES) {
#pragma unroll 1
        for (int column = 0; column < min(left, Block::EACH); ++column) {
            out[static_cast<size_t>(row) * output.stride + column] = rows[row * PITCH + piece * Block::EACH + column];
        }
    }
}

}  // namespace matmul
