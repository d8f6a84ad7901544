// Capture writes what a GPU's FP8 matrix instructions return for a fixed set of
// inputs to a safetensors file. It is for tests of models: see README.md.
//
//	nvcc -O2 -std=c++17 -arch=sm_90a -o capture capture.cu && ./capture capture-h200.safetensors
//
// A case is named INSTRUCTION-RESULT-A-B-INPUTS-kK, such as
// wgmma-f32-e4m3-e5m2-wide-k128, and has the tensors NAME.a [tiles, M, K], NAME.b
// [tiles, 8, K], NAME.c and NAME.d [tiles, M, 8], with d = c + a·bᵀ, M being 64 for
// wgmma and 16 for mma. K beyond 32 is a chain of instructions.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

enum Pair { E4M3_E4M3, E5M2_E5M2, E4M3_E5M2, E5M2_E4M3 };
const char *const pair_names[] = {"e4m3-e4m3", "e5m2-e5m2", "e4m3-e5m2", "e5m2-e4m3"};

// Instructions. The accumulator is c before and d after.
template <Pair P> __device__ void wgmma(float (&d)[4], const uint32_t (&a)[4], uint64_t b);
template <Pair P> __device__ void wgmma(uint32_t (&d)[2], const uint32_t (&a)[4], uint64_t b);
template <Pair P> __device__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);

#define DEFINE_MMA(P, AB)                                                                              \
    template <> __device__ void mma<P>(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { \
        asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." AB ".f32 "                               \
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                           \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));              \
    }
DEFINE_MMA(E4M3_E4M3, "e4m3.e4m3")
DEFINE_MMA(E5M2_E5M2, "e5m2.e5m2")
DEFINE_MMA(E4M3_E5M2, "e4m3.e5m2")
DEFINE_MMA(E5M2_E4M3, "e5m2.e4m3")

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define DEFINE_WGMMA(P, AB)                                                                            \
    template <> __device__ void wgmma<P>(float (&d)[4], const uint32_t (&a)[4], uint64_t b) {          \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %9, 0;\n"                                         \
                     "wgmma.mma_async.sync.aligned.m64n8k32.f32." AB " "                               \
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, p, 1, 1; }"                                    \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1) : "memory");         \
    }                                                                                                  \
    template <> __device__ void wgmma<P>(uint32_t (&d)[2], const uint32_t (&a)[4], uint64_t b) {       \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %7, 0;\n"                                         \
                     "wgmma.mma_async.sync.aligned.m64n8k32.f16." AB " "                               \
                     "{%0,%1}, {%2,%3,%4,%5}, %6, p, 1, 1; }"                                          \
                     : "+r"(d[0]), "+r"(d[1])                                                          \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1) : "memory");         \
    }
DEFINE_WGMMA(E4M3_E4M3, "e4m3.e4m3")
DEFINE_WGMMA(E5M2_E5M2, "e5m2.e5m2")
DEFINE_WGMMA(E4M3_E5M2, "e4m3.e5m2")
DEFINE_WGMMA(E5M2_E4M3, "e5m2.e4m3")
#endif

// Fragments (PTX ISA, "Register Fragments"): of A, register r of a lane holds four
// codes of row lane/4 + 8·(r mod 2) from k = 4·(lane mod 4) + 16·(r/2) on; of B,
// register r those of column lane/4 from k = 4·(lane mod 4) + 16·r on. A lane has C
// at row lane/4, columns 2·(lane mod 4) and the next, and likewise 8 rows below.
__device__ uint32_t word(const uint8_t *p) { return *reinterpret_cast<const uint32_t *>(p); }

__device__ void load_a(uint32_t (&r)[4], const uint8_t *a, int K, int row, int k) {
    int lane = threadIdx.x % 32;
    for (int i = 0; i < 4; i++)
        r[i] = word(a + (row + lane / 4 + 8 * (i % 2)) * K + k + 4 * (lane % 4) + 16 * (i / 2));
}

// The accumulator as it lies in memory: pairs of neighbours in a row.
__device__ int pair_at(int row, int i) {
    int lane = threadIdx.x % 32;
    return (row + lane / 4 + 8 * i) * 8 + 2 * (lane % 4);
}
__device__ void load_c(float (&r)[4], const float *c, int row) {
    for (int i = 0; i < 4; i++) r[i] = c[pair_at(row, i / 2) + i % 2];
}
__device__ void store_d(float *d, const float (&r)[4], int row) {
    for (int i = 0; i < 4; i++) d[pair_at(row, i / 2) + i % 2] = r[i];
}
__device__ void load_c(uint32_t (&r)[2], const uint16_t *c, int row) {
    for (int i = 0; i < 2; i++) r[i] = *reinterpret_cast<const uint32_t *>(c + pair_at(row, i));
}
__device__ void store_d(uint16_t *d, const uint32_t (&r)[2], int row) {
    for (int i = 0; i < 2; i++) *reinterpret_cast<uint32_t *>(d + pair_at(row, i)) = r[i];
}

// One warp computes a tile of 16x8.
template <Pair P> __global__ void mma_kernel(const uint8_t *a, const uint8_t *b, const float *c, float *d, int K) {
    a += blockIdx.x * 16 * K, b += blockIdx.x * 8 * K, c += blockIdx.x * 128, d += blockIdx.x * 128;
    float sum[4];
    load_c(sum, c, 0);
    int lane = threadIdx.x;
    for (int k = 0; k < K; k += 32) {
        uint32_t x[4], y[2];
        load_a(x, a, K, 0, k);
        for (int i = 0; i < 2; i++) y[i] = word(b + lane / 4 * K + k + 4 * (lane % 4) + 16 * i);
        mma<P>(sum, x, y);
    }
    store_d(d, sum, 0);
}

const int longest = 128; // K of a case
const int most = 2048;   // K that there is memory for

// One warp group computes a tile of 64x8, A from registers. B lies in shared memory
// as core matrices of 8 rows x 16 bytes, K-major, without swizzle.
template <Pair P, class T, class Sum>
__global__ void wgmma_kernel(const uint8_t *a, const uint8_t *b, const T *c, T *d, int K) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(128) uint8_t shared[8 * most];
    a += blockIdx.x * 64 * K, b += blockIdx.x * 8 * K, c += blockIdx.x * 512, d += blockIdx.x * 512;
    for (int i = threadIdx.x; i < 2 * K; i += 128) { // words of B
        int n = i % 8, k = i / 8 * 4;
        *reinterpret_cast<uint32_t *>(shared + k / 16 * 128 + n * 16 + k % 16) = word(b + n * K + k);
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    int row = threadIdx.x / 32 * 16;
    Sum sum;
    load_c(sum, c, row);
    for (int k = 0; k < K; k += 32) {
        uint32_t x[4];
        load_a(x, a, K, row, k);
        uint64_t address = __cvta_generic_to_shared(shared + k / 16 * 128);
        // Both strides are those from a core matrix to the next; with 8 columns only
        // that along K matters.
        uint64_t descriptor = (address & 0x3FFFF) >> 4 | uint64_t(128 >> 4) << 16 | uint64_t(128 >> 4) << 32;
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        wgmma<P>(sum, x, descriptor);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    store_d(d, sum, row);
#endif
}

// Inputs, the same on every machine.
struct Random {
    uint64_t state;
    uint64_t next() { // SplitMix64
        uint64_t z = state += 0x9E3779B97F4A7C15;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
        z = (z ^ z >> 27) * 0x94D049BB133111EB;
        return z ^ z >> 31;
    }
    uint32_t below(uint32_t n) { return (next() >> 32) * n >> 32; }
};

enum Inputs { NEAR, WIDE, SPECIAL }; // about 1; any finite code; any code
const char *const input_names[] = {"near", "wide", "special"};

uint8_t random_code(Random &r, bool e5m2, Inputs in) {
    int mantissa = e5m2 ? 2 : 3, bias = e5m2 ? 15 : 7, last = e5m2 ? 0x7B : 0x7E;
    uint8_t sign = r.below(2) << 7;
    if (in == NEAR) return sign | (bias - 2 + r.below(4)) << mantissa | r.below(1 << mantissa);
    if (in == SPECIAL && r.below(24) == 0) return sign | (last + 1 + r.below(0x7F - last));
    return sign | r.below(last + 1);
}

// An accumulator as the bits of a float of so many exponent and fraction bits.
uint32_t random_c(Random &r, int exponent_bits, int fraction_bits, Inputs in) {
    int bias = (1 << (exponent_bits - 1)) - 1, top = 2 * bias + 1;
    uint32_t sign = r.below(2) << (exponent_bits + fraction_bits), fraction = r.next() & ((1u << fraction_bits) - 1);
    if (r.below(8) == 0) return sign; // a zero
    int exponent = bias - 2 + r.below(8);
    if (in != NEAR) exponent = bias - 14 + r.below(29);
    if (in == SPECIAL && r.below(24) == 0) exponent = top, fraction = r.below(2) << (fraction_bits - 1);
    return sign | uint32_t(exponent) << fraction_bits | fraction;
}

// The file.
struct Tensor {
    std::string name, dtype, shape;
    std::vector<uint8_t> data;
};
std::vector<Tensor> tensors;

void check(cudaError_t e) {
    if (e == cudaSuccess) return;
    fprintf(stderr, "capture: %s\n", cudaGetErrorString(e));
    exit(1);
}

const int tiles = 16;

// Runs a case: launch(a, b, c, d) on the device. T is float or uint16_t, which is
// float16.
template <class T, class Launch> void run(const std::string &name, Pair p, Inputs in, int M, int K, Launch launch) {
    bool e5a = p == E5M2_E5M2 || p == E5M2_E4M3, e5b = p == E5M2_E5M2 || p == E4M3_E5M2;
    Random r = {0};
    for (char ch : name) r.state = r.state * 31 + uint8_t(ch);
    std::vector<uint8_t> a(tiles * M * K), b(tiles * 8 * K), c(tiles * M * 8 * sizeof(T)), d(c.size());
    for (auto &x : a) x = random_code(r, e5a, in);
    for (auto &x : b) x = random_code(r, e5b, in);
    for (size_t i = 0; i < c.size(); i += sizeof(T)) {
        uint32_t bits = sizeof(T) == 4 ? random_c(r, 8, 23, in) : random_c(r, 5, 10, in);
        memcpy(&c[i], &bits, sizeof(T));
    }
    uint8_t *da, *db;
    T *dc, *dd;
    check(cudaMalloc(&da, a.size()));
    check(cudaMalloc(&db, b.size()));
    check(cudaMalloc(&dc, c.size()));
    check(cudaMalloc(&dd, d.size()));
    check(cudaMemcpy(da, a.data(), a.size(), cudaMemcpyHostToDevice));
    check(cudaMemcpy(db, b.data(), b.size(), cudaMemcpyHostToDevice));
    check(cudaMemcpy(dc, c.data(), c.size(), cudaMemcpyHostToDevice));
    check(cudaMemset(dd, 0xA5, d.size()));
    launch(da, db, dc, dd);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(d.data(), dd, d.size(), cudaMemcpyDeviceToHost));
    cudaFree(da), cudaFree(db), cudaFree(dc), cudaFree(dd);
    auto shape = [](int x, int y) { return "[" + std::to_string(tiles) + "," + std::to_string(x) + "," + std::to_string(y) + "]"; };
    std::string type = sizeof(T) == 4 ? "F32" : "F16";
    tensors.push_back({name + ".a", e5a ? "F8_E5M2" : "F8_E4M3", shape(M, K), a});
    tensors.push_back({name + ".b", e5b ? "F8_E5M2" : "F8_E4M3", shape(8, K), b});
    tensors.push_back({name + ".c", type, shape(M, 8), c});
    tensors.push_back({name + ".d", type, shape(M, 8), d});
}

std::string name_of(const char *instruction, const char *result, Pair p, Inputs in, int K) {
    return std::string(instruction) + "-" + result + "-" + pair_names[p] + "-" + input_names[in] + "-k" + std::to_string(K);
}

template <Pair P> void run_pair(bool has_wgmma) {
    for (Inputs in : {NEAR, WIDE, SPECIAL})
        for (int K : {32, longest}) {
            run<float>(name_of("mma", "f32", P, in, K), P, in, 16, K, [=](uint8_t *a, uint8_t *b, float *c, float *d) {
                mma_kernel<P><<<tiles, 32>>>(a, b, c, d, K);
            });
            if (!has_wgmma) continue;
            run<float>(name_of("wgmma", "f32", P, in, K), P, in, 64, K, [=](uint8_t *a, uint8_t *b, float *c, float *d) {
                wgmma_kernel<P, float, float[4]><<<tiles, 128>>>(a, b, c, d, K);
            });
            run<uint16_t>(name_of("wgmma", "f16", P, in, K), P, in, 64, K, [=](uint8_t *a, uint8_t *b, uint16_t *c, uint16_t *d) {
                wgmma_kernel<P, uint16_t, uint32_t[2]><<<tiles, 128>>>(a, b, c, d, K);
            });
        }
}

void write(const char *path, const cudaDeviceProp &device) {
    std::string header = "{\"__metadata__\":{\"device\":\"" + std::string(device.name) + "\",\"compute\":\"" +
                         std::to_string(device.major) + "." + std::to_string(device.minor) + "\"}";
    size_t offset = 0;
    for (auto &t : tensors) {
        header += ",\"" + t.name + "\":{\"dtype\":\"" + t.dtype + "\",\"shape\":" + t.shape + ",\"data_offsets\":[" +
                  std::to_string(offset) + "," + std::to_string(offset + t.data.size()) + "]}";
        offset += t.data.size();
    }
    header += "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    uint64_t length = header.size(); // little-endian, as every host of a GPU is
    FILE *file = fopen(path, "wb");
    bool ok = file && fwrite(&length, 8, 1, file) == 1 && fwrite(header.data(), 1, length, file) == length;
    for (auto &t : tensors) ok = ok && fwrite(t.data.data(), 1, t.data.size(), file) == t.data.size();
    if (!file || fclose(file) != 0 || !ok) {
        fprintf(stderr, "capture: %s could not be written: name another file\n", path);
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: capture FILE.safetensors\n");
        return 2;
    }
    cudaDeviceProp device;
    check(cudaGetDeviceProperties(&device, 0));
    bool has_wgmma = device.major == 9;
    run_pair<E4M3_E4M3>(has_wgmma);
    run_pair<E5M2_E5M2>(has_wgmma);
    run_pair<E4M3_E5M2>(has_wgmma);
    run_pair<E5M2_E4M3>(has_wgmma);
    write(argv[1], device);
    printf("%s: %zu cases of %s\n", argv[1], tensors.size() / 4, device.name);
}
