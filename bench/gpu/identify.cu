// Identify answers the probes of octavo identify with a GPU's FP8 matrix instructions,
// chained along K from +0: see README.md.
//
//	nvcc -O2 -std=c++17 -arch=sm_90a -o identify identify.cu
//	octavo identify -o probes.safetensors
//	./identify wgmma probes.safetensors answers.safetensors    # or mma
//	octavo identify probes.safetensors --got answers.safetensors
//
// An instruction has no scales: one for each operand is applied here, A's first, in
// float32. The order of scales that is found is that of this program.
#include <algorithm>
#include <fstream>
#include <iterator>

#define main capture_main // the instructions and the file that is written are capture's
#include "capture.cu"
#undef main

void fail(const std::string &text) {
    fprintf(stderr, "identify: %s\n", text.c_str());
    exit(1);
}

// A matrix of the file of probes.
struct Matrix {
    bool e5m2;
    int rows, columns;
    std::vector<uint8_t> data;
};

Matrix read(const std::string &file, const std::string &name) {
    uint64_t length;
    memcpy(&length, file.data(), 8);
    size_t at = file.find("\"" + name + "\":");
    char dtype[16];
    Matrix m;
    unsigned long long from, to;
    if (at == std::string::npos || at > 8 + length ||
        sscanf(file.c_str() + at + name.size() + 3, "{\"dtype\":\"%15[^\"]\",\"shape\":[%d,%d],\"data_offsets\":[%llu,%llu]", dtype, &m.rows, &m.columns, &from, &to) != 5 ||
        8 + length + to > file.size())
        fail("there is no matrix " + name + " in the probes");
    m.e5m2 = std::string(dtype) == "F8_E5M2";
    m.data.assign(file.begin() + 8 + length + from, file.begin() + 8 + length + to);
    return m;
}

float scale(const std::string &file, const std::string &name) {
    Matrix m = read(file, name);
    if (m.data.size() != sizeof(float)) fail(name + " is not one float32: write probes with one scale for each operand");
    float s;
    memcpy(&s, m.data.data(), sizeof s);
    return s;
}

// Every tile of C is a block of the grid, for which rows of A and B are repeated.
template <Pair P> std::vector<float> multiply(const Matrix &a, const Matrix &b, bool warp_group) {
    int K = a.columns, height = warp_group ? 64 : 16;
    int down = (a.rows + height - 1) / height, across = b.rows / 8;
    std::vector<uint8_t> x(size_t(down) * across * height * K), y(size_t(down) * across * 8 * K);
    for (int i = 0; i < down; i++)
        for (int j = 0; j < across; j++) {
            size_t tile = size_t(i) * across + j;
            int rows = std::min(height, a.rows - i * height);
            memcpy(&x[tile * height * K], &a.data[size_t(i) * height * K], size_t(rows) * K);
            memcpy(&y[tile * 8 * K], &b.data[size_t(j) * 8 * K], 8 * K);
        }
    std::vector<float> tiles_of_c(size_t(down) * across * height * 8), c(size_t(a.rows) * b.rows);
    size_t bytes = tiles_of_c.size() * sizeof(float);
    uint8_t *dx, *dy;
    float *zero, *d;
    check(cudaMalloc(&dx, x.size()));
    check(cudaMalloc(&dy, y.size()));
    check(cudaMalloc(&zero, bytes));
    check(cudaMalloc(&d, bytes));
    check(cudaMemcpy(dx, x.data(), x.size(), cudaMemcpyHostToDevice));
    check(cudaMemcpy(dy, y.data(), y.size(), cudaMemcpyHostToDevice));
    check(cudaMemset(zero, 0, bytes));
    check(cudaMemset(d, 0xA5, bytes));
    if (warp_group)
        wgmma_kernel<P, float, float[4]><<<down * across, 128>>>(dx, dy, zero, d, K);
    else
        mma_kernel<P><<<down * across, 32>>>(dx, dy, zero, d, K);
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(tiles_of_c.data(), d, bytes, cudaMemcpyDeviceToHost));
    cudaFree(dx), cudaFree(dy), cudaFree(zero), cudaFree(d);
    for (int i = 0; i < a.rows; i++)
        for (int j = 0; j < b.rows; j++) {
            size_t tile = size_t(i / height) * across + j / 8;
            c[size_t(i) * b.rows + j] = tiles_of_c[(tile * height + i % height) * 8 + j % 8];
        }
    return c;
}

int main(int argc, char **argv) {
    bool warp_group = argc == 4 && std::string(argv[1]) == "wgmma";
    if (argc != 4 || (!warp_group && std::string(argv[1]) != "mma")) {
        fprintf(stderr, "usage: identify wgmma|mma PROBES.safetensors ANSWERS.safetensors\n");
        return 2;
    }
    cudaDeviceProp device;
    check(cudaGetDeviceProperties(&device, 0));
    if (warp_group && device.major != 9) fail(std::string(device.name) + " has no wgmma: ask for mma");
    std::ifstream in(argv[2], std::ios::binary);
    std::string file((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (file.size() < 8) fail(std::string(argv[2]) + " cannot be read");
    for (const char *name : {"order", "rounding", "output", "scales", "products"}) {
        std::string n = name;
        Matrix a = read(file, n + ".a"), b = read(file, n + ".b");
        if (a.columns > most) fail(n + " has more columns than there is memory for");
        float sa = scale(file, n + ".a_scale_inv"), sb = scale(file, n + ".b_scale_inv");
        std::vector<float> c = a.e5m2 ? multiply<E5M2_E5M2>(a, b, warp_group) : multiply<E4M3_E4M3>(a, b, warp_group);
        for (float &v : c) {
            volatile float scaled = v * sa; // rounded, whatever the compiler would fuse
            v = scaled * sb;
        }
        std::vector<uint8_t> data(c.size() * sizeof(float));
        memcpy(data.data(), c.data(), data.size());
        tensors.push_back({n + ".c", "F32", "[" + std::to_string(a.rows) + "," + std::to_string(b.rows) + "]", data});
    }
    write(argv[3], device);
    printf("%s: %zu products on %s\n", argv[3], tensors.size(), device.name);
}
