// bank_broadcast: lanes that read the same word share it, at no cost.
//
// Rule: a conflict is between different words of one bank. One word may go to any number of lanes in the same wavefront.
// Access pattern: lane i loads word i / sharers: `sharers` neighbours want the same word; at 32 all lanes want one word.
// Counters: 64 load instructions a warp, 1 wavefront each, whatever the number of sharers.
// Preconditions: blocks of 256 threads; 1 <= sharers <= 32.

#include "access.cuh"

extern "C" __global__ void bank_broadcast(const unsigned* __restrict__ in, unsigned* __restrict__ out, int sharers) {
    __shared__ unsigned tile[32];

    const unsigned lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        tile[lane] = in[blockIdx.x * 32 + lane];
    }
    __syncthreads();

    const unsigned place = shared_address(&tile[lane / sharers]);
    unsigned value = 0;
#pragma unroll
    for (int k = 0; k < 64; ++k) {
        value |= load_shared<4>(place);
    }
    out[blockIdx.x * 256 + threadIdx.x] = value;
}
