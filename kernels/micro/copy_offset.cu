// copy_offset: a copy whose source begins `offset` elements behind an aligned address.
//
// Rule: global memory moves in sectors of 32 bytes, four to a line of 128. A warp's 32 words of 4 bytes fill 4 sectors if the
// first begins a sector, and touch 5 otherwise.
// Access pattern: thread i reads in[i + offset] and writes out[i].
// Counters: load sectors a request 4 where offset is a multiple of 8, else 5; lines a request 1 where it is a multiple of 32,
// else 2. Stores are aligned: 4 sectors, 1 line. Neighbouring warps share the fifth sector, so that DRAM moves hardly more.
// Preconditions: blocks of 256 threads; the input has `offset` elements more than the output; the allocator aligns to 256 bytes.

extern "C" __global__ void copy_offset(const unsigned* __restrict__ in, unsigned* __restrict__ out, int offset) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    out[i] = in[i + offset];
}
