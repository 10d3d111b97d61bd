/*
 * Measures libipt's block decoder on the traces of a bundle: bench_ipt BUNDLE [PASSES]. The bundle
 * has one process, whose mappings do not change.
 *
 * The measured time covers packets to blocks in memory (address, last address, number of
 * instructions, time) and events. The first pass decodes code that libipt has never seen; later
 * passes use the block decoder's cache. Reading files is measured separately ("open").
 *
 * Prints an object: bytes, passes (CPU seconds of each), open, and of the last pass: instructions,
 * blocks, events, errors, and the number of branches that TNT packets decide. `make bench' runs it;
 * libipt is never linked into installed programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/base.h"
#include "tests/bench/ipt_image.h"

#define BATCH	   65536u
#define MAX_PASSES 1000u

struct out {
	uint64_t ip, end_ip, time;
	uint32_t ninsn;
};

struct counts {
	uint64_t instructions, blocks, events, errors;
	int error; /* the last one */
	uint64_t error_offset;
};

struct bench {
	const struct bundle *bundle;
	struct code code;
	struct ipt_image image;
	struct out *out; /* BATCH entries; when full, writing restarts at the first entry */
	uint64_t bytes;
	struct counts counts; /* of this pass */
};

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct pt_block_decoder *decoder_new(const struct bench *b, size_t cpu)
{
	const struct manifest *m = bundle_manifest(b->bundle);
	struct pt_block_decoder *decoder;
	struct pt_config config;
	size_t size;
	const uint8_t *trace = bundle_cpu(b->bundle, cpu, &size);

	pt_config_init(&config);
	config.begin = (uint8_t *)(uintptr_t)trace;
	config.end = (uint8_t *)(uintptr_t)trace + size;
	if (m->mtc_period != UINT32_MAX)
		config.mtc_freq = (uint8_t)m->mtc_period;
	config.nom_freq = (uint8_t)m->max_nonturbo_ratio;
	config.cpuid_0x15_eax = m->tsc_art_den;
	config.cpuid_0x15_ebx = m->tsc_art_num;
	decoder = pt_blk_alloc_decoder(&config);
	if (decoder != NULL)
		pt_blk_set_image(decoder, b->image.image);
	return decoder;
}

static int take_events(struct bench *b, struct pt_block_decoder *decoder, int status)
{
	struct pt_event event;

	while (status >= 0 && (status & pts_event_pending)) {
		status = pt_blk_event(decoder, &event, sizeof(event));
		b->counts.events += status >= 0;
	}
	return status;
}

static void take_block(struct bench *b, struct pt_block_decoder *decoder,
		       const struct pt_block *block)
{
	struct out *out = &b->out[b->counts.blocks % BATCH];

	out->ip = block->ip;
	out->end_ip = block->end_ip;
	out->ninsn = block->ninsn;
	pt_blk_time(decoder, &out->time, NULL, NULL);
	b->counts.instructions += block->ninsn;
	b->counts.blocks++;
}

/* Decodes from a PSB to an error or to the end of the trace. */
static int run(struct bench *b, struct pt_block_decoder *decoder, int status)
{
	for (;;) {
		struct pt_block block = {0};

		status = take_events(b, decoder, status);
		if (status < 0)
			return status;
		status = pt_blk_next(decoder, &block, sizeof(block));
		if (block.ninsn > 0)
			take_block(b, decoder, &block);
		if (status < 0)
			return status;
	}
}

static int decode(struct bench *b, size_t cpu)
{
	struct pt_block_decoder *decoder = decoder_new(b, cpu);
	int status;

	if (decoder == NULL)
		return -EINVAL;
	while ((status = pt_blk_sync_forward(decoder)) >= 0) {
		status = run(b, decoder, status);
		if (status == -pte_eos)
			break;
		b->counts.errors++;
		b->counts.error = status;
		pt_blk_get_offset(decoder, &b->counts.error_offset);
	}
	pt_blk_free_decoder(decoder);
	return 0;
}

static uint64_t count_tnt(const uint8_t *trace, size_t size)
{
	struct pt_packet_decoder *decoder;
	struct pt_packet packet;
	struct pt_config config;
	uint64_t n = 0;

	pt_config_init(&config);
	config.begin = (uint8_t *)(uintptr_t)trace;
	config.end = (uint8_t *)(uintptr_t)trace + size;
	decoder = pt_pkt_alloc_decoder(&config);
	if (decoder == NULL)
		return 0;
	while (pt_pkt_sync_forward(decoder) >= 0)
		while (pt_pkt_next(decoder, &packet, sizeof(packet)) >= 0)
			if (packet.type == ppt_tnt_8 || packet.type == ppt_tnt_64)
				n += packet.payload.tnt.bit_size;
	pt_pkt_free_decoder(decoder);
	return n;
}

static uint64_t tnt_bits(const struct bench *b)
{
	uint64_t n = 0;

	for (size_t i = 0; i < bundle_manifest(b->bundle)->n_cpus; i++) {
		size_t size;
		const uint8_t *trace = bundle_cpu(b->bundle, i, &size);

		if (size > 0)
			n += count_tnt(trace, size);
	}
	return n;
}

static int pass(struct bench *b)
{
	int r = 0;

	b->counts = (struct counts){0};
	b->bytes = 0;
	for (size_t i = 0; r == 0 && i < bundle_manifest(b->bundle)->n_cpus; i++) {
		size_t size;

		bundle_cpu(b->bundle, i, &size);
		b->bytes += size;
		if (size > 0)
			r = decode(b, i);
	}
	return r;
}

static int passes(struct bench *b, unsigned long n)
{
	printf("\"passes\":[");
	for (unsigned long i = 0; i < n; i++) {
		double before = cpu_seconds();
		int r = pass(b);

		if (r != 0)
			return r;
		printf("%s%.6f", i > 0 ? "," : "", cpu_seconds() - before);
	}
	printf("],\"bytes\":%" PRIu64 ",\"sections\":%zu,\"instructions\":%" PRIu64
	       ",\"blocks\":%" PRIu64 ",\"events\":%" PRIu64 ",\"errors\":%" PRIu64
	       ",\"tntBits\":%" PRIu64 "}\n",
	       b->bytes, b->code.n, b->counts.instructions, b->counts.blocks, b->counts.events,
	       b->counts.errors, tnt_bits(b));
	if (b->counts.errors > 0)
		fprintf(stderr, "libipt: %s at 0x%" PRIx64 "\n",
			pt_errstr(pt_errcode(b->counts.error)), b->counts.error_offset);
	return 0;
}

int main(int argc, char **argv)
{
	double before = cpu_seconds();
	int fd = argc >= 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, r;
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	struct bench b = {.out = calloc(BATCH, sizeof(struct out))};
	struct bundle *bundle = NULL;

	if (fd < 0 || b.out == NULL || n == 0 || n > MAX_PASSES || bundle_open(fd, &bundle) != 0) {
		fprintf(stderr, "usage: bench_ipt BUNDLE [PASSES]\n");
		return 2;
	}
	b.bundle = bundle;
	r = code_open(bundle, &b.code);
	if (r == 0)
		r = ipt_image_open(&b.code, &b.image);
	printf("{\"open\":%.6f,", cpu_seconds() - before);
	if (r == 0)
		r = passes(&b, n);
	if (r != 0)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
	ipt_image_close(&b.image);
	code_close(&b.code);
	bundle_free(bundle);
	free(b.out);
	close(fd);
	return r == 0 ? 0 : 1;
}
