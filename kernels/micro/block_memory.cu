// block_memory: a copy of one element a thread, by the size of the block.
//
// Rule: a multiprocessor holds a limited number of blocks as well as of warps. Blocks that are too small fill it with blocks
// before it is full of warps; blocks that do not divide its warps leave some of them empty.
// Counters: 4 sectors a request on both sides; theoretical occupancy by the limits of the device.
// Preconditions: a one-dimensional block and grid; any number of elements.

extern "C" __global__ void block_memory(const unsigned* __restrict__ in, unsigned* __restrict__ out, int elements) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < elements) {
        out[i] = in[i];
    }
}
