// vector_scalar_xor: the tile float4[32][8], swizzled by words as if it were float[32][32].
//
// Change from vector_xor: word w of row r lies at r * 32 + (w ^ r). The four words of a vector then lie side by side only up to
// a permutation, at an address that is a multiple of 16 bytes for every fourth row only: no 16-byte access can fetch them.
// The formula is right, but each vector takes four 4-byte accesses.
// Access pattern: lane i reads words 4 v .. 4 v + 3 of row i, one at a time.
// Counters: 4 times the shared instructions of vector_xor. Column reads 1 wavefront each, 4 a vector, as many as vector_xor.
// Row writes 1 wavefront each, 4 a vector: of (4 v + k) ^ row, the bank, the upper three bits tell the 8 vectors apart and the
// lower two the 4 neighbouring rows.
// Preconditions: blocks of 256 threads.

#include "vector.cuh"

extern "C" __global__ void vector_scalar_xor(const uint4* __restrict__ in, uint4* __restrict__ out) {
    __shared__ unsigned tile[ROWS * 32];

    const int block = blockIdx.x * ROWS * VECTORS;
    const int from = threadIdx.x / VECTORS;
    const int word = threadIdx.x % VECTORS * 4;
    const uint4 vector = in[block + threadIdx.x];
    tile[from * 32 + (word ^ from)] = vector.x;
    tile[from * 32 + ((word + 1) ^ from)] = vector.y;
    tile[from * 32 + ((word + 2) ^ from)] = vector.z;
    tile[from * 32 + ((word + 3) ^ from)] = vector.w;
    __syncthreads();

    const int row = threadIdx.x % 32;
    const int column = threadIdx.x / 32;
    unsigned value[4] = {0, 0, 0, 0};
#pragma unroll
    for (int k = 0; k < READS; ++k) {
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            value[part] |= load_shared<4>(shared_address(&tile[row * 32 + ((column * 4 + part) ^ row)]));
        }
    }
    out[block + column * ROWS + row] = make_uint4(value[0], value[1], value[2], value[3]);
}
