// branch_paths: up to 32 different ways through one warp.
//
// Change from branch_long: lane i takes path i % paths, of 16 square roots with a constant of its own.
// Access pattern: a tree of branches, 5 deep, leads to the 32 paths.
// Counters: 32 instructions for each path that any lane takes: warp instructions grow with `paths`, threads an instruction fall
// like 32 / paths.
// Preconditions: blocks of 256 threads; 1 <= paths <= 32; zero is 0.

#include "paths.cuh"

template <int FIRST, int COUNT>
__device__ inline float take(int path, float x) {
    if constexpr (COUNT == 1) {
#pragma unroll
        for (int step = 0; step < 16; ++step) {
            x = root(x + FIRST);
        }
        return x;
    } else if (path < FIRST + COUNT / 2) {
        return take<FIRST, COUNT / 2>(path, x);
    } else {
        return take<FIRST + COUNT / 2, COUNT / 2>(path, x);
    }
}

extern "C" __global__ void branch_paths(const unsigned* __restrict__ in, unsigned* __restrict__ out, int paths, unsigned zero) {
    const int thread = blockIdx.x * 256 + threadIdx.x;
    const unsigned word = in[thread];
    const float x = take<0, 32>(threadIdx.x % 32 % paths, number_of(word));
    out[thread] = keep(word, x, zero);
}
