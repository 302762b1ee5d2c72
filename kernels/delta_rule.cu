// Layers of the gated delta rule: a short convolution, a matrix a head that each row decays, writes and reads, the norm and gate of what it
// reads; gates of attending heads; copies of states.
//
// By the steps, and so with the bits, of crates/ops/src/cpu/delta_rule.rs. A run is the rows of one sequence in a step. No sum runs over
// rows, and a sequence's rows are taken one after another by the same thread, so where a prompt is cut shows in no bit.
#include "common.cuh"

namespace delta {

constexpr int THREADS = 256;
// The most that these kernels take: rows that a convolution sees, and numbers of a head's keys.
constexpr int MOST_TAPS = 4, MOST_KEYS = 128;

// What lies in a row `projected` of a step, f32: queries and keys [key_heads][key_dim], values [value_heads][value_dim], which are mixed;
// gates [value_heads][value_dim]; strengths of writing, and steps of decay, [value_heads].
struct Shape {
    int key_heads, value_heads, key_dim, value_dim, taps;

    __device__ __forceinline__ int keys() const { return key_heads * key_dim; }
    __device__ __forceinline__ int values() const { return value_heads * value_dim; }
    __device__ __forceinline__ int channels() const { return 2 * keys() + values(); }
    __device__ __forceinline__ int strengths() const { return channels() + values(); }
    __device__ __forceinline__ int projected() const { return strengths() + 2 * value_heads; }
    // Of a sequence: the convolution's last inputs [taps − 1][channels], then of each value head its matrix, [value_dim / 16][key_dim][16].
    __device__ __forceinline__ size_t matrix(int head) const {
        return static_cast<size_t>(taps - 1) * channels() + static_cast<size_t>(head) * key_dim * value_dim;
    }
    __device__ __forceinline__ size_t state() const { return matrix(value_heads); }
};

// Rows of a sequence, those from `kept` on drafts, which leave no trace in its state. Those of a bucket's filling have no rows.
struct Run {
    unsigned first, end, kept;
    size_t slot;
    bool is_new;

    __device__ __forceinline__ Run(const unsigned *runs, const unsigned *positions) {
        const unsigned *own = runs + 4 * static_cast<size_t>(blockIdx.x);
        first = load_past_l1(own), end = load_past_l1(own + 1), kept = load_past_l1(own + 2), slot = load_past_l1(own + 3);
        is_new = first != end && load_past_l1(positions + first) == 0;
    }
};

__device__ __forceinline__ void put(Bf16 *out, float value) { *out = bf16_from_float(value); }
__device__ __forceinline__ void put(float *out, float value) { *out = value; }
__device__ __forceinline__ float number(Bf16 bits) { return low_bf16(bits); }
__device__ __forceinline__ float number(float value) { return value; }

// An f64 whose every step is rounded: nothing of it is contracted.
struct Double {
    double value;

    __device__ __forceinline__ Double(double value) : value(value) {}
    friend __device__ __forceinline__ Double operator+(Double a, Double b) { return __dadd_rn(a.value, b.value); }
    friend __device__ __forceinline__ Double operator-(Double a, Double b) { return __dsub_rn(a.value, b.value); }
    friend __device__ __forceinline__ Double operator*(Double a, Double b) { return __dmul_rn(a.value, b.value); }
    friend __device__ __forceinline__ Double operator/(Double a, Double b) { return __ddiv_rn(a.value, b.value); }
    // Sign, exponent and the highest bits of the fraction.
    __device__ __forceinline__ unsigned high() const { return static_cast<unsigned>(__double_as_longlong(value) >> 32); }
};

constexpr double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;

// eˣ by the steps of the crate libm. Beyond 700 nothing changes of what is made of it here, rounded to f32.
__device__ __forceinline__ Double exponential(Double x) {
    x = x.value > 700.0 ? 700.0 : x.value < -700.0 ? -700.0 : x.value;
    const unsigned size = x.high() & 0x7FFFFFFF;
    const bool is_negative = x.value < 0.0;
    if (size <= 0x3E300000) return 1.0 + x;
    int n = 0;
    Double high = x, low = 0.0;
    if (size > 0x3FD62E42) {  // half of ln 2
        n = is_negative ? -1 : 1;
        if (size >= 0x3FF0A2B2) {  // one and a half of it
            n = static_cast<int>((1.44269504088896338700e+00 * x + (is_negative ? -0.5 : 0.5)).value);
        }
        high = x - static_cast<double>(n) * Double(LN2_HIGH);
        low = static_cast<double>(n) * Double(LN2_LOW);
        x = high - low;
    }
    const Double square = x * x;
    constexpr double coefficients[5] = {4.13813679705723846039e-08, -1.65339022054652515390e-06, 6.61375632143793436117e-05,
                                        -2.77777777770155933842e-03, 1.66666666666666019037e-01};
    Double series = coefficients[0];
#pragma unroll
    for (int index = 1; index < 5; ++index) series = coefficients[index] + square * series;
    const Double rest = x - square * series;
    const long long power_of_two = static_cast<long long>(n + 1023) << 52;
    return (1.0 + (x * rest / (2.0 - rest) - low + high)) * __longlong_as_double(power_of_two);
}

// ln(1 + x) of what is not below 0, by the steps of the crate libm.
__device__ __forceinline__ Double logarithm_of_one_and(Double x) {
    const unsigned size = x.high();
    if (size >= 0x7FF00000 || size < 0x3CA00000) return x;
    int n = 0;
    Double fraction = x, lost = 0.0;
    if (size >= 0x3FDA827A) {  // √2 − 1
        const Double sum = 1.0 + x;
        const unsigned shifted = sum.high() + (0x3FF00000 - 0x3FE6A09E);
        n = static_cast<int>(shifted >> 20) - 0x3FF;
        if (n < 54) lost = (n >= 2 ? 1.0 - (sum - x) : x - (sum - 1.0)) / sum;
        const long long high = (shifted & 0xFFFFF) + 0x3FE6A09E, low = __double_as_longlong(sum.value) & 0xFFFFFFFF;
        fraction = Double(__longlong_as_double(high << 32 | low)) - 1.0;
    }
    const Double half_square = 0.5 * fraction * fraction, s = fraction / (2.0 + fraction), z = s * s, w = z * z;
    const Double even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const Double odd = z * (6.666666666666735130e-01 +
                            w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    const Double whole = static_cast<double>(n);
    return s * (half_square + (odd + even)) + (whole * LN2_LOW + lost) - half_square + fraction + whole * LN2_HIGH;
}

__device__ __forceinline__ float sigmoid(float x) {
    const Double power = exponential(-static_cast<double>(x));
    return static_cast<float>((1.0 / (1.0 + power)).value);
}

// e^(−rate · ln(1 + eˣ))
__device__ __forceinline__ float decay(float x, float rate) {
    const Double wide = static_cast<double>(x);
    // Beyond, the logarithm is x in f64 too.
    const Double step = wide.value > 40.0 ? wide : logarithm_of_one_and(exponential(wide));
    return static_cast<float>(exponential(-static_cast<double>(rate) * step).value);
}

// Strengths and steps of a row become what they do.
__device__ __forceinline__ void activate(float *projected, const float *rates, const float *biases, Shape shape) {
    float *row = projected + static_cast<size_t>(blockIdx.x) * shape.projected() + shape.strengths();
    for (int at = threadIdx.x; at < 2 * shape.value_heads; at += THREADS) {
        const int head = at - shape.value_heads;
        row[at] = head < 0 ? sigmoid(row[at]) : decay(__fadd_rn(row[at], biases[head]), rates[head]);
    }
}

// Rows whose inputs are asked for at once.
constexpr int AHEAD = 16;

// Mixes each channel of a run with its last inputs, in place, a thread a channel. weights [taps][channels], a row's own last.
__device__ __forceinline__ void convolve(float *projected, const float *weights, const Run &run, float *states, Shape shape) {
    const int channels = shape.channels(), channel = blockIdx.y * THREADS + threadIdx.x, absent = MOST_TAPS - shape.taps;
    if (channel >= channels) return;
    float *kept = states + run.slot * shape.state() + channel, *own = projected + channel;
    float weight[MOST_TAPS], inputs[MOST_TAPS];
#pragma unroll
    for (int tap = 0; tap < MOST_TAPS; ++tap) {
        weight[tap] = tap < absent ? 0.0f : weights[(tap - absent) * channels + channel];
        inputs[tap] = tap <= absent || run.is_new ? 0.0f : kept[(tap - absent - 1) * channels];
    }
    const auto keep = [&] {
#pragma unroll
        for (int tap = 1; tap < MOST_TAPS; ++tap) {
            if (tap > absent) kept[(tap - absent - 1) * channels] = inputs[tap];
        }
    };
    for (unsigned first = run.first; first < run.end; first += AHEAD) {
        float ahead[AHEAD];
#pragma unroll
        for (unsigned n = 0; n < AHEAD; ++n) {
            ahead[n] = first + n < run.end ? own[static_cast<size_t>(first + n) * shape.projected()] : 0.0f;
        }
#pragma unroll
        for (unsigned n = 0; n < AHEAD; ++n) {
            const unsigned row = first + n;
            if (row >= run.end) break;
            if (row == run.kept) keep();
            float sum = 0.0f;
#pragma unroll
            for (int tap = 0; tap < MOST_TAPS; ++tap) {
                inputs[tap] = tap + 1 < MOST_TAPS ? inputs[tap + 1] : ahead[n];
                if (tap >= absent) sum = __fmaf_rn(inputs[tap], weight[tap], sum);
            }
            own[static_cast<size_t>(row) * shape.projected()] = gate_by(sum, sum, 1.0f);
        }
    }
    if (run.kept == run.end) keep();
}

// 1 / √(mean of squares + epsilon) of `width` numbers, a multiple of 16, by half a warp: the sum is that of the CPU's sixteen lanes.
__device__ __forceinline__ float inverse_length(const float *numbers, int width, float epsilon) {
    float sum = 0.0f;
    for (int at = threadIdx.x % 16; at < width; at += 16) sum = __fmaf_rn(numbers[at], numbers[at], sum);
#pragma unroll
    for (int distance = 8; distance > 0; distance /= 2) sum = __fadd_rn(sum, __shfl_xor_sync(0xFFFFFFFFu, sum, distance));
    return inverse_root_mean(sum, width, epsilon);
}

// A CTA of the rule: columns of a head's matrix, four threads each; these hold every fourth key's number.
constexpr int COLUMNS = 32, PARTS = 4, RULE_THREADS = COLUMNS * PARTS, HELD = MOST_KEYS / PARTS;
// Rows whose queries and keys lie in shared memory at once, a half warp's each.
constexpr int ROWS = RULE_THREADS / 16;

// Numbers of queries or keys [part][n], of components n · PARTS + part. What four parts read at once lies in banks of its own.
struct Vector {
    float parts[PARTS][HELD + 4];
};

// Rows on their way through a CTA.
struct Rows {
    Vector queries[ROWS], keys[ROWS];
    float strengths[ROWS], decays[ROWS];
};

// A half warp's vector, mixed, of length 1 times `length`.
__device__ __forceinline__ void load_unit(const float *from, int width, float length, Vector &to) {
    const float scale = inverse_length(from, width, __fdiv_rn(1e-6f, static_cast<float>(width)));
    for (int at = threadIdx.x % 16; at < width; at += 16) {
        to.parts[at % PARTS][at / PARTS] = __fmul_rn(__fmul_rn(from[at], scale), length);
    }
}

__device__ __forceinline__ float sum_over_parts(float value) {
    value = __fadd_rn(value, __shfl_xor_sync(0xFFFFFFFFu, value, 8));
    return __fadd_rn(value, __shfl_xor_sync(0xFFFFFFFFu, value, 16));
}

// Calls `visit` with the place in `Vector` of each number that a thread holds of its column. Where keys have all that a thread can hold,
// which is said as this is compiled, what comes next is asked for in time.
template <bool ALL, typename Visit>
__device__ __forceinline__ void for_each_held(int key_dim, Visit visit) {
#pragma unroll
    for (int four = 0; four < HELD; four += 4) {
        if (!ALL && four * PARTS >= key_dim) break;
#pragma unroll
        for (int n = four; n < four + 4; ++n) visit(n);
    }
}

// Takes columns of a head's matrix through the rows of a run, which leave what they read in place of their values. ALL: key_dim is MOST_KEYS.
template <bool ALL>
__device__ __forceinline__ void write_and_read(float *projected, const Run &run, float *states, Shape shape, Rows &rows) {
    const int head = blockIdx.y, key_head = head / (shape.value_heads / shape.key_heads), lane = threadIdx.x % 32;
    const int part = lane / 8, column = blockIdx.z * COLUMNS + threadIdx.x / 32 * 8 + lane % 8, key_dim = shape.key_dim;
    const bool is_there = column < shape.value_dim;
    const int value_at = 2 * shape.keys() + head * shape.value_dim + column;
    const float root = __fsqrt_rn(static_cast<float>(key_dim)), query_length = __fdiv_rn(1.0f, __fmul_rn(root, root));
    const float key_length = __fdiv_rn(1.0f, root);
    float *kept = states + run.slot * shape.state() + shape.matrix(head) + column / 16 * 16 * key_dim + column % 16;
    float matrix[HELD];
    for_each_held<ALL>(key_dim, [&](int n) { matrix[n] = run.is_new || !is_there ? 0.0f : kept[(n * PARTS + part) * 16]; });
    const auto keep = [&] {
        if (is_there) for_each_held<ALL>(key_dim, [&](int n) { kept[(n * PARTS + part) * 16] = matrix[n]; });
    };
    const auto take = [&](unsigned first, unsigned end) {
        const unsigned last = min(ROWS, end - first) - 1;
        float values[ROWS];
#pragma unroll
        for (unsigned n = 0; n < ROWS; ++n) {
            const bool within = is_there && n <= last;
            values[n] = within ? projected[static_cast<size_t>(first + n) * shape.projected() + value_at] : 0.0f;
        }
        // The rows before have been read.
        __syncthreads();
        const unsigned own = threadIdx.x / 16;
        const float *row = projected + static_cast<size_t>(first + min(own, last)) * shape.projected();
        load_unit(row + key_head * key_dim, key_dim, query_length, rows.queries[own]);
        load_unit(row + shape.keys() + key_head * key_dim, key_dim, key_length, rows.keys[own]);
        if (threadIdx.x % 16 == 0) {
            rows.strengths[own] = row[shape.strengths() + head];
            rows.decays[own] = row[shape.strengths() + shape.value_heads + head];
        }
        __syncthreads();
        float value = values[0], held = 0.0f;
        const auto hold = [&](int at, float decay, const float *key) {
            matrix[at] = __fmul_rn(matrix[at], decay);
            held = __fmaf_rn(matrix[at], key[at], held);
        };
        const auto written = [&](unsigned n) { return __fmul_rn(__fsub_rn(value, sum_over_parts(held)), rows.strengths[n]); };
        const auto leave = [&](unsigned n, float read) {
            read = sum_over_parts(read);
            if (is_there && part == 0) projected[static_cast<size_t>(first + n) * shape.projected() + value_at] = read;
        };
        for_each_held<ALL>(key_dim, [&](int at) { hold(at, rows.decays[0], rows.keys[0].parts[part]); });
        // What a row reads and what the next one holds are long sums that do not wait for each other: they are taken side by side.
#pragma unroll
        for (unsigned n = 0; n + 1 < ROWS; ++n) {
            if (n == last) break;
            const float *query = rows.queries[n].parts[part], *key = rows.keys[n].parts[part];
            const float addend = written(n), decay = rows.decays[n + 1];
            float read = 0.0f;
            held = 0.0f;
            for_each_held<ALL>(key_dim, [&](int at) {
                matrix[at] = __fmaf_rn(addend, key[at], matrix[at]);
                read = __fmaf_rn(matrix[at], query[at], read);
                hold(at, decay, rows.keys[n + 1].parts[part]);
            });
            leave(n, read);
            value = values[n + 1];
        }
        const float addend = written(last);
        float read = 0.0f;
        for_each_held<ALL>(key_dim, [&](int at) {
            matrix[at] = __fmaf_rn(addend, rows.keys[last].parts[part][at], matrix[at]);
            read = __fmaf_rn(matrix[at], rows.queries[last].parts[part][at], read);
        });
        leave(last, read);
    };
    // Rows that are kept, then drafts.
#pragma unroll 1
    for (int drafts = 0; drafts < 2; ++drafts) {
        const unsigned end = drafts ? run.end : run.kept;
        for (unsigned first = drafts ? run.kept : run.first; first < end; first += ROWS) take(first, end);
        if (!drafts) keep();
    }
}

// out [rows][out_stride] = the norm of what each head read, under `weight` [value_dim], times its activated gate. Half a warp takes a head.
template <class Number>
__device__ __forceinline__ void norm_and_gate(const float *projected, const float *weight, float epsilon, Shape shape, Number *out,
                                              int out_stride) {
    const float *row = projected + static_cast<size_t>(blockIdx.x) * shape.projected();
    out += static_cast<size_t>(blockIdx.x) * out_stride;
    for (int first = 0; first < shape.value_heads; first += THREADS / 16) {
        // Warps meet whole; what the last head's half warps write more than once is the same.
        const int start = min(first + static_cast<int>(threadIdx.x / 16), shape.value_heads - 1) * shape.value_dim;
        const float *read = row + 2 * shape.keys() + start, *gates = row + shape.channels() + start;
        const float scale = inverse_length(read, shape.value_dim, epsilon);
        for (int at = threadIdx.x % 16; at < shape.value_dim; at += 16) {
            const float normed = __fmul_rn(__fmul_rn(read[at], scale), weight[at]);
            put(out + start + at, gate_by(gates[at], gates[at], normed));
        }
    }
}

// x [rows][stride] = x · sigmoid(gates [rows][width]).
template <class Number>
__device__ __forceinline__ void gate_heads(Number *x, int stride, const float *gates, int width) {
    const size_t row = blockIdx.x;
    for (int column = threadIdx.x; column < width; column += THREADS) {
        Number *at = x + row * stride + column;
        put(at, gate_by(number(*at), gates[row * width + column], 1.0f));
    }
}

}  // namespace delta

#define SHAPE int key_heads, int value_heads, int key_dim, int value_dim, int taps
#define SHAPED {key_heads, value_heads, key_dim, value_dim, taps}

extern "C" __global__ void __launch_bounds__(delta::THREADS)
    delta_activate(float *projected, const float *rates, const float *step_biases, SHAPE) {
    let_dependents_start();
    wait_for_inputs();
    delta::activate(projected, rates, step_biases, SHAPED);
}
EMULATED_KERNEL(delta_activate)

// Of `runs` [runs][4] and `positions` [rows], which must be there before a step's first kernel starts; `states` are those of a layer.
extern "C" __global__ void __launch_bounds__(delta::THREADS)
    delta_convolve(float *projected, const float *weights, const unsigned *runs, const unsigned *positions, float *states, SHAPE) {
    let_dependents_start();
    const delta::Run run(runs, positions);
    if (run.first == run.end) return;
    wait_for_inputs();
    delta::convolve(projected, weights, run, states, SHAPED);
}
EMULATED_KERNEL(delta_convolve)

extern "C" __global__ void __launch_bounds__(delta::RULE_THREADS)
    delta_rule(float *projected, const unsigned *runs, const unsigned *positions, float *states, SHAPE) {
    let_dependents_start();
    const delta::Run run(runs, positions);
    if (run.first == run.end) return;
    wait_for_inputs();
    __shared__ delta::Rows rows;
    if (key_dim == delta::MOST_KEYS) {
        delta::write_and_read<true>(projected, run, states, SHAPED, rows);
    } else {
        delta::write_and_read<false>(projected, run, states, SHAPED, rows);
    }
}
EMULATED_KERNEL(delta_rule)

// The state of a slot, in one of the layers [layers][slots], to another slot.
extern "C" __global__ void __launch_bounds__(delta::THREADS) copy_states(float *states, int from, int to, int slots, int size) {
    let_dependents_start();
    wait_for_inputs();
    float *layer = states + static_cast<size_t>(blockIdx.x) * slots * size;
    for (int at = blockIdx.y * delta::THREADS + threadIdx.x; at < size; at += gridDim.y * delta::THREADS) {
        layer[static_cast<size_t>(to) * size + at] = layer[static_cast<size_t>(from) * size + at];
    }
}
EMULATED_KERNEL(copy_states)

// What products read is written as bf16, or as f32 for products in f32.
#define GATED(suffix, Number)                                                                                          \
    extern "C" __global__ void __launch_bounds__(delta::THREADS)                                                       \
        delta_norm_##suffix(const float *projected, const float *weight, float epsilon, Number *out, int out_stride,   \
                            SHAPE) {                                                                                   \
        let_dependents_start();                                                                                        \
        wait_for_inputs();                                                                                             \
        delta::norm_and_gate(projected, weight, epsilon, SHAPED, out, out_stride);                                     \
    }                                                                                                                  \
    EMULATED_KERNEL(delta_norm_##suffix)                                                                               \
    extern "C" __global__ void __launch_bounds__(delta::THREADS)                                                       \
        gate_heads_##suffix(Number *x, int stride, const float *gates, int width) {                                    \
        let_dependents_start();                                                                                        \
        wait_for_inputs();                                                                                             \
        delta::gate_heads(x, stride, gates, width);                                                                    \
    }                                                                                                                  \
    EMULATED_KERNEL(gate_heads_##suffix)

GATED(bf16, Bf16)
GATED(f32, float)
