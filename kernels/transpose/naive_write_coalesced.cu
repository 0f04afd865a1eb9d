// naive_write_coalesced: the study's "naive". The thread mapping is swapped, and the strided side with it.
//
// Change from naive_read_coalesced: threadIdx.x runs along the rows of the input, so along the columns of the output.
// Access pattern: a warp reads a column of the input, one row apart, and writes 32 consecutive elements of an output row.
// Counters: 32 sectors a load request, 4 a store request; no shared memory.
// Preconditions: none beyond the grid limits.

static_assert(TILE_DIM == 32, "threadIdx.x spans one warp");
static_assert(TILE_DIM % BLOCK_ROWS == 0, "BLOCK_ROWS must divide TILE_DIM");

extern "C" __global__ void naive_write_coalesced(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
    const int row = blockIdx.x * TILE_DIM + threadIdx.x;
    const int col = blockIdx.y * BLOCK_ROWS + threadIdx.y;
    if (row < rows && col < cols) {
        out[(size_t)col * rows + row] = in[(size_t)row * cols + col];
    }
}
