// Barriers in shared memory that count arrivals and bytes (PTX's mbarrier), and boxes of rows that Hopper's copy engine (TMA)
// brings; a small function each, with a body for the emulator. Only machine code for sm_90a has them.
#pragma once

#include <cstdint>

#include "ptx.cuh"

#ifdef WARDROUND_EMULATED
#define GRID_CONSTANT
#else
#define GRID_CONSTANT __grid_constant__
#endif

using Counter = unsigned long long;

// What the driver encodes of a matrix for the copy engine: `RowsMap` in crates/ops/src/cuda/driver/rows_map.rs.
#ifdef WARDROUND_EMULATED
struct RowsMap {
#else
struct alignas(64) RowsMap {
#endif
    Counter opaque[16];
};

#ifndef WARDROUND_EMULATED
__device__ __forceinline__ unsigned address_in_cta(const void *shared) {
    return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}
#endif

// A thread sets a barrier up for so many arrivals a phase. A barrier of all threads has to follow.
__device__ __forceinline__ void start_counting(Counter *barrier, unsigned arrivals) {
#ifdef WARDROUND_EMULATED
    emulator::start_counted(barrier, arrivals);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_in_cta(barrier)), "r"(arrivals) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

__device__ __forceinline__ void arrive(Counter *barrier) {
#ifdef WARDROUND_EMULATED
    emulator::arrive_counted(barrier, 0);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_in_cta(barrier)) : "memory");
#endif
}

// Arrives at a barrier whose phase ends no sooner than so many bytes have come.
__device__ __forceinline__ void expect_bytes(Counter *barrier, unsigned bytes) {
#ifdef WARDROUND_EMULATED
    emulator::arrive_counted(barrier, bytes);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_in_cta(barrier)), "r"(bytes) : "memory");
#endif
}

// Waits until the barrier's phase of that parity has ended; what others did before they arrived is then seen.
__device__ __forceinline__ void await_phase(Counter *barrier, unsigned parity) {
#ifdef WARDROUND_EMULATED
    emulator::await_counted(barrier, parity);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; "
                 "@!done bra again;}" ::"r"(address_in_cta(barrier)), "r"(parity)
                 : "memory");
#endif
}

// Starts to bring so many bytes, a multiple of sixteen, from and to a multiple of sixteen. The barrier counts them.
__device__ __forceinline__ void copy_bytes(void *to, const void *from, unsigned bytes, Counter *barrier) {
#ifdef WARDROUND_EMULATED
    emulator::copy_bytes(to, from, bytes, barrier);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address_in_cta(to)),
                 "l"(from), "r"(bytes), "r"(address_in_cta(barrier))
                 : "memory");
#endif
}

// A matrix of bf16 as boxes are taken of it: where the driver's map of it lies, and the same in numbers.
struct BoxSource {
    const RowsMap *map;
    const unsigned short *x;  // [rows][stride]
    int stride, rows;
};

// Starts to bring 64 inputs of ROWS rows from `row` on, zeros for those that are not there, to rows of 128 bytes whose pieces
// are exchanged as by `place_in_stage`. The barrier counts the bytes.
template <int ROWS>
__device__ __forceinline__ void copy_box(void *to, const BoxSource &source, int input, int row, Counter *barrier) {
#ifdef WARDROUND_EMULATED
    const int left = source.rows - row, bytes = (source.stride - input) * 2;
    emulator::copy_box(to, source.x + static_cast<size_t>(row) * source.stride + input, ROWS, left > 0 ? left : 0,
                       source.stride * 2, bytes > 0 ? bytes : 0, barrier);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                     address_in_cta(to)),
                 "l"(source.map), "r"(input), "r"(row), "r"(address_in_cta(barrier))
                 : "memory");
#endif
}
