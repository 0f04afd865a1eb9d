// branch_short: a branch around one instruction or two; some lanes take the square root, the others the sine.
//
// Rule: a warp whose lanes take both ways executes both, one after the other, however few lanes take one of them.
// Access pattern: 32 rounds; in round k the `lanes` lanes (lane + k) % 32 < lanes take the square root, the others the sine.
// Counters: no branch is left: the compiler makes predicated instructions of both sides (@P0 sine, @!P0 square root), which every
// warp issues whatever `lanes` is: 32 threads an instruction, the same number of instructions for 0, 16 and 32 lanes. (Seen with
// nvcc 13.0 for compute capability 9.0; the machine code of your own build tells.)
// Preconditions: blocks of 256 threads; 0 <= lanes <= 32; zero is 0.

#include "paths.cuh"

extern "C" __global__ void branch_short(const unsigned* __restrict__ in, unsigned* __restrict__ out, int lanes, unsigned zero) {
    const int thread = blockIdx.x * 256 + threadIdx.x;
    const unsigned word = in[thread];
    float x = number_of(word);
#pragma unroll
    for (int k = 0; k < 32; ++k) {
        if ((threadIdx.x + k) % 32 < lanes) {
            x = root(x);
        } else {
            x = sine(x);
        }
    }
    out[thread] = keep(word, x, zero);
}
