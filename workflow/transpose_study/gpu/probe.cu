// The smallest kernel that does something: tells whether the compiler works and whether ncu may profile.
extern "C" __global__ void probe(float* out)
{
    out[threadIdx.x] = static_cast<float>(threadIdx.x);
}
