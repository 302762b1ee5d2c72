// What a launch is tried behind when the GPU is compared with the emulator (src/ops/cuda/shadow.rs): a kernel that lets the
// next one start at once and writes its inputs late, so that what is read before the wait is what should not be.
//
//   shadow_produce   any grid and CTA; every region of a list is written from a copy of what belongs there
#include "common.cuh"

namespace shadow {

// Sixteen bytes are aligned at both ends.
struct Piece {
    unsigned char *to;
    const unsigned char *from;
    unsigned long long bytes;
};

}  // namespace shadow

extern "C" __global__ void shadow_produce(const shadow::Piece *pieces, int count, unsigned nanoseconds) {
    let_dependents_start();
    wait_for_inputs();
    pass_time(nanoseconds);
    const unsigned long long thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    for (int index = 0; index < count; ++index) {
        const shadow::Piece piece = pieces[index];
        const unsigned long long quads = piece.bytes / 16;
        const uint4 *from = reinterpret_cast<const uint4 *>(piece.from);
        uint4 *to = reinterpret_cast<uint4 *>(piece.to);
        for (unsigned long long quad = thread; quad < quads; quad += threads) to[quad] = from[quad];
        for (unsigned long long byte = quads * 16 + thread; byte < piece.bytes; byte += threads) {
            piece.to[byte] = piece.from[byte];
        }
    }
}
EMULATED_KERNEL(shadow_produce)
