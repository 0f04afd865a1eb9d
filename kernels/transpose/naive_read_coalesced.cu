// naive_read_coalesced: the transpose as one would first write it. One element a thread, no shared memory.
//
// Change from copy: the output index is transposed.
// Access pattern: a warp reads 32 consecutive elements of an input row and writes a column of the output, one row apart.
// Counters: 4 sectors a load request, 32 a store request; no shared memory.
// Preconditions: none beyond the grid limits.

static_assert(TILE_DIM == 32, "threadIdx.x spans one warp");
static_assert(TILE_DIM % BLOCK_ROWS == 0, "BLOCK_ROWS must divide TILE_DIM");

extern "C" __global__ void naive_read_coalesced(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
    const int col = blockIdx.x * TILE_DIM + threadIdx.x;
    const int row = blockIdx.y * BLOCK_ROWS + threadIdx.y;
    if (row < rows && col < cols) {
        out[(size_t)col * rows + row] = in[(size_t)row * cols + col];
    }
}
