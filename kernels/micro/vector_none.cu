// vector_none: the tile float4[32][8] as it is.
//
// Rule: 16-byte accesses are served 8 lanes at a time. A row has 8 vectors, 32 words: every row begins in bank 0.
// Access pattern: the column read finds vector v of 8 rows in the same four banks.
// Counters: row writes 4 wavefronts, the least for 512 bytes; column reads 32: 8 ways in each of 4 phases.
// Preconditions: blocks of 256 threads.

#include "vector.cuh"

extern "C" __global__ void vector_none(const uint4* __restrict__ in, uint4* __restrict__ out) {
    __shared__ uint4 tile[ROWS * VECTORS];
    vectors_in_columns_out(in, out, tile, [](int row, int vector) { return row * VECTORS + vector; });
}
