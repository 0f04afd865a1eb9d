// tiled: a shared tile makes both global sides contiguous, and moves the stride into shared memory.
//
// Change from naive: a block stages 32 x 32 elements in shared memory and reads them back by columns.
// Access pattern: global reads and writes contiguous; the tile is written by rows and read by columns of pitch 32 words.
// Counters: 4 sectors a request on both sides; the column read is a 32-way bank conflict, 32 wavefronts a request.
// Preconditions: BLOCK_ROWS divides TILE_DIM.

static_assert(TILE_DIM == 32, "a row of the tile is one warp");
static_assert(TILE_DIM % BLOCK_ROWS == 0, "BLOCK_ROWS must divide TILE_DIM");

extern "C" __global__ void tiled(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
    __shared__ float tile[TILE_DIM][TILE_DIM];

    const int col = blockIdx.x * TILE_DIM + threadIdx.x;
    const int row = blockIdx.y * TILE_DIM + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) {
        if (col < cols && row + j < rows) {
            tile[threadIdx.y + j][threadIdx.x] = in[(size_t)(row + j) * cols + col];
        }
    }
    __syncthreads();

    const int out_col = blockIdx.y * TILE_DIM + threadIdx.x;  // the block's tile, mirrored at the diagonal
    const int out_row = blockIdx.x * TILE_DIM + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) {
        if (out_col < rows && out_row + j < cols) {
            out[(size_t)(out_row + j) * rows + out_col] = tile[threadIdx.x][threadIdx.y + j];
        }
    }
}
