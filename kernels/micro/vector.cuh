// vector.cuh: what the kernels of the tile float4[32][8] do: 32 rows of 8 vectors of 16 bytes, written by rows, read by columns.
//
// A block has 256 threads. Thread t writes vector t % 8 of row t / 8; warp w reads column w, lane i the vector of row i, READS
// times, and writes it out, so that the output holds the columns one after the other.

#include "access.cuh"

constexpr int ROWS = 32;
constexpr int VECTORS = 8;
constexpr int READS = 16;

// A vector from shared memory, by one 16-byte load.
__device__ inline uint4 load_vector(unsigned address) {
    uint4 v;
    asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address));
    return v;
}

// `place(row, vector)` is the vector of the tile where the one of that row and column lies.
template <class Place>
__device__ inline void vectors_in_columns_out(const uint4* __restrict__ in, uint4* __restrict__ out, uint4* shared, Place place) {
    const int block = blockIdx.x * ROWS * VECTORS;
    shared[place(threadIdx.x / VECTORS, threadIdx.x % VECTORS)] = in[block + threadIdx.x];
    __syncthreads();

    const int row = threadIdx.x % 32;
    const int column = threadIdx.x / 32;
    const unsigned address = shared_address(&shared[place(row, column)]);
    uint4 value = make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int k = 0; k < READS; ++k) {
        const uint4 read = load_vector(address);
        value = make_uint4(value.x | read.x, value.y | read.y, value.z | read.z, value.w | read.w);
    }
    out[block + column * ROWS + row] = value;
}
