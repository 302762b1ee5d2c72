// Attention over paged keys and values: decode by a CTA for each chunk of keys and then their merge; prefill by a CTA
// for each block of queries, over all their chunks. The bits of a (row, head) depend neither on the kernel nor on the
// rows beside it: a chunk is one function's work, and chunks merge in ascending order in both.
//
//   kernel           grid                             threads  a CTA's work
//   attend_chunks_*  (rows, kv_heads, chunk_slots)    128      one chunk for one row's heads of a kv head
//   merge_chunks     (rows, ceil(heads · dim / 512))  128      512 of a row's numbers
//   attend_rows_*    (blocks, kv_heads)               128      32 / group or fewer rows of one sequence, likewise
//
// The suffix is DIM, head_dim rounded up: 32, 64, 128 or 256. A group, the heads that share a kv head, is 1 … 16 heads.
// No dynamic shared memory. Positions, sequences and tables must be there before a step's first kernel starts:
// attend_chunks_* reads them before `wait_for_inputs`, so that keys and values are on their way early.
#include "attention_chunk.cuh"

namespace attention {

// A layer's queries and pages, and a step's rows.
struct Inputs {
    const uint4 *queries;       // bf16 [rows][heads][DIM]
    const uint4 *keys;          // bf16 [page][kv_heads][DIM/32][32 positions][32 dims]
    const uint4 *values;        // bf16 [page][kv_heads][DIM][32 positions]
    const unsigned *positions;  // [rows]
    const unsigned *sequences;  // [rows]
    const unsigned *tables;     // page ids [sequences][table_stride]
    int table_stride, heads, kv_heads;
    int window;  // how many keys a row sees, itself included; 0: all before it
    float scale;

    template <int DIM>
    __device__ Cache cache(unsigned row, unsigned kv_head) const {
        const size_t offset = kv_head * (DIM * 4), stride = static_cast<size_t>(kv_heads) * (DIM * 4);
        return {keys + offset, values + offset, stride, tables + static_cast<size_t>(sequences[row]) * table_stride};
    }
};

// Which query the rows of a tile are, `index` counting through a block's rows and, within a row, a group's heads.
struct Packing {
    unsigned first_row, rows, group, first_head;

    __device__ bool holds(unsigned index) const { return index < rows * group; }
    __device__ unsigned row(unsigned index) const { return first_row + index / group; }
    __device__ unsigned head(unsigned index) const { return first_head + index % group; }
};

// Brings a block's queries, and zeros for those a tile lacks, to where all warps find them.
template <int DIM, int TILES>
__device__ __forceinline__ void gather(const Inputs &inputs, const Packing &packing, Meeting<DIM, TILES> &meeting) {
    const unsigned lane = threadIdx.x % 32;
    for (unsigned n = threadIdx.x / 32; n < 2 * TILES * (DIM / 32); n += WARPS) {
        const unsigned block = n / (2 * TILES), part = n % (2 * TILES), index = part * 8 + lane / 4;
        uint4 query = {0, 0, 0, 0};
        if (packing.holds(index)) {
            const size_t at = static_cast<size_t>(packing.row(index)) * inputs.heads + packing.head(index);
            query = inputs.queries[at * (DIM / 8) + block * 4 + lane % 4];
        }
        meeting.queries[block][part][lane] = query;
    }
    if (threadIdx.x < 16 * TILES) {
        const unsigned index = threadIdx.x;
        const unsigned position = packing.holds(index) ? inputs.positions[packing.row(index)] : PADDING;
        meeting.seen[index] = keys_seen(position, inputs.window);
    }
    __syncthreads();
}

// The first dim of a lane's pair in an n8 tile of the warp's quarter.
template <int DIM>
__device__ __forceinline__ unsigned first_dim(unsigned tile) {
    return threadIdx.x / 32 * (DIM / 4) + tile * 8 + threadIdx.x % 4 * 2;
}

// Asks for a head's keys and values of `pages`, 128 bytes a request.
template <int DIM>
__device__ __forceinline__ void prefetch(const Cache &cache, Span pages) {
    for (unsigned page = pages.first; page < pages.end; ++page) {
        const size_t offset = cache.offset(page);
#pragma unroll
        for (unsigned line = threadIdx.x; line < DIM; line += THREADS) {
            const uint4 *from = line < DIM / 2 ? cache.keys : cache.values;
            prefetch_to_l2(from + offset + line % (DIM / 2) * 8);
        }
    }
}

// Slot z is the row's chunk number z, from the one that holds the first key it sees.
template <int DIM>
__device__ __forceinline__ void attend_chunk(const Inputs &inputs, int chunk_slots, float *partial_sums,
                                             Stats *partial_stats) {
    __shared__ Meeting<DIM, 1> meeting;
    const unsigned row = blockIdx.x, kv_head = blockIdx.y, slot = blockIdx.z;
    const unsigned group = inputs.heads / inputs.kv_heads;
    const Span seen = keys_seen(inputs.positions[row], inputs.window);
    const unsigned chunk = seen.first / CHUNK + slot;
    const Span pages = pages_seen(chunk, seen);
    const Cache cache = inputs.cache<DIM>(row, kv_head);
    prefetch<DIM>(cache, pages);
    wait_for_inputs();
    let_dependents_start();
    if (pages.is_empty()) return;

    gather(inputs, {row, 1, group, kv_head * group}, meeting);
    float sums[1][DIM / 32][4];
    Stats stats[2];
    attend(cache, chunk, pages, inputs.scale, meeting, sums, stats);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const unsigned query = half * 8 + threadIdx.x % 32 / 4;
        if (query >= group) continue;
        const size_t at = (static_cast<size_t>(row) * chunk_slots + slot) * inputs.heads + kv_head * group + query;
        if (first_dim<DIM>(0) == 0) partial_stats[at] = stats[half];
#pragma unroll
        for (int n = 0; n < DIM / 32; ++n) {
            const float *pair = &sums[0][n][2 * half];
            *reinterpret_cast<float2 *>(partial_sums + at * DIM + first_dim<DIM>(n)) = {pair[0], pair[1]};
        }
    }
}

template <int DIM, int TILES>
__device__ __forceinline__ void attend_tiles(const Inputs &inputs, const Packing &packing, Span seen_by_any,
                                             int head_dim, Bf16 *out, int out_stride, Meeting<DIM, TILES> &meeting) {
    const Cache cache = inputs.cache<DIM>(packing.first_row, blockIdx.y);
    const unsigned g = threadIdx.x % 32 / 4;
    gather(inputs, packing, meeting);
    Merged merged[2 * TILES];
    float sums[TILES][DIM / 32][4] = {};
    for (unsigned chunk = seen_by_any.first / CHUNK; chunk * CHUNK < seen_by_any.end; ++chunk) {
        float chunk_sums[TILES][DIM / 32][4];
        Stats chunk_stats[2 * TILES];
        attend(cache, chunk, pages_seen(chunk, seen_by_any), inputs.scale, meeting, chunk_sums, chunk_stats);
#pragma unroll
        for (int row = 0; row < 2 * TILES; ++row) {
            if (!merged[row].merge(chunk_stats[row])) continue;
#pragma unroll
            for (int n = 0; n < DIM / 16; ++n) {
                float &sum = sums[row / 2][n / 2][row % 2 * 2 + n % 2];
                sum = merged[row].add(sum, chunk_sums[row / 2][n / 2][row % 2 * 2 + n % 2]);
            }
        }
    }
#pragma unroll
    for (int row = 0; row < 2 * TILES; ++row) {
        const unsigned index = row * 8 + g;
        if (!packing.holds(index)) continue;
        Bf16 *to = out + static_cast<size_t>(packing.row(index)) * out_stride + packing.head(index) * head_dim;
#pragma unroll
        for (int n = 0; n < DIM / 32; ++n) {
            const float *pair = &sums[row / 2][n][row % 2 * 2];
            const unsigned dim = first_dim<DIM>(n);
            if (dim < static_cast<unsigned>(head_dim)) *reinterpret_cast<unsigned *>(to + dim) = merged[row].divide(pair[0], pair[1]);
        }
    }
}

// What any of `rows` rows, 32 at most, sees.
__device__ __forceinline__ Span seen_by_any(const Inputs &inputs, unsigned first_row, unsigned rows) {
    const unsigned lane = threadIdx.x % 32;
    const Span seen = lane < rows ? keys_seen(inputs.positions[first_row + lane], inputs.window) : Span{0, 0};
    const unsigned first = __reduce_min_sync(0xFFFFFFFF, seen.is_empty() ? PADDING : seen.first);
    return {first, __reduce_max_sync(0xFFFFFFFF, seen.end)};
}

template <int DIM>
__device__ __forceinline__ void attend_block(const Inputs &inputs, int head_dim, const uint2 *blocks, Bf16 *out,
                                             int out_stride) {
    __shared__ union {
        Meeting<DIM, 1> small;
        Meeting<DIM, 2> large;
    } meeting;
    wait_for_inputs();
    let_dependents_start();
    const uint2 block = blocks[blockIdx.x];
    const unsigned group = inputs.heads / inputs.kv_heads;
    const Packing packing = {block.x, block.y, group, blockIdx.y * group};
    const Span seen = seen_by_any(inputs, block.x, block.y);
    if (block.y * group <= 16) {
        attend_tiles(inputs, packing, seen, head_dim, out, out_stride, meeting.small);
    } else {
        attend_tiles(inputs, packing, seen, head_dim, out, out_stride, meeting.large);
    }
}

}  // namespace attention

// partial_sums [rows][chunk_slots][heads][DIM]; partial_stats (maximum, total) [rows][chunk_slots][heads].
#define ATTEND_CHUNKS(DIM)                                                                                             \
    extern "C" __global__ void __launch_bounds__(attention::THREADS) attend_chunks_##DIM(                              \
        const uint4 *queries, const uint4 *keys, const uint4 *values, const unsigned *positions,                       \
        const unsigned *sequences, const unsigned *tables, int table_stride, int heads, int kv_heads, int window,      \
        float scale, int chunk_slots, float *partial_sums, attention::Stats *partial_stats) {                                 \
        attention::attend_chunk<DIM>({queries, keys, values, positions, sequences, tables, table_stride, heads,        \
                                      kv_heads, window, scale},                                                        \
                                     chunk_slots, partial_sums, partial_stats);                                        \
    }                                                                                                                  \
    TWIN_KERNEL(attend_chunks_##DIM)

// blocks (first row, rows) [gridDim.x]; out bf16 [rows][out_stride], heads · head_dim columns of it.
#define ATTEND_ROWS(DIM)                                                                                               \
    extern "C" __global__ void __launch_bounds__(attention::THREADS, 2) attend_rows_##DIM(                                \
        const uint4 *queries, const uint4 *keys, const uint4 *values, const unsigned *positions,                       \
        const unsigned *sequences, const unsigned *tables, int table_stride, int heads, int kv_heads, int head_dim,    \
        int window, float scale, const uint2 *blocks, Bf16 *out, int out_stride) {                                     \
        attention::attend_block<DIM>({queries, keys, values, positions, sequences, tables, table_stride, heads,        \
                                      kv_heads, window, scale},                                                        \
                                     head_dim, blocks, out, out_stride);                                               \
    }                                                                                                                  \
    TWIN_KERNEL(attend_rows_##DIM)

ATTEND_CHUNKS(32)
ATTEND_CHUNKS(64)
ATTEND_CHUNKS(128)
ATTEND_CHUNKS(256)
ATTEND_ROWS(32)
ATTEND_ROWS(64)
ATTEND_ROWS(128)
ATTEND_ROWS(256)

// What attend_chunks_* left becomes out, bf16 [rows][out_stride]; a thread merges four dims of a head.
extern "C" __global__ void __launch_bounds__(attention::THREADS)
    merge_chunks(const float *partial_sums, const attention::Stats *partial_stats, const unsigned *positions, unsigned heads,
                 unsigned head_dim, unsigned dim, int window, int chunk_slots, Bf16 *out, int out_stride) {
    using namespace attention;
    const unsigned row = blockIdx.x, column = (blockIdx.y * THREADS + threadIdx.x) * 4;
    const unsigned head = column / dim, first_dim = column % dim;
    wait_for_inputs();
    let_dependents_start();
    if (head >= heads || first_dim >= head_dim) return;
    const Span seen = keys_seen(positions[row], window);
    const unsigned chunks = (seen.end + CHUNK - 1) / CHUNK - seen.first / CHUNK;
    const size_t at = static_cast<size_t>(row) * chunk_slots * heads + head;
    Merged merged;
    float4 sums = {0, 0, 0, 0};
#pragma unroll 4
    for (unsigned slot = 0; slot < chunks; ++slot) {
        const Stats stats = partial_stats[at + slot * heads];
        const float4 chunk_sums = *reinterpret_cast<const float4 *>(partial_sums + (at + slot * heads) * dim + first_dim);
        if (!merged.merge(stats)) continue;
        sums = {merged.add(sums.x, chunk_sums.x), merged.add(sums.y, chunk_sums.y), merged.add(sums.z, chunk_sums.z),
                merged.add(sums.w, chunk_sums.w)};
    }
    unsigned *to = reinterpret_cast<unsigned *>(out + static_cast<size_t>(row) * out_stride + head * head_dim + first_dim);
    to[0] = merged.divide(sums.x, sums.y);
    if (first_dim + 2 < head_dim) to[1] = merged.divide(sums.z, sums.w);
}
TWIN_KERNEL(merge_chunks)
