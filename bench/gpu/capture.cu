// Capture writes what a GPU's matrix instructions return for a fixed set of inputs, in
// FP8, FP16, BF16 and TF32, to a safetensors file. It is for tests of models: see
// README.md. It ran on an H200; its tcgen05 has never run.
//
//	nvcc -O2 -std=c++17 -arch=sm_90a -o capture capture.cu && ./capture capture-h200.safetensors
//
// sm_80 and later have mma.sync, sm_90a wgmma too and sm_100a tcgen05.
//
// A case is named INSTRUCTION-RESULT-A-B-INPUTS-kK, such as
// wgmma-f32-e4m3-e5m2-wide-k128, and has the tensors NAME.a [tiles, M, K], NAME.b
// [tiles, N, K], NAME.c and NAME.d [tiles, M, N], with d = c + a·bᵀ: M is 128 for tcgen05,
// 64 for wgmma and 16 for mma, N is 16 for tcgen05 and otherwise 8. An instruction takes 32
// bytes of a row: 32 numbers in FP8, 16 in FP16 and BF16, 8 in TF32. More are a chain of
// instructions. All lengths along K below are in bytes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// Formats of operands.
struct Format {
    const char *name, *dtype;
    int bytes, exponent_bits, fraction_bits;
    int code; // of tcgen05's instruction descriptor
};
const Format e4m3 = {"e4m3", "F8_E4M3", 1, 4, 3, 0}, e5m2 = {"e5m2", "F8_E5M2", 1, 5, 2, 1}, fp16 = {"fp16", "F16", 2, 5, 10, 0},
             bf16 = {"bf16", "BF16", 2, 8, 7, 1}, tf32 = {"tf32", "F32", 4, 8, 10, 2}; // a TF32 number is a float whose low 13 bits are 0

enum Pair { E4M3_E4M3, E5M2_E5M2, E4M3_E5M2, E5M2_E4M3, FP16_FP16, BF16_BF16, TF32_TF32 };
const Format *const pairs[][2] = {{&e4m3, &e4m3}, {&e5m2, &e5m2}, {&e4m3, &e5m2}, {&e5m2, &e4m3}, {&fp16, &fp16}, {&bf16, &bf16}, {&tf32, &tf32}};

// Instructions. The accumulator is c before and d after. Those that are not defined below
// are not there.
template <Pair P> __device__ void wgmma(float (&)[4], const uint32_t (&)[4], uint64_t) { __trap(); }
template <Pair P> __device__ void wgmma(uint32_t (&)[2], const uint32_t (&)[4], uint64_t) { __trap(); }
template <Pair P> __device__ void mma(float (&)[4], const uint32_t (&)[4], const uint32_t (&)[2]) { __trap(); }
template <Pair P> __device__ void mma(uint32_t (&)[2], const uint32_t (&)[4], const uint32_t (&)[2]) { __trap(); }

#define DEFINE_MMA(P, K, AB)                                                                           \
    template <> __device__ void mma<P>(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { \
        asm volatile("mma.sync.aligned.m16n8" K ".row.col.f32." AB ".f32 "                             \
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                           \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));              \
    }
#define DEFINE_MMA_HALF(P, K, AB)                                                                         \
    template <> __device__ void mma<P>(uint32_t (&d)[2], const uint32_t (&a)[4], const uint32_t (&b)[2]) { \
        asm volatile("mma.sync.aligned.m16n8" K ".row.col.f16." AB ".f16 "                                \
                     "{%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"                                          \
                     : "+r"(d[0]), "+r"(d[1])                                                             \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                 \
    }
#if __CUDA_ARCH__ >= 890
DEFINE_MMA(E4M3_E4M3, "k32", "e4m3.e4m3")
DEFINE_MMA(E5M2_E5M2, "k32", "e5m2.e5m2")
DEFINE_MMA(E4M3_E5M2, "k32", "e4m3.e5m2")
DEFINE_MMA(E5M2_E4M3, "k32", "e5m2.e4m3")
#if CUDART_VERSION >= 12080 // PTX ISA 8.7
DEFINE_MMA_HALF(E4M3_E4M3, "k32", "e4m3.e4m3")
DEFINE_MMA_HALF(E5M2_E5M2, "k32", "e5m2.e5m2")
DEFINE_MMA_HALF(E4M3_E5M2, "k32", "e4m3.e5m2")
DEFINE_MMA_HALF(E5M2_E4M3, "k32", "e5m2.e4m3")
#endif
#endif
#if __CUDA_ARCH__ >= 800
DEFINE_MMA(FP16_FP16, "k16", "f16.f16")
DEFINE_MMA(BF16_BF16, "k16", "bf16.bf16")
DEFINE_MMA(TF32_TF32, "k8", "tf32.tf32")
DEFINE_MMA_HALF(FP16_FP16, "k16", "f16.f16")
#endif

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// The last immediates are the signs of A and B and, where numbers have 16 bits, whether B
// is transposed.
#define DEFINE_WGMMA(P, K, AB, LAST)                                                                   \
    template <> __device__ void wgmma<P>(float (&d)[4], const uint32_t (&a)[4], uint64_t b) {          \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %9, 0;\n"                                         \
                     "wgmma.mma_async.sync.aligned.m64n8" K ".f32." AB " "                             \
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, p, " LAST "; }"                                \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1) : "memory");         \
    }
#define DEFINE_WGMMA_HALF(P, K, AB, LAST)                                                              \
    template <> __device__ void wgmma<P>(uint32_t (&d)[2], const uint32_t (&a)[4], uint64_t b) {       \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %7, 0;\n"                                         \
                     "wgmma.mma_async.sync.aligned.m64n8" K ".f16." AB " "                             \
                     "{%0,%1}, {%2,%3,%4,%5}, %6, p, " LAST "; }"                                      \
                     : "+r"(d[0]), "+r"(d[1])                                                          \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1) : "memory");         \
    }
DEFINE_WGMMA(E4M3_E4M3, "k32", "e4m3.e4m3", "1, 1")
DEFINE_WGMMA(E5M2_E5M2, "k32", "e5m2.e5m2", "1, 1")
DEFINE_WGMMA(E4M3_E5M2, "k32", "e4m3.e5m2", "1, 1")
DEFINE_WGMMA(E5M2_E4M3, "k32", "e5m2.e4m3", "1, 1")
DEFINE_WGMMA(FP16_FP16, "k16", "f16.f16", "1, 1, 0")
DEFINE_WGMMA(BF16_BF16, "k16", "bf16.bf16", "1, 1, 0")
DEFINE_WGMMA(TF32_TF32, "k8", "tf32.tf32", "1, 1")
DEFINE_WGMMA_HALF(E4M3_E4M3, "k32", "e4m3.e4m3", "1, 1")
DEFINE_WGMMA_HALF(E5M2_E5M2, "k32", "e5m2.e5m2", "1, 1")
DEFINE_WGMMA_HALF(E4M3_E5M2, "k32", "e4m3.e5m2", "1, 1")
DEFINE_WGMMA_HALF(E5M2_E4M3, "k32", "e5m2.e4m3", "1, 1")
DEFINE_WGMMA_HALF(FP16_FP16, "k16", "f16.f16", "1, 1, 0")
#endif

// Fragments (PTX ISA, "Register Fragments"), in bytes, in which they are the same for all
// formats: of A, register r of a lane holds four bytes of row lane/4 + 8·(r mod 2) from
// k = 4·(lane mod 4) + 16·(r/2) on; of B, register r those of column lane/4 from
// k = 4·(lane mod 4) + 16·r on. A lane has C at row lane/4, columns 2·(lane mod 4) and the
// next, and likewise 8 rows below.
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
template <Pair P, class T, class Sum>
__global__ void mma_kernel(const uint8_t *a, const uint8_t *b, const T *c, T *d, int K) {
#if __CUDA_ARCH__ >= 800
    a += size_t(blockIdx.x) * 16 * K, b += size_t(blockIdx.x) * 8 * K, c += size_t(blockIdx.x) * 128, d += size_t(blockIdx.x) * 128;
    Sum sum;
    load_c(sum, c, 0);
    int lane = threadIdx.x;
    for (int k = 0; k < K; k += 32) {
        uint32_t x[4], y[2];
        load_a(x, a, K, 0, k);
        for (int i = 0; i < 2; i++) y[i] = word(b + lane / 4 * K + k + 4 * (lane % 4) + 16 * i);
        mma<P>(sum, x, y);
    }
    store_d(d, sum, 0);
#endif
}

const int longest = 128; // bytes along K of a case: four instructions
const int most = 2048;   // that there is memory for

// One warp group computes a tile of 64x8, A from registers. B lies in shared memory
// as core matrices of 8 rows x 16 bytes, K-major, without swizzle.
template <Pair P, class T, class Sum>
__global__ void wgmma_kernel(const uint8_t *a, const uint8_t *b, const T *c, T *d, int K) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(128) uint8_t shared[8 * most];
    a += size_t(blockIdx.x) * 64 * K, b += size_t(blockIdx.x) * 8 * K, c += size_t(blockIdx.x) * 512, d += size_t(blockIdx.x) * 512;
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

// tcgen05: one thread issues the chain of instructions for a tile of 128x16, four warps
// write c to tensor memory and read d from it: row i is its lane i, of which warp w
// reaches 32·w to 32·w+31, and column j its column j. A float16 has the low half of a
// 32-bit cell. A and B lie in shared memory as core matrices of 8 rows x 16 bytes, K-major,
// without swizzle, all of one 16 bytes of K after the other.
const int tc_rows = 128, tc_columns = 16;
const int tc_allocated = 32; // columns of tensor memory, of which there are no fewer

__device__ uint64_t tc_descriptor(uint32_t address, int rows) {
    uint32_t along_k = rows * 16, along_rows = 128;
    return uint64_t((address & 0x3FFFF) >> 4) | uint64_t(along_k >> 4) << 16 | uint64_t(along_rows >> 4) << 32 | uint64_t(1) << 46;
}

__device__ void tc_copy(uint8_t *to, const uint8_t *from, int rows, int length, int K) {
    for (int i = threadIdx.x; i < rows * length / 4; i += blockDim.x) {
        int row = i % rows, k = i / rows * 4;
        *reinterpret_cast<uint32_t *>(to + k / 16 * (rows * 16) + row * 16 + k % 16) = word(from + size_t(row) * K + k);
    }
}

enum Kind { KIND_F8F6F4, KIND_F16, KIND_TF32 };

template <Kind kind> __device__ void tc_mma(uint32_t d, uint64_t a, uint64_t b, uint32_t instruction) {
#ifdef __CUDA_ARCH_FEAT_SM100_ALL
    if (kind == KIND_F8F6F4)
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0;\n"
                     "tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p; }" ::"r"(d), "l"(a), "l"(b), "r"(instruction), "r"(1) : "memory");
    else if (kind == KIND_F16)
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0;\n"
                     "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(d), "l"(a), "l"(b), "r"(instruction), "r"(1) : "memory");
    else
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0;\n"
                     "tcgen05.mma.cta_group::1.kind::tf32 [%0], %1, %2, %3, p; }" ::"r"(d), "l"(a), "l"(b), "r"(instruction), "r"(1) : "memory");
#endif
}

__device__ uint32_t bits_of(float x) { return __float_as_uint(x); }
__device__ uint32_t bits_of(uint16_t x) { return x; }
__device__ void set_bits(float &x, uint32_t b) { x = __uint_as_float(b); }
__device__ void set_bits(uint16_t &x, uint32_t b) { x = uint16_t(b); }

template <Kind kind, class T>
__global__ void tcgen05_kernel(const uint8_t *a, const uint8_t *b, const T *c, T *d, int K, uint32_t instruction) {
#ifdef __CUDA_ARCH_FEAT_SM100_ALL
    __shared__ __align__(128) uint8_t shared_a[tc_rows * longest], shared_b[tc_columns * longest];
    __shared__ uint32_t allocated;
    __shared__ __align__(8) uint64_t barrier;
    int warp = threadIdx.x / 32;
    a += size_t(blockIdx.x) * tc_rows * K, b += size_t(blockIdx.x) * tc_columns * K;
    c += size_t(blockIdx.x) * tc_rows * tc_columns, d += size_t(blockIdx.x) * tc_rows * tc_columns;
    uint32_t barrier_address = __cvta_generic_to_shared(&barrier);
    if (warp == 0) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(uint32_t(__cvta_generic_to_shared(&allocated))), "r"(tc_allocated) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    }
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier_address) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    uint32_t lanes = allocated + (uint32_t(warp * 32) << 16);
    uint32_t r[tc_columns];
    for (int j = 0; j < tc_columns; j++) r[j] = bits_of(c[threadIdx.x * tc_columns + j]);
    asm volatile("tcgen05.st.sync.aligned.32x32b.x16.b32 [%16], {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15};" ::
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7]), "r"(r[8]), "r"(r[9]),
                 "r"(r[10]), "r"(r[11]), "r"(r[12]), "r"(r[13]), "r"(r[14]), "r"(r[15]), "r"(lanes) : "memory");
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
    uint32_t phase = 0;
    for (int from = 0; from < K; from += longest, phase ^= 1) {
        int length = K - from < longest ? K - from : longest;
        tc_copy(shared_a, a + from, tc_rows, length, K);
        tc_copy(shared_b, b + from, tc_columns, length, K);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
        __syncthreads();
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
        if (threadIdx.x == 0) {
            for (int k = 0; k < length; k += 32)
                tc_mma<kind>(allocated, tc_descriptor(__cvta_generic_to_shared(shared_a + k * tc_rows), tc_rows),
                             tc_descriptor(__cvta_generic_to_shared(shared_b + k * tc_columns), tc_columns), instruction);
            asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier_address) : "memory");
        }
        asm volatile("{ .reg .pred done;\n"
                     "WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                     "@!done bra WAIT; }" ::"r"(barrier_address), "r"(phase) : "memory");
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    }
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, [%16];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]), "=r"(r[8]), "=r"(r[9]),
                   "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]), "=r"(r[14]), "=r"(r[15])
                 : "r"(lanes) : "memory");
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    for (int j = 0; j < tc_columns; j++) set_bits(d[threadIdx.x * tc_columns + j], r[j]);
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    if (warp == 0) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(allocated), "r"(tc_allocated));
#endif
}

// The instruction descriptor (PTX ISA, "Instruction descriptor" of tcgen05).
uint32_t tc_instruction(const Format &a, const Format &b, bool half) {
    return uint32_t(!half) << 4 | uint32_t(a.code) << 7 | uint32_t(b.code) << 10 | uint32_t(tc_columns >> 3) << 17 | uint32_t(tc_rows >> 4) << 24;
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

// About 1; any finite code, or of 8 exponent bits those of 2^-20 to 2^20; any code, with
// infinities, NaN, zeros and subnormals among them; and wide with a pair of products, the
// largest there are, that cancel, so that the last bits beside them show.
enum Inputs { NEAR, WIDE, SPECIAL, CANCEL };
const char *const input_names[] = {"near", "wide", "special", "cancel"};

uint32_t random_code(Random &r, const Format &f, Inputs in) {
    int bias = (1 << (f.exponent_bits - 1)) - 1, top = 2 * bias + 1;
    uint32_t sign = r.below(2) << (f.exponent_bits + f.fraction_bits), fraction = r.next() & ((1u << f.fraction_bits) - 1);
    bool has_inf = &f != &e4m3;
    int exponent;
    switch (in) {
    case NEAR:
        exponent = bias - 2 + r.below(4);
        break;
    case SPECIAL:
        exponent = bias - 3 + r.below(6);
        switch (r.below(32)) {
        case 0: // an infinity or a NaN; E4M3 has no infinities
            exponent = top;
            if (!has_inf) fraction = 7;
            else if (r.below(2)) fraction = 0;
            break;
        case 1:
            exponent = 0; // a subnormal
            break;
        case 2:
            exponent = fraction = 0;
        }
        break;
    default:
        exponent = f.exponent_bits < 8 ? int(r.below(top + !has_inf)) : bias - 20 + int(r.below(41));
        if (!has_inf && exponent == top && fraction == 7) fraction = 6;
    }
    return sign | uint32_t(exponent) << f.fraction_bits | fraction;
}

// The largest magnitude of WIDE.
uint32_t large_code(const Format &f) {
    int bias = (1 << (f.exponent_bits - 1)) - 1;
    uint32_t ones = (1u << f.fraction_bits) - 1;
    if (&f == &e4m3) return 0x7E;
    return uint32_t(f.exponent_bits < 8 ? 2 * bias : bias + 20) << f.fraction_bits | ones;
}

void put(std::vector<uint8_t> &to, size_t element, const Format &f, uint32_t code) {
    if (f.bytes == 4) code <<= 13; // TF32
    memcpy(&to[element * f.bytes], &code, f.bytes);
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

int tiles_of(int M) { return M == tc_rows ? 2 : 16; }

// Runs a case: launch(a, b, c, d) on the device. T is float or uint16_t, which is
// float16.
template <class T, class Launch> void run(const std::string &name, Pair p, Inputs in, int M, int N, int K, Launch launch) {
    const Format &fa = *pairs[p][0], &fb = *pairs[p][1];
    int k = K / fa.bytes, tiles = tiles_of(M); // both have as many bytes
    Random r = {0};
    for (char ch : name) r.state = r.state * 31 + uint8_t(ch);
    std::vector<uint8_t> a(tiles * M * K), b(tiles * N * K), c(tiles * M * N * sizeof(T)), d(c.size());
    for (int i = 0; i < tiles * M * k; i++) put(a, i, fa, random_code(r, fa, in));
    for (int i = 0; i < tiles * N * k; i++) put(b, i, fb, random_code(r, fb, in));
    for (int tile = 0; tile < tiles && in == CANCEL; tile++) {
        int x = r.below(k), y = (x + 1 + r.below(k - 1)) % k;
        uint32_t minus = 1u << (fa.exponent_bits + fa.fraction_bits);
        for (int i = 0; i < M; i++) {
            put(a, size_t(tile * M + i) * k + x, fa, large_code(fa));
            put(a, size_t(tile * M + i) * k + y, fa, large_code(fa) | minus);
        }
        for (int j = 0; j < N; j++) {
            put(b, size_t(tile * N + j) * k + x, fb, large_code(fb));
            put(b, size_t(tile * N + j) * k + y, fb, large_code(fb));
        }
    }
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
    auto shape = [=](int x, int y) { return "[" + std::to_string(tiles) + "," + std::to_string(x) + "," + std::to_string(y) + "]"; };
    std::string type = sizeof(T) == 4 ? "F32" : "F16";
    tensors.push_back({name + ".a", fa.dtype, shape(M, k), a});
    tensors.push_back({name + ".b", fb.dtype, shape(N, k), b});
    tensors.push_back({name + ".c", type, shape(M, N), c});
    tensors.push_back({name + ".d", type, shape(M, N), d});
}

std::string name_of(const char *instruction, const char *result, Pair p, Inputs in, int K) {
    return std::string(instruction) + "-" + result + "-" + pairs[p][0]->name + "-" + pairs[p][1]->name + "-" + input_names[in] + "-k" +
           std::to_string(K / pairs[p][0]->bytes);
}

// What a GPU has.
struct Has {
    bool mma, wgmma, tcgen05;
    bool mma_half; // float16 results of mma.sync
};

// All cases of a pair of formats. HALF: there are float16 results.
template <Pair P, Kind kind, bool HALF> void run_pair(Has has) {
    for (Inputs in : {NEAR, WIDE, SPECIAL, CANCEL})
        for (int K : {32, longest}) {
            if (has.mma)
                run<float>(name_of("mma", "f32", P, in, K), P, in, 16, 8, K, [=](uint8_t *a, uint8_t *b, float *c, float *d) {
                    mma_kernel<P, float, float[4]><<<tiles_of(16), 32>>>(a, b, c, d, K);
                });
            if (has.wgmma)
                run<float>(name_of("wgmma", "f32", P, in, K), P, in, 64, 8, K, [=](uint8_t *a, uint8_t *b, float *c, float *d) {
                    wgmma_kernel<P, float, float[4]><<<tiles_of(64), 128>>>(a, b, c, d, K);
                });
            if (has.tcgen05)
                run<float>(name_of("tcgen05", "f32", P, in, K), P, in, tc_rows, tc_columns, K, [=](uint8_t *a, uint8_t *b, float *c, float *d) {
                    tcgen05_kernel<kind, float><<<tiles_of(tc_rows), tc_rows>>>(a, b, c, d, K, tc_instruction(*pairs[P][0], *pairs[P][1], false));
                });
            if constexpr (HALF) {
                if (has.mma && has.mma_half)
                    run<uint16_t>(name_of("mma", "f16", P, in, K), P, in, 16, 8, K, [=](uint8_t *a, uint8_t *b, uint16_t *c, uint16_t *d) {
                        mma_kernel<P, uint16_t, uint32_t[2]><<<tiles_of(16), 32>>>(a, b, c, d, K);
                    });
                if (has.wgmma)
                    run<uint16_t>(name_of("wgmma", "f16", P, in, K), P, in, 64, 8, K, [=](uint8_t *a, uint8_t *b, uint16_t *c, uint16_t *d) {
                        wgmma_kernel<P, uint16_t, uint32_t[2]><<<tiles_of(64), 128>>>(a, b, c, d, K);
                    });
                if (has.tcgen05)
                    run<uint16_t>(name_of("tcgen05", "f16", P, in, K), P, in, tc_rows, tc_columns, K, [=](uint8_t *a, uint8_t *b, uint16_t *c, uint16_t *d) {
                        tcgen05_kernel<kind, uint16_t><<<tiles_of(tc_rows), tc_rows>>>(a, b, c, d, K, tc_instruction(*pairs[P][0], *pairs[P][1], true));
                    });
            }
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
    Has floats = {device.major >= 8, device.major == 9, device.major == 10, true};
    Has codes = floats;
    codes.mma = device.major > 8 || (device.major == 8 && device.minor == 9);
    codes.mma_half = CUDART_VERSION >= 12080;
    run_pair<E4M3_E4M3, KIND_F8F6F4, true>(codes);
    run_pair<E5M2_E5M2, KIND_F8F6F4, true>(codes);
    run_pair<E4M3_E5M2, KIND_F8F6F4, true>(codes);
    run_pair<E5M2_E4M3, KIND_F8F6F4, true>(codes);
    run_pair<FP16_FP16, KIND_F16, true>(floats);
    run_pair<BF16_BF16, KIND_F16, false>(floats);
    run_pair<TF32_TF32, KIND_TF32, false>(floats);
    write(argv[1], device);
    printf("%s: %zu cases of %s\n", argv[1], tensors.size() / 4, device.name);
}
