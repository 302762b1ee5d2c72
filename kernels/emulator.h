// The CUDA emulator: what the kernels use of CUDA, for g++, so that their results are tested without a GPU.
//
// Force-included before a .cu file. Each CUDA thread of a CTA is a fiber of one OS thread and each `__shared__`
// variable is thread-local, so launches from several OS threads do not meet; CTAs of one cluster would, and have to keep
// all in dynamic shared memory. The emulator is stricter than the hardware
// where that finds mistakes: a warp's collectives must name the whole warp and be met by all its lanes that have not
// returned, asynchronous copies and products are done no sooner than they are awaited (or, of copies, some at once, where
// turns are taken at random), what a product reads must not change meanwhile, and 16-byte accesses must be aligned.
#pragma once
#define WARDROUND_EMULATED 1

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#pragma GCC diagnostic ignored "-Wunknown-pragmas"

#define __global__ __attribute__((visibility("hidden")))
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
// An alignment stands before it: `alignas(16) __shared__ float sums[4];`.
#define __shared__ static thread_local

struct alignas(8) uint2 { unsigned x, y; };
struct uint3 { unsigned x, y, z; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };

inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

extern constinit thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;
constexpr int warpSize = 32;

namespace emulator {

// What the last lane of a warp to arrive does with what all lanes brought; `present` has a bit for each of them.
using Combine = void (*)(void *slots, unsigned present);

extern constinit thread_local unsigned lane;

// Room for 64 bytes a lane, a part of 64 bytes each; valid until the next but one meeting of the warp.
void *meeting_slots();
// Waits for the other lanes; all of them must pass the same `combine`.
void meet(void *slots, Combine combine);
// Waits for the CTA's other threads.
void barrier();
// Waits for all threads of the CTA's cluster.
void cluster_barrier();
// Barriers in shared memory that count arrivals and bytes, phase by phase: PTX's mbarrier.
void start_counted(void *barrier, unsigned count);
void arrive_counted(void *barrier, unsigned bytes);
// Waits for the end of the phase of that parity.
void await_counted(void *barrier, unsigned parity);
void copy_bytes(void *to, const void *from, unsigned bytes, void *barrier);
// Rows of 128 bytes; zeros for what is not there.
void copy_box(void *to, const void *from, unsigned rows, unsigned valid_rows, unsigned stride, unsigned valid_bytes,
              void *barrier);
unsigned cluster_size();
unsigned cluster_rank();
// What lies in another CTA's dynamic shared memory where `own` lies in this one's.
const void *of_cta(const void *own, unsigned rank);
// The CTA's dynamic shared memory.
unsigned char *dynamic_shared();
// Copies that land when they are awaited: all but the `pending` last groups.
void copy_later(void *to, const void *from, unsigned bytes, unsigned zeros);
void commit_copies();
void await_copies(unsigned pending);
// What a thread has stored, and copies of its that have landed, are for products only once they are fenced.
void note_store();
void fence_stores();
// Ends the process: a kernel did what the hardware would not survive.
[[noreturn]] void fail(const char *what);

inline void require_aligned(const void *pointer, unsigned bytes) {
    if (reinterpret_cast<uintptr_t>(pointer) % bytes != 0) fail("an access is not aligned");
}

inline void require_whole_warp(unsigned mask) {
    if (mask != 0xFFFFFFFFu) fail("a collective does not name the whole warp");
}

// What every lane of the warp brought, indexed by lane, after `combine`.
template <typename T>
T *exchange(const T &brought, Combine combine = nullptr) {
    static_assert(sizeof(T) <= 64);
    T *slots = static_cast<T *>(meeting_slots());
    slots[lane] = brought;
    meet(slots, combine);
    return slots;
}

// The same for all lanes: their values folded in ascending order.
template <typename T, T (*fold)(T, T)>
T reduce(T brought) {
    return exchange(brought, [](void *slots, unsigned present) {
        T *values = static_cast<T *>(slots);
        T result = values[__builtin_ctz(present)];
        for (unsigned rest = present & (present - 1); rest != 0; rest &= rest - 1)
            result = fold(result, values[__builtin_ctz(rest)]);
        for (unsigned each = 0; each < 32; ++each) values[each] = result;
    })[lane];
}

// What a lane brings to an m16n8k16 product of bf16 tiles, by PTX's fragments; `c` takes the result.
struct TileOperands {
    unsigned a[4], b[2];
    float c[4];
};

// A `Combine` over them: an output's sixteen products and what it held are summed in f64 and rounded once; or as Hopper's
// tensor cores sum them, where that is asked for: see kernels/emulator_sums.h.
void multiply_tiles(void *slots, unsigned present);

// A lane's part in an asynchronous product of its warpgroup: see kernels/wgmma.cuh.
struct AsyncProduct {
    unsigned a[4];
    float *c;
    uint64_t b;
    unsigned columns;
};

// Done when it is awaited; what it reads of shared memory must not have changed since.
void multiply_async(const AsyncProduct &product);
void begin_products();
void commit_products();
void await_products(unsigned pending);

float multiply_flushed(float a, float b);
float float_from_half(unsigned short half);

// A kernel by its name; `EMULATED_KERNEL` enters one.
struct Kernel {
    const char *name;
    void (*invoke)(void **arguments);
    const Kernel *next;
    Kernel(const char *name, void (*invoke)(void **));
};

template <typename... Arguments, size_t... index>
void invoke(void (*kernel)(Arguments...), void **arguments, std::index_sequence<index...>) {
    kernel(*static_cast<Arguments *>(arguments[index])...);
}
template <typename... Arguments>
constexpr auto indices(void (*)(Arguments...)) { return std::index_sequence_for<Arguments...>(); }
template <auto kernel>
void invoke(void **arguments) { invoke(kernel, arguments, indices(kernel)); }

}  // namespace emulator

#define EMULATED_KERNEL(name) static const emulator::Kernel emulated_kernel_##name(#name, emulator::invoke<name>);

#ifndef WARDROUND_CHECKED
// Each rounds once; the compiler is told not to contract (-ffp-contract=off). Kernels compute with nothing else
// (kernels/emulator_checks.h).
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
inline int __float2int_rn(float value) { return static_cast<int>(__builtin_rintf(value)); }

// The bodies of two instructions: see kernels/ptx.cuh.
inline float emulator::multiply_flushed(float a, float b) {
    const float product = a * b;
    return __builtin_fabsf(product) < 0x1p-126f ? __builtin_copysignf(0.0f, product) : product;
}
inline float emulator::float_from_half(unsigned short half) {
    if ((half & 0x7C00) == 0x7C00) return __builtin_bit_cast(float, (half & 0x8000u) << 16 | 0x7F800000u | (half & 0x3FFu) << 13);
    // The product puts the exponent's bias right, and makes subnormal numbers normal.
    const float magnitude = __builtin_bit_cast(float, (half & 0x7FFFu) << 13) * 0x1p112f;
    return (half & 0x8000) != 0 ? -magnitude : magnitude;
}
#endif
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __ddiv_rn(double a, double b) { return a / b; }

inline unsigned __float_as_uint(float value) { return __builtin_bit_cast(unsigned, value); }
inline int __float_as_int(float value) { return __builtin_bit_cast(int, value); }
inline float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }
inline long long __double_as_longlong(double value) { return __builtin_bit_cast(long long, value); }
inline double __longlong_as_double(long long bits) { return __builtin_bit_cast(double, bits); }

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits)); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>((uint64_t{a} * b) >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
template <typename T>
T min(T a, std::type_identity_t<T> b) { return b < a ? b : a; }
template <typename T>
T max(T a, std::type_identity_t<T> b) { return a < b ? b : a; }
template <typename T>
T __ldg(const T *from) { return *from; }

// Fibers of one OS thread take turns only where they wait, so a plain read and write is atomic.
template <typename T, typename Change>
T change_integer(T *at, Change change) {
    static_assert(std::is_integral_v<T>, "no float atomics: their sums depend on the order");
    const T old = *at;
    *at = change(old);
    return old;
}
template <typename T>
T atomicAdd(T *at, std::type_identity_t<T> value) { return change_integer(at, [=](T old) { return old + value; }); }
template <typename T>
T atomicMax(T *at, std::type_identity_t<T> value) { return change_integer(at, [=](T old) { return max(old, value); }); }
template <typename T>
T atomicMin(T *at, std::type_identity_t<T> value) { return change_integer(at, [=](T old) { return min(old, value); }); }
template <typename T>
T atomicOr(T *at, std::type_identity_t<T> value) { return change_integer(at, [=](T old) { return old | value; }); }
template <typename T>
T atomicExch(T *at, std::type_identity_t<T> value) { return change_integer(at, [=](T) { return value; }); }

inline void __syncthreads() { emulator::barrier(); }
inline void __threadfence() {}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) {
    emulator::require_whole_warp(mask);
    emulator::meet(emulator::meeting_slots(), nullptr);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int source) {
    emulator::require_whole_warp(mask);
    return emulator::exchange(value)[source & 31];
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int difference) {
    return __shfl_sync(mask, value, static_cast<int>(emulator::lane) ^ difference);
}
// A lane whose source lies outside the warp keeps its own value.
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance) {
    return __shfl_sync(mask, value, static_cast<int>(emulator::lane < distance ? emulator::lane : emulator::lane - distance));
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance) {
    return __shfl_sync(mask, value, static_cast<int>(emulator::lane + distance > 31 ? emulator::lane : emulator::lane + distance));
}

namespace emulator {
inline unsigned either(unsigned a, unsigned b) { return a | b; }
inline unsigned sum(unsigned a, unsigned b) { return a + b; }
inline unsigned smaller(unsigned a, unsigned b) { return min(a, b); }
inline unsigned larger(unsigned a, unsigned b) { return max(a, b); }
}  // namespace emulator

inline unsigned __ballot_sync(unsigned mask, int vote) {
    emulator::require_whole_warp(mask);
    return emulator::reduce<unsigned, emulator::either>(vote != 0 ? 1u << emulator::lane : 0u);
}
inline int __any_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) != 0; }
inline int __all_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote == 0) == 0; }
inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
    emulator::require_whole_warp(mask);
    return emulator::reduce<unsigned, emulator::sum>(value);
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value) {
    emulator::require_whole_warp(mask);
    return emulator::reduce<unsigned, emulator::smaller>(value);
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
    emulator::require_whole_warp(mask);
    return emulator::reduce<unsigned, emulator::larger>(value);
}
