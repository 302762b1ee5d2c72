// Per-head norms, rotary position embedding, and the write of keys and values to their pages.
#include "rotary.cuh"

namespace rotary {

// Heads of a CTA, a warp each.
constexpr int HEADS = 4;

// From qkv [rows][heads + 2·kv_heads][head_dim] to q_out [rows][heads][dim] and to pages, of one layer:
// k_pages [page][kv_head][dim/32][32 positions][32], v_pages [page][kv_head][dim][32 positions]. `head_dim` is a
// multiple of 4 up to 256, `dim` the same rounded up to 32; what is beyond `head_dim` stays as it is. `cosines` and
// `sines` are [position][head_dim / 2]; component i turns with i + head_dim / 2. `tables` [sequence][table_stride]
// holds page ids; these, positions and sequences must be there before a step's first kernel starts. The norms' weights
// [head_dim] may be null. Rows that only fill a bucket write nothing.
template <class Number>
__device__ __forceinline__ void store(const float *qkv, const float *query_weight, const float *key_weight,
                                      float epsilon, const float *cosines, const float *sines,
                                      const unsigned *positions, const unsigned *sequences, const unsigned *tables,
                                      int table_stride, int heads, int kv_heads, int head_dim, int dim, Number *q_out,
                                      Number *k_pages, Number *v_pages) {
    let_dependents_start();
    const size_t row = blockIdx.x;
    const int head = blockIdx.y * HEADS + threadIdx.x / 32, half = head_dim / 2;
    const unsigned position = load_past_l1(positions + row), sequence = load_past_l1(sequences + row);
    if (position == NOTHING || head >= heads + 2 * kv_heads) return;
    const bool is_query = head < heads, is_value = head >= heads + kv_heads;
    const float *norm = is_query ? query_weight : key_weight;
    const size_t angle = static_cast<size_t>(position) * half;
    // All that no kernel writes is there when the heads are.
    const Part weight = norm != nullptr && !is_value ? load(norm, half) : Part{};
    const Angles angles = load(cosines + angle, sines + angle, half);
    const size_t page = load_past_l1(tables + static_cast<size_t>(sequence) * table_stride + position / PAGE);
    wait_for_inputs();

    Part part = load(qkv + (row * (heads + 2 * kv_heads) + head) * head_dim, half);
    if (!is_value) {
        if (norm != nullptr) normalise(part, weight, epsilon, half);
        turn(part, angles);
    }
    if (is_query) {
        Number *out = q_out + (row * heads + head) * dim;
        write_pairs(part, half, [=](int at, float2 pair) { put(out + at, pair); });
        return;
    }
    const int kv_head = (head - heads) % kv_heads, slot = position % PAGE;
    const size_t start = (page * kv_heads + kv_head) * dim * PAGE;
    if (is_value) {
        put_value(v_pages + start, part, half, slot);
    } else {
        put_key(k_pages + start, part, half, slot);
    }
}

}  // namespace rotary

// Queries, keys and values are written as bf16, or as f32 for attention in f32.
#define ROTATE_AND_STORE(name, Number)                                                                                 \
    extern "C" __global__ void __launch_bounds__(rotary::HEADS * 32)                                                   \
        name(const float *qkv, const float *query_weight, const float *key_weight, float epsilon,                      \
             const float *cosines, const float *sines, const unsigned *positions, const unsigned *sequences,           \
             const unsigned *tables, int table_stride, int heads, int kv_heads, int head_dim, int dim, Number *q_out,  \
             Number *k_pages, Number *v_pages) {                                                                       \
        rotary::store(qkv, query_weight, key_weight, epsilon, cosines, sines, positions, sequences, tables,            \
                      table_stride, heads, kv_heads, head_dim, dim, q_out, k_pages, v_pages);                          \
    }                                                                                                                  \
    EMULATED_KERNEL(name)

ROTATE_AND_STORE(rotate_and_store, Bf16)
ROTATE_AND_STORE(rotate_and_store_f32, float)
