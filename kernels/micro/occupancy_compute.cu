// occupancy_compute: 512 multiply-adds a thread in ILP independent chains, with fewer and fewer blocks on a multiprocessor.
//
// Change from occupancy_memory: the latency to hide is that of arithmetic, a few cycles. A scheduler needs as many independent
// instructions under way as a multiply-add has cycles of latency: from several warps, or from several chains of one warp.
// Access pattern: one load and one store a thread, 4 sectors a request.
// Counters: 512 FFMA a warp whatever ILP and occupancy.
// Preconditions: blocks of 256 threads; zero is 0.

#include "chains.cuh"

extern "C" __global__ void occupancy_compute(const unsigned* __restrict__ in, unsigned* __restrict__ out, unsigned zero) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    const unsigned word = in[i];
    out[i] = word ^ (__float_as_uint(multiply_adds<ILP>(word)) & zero);
}
