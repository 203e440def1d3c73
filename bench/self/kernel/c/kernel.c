// The yardstick of the placement: plain C kernels over the same arrays as the
// Go kernel, several ways. `kernel FILE` maps the arrays, then reads names of
// variants from standard input, one a line, and answers each with
//
//	NAME CPU_NANOSECONDS CHECKSUM
//
// so that the caller can let it take turns with the Go kernel. "trace" writes
// the times of the variant before as a trace and answers with its bytes. All variants
// place both runs: A honours all edges, B leaves class 3 (anti) out.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;

enum { CLASS_SHIFT = 30, ANTI = 3, LANES = 4096, BLOCK = 512, PAD = 4 };
static const u32 TARGET = (1u << CLASS_SHIFT) - 1;

// Inputs, as in the module.
static u32 n;
static u64 edges;
static const u32 *off, *words, *issue, *latency;
static const u16 *lane;

// A time in both runs. Row n stays zero: padding points to it.
typedef struct { u64 a, b; } pair;
static pair *arrive;
static pair free_at[LANES];

// Padded blocks of four words a row; rows with more go on in over.
static u32 *padded;
static u32 *over_row; // ascending rows with more than PAD edges
static u32 overs;

// Relative 32-bit ends.
typedef struct { u32 a, b; } pair32;
static pair32 *arrive32;
static pair32 free32[LANES];

static inline u64 max64(u64 x, u64 y) { return x > y ? x : y; }
static inline u32 max32(u32 x, u32 y) { return x > y ? x : y; }

static inline void finish(u32 i, u64 a, u64 b) {
	pair *f = &free_at[lane[i]];
	a = max64(a, f->a);
	b = max64(b, f->b);
	f->a = a + issue[i];
	f->b = b + issue[i];
	arrive[i].a = a + latency[i];
	arrive[i].b = b + latency[i];
}

static inline void csr_row(u32 i) {
	u64 a = 0, b = 0;
	for (u32 e = off[i]; e < off[i + 1]; e++) {
		u32 w = words[e];
		const pair *p = &arrive[w & TARGET];
		a = max64(a, p->a);
		if (w >> CLASS_SHIFT != ANTI)
			b = max64(b, p->b);
	}
	finish(i, a, b);
}

static void csr(void) {
	for (u32 i = 0; i < n; i++)
		csr_row(i);
}

// The ends a block needs are asked for before the block is placed.
static void csr_prefetch(void) {
	for (u32 lo = 0; lo < n; lo += BLOCK) {
		u32 hi = lo + BLOCK < n ? lo + BLOCK : n;
		for (u32 e = off[lo]; e < off[hi]; e++)
			__builtin_prefetch(&arrive[words[e] & TARGET]);
		for (u32 i = lo; i < hi; i++)
			csr_row(i);
	}
}

static inline void padded_row(u32 i, const u32 *w) {
	u64 a = 0, b = 0;
	for (int k = 0; k < PAD; k++) {
		const pair *p = &arrive[w[k] & TARGET];
		u64 keep = (u64)(w[k] >> CLASS_SHIFT != ANTI);
		a = max64(a, p->a);
		b = max64(b, p->b & -keep);
	}
	finish(i, a, b);
}

#if defined(__SSE4_2__)
// Both runs of a time in one register. Times are below 2^63, so that the
// signed comparison will do.
static inline __m128i maxpair(__m128i x, __m128i y) { return _mm_blendv_epi8(y, x, _mm_cmpgt_epi64(x, y)); }

static __m128i keep_of[4];

static inline __m128i padded_ready(const u32 *w) {
	__m128i r = _mm_and_si128(_mm_load_si128((const __m128i *)&arrive[w[0] & TARGET]), keep_of[w[0] >> CLASS_SHIFT]);
	for (int k = 1; k < PAD; k++)
		r = maxpair(r, _mm_and_si128(_mm_load_si128((const __m128i *)&arrive[w[k] & TARGET]), keep_of[w[k] >> CLASS_SHIFT]));
	return r;
}

static inline void sse_finish(u32 i, __m128i r) {
	__m128i *f = (__m128i *)&free_at[lane[i]];
	r = maxpair(r, _mm_load_si128(f));
	_mm_store_si128(f, _mm_add_epi64(r, _mm_set1_epi64x(issue[i])));
	_mm_store_si128((__m128i *)&arrive[i], _mm_add_epi64(r, _mm_set1_epi64x(latency[i])));
}
#endif

// Rows lo to hi by padded blocks, those with more than four edges by CSR.
#define PADDED_ROWS(ROW)                                   \
	for (u32 i = lo; i < hi; i++) {                        \
		if (o < overs && over_row[o] == i) {               \
			o++;                                           \
			csr_row(i);                                    \
			continue;                                      \
		}                                                  \
		ROW;                                               \
	}

static void ell(void) {
	u32 o = 0, lo = 0, hi = n;
	PADDED_ROWS(padded_row(i, padded + (u64)i * PAD))
}

static void ell_prefetch(void) {
	u32 o = 0;
	for (u32 lo = 0; lo < n; lo += BLOCK) {
		u32 hi = lo + BLOCK < n ? lo + BLOCK : n;
		for (u64 e = (u64)lo * PAD; e < (u64)hi * PAD; e++)
			__builtin_prefetch(&arrive[padded[e] & TARGET]);
		PADDED_ROWS(padded_row(i, padded + (u64)i * PAD))
	}
}

#if defined(__SSE4_2__)
static void ell_sse_prefetch(void) {
	u32 o = 0;
	for (u32 lo = 0; lo < n; lo += BLOCK) {
		u32 hi = lo + BLOCK < n ? lo + BLOCK : n;
		for (u64 e = (u64)lo * PAD; e < (u64)hi * PAD; e++)
			__builtin_prefetch(&arrive[padded[e] & TARGET]);
		PADDED_ROWS(sse_finish(i, padded_ready(padded + (u64)i * PAD)))
	}
}

static void csr_sse_prefetch(void) {
	for (u32 lo = 0; lo < n; lo += BLOCK) {
		u32 hi = lo + BLOCK < n ? lo + BLOCK : n;
		for (u32 e = off[lo]; e < off[hi]; e++)
			__builtin_prefetch(&arrive[words[e] & TARGET]);
		for (u32 i = lo; i < hi; i++) {
			__m128i r = _mm_setzero_si128();
			for (u32 e = off[i]; e < off[i + 1]; e++)
				r = maxpair(r, _mm_and_si128(_mm_load_si128((const __m128i *)&arrive[words[e] & TARGET]), keep_of[words[e] >> CLASS_SHIFT]));
			sse_finish(i, r);
		}
	}
}

// Rows are padded a block at a time, on the way to prefetching.
static void csr_pad_sse_prefetch(void) {
	static u32 buf[BLOCK * PAD] __attribute__((aligned(16)));
	const __m128i dummy = _mm_set1_epi32((int)n), slot = _mm_set_epi32(3, 2, 1, 0);
	for (u32 lo = 0; lo < n; lo += BLOCK) {
		u32 hi = lo + BLOCK < n ? lo + BLOCK : n;
		for (u32 i = lo; i < hi; i++) {
			__m128i w = _mm_loadu_si128((const __m128i *)(words + off[i])); // the file has room behind
			__m128i in = _mm_cmplt_epi32(slot, _mm_set1_epi32((int)(off[i + 1] - off[i])));
			_mm_store_si128((__m128i *)(buf + (i - lo) * PAD), _mm_blendv_epi8(dummy, w, in));
		}
		for (u32 e = off[lo]; e < off[hi]; e++)
			__builtin_prefetch(&arrive[words[e] & TARGET]);
		for (u32 i = lo; i < hi; i++) {
			__m128i r = padded_ready(buf + (i - lo) * PAD);
			for (u32 e = off[i] + PAD; e < off[i + 1]; e++)
				r = maxpair(r, _mm_and_si128(_mm_load_si128((const __m128i *)&arrive[words[e] & TARGET]), keep_of[words[e] >> CLASS_SHIFT]));
			sse_finish(i, r);
		}
	}
}
#endif

// 32-bit times: right while the last end is below 2^32.
static void ell32_prefetch(void) {
	u32 o = 0;
	for (u32 lo = 0; lo < n; lo += BLOCK) {
		u32 hi = lo + BLOCK < n ? lo + BLOCK : n;
		for (u64 e = (u64)lo * PAD; e < (u64)hi * PAD; e++)
			__builtin_prefetch(&arrive32[padded[e] & TARGET]);
		for (u32 i = lo; i < hi; i++) {
			const u32 *w = padded + (u64)i * PAD;
			int k = PAD;
			if (o < overs && over_row[o] == i) {
				w = words + off[i];
				k = (int)(off[i + 1] - off[i]);
				o++;
			}
			u32 a = 0, b = 0;
			for (int x = 0; x < k; x++) {
				pair32 p = arrive32[w[x] & TARGET];
				u32 keep = (u32)(w[x] >> CLASS_SHIFT != ANTI);
				a = max32(a, p.a);
				b = max32(b, p.b & -keep);
			}
			pair32 *f = &free32[lane[i]];
			a = max32(a, f->a);
			b = max32(b, f->b);
			f->a = a + issue[i];
			f->b = b + issue[i];
			arrive32[i].a = a + latency[i];
			arrive32[i].b = b + latency[i];
		}
	}
}

// The trace of run A as a plain C program would write it: the records of the
// Go writer in its order, lane by lane, into a buffer that is thrown away.
static char *text(char *p, const char *s) {
	size_t k = strlen(s);
	memcpy(p, s, k);
	return p + k;
}

static char *number(char *p, u64 v) {
	char d[20];
	int k = 20;
	do {
		d[--k] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	memcpy(p, d + k, (size_t)(20 - k));
	return p + 20 - k;
}

static const char *const kinds[4] = {"Flow", "Output", "Ordered", "Anti"};
static u64 trace_bytes;

static void trace(void) {
	static char buf[1 << 20];
	char *p = buf;
	trace_bytes = 0;
	u32 at[65537] = {0};
	for (u32 i = 0; i < n; i++)
		at[lane[i] + 1]++;
	for (u32 l = 1; l <= 65536; l++)
		at[l] += at[l - 1];
	u32 *rows = malloc((size_t)n * sizeof *rows);
	if (rows == NULL)
		return;
	for (u32 i = 0; i < n; i++)
		rows[at[lane[i]]++] = i;
	for (u32 r = 0; r < n; r++) {
		u32 i = rows[r];
		u64 start = arrive[i].a - latency[i];
		p = text(p, ",{\"name\":\"I-");
		p = number(p, i);
		p = text(p, "\",\"ph\":\"X\",\"ts\":");
		p = number(p, start);
		p = text(p, ",\"dur\":");
		p = number(p, issue[i]);
		p = text(p, ",\"pid\":0,\"tid\":");
		p = number(p, lane[i]);
		p = text(p, ",\"args\":{\"bir_id\":");
		p = number(p, i);
		p = text(p, ",\"bir_name\":\"I-");
		p = number(p, i);
		p = text(p, "\",\"opcode\":\"TensorTensor\",\"nki_source_location\":\"\",\"input_shapes\":\"\",\"output_shapes\":\"\","
			"\"input_access_patterns\":\"\",\"output_access_patterns\":\"\",\"inst_dump\":\"TensorTensor\",\"latency_ns\":");
		p = number(p, latency[i]);
		p = text(p, ",\"deps\":[");
		for (u32 e = off[i]; e < off[i + 1]; e++) {
			u32 w = words[e], to = w & TARGET;
			if (e > off[i])
				*p++ = ',';
			p = text(p, "{\"bir_id\":");
			p = number(p, to);
			if (lane[to] != lane[i]) {
				p = text(p, ",\"engine\":\"Engine");
				p = number(p, lane[to]);
				*p++ = '"';
			}
			p = text(p, ",\"edge_type\":\"");
			p = text(p, kinds[w >> CLASS_SHIFT]);
			p = text(p, "\",\"end_time\":");
			p = number(p, arrive[to].a);
			*p++ = '}';
			if (p - buf > (1 << 20) - 4096) {
				trace_bytes += (u64)(p - buf);
				p = buf;
			}
		}
		p = text(p, "]}}\n");
		if (p - buf > (1 << 20) - 4096) {
			trace_bytes += (u64)(p - buf);
			p = buf;
		}
	}
	trace_bytes += (u64)(p - buf);
	free(rows);
}

static const struct { const char *name; void (*run)(void); int narrow; } variants[] = {
	{"csr", csr, 0},
	{"csr-prefetch", csr_prefetch, 0},
	{"ell", ell, 0},
	{"ell-prefetch", ell_prefetch, 0},
	{"ell32-prefetch", ell32_prefetch, 1},
#if defined(__SSE4_2__)
	{"csr-sse-prefetch", csr_sse_prefetch, 0},
	{"csr-pad-sse-prefetch", csr_pad_sse_prefetch, 0},
	{"ell-sse-prefetch", ell_sse_prefetch, 0},
#endif
};

static u64 now(void) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

static void *take(size_t bytes) {
	void *p = NULL;
	if (posix_memalign(&p, 2u << 20, bytes) != 0) {
		fprintf(stderr, "kernel: out of memory\n");
		exit(1);
	}
	madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 0, bytes);
	return p;
}

// Anything else than the arrays the caller wrote ends the program.
static void load(const char *path) {
	int fd = open(path, O_RDONLY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0 || st.st_size < 16) {
		fprintf(stderr, "kernel: cannot read %s\n", path);
		exit(1);
	}
	const char *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (file == MAP_FAILED) {
		fprintf(stderr, "kernel: cannot map %s\n", path);
		exit(1);
	}
	u64 head[2];
	memcpy(head, file, sizeof head);
	n = (u32)head[0];
	edges = head[1];
	// Copied into huge pages, as the Go side's arrays are.
	size_t at = 16;
#define TAKE(dst, count, room)                                            \
	do {                                                                  \
		size_t bytes = (size_t)(count) * sizeof *(dst);                   \
		void *p = take(bytes + (room));                                   \
		memcpy(p, file + at, bytes);                                      \
		at += (bytes + 7) / 8 * 8;                                        \
		(dst) = p;                                                        \
	} while (0)
	TAKE(off, (u64)n + 1, 0);
	TAKE(words, edges, 64);
	TAKE(issue, n, 0);
	TAKE(latency, n, 0);
	TAKE(lane, n, 0);
	munmap((void *)file, (size_t)st.st_size);
	arrive = take(((u64)n + 1) * sizeof *arrive);
	arrive32 = take(((u64)n + 1) * sizeof *arrive32);
	padded = take((u64)n * PAD * sizeof *padded);
	over_row = take(((u64)n + 1) * sizeof *over_row);
	for (u32 i = 0; i < n; i++) {
		u32 deg = off[i + 1] - off[i];
		if (deg > PAD)
			over_row[overs++] = i;
		for (u32 k = 0; k < PAD; k++)
			padded[(u64)i * PAD + k] = k < deg ? words[off[i] + k] : n;
	}
#if defined(__SSE4_2__)
	for (int c = 0; c < 4; c++)
		keep_of[c] = _mm_set_epi64x(c == ANTI ? 0 : -1, -1);
#endif
}

int main(int argc, char **argv) {
	if (argc != 2) {
		fprintf(stderr, "usage: kernel FILE\n");
		return 2;
	}
	load(argv[1]);
	for (size_t v = 0; v < sizeof variants / sizeof *variants; v++)
		printf("%s%s", v ? " " : "", variants[v].name);
	printf("\n");
	fflush(stdout);
	char line[64];
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (strcmp(line, "trace") == 0) {
			// Of the times that the variant before it left.
			u64 t = now();
			trace();
			printf("trace %llu %llx\n", (unsigned long long)(now() - t), (unsigned long long)trace_bytes);
			fflush(stdout);
			continue;
		}
		for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
			if (strcmp(line, variants[v].name) != 0)
				continue;
			memset(free_at, 0, sizeof free_at);
			memset(free32, 0, sizeof free32);
			u64 t = now();
			variants[v].run();
			t = now() - t;
			u64 sum = 0;
			for (u32 i = 0; i < n; i++) {
				u64 a = variants[v].narrow ? arrive32[i].a : arrive[i].a;
				u64 b = variants[v].narrow ? arrive32[i].b : arrive[i].b;
				sum = (sum ^ a) * 0x100000001b3u;
				sum = (sum ^ b) * 0x100000001b3u;
			}
			printf("%s %llu %llx\n", variants[v].name, (unsigned long long)t, (unsigned long long)sum);
			fflush(stdout);
		}
	}
	return 0;
}
