// tiled_rotated: the general permutation; each row of the tile is rotated by its index.
//
// Change from tiled_xor: element (r, c) lies in column (c + r) % 32, which needs no power of two.
// Access pattern: as tiled; for a fixed c, r -> (c + r) % 32 visits each of the 32 banks once.
// Counters: 4 sectors a request on both sides; 1 wavefront a shared request in both directions.
// Preconditions: BLOCK_ROWS divides TILE_DIM.

static_assert(TILE_DIM == 32, "a row of the tile is one warp");
static_assert(TILE_DIM % BLOCK_ROWS == 0, "BLOCK_ROWS must divide TILE_DIM");

extern "C" __global__ void tiled_rotated(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
    __shared__ float tile[TILE_DIM][TILE_DIM];

    const int col = blockIdx.x * TILE_DIM + threadIdx.x;
    const int row = blockIdx.y * TILE_DIM + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) {
        if (col < cols && row + j < rows) {
            tile[threadIdx.y + j][(threadIdx.x + threadIdx.y + j) % TILE_DIM] = in[(size_t)(row + j) * cols + col];
        }
    }
    __syncthreads();

    const int out_col = blockIdx.y * TILE_DIM + threadIdx.x;  // the block's tile, mirrored at the diagonal
    const int out_row = blockIdx.x * TILE_DIM + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) {
        if (out_col < rows && out_row + j < cols) {
            out[(size_t)(out_row + j) * rows + out_col] = tile[threadIdx.x][(threadIdx.y + j + threadIdx.x) % TILE_DIM];
        }
    }
}
