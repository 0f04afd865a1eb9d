// registers.cuh: a path for which a thread needs many registers: a copy of COUNT values that are all held at once.

template <int COUNT>
__device__ inline void hold(const unsigned* in, unsigned* out, int first) {
    unsigned value[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value[k]) : "l"(in + first + k));
    }
#pragma unroll
    for (int k = COUNT - 1; k >= 0; --k) {
        asm volatile("st.volatile.global.u32 [%0], %1;" : : "l"(out + first + k), "r"(value[k]));
    }
}
