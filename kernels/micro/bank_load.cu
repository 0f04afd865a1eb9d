// bank_load: the throughput of shared loads, by how many ways a warp's lanes conflict.
//
// Change from bank_latency: many warps and independent loads, so that the shared-memory pipe is always busy and the time is the
// number of wavefronts, not the latency of one load.
// Access pattern: lane i loads WIDTH bytes at i * stride * WIDTH, 64 times; all warps of a block read the same words.
// Counters: 64 load instructions a warp, of gcd(stride, 32), 2 * gcd(stride, 16) or 4 * gcd(stride, 8) wavefronts for WIDTH 4,
// 8 or 16. Without a conflict 8- and 16-byte accesses take 2 and 4 wavefronts, but move as many bytes with each.
// Preconditions: blocks of 256 threads; stride at most 33, where the array ends.

#include "access.cuh"

extern "C" __global__ void bank_load(const unsigned* __restrict__ in, unsigned* __restrict__ out, int stride) {
    __shared__ __align__(16) unsigned char tile[32 * 33 * WIDTH];

    const unsigned lane = threadIdx.x % 32;
    const unsigned own = shared_address(tile) + lane * stride * WIDTH;
    if (threadIdx.x < 32) {
        store_shared<WIDTH>(own, in[blockIdx.x * 32 + lane]);
    }
    __syncthreads();

    unsigned value = 0;
#pragma unroll
    for (int k = 0; k < 64; ++k) {
        value |= load_shared<WIDTH>(own);
    }
    out[blockIdx.x * 256 + threadIdx.x] = value;
}
