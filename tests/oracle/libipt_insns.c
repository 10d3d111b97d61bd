/*
 * Runs libipt's instruction decoder over raw PT bytes, as an oracle for the software PMU and the
 * decoder:
 *
 *   libipt_insns PTFILE [--insns] [--from-tsc] FILE:OFFSET:LENGTH@VADDR ...
 *
 * Synchronises on the first PSB, decodes to the end, and prints
 * {"instructions":N,"ipHash":"...","errors":N,"firstTsc":"0x..."} (see
 * tests/support/truth_window.c). Prints errors on stderr.
 */
#include <fcntl.h>
#include <intel-pt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FNV_BASIS 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

struct oracle {
	struct pt_insn_decoder *decoder;
	uint64_t instructions, fnv, errors, first_tsc;
	bool insns;
};

static void fail(const char *what)
{
	fprintf(stderr, "libipt_insns: %s\n", what);
	exit(2);
}

static void map_trace(const char *path, struct pt_config *config)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *map;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size == 0)
		fail(path);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		fail(path);
	close(fd);
	config->begin = map;
	config->end = (uint8_t *)map + st.st_size;
}

static void add_image(struct pt_image *image, char *text)
{
	char *at = strrchr(text, '@');
	char *length = NULL, *offset = NULL;
	int r;

	if (at == NULL)
		fail(text);
	*at = '\0';
	length = strrchr(text, ':');
	if (length != NULL)
		*length = '\0';
	offset = strrchr(text, ':');
	if (length == NULL || offset == NULL)
		fail(text);
	*offset = '\0';
	r = pt_image_add_file(image, text, strtoull(offset + 1, NULL, 0),
			      strtoull(length + 1, NULL, 0), NULL, strtoull(at + 1, NULL, 0));
	if (r < 0)
		fprintf(stderr, "%s: %s\n", text, pt_errstr(pt_errcode(r)));
}

static void count(struct oracle *o, uint64_t ip)
{
	o->instructions++;
	if (o->insns)
		printf("%" PRIx64 "\n", ip);
	for (int i = 0; i < 8; i++) {
		o->fnv ^= ip & 0xff;
		o->fnv *= FNV_PRIME;
		ip >>= 8;
	}
}

static int drain_events(struct oracle *o, int status)
{
	struct pt_event event;

	while (status >= 0 && (status & pts_event_pending) != 0) {
		status = pt_insn_event(o->decoder, &event, sizeof(event));
		if (o->first_tsc == 0 && status >= 0 && event.has_tsc)
			o->first_tsc = event.tsc;
	}
	return status;
}

static void note_error(struct oracle *o, int status, uint64_t ip)
{
	uint64_t offset = 0;

	pt_insn_get_offset(o->decoder, &offset);
	fprintf(stderr, "error at %" PRIx64 ", ip %" PRIx64 ": %s\n", offset, ip,
		pt_errstr(pt_errcode(status)));
	o->errors++;
}

/* Decodes from a PSB to the end or to an error. */
static int decode(struct oracle *o, int status)
{
	struct pt_insn insn;

	for (;;) {
		status = drain_events(o, status);
		if (status < 0 || (status & pts_eos) != 0)
			return status;
		memset(&insn, 0, sizeof(insn));
		status = pt_insn_next(o->decoder, &insn, sizeof(insn));
		if (insn.iclass != ptic_error)
			count(o, insn.ip);
		if (status < 0) {
			if (status != -pte_eos)
				note_error(o, status, insn.ip);
			return status;
		}
	}
}

static void run(struct oracle *o)
{
	for (;;) {
		int status = pt_insn_sync_forward(o->decoder);

		if (status < 0) {
			if (status != -pte_eos)
				note_error(o, status, 0);
			return;
		}
		status = decode(o, status);
		if (status >= 0 || status == -pte_eos)
			return;
	}
}

int main(int argc, char **argv)
{
	struct oracle o = {.fnv = FNV_BASIS};
	struct pt_config config;
	struct pt_image *image = pt_image_alloc("code");
	int i = 2;

	if (argc < 2 || image == NULL)
		fail("PTFILE [--insns] FILE:OFFSET:LENGTH@VADDR ...");
	pt_config_init(&config);
	map_trace(argv[1], &config);
	for (; i < argc; i++) {
		if (strcmp(argv[i], "--insns") == 0)
			o.insns = true;
		else
			add_image(image, argv[i]);
	}
	o.decoder = pt_insn_alloc_decoder(&config);
	if (o.decoder == NULL || pt_insn_set_image(o.decoder, image) < 0)
		fail("no decoder");
	run(&o);
	printf("{\"instructions\":%" PRIu64 ",\"ipHash\":\"%016" PRIx64 "\",\"errors\":%" PRIu64
	       ",\"firstTsc\":\"0x%" PRIx64 "\"}\n",
	       o.instructions, o.fnv, o.errors, o.first_tsc);
	pt_insn_free_decoder(o.decoder);
	pt_image_free(image);
	return o.errors != 0;
}
