// warp_lanes: which threads of a block make up a warp, asked of the hardware.
//
// Rule: threads are numbered x first, t = y * blockDim.x + x, and each 32 consecutive numbers are a warp. Only where blockDim.x is
// a multiple of 32 does a warp lie in one row of the block.
// Access pattern: each thread learns the number of its warp's lane 0 by a shuffle, and its own lane from the register %laneid,
// and copies the input's elements of those numbers to out[t] and out[n + t], n threads a block.
// Counters: out[t] = in[t / 32 * 32] and out[n + t] = in[t % 32]; one request for each warp and array.
// Preconditions: one block; the input has at least 32 elements.

extern "C" __global__ void warp_lanes(const unsigned* __restrict__ in, unsigned* __restrict__ out) {
    const int threads = blockDim.x * blockDim.y;
    const int t = threadIdx.y * blockDim.x + threadIdx.x;
    const int first = __shfl_sync(__activemask(), t, 0);
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    out[t] = in[first];
    out[threads + t] = in[lane];
}
