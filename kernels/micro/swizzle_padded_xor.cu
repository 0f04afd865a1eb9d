// swizzle_padded_xor: padding and exclusive-or at once. Each alone removes the conflicts of the column read; together they do not.
//
// Change from swizzle_xor_masked: rows tile + 1 words apart.
// Access pattern: element (row, col) at word row * (tile + 1) + (col ^ (row & (tile - 1))). With 32 columns row i of column c
// lies in bank (i + (c ^ i)) % 32: for column 0 that is 2 i, two ways; for column 31 it is 31 for every row, 32 ways.
// Counters: column reads of tile 32 take 2 to 32 wavefronts, by column.
// Preconditions: blocks of 256 threads; tile a power of two, at most 32.

#include "swizzle.cuh"

extern "C" __global__ void swizzle_padded_xor(const unsigned* __restrict__ in, unsigned* __restrict__ out, int tile) {
    __shared__ unsigned words[ROWS * 33];
    rows_in_columns_out(in, out, words, tile, [=](int row, int col) { return row * (tile + 1) + (col ^ (row & (tile - 1))); });
}
