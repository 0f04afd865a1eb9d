// access.cuh: accesses that the compiler must make as they are written, and a clock that waits for a value.
//
// A compiler drops a load whose value nobody needs and joins two stores to one address. Written as volatile assembly each access
// stays one instruction of the width asked for: that is what the experiments count and time.

// The address within shared memory, as ld.shared and st.shared take it.
__device__ inline unsigned shared_address(const void* pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }

// Load SIZE bytes (1, 2, 4, 8 or 16) from shared memory; gives the first word of them, or the byte or half word.
template <int SIZE>
__device__ inline unsigned load_shared(unsigned address) {
    [[maybe_unused]] unsigned first, second, third, fourth;
    if constexpr (SIZE == 1) {
        asm volatile("ld.volatile.shared.u8 %0, [%1];" : "=r"(first) : "r"(address));
    } else if constexpr (SIZE == 2) {
        asm volatile("{ .reg .u16 half; ld.volatile.shared.u16 half, [%1]; cvt.u32.u16 %0, half; }" : "=r"(first) : "r"(address));
    } else if constexpr (SIZE == 4) {
        asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(first) : "r"(address));
    } else if constexpr (SIZE == 8) {
        asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];" : "=r"(first), "=r"(second) : "r"(address));
    } else {
        static_assert(SIZE == 16, "an access has 1, 2, 4, 8 or 16 bytes");
        asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(first), "=r"(second), "=r"(third), "=r"(fourth) : "r"(address));
    }
    return first;
}

// Store SIZE bytes to shared memory: the value's lowest bytes, or the value in each of several words.
template <int SIZE>
__device__ inline void store_shared(unsigned address, unsigned value) {
    if constexpr (SIZE == 1) {
        asm volatile("st.volatile.shared.u8 [%0], %1;" : : "r"(address), "r"(value));
    } else if constexpr (SIZE == 2) {
        asm volatile("{ .reg .u16 half; cvt.u16.u32 half, %1; st.volatile.shared.u16 [%0], half; }" : : "r"(address), "r"(value));
    } else if constexpr (SIZE == 4) {
        asm volatile("st.volatile.shared.u32 [%0], %1;" : : "r"(address), "r"(value));
    } else if constexpr (SIZE == 8) {
        asm volatile("st.volatile.shared.v2.u32 [%0], {%1, %1};" : : "r"(address), "r"(value));
    } else {
        static_assert(SIZE == 16, "an access has 1, 2, 4, 8 or 16 bytes");
        asm volatile("st.volatile.shared.v4.u32 [%0], {%1, %1, %1, %1};" : : "r"(address), "r"(value));
    }
}

// Load a word from global memory, through all caches.
__device__ inline unsigned load_global(unsigned long long address) {
    unsigned value;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(address));
    return value;
}

// The multiprocessor's cycle counter, read after `value` has arrived: the branch (never taken, `zero` is 0) has to wait for it.
__device__ inline unsigned clock_after(unsigned value, unsigned zero) {
    if (value & zero) {
        __trap();
    }
    unsigned now;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
    return now;
}
