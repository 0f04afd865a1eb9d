"""CUDA kernels outside of the ladder, for the tests: other tiles, other shapes of control flow, and faulty ones."""

SIGNATURE = "const float* __restrict__ in, float* __restrict__ out, int rows, int cols"

# name: (source, block, grid of a rows x cols launch, bytes of an element)
OTHERS = {
    "diagonal": (
        """extern "C" __global__ void diagonal(SIGNATURE) {
    __shared__ float tile[32][33];
    const int by = (blockIdx.x + blockIdx.y) % gridDim.y, bx = blockIdx.x;
    int c = bx * 32 + threadIdx.x, r = by * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) if (c < cols && r + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(size_t)(r + j) * cols + c];
    __syncthreads();
    c = by * 32 + threadIdx.x; r = bx * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) if (c < rows && r + j < cols) out[(size_t)(r + j) * rows + c] = tile[threadIdx.x][threadIdx.y + j];
}""".replace("SIGNATURE", SIGNATURE),
        (32, 8),
        lambda rows, cols: (-(-cols // 32), -(-rows // 32)),
    ),
    "tile16_swizzled": (
        """extern "C" __global__ void tile16_swizzled(SIGNATURE) {
    __shared__ float tile[16][16];
    int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
    if (c < cols && r < rows) tile[threadIdx.y][threadIdx.x ^ threadIdx.y] = in[(size_t)r * cols + c];
    __syncthreads();
    c = blockIdx.y * 16 + threadIdx.x; r = blockIdx.x * 16 + threadIdx.y;
    if (c < rows && r < cols) out[(size_t)r * rows + c] = tile[threadIdx.x][threadIdx.y ^ threadIdx.x];
}""".replace("SIGNATURE", SIGNATURE),
        (16, 16),
        lambda rows, cols: (-(-cols // 16), -(-rows // 16)),
    ),
    "grid_stride": (
        """extern "C" __global__ void grid_stride(SIGNATURE) {
    const size_t n = (size_t)rows * cols;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        out[i / cols + (i % cols) * rows] = in[i];
}""".replace("SIGNATURE", SIGNATURE),
        (64,),
        lambda rows, cols: (7,),
    ),
    "odd_even_blocks": (
        """extern "C" __global__ void odd_even_blocks(SIGNATURE) {
    const int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 4 + threadIdx.y;
    if (c >= cols || r >= rows) return;
    const float v = in[(size_t)r * cols + c];
    if (blockIdx.x & 1) { if (threadIdx.x < 20) out[(size_t)c * rows + r] = v; else out[(size_t)c * rows + r] = v + 0.0f * r; }
    else out[(size_t)c * rows + r] = v;
}""".replace("SIGNATURE", SIGNATURE),
        (32, 4),
        lambda rows, cols: (-(-cols // 32), -(-rows // 4)),
    ),
    "warp_columns": (
        """extern "C" __global__ void warp_columns(SIGNATURE) {
    const int c0 = blockIdx.x * 4, lane = threadIdx.x, r = blockIdx.y * 32 + lane;
    for (int j = 0; j < 4; ++j) {
        const int c = c0 + j;
        float v = 0;
        if (c < cols && r < rows) v = in[(size_t)r * cols + c];
        v = __shfl_sync(0xffffffffu, v, lane);
        if (c < cols && r < rows) out[(size_t)c * rows + r] = v;
    }
}""".replace("SIGNATURE", SIGNATURE),
        (32,),
        lambda rows, cols: (-(-cols // 4), -(-rows // 32)),
    ),
}

DATA_DEPENDENT = """extern "C" __global__ void data_dependent(SIGNATURE) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * cols && in[i] > 0.5f) out[i] = in[i];
}""".replace("SIGNATURE", SIGNATURE)

# What breaks each: (source of the loads and stores between the lines of a tiled transpose, message)
FAULTY = {
    "out_of_bounds_load": ("in[(size_t)(r + 1) * cols + c]", "out[(size_t)c2 * rows + r2]", "__syncthreads();", "out-of-bounds global load"),
    "out_of_bounds_store": ("in[(size_t)r * cols + c]", "out[(size_t)c2 * rows + r2 + 1]", "__syncthreads();", "out-of-bounds global store"),
    "no_barrier": ("in[(size_t)r * cols + c]", "out[(size_t)c2 * rows + r2]", "", "missing barrier"),
    "divergent_barrier": (
        "in[(size_t)r * cols + c]",
        "out[(size_t)c2 * rows + r2]",
        "if (threadIdx.x < 16) __syncthreads();",
        "barrier lies inside divergent code",
    ),
    "barrier_of_some_warps": (
        "in[(size_t)r * cols + c]",
        "out[(size_t)c2 * rows + r2]",
        'if (threadIdx.y < 2) __syncthreads(); else { asm volatile("bar.sync 1;"); }',
        "not reached by all warps",
    ),
    "wrong_element": ("in[(size_t)r * cols + (c ^ 1)]", "out[(size_t)c2 * rows + r2]", "__syncthreads();", "elements are wrong"),
}


def faulty(name: str) -> str:
    load, store, barrier, _ = FAULTY[name]
    return f"""extern "C" __global__ void {name}({SIGNATURE}) {{
    __shared__ float tile[32][33];
    const int c = blockIdx.x * 32 + threadIdx.x, r0 = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {{ const int r = r0 + j; tile[threadIdx.y + j][threadIdx.x] = {load}; }}
    {barrier}
    const int r2 = blockIdx.y * 32 + threadIdx.x, c0 = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) {{ const int c2 = c0 + j; {store} = tile[threadIdx.x][threadIdx.y + j]; }}
}}"""
