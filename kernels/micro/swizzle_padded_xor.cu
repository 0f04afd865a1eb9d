// swizzle_padded_xor: padding and exclusive-or at once. Each alone removes the conflicts of the column read; together they do not.
//
// Change from swizzle_xor_masked: rows tile + 1 words apart.
// Access pattern: element (row, col) at word row * (tile + 1) + (col ^ (row & (tile - 1))). With 32 columns row i of column c
// lies in bank (i + (c ^ i)) % 32: for column 0 that is 2 i, two ways; for column 31 it is 31 for every row, 32 ways.
// Counters: column reads 2 wavefronts for column 0, twice as many for each bit that is 1 in the column's number, except the bit
// of tile / 2 where tile is 32; on average 4.5, 6.75 and 10.125 for tile 8, 16 and 32. Row writes as in swizzle_padded.
// Preconditions: blocks of 256 threads; tile a power of two, at most 32.

#include "swizzle.cuh"

extern "C" __global__ void swizzle_padded_xor(const unsigned* __restrict__ in, unsigned* __restrict__ out, int tile) {
    __shared__ unsigned words[ROWS * 33];
    rows_in_columns_out(in, out, words, tile, [=](int row, int col) { return row * (tile + 1) + (col ^ (row & (tile - 1))); });
}
