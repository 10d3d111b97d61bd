/*
 * Compares our instruction stream with libipt's and with recorded ones. Without arguments: checks
 * every corpus folder (environment PTSNAP_CORPUS) in the list below, TAP on stdout; exits with 77
 * without a corpus. With arguments: flow_check FAMILY/MODEL PT [FILE:OFFSET:LENGTH@VADDR |
 * ADDR:DUMP]... decodes one trace with both decoders, prints counts and the first difference. A
 * test program: libipt is never linked into installed programs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <intel-pt.h>

#include "decoder/flow/flow.h"
#include "proto/base.h"

#define MAX_PIECES 65536
#define MAX_FILES  256

struct image {
	struct flow_code pieces[MAX_PIECES];
	size_t n;
};

struct ips {
	uint64_t *values;
	size_t n, max;
	size_t gaps;
	size_t clean;	     /* instructions before the first gap; libipt's stream only */
	uint64_t known_time; /* items whose interval has both ends */
	struct flow_stats stats;
	double seconds;
};

struct folder {
	const char *name;
	uint32_t family, model;
	uint32_t mtc_period, nonturbo, num, den;
	const char *file; /* NULL: pages.addr and pages.dump */
	uint64_t offset, length, address;
};

/* clang-format off */
static const struct folder folders[] = {
	{ "dynamorio-hello", 6, 0x55, 3, 37, 308, 2, "hello", 0x1000, 0x27, 0x401000 },
	{ "hase-control_flow-0404", 6, 0x5e, 3, 32, 266, 2, "binary", 0, 0x1000, 0x400000 },
	{ "hase-loopy-0514-snapshot", 6, 0x3d, UINT32_MAX, 26, 0, 0, "binary", 0, 0x6c0, 0x400000 },
	{ "libxdc-foo", 6, 0x5e, UINT32_MAX, 0, 0, 0, NULL, 0, 0, 0 },
	{ "arcus/hello", 6, 0x5e, UINT32_MAX, 0, 0, 0, NULL, 0, 0, 0 },
	{ "arcus/cve-2004-0597-poc", 6, 0x5e, UINT32_MAX, 0, 0, 0, NULL, 0, 0, 0 },
	{ "arcus/ovf-01-poc", 6, 0x5e, UINT32_MAX, 0, 0, 0, NULL, 0, 0, 0 },
	{ "arcus/ovf-02-ben", 6, 0x5e, UINT32_MAX, 0, 0, 0, NULL, 0, 0, 0 },
	{ "arcus/ovf-02-poc", 6, 0x5e, UINT32_MAX, 0, 0, 0, NULL, 0, 0, 0 },
};
/* clang-format on */

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Loaded files; kept until the trace is checked, because pieces point into them. */
static struct {
	uint8_t *bytes[MAX_FILES];
	size_t n;
} files;

static void free_files(void)
{
	while (files.n > 0)
		free(files.bytes[--files.n]);
}

static uint8_t *read_file(const char *path, size_t *ret_size)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	uint8_t *bytes;

	if (f == NULL || fstat(fileno(f), &st) != 0)
		die(path);
	bytes = malloc((size_t)st.st_size + 1);
	if (files.n == MAX_FILES || bytes == NULL ||
	    fread(bytes, 1, (size_t)st.st_size, f) != (size_t)st.st_size)
		die(path);
	fclose(f);
	files.bytes[files.n++] = bytes;
	*ret_size = (size_t)st.st_size;
	return bytes;
}

static void add_piece(struct image *im, const uint8_t *bytes, uint64_t address, uint64_t size)
{
	if (im->n < MAX_PIECES)
		im->pieces[im->n++] =
			(struct flow_code){.bytes = bytes, .address = address, .size = size};
}

/* A page whose address has low bits set was not recorded: skip. */
static void add_pages(struct image *im, const char *addr_path, const char *dump_path)
{
	size_t n, size;
	uint64_t *addresses = (uint64_t *)(void *)read_file(addr_path, &n);
	uint8_t *dump = read_file(dump_path, &size);

	for (size_t i = 0; i < n / 8 && (i + 1) * 4096 <= size; i++) {
		if ((addresses[i] & 0xfff) == 0)
			add_piece(im, dump + i * 4096, addresses[i], 4096);
	}
}

static const struct flow_code *find_piece(const struct image *im, uint64_t ip)
{
	for (size_t i = 0; i < im->n; i++) {
		if (ip - im->pieces[i].address < im->pieces[i].size)
			return &im->pieces[i];
	}
	return NULL;
}

static int give_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	const struct flow_code *found = find_piece(userdata, ip);

	(void)context;
	if (found == NULL)
		return FAULT_UNMAPPED;
	*ret = *found;
	return 0;
}

static uint64_t *room_for(struct ips *l, size_t n)
{
	while (l->max - l->n < n) {
		l->max = l->max == 0 ? 65536 : l->max * 2;
		l->values = realloc(l->values, l->max * sizeof(l->values[0]));
		if (l->values == NULL)
			die("memory");
	}
	return l->values + l->n;
}

static void take_batch(struct flow *f, const struct flow_batch *batch, struct ips *l)
{
	for (size_t i = 0; i < batch->n_items; i++) {
		const struct flow_item *item = &batch->items[i];

		l->known_time += item->tsc_lo != 0 && item->tsc_hi != UINT64_MAX;
		if (item->insns > 0)
			l->n += flow_run(f, item->start, item->insns, room_for(l, item->insns));
	}
	for (size_t i = 0; i < batch->n_gaps; i++) {
		const struct flow_gap *g = &batch->gaps[i];

		l->gaps++;
		if (getenv("FLOW_CHECK_GAPS") != NULL)
			printf("# gap %s at %#" PRIx64 " + %" PRIu64 " ip %#" PRIx64 " after %zu\n",
			       fault_name(g->fault), g->offset, g->bytes, g->address, l->n);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run_ours(const uint8_t *trace, size_t size, const struct folder *c, struct image *im,
		     struct ips *ret)
{
	struct flow_config config = {
		.trace = trace,
		.size = size,
		.mtc_period = c->mtc_period,
		.max_nonturbo_ratio = c->nonturbo,
		.tsc_art_num = c->num,
		.tsc_art_den = c->den,
		.cpu_family = c->family,
		.cpu_model = c->model,
		.code = give_code,
		.guests = true, /* some traces are of a virtual machine */
		.userdata = im,
	};
	struct flow_batch batch;
	struct flow *f;
	double begin = now();

	if (flow_new(&config, &f) != 0)
		die("flow_new");
	while (flow_next(f, &batch) == 0)
		take_batch(f, &batch, ret);
	ret->stats = *flow_get_stats(f);
	flow_free(f);
	ret->seconds = now() - begin;
}

static int give_memory(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip,
		       void *context)
{
	size_t done = 0;

	(void)asid;
	while (done < size) {
		const struct flow_code *p = find_piece(context, ip + done);
		uint64_t at;

		if (p == NULL)
			break;
		at = ip + done - p->address;
		for (; done < size && at < p->size; at++)
			buffer[done++] = p->bytes[at];
	}
	return done > 0 ? (int)done : -pte_nomap;
}

static void ipt_segment(struct pt_insn_decoder *d, int status, struct ips *ret)
{
	for (;;) {
		struct pt_insn insn = {0};
		struct pt_event event;

		while (status >= 0 && (status & pts_event_pending) != 0)
			status = pt_insn_event(d, &event, sizeof(event));
		if (status < 0)
			break;
		status = pt_insn_next(d, &insn, sizeof(insn));
		/* libipt returns an instruction together with the error if its successor is
		 * unknown. */
		if (status >= 0 || insn.iclass != ptic_error) {
			*room_for(ret, 1) = insn.ip;
			ret->n++;
		}
		if (status < 0)
			break;
	}
	if (status != -pte_eos) {
		if (ret->gaps++ == 0)
			ret->clean = ret->n;
		if (getenv("FLOW_CHECK_GAPS") != NULL) {
			uint64_t offset = 0;

			pt_insn_get_offset(d, &offset);
			printf("# libipt: %s at %#" PRIx64 " after %zu\n",
			       pt_errstr(pt_errcode(status)), offset, ret->n);
		}
	}
}

static struct pt_config configure_ipt(uint8_t *trace, size_t size, const struct folder *c)
{
	struct pt_config config;

	pt_config_init(&config);
	config.begin = trace;
	config.end = trace + size;
	config.cpu.vendor = c->family != 0 ? pcv_intel : pcv_unknown;
	config.cpu.family = (uint16_t)c->family;
	config.cpu.model = (uint8_t)c->model;
	pt_cpu_errata(&config.errata, &config.cpu);
	return config;
}

static void run_ipt(uint8_t *trace, size_t size, const struct folder *c, struct image *im,
		    struct ips *ret)
{
	struct pt_config config = configure_ipt(trace, size, c);
	struct pt_insn_decoder *d;
	double begin = now();

	d = pt_insn_alloc_decoder(&config);
	if (d == NULL)
		die("pt_insn_alloc_decoder");
	pt_image_set_callback(pt_insn_get_image(d), give_memory, im);
	for (;;) {
		int status = pt_insn_sync_forward(d);

		if (status < 0)
			break;
		ipt_segment(d, status, ret);
	}
	pt_insn_free_decoder(d);
	ret->seconds = now() - begin;
}

/* Compares a block of libipt with our instructions from *at on: first and last instruction, and the
 * number in between. */
static bool is_block(const struct ips *ours, const struct pt_block *b, size_t *at)
{
	size_t first = *at, last = first + b->ninsn - 1;

	*at += b->ninsn;
	if (b->ninsn == 0 ||
	    (*at <= ours->n && ours->values[first] == b->ip && ours->values[last] == b->end_ip))
		return true;
	printf("# instruction %zu: libipt has a block of %u at %#" PRIx64 "\n", first, b->ninsn,
	       b->ip);
	return false;
}

/* Compares up to the first error of libipt's block decoder. */
static bool same_blocks(uint8_t *trace, size_t size, const struct folder *c, struct image *im,
			const struct ips *ours)
{
	struct pt_config config = configure_ipt(trace, size, c);
	struct pt_block_decoder *d = pt_blk_alloc_decoder(&config);
	size_t at = 0, blocks = 0;
	bool same = true;
	int status;

	if (d == NULL)
		die("pt_blk_alloc_decoder");
	pt_image_set_callback(pt_blk_get_image(d), give_memory, im);
	status = pt_blk_sync_forward(d);
	while (status >= 0 && same) {
		struct pt_block block = {0};
		struct pt_event event;

		while (status >= 0 && (status & pts_event_pending) != 0)
			status = pt_blk_event(d, &event, sizeof(event));
		if (status < 0)
			break;
		status = pt_blk_next(d, &block, sizeof(block));
		same = is_block(ours, &block, &at);
		blocks += block.ninsn > 0;
	}
	if (same && status == -pte_eos && at != ours->n)
		same = printf("# libipt's blocks end at instruction %zu\n", at) < 0;
	printf("# %zu blocks of libipt's, %zu instructions\n", blocks, at);
	pt_blk_free_decoder(d);
	return same;
}

static bool read_expected(const char *path, struct ips *ret)
{
	char command[4200], line[64];
	FILE *f;

	snprintf(command, sizeof(command), "zcat '%s'", path);
	f = popen(command, "r");
	if (f == NULL)
		return false;
	while (fgets(line, sizeof(line), f) != NULL) {
		*room_for(ret, 1) = strtoull(line, NULL, 16);
		ret->n++;
	}
	return pclose(f) == 0;
}

static bool same_until(const struct ips *ours, const struct ips *other, size_t end,
		       const char *name)
{
	size_t i = 0;

	while (i < end && i < ours->n && i < other->n && ours->values[i] == other->values[i])
		i++;
	if (i == end || (i == ours->n && i == other->n))
		return true;
	printf("# differs from %s at instruction %zu: %#" PRIx64 " and %#" PRIx64
	       " (%zu and %zu instructions)\n",
	       name, i, i < ours->n ? ours->values[i] : 0, i < other->n ? other->values[i] : 0,
	       ours->n, other->n);
	return false;
}

static bool check(uint8_t *trace, size_t size, const struct folder *c, struct image *im,
		  const char *expected_path)
{
	struct ips ours = {0}, ipt = {0}, expected = {0};
	bool ok;

	run_ours(trace, size, c, im, &ours);
	run_ipt(trace, size, c, im, &ipt);
	printf("# %zu instructions, %" PRIu64 " of them in items, %" PRIu64 " branches, %" PRIu64
	       " returns, %" PRIu64 " compressed, %zu gaps (libipt %zu), %" PRIu64
	       " timed; %.1f and %.1f ms\n",
	       ours.n, ours.stats.instructions, ours.stats.branches, ours.stats.returns,
	       ours.stats.compressed_returns, ours.gaps, ipt.gaps, ours.known_time,
	       ours.seconds * 1e3, ipt.seconds * 1e3);
	/* libipt 2.0 does not know a TIP.PGD without IP at an indirect call, which some traces
	 * have. Such traces are compared with libipt up to its error, and with the recorded stream
	 * completely. */
	ok = same_until(&ours, &ipt, ipt.gaps > 0 ? ipt.clean : SIZE_MAX, "libipt");
	ok = same_blocks(trace, size, c, im, &ours) && ok;
	if (expected_path != NULL)
		ok = read_expected(expected_path, &expected) &&
		     same_until(&ours, &expected, SIZE_MAX, "what was recorded") && ok;
	free(ours.values);
	free(ipt.values);
	free(expected.values);
	return ok;
}

static bool check_folder(const char *corpus, const struct folder *c)
{
	static struct image im;
	char path[4096], other[4096];
	uint8_t *trace, *file;
	size_t size, file_size;

	im.n = 0;
	if (c->file != NULL) {
		snprintf(path, sizeof(path), "%s/%s/%s", corpus, c->name, c->file);
		file = read_file(path, &file_size);
		add_piece(&im, file + c->offset, c->address, c->length);
	} else {
		snprintf(path, sizeof(path), "%s/%s/pages.addr", corpus, c->name);
		snprintf(other, sizeof(other), "%s/%s/pages.dump", corpus, c->name);
		add_pages(&im, path, other);
	}
	snprintf(path, sizeof(path), "%s/%s/pt.bin", corpus, c->name);
	trace = read_file(path, &size);
	snprintf(path, sizeof(path), "%s/%s/expected/ips.txt.gz", corpus, c->name);
	return check(trace, size, c, &im, path);
}

static int check_corpus(void)
{
	const char *corpus = getenv("PTSNAP_CORPUS");
	bool ok = true;

	if (corpus == NULL || access(corpus, R_OK) != 0) {
		printf("1..0 # SKIP no corpus (environment PTSNAP_CORPUS)\n");
		return 0;
	}
	printf("1..%zu\n", ARRAY_SIZE(folders));
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		bool good = check_folder(corpus, &folders[i]);

		free_files();
		printf("%sok %zu - %s\n", good ? "" : "not ", i + 1, folders[i].name);
		ok = ok && good;
	}
	return ok ? 0 : 1;
}

/* Parses FILE:OFFSET:LENGTH@VADDR or ADDR:DUMP. */
static void add_argument(struct image *im, char *arg)
{
	char *at = strrchr(arg, '@'), *colon = strchr(arg, ':');
	uint64_t offset, length;
	size_t size;
	uint8_t *file;

	if (colon == NULL) {
		fprintf(stderr, "flow_check: not an image: %s\n", arg);
		exit(1);
	}
	*colon = '\0';
	if (at == NULL) {
		add_pages(im, arg, colon + 1);
		return;
	}
	offset = strtoull(colon + 1, &colon, 0);
	length = *colon == ':' ? strtoull(colon + 1, NULL, 0) : 0;
	file = read_file(arg, &size);
	add_piece(im, file + offset, strtoull(at + 1, NULL, 0), MIN_OF(length, size - offset));
}

int main(int argc, char **argv)
{
	static struct image im;
	struct folder c = {.mtc_period = UINT32_MAX};
	uint8_t *trace;
	size_t size;
	char *end;
	bool ok;

	if (argc < 3)
		return check_corpus();
	c.family = (uint32_t)strtoul(argv[1], &end, 0);
	c.model = *end == '/' ? (uint32_t)strtoul(end + 1, NULL, 0) : 0;
	trace = read_file(argv[2], &size);
	for (int i = 3; i < argc; i++)
		add_argument(&im, argv[i]);
	ok = check(trace, size, &c, &im, NULL);
	free_files();
	return ok ? 0 : 1;
}
