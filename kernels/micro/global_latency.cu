// global_latency: how long one warp waits for one load from global memory, at the first touch of a line and at the second.
//
// Rule: shared memory is close, DRAM far; how many times as far depends on which cache holds the line.
// Access pattern: 64 loads of 32 consecutive words, each from a line of its own, 33 lines apart. They form a chain as in
// bank_latency: the address of each needs the value of the one before, masked with an argument that is 0, so that both
// measure the latency of a load and of one logic instruction. A pass over other lines comes first and fetches the instructions;
// then one pass over the lines in question, or with `touch` 2 two passes. The last one is timed.
// Counters: 64 * (touch + 1) load requests of 4 sectors and 1 line.
// Preconditions: one block of one warp; touch 1 or 2; zero is 0. Whether L2 holds the lines at the first touch depends on what ran
// before.

#include "access.cuh"

extern "C" __global__ void global_latency(const unsigned* __restrict__ in, unsigned* __restrict__ out,
                                          unsigned* __restrict__ observed, int touch, unsigned zero) {
    const unsigned lane = threadIdx.x;
    unsigned value = 0, start = 0, stop = 0;
    for (int pass = 0; pass <= touch; ++pass) {
        const unsigned long long own = (unsigned long long)(in + lane + (pass == 0 ? 64 * 33 * 32 : 0));
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
