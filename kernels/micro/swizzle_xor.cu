// swizzle_xor: the column exclusive-or the row, without a mask.
//
// Change from swizzle_none: row r keeps its elements in another order, col ^ r, and no word is wasted.
// Access pattern: element (row, col) at word row * tile + (col ^ row). For a fixed column the 32 rows visit all 32 banks.
// Counters: 1 wavefront for row writes and for column reads.
// Preconditions: blocks of 256 threads; a tile of 32 columns. In a narrower one col ^ row leaves the row as soon as the row's
// number is not below the width: with 8 columns, element (31, 0) would lie at column 31. Such cells are skipped.

#include "swizzle.cuh"

extern "C" __global__ void swizzle_xor(const unsigned* __restrict__ in, unsigned* __restrict__ out, int tile) {
    __shared__ unsigned words[ROWS * 32];
    rows_in_columns_out(in, out, words, tile, [=](int row, int col) { return row * tile + (col ^ row); });
}
