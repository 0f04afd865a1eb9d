// copy_vectorized: the copy that reaches the memory limit.
//
// Change from copy: 16-byte accesses, VECTORS independent loads in flight before the first store.
// Access pattern: lane i of a warp moves the 16 bytes at base + 16 i; a request covers 512 contiguous bytes.
// Counters: 16 sectors a request on both sides, a quarter of copy's requests; no shared memory.
// Preconditions: both buffers aligned to 16 bytes (the allocator gives 256); any size, the last elements go one by one.

static_assert(BLOCK_SIZE % 32 == 0 && BLOCK_SIZE <= 1024, "a block is made of whole warps");

extern "C" __global__ void copy_vectorized(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
    const size_t elements = (size_t)rows * cols;
    const size_t vectors = elements / 4;
    const size_t first = (size_t)blockIdx.x * (BLOCK_SIZE * VECTORS) + threadIdx.x;
    const float4* in4 = reinterpret_cast<const float4*>(in);
    float4* out4 = reinterpret_cast<float4*>(out);
    float4 value[VECTORS];
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        if (first + k * BLOCK_SIZE < vectors) {
            value[k] = in4[first + k * BLOCK_SIZE];
        }
    }
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        if (first + k * BLOCK_SIZE < vectors) {
            out4[first + k * BLOCK_SIZE] = value[k];
        }
    }
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x < elements % 4) {
        out[vectors * 4 + threadIdx.x] = in[vectors * 4 + threadIdx.x];
    }
}
