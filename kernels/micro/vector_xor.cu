// vector_xor: the tile float4[32][8], swizzled by whole vectors.
//
// Change from vector_none: the number of the vector, not of the word, is exclusive-ored with the row, by a mask of 8 vectors.
// Access pattern: vector v of row r at r * 8 + (v ^ (r & 7)): 8 neighbouring rows have it in 8 different places of a row.
// Counters: row writes and column reads 4 wavefronts, the least for 512 bytes.
// Preconditions: blocks of 256 threads.

#include "vector.cuh"

extern "C" __global__ void vector_xor(const uint4* __restrict__ in, uint4* __restrict__ out) {
    __shared__ uint4 tile[ROWS * VECTORS];
    vectors_in_columns_out(in, out, tile, [](int row, int vector) { return row * VECTORS + (vector ^ (row & 7)); });
}
