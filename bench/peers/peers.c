// peers runs products and conversions of OpenBLAS and oneDNN for octavo bench --peers,
// which starts it, writes requests to its standard input, a line each, and reads an
// answer from its standard output, a line of JSON each:
//
//	about                       versions, names of routines
//	shape M N K THREADS         forgets what was prepared; operands are of this shape;
//	                            "threads" that OpenBLAS uses, at most those asked for
//	prepare ROUTINE             allocates operands and runs once; "format" of weights
//	element ROUTINE ROW COLUMN  "value" of the result
//	run ROUTINE COUNT           "seconds" that so many runs took together
//
// An answer with "error" says why something cannot be done. Products are
// C = A B', with A of [M,K], B of [N,K] and C of [M,N]; a conversion is of N values.
// Operands are such that octavo knows what must come out: see value and sample.
#define _GNU_SOURCE
#include <math.h>
#include <omp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cblas.h>

// What differs from version to version compiles with the headers of 2.6, 3.0, 3.3, 3.4,
// 3.7 and 3.8.
#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>
#define ONEDNN (DNNL_VERSION_MAJOR * 100 + DNNL_VERSION_MINOR)
#else
#define ONEDNN 0
#endif

// OpenBLAS has it only where it was built with it.
#pragma weak cblas_sbgemm

// What elements are.
enum type { F32, BF16, FP8 };

static const size_t type_size[] = {4, 2, 1};

static long rows, columns, depth; // M, N, K
static int threads = 1;

// Pseudo-random bits of a number.
static uint32_t mix(uint32_t x) {
	x = (x ^ x >> 16) * 0x7feb352d;
	x = (x ^ x >> 15) * 0x846ca68b;
	return x ^ x >> 16;
}

// Element i of A, or of B where the seed is another: a multiple of 1/8 from -15/8 to
// 15/8, exact in all types. Sums of less than 70,000 products are exact in float32.
static float value(uint32_t seed, uint32_t i) { return ((int)(mix(i + seed) % 31) - 15) / 8.0f; }

static const uint32_t seed_a = 0, seed_b = 0x80000000;

// Element i of what is converted to a narrower type, which must round it.
static float sample(uint32_t i) { return ((int)(mix(i) >> 16) - 32768) / 4096.0f; }

// The code of E4M3 that is one of the values above.
static uint8_t code(float x) {
	if (x == 0) return 0;
	int exponent;
	float fraction = frexpf(fabsf(x), &exponent);
	return (uint8_t)((x < 0) << 7 | (exponent + 6) << 3 | ((int)(fraction * 16) & 7));
}

static void store(void *memory, size_t i, enum type type, float x) {
	uint32_t bits;
	memcpy(&bits, &x, 4);
	switch (type) {
	case F32: ((float *)memory)[i] = x; break;
	case BF16: ((uint16_t *)memory)[i] = (uint16_t)(bits >> 16); break;
	case FP8: ((uint8_t *)memory)[i] = code(x); break;
	}
}

// Memory whose pages are there, and whose bytes are NaNs of all types.
static void *memory(size_t bytes) {
	void *m = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	if (!m) {
		fprintf(stderr, "peers: no memory for %zu bytes\n", bytes);
		exit(1);
	}
	return memset(m, 0xFF, bytes);
}

// Operands are made once for all routines of a shape.
static void *operands[2][3];

static void *operand(int which, enum type type) {
	if (!operands[which][type]) {
		size_t n = (size_t)(which ? columns : rows) * depth;
		void *m = memory(n * type_size[type]);
		for (size_t i = 0; i < n; i++) store(m, i, type, value(which ? seed_b : seed_a, (uint32_t)i));
		operands[which][type] = m;
	}
	return operands[which][type];
}

// A job is a routine that was prepared.
struct job {
	const char *error; // NULL if it can run, and did so far
	void (*run)(struct job *);
	void *source;     // of a conversion
	void *result;     // M x N
	enum type type;   // of the result
	char format[80];  // of the weights, if it is not plain
#if ONEDNN
	void *weights; // in oneDNN's own format
	dnnl_primitive_t primitive;
	dnnl_exec_arg_t arguments[3];
	int count; // of arguments
#endif
};

static void result(struct job *j, enum type type) {
	j->type = type;
	j->result = memory((size_t)rows * columns * type_size[type]);
}

// OpenBLAS

static void run_sgemm(struct job *j) {
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, columns, depth, 1, operand(0, F32), depth, operand(1, F32), depth, 0, j->result, columns);
}

static void run_sgemv(struct job *j) {
	cblas_sgemv(CblasRowMajor, CblasNoTrans, columns, depth, 1, operand(1, F32), depth, operand(0, F32), 1, 0, j->result, 1);
}

static void run_sbgemm(struct job *j) {
	cblas_sbgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, columns, depth, 1, operand(0, BF16), depth, operand(1, BF16), depth, 0, j->result, columns);
}

static void sgemm(struct job *j) { j->run = run_sgemm; }

static void sgemv(struct job *j) {
	j->run = run_sgemv;
	if (rows != 1) j->error = "it is for one row";
}

static void sbgemm(struct job *j) {
	j->run = run_sbgemm;
	if (!cblas_sbgemm) j->error = "OpenBLAS was built without it";
}

// Copying

static void run_memcpy(struct job *j) { memcpy(j->result, j->source, (size_t)columns * 4); }

// Values to convert: samples if they are converted to fewer bits.
static void *source(enum type from, bool narrower) {
	void *m = memory((size_t)columns * type_size[from]);
	for (size_t i = 0; i < (size_t)columns; i++) store(m, i, from, narrower ? sample((uint32_t)i) : value(seed_a, (uint32_t)i));
	return m;
}

static void copy(struct job *j) {
	j->run = run_memcpy;
	j->source = source(F32, true);
	if (rows != 1) j->error = "conversions are of one row";
}

// oneDNN

#if ONEDNN

#define HAS_FP8 (ONEDNN >= 304)

#if ONEDNN >= 300
typedef const_dnnl_memory_desc_t descriptor;
#else
typedef const dnnl_memory_desc_t *descriptor;
#endif

static dnnl_engine_t engine;
static dnnl_stream_t stream;

// Returns NULL, or a text that is good until the next error: what did not work and why.
static const char *must(dnnl_status_t status, const char *what) {
	static char text[120];
	if (status == dnnl_success) return NULL;
	snprintf(text, sizeof text, "oneDNN: %s: %s", what, status == dnnl_unimplemented ? "not implemented here" : status == dnnl_out_of_memory ? "out of memory" : "refused");
	return text;
}

static dnnl_data_type_t data_type(enum type t) {
#if HAS_FP8
	if (t == FP8) return dnnl_f8_e4m3;
#endif
	return t == F32 ? dnnl_f32 : dnnl_bf16;
}

// A description of [first, second], contiguous along the last or, if transposed, the
// first; of a format that oneDNN chooses if there is any.
static descriptor describe(enum type type, long first, long second, bool transposed, bool any) {
	dnnl_dims_t extents = {first, second}, strides = {transposed ? 1 : second, transposed ? first : 1};
#if ONEDNN >= 300
	dnnl_memory_desc_t d = NULL;
	if (any) dnnl_memory_desc_create_with_tag(&d, 2, extents, data_type(type), dnnl_format_tag_any);
	else dnnl_memory_desc_create_with_strides(&d, 2, extents, data_type(type), strides);
#else
	dnnl_memory_desc_t *d = calloc(1, sizeof *d);
	if (any) dnnl_memory_desc_init_by_tag(d, 2, extents, data_type(type), dnnl_format_tag_any);
	else dnnl_memory_desc_init_by_strides(d, 2, extents, data_type(type), strides);
#endif
	return d; // the few bytes of a description are never freed
}

// Adds an argument; memory is the pages, m what oneDNN calls memory.
static const char *argument(struct job *j, int name, descriptor d, void *pages) {
	dnnl_memory_t m = NULL;
	const char *error = must(dnnl_memory_create(&m, d, engine, pages), "memory");
	j->arguments[j->count++] = (dnnl_exec_arg_t){name, m};
	return error;
}

static void run_primitive(struct job *j) {
	const char *error = must(dnnl_primitive_execute(j->primitive, stream, j->count, j->arguments), "execute");
	if (!error) error = must(dnnl_stream_wait(stream), "wait");
	if (error) j->error = error;
}

// Makes a job that copies from one description to another.
static const char *reorder(struct job *j, descriptor from, void *source, descriptor to, void *target) {
	dnnl_primitive_desc_t pd = NULL;
	const char *error = must(dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, NULL), "reorder");
	if (!error) error = must(dnnl_primitive_create(&j->primitive, pd), "reorder");
	if (pd) dnnl_primitive_desc_destroy(pd);
	if (!error) error = argument(j, DNNL_ARG_FROM, from, source);
	if (!error) error = argument(j, DNNL_ARG_TO, to, target);
	j->run = run_primitive;
	return error;
}

static void release(struct job *j) {
	for (int i = 0; i < j->count; i++) dnnl_memory_destroy(j->arguments[i].memory);
	if (j->primitive) dnnl_primitive_destroy(j->primitive);
	free(j->weights);
	j->count = 0, j->primitive = NULL, j->weights = NULL;
}

// Writes a blocked format as oneDNN's names of formats do: dimensions from the outermost
// on, those in blocks in upper case, and the blocks.
static void format(char *text, size_t size, descriptor d) {
	int blocks = 0;
	const dnnl_dim_t *sizes, *which, *strides;
#if ONEDNN >= 300
	dnnl_format_kind_t kind;
	const dnnl_dims_t *s, *b, *w;
	dnnl_memory_desc_query(d, dnnl_query_format_kind, &kind);
	if (kind == dnnl_blocked) {
		dnnl_memory_desc_query(d, dnnl_query_inner_nblks_s32, &blocks);
		dnnl_memory_desc_query(d, dnnl_query_strides, &s);
		dnnl_memory_desc_query(d, dnnl_query_inner_blks, &b);
		dnnl_memory_desc_query(d, dnnl_query_inner_idxs, &w);
		strides = *s, sizes = *b, which = *w;
	}
#else
	dnnl_format_kind_t kind = d->format_kind;
	strides = d->format_desc.blocking.strides, sizes = d->format_desc.blocking.inner_blks, which = d->format_desc.blocking.inner_idxs;
	if (kind == dnnl_blocked) blocks = d->format_desc.blocking.inner_nblks;
#endif
	if (kind != dnnl_blocked) {
		snprintf(text, size, "a format of its own");
		return;
	}
	bool blocked[2] = {false, false};
	for (int i = 0; i < blocks; i++) blocked[which[i]] = true;
	int outer = strides[0] >= strides[1] ? 0 : 1, n = 0;
	n += snprintf(text, size, "%c%c", (blocked[outer] ? 'A' : 'a') + outer, (blocked[!outer] ? 'A' : 'a') + !outer);
	for (int i = 0; i < blocks && n < (int)size; i++) n += snprintf(text + n, size - n, "%d%c", (int)sizes[i], 'a' + (int)which[i]);
}

static dnnl_status_t describe_product(dnnl_primitive_desc_t *pd, descriptor a, descriptor b, descriptor c) {
#if ONEDNN >= 300
	return dnnl_matmul_primitive_desc_create(pd, engine, a, b, NULL, c, NULL);
#else
	dnnl_matmul_desc_t product;
	dnnl_status_t status = dnnl_matmul_desc_init(&product, a, b, NULL, c);
	return status != dnnl_success ? status : dnnl_primitive_desc_create(pd, &product, NULL, engine, NULL);
#endif
}

// A product with weights as they are, or in the format that oneDNN chooses. To oneDNN
// they are [K,N].
static void multiply(struct job *j, enum type type, bool reordered) {
#if !HAS_FP8
	if (type == FP8) {
		j->error = "oneDNN has no FP8 before version 3.4";
		return;
	}
#endif
	descriptor a = describe(type, rows, depth, false, false), b = describe(type, depth, columns, true, false);
	descriptor c = describe(F32, rows, columns, false, false), any = describe(type, depth, columns, false, true);
	dnnl_primitive_desc_t pd = NULL;
	if ((j->error = must(describe_product(&pd, a, reordered ? any : b, c), "matmul"))) return;
	void *weights = operand(1, type);
	if (reordered) {
		descriptor chosen = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
		format(j->format, sizeof j->format, chosen);
		j->weights = memory(dnnl_memory_desc_get_size(chosen));
		struct job once = {0};
		if ((j->error = reorder(&once, b, weights, chosen, j->weights))) return;
		run_primitive(&once);
		release(&once);
		if ((j->error = once.error)) return;
		b = chosen, weights = j->weights;
	}
	j->error = must(dnnl_primitive_create(&j->primitive, pd), "matmul");
	if (!j->error) j->error = argument(j, DNNL_ARG_SRC, a, operand(0, type));
	if (!j->error) j->error = argument(j, DNNL_ARG_WEIGHTS, b, weights);
	if (!j->error) j->error = argument(j, DNNL_ARG_DST, c, j->result);
	j->run = run_primitive;
}

static void convert(struct job *j, enum type from, enum type to) {
	if (rows != 1) {
		j->error = "conversions are of one row";
		return;
	}
#if !HAS_FP8
	if (from == FP8 || to == FP8) {
		j->error = "oneDNN has no FP8 before version 3.4";
		return;
	}
#endif
	j->source = source(from, to != F32);
	j->error = reorder(j, describe(from, 1, columns, false, false), j->source, describe(to, 1, columns, false, false), j->result);
}

static void f32(struct job *j) { multiply(j, F32, false); }
static void f32_reordered(struct job *j) { multiply(j, F32, true); }
static void bf16(struct job *j) { multiply(j, BF16, false); }
static void bf16_reordered(struct job *j) { multiply(j, BF16, true); }
static void fp8(struct job *j) { multiply(j, FP8, false); }
static void fp8_reordered(struct job *j) { multiply(j, FP8, true); }
static void f32_to_bf16(struct job *j) { convert(j, F32, BF16); }
static void f32_to_fp8(struct job *j) { convert(j, F32, FP8); }
static void bf16_to_f32(struct job *j) { convert(j, BF16, F32); }
static void fp8_to_f32(struct job *j) { convert(j, FP8, F32); }

// The instructions that oneDNN uses, of the processors that it knows.
static const char *instructions(void) {
#if defined(__x86_64__)
	static const struct { int bit; const char *name; } sets[] = {
		{dnnl_cpu_isa_avx512_core_amx, "AVX-512 and AMX"},
		{dnnl_cpu_isa_avx512_core_bf16, "AVX-512 with BF16"},
		{dnnl_cpu_isa_avx512_core_vnni, "AVX-512 with VNNI"},
		{dnnl_cpu_isa_avx512_core, "AVX-512"},
		{dnnl_cpu_isa_avx2, "AVX2"},
	};
	int isa = dnnl_get_effective_cpu_isa();
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
		if ((isa & sets[i].bit) == sets[i].bit) return sets[i].name;
#endif
	return "";
}

#endif

// Routines by name.
static struct routine {
	const char *name;
	void (*prepare)(struct job *);
	enum type type; // of the result
	struct job job;
	bool ready;
} routines[] = {
	{.name = "openblas-sgemm", .prepare = sgemm},
	{.name = "openblas-sgemv", .prepare = sgemv},
	{.name = "openblas-sbgemm", .prepare = sbgemm},
	{.name = "memcpy", .prepare = copy},
#if ONEDNN
	{.name = "onednn-f32", .prepare = f32},
	{.name = "onednn-f32-reordered", .prepare = f32_reordered},
	{.name = "onednn-bf16", .prepare = bf16},
	{.name = "onednn-bf16-reordered", .prepare = bf16_reordered},
	{.name = "onednn-fp8", .prepare = fp8},
	{.name = "onednn-fp8-reordered", .prepare = fp8_reordered},
	{.name = "onednn-f32-to-bf16", .prepare = f32_to_bf16, .type = BF16},
	{.name = "onednn-f32-to-fp8", .prepare = f32_to_fp8, .type = FP8},
	{.name = "onednn-bf16-to-f32", .prepare = bf16_to_f32},
	{.name = "onednn-fp8-to-f32", .prepare = fp8_to_f32},
#endif
};

static const size_t routine_count = sizeof routines / sizeof *routines;

static void forget(void) {
	for (size_t i = 0; i < routine_count; i++) {
		struct job *j = &routines[i].job;
#if ONEDNN
		release(j);
#endif
		free(j->source);
		free(j->result);
		*j = (struct job){0};
		routines[i].ready = false;
	}
	for (int i = 0; i < 6; i++) {
		free(operands[i / 3][i % 3]);
		operands[i / 3][i % 3] = NULL;
	}
}

static struct routine *find(const char *name) {
	for (size_t i = 0; i < routine_count; i++)
		if (!strcmp(routines[i].name, name)) return &routines[i];
	return NULL;
}

// Answers

static void fail(const char *why) { printf("{\"error\":\"%s\"}\n", why); }

static void about(void) {
	static const char *const parallel[] = {"one thread only", "threads of its own", "OpenMP"};
	int p = openblas_get_parallel();
	char *config = openblas_get_config();
	printf("{\"protocol\":1,\"blas\":\"%s\",\"core\":\"%s\",\"parallel\":\"%s\",", config, openblas_get_corename(), p >= 0 && p < 3 ? parallel[p] : "");
#if ONEDNN
	const dnnl_version_t *v = dnnl_version();
	printf("\"oneDNN\":\"%d.%d.%d\",\"instructions\":\"%s\",", v->major, v->minor, v->patch, instructions());
#endif
	printf("\"routines\":[");
	for (size_t i = 0; i < routine_count; i++) printf("%s\"%s\"", i ? "," : "", routines[i].name);
	printf("]}\n");
}

static void shape(long m, long n, long k, int t) {
	forget();
	rows = m, columns = n, depth = k, threads = t;
	openblas_set_num_threads(t);
	omp_set_num_threads(t);
	printf("{\"threads\":%d}\n", openblas_get_num_threads());
}

static void prepare(struct routine *r) {
	struct job *j = &r->job;
	if (r->ready) return fail("it is prepared");
	result(j, r->type);
	r->prepare(j);
	if (j->error) return fail(j->error);
	j->run(j);
	if (j->error) return fail(j->error);
	r->ready = true;
	printf("{\"format\":\"%s\"}\n", j->format);
}

static void element(struct routine *r, long row, long column) {
	if (!r->ready || row < 0 || row >= rows || column < 0 || column >= columns) return fail("there is no such element");
	size_t i = (size_t)row * columns + column;
	double x = 0;
	switch (r->job.type) {
	case F32: x = ((float *)r->job.result)[i]; break;
	case BF16: x = ((uint16_t *)r->job.result)[i]; break;
	case FP8: x = ((uint8_t *)r->job.result)[i]; break;
	}
	if (!isfinite(x)) return fail("it is not finite");
	printf("{\"value\":%.17g}\n", x);
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void run(struct routine *r, long count) {
	if (!r->ready || count < 1) return fail("there is nothing to run");
	struct job *j = &r->job;
	size_t size = type_size[j->type], last = ((size_t)rows * columns - 1) * size;
	unsigned char *bytes = j->result, nan[4] = {0xFF, 0xFF, 0xFF, 0xFF};
	memcpy(bytes, nan, size);
	memcpy(bytes + last, nan, size);
	double begin = now();
	for (long i = 0; i < count; i++) j->run(j);
	double seconds = now() - begin;
	if (j->error) return fail(j->error);
	if (!memcmp(bytes, nan, size) || !memcmp(bytes + last, nan, size)) return fail("it ran and left no result");
	printf("{\"seconds\":%.9g}\n", seconds);
}

static void answer(const char *line) {
	char word[16], name[40];
	long n[4] = {0};
	int words = sscanf(line, "%15s", word);
	if (words == 1 && !strcmp(word, "about")) return about();
	if (words == 1 && !strcmp(word, "shape")) {
		const long most = 1 << 20;
		if (sscanf(line, "%*s %ld %ld %ld %ld", &n[0], &n[1], &n[2], &n[3]) != 4) return fail("want shape M N K THREADS");
		for (int i = 0; i < 4; i++)
			if (n[i] < 1 || n[i] > (i == 1 ? most << 10 : i == 3 ? 1024 : most)) return fail("that is no shape");
		return shape(n[0], n[1], n[2], (int)n[3]);
	}
	words = sscanf(line, "%15s %39s %ld %ld", word, name, &n[0], &n[1]);
	struct routine *r = words >= 2 ? find(name) : NULL;
	if (!r) return fail("there is no such request or routine");
	if (!rows) return fail("there is no shape yet");
	if (words == 2 && !strcmp(word, "prepare")) return prepare(r);
	if (words == 4 && !strcmp(word, "element")) return element(r, n[0], n[1]);
	if (words == 3 && !strcmp(word, "run")) return run(r, n[0]);
	fail("there is no such request");
}

int main(void) {
	// Signals to the whole group, of a terminal, of timeout or of systemd, are for octavo,
	// which then closes standard input or kills.
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
#if ONEDNN
	const char *error = must(dnnl_engine_create(&engine, dnnl_cpu, 0), "engine");
	if (!error) error = must(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "stream");
	if (error) {
		fprintf(stderr, "peers: %s\n", error);
		return 1;
	}
#endif
	char line[200];
	while (fgets(line, sizeof line, stdin)) {
		answer(line);
		fflush(stdout);
	}
	return 0;
}
