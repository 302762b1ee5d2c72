// Matmuls of many rows on Hopper, by wgmma, in CTAs that stay: weights are registers, activations lie in shared memory.
//
// A CTA takes tiles of 128 outputs and 128 or 256 rows one after another, and at the end, where tiles are fewer than CTAs, single
// chunks of K of them. Two warpgroups multiply, sixteen outputs to a warp. No two warps share weights, so these come straight from
// memory to the registers they are multiplied from, some steps of 32 inputs ahead. One thread brings activations by the copy
// engine, stage by stage and across the borders of tiles: a barrier counts the bytes that have come, another the warps that have
// done with them. The sums of earlier chunks wait in shared memory, for a thread's registers hold one chunk's alone. There the last
// sum is left for seven more warps, which write it while the next tile's first chunk is multiplied. Where a tile's chunks are
// of several CTAs, they meet in memory: the last to come adds them up in order, and no one waits.
#pragma once

#include "matmul_output.cuh"
#include "mbarrier.cuh"
#include "weights.cuh"
#include "wgmma.cuh"

namespace matmul {

constexpr int UNITS_MULTIPLIERS = 256, UNITS_THREADS = 512;
constexpr int UNITS_WARPS = UNITS_MULTIPLIERS / 32, UNITS_WRITERS = UNITS_THREADS - UNITS_MULTIPLIERS - 32;
// Registers of a thread that multiplies, and of another: together those of a multiprocessor.
constexpr int MULTIPLIERS_REGISTERS = 216, HELPERS_REGISTERS = 40;
static_assert(UNITS_MULTIPLIERS * MULTIPLIERS_REGISTERS + (UNITS_THREADS - UNITS_MULTIPLIERS) * HELPERS_REGISTERS <= 65536);

// What a CTA has in shared memory for so many rows of a tile: stages of activations, two steps of K to each; totals; barriers.
template <int ROWS>
struct UnitsShared {
    static constexpr int STAGES = ROWS == 256 ? 3 : 8;
    static constexpr int STAGE = ROWS * 128;
    static constexpr int TOTALS_AT = STAGES * STAGE;
    static constexpr int BARRIERS_AT = TOTALS_AT + 128 * ROWS * 4;
    static constexpr int BYTES = BARRIERS_AT + 256;
    static_assert((2 * STAGES + 2) * sizeof(Counter) <= 256);
};

// Where chunks of a tile meet.
struct UnitsMeeting {
    float4 *sums;       // [tile][4 chunks][fragments][threads]
    unsigned *tickets;  // [tile][warps][4], zero before and after
};

// A tile of which a CTA takes all K or a chunk of it.
struct Piece {
    int tile, begin, end;  // steps of 32 inputs
    int chunk;             // which it is; −1 of a tile as a whole
};

// The tiles below `whole` are pieces by themselves, those from there on are one for each of their `chunks`; `count` in all. A tile's
// rows are those of its number modulo `row_blocks`.
struct Pieces {
    int whole, row_blocks, chunks, count;

    __device__ __forceinline__ Piece at(int index, int k_tiles) const {
        if (index < whole) return {index, 0, k_tiles, -1};
        const int chunk = (index - whole) % chunks, quarter = (k_tiles + 3) / 4;
        return {whole + (index - whole) / chunks, chunk * quarter, min(chunk * quarter + quarter, k_tiles), chunk};
    }
};

// Where a CTA stands in a piece: two steps that are a stage, one where the chunk ends.
struct Stand {
    int step, end;  // of the chunk

    __device__ __forceinline__ Stand(const Piece &piece, int length) : step(piece.begin), end(min(piece.begin + length, piece.end)) {}

    __device__ __forceinline__ bool is_last_of_chunk() const { return step + 2 >= end; }

    __device__ __forceinline__ void advance(const Piece &piece, int length) {
        step += 2;
        if (step < end) return;
        step = end;
        end = min(end + length, piece.end);
    }
};

// A warp's sums of one chunk go to where the tile's chunks meet. Of the quarters for which it is the last to come it writes the
// result. Each chunk's CTA begins with another quarter, so that those that come together end with one each.
template <class Format, Epilogue EPILOGUE, int ROWS>
__device__ __forceinline__ void join_units(const UnitsMeeting &meeting, const Pieces &pieces, const Piece &piece, const float (&sums)[2][ROWS / 4],
                                           const Output &output, int group, int first_row) {
    constexpr int FRAGMENTS = ROWS / 8, EACH = FRAGMENTS / 4;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, split = piece.tile - pieces.whole;
    float4 *met = meeting.sums + static_cast<size_t>(split) * 4 * FRAGMENTS * UNITS_MULTIPLIERS + threadIdx.x;
    unsigned *tickets = meeting.tickets + (split * UNITS_WARPS + warp) * 4;
    unsigned last = 0;
#pragma unroll 1
    for (int turn = 0; turn < 4; ++turn) {
        const int quarter = (piece.chunk + turn) % 4;
#pragma unroll
        for (int fragment = 0; fragment < FRAGMENTS; ++fragment) {
            if (fragment / EACH != quarter) continue;
            met[(piece.chunk * FRAGMENTS + fragment) * UNITS_MULTIPLIERS] = fragment_of(sums[fragment / (FRAGMENTS / 2)], fragment % (FRAGMENTS / 2));
        }
        __syncwarp();
        unsigned ticket = 0;
        if (lane == 0) ticket = draw_ticket(tickets + quarter);
        ticket = __shfl_sync(0xFFFFFFFFu, ticket, 0);
        __syncwarp();
        if (ticket == pieces.chunks - 1u) last |= 1u << quarter;
    }
#pragma unroll 1
    for (int quarter = 0; quarter < 4; ++quarter) {
        if ((last >> quarter & 1) == 0) continue;
        if (lane == 0) tickets[quarter] = 0;
#pragma unroll(EACH < 4 ? EACH : 4)
        for (int fragment = quarter * EACH; fragment < quarter * EACH + EACH; ++fragment) {
            // All chunks are asked for at once, one that is not there in the first one's place.
            float4 parts[4];
#pragma unroll
            for (int chunk = 0; chunk < 4; ++chunk) {
                parts[chunk] = met[((chunk < pieces.chunks ? chunk : 0) * FRAGMENTS + fragment) * UNITS_MULTIPLIERS];
            }
            float4 sum = parts[0];
#pragma unroll
            for (int chunk = 1; chunk < 4; ++chunk) {
                if (chunk < pieces.chunks) sum = add(sum, parts[chunk]);
            }
            store<EPILOGUE>(output, sum, Format::ONE, group, first_row + fragment * 8, lane);
        }
    }
}

// Some of the warps that write the result of a tile: that of number `first` and each `step`-th after it.
template <class Format, Epilogue EPILOGUE, int ROWS>
__device__ __forceinline__ void write_units(const Output &output, const float4 *totals, int tile, int row_blocks, int first, int step) {
    const int first_row = tile % row_blocks * ROWS, first_group = tile / row_blocks * UNITS_WARPS, lane = threadIdx.x % 32;
#pragma unroll 2
    for (int each = first; each < ROWS / 8 * UNITS_WARPS; each += step) {
        const float4 sum = totals[each * 32 + lane];
        store<EPILOGUE>(output, sum, Format::ONE, first_group + each % UNITS_WARPS, first_row + each / UNITS_WARPS * 8, lane);
    }
}

// Tiles that are taken as a whole are so in chunks of `length` steps.
template <class Format, Epilogue EPILOGUE, int ROWS>
__device__ __forceinline__ void multiply_units(const Weights &weights, const BoxSource &activations, const Output &output,
                                               int length, const Pieces &pieces, const UnitsMeeting &meeting) {
    using Shared = UnitsShared<ROWS>;
    constexpr int FRAGMENTS = ROWS / 8, STAGES = Shared::STAGES;
    constexpr int PARTS = 2, PART_ROWS = ROWS / PARTS, AHEAD = ROWS == 256 ? 2 : 4;  // stages of weights
    unsigned char *memory = dynamic_shared();
    float4 *totals = reinterpret_cast<float4 *>(memory + Shared::TOTALS_AT);  // [fragment][thread]
    Counter *full = reinterpret_cast<Counter *>(memory + Shared::BARRIERS_AT), *empty = full + STAGES;
    Counter *ready = empty + STAGES, *taken = ready + 1;  // the totals are a result; they have been read

    let_dependents_start();
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            start_counting(full + stage, 1);
            start_counting(empty + stage, UNITS_WARPS);
        }
        start_counting(ready, UNITS_MULTIPLIERS);
        start_counting(taken, UNITS_WRITERS);
    }
    __syncthreads();

    if (threadIdx.x >= UNITS_MULTIPLIERS) {
        give_registers<HELPERS_REGISTERS>();
        wait_for_inputs();
        if (threadIdx.x < UNITS_THREADS - UNITS_WRITERS) {
            if (threadIdx.x != UNITS_MULTIPLIERS) return;
            int slot = 0;
            unsigned parity = 1;  // of the phase in which a slot was last given back
            for (int index = blockIdx.x; index < pieces.count; index += gridDim.x) {
                const Piece piece = pieces.at(index, weights.k_tiles);
                const int first_row = piece.tile % pieces.row_blocks * ROWS;
#pragma unroll 1
                for (Stand stand(piece, length); stand.step < piece.end; stand.advance(piece, length)) {
                    await_phase(empty + slot, parity);
                    expect_bytes(full + slot, Shared::STAGE);
                    copy_box<ROWS>(memory + slot * Shared::STAGE, activations, stand.step * 32, first_row, full + slot);
                    if (++slot == STAGES) slot = 0, parity ^= 1;
                }
            }
            return;
        }
        constexpr int WRITERS = UNITS_WRITERS / 32;
        const int writer = threadIdx.x / 32 - (UNITS_THREADS / 32 - WRITERS);
        unsigned parity = 0;
        for (int tile = blockIdx.x; tile < pieces.whole; tile += gridDim.x) {
            await_phase(ready, parity);
            parity ^= 1;
            // The last piece's result is written by those that have multiplied too.
            const bool is_last = tile + static_cast<int>(gridDim.x) >= pieces.count;
            write_units<Format, EPILOGUE, ROWS>(output, totals, tile, pieces.row_blocks, writer, is_last ? WRITERS + UNITS_WARPS : WRITERS);
            arrive(taken);
        }
    } else {
        take_registers<MULTIPLIERS_REGISTERS>();
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const auto group_of = [&](const Piece &piece) { return piece.tile / pieces.row_blocks * UNITS_WARPS + warp; };
        const auto weights_of = [&](const Piece &piece) {
            return weights.of_group<Format>(min(group_of(piece), (output.n + 15) / 16 - 1));
        };
        typename Format::Share shares[AHEAD][2];
        const auto ask_first = [&](int index, int stage) {
            const Piece piece = pieces.at(index, weights.k_tiles);
            const Weights own = weights_of(piece);
            Stand stand(piece, length);
#pragma unroll
            for (int before = 0; before < stage; ++before) stand.advance(piece, length);
#pragma unroll
            for (int each = 0; each < 2; ++each) shares[stage][each] = own.share<Format>(min(stand.step + each, piece.end - 1), lane);
        };
#pragma unroll
        for (int stage = 0; stage < AHEAD; ++stage) ask_first(blockIdx.x, stage);
        wait_for_inputs();

        float sums[PARTS][PART_ROWS / 2] = {};
        int slot = 0;
        unsigned parity = 0, taken_parity = 1;
        const auto release_before = [&] {
            if (lane == 0) arrive(empty + (slot == 0 ? STAGES - 1 : slot - 1));
        };
        // Adds a chunk's sums to the totals, those of the first in their place, and begins anew.
        const auto merge = [&](int part, bool is_first) {
#pragma unroll
            for (int each = 0; each < PART_ROWS / 8; ++each) {
                float4 &total = totals[(part * (PART_ROWS / 8) + each) * UNITS_MULTIPLIERS + threadIdx.x];
                const float4 sum = fragment_of(sums[part], each);
                total = is_first ? sum : add(total, sum);
                put_fragment(sums[part], each, {0, 0, 0, 0});
            }
        };
        const auto await_taken = [&] {
            await_phase(taken, taken_parity);
            taken_parity ^= 1;
        };
#pragma unroll 1
        for (int index = blockIdx.x; index < pieces.count; index += gridDim.x) {
            const Piece piece = pieces.at(index, weights.k_tiles);
            const Weights own = weights_of(piece);
            const bool is_whole = piece.chunk < 0;
            Stand stand(piece, length), ahead = stand;
#pragma unroll
            for (int stage = 0; stage < AHEAD; ++stage) ahead.advance(piece, length);
            bool merges = false, merges_first = false;  // the second half of the rows, once the stage before is done
            int stages = 0;
#pragma unroll 1
            while (stand.step < piece.end) {
#pragma unroll
                for (int stage = 0; stage < AHEAD; ++stage) {
                    if (stand.step >= piece.end) break;
                    const bool is_full = stand.step + 1 < stand.end;
                    Fragment fragments[2];
#pragma unroll
                    for (int each = 0; each < 2; ++each) {
                        fragments[each] = Format::fragment(shares[stage][each], lane);
                        move_operand(fragments[each].half[0]);
                        move_operand(fragments[each].half[1]);
                    }
                    if (ahead.step < piece.end) {
#pragma unroll
                        for (int each = 0; each < 2; ++each) {
                            shares[stage][each] = own.share<Format>(min(ahead.step + each, piece.end - 1), lane);
                        }
                        ahead.advance(piece, length);
                    } else if (index + static_cast<int>(gridDim.x) < pieces.count) {
                        // The piece that follows has its first stages' weights where this one's last were.
                        ask_first(index + gridDim.x, stage);
                    }
                    const auto multiply = [&](int part) {
                        const unsigned char *rows = memory + slot * Shared::STAGE + part * (PART_ROWS * 128);
                        if (is_full) {
                            begin_products();
#pragma unroll
                            for (int each = 0; each < 4; ++each) {
                                multiply_async(sums[part], fragments[each / 2].half[each % 2], describe_rows(rows, each * 32));
                            }
                            commit_products();
                        } else {
                            begin_products();
#pragma unroll
                            for (int each = 0; each < 2; ++each) {
                                multiply_async(sums[part], fragments[0].half[each], describe_rows(rows, each * 32));
                            }
                            commit_products();
                        }
                    };
                    await_phase(full + slot, parity);
                    multiply(0);
                    await_products<1>();
                    // Products of the stage before are done.
                    if (stages > 0) release_before();
                    if (merges) merge(1, merges_first);
                    multiply(1);
                    await_products<1>();
                    merges = stand.is_last_of_chunk() && stand.end != piece.end;
                    if (merges) {
                        // While the second half of the rows is multiplied.
                        merges_first = stand.end == length;
                        if (merges_first) await_taken();
                        merge(0, merges_first);
                    }
                    if (++slot == STAGES) slot = 0, parity ^= 1;
                    ++stages;
                    stand.advance(piece, length);
                }
            }
            await_products<1>();
            if (is_whole) {
                const bool is_first = length >= piece.end;
                if (is_first) await_taken();
                merge(0, is_first);
                await_products<0>();
                release_before();
                merge(1, is_first);
                arrive(ready);
            } else {
                await_products<0>();
                release_before();
                join_units<Format, EPILOGUE, ROWS>(meeting, pieces, piece, sums, output, group_of(piece), piece.tile % pieces.row_blocks * ROWS);
#pragma unroll
                for (int each = 0; each < FRAGMENTS; ++each) put_fragment(sums[each / (FRAGMENTS / 2)], each % (FRAGMENTS / 2), {0, 0, 0, 0});
            }
            __syncwarp();  // products are of whole warps
            // Of a piece of fewer stages some were not there to follow on.
            if (stages < AHEAD && index + static_cast<int>(gridDim.x) < pieces.count) {
#pragma unroll
                for (int stage = 1; stage < AHEAD; ++stage) {
                    if (stage >= stages) ask_first(index + gridDim.x, stage);
                }
            }
        }
        const int last = pieces.count - 1 - (pieces.count - 1 - static_cast<int>(blockIdx.x)) % static_cast<int>(gridDim.x);
        if (last < pieces.whole) {
            constexpr int WRITERS = UNITS_WRITERS / 32;
            await_phase(ready, taken_parity);
            write_units<Format, EPILOGUE, ROWS>(output, totals, last, pieces.row_blocks, WRITERS + warp, WRITERS + UNITS_WARPS);
        }
    }
}

}  // namespace matmul
