// copy: the study's baseline. One element a thread, one-dimensional blocks.
//
// Access pattern: lane i of a warp reads and writes element base + i; both sides are contiguous.
// Counters: 4 sectors a request on both sides; no shared memory; 16 warp instructions on compute capability 12.0.
// Preconditions: rows * cols <= 2^32 - BLOCK_SIZE, because the index has 32 bits.

static_assert(BLOCK_SIZE % 32 == 0 && BLOCK_SIZE <= 1024, "a block is made of whole warps");

extern "C" __global__ void copy(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
    const unsigned i = blockIdx.x * BLOCK_SIZE + threadIdx.x;
    if (i < (unsigned)rows * (unsigned)cols) {
        out[i] = in[i];
    }
}
