// Attention of decoding rows, each of a sequence of its own, that turns their queries and stores their keys and values.
//
//   kernel           grid                             threads  a CTA's work
//   attend_turned_*  (rows, kv_heads, chunk_slots)    128      a chunk, for a row's heads that share a kv head
//
// The suffix and what must be there early: as in attention.cu. The rotary tables must, too, and norms' weights.
#include "attention_turned.cuh"

// As attend_chunks_*, with the row's heads in place of queries; what comes after its arguments: see `Turning`.
#define ATTEND_TURNED(DIM)                                                                                             \
    extern "C" __global__ void __launch_bounds__(attention::THREADS, attention::chunk_ctas(DIM)) attend_turned_##DIM(  \
        const float *qkv, uint4 *keys, uint4 *values, const unsigned *positions, const unsigned *sequences,            \
        const unsigned *tables, int table_stride, int heads, int kv_heads, int head_dim, int window, float scale,      \
        int chunk_slots, float *partial_sums, attention::Stats *partial_stats, unsigned *tickets, Bf16 *out,           \
        int out_stride, const float *query_weight, const float *key_weight, float epsilon, const float *cosines,       \
        const float *sines) {                                                                                          \
        attention::attend_chunk<DIM>({nullptr, keys, values, positions, sequences, tables, table_stride, heads,        \
                                      kv_heads, window, scale},                                                        \
                                     attention::Turning{qkv, query_weight, key_weight, epsilon, cosines, sines,        \
                                                        reinterpret_cast<Bf16 *>(keys),                                \
                                                        reinterpret_cast<Bf16 *>(values), head_dim},                   \
                                     {chunk_slots, partial_sums, partial_stats, tickets},                              \
                                     {out, out_stride, static_cast<unsigned>(head_dim)});                              \
    }                                                                                                                  \
    EMULATED_KERNEL(attend_turned_##DIM)

ATTEND_TURNED(32)
ATTEND_TURNED(64)
ATTEND_TURNED(128)
ATTEND_TURNED(256)
