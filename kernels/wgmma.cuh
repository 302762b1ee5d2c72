// Hopper's asynchronous products of a warpgroup (four warps), one small function each, with a body for the emulator.
// Only machine code for sm_90a has them; `HAS_WGMMA` says whether this is such.
//
// The order of a warpgroup: `fence_stores` and a barrier behind stores to shared memory, `begin_products`, `multiply_async` any
// number of times, `commit_products`, `await_products`. Until awaited, neither sums nor fragments nor what is read of
// shared memory may change.
#pragma once

#include <cstdint>

#include "ptx.cuh"

#if defined(WARDROUND_EMULATED) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr bool HAS_WGMMA = true;
#else
constexpr bool HAS_WGMMA = false;
#endif

// Stores four bytes of what products read.
__device__ __forceinline__ void store_operand(unsigned char *to_shared, unsigned value) {
#ifdef WARDROUND_EMULATED
    emulator::note_store();
#endif
    *reinterpret_cast<unsigned *>(to_shared) = value;
}

// Makes what this thread has stored to shared memory visible to products. For others a barrier must follow.
__device__ __forceinline__ void fence_stores() {
#ifdef WARDROUND_EMULATED
    emulator::fence_stores();
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// What the registers of sums and fragments hold now is what the next products take.
__device__ __forceinline__ void begin_products() {
#ifdef WARDROUND_EMULATED
    emulator::begin_products();
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

// Closes a group of products.
__device__ __forceinline__ void commit_products() {
#ifdef WARDROUND_EMULATED
    emulator::commit_products();
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

// Waits for all products but those of the last `pending` groups.
template <int pending>
__device__ __forceinline__ void await_products() {
#ifdef WARDROUND_EMULATED
    emulator::await_products(pending);
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
#endif
}

// The threads of a warpgroup have so many registers from here on: fewer, which others of the CTA may then take, or more.
template <int registers>
__device__ __forceinline__ void give_registers() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
#endif
}
template <int registers>
__device__ __forceinline__ void take_registers() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
#endif
}

// Gives a first operand registers of its own. Read where a load from memory puts it, it would make the compiler do the
// products one at a time (ptxas' remark C7513).
__device__ __forceinline__ void move_operand([[maybe_unused]] unsigned (&a)[4]) {
#ifndef WARDROUND_EMULATED
    asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3]));
#endif
}

// Rows of 128 bytes in shared memory, eight to 1024 bytes from an address aligned so, pieces of sixteen bytes exchanged
// by the row (`place_in_stage`): as the hardware's descriptor of a second operand whose inputs lie side by side. 32 is
// to be added, in bytes, for the next sixteen inputs.
__device__ __forceinline__ uint64_t describe_rows(const void *rows, int bytes) {
#ifdef WARDROUND_EMULATED
    const uint64_t address = static_cast<const unsigned char *>(rows) - emulator::dynamic_shared() + bytes;
#else
    const uint64_t address = static_cast<unsigned>(__cvta_generic_to_shared(rows)) + bytes;
#endif
    constexpr uint64_t eight_rows = 1024 / 16, swizzle_128 = 1;
    return (address & 0x3FFFF) >> 4 | 1ull << 16 | eight_rows << 32 | swizzle_128 << 62;
}

// Starts c[64 m][n] += a[64 m][16 k] · b[16 k][n] of twice as many columns as numbers, bf16. Warp w of the warpgroup has the rows 16w … 16w+15 of a
// and c, laid out as by `multiply_add` (ptx.cuh), with c[4·j …] for the columns 8j … 8j+7.
template <int NUMBERS>
__device__ __forceinline__ void multiply_async(float (&c)[NUMBERS], const unsigned (&a)[4], uint64_t b) {
    static_assert(NUMBERS == 8 || NUMBERS == 16 || NUMBERS == 32 || NUMBERS == 64);
#ifdef WARDROUND_EMULATED
    emulator::multiply_async({{a[0], a[1], a[2], a[3]}, c, b, 2 * NUMBERS});
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    if constexpr (NUMBERS == 8) {
        asm volatile("{.reg .pred add; setp.ne.b32 add, 1, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7},  "
                     "{%8, %9, %10, %11}, %12, add, 1, 1, 0;}"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]),
                       "+f"(c[6]), "+f"(c[7])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    } else if constexpr (NUMBERS == 16) {
        asm volatile("{.reg .pred add; setp.ne.b32 add, 1, 0; wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15},  "
                     "{%16, %17, %18, %19}, %20, add, 1, 1, 0;}"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]),
                       "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
                       "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    } else if constexpr (NUMBERS == 32) {
        asm volatile("{.reg .pred add; setp.ne.b32 add, 1, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31},  "
                     "{%32, %33, %34, %35}, %36, add, 1, 1, 0;}"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]),
                       "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
                       "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]),
                       "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
                       "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]),
                       "+f"(c[30]), "+f"(c[31])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    } else {
        asm volatile("{.reg .pred add; setp.ne.b32 add, 1, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                     "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                     " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                     " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                     " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63},  "
                     "{%64, %65, %66, %67}, %68, add, 1, 1, 0;}"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]),
                       "+f"(c[6]), "+f"(c[7]), "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]),
                       "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), "+f"(c[16]), "+f"(c[17]),
                       "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
                       "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]),
                       "+f"(c[30]), "+f"(c[31]), "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]),
                       "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), "+f"(c[40]), "+f"(c[41]),
                       "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]),
                       "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]),
                       "+f"(c[54]), "+f"(c[55]), "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]),
                       "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    }
#endif
}
