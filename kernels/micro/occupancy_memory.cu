// occupancy_memory: a copy of ILP elements a thread, with fewer and fewer blocks on a multiprocessor.
//
// Rule: what hides the latency of memory is the number of bytes under way: resident warps times the independent loads of each.
// Fewer warps need more loads a thread.
// Access pattern: thread t of a block reads ILP elements 256 apart, then writes them. The block asks for dynamic shared memory
// that it does not use: this alone limits how many blocks are resident.
// Counters: 4 sectors a request on both sides; warps a quarter of a copy's with ILP 4.
// Preconditions: blocks of 256 threads; the elements are a multiple of 256 * ILP.

extern "C" __global__ void occupancy_memory(const unsigned* __restrict__ in, unsigned* __restrict__ out) {
    const int first = blockIdx.x * (256 * ILP) + threadIdx.x;
    unsigned value[ILP];
#pragma unroll
    for (int k = 0; k < ILP; ++k) {
        value[k] = in[first + k * 256];
    }
#pragma unroll
    for (int k = 0; k < ILP; ++k) {
        out[first + k * 256] = value[k];
    }
}
