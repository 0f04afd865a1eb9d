// occupancy_registers: a copy of one element a thread that is given more registers than it uses.
//
// Rule: a multiprocessor's 65,536 registers are shared by its warps. A warp is given them in units of 256, 8 a thread, and warps
// come in groups of one for each of the four schedulers. Occupancy falls wherever one group fewer fits: in many small steps, of
// which those at multiples of 32 are no special ones.
// A kernel's registers are those of its hungriest path, even of one that is never taken: here a copy of LIVE values that are all
// held at once, for which the compiler needs 8 registers more. The path that is taken is the same for every LIVE.
// Counters: 4 sectors a request on both sides; the same instructions for every LIVE; registers LIVE + 8.
// Preconditions: blocks of 128 threads; LIVE a multiple of 8, at least 16; zero is 0.

#include "registers.cuh"

extern "C" __global__ void __maxnreg__(LIVE + 8)
    occupancy_registers(const unsigned* __restrict__ in, unsigned* __restrict__ out, int zero) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (zero) {
        hold<LIVE>(in, out, i);
        return;
    }
    out[i] = in[i];
}
