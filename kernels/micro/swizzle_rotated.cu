// swizzle_rotated: row r turned by r places.
//
// Change from swizzle_xor: (col + row) % tile instead of col ^ row. It stays in the row and is a bijection for every width.
// Access pattern: element (row, col) at word row * tile + (col + row) % tile.
// Counters: row writes 1 wavefront, 2 for tile 24, where the 32 words of a warp are parts of two rows; column reads 4, 2, 2, 1
// for tile 8, 16, 24, 32: rows whose numbers are equal modulo the width are turned alike.
// Preconditions: blocks of 256 threads; tile a multiple of 8, at most 32.

#include "swizzle.cuh"

extern "C" __global__ void swizzle_rotated(const unsigned* __restrict__ in, unsigned* __restrict__ out, int tile) {
    __shared__ unsigned words[ROWS * 32];
    rows_in_columns_out(in, out, words, tile, [=](int row, int col) { return row * tile + (col + row) % tile; });
}
