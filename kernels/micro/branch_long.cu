// branch_long: a branch around 16 instructions and more.
//
// Change from branch_short: 16 square roots or 16 sines on either side, 4 rounds.
// Counters: the branch is kept, with a point where the lanes join again (BSSY, BRA, BSYNC). A warp all of whose lanes go one way
// issues that way alone: 64 instructions for the square roots (lanes 32), 128 for the sines (lanes 0). From 1 to 31 lanes it
// issues both, 192, whatever the number; threads an instruction fall from 32 to between 23 and 14.
// Preconditions: blocks of 256 threads; 0 <= lanes <= 32; zero is 0.

#include "paths.cuh"

extern "C" __global__ void branch_long(const unsigned* __restrict__ in, unsigned* __restrict__ out, int lanes, unsigned zero) {
    const int thread = blockIdx.x * 256 + threadIdx.x;
    const unsigned word = in[thread];
    float x = number_of(word);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if ((threadIdx.x + k) % 32 < lanes) {
#pragma unroll
            for (int step = 0; step < 16; ++step) {
                x = root(x);
            }
        } else {
#pragma unroll
            for (int step = 0; step < 16; ++step) {
                x = sine(x);
            }
        }
    }
    out[thread] = keep(word, x, zero);
}
