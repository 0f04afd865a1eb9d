// global_latency: how long one warp waits for one load from global memory, at the first touch of a line and at the second.
//
// Rule: shared memory is close, DRAM far; how many times as far depends on which cache holds the line.
// Access pattern: 64 loads of 32 consecutive words, each from a line of its own, 33 lines apart. They form a chain as in
// bank_latency: the address of each needs the value of the one before, masked with an argument that is 0, so that both
// measure the latency of a load and of one logic instruction. `touch` 2 makes the same pass twice and times the second.
// Counters: 64 * touch load requests of 4 sectors.
// Preconditions: one block of one warp; touch 1 or 2; zero is 0. Whether L2 holds the lines at the first touch is the launch's matter.

#include "access.cuh"

extern "C" __global__ void global_latency(const unsigned* __restrict__ in, unsigned* __restrict__ out,
                                          unsigned* __restrict__ observed, int touch, unsigned zero) {
    const unsigned lane = threadIdx.x;
    const unsigned long long own = (unsigned long long)(in + lane);
    unsigned value = 0, start = 0, stop = 0;
    for (int pass = 0; pass < touch; ++pass) {
        start = clock_after(value, zero);
        value = start;
#pragma unroll
        for (int k = 0; k < 64; ++k) {
            value = load_global((own | (value & zero)) + k * (33 * 128));
        }
        stop = clock_after(value, zero);
    }
    out[lane] = value;
    if (lane == 0) {
        observed[0] = stop - start;
    }
}
