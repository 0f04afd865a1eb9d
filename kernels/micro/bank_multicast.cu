// bank_multicast: sharing and conflicts at once: groups of lanes each want a word of their own, all in bank 0.
//
// Change from bank_broadcast: neighbouring words lie 32 words apart, in one bank.
// Access pattern: lane i loads word (i / sharers) * 32: ceil(32 / sharers) different words of bank 0.
// Counters: 64 load instructions a warp, ceil(32 / sharers) wavefronts each: what counts is the number of different words of a
// bank, not the number of lanes that want them.
// Preconditions: blocks of 256 threads; 1 <= sharers <= 32.

#include "access.cuh"

extern "C" __global__ void bank_multicast(const unsigned* __restrict__ in, unsigned* __restrict__ out, int sharers) {
    __shared__ unsigned tile[32 * 32];

    const unsigned lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        tile[lane * 32] = in[blockIdx.x * 32 + lane];
    }
    __syncthreads();

    const unsigned place = shared_address(&tile[lane / sharers * 32]);
    unsigned value = 0;
#pragma unroll
    for (int k = 0; k < 64; ++k) {
        value |= load_shared<4>(place);
    }
    out[blockIdx.x * 256 + threadIdx.x] = value;
}
