// Runs a kernel's clusters of CTAs, mostly of one, one after another, the threads of each as fibers that take turns where
// they wait.
//
// Built with the .cu files (-x c++ -std=c++20 -O2 -ffp-contract=off -include emulator.h); kernels enter themselves by
// static initialisers, so a static library of them must be linked whole.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "emulator.h"
#include "emulator_stack.h"
#include "emulator_sums.h"

constinit thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;
constinit thread_local unsigned emulator::lane;

namespace {

// A cluster of eight CTAs of 1024 threads, as those that draw.
constexpr unsigned lanes = 32, most_threads = 8192;

// An asynchronous product of a warp, and the second operand as it was when the product began.
struct Product {
    emulator::AsyncProduct parts[lanes];
    unsigned b[256][8];  // [column][pair of k]
    unsigned group;
};

// CTAs of a cluster at most; 8 is what every GPU with clusters can do.
constexpr unsigned most_ctas = 8;

// `stopped` threads wait at the CTA's barrier, as `barriers` counts; `live` ones have not returned.
struct Cta {
    uint3 index;
    unsigned live, stopped, barriers;
};

// `arrived` lanes wait for their warp, `stopped` ones at a barrier of the CTA or cluster; `live` ones have not returned.
struct Warp {
    Cta *cta;
    unsigned first, present, live, arrived, stopped, meetings;
    unsigned waiting;  // lanes that wait for a phase of a counted barrier
    emulator::Combine combine;
    void *slots;
    alignas(64) unsigned char room[2][lanes * 64];
    std::vector<Product> products;
    unsigned group = 0;  // of the products not yet committed
    bool begun = false;
};

struct Copy {
    void *to;
    const void *from;
    unsigned bytes, zeros, group;
};

struct Fiber {
    emulator::Stack stack;
    Warp *warp;
    uint3 index;
    unsigned lane;
    unsigned group = 0;  // of the copies not yet committed
    std::vector<Copy> copies;
    const void *awaited = nullptr;  // the counted barrier that it waits at
    bool unfenced = false;  // it has stored what products know nothing of
};

// Dynamic shared memory is aligned to this.
struct alignas(1024) SharedLine {
    unsigned char bytes[1024];
};

// One OS thread's CTA.
struct Machine {
    Fiber fibers[most_threads];
    Warp warps[most_threads / lanes] = {};
    emulator::Stack caller;
    Cta ctas[most_ctas] = {};
    // `stopped` threads wait at the cluster's barrier, as `barriers` counts.
    unsigned cta_count = 1, threads = 0, warp_count = 0, live = 0, stopped = 0, barriers = 0;
    unsigned prepared = 0;  // fibers that have a stack
    const emulator::Kernel *kernel;
    void **arguments;
    std::vector<SharedLine> shared;  // [ctas][shared_lines]
    size_t shared_lines = 0;
    unsigned char *stacks;

    Machine();
    void prepare(unsigned count);
    ~Machine() { munmap(stacks, most_threads * emulator::stack_bytes); }
};

constinit thread_local Machine *machine = nullptr;
constinit thread_local Fiber *current = nullptr;

void enter(Fiber &next) {
    emulator::Stack *left = &current->stack;
    current = &next;
    threadIdx = next.index;
    blockIdx = next.warp->cta->index;
    emulator::lane = next.lane;
    emulator::switch_stack(left, &next.stack);
}

// Turns are taken at random unless this is 0, by clusters too, and copies may land at once: xorshift's state.
constinit thread_local uint64_t turns = 0;

unsigned random_below(unsigned count) {
    turns ^= turns << 13;
    turns ^= turns >> 7;
    turns ^= turns << 17;
    return static_cast<unsigned>(turns >> 32) % count;
}

// Whether no lane of the warp can go on before a thread of another does.
bool is_stuck(const Warp &warp) { return warp.stopped + warp.waiting + (warp.waiting != 0 ? warp.arrived : 0) == warp.live; }

void require_progress() {
    for (unsigned each = 0; each < machine->warp_count; ++each) {
        if (!is_stuck(machine->warps[each])) return;
    }
    emulator::fail("threads wait for phases that others never complete");
}

// Some thread that is not known to wait at the barrier.
Fiber &random_fiber() {
    require_progress();
    Warp *warp;
    do warp = machine->warps + random_below(machine->warp_count);
    while (is_stuck(*warp));
    unsigned present = warp->present;
    for (unsigned skipped = random_below(warp->live); skipped > 0; --skipped) present &= present - 1;
    return machine->fibers[warp->first + __builtin_ctz(present)];
}

// Lets another thread run: of this warp while any of it does not wait at the barrier, else of the next such warp.
void yield() {
    if (turns != 0) return enter(random_fiber());
    Warp *warp = current->warp;
    unsigned later = warp->present & ~((2u << current->lane) - 1);
    if (is_stuck(*warp)) require_progress();
    while (is_stuck(*warp)) {
        warp = warp + 1 == machine->warps + machine->warp_count ? machine->warps : warp + 1;
        later = 0;
    }
    enter(machine->fibers[warp->first + __builtin_ctz(later != 0 ? later : warp->present)]);
}

// Lets the warps of a CTA, or of all, go on after a barrier.
void release(const Cta *cta) {
    for (unsigned each = 0; each < machine->warp_count; ++each) {
        Warp &warp = machine->warps[each];
        if (cta == nullptr || warp.cta == cta) warp.stopped = 0;
    }
}

// Lets lanes and threads go on for which nobody is missing any more.
void settle(Warp &warp) {
    if (warp.arrived != 0 && warp.arrived == warp.live) {
        if (warp.combine != nullptr) warp.combine(warp.slots, warp.present);
        warp.arrived = 0;
        ++warp.meetings;
    } else if (warp.arrived != 0 && warp.stopped != 0 && warp.arrived + warp.stopped == warp.live) {
        emulator::fail("lanes wait for their warp while others of it wait at the barrier");
    }
    Cta &cta = *warp.cta;
    if (cta.stopped != 0 && cta.stopped == cta.live) {
        release(&cta);
        cta.stopped = 0;
        ++cta.barriers;
    }
    if (machine->stopped != 0 && machine->stopped == machine->live) {
        release(nullptr);
        machine->stopped = 0;
        ++machine->barriers;
    }
    unsigned stopped = machine->stopped;
    for (unsigned each = 0; each < machine->cta_count; ++each) stopped += machine->ctas[each].stopped;
    if (stopped != 0 && stopped == machine->live) emulator::fail("threads wait at barriers that others never come to");
}

// A fiber's life: its thread of one CTA after another.
void run_threads() {
    for (;;) {
        machine->kernel->invoke(machine->arguments);
        Fiber &fiber = *current;
        if (!fiber.warp->products.empty()) emulator::fail("a thread returns before its products are done");
        fiber.copies.clear();
        fiber.unfenced = false;
        fiber.warp->present &= ~(1u << fiber.lane);
        --fiber.warp->live;
        --fiber.warp->cta->live;
        if (--machine->live > 0) settle(*fiber.warp);
        if (machine->live == 0) {
            emulator::switch_stack(&fiber.stack, &machine->caller);
        } else {
            yield();
        }
    }
}

Machine::Machine() {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *memory = mmap(nullptr, most_threads * emulator::stack_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED) emulator::fail("there is no memory for the stacks");
    stacks = static_cast<unsigned char *>(memory);
    for (unsigned warp = 0; warp < most_threads / lanes; ++warp) warps[warp].first = warp * lanes;
}

// Gives so many fibers their stacks, those that have none yet: most launches are of few.
void Machine::prepare(unsigned count) {
    for (; prepared < count; ++prepared) {
        Fiber &fiber = fibers[prepared];
        emulator::prepare_stack(&fiber.stack, stacks + prepared * emulator::stack_bytes, run_threads);
        fiber.warp = &warps[prepared / lanes];
        fiber.lane = prepared % lanes;
    }
}

// The cluster whose first CTA this is; its others follow along x.
void run_cluster(uint3 first) {
    const unsigned warps = machine->warp_count / machine->cta_count;
    for (unsigned each = 0; each < machine->cta_count; ++each) {
        machine->ctas[each] = {{first.x + each, first.y, first.z}, machine->threads, 0, 0};
    }
    for (unsigned each = 0; each < machine->warp_count; ++each) {
        Warp &warp = machine->warps[each];
        warp.cta = machine->ctas + each / warps;
        warp.live = min(lanes, machine->threads - each % warps * lanes);
        warp.present = 0xFFFFFFFFu >> (lanes - warp.live);
    }
    machine->live = machine->cta_count * machine->threads;
    // What a CTA leaves in shared memory is no value to start from.
    memset(machine->shared.data(), 0xFF, machine->shared.size() * sizeof(SharedLine));
    current = turns != 0 ? &random_fiber() : &machine->fibers[0];
    threadIdx = current->index;
    blockIdx = current->warp->cta->index;
    emulator::lane = current->lane;
    emulator::switch_stack(&machine->caller, &current->stack);
}

const emulator::Kernel *kernels = nullptr;

}  // namespace

emulator::Kernel::Kernel(const char *name, void (*invoke)(void **)) : name(name), invoke(invoke), next(kernels) {
    kernels = this;
}

void emulator::fail(const char *what) {
    fprintf(stderr, "kernel %s, block (%u, %u, %u), thread %u: %s\n", machine == nullptr ? "" : machine->kernel->name,
            blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, what);
    abort();
}

// A lane that is a meeting ahead of another writes to the other half of the room; it cannot be two ahead.
void *emulator::meeting_slots() { return current->warp->room[current->warp->meetings % 2]; }

void emulator::meet(void *slots, Combine combine) {
    Warp &warp = *current->warp;
    if (warp.arrived != 0 && warp.combine != combine) fail("lanes of a warp meet in different operations");
    warp.slots = slots;
    warp.combine = combine;
    ++warp.arrived;
    const unsigned meeting = warp.meetings;
    settle(warp);
    while (warp.meetings == meeting) yield();
}

void emulator::barrier() {
    Cta &cta = *current->warp->cta;
    ++current->warp->stopped;
    ++cta.stopped;
    const unsigned barrier = cta.barriers;
    settle(*current->warp);
    while (cta.barriers == barrier) yield();
}

void emulator::cluster_barrier() {
    ++current->warp->stopped;
    ++machine->stopped;
    const unsigned barrier = machine->barriers;
    settle(*current->warp);
    while (machine->barriers == barrier) yield();
}

// A counted barrier, as it lies in eight bytes of shared memory.
struct Counted {
    uint16_t count, missing;
    int bytes : 31;
    unsigned parity : 1;
};
static_assert(sizeof(Counted) == 8);

namespace {

// Those who wait for a phase of it go on once nobody and no byte is missing.
void complete(Counted &barrier) {
    if (barrier.missing != 0 || barrier.bytes != 0) return;
    barrier.missing = barrier.count;
    barrier.parity ^= 1;
    for (unsigned thread = 0; thread < machine->warp_count * lanes; ++thread) {
        Fiber &fiber = machine->fibers[thread];
        if (fiber.awaited != &barrier) continue;
        fiber.awaited = nullptr;
        --fiber.warp->waiting;
    }
}

Counted &counted(void *barrier) { return *static_cast<Counted *>(barrier); }

}  // namespace

void emulator::start_counted(void *barrier, unsigned count) {
    counted(barrier) = {static_cast<uint16_t>(count), static_cast<uint16_t>(count), 0, 0};
}

void emulator::arrive_counted(void *barrier, unsigned bytes) {
    Counted &own = counted(barrier);
    if (own.missing == 0) fail("more arrive at a counted barrier than it counts");
    own.bytes += static_cast<int>(bytes);
    --own.missing;
    complete(own);
}

void emulator::await_counted(void *barrier, unsigned parity) {
    const Counted &own = counted(barrier);
    while (own.parity == parity) {
        if (current->awaited == nullptr) {
            current->awaited = barrier;
            ++current->warp->waiting;
        }
        yield();
    }
}

// At once, which is no later than the hardware.
void emulator::copy_bytes(void *to, const void *from, unsigned bytes, void *barrier) {
    if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | bytes) % 16 != 0) fail("a copy that is not by sixteen bytes");
    memcpy(to, from, bytes);
    counted(barrier).bytes -= static_cast<int>(bytes);
    complete(counted(barrier));
}

// Likewise.
void emulator::copy_box(void *to, const void *from, unsigned rows, unsigned valid_rows, unsigned stride, unsigned valid_bytes,
                        void *barrier) {
    for (unsigned row = 0; row < rows; ++row) {
        const unsigned char *source = static_cast<const unsigned char *>(from) + static_cast<size_t>(row) * stride;
        for (unsigned piece = 0; piece < 8; ++piece) {
            unsigned char *place = static_cast<unsigned char *>(to) + row * 128 + (piece ^ row % 8) * 16;
            if (row < valid_rows && piece * 16 < valid_bytes) {
                memcpy(place, source + piece * 16, 16);
            } else {
                memset(place, 0, 16);
            }
        }
    }
    counted(barrier).bytes -= static_cast<int>(rows * 128);
    complete(counted(barrier));
}

unsigned emulator::cluster_size() { return machine->cta_count; }

unsigned emulator::cluster_rank() { return static_cast<unsigned>(current->warp->cta - machine->ctas); }

unsigned char *emulator::dynamic_shared() {
    return reinterpret_cast<unsigned char *>(machine->shared.data() + cluster_rank() * machine->shared_lines);
}

const void *emulator::of_cta(const void *own, unsigned rank) {
    const unsigned char *start = dynamic_shared();
    const ptrdiff_t offset = static_cast<const unsigned char *>(own) - start;
    const size_t bytes = machine->shared_lines * sizeof(SharedLine);
    if (offset < 0 || static_cast<size_t>(offset) >= bytes) fail("a cluster shares dynamic shared memory alone");
    if (rank >= machine->cta_count) fail("the cluster has no such CTA");
    if (machine->ctas[rank].live != machine->threads) fail("threads of a CTA have returned whose memory is read");
    return reinterpret_cast<unsigned char *>(machine->shared.data()) + rank * bytes + offset;
}

namespace {

void land(const Copy &copy) {
    memcpy(copy.to, copy.from, copy.bytes);
    memset(static_cast<unsigned char *>(copy.to) + copy.bytes, 0, copy.zeros);
}

}  // namespace

void emulator::copy_later(void *to, const void *from, unsigned bytes, unsigned zeros) {
    current->copies.push_back({to, from, bytes, zeros, current->group});
    if (turns != 0 && random_below(2) == 0) land(current->copies.back());
}

void emulator::commit_copies() { ++current->group; }

void emulator::await_copies(unsigned pending) {
    std::vector<Copy> &copies = current->copies;
    size_t landed = 0;
    for (; landed < copies.size() && copies[landed].group + pending < current->group; ++landed) {
        land(copies[landed]);
    }
    copies.erase(copies.begin(), copies.begin() + static_cast<ptrdiff_t>(landed));
    current->unfenced |= landed != 0;
}

void emulator::note_store() { current->unfenced = true; }

void emulator::fence_stores() { current->unfenced = false; }

namespace {

// Whether products are summed as Hopper's tensor cores do.
bool sums_as_hopper() {
    static const bool asked = [] {
        const char *sums = getenv("WARDROUND_EMULATED_SUMS");
        return sums != nullptr && strcmp(sums, "hopper") == 0;
    }();
    return asked;
}

}  // namespace

void emulator::multiply_tiles(void *slots, unsigned) {
    if (sums_as_hopper()) return sums::multiply_tiles(static_cast<TileOperands *>(slots));
    // Two neighbouring outputs of a row, in one register of any x86-64.
    using Pair = double __attribute__((vector_size(16)));
    TileOperands *operands = static_cast<TileOperands *>(slots);
    const auto low = [](unsigned pair) { return static_cast<double>(__uint_as_float(pair << 16)); };
    const auto high = [](unsigned pair) { return static_cast<double>(__uint_as_float(pair & 0xFFFF0000u)); };
    Pair b[16][4];  // [k][n / 2][n % 2]
    for (unsigned lane = 0; lane < lanes; ++lane) {
        for (unsigned part = 0; part < 2; ++part) {
            const unsigned k = lane % 4 * 2 + part * 8;
            b[k][lane / 8][lane / 4 % 2] = low(operands[lane].b[part]);
            b[k + 1][lane / 8][lane / 4 % 2] = high(operands[lane].b[part]);
        }
    }
    for (unsigned m = 0; m < 16; ++m) {
        TileOperands *quad = operands + m % 8 * 4;
        Pair sums[4];
#pragma GCC unroll 4
        for (unsigned n = 0; n < 4; ++n) sums[n] = Pair{quad[n].c[m / 8 * 2], quad[n].c[m / 8 * 2 + 1]};
        for (unsigned k = 0; k < 16; k += 2) {
            const unsigned pair = quad[k % 8 / 2].a[m / 8 + k / 8 * 2];
#pragma GCC unroll 4
            for (unsigned n = 0; n < 4; ++n) sums[n] = sums[n] + low(pair) * b[k][n] + high(pair) * b[k + 1][n];
        }
#pragma GCC unroll 4
        for (unsigned n = 0; n < 4; ++n) {
            quad[n].c[m / 8 * 2] = static_cast<float>(sums[n][0]);
            quad[n].c[m / 8 * 2 + 1] = static_cast<float>(sums[n][1]);
        }
    }
}

namespace {

// The pairs of inputs of so many columns, where a descriptor's address, distance of eight columns and swizzle say.
void read_columns(uint64_t descriptor, unsigned columns, unsigned (&b)[256][8]) {
    if (descriptor >> 62 != 1) emulator::fail("a descriptor is not of 128 bytes' swizzle");
    const uint64_t start = (descriptor & 0x3FFF) << 4, eight = (descriptor >> 32 & 0x3FFF) << 4;
    for (unsigned column = 0; column < columns; ++column) {
        for (unsigned pair = 0; pair < 8; ++pair) {
            uint64_t at = start + column / 8 * eight + column % 8 * 128 + pair * 4;
            at ^= (at >> 7 & 7) << 4;
            if (at + 4 > machine->shared_lines * sizeof(SharedLine)) emulator::fail("a product reads past shared memory");
            memcpy(&b[column][pair], emulator::dynamic_shared() + at, 4);
        }
    }
}

void finish(Product &product) {
    const unsigned columns = product.parts[0].columns;
    unsigned now[256][8];
    read_columns(product.parts[0].b, columns, now);
    if (memcmp(now, product.b, columns * sizeof now[0]) != 0) emulator::fail("shared memory changed while a product read it");
    emulator::TileOperands operands[lanes];
    for (unsigned tile = 0; tile < columns / 8; ++tile) {
        for (unsigned lane = 0; lane < lanes; ++lane) {
            const emulator::AsyncProduct &own = product.parts[lane];
            const unsigned *column = product.b[tile * 8 + lane / 4];
            memcpy(operands[lane].a, own.a, sizeof own.a);
            operands[lane].b[0] = column[lane % 4];
            operands[lane].b[1] = column[lane % 4 + 4];
            memcpy(operands[lane].c, own.c + tile * 4, sizeof operands[lane].c);
        }
        emulator::multiply_tiles(operands, ~0u);
        for (unsigned lane = 0; lane < lanes; ++lane) {
            memcpy(product.parts[lane].c + tile * 4, operands[lane].c, sizeof operands[lane].c);
        }
    }
}

}  // namespace

void emulator::begin_products() {
    exchange(0, [](void *, unsigned) { current->warp->begun = true; });
}

void emulator::multiply_async(const AsyncProduct &product) {
    exchange(product, [](void *slots, unsigned present) {
        Warp &warp = *current->warp;
        if (present != ~0u) fail("a warp's lanes are not all there for a product");
        if (!warp.begun) fail("a product without a fence since the last group");
        for (unsigned thread = 0; thread < machine->warp_count * lanes; ++thread) {
            const Fiber &fiber = machine->fibers[thread];
            if (fiber.unfenced && fiber.warp->cta == warp.cta) fail("what threads have stored is not fenced for products");
        }
        Product &started = warp.products.emplace_back();
        memcpy(started.parts, slots, sizeof started.parts);
        for (const AsyncProduct &lane : started.parts) {
            const bool same = lane.b == started.parts[0].b && lane.columns == started.parts[0].columns;
            if (!same) fail("lanes name different operands of a product");
        }
        read_columns(started.parts[0].b, started.parts[0].columns, started.b);
        started.group = warp.group;
    });
}

void emulator::commit_products() {
    exchange(0, [](void *, unsigned) {
        ++current->warp->group;
        current->warp->begun = false;
    });
}

void emulator::await_products(unsigned pending) {
    exchange(pending, [](void *slots, unsigned) {
        Warp &warp = *current->warp;
        const unsigned pending = *static_cast<unsigned *>(slots);
        size_t done = 0;
        for (; done < warp.products.size() && warp.products[done].group + pending < warp.group; ++done) {
            finish(warp.products[done]);
        }
        warp.products.erase(warp.products.begin(), warp.products.begin() + static_cast<ptrdiff_t>(done));
    });
}

// Whether this OS thread's kernels run their clusters, and let threads take turns, in order (0) or at random, from a
// seed: what depends on the order, for want of a barrier, then shows.
extern "C" void wardround_emulated_shuffle(uint64_t seed) { turns = seed; }

// The products of a warp's operands as Hopper sums them, for tests.
extern "C" void wardround_emulated_products(emulator::TileOperands *operands) { emulator::sums::multiply_tiles(operands); }

// Runs `name` over a grid, so many CTAs along x to a cluster; `arguments` are pointers to the kernel's arguments. 0: done,
// 1: there is no such kernel.
extern "C" int wardround_emulated_launch(const char *name, const unsigned grid[3], unsigned threads, unsigned cluster,
                                     unsigned shared_bytes, void **arguments) {
    const emulator::Kernel *kernel = kernels;
    while (kernel != nullptr && strcmp(kernel->name, name) != 0) kernel = kernel->next;
    if (kernel == nullptr) return 1;
    static thread_local std::unique_ptr<Machine> owner;
    if (owner == nullptr) owner = std::make_unique<Machine>();
    machine = owner.get();
    machine->kernel = kernel;
    machine->arguments = arguments;
    const unsigned warps = (threads + lanes - 1) / lanes;
    if (cluster < 1 || cluster > most_ctas || grid[0] % cluster != 0) emulator::fail("the grid is not of whole clusters");
    if (warps * lanes * cluster > most_threads) emulator::fail("a cluster has more threads than are emulated");
    machine->prepare(warps * lanes * cluster);
    machine->cta_count = cluster;
    machine->threads = threads;
    machine->warp_count = warps * cluster;
    machine->shared_lines = (shared_bytes + sizeof(SharedLine) - 1) / sizeof(SharedLine);
    machine->shared.resize(machine->shared_lines * cluster);
    blockDim = {threads, 1, 1};
    gridDim = {grid[0], grid[1], grid[2]};
    for (unsigned each = 0; each < machine->warp_count * lanes; ++each) {
        machine->fibers[each].index = {each % (warps * lanes), 0, 0};
    }
    const unsigned along_x = grid[0] / cluster;
    std::vector<unsigned> order(along_x * grid[1] * grid[2]);
    std::iota(order.begin(), order.end(), 0u);
    if (turns != 0) {
        for (unsigned left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random_below(left)]);
    }
    for (const unsigned each : order) {
        run_cluster({each % along_x * cluster, each / along_x % grid[1], each / along_x / grid[1]});
    }
    return 0;
}
