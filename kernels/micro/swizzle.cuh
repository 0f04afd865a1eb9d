// swizzle.cuh: what all swizzle kernels do with a tile of 32 rows; they differ in where an element is put.
//
// A block of 256 threads writes the tile by rows, as coalesced global loads bring it, and reads it by columns: lane i of a warp
// reads row i. Each column is read READS times, so that the time is that of the column reads, and written out as a row.

#include "access.cuh"

constexpr int ROWS = 32;
constexpr int READS = 16;

// `place(row, col)` is the word at which the tile's element lies.
template <class Place>
__device__ inline void rows_in_columns_out(const unsigned* __restrict__ in, unsigned* __restrict__ out, unsigned* shared, int width,
                                           Place place) {
    const int block = blockIdx.x * ROWS * width;
    for (int element = threadIdx.x; element < ROWS * width; element += blockDim.x) {
        shared[place(element / width, element % width)] = in[block + element];
    }
    __syncthreads();

    const int row = threadIdx.x % 32;
    for (int col = threadIdx.x / 32; col < width; col += blockDim.x / 32) {
        const unsigned address = shared_address(&shared[place(row, col)]);
        unsigned value = 0;
#pragma unroll
        for (int k = 0; k < READS; ++k) {
            value |= load_shared<4>(address);
        }
        out[block + col * ROWS + row] = value;
    }
}
