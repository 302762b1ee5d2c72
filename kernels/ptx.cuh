// The instructions that CUDA C++ has no name for, one small function each, with a body for the emulator.
#pragma once

#ifndef WARDROUND_EMULATED
#define EMULATED_KERNEL(name)
#endif

// Where as many CTAs as on Hopper would not share a multiprocessor: before it shared memory is short, and for Blackwell the
// compiler wants more registers.
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1000)
#define FEWER_CTAS
#endif

// Waits until what earlier kernels wrote is visible. Before it, only weights and constants may be read.
__device__ __forceinline__ void wait_for_inputs() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel's CTAs start on processors that have room, up to their own wait.
__device__ __forceinline__ void let_dependents_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Sixteen bytes of what is read once, past the first cache. Stays before a later `wait_for_inputs`.
__device__ __forceinline__ uint4 load_streaming(const void *from) {
#ifdef WARDROUND_EMULATED
    emulator::require_aligned(from, 16);
    return *static_cast<const uint4 *>(from);
#else
    uint4 value;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(from));
    return value;
#endif
}

// Sixteen bytes. Such loads stay in the order they are written in, among themselves and before products that follow, so
// that many are under way at once; the compiler would put each right before its first use.
__device__ __forceinline__ uint4 load_in_order(const uint4 *from) {
#ifdef WARDROUND_EMULATED
    emulator::require_aligned(from, 16);
    return *from;
#else
    uint4 value;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(from));
    return value;
#endif
}

// The same past the first cache, for what no other warp of the multiprocessor reads soon.
__device__ __forceinline__ uint4 load_once_in_order(const uint4 *from) {
#ifdef WARDROUND_EMULATED
    return load_in_order(from);
#else
    uint4 value;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(from));
    return value;
#endif
}

// A word past the first cache, which before the wait may still hold what stood there a step ago.
__device__ __forceinline__ unsigned load_past_l1(const unsigned *from) {
#ifdef WARDROUND_EMULATED
    return *from;
#else
    return __ldcg(from);
#endif
}

// Asks for the 128 bytes around an address to be in the second cache. Reads nothing, so it may come before the wait.
__device__ __forceinline__ void prefetch_to_l2([[maybe_unused]] const void *at) {
#ifndef WARDROUND_EMULATED
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
#endif
}

// The next ticket, 0 at first. What this thread wrote, or saw by a barrier, is seen by whoever draws a later one; and the
// other way round.
__device__ __forceinline__ unsigned draw_ticket(unsigned *tickets) {
#ifdef WARDROUND_EMULATED
    return atomicAdd(tickets, 1u);
#else
    unsigned ticket;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(ticket) : "l"(tickets) : "memory");
    return ticket;
#endif
}

// The thread's number, read anew: what is made of it takes no registers elsewhere.
__device__ __forceinline__ unsigned thread_anew() {
#ifdef WARDROUND_EMULATED
    return threadIdx.x;
#else
    unsigned thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
#endif
}

// Starts a copy of sixteen bytes to shared memory; zeros, and `from` is not read, where not `valid`.
__device__ __forceinline__ void copy_async_16(void *to_shared, const void *from, bool valid = true) {
#ifdef WARDROUND_EMULATED
    emulator::require_aligned(to_shared, 16);
    emulator::require_aligned(from, 16);
    emulator::copy_later(to_shared, from, valid ? 16 : 0, valid ? 0 : 16);
#else
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(to_shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
#endif
}

// The same through the first cache, for what other CTAs of the multiprocessor will read too.
__device__ __forceinline__ void copy_async_16_cached(void *to_shared, const void *from, bool valid = true) {
#ifdef WARDROUND_EMULATED
    copy_async_16(to_shared, from, valid);
#else
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(to_shared));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
#endif
}

// Closes a group of this thread's copies.
__device__ __forceinline__ void commit_copies() {
#ifdef WARDROUND_EMULATED
    emulator::commit_copies();
#else
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits for this thread's copies but those of its last `pending` groups. Others see them after a barrier.
template <int pending>
__device__ __forceinline__ void await_copies() {
#ifdef WARDROUND_EMULATED
    emulator::await_copies(pending);
#else
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

// The CTA's dynamic shared memory, aligned to 1024 bytes where there is none of fixed size.
__device__ __forceinline__ unsigned char *dynamic_shared() {
#ifdef WARDROUND_EMULATED
    return emulator::dynamic_shared();
#else
    extern __shared__ __align__(1024) unsigned char dynamic_shared_memory[];
    return dynamic_shared_memory;
#endif
}

// CTAs of this one's cluster, and its number among them. Before Hopper there are no clusters: each CTA is one.
__device__ __forceinline__ unsigned cluster_size() {
#ifdef WARDROUND_EMULATED
    return emulator::cluster_size();
#elif __CUDA_ARCH__ >= 900
    unsigned size;
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
    return size;
#else
    return 1;
#endif
}

__device__ __forceinline__ unsigned cluster_rank() {
#ifdef WARDROUND_EMULATED
    return emulator::cluster_rank();
#elif __CUDA_ARCH__ >= 900
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
#else
    return 0;
#endif
}

// Waits for the threads of all of the cluster's CTAs, which then see what each wrote to its shared memory.
__device__ __forceinline__ void cluster_barrier() {
#ifdef WARDROUND_EMULATED
    emulator::cluster_barrier();
#elif __CUDA_ARCH__ >= 900
    __syncwarp();  // a warp's lanes arrive as one, wherever they come from
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

// What CTA `rank` of the cluster has where this one has `own`, in dynamic shared memory; valid until a thread of that CTA
// returns.
template <typename T>
__device__ __forceinline__ const T *of_cta(const T *own, [[maybe_unused]] unsigned rank) {
#ifdef WARDROUND_EMULATED
    return static_cast<const T *>(emulator::of_cta(own, rank));
#elif __CUDA_ARCH__ >= 900
    const T *theirs;
    asm("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"(own), "r"(rank));
    return theirs;
#else
    return own;
#endif
}

// Four 8 × 8 matrices of bf16 from shared memory: lane 8·i + r says where row r of matrix i lies, sixteen bytes. Number i
// of the result is, in lane 4·g + q, the pair 2q, 2q+1 of row g of matrix i.
__device__ __forceinline__ uint4 load_matrices(const void *row) {
#ifdef WARDROUND_EMULATED
    emulator::require_aligned(row, 16);
    const void *const *rows = emulator::exchange(row);
    const auto pair = [rows](unsigned matrix) {
        return static_cast<const unsigned *>(rows[matrix * 8 + emulator::lane / 4])[emulator::lane % 4];
    };
    return {pair(0), pair(1), pair(2), pair(3)};
#else
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(row));
    uint4 value;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "r"(from)
                 : "memory");
    return value;
#endif
}

// The other way, and columns for rows: row r of matrix i, of which lane 8·i + r says where it goes, are the numbers that lanes of
// equal q have at column r, by g. Compute capability 9.0 alone.
__device__ __forceinline__ void store_matrices_transposed([[maybe_unused]] void *row, [[maybe_unused]] const unsigned (&matrices)[4]) {
#ifdef WARDROUND_EMULATED
    struct Brought {
        void *row;
        unsigned matrices[4];
    };
    emulator::require_aligned(row, 16);
    emulator::note_store();
    emulator::exchange(Brought{row, {matrices[0], matrices[1], matrices[2], matrices[3]}}, [](void *slots, unsigned) {
        const Brought *lanes = static_cast<const Brought *>(slots);
        for (unsigned lane = 0; lane < 32; ++lane) {
            const unsigned matrix = lane / 8, column = lane % 8;
            for (unsigned g = 0; g < 8; ++g) {
                const unsigned pair = lanes[g * 4 + column / 2].matrices[matrix];
                static_cast<unsigned short *>(lanes[lane].row)[g] = static_cast<unsigned short>(pair >> column % 2 * 16);
            }
        }
    });
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(matrices[0]),
                 "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
                 : "memory");
#endif
}

// Four of the eight bytes of `low` (numbers 0 … 3) and `high` (4 … 7), by the nibbles of `selector`, lowest first.
__device__ __forceinline__ unsigned byte_permute(unsigned low, unsigned high, unsigned selector) {
#ifdef WARDROUND_EMULATED
    const uint64_t bytes = static_cast<uint64_t>(high) << 32 | low;
    unsigned chosen = 0;
    for (int index = 0; index < 4; ++index) {
        chosen |= static_cast<unsigned>(bytes >> (selector >> index * 4 & 7) * 8 & 0xFF) << index * 8;
    }
    return chosen;
#else
    return __byte_perm(low, high, selector);
#endif
}

// Two numbers rounded to bf16, to nearest even; `low` in the low half.
__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
#ifdef WARDROUND_EMULATED
    const auto round = [](float value) {
        const unsigned bits = __float_as_uint(value);
        return value != value ? 0x7FFFu : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    };
    return round(low) | round(high) << 16;
#else
    unsigned packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
#endif
}

// a · b, and zero where that would be a subnormal number.
__device__ __forceinline__ float multiply_flushed(float a, float b) {
#ifdef WARDROUND_EMULATED
    return emulator::multiply_flushed(a, b);
#else
    float product;
    asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(product) : "f"(a), "f"(b));
    return product;
#endif
}

// An f16, given by its bits, as f32.
__device__ __forceinline__ float float_from_half(unsigned short half) {
#ifdef WARDROUND_EMULATED
    return emulator::float_from_half(half);
#else
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
#endif
}

// c[16 m][8 n] += a[16 m][16 k] · b[16 k][8 n], bf16 pairs by PTX's m16n8k16 fragments; lane = 4·g + q:
// a0..a3 = rows g, g+8, g, g+8 at k 2q (a0, a1) and 2q+8 (a2, a3); b0, b1 = column g at k 2q, 2q+8;
// c0, c1 = row g, c2, c3 = row g+8 at columns 2q, 2q+1.
__device__ __forceinline__ void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#ifdef WARDROUND_EMULATED
    const emulator::TileOperands operands{{a[0], a[1], a[2], a[3]}, {b0, b1}, {c[0], c[1], c[2], c[3]}};
    memcpy(c, emulator::exchange(operands, emulator::multiply_tiles)[emulator::lane].c, sizeof c);
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}
