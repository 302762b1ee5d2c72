// Per-head norms, rotary position embedding, and the write of keys and values to their pages.
#include "common.cuh"

namespace rotary {

// Heads of a CTA, a warp each.
constexpr int HEADS = 4;
// A lane holds components 2·lane and 2·lane + 1 of each half head, and those 64 further on.
constexpr int STEPS = 2;
constexpr int PAGE = 32;

// A lane's part of a head: the components `first` of the lower half and their partners in the upper half.
struct Part {
    float2 first[STEPS], second[STEPS];
};

// Where a lane's pair of components lies in a half head, and whether there is one.
__device__ __forceinline__ int pair_of_step(int step) { return (step * 32 + threadIdx.x % 32) * 2; }

__device__ __forceinline__ Part load(const float *head, int half) {
    Part part;
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        const int pair = pair_of_step(step);
        const bool within = pair < half;
        part.first[step] = within ? *reinterpret_cast<const float2 *>(head + pair) : make_float2(0.0f, 0.0f);
        part.second[step] = within ? *reinterpret_cast<const float2 *>(head + half + pair) : make_float2(0.0f, 0.0f);
    }
    return part;
}

__device__ __forceinline__ float add_squares(float sum, float2 pair) {
    return __fmaf_rn(pair.y, pair.y, __fmaf_rn(pair.x, pair.x, sum));
}

__device__ __forceinline__ float2 scaled(float2 pair, float scale, float2 weight) {
    return make_float2(__fmul_rn(__fmul_rn(pair.x, scale), weight.x), __fmul_rn(__fmul_rn(pair.y, scale), weight.y));
}

// The head's norm under `weight`.
__device__ __forceinline__ void normalise(Part &part, const Part &weight, float epsilon, int half) {
    float sum = 0.0f;
#pragma unroll
    for (int step = 0; step < STEPS; ++step) sum = add_squares(add_squares(sum, part.first[step]), part.second[step]);
    const float scale = inverse_root_mean(sum_over_warp(sum), 2 * half, epsilon);
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        part.first[step] = scaled(part.first[step], scale, weight.first[step]);
        part.second[step] = scaled(part.second[step], scale, weight.second[step]);
    }
}

// Turns component x of the lower half against its partner y by an angle.
__device__ __forceinline__ void turn(float &x, float &y, float cosine, float sine) {
    const float turned = __fsub_rn(__fmul_rn(x, cosine), __fmul_rn(y, sine));
    y = __fadd_rn(__fmul_rn(y, cosine), __fmul_rn(x, sine));
    x = turned;
}

// A lane's cosines and sines of a row's position.
struct Angles {
    float2 cosines[STEPS], sines[STEPS];
};

// From tables of one position, [half] each.
__device__ __forceinline__ Angles load(const float *cosines, const float *sines, int half) {
    Angles angles;
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        const int pair = pair_of_step(step);
        const bool within = pair < half;
        angles.cosines[step] = within ? *reinterpret_cast<const float2 *>(cosines + pair) : make_float2(0.0f, 0.0f);
        angles.sines[step] = within ? *reinterpret_cast<const float2 *>(sines + pair) : make_float2(0.0f, 0.0f);
    }
    return angles;
}

__device__ __forceinline__ void turn(Part &part, const Angles &angles) {
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        turn(part.first[step].x, part.second[step].x, angles.cosines[step].x, angles.sines[step].x);
        turn(part.first[step].y, part.second[step].y, angles.cosines[step].y, angles.sines[step].y);
    }
}

// Zeros for what is no number or infinite: attention gives the positions of a page that nobody has written yet a weight of
// zero, which would not hide what an earlier sequence left there.
__device__ __forceinline__ void keep_finite(Part &part) {
    const auto finite = [](float &value) { value = fabsf(value) <= LARGEST_BF16 ? value : 0.0f; };
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        finite(part.first[step].x), finite(part.first[step].y);
        finite(part.second[step].x), finite(part.second[step].y);
    }
}

// Gives `write` each pair of neighbours and the first one's place in the head.
template <typename Write>
__device__ __forceinline__ void write_pairs(const Part &part, int half, Write write) {
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        const int pair = pair_of_step(step);
        if (pair >= half) continue;
        write(pair, part.first[step]);
        write(half + pair, part.second[step]);
    }
}

// A pair side by side, or `apart`.
__device__ __forceinline__ void put(Bf16 *to, float2 pair) {
    *reinterpret_cast<unsigned *>(to) = pack_bf16(pair.x, pair.y);
}
__device__ __forceinline__ void put(float *to, float2 pair) { *reinterpret_cast<float2 *>(to) = pair; }
__device__ __forceinline__ void put(Bf16 *to, float2 pair, int apart) {
    const unsigned both = pack_bf16(pair.x, pair.y);
    to[0] = static_cast<Bf16>(both);
    to[apart] = static_cast<Bf16>(both >> 16);
}
__device__ __forceinline__ void put(float *to, float2 pair, int apart) {
    to[0] = pair.x;
    to[apart] = pair.y;
}

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
        keep_finite(part);
        write_pairs(part, half, [=](int at, float2 pair) { put(v_pages + start + at * PAGE + slot, pair, PAGE); });
    } else {
        write_pairs(part, half, [=](int at, float2 pair) {
            put(k_pages + start + at / 32 * (PAGE * 32) + slot * 32 + at % 32, pair);
        });
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
