// A head that a warp norms and turns, and what lies where in a page: what the rotary kernel and attention that turns its own
// rows share, so that their bits agree.
#pragma once

#include "common.cuh"

namespace rotary {

constexpr int PAGE = 32;

// A head's pairs of components: those below `turned` with the ones `turned` further on, which turn together, and then the others, which
// stay as they are, in the same way.
struct Pairs {
    int count, turned;

    __device__ __forceinline__ int first(int pair) const { return pair < turned ? pair : turned + pair; }
    __device__ __forceinline__ int second(int pair) const { return pair < turned ? turned + pair : count + pair; }
};

// A lane's part of a head of up to 128 · STEPS components: `first` of its pairs, and their partners. It holds pairs
// 2·lane and 2·lane + 1, and those 64 further on, STEPS times.
template <int STEPS>
struct Part {
    float2 first[STEPS], second[STEPS];
};

// The first of the two pairs that a lane holds at a time.
__device__ __forceinline__ int pair_of_step(int step) { return (step * 32 + threadIdx.x % 32) * 2; }

template <int STEPS>
__device__ __forceinline__ Part<STEPS> load(const float *head, Pairs pairs) {
    Part<STEPS> part;
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        const int pair = pair_of_step(step);
        const bool within = pair < pairs.count;
        part.first[step] = within ? *reinterpret_cast<const float2 *>(head + pairs.first(pair)) : make_float2(0.0f, 0.0f);
        part.second[step] = within ? *reinterpret_cast<const float2 *>(head + pairs.second(pair)) : make_float2(0.0f, 0.0f);
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
template <int STEPS>
__device__ __forceinline__ void normalise(Part<STEPS> &part, const Part<STEPS> &weight, float epsilon, int half) {
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

// Turns a component x against its partner y by an angle.
__device__ __forceinline__ void turn(float &x, float &y, float cosine, float sine) {
    const float turned = __fsub_rn(__fmul_rn(x, cosine), __fmul_rn(y, sine));
    y = __fadd_rn(__fmul_rn(y, cosine), __fmul_rn(x, sine));
    x = turned;
}

// A lane's cosines and sines of a row's position.
template <int STEPS>
struct Angles {
    float2 cosines[STEPS], sines[STEPS];
};

// From tables of one position, [turned] each; what is not turned stays.
template <int STEPS>
__device__ __forceinline__ Angles<STEPS> load(const float *cosines, const float *sines, int turned) {
    Angles<STEPS> angles;
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        const int pair = pair_of_step(step);
        const bool within = pair < turned;
        angles.cosines[step] = within ? *reinterpret_cast<const float2 *>(cosines + pair) : make_float2(1.0f, 1.0f);
        angles.sines[step] = within ? *reinterpret_cast<const float2 *>(sines + pair) : make_float2(0.0f, 0.0f);
    }
    return angles;
}

template <int STEPS>
__device__ __forceinline__ void turn(Part<STEPS> &part, const Angles<STEPS> &angles) {
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        turn(part.first[step].x, part.second[step].x, angles.cosines[step].x, angles.sines[step].x);
        turn(part.first[step].y, part.second[step].y, angles.cosines[step].y, angles.sines[step].y);
    }
}

template <int STEPS>
__device__ __forceinline__ void grow(Part<STEPS> &part, float growth) {
    const float2 all = make_float2(growth, growth);
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        part.first[step] = scaled(part.first[step], 1.0f, all);
        part.second[step] = scaled(part.second[step], 1.0f, all);
    }
}

// Zero for what is no number or infinite: attention gives the positions of a page that nobody has written yet a weight of
// zero, which would not hide what an earlier sequence left there.
__device__ __forceinline__ float finite(float value) { return fabsf(value) <= LARGEST_BF16 ? value : 0.0f; }

template <int STEPS>
__device__ __forceinline__ void keep_finite(Part<STEPS> &part) {
    const auto keep = [](float2 &pair) { pair = make_float2(finite(pair.x), finite(pair.y)); };
#pragma unroll
    for (int step = 0; step < STEPS; ++step) keep(part.first[step]), keep(part.second[step]);
}

// Gives `write` each pair of neighbours and the first one's place in the head.
template <int STEPS, typename Write>
__device__ __forceinline__ void write_pairs(const Part<STEPS> &part, Pairs pairs, Write write) {
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        const int pair = pair_of_step(step);
        if (pair >= pairs.count) continue;
        write(pairs.first(pair), part.first[step]);
        write(pairs.second(pair), part.second[step]);
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

// Where component `at` of a key lies on its page of one head, [dim/32][32 positions][32], and of a value, [dim][32 positions].
__device__ __forceinline__ int place_of_key(int at, int slot) { return at / 32 * (PAGE * 32) + slot * 32 + at % 32; }
__device__ __forceinline__ int place_of_value(int at, int slot) { return at * PAGE + slot; }

template <class Number, int STEPS>
__device__ __forceinline__ void put_key(Number *page, const Part<STEPS> &part, Pairs pairs, int slot) {
    write_pairs(part, pairs, [=](int at, float2 pair) { put(page + place_of_key(at, slot), pair); });
}

// Finite, whatever it was.
template <class Number, int STEPS>
__device__ __forceinline__ void put_value(Number *page, Part<STEPS> &part, Pairs pairs, int slot) {
    keep_finite(part);
    write_pairs(part, pairs, [=](int at, float2 pair) { put(page + place_of_value(at, slot), pair, PAGE); });
}

}  // namespace rotary
