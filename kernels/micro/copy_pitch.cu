// copy_pitch: a copy out of a matrix whose rows are a little longer than 1024 elements.
//
// Change from copy_offset: the misalignment differs from row to row: row r begins r * row_pitch elements behind the first.
// Access pattern: a block copies 256 elements of one row; the output's rows have 1024 elements.
// Counters: load sectors a request 4 in the rows where r * row_pitch is a multiple of 8, else 5: on average 4 for row_pitch 1024,
// 1032 and 1040, 4.5 for 1028, 4.75 for 1026, 4.875 for 1025.
// Preconditions: blocks of 256 threads, a grid of 4 blocks a row.

extern "C" __global__ void copy_pitch(const unsigned* __restrict__ in, unsigned* __restrict__ out, int row_pitch) {
    const int col = blockIdx.x * 256 + threadIdx.x;
    const int row = blockIdx.y;
    out[row * 1024 + col] = in[row * row_pitch + col];
}
