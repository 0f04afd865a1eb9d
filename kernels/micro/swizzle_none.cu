// swizzle_none: a tile whose rows follow one another as they are.
//
// Access pattern: element (row, col) at word row * tile + col; the column read finds row i in bank (i * tile + col) % 32.
// Counters: row writes 1 wavefront; column reads gcd(tile, 32) wavefronts: 8, 16, 8, 32 for tile 8, 16, 24, 32.
// Preconditions: blocks of 256 threads; tile a multiple of 8, at most 32.

#include "swizzle.cuh"

extern "C" __global__ void swizzle_none(const unsigned* __restrict__ in, unsigned* __restrict__ out, int tile) {
    __shared__ unsigned words[ROWS * 32];
    rows_in_columns_out(in, out, words, tile, [=](int row, int col) { return row * tile + col; });
}
