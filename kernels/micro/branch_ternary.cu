// branch_ternary: the same choice as branch_short, written with ?: instead of if and else.
//
// Change from branch_short: the spelling. The compiler makes the same machine code of both, instruction by instruction.
// Counters: as branch_short.
// Preconditions: blocks of 256 threads; 0 <= lanes <= 32; zero is 0.

#include "paths.cuh"

extern "C" __global__ void branch_ternary(const unsigned* __restrict__ in, unsigned* __restrict__ out, int lanes, unsigned zero) {
    const int thread = blockIdx.x * 256 + threadIdx.x;
    const unsigned word = in[thread];
    float x = number_of(word);
#pragma unroll
    for (int k = 0; k < 32; ++k) {
        x = (threadIdx.x + k) % 32 < lanes ? root(x) : sine(x);
    }
    out[thread] = keep(word, x, zero);
}
