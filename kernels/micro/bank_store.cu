// bank_store: the throughput of shared stores, by how many ways a warp's lanes conflict.
//
// Change from bank_load: stores. The banks are the same, and so is the rule.
// Access pattern: lane i stores WIDTH bytes at i * stride * WIDTH, 64 times; the warps of a block store equal values to the
// same words, so that their order does not matter.
// Counters: 64 store *instructions* a warp whatever the stride; what rises with the conflict is the number of wavefronts that
// each takes: gcd(stride, 32), 2 * gcd(stride, 16) or 4 * gcd(stride, 8) for WIDTH 4, 8 or 16.
// Preconditions: blocks of 256 threads; stride at most 33, where the array ends.

#include "access.cuh"

extern "C" __global__ void bank_store(const unsigned* __restrict__ in, unsigned* __restrict__ out, int stride) {
    __shared__ __align__(16) unsigned char tile[32 * 33 * WIDTH];

    const unsigned lane = threadIdx.x % 32;
    const unsigned own = shared_address(tile) + lane * stride * WIDTH;
    const unsigned value = in[blockIdx.x * 32 + lane];
#pragma unroll
    for (int k = 0; k < 64; ++k) {
        store_shared<WIDTH>(own, value);
    }
    __syncthreads();
    out[blockIdx.x * 256 + threadIdx.x] = load_shared<WIDTH>(own);
}
