// block_memory: a copy of ILP elements a thread, by the size of the block.
//
// Rule: a multiprocessor holds a limited number of blocks as well as of warps. Blocks that are too small fill it with blocks
// before it is full of warps; blocks that do not divide its warps leave some of them empty. More elements a thread are fewer
// blocks to start, and more loads under way in each.
// Access pattern: thread t of a block reads ILP elements a block's width apart, then writes them.
// Counters: 4 sectors a request on both sides; theoretical occupancy by the limits of the device.
// Preconditions: a one-dimensional block and grid; any number of elements.

extern "C" __global__ void block_memory(const unsigned* __restrict__ in, unsigned* __restrict__ out, int elements) {
    const int width = blockDim.x;
    const int first = blockIdx.x * (width * ILP) + threadIdx.x;
    if (first >= elements) {
        return;
    }
    unsigned value[ILP];
#pragma unroll
    for (int k = 0; k < ILP; ++k) {
        if (first + k * width < elements) {
            value[k] = in[first + k * width];
        }
    }
#pragma unroll
    for (int k = 0; k < ILP; ++k) {
        if (first + k * width < elements) {
            out[first + k * width] = value[k];
        }
    }
}
