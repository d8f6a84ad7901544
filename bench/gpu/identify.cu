// Identify answers the probes of octavo identify with a GPU's matrix instructions, chained
// along K from +0, or from the old C where a product has one: see README.md. It ran on
// an H200; its tcgen05 has never run.
//
//	nvcc -O2 -std=c++17 -arch=sm_90a -o identify identify.cu
//	octavo identify -o probes.safetensors    # --b-format, --float and --old go too
//	./identify wgmma probes.safetensors answers.safetensors    # or mma, or tcgen05
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
    std::string dtype;
    int rows, columns;
    std::vector<uint8_t> data;
    int bytes() const { return columns ? int(data.size() / (size_t(rows) * columns)) * columns : 0; } // of a row
};

bool has(const std::string &file, const std::string &name) {
    uint64_t length;
    memcpy(&length, file.data(), 8);
    size_t at = file.find("\"" + name + "\":");
    return at != std::string::npos && at < 8 + length;
}

Matrix read(const std::string &file, const std::string &name) {
    uint64_t length;
    memcpy(&length, file.data(), 8);
    char dtype[16];
    Matrix m;
    unsigned long long from, to;
    if (!has(file, name) ||
        sscanf(file.c_str() + file.find("\"" + name + "\":") + name.size() + 3, "{\"dtype\":\"%15[^\"]\",\"shape\":[%d,%d],\"data_offsets\":[%llu,%llu]", dtype, &m.rows, &m.columns, &from, &to) != 5 ||
        m.rows < 1 || m.columns < 1 || from > to || 8 + length + to > file.size())
        fail("there is no matrix " + name + " in the probes");
    m.dtype = dtype;
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

enum Instruction { MMA, WGMMA, TCGEN05 };
const char *const instruction_names[] = {"mma", "wgmma", "tcgen05"};

// Every tile of C is a block of the grid, for which rows of A and B are repeated.
template <Pair P, Kind kind> std::vector<float> multiply(const Matrix &a, const Matrix &b, const std::vector<float> &old, Instruction which) {
    int K = a.bytes(), height = which == MMA ? 16 : which == WGMMA ? 64 : tc_rows, width = which == TCGEN05 ? tc_columns : 8;
    int down = (a.rows + height - 1) / height, across = (b.rows + width - 1) / width;
    size_t count = size_t(down) * across;
    std::vector<uint8_t> x(count * height * K), y(count * width * K);
    std::vector<float> from(count * height * width), tiles_of_c(from.size()), c(size_t(a.rows) * b.rows);
    auto place = [=](int i, int j) { return (((size_t(i / height) * across + j / width) * height) + i % height) * width + j % width; };
    for (int i = 0; i < down; i++)
        for (int j = 0; j < across; j++) {
            size_t tile = size_t(i) * across + j;
            int rows = std::min(height, a.rows - i * height), columns = std::min(width, b.rows - j * width);
            memcpy(&x[tile * height * K], &a.data[size_t(i) * height * K], size_t(rows) * K);
            memcpy(&y[tile * width * K], &b.data[size_t(j) * width * K], size_t(columns) * K);
        }
    for (int i = 0; i < a.rows && !old.empty(); i++)
        for (int j = 0; j < b.rows; j++) from[place(i, j)] = old[size_t(i) * b.rows + j];
    size_t bytes = from.size() * sizeof(float);
    uint8_t *dx, *dy;
    float *start, *d;
    check(cudaMalloc(&dx, x.size()));
    check(cudaMalloc(&dy, y.size()));
    check(cudaMalloc(&start, bytes));
    check(cudaMalloc(&d, bytes));
    check(cudaMemcpy(dx, x.data(), x.size(), cudaMemcpyHostToDevice));
    check(cudaMemcpy(dy, y.data(), y.size(), cudaMemcpyHostToDevice));
    check(cudaMemcpy(start, from.data(), bytes, cudaMemcpyHostToDevice));
    check(cudaMemset(d, 0xA5, bytes));
    unsigned blocks = unsigned(count);
    if (which == MMA)
        mma_kernel<P, float, float[4]><<<blocks, 32>>>(dx, dy, start, d, K);
    else if (which == WGMMA)
        wgmma_kernel<P, float, float[4]><<<blocks, 128>>>(dx, dy, start, d, K);
    else
        tcgen05_kernel<kind, float><<<blocks, tc_rows>>>(dx, dy, start, d, K, tc_instruction(*pairs[P][0], *pairs[P][1], false));
    check(cudaGetLastError());
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(tiles_of_c.data(), d, bytes, cudaMemcpyDeviceToHost));
    cudaFree(dx), cudaFree(dy), cudaFree(start), cudaFree(d);
    for (int i = 0; i < a.rows; i++)
        for (int j = 0; j < b.rows; j++) c[size_t(i) * b.rows + j] = tiles_of_c[place(i, j)];
    return c;
}

std::vector<float> multiply(const Matrix &a, const Matrix &b, const std::vector<float> &old, Instruction which) {
    auto are = [&](Pair p) { return a.dtype == pairs[p][0]->dtype && b.dtype == pairs[p][1]->dtype; };
    if (are(E4M3_E4M3)) return multiply<E4M3_E4M3, KIND_F8F6F4>(a, b, old, which);
    if (are(E5M2_E5M2)) return multiply<E5M2_E5M2, KIND_F8F6F4>(a, b, old, which);
    if (are(E4M3_E5M2)) return multiply<E4M3_E5M2, KIND_F8F6F4>(a, b, old, which);
    if (are(E5M2_E4M3)) return multiply<E5M2_E4M3, KIND_F8F6F4>(a, b, old, which);
    if (are(FP16_FP16)) return multiply<FP16_FP16, KIND_F16>(a, b, old, which);
    if (are(BF16_BF16)) return multiply<BF16_BF16, KIND_F16>(a, b, old, which);
    if (are(TF32_TF32)) return multiply<TF32_TF32, KIND_TF32>(a, b, old, which);
    fail("no instruction multiplies " + a.dtype + " by " + b.dtype);
    return {};
}

int main(int argc, char **argv) {
    int which = -1;
    for (int i = MMA; i <= TCGEN05 && argc == 4; i++)
        if (std::string(argv[1]) == instruction_names[i]) which = i;
    if (which < 0) {
        fprintf(stderr, "usage: identify mma|wgmma|tcgen05 PROBES.safetensors ANSWERS.safetensors\n");
        return 2;
    }
    cudaDeviceProp device;
    check(cudaGetDeviceProperties(&device, 0));
    if ((which == WGMMA && device.major != 9) || (which == TCGEN05 && device.major != 10))
        fail(std::string(device.name) + " has no " + argv[1] + ": ask for mma");
    std::ifstream in(argv[2], std::ios::binary);
    std::string file((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (file.size() < 8) fail(std::string(argv[2]) + " cannot be read");
    for (const char *name : {"order", "rounding", "output", "old", "scales", "products"}) {
        std::string n = name;
        if ((n == "old" || n == "scales") && !has(file, n + ".a")) continue;
        Matrix a = read(file, n + ".a"), b = read(file, n + ".b");
        if (a.bytes() != b.bytes()) fail(n + " has operands of different length");
        if (which == WGMMA && a.bytes() > most) fail(n + " has rows of more bytes than there is memory for");
        std::vector<float> old;
        if (has(file, n + ".old")) {
            Matrix o = read(file, n + ".old");
            if (o.rows != a.rows || o.columns != b.rows || o.dtype != "F32") fail(n + ".old is not of the shape of C");
            old.resize(size_t(o.rows) * o.columns);
            memcpy(old.data(), o.data.data(), o.data.size());
        }
        std::vector<float> c = multiply(a, b, old, Instruction(which));
        if (has(file, n + ".a_scale_inv")) {
            float sa = scale(file, n + ".a_scale_inv"), sb = scale(file, n + ".b_scale_inv");
            for (float &v : c) {
                volatile float scaled = v * sa; // rounded, whatever the compiler would fuse
                v = scaled * sb;
            }
        }
        std::vector<uint8_t> data(c.size() * sizeof(float));
        memcpy(data.data(), c.data(), data.size());
        tensors.push_back({n + ".c", "F32", "[" + std::to_string(a.rows) + "," + std::to_string(b.rows) + "]", data});
    }
    write(argv[3], device);
    printf("%s: %zu products on %s\n", argv[3], tensors.size(), device.name);
}
