// swizzle_padded: one unused word behind each row.
//
// Change from swizzle_none: rows tile + 1 words apart. An odd pitch has no factor in common with the 32 banks.
// Access pattern: element (row, col) at word row * (tile + 1) + col.
// Counters: column reads 1 wavefront. Row writes of a narrow tile pay for it: a warp writes several rows with gaps between them,
// more than 32 words from first to last, hence 2 wavefronts for tile 8, 16 and 24.
// Preconditions: blocks of 256 threads; tile a multiple of 8, at most 32.

#include "swizzle.cuh"

extern "C" __global__ void swizzle_padded(const unsigned* __restrict__ in, unsigned* __restrict__ out, int tile) {
    __shared__ unsigned words[ROWS * 33];
    rows_in_columns_out(in, out, words, tile, [=](int row, int col) { return row * (tile + 1) + col; });
}
