// registers_compute: 512 multiply-adds a thread in one chain, in a thread that is given more registers than it uses.
//
// Change from occupancy_registers: work that needs no memory, as in occupancy_compute. The path that is never taken is the same.
// Access pattern: one load and one store a thread, 4 sectors a request.
// Counters: 512 FFMA a warp and the same instructions for every LIVE; registers LIVE + 8.
// Preconditions: blocks of 128 threads; LIVE a multiple of 8, at least 16; never and zero are 0.

#include "chains.cuh"
#include "registers.cuh"

extern "C" __global__ void __maxnreg__(LIVE + 8)
    registers_compute(const unsigned* __restrict__ in, unsigned* __restrict__ out, int never, unsigned zero) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (never) {
        hold<LIVE>(in, out, i);
        return;
    }
    const unsigned word = in[i];
    out[i] = word ^ (__float_as_uint(multiply_adds<1>(word)) & zero);
}
