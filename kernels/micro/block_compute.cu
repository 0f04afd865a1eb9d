// block_compute: 512 multiply-adds a thread in ILP independent chains, by the size of the block.
//
// Change from block_memory: work that needs no memory, as in occupancy_compute; one element a thread for every ILP.
// Counters: 512 FFMA a warp whatever ILP and the block.
// Preconditions: a one-dimensional block and grid; any number of elements; zero is 0.

#include "chains.cuh"

extern "C" __global__ void block_compute(const unsigned* __restrict__ in, unsigned* __restrict__ out, int elements, unsigned zero) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < elements) {
        const unsigned word = in[i];
        out[i] = word ^ (__float_as_uint(multiply_adds<ILP>(word)) & zero);
    }
}
