// paths.cuh: the two bodies of the divergence kernels, a square root and a sine, each a fixed number of instructions.
//
// The approximations are one instruction of the special function unit (the sine has a multiplication before it), whatever the
// number. As assembly they stay on the side of the branch on which they are written.

__device__ inline float root(float x) {
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ inline float sine(float x) {
    float y;
    asm("sin.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// A number from 1 to 2 made of the bits of a word.
__device__ inline float number_of(unsigned word) { return __uint_as_float(0x3f800000u | word >> 9); }

// The word unchanged, in a way that needs `x`: `zero` is 0, which the compiler does not know.
__device__ inline unsigned keep(unsigned word, float x, unsigned zero) { return word ^ (__float_as_uint(x) & zero); }
