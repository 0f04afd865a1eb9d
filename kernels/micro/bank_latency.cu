// bank_latency: how long one warp waits for one shared load, by how many ways its lanes conflict.
//
// Rule: shared memory has 32 banks of 4 bytes. In one wavefront each bank delivers one word, so that a load whose lanes need n
// different words of one bank takes n wavefronts. Does an n-way conflict take n times as long?
// Access pattern: lane i loads WIDTH bytes at i * stride * WIDTH. 4-byte accesses are served 32 lanes at a time, 8-byte accesses
// 16, 16-byte accesses 8; the lanes of such a phase conflict gcd(stride, 32), gcd(stride, 16), gcd(stride, 8) ways.
// The 64 loads form a chain: the address of each needs the value of the one before (masked with an argument that is 0). So the
// cycles are the latency of a load, and of the one logic instruction that makes the next address.
// Two passes are made and the second is timed: the first fetches the instructions.
// Counters: 128 load instructions, each of gcd(stride, 32), 2 * gcd(stride, 16) or 4 * gcd(stride, 8) wavefronts for WIDTH 4, 8
// or 16.
// Preconditions: one block of one warp; stride at most 33, where the array ends; zero is 0.

#include "access.cuh"

extern "C" __global__ void bank_latency(const unsigned* __restrict__ in, unsigned* __restrict__ out,
                                        unsigned* __restrict__ observed, int stride, unsigned zero) {
    __shared__ __align__(16) unsigned char tile[32 * 33 * WIDTH];

    const unsigned lane = threadIdx.x;
    const unsigned own = shared_address(tile) + lane * stride * WIDTH;
    unsigned value = in[lane], start = 0, stop = 0;
    store_shared<WIDTH>(own, value);

#pragma unroll 1
    for (int pass = 0; pass < 2; ++pass) {
        start = clock_after(value, zero);
#pragma unroll
        for (int k = 0; k < 64; ++k) {
            value = load_shared<WIDTH>(own | (value & zero));
        }
        stop = clock_after(value, zero);
    }

    out[lane] = value;
    if (lane == 0) {
        observed[0] = stop - start;
    }
}
