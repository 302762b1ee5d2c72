// Attention over paged keys and values: decode by a CTA for each chunk of keys, the last of which merges them; prefill by
// a CTA for each block of queries, over all their chunks. The bits of a (row, head) depend neither on the kernel nor on the
// rows beside it: a chunk is one function's work, and chunks merge in ascending order in both.
//
//   kernel               grid                           threads  a CTA's work
//   attend_chunks_*      (rows, kv_heads, chunk_slots)  128      a chunk, for a row's heads that share a kv head
//   attend_rows_*        (kv_heads, blocks, 2)          128      up to 32 queries, of rows of one sequence or text
//   attend_rows_512      (kv_heads, blocks, 4)          128      up to 16: registers and shared memory have room for no more
//   attend_warpgroup_*   (kv_heads, blocks, 1)          128      up to 64, by wgmma: for compute capability 9.0
//   attend_warpgroup_256 (kv_heads, blocks, 2)          128      up to 32
//
// The suffix is DIM, head_dim rounded up: 32, 64, 128, 256 or 512, of warpgroups 64, 128 or 256. A group, the heads that share a kv
// head, is of 1 to 16. A block has 64 queries at most; the last ones, which see most, are taken first.
// Positions, sequences and tables must be there before a step's first kernel starts: attend_chunks_* reads them before
// `wait_for_inputs`, so that keys and values are on their way early.
#include "attention_decode.cuh"
#include "attention_warpgroup.cuh"

namespace attention {

template <int DIM>
__device__ __forceinline__ void attend_block(const Inputs &inputs, const uint2 *blocks, const Result &result) {
    constexpr int TILES = DIM > 256 ? 1 : 2;
    __shared__ Meeting<DIM, TILES> meeting;
    let_dependents_start();
    wait_for_inputs();
    const Packing packing = inputs.packing(blocks, 16 * TILES);
    if (!packing.holds(0)) return;
    const Views views(inputs, packing, 16 * TILES);
    gather(inputs, packing, views.common, meeting);

    const Cache<DIM> cache = inputs.cache<DIM>(packing.first_row, packing.kv_head);
    const Span seen = views.any;
    Merged merged[2 * TILES];
    float sums[TILES][DIM / 32][4] = {};
    for (unsigned chunk = seen.first / CHUNK; chunk * CHUNK < seen.end; ++chunk) {
        float chunk_sums[TILES][DIM / 32][4];
        Stats stats[2 * TILES];
        attend(cache, chunk, pages_seen(chunk, seen), inputs.scale, meeting, chunk_sums, stats);
        merge(merged, sums, stats, chunk_sums);
    }
    write<DIM>(packing, merged, sums, result);
}

}  // namespace attention

// Those from chunk_slots on: see `Partials`; out: see `Result`.
#define ATTEND_CHUNKS(DIM)                                                                                             \
    extern "C" __global__ void __launch_bounds__(attention::THREADS, attention::chunk_ctas(DIM)) attend_chunks_##DIM(                              \
        const uint4 *queries, const uint4 *keys, const uint4 *values, const unsigned *positions,                       \
        const unsigned *sequences, const unsigned *tables, int table_stride, int heads, int kv_heads, int head_dim,    \
        int window, float scale, int chunk_slots, float *partial_sums, attention::Stats *partial_stats,                \
        unsigned *tickets, Bf16 *out, int out_stride) {                                                                \
        attention::attend_chunk<DIM>({queries, keys, values, positions, sequences, tables, table_stride, heads,        \
                                      kv_heads, window, scale, nullptr},                                               \
                                     {chunk_slots, partial_sums, partial_stats, tickets},                                  \
                                     {out, out_stride, static_cast<unsigned>(head_dim)});                              \
    }                                                                                                                  \
    EMULATED_KERNEL(attend_chunks_##DIM)

// blocks (first row, rows) [gridDim.y]; out: see `Result`; lengths: see `Inputs`.
#define ATTEND_BLOCKS(name, DIM, CTAS, attend)                                                                         \
    extern "C" __global__ void __launch_bounds__(attention::THREADS, CTAS) name##_##DIM(                               \
        const uint4 *queries, const uint4 *keys, const uint4 *values, const unsigned *positions,                       \
        const unsigned *sequences, const unsigned *tables, int table_stride, int heads, int kv_heads, int head_dim,    \
        int window, float scale, const uint2 *blocks, Bf16 *out, int out_stride, const unsigned *lengths) {            \
        const attention::Inputs inputs = {queries,      keys,  values,   positions, sequences, tables,                 \
                                          table_stride, heads, kv_heads, window,    scale,     lengths};               \
        attention::attend<DIM>(inputs, blocks, {out, out_stride, static_cast<unsigned>(head_dim)});                    \
    }                                                                                                                  \
    EMULATED_KERNEL(name##_##DIM)

#define ATTEND_ROWS(DIM) ATTEND_BLOCKS(attend_rows, DIM, DIM >= 256 ? 2 : 3, attend_block)
#define ATTEND_WARPGROUP(DIM) ATTEND_BLOCKS(attend_warpgroup, DIM, 2, attend_by_warpgroup)

ATTEND_CHUNKS(32)
ATTEND_CHUNKS(64)
ATTEND_CHUNKS(128)
ATTEND_CHUNKS(256)
ATTEND_CHUNKS(512)
ATTEND_ROWS(32)
ATTEND_ROWS(64)
ATTEND_ROWS(128)
ATTEND_ROWS(256)
ATTEND_ROWS(512)
ATTEND_WARPGROUP(64)
ATTEND_WARPGROUP(128)
ATTEND_WARPGROUP(256)
