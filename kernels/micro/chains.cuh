// chains.cuh: work that needs no memory: 512 multiply-adds a thread, in CHAINS chains that do not depend on one another.

constexpr int MULTIPLY_ADDS = 512;

template <int CHAINS>
__device__ inline float multiply_adds(unsigned word) {
    float x[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) {
        x[c] = __uint_as_float(0x3f800000u | word >> 9) + c;
    }
    const float step = x[0] * 0.001f;
#pragma unroll
    for (int k = 0; k < MULTIPLY_ADDS / CHAINS; ++k) {
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) {
            x[c] = fmaf(x[c], 0.999f, step);
        }
    }
    float sum = 0;
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) {
        sum += x[c];
    }
    return sum;
}
