// Per-head norms, rotary position embedding, and the write of keys and values to their pages.
#include "rotary.cuh"

namespace rotary {

// Heads of a CTA, a warp each.
constexpr int HEADS = 4;
// Rows and components of a head's values that a CTA takes where rows are many.
constexpr int VALUE_ROWS = 32, VALUE_PART = 64;

// What is the same for all of a step's rows.
struct Layout {
    const unsigned *positions, *sequences, *tables;
    int table_stride, heads, kv_heads, head_dim, dim, turned;

    __device__ __forceinline__ size_t page(unsigned position, unsigned sequence) const {
        return load_past_l1(tables + static_cast<size_t>(sequence) * table_stride + position / PAGE);
    }
};

// Values of one head in the block of that number, from where they lie row by row to pages, where they lie component by component: so that
// rows side by side are written together.
template <class Number>
__device__ __forceinline__ void store_values(const float *qkv, const Layout &layout, int block, int rows, Number *v_pages) {
    // From row to row an odd number of words of two bf16, so that reads meet in no bank.
    __shared__ Number values[VALUE_ROWS][VALUE_PART + 2];
    const int parts = (layout.head_dim + VALUE_PART - 1) / VALUE_PART;
    const int kv_head = block / parts % layout.kv_heads, first = block % parts * VALUE_PART;
    const int first_row = block / parts / layout.kv_heads * VALUE_ROWS, all_heads = layout.heads + 2 * layout.kv_heads;
    if (first_row >= rows) return;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int own_row = first_row + lane;
    const unsigned position = own_row < rows ? load_past_l1(layout.positions + own_row) : NOTHING;
    const size_t page = position == NOTHING ? 0 : layout.page(position, load_past_l1(layout.sequences + own_row));
    wait_for_inputs();

    const int left = min(layout.head_dim - first, VALUE_PART), at = threadIdx.x % 16 * 4;
    const float *head = qkv + static_cast<size_t>(layout.heads + layout.kv_heads + kv_head) * layout.head_dim + first;
#pragma unroll
    for (int pass = 0; pass < VALUE_ROWS / 8; ++pass) {
        const int row = pass * 8 + threadIdx.x / 16;
        if (first_row + row >= rows || at >= left) continue;
        const float4 four = *reinterpret_cast<const float4 *>(head + static_cast<size_t>(first_row + row) * all_heads * layout.head_dim + at);
        put(&values[row][at], make_float2(finite(four.x), finite(four.y)));
        put(&values[row][at + 2], make_float2(finite(four.z), finite(four.w)));
    }
    __syncthreads();
    if (position == NOTHING) return;
    Number *to = v_pages + (page * layout.kv_heads + kv_head) * layout.dim * PAGE + place_of_value(first, position % PAGE);
#pragma unroll 4
    for (int each = warp; each < left; each += HEADS) to[each * PAGE] = values[lane][each];
}

// From qkv [rows][heads + 2·kv_heads][head_dim] to q_out [rows][heads][dim] and to pages, of one layer:
// k_pages [page][kv_head][dim/32][32 positions][32], v_pages [page][kv_head][dim][32 positions]. `head_dim` is a
// multiple of 4 up to 128 · STEPS, `dim` the same rounded up to 32; what is beyond `head_dim` stays as it is. `cosines` and
// `sines` are [position][turned], `turned` even and at most head_dim / 2; component i turns with i + turned. `tables` [sequence][table_stride]
// holds page ids; these, positions and sequences must be there before a step's first kernel starts. The norms' weights
// [head_dim] may be null, that of values where these are not taken in `blocks`, and so may `growth` [position], what turned queries are multiplied by. Rows that only fill a bucket write nothing. Each row's queries and keys have CTAs of their own, and so
// have its values unless these are taken in `blocks`. Without heads of keys nothing goes to pages: queries are alone in their rows.
template <int STEPS, class Number>
__device__ __forceinline__ void store(const float *qkv, const float *query_weight, const float *key_weight,
                                      const float *value_weight, float epsilon, const float *cosines, const float *sines, const float *growth, const Layout &layout, bool blocks,
                                      Number *q_out, Number *k_pages, Number *v_pages) {
    let_dependents_start();
    const size_t row = blockIdx.x;
    const int heads = layout.heads, kv_heads = layout.kv_heads, head_dim = layout.head_dim, dim = layout.dim;
    const int of_row = heads + (blocks ? kv_heads : 2 * kv_heads), more = static_cast<int>(blockIdx.y) - (of_row + HEADS - 1) / HEADS;
    if (more >= 0) {
        return store_values(qkv, layout, more * gridDim.x + blockIdx.x, gridDim.x, v_pages);
    }
    const int head = blockIdx.y * HEADS + threadIdx.x / 32;
    const Pairs pairs = {head_dim / 2, layout.turned};
    if (head >= of_row) return;
    const float *own = qkv + (row * (heads + 2 * kv_heads) + head) * head_dim;
    // Where rows are many, most CTAs start when the heads are there: these are asked for first. Elsewhere all that no kernel writes
    // is there when they are.
    Part<STEPS> part;
    if (blocks) {
        wait_for_inputs();
        part = load<STEPS>(own, pairs);
    }
    const unsigned position = load_past_l1(layout.positions + row), sequence = load_past_l1(layout.sequences + row);
    if (position == NOTHING) return;
    const bool is_query = head < heads, is_value = head >= heads + kv_heads;
    const float *norm = is_query ? query_weight : is_value ? value_weight : key_weight;
    const size_t angle = static_cast<size_t>(position) * pairs.turned;
    const Part<STEPS> weight = norm != nullptr ? load<STEPS>(norm, pairs) : Part<STEPS>{};
    const Angles<STEPS> angles = load<STEPS>(cosines + angle, sines + angle, pairs.turned);
    const size_t page = layout.page(position, sequence);
    if (!blocks) {
        wait_for_inputs();
        part = load<STEPS>(own, pairs);
    }
    if (norm != nullptr) normalise(part, weight, epsilon, pairs.count);
    if (!is_value) turn(part, angles);
    if (is_query) {
        if (growth != nullptr) grow(part, growth[position]);
        Number *out = q_out + (row * heads + head) * dim;
        write_pairs(part, pairs, [=](int at, float2 pair) { put(out + at, pair); });
        return;
    }
    const int kv_head = (head - heads) % kv_heads, slot = position % PAGE;
    const size_t start = (page * kv_heads + kv_head) * dim * PAGE;
    if (is_value) {
        put_value(v_pages + start, part, pairs, slot);
    } else {
        put_key(k_pages + start, part, pairs, slot);
    }
}

}  // namespace rotary

// Queries, keys and values are written as bf16, or as f32 for attention in f32.
#define ROTATE_AND_STORE(name, STEPS, Number)                                                                                 \
    extern "C" __global__ void __launch_bounds__(rotary::HEADS * 32, STEPS == 2 ? 10 : 6)                              \
        name(const float *qkv, const float *query_weight, const float *key_weight, const float *value_weight,          \
             float epsilon, const float *cosines, const float *sines, const float *growth,                                            \
             const unsigned *positions, const unsigned *sequences,                                                     \
             const unsigned *tables, int table_stride, int heads, int kv_heads, int head_dim, int dim, int turned,     \
             int blocks, Number *q_out, Number *k_pages, Number *v_pages) {                                                        \
        rotary::store<STEPS>(qkv, query_weight, key_weight, value_weight, epsilon, cosines, sines, growth,             \
                      {positions, sequences, tables, table_stride, heads, kv_heads, head_dim, dim, turned}, blocks != 0,       \
                      q_out, k_pages, v_pages);                                                                        \
    }                                                                                                                  \
    EMULATED_KERNEL(name)

ROTATE_AND_STORE(rotate_and_store, 2, Bf16)
ROTATE_AND_STORE(rotate_and_store_512, 4, Bf16)
ROTATE_AND_STORE(rotate_and_store_f32, 2, float)
