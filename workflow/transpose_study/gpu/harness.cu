// The measuring program's own kernels: filling, comparing, and keeping a stream busy. None of them is ever timed.

// Keeps the stream busy for `cycles` SM clock cycles, so that what follows is queued before it starts.
extern "C" __global__ void harness_delay(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

// A bijection on 32 bits (odd multiplications and xor-shifts), so that distinct indices get distinct patterns.
__device__ unsigned mix(unsigned x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

// The bit pattern of element `index`. The first ones are values that a kernel touching floats as numbers would change:
// -0.0, -1.0, a quiet and a signalling NaN with payloads, infinities, a denormal.
__device__ unsigned encode(unsigned long long index) {
    const unsigned special[8] = {0x80000000u, 0xbf800000u, 0x7fc12345u, 0x7f812345u,
                                 0xffc54321u, 0xff800000u, 0x7f800000u, 0x00000001u};
    return index < 8 ? special[index] : mix((unsigned)index);
}

// Seeded random floats in (0, 1), never zero.
extern "C" __global__ void harness_fill_random(float* data, unsigned long long count, unsigned seed) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        const unsigned bits = mix((unsigned)i ^ mix(seed + (unsigned)(i >> 32)));
        data[i] = ((float)(bits >> 9) + 0.5f) * (1.0f / 8388608.0f);
    }
}

// Element i holds the pattern that encodes i.
extern "C" __global__ void harness_fill_index(unsigned* data, unsigned long long count) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        data[i] = encode(i);
    }
}

// Compares `out` with a permutation of the index pattern: element i must be that of (i % period) * step + i / period, so
// (1, 0) is a copy and (rows, cols) a transpose. result[0]: wrong elements; result[1]: the first.
extern "C" __global__ void harness_compare(const unsigned* out, unsigned long long count, unsigned long long period,
                                           unsigned long long step, unsigned long long* result) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        if (out[i] != encode(i % period * step + i / period)) {
            atomicAdd(&result[0], 1ull);
            atomicMin(&result[1], i);
        }
    }
}
