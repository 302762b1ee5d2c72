// Where the CTAs of one block of a result meet, each with the sums of one chunk of K.
#pragma once

#include "matmul_output.cuh"

namespace matmul {

// Where they meet, for the (gridDim.x · gridDim.y) blocks of the result.
struct Meeting {
    float4 *sums;       // [blocks][4 chunks][fragments][threads]
    unsigned *tickets;  // [blocks], zero before and after
};

// Leaves this CTA's sums (chunk blockIdx.z of `count`) for the last of the CTAs to come, which adds all in order: false
// in the others. Which one is last depends on time, what it adds does not.
template <int FRAGMENTS>
__device__ __forceinline__ bool join(const Meeting &meeting, int count, float4 (&sums)[FRAGMENTS]) {
    const size_t block = static_cast<size_t>(blockIdx.y) * gridDim.x + blockIdx.x;
    float4 *met = meeting.sums + block * 4 * FRAGMENTS * blockDim.x + threadIdx.x;
#pragma unroll
    for (int fragment = 0; fragment < FRAGMENTS; ++fragment) {
        met[(blockIdx.z * FRAGMENTS + fragment) * blockDim.x] = sums[fragment];
    }
    // As `comes_last`, which as a call takes registers that are not there.
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) last = draw_ticket(meeting.tickets + block) == count - 1u;
    __syncthreads();
    if (!last) return false;
    if (threadIdx.x == 0) meeting.tickets[block] = 0;
#pragma unroll
    for (int fragment = 0; fragment < FRAGMENTS; ++fragment) {
        // All of a fragment's chunks are asked for at once, one that is not there in the first one's place.
        float4 chunks[4];
#pragma unroll
        for (int chunk = 0; chunk < 4; ++chunk) {
            chunks[chunk] = met[((chunk < count ? chunk : 0) * FRAGMENTS + fragment) * blockDim.x];
        }
        sums[fragment] = chunks[0];
#pragma unroll
        for (int chunk = 1; chunk < 4; ++chunk) {
            if (chunk < count) sums[fragment] = add(sums[fragment], chunks[chunk]);
        }
    }
    return true;
}

}  // namespace matmul
