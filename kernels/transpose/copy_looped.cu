// copy_looped: the copy with the geometry of the transposes, so that a tile's cost can be told from its traffic's.
//
// Change from copy: blocks of 32 x BLOCK_ROWS threads move 32 x 32 elements in TILE_DIM / BLOCK_ROWS steps.
// Access pattern: a warp reads and writes 32 consecutive elements of one row.
// Counters: 4 sectors a request on both sides where cols is a multiple of 8; no shared memory.
// Preconditions: BLOCK_ROWS divides TILE_DIM.

static_assert(TILE_DIM == 32, "a row of the tile is one warp");
static_assert(TILE_DIM % BLOCK_ROWS == 0, "BLOCK_ROWS must divide TILE_DIM");

extern "C" __global__ void copy_looped(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
    const int col = blockIdx.x * TILE_DIM + threadIdx.x;
    const int row = blockIdx.y * TILE_DIM + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) {
        if (col < cols && row + j < rows) {
            out[(size_t)(row + j) * cols + col] = in[(size_t)(row + j) * cols + col];
        }
    }
}
