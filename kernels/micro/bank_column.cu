// bank_column: a column of a row-major array in shared memory, by the length of its rows.
//
// Rule: lane i reads row i, column 0; its word lies pitch elements behind that of the row before. With pitch 32 (of 4 bytes) all
// rows begin in bank 0; one element of padding moves each row one bank on. What matters is the pitch of the *shared array*, and
// with other element sizes its bytes: padding by one element of 1 or 2 bytes moves a row by less than a bank.
// Access pattern: lane i loads BYTES at i * pitch * BYTES, 64 times.
// Counters: 64 load instructions a warp. Elements of 4 bytes: gcd(pitch, 32) wavefronts each; of 8 bytes: 2 * gcd(pitch, 16);
// of 1 and 2 bytes: the most different words that one bank has to deliver.
// Preconditions: blocks of 256 threads; 32 * pitch * BYTES bytes of dynamic shared memory, within what the device gives a block.

#include "access.cuh"

extern "C" __global__ void bank_column(const unsigned* __restrict__ in, unsigned* __restrict__ out, int pitch) {
    extern __shared__ __align__(16) unsigned char array[];

    const unsigned lane = threadIdx.x % 32;
    const unsigned own = shared_address(array) + lane * pitch * BYTES;
    const unsigned element = in[blockIdx.x * 32 + lane];
    if (threadIdx.x < 32) {
        store_shared<BYTES>(own, element);
    }
    __syncthreads();

    unsigned value = 0;
#pragma unroll
    for (int k = 0; k < 64; ++k) {
        value |= load_shared<BYTES>(own);
    }
    constexpr unsigned stored = BYTES < 4 ? (1u << 8 * BYTES % 32) - 1 : ~0u;  // bits of an element that the array holds
    out[blockIdx.x * 256 + threadIdx.x] = (element & ~stored) | value;
}
