// swizzle_xor_masked: the column exclusive-or the row's lowest bits.
//
// Change from swizzle_xor: the mask tile - 1 keeps the result below the width, so that narrower tiles work as well.
// Access pattern: element (row, col) at word row * tile + (col ^ (row & (tile - 1))).
// Counters: row writes 1 wavefront; column reads 32 / tile: 4, 2, 1 for tile 8, 16, 32. Rows whose numbers are equal modulo the
// width are permuted alike, and begin in the same bank: the mask makes the formula valid, not conflict-free.
// Preconditions: blocks of 256 threads; tile a power of two, at most 32: with 24 columns the mask 23 has a hole, and element
// (16, 8) would lie at column 24. Such cells are skipped.

#include "swizzle.cuh"

extern "C" __global__ void swizzle_xor_masked(const unsigned* __restrict__ in, unsigned* __restrict__ out, int tile) {
    __shared__ unsigned words[ROWS * 32];
    rows_in_columns_out(in, out, words, tile, [=](int row, int col) { return row * tile + (col ^ (row & (tile - 1))); });
}
