// Decoding's attention that norms and turns its own queries, and stores its row's key and value: a kernel less between the
// product that makes them and the one that takes the result. The bits are those of rotary.cu and of attend_chunks_*.
//
// Queries come first here, and only then keys are asked for: registers hold the ones or the others. Each CTA of a row turns the
// queries for itself. The one whose chunk has the row's position turns and stores its key and value, too, and reads them from
// memory like all others, behind its own barrier. No other CTA of the launch may see that position: each row is of a sequence
// of its own.
#pragma once

#include "attention_decode.cuh"
#include "rotary.cuh"

namespace attention {

static_assert(rotary::PAGE == PAGE);

// A row's heads as the product left them, what they are normed and turned by, and where its key and value go.
struct Turning {
    const float *qkv;  // [rows][heads + 2·kv_heads][head_dim]
    const float *query_weight, *key_weight;  // [head_dim], or null
    float epsilon;
    const float *cosines, *sines;  // [position][head_dim / 2]
    Bf16 *keys, *values;           // the pages of `Inputs`
    int head_dim;                  // a multiple of 4

    static constexpr bool COME_FIRST = true;
    using Early = rotary::Angles;

    // Zeros for queries that the tile lacks and dims that heads lack. What no kernel writes is asked for.
    template <int DIM>
    __device__ __forceinline__ Early prepare(const RowsChunk &row, Meeting<DIM, 1> &meeting) const {
        uint4 *queries = &meeting.queries[0][0][0][0];
        for (unsigned at = threadIdx.x; at < sizeof meeting.queries / sizeof(uint4); at += THREADS) queries[at] = {};
        // Lines of 32 numbers.
        const int at = static_cast<int>(threadIdx.x % 16) * 32;
        const float *weight = threadIdx.x < 16 ? query_weight : key_weight;
        if (threadIdx.x < 32 && weight != nullptr && at < head_dim) prefetch_to_l2(weight + at);
        __syncthreads();
        const int half = head_dim / 2;
        const size_t angle = static_cast<size_t>(row.pages.is_empty() ? 0 : row.position) * half;
        return rotary::load(cosines + angle, sines + angle, half);
    }

    template <int DIM>
    __device__ __forceinline__ void bring(const Inputs &inputs, const Packing &packing, const RowsChunk &row,
                                          const Cache<DIM> &cache, const PageIds &ids, const Early &angles,
                                          Meeting<DIM, 1> &meeting) const {
        const int half = head_dim / 2, slot = row.position % PAGE;
        const float *heads = qkv + static_cast<size_t>(row.row) * (inputs.heads + 2 * inputs.kv_heads) * head_dim;
        // Behind a group's queries come its key and its value, which the CTA with the row's own position has.
        const unsigned count = packing.group + (row.position / CHUNK == row.chunk ? 2 : 0);
        const size_t page = cache.offset_of(ids.of(row.position / PAGE % CHUNK_PAGES)) * 8;
#pragma unroll 1
        for (unsigned n = threadIdx.x / 32; n < count; n += WARPS) {
            const bool is_query = n < packing.group, is_value = n == packing.group + 1;
            const unsigned kind = is_value ? inputs.kv_heads : 0;
            const unsigned head = is_query ? packing.head(n) : inputs.heads + kind + blockIdx.y;
            const float *norm = is_query ? query_weight : key_weight;
            rotary::Part part = rotary::load(heads + head * head_dim, half);
            if (is_value) {
                rotary::put_value(values + page, part, half, slot);
                continue;
            }
            if (norm != nullptr) rotary::normalise(part, rotary::load(norm, half), epsilon, half);
            rotary::turn(part, angles);
            if (is_query) {
                rotary::write_pairs(part, half, [&](int at, float2 pair) {
                    *place_of_query(meeting, n, at) = pack_bf16(pair.x, pair.y);
                });
            } else {
                rotary::put_key(keys + page, part, half, slot);
            }
        }
    }

    // Where dims `at` and `at` + 1 of a query lie among fragments, as `gather_queries` has them.
    template <int DIM>
    static __device__ __forceinline__ unsigned *place_of_query(Meeting<DIM, 1> &meeting, unsigned query, int at) {
        const int block = at / 32, q = at % 32 / 8, pair = at % 8 / 2;
        uint4 &fragment = meeting.queries[block][0][pair / 2][query % 8 * 4 + q];
        return reinterpret_cast<unsigned *>(&fragment) + pair % 2 * 2 + query / 8;
    }
};

}  // namespace attention
