/*
 * Extracts seeds for diff_ipt from a bundle: the trace of one CPU and the code that it executed.
 * bundle_pages BUNDLE FOLDER writes pt.bin, pages.addr and pages.dump to FOLDER (pages of 4 KiB,
 * and their addresses in the same order). For bundles of one process whose mappings do not move.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/worker/replay/replay.h"
#include "proto/base.h"

#define PAGE	  4096u
#define PAGES_MAX 2000u

struct pages {
	struct replay *replay;
	uint64_t addresses[PAGES_MAX];
	size_t n;
	FILE *dump;
};

static bool is_there(const struct pages *p, uint64_t page)
{
	for (size_t i = p->n; i-- > 0;)
		if (p->addresses[i] == page)
			return true;
	return false;
}

/* Bytes behind the end of a mapped file are zero. */
static void add_page(struct pages *p, uint32_t context, uint64_t ip)
{
	uint64_t page = ip & ~(uint64_t)(PAGE - 1), from, to;
	struct image_code code;
	uint8_t bytes[PAGE] = {0};

	if (is_there(p, page) || p->n == PAGES_MAX ||
	    replay_find(p->replay, context, ip, &code) != 0)
		return;
	from = MAX_OF(page, code.address);
	to = MIN_OF(page + PAGE, code.address + code.size);
	memcpy(bytes + (from - page), code.bytes + (from - code.address), (size_t)(to - from));
	fwrite(bytes, 1, PAGE, p->dump);
	p->addresses[p->n++] = page;
}

static int on_stretch(void *userdata, const struct replay_stretch *s)
{
	struct pages *p = userdata;

	for (size_t i = 0; i < s->n_items; i++) {
		const struct flow_item *item = &s->items[i];

		for (uint64_t ip = item->start; item->insns > 0 && ip < item->from; ip += PAGE)
			add_page(p, s->context, ip);
		if (item->from != 0)
			add_page(p, s->context, item->from);
		if (item->to != 0)
			add_page(p, s->context, item->to);
	}
	return 0;
}

static FILE *create(const char *folder, const char *name)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "wb");
	if (f == NULL) {
		perror(path);
		exit(2);
	}
	return f;
}

static void write_all(const char *folder, const char *name, const void *bytes, size_t size)
{
	FILE *f = create(folder, name);

	fwrite(bytes, 1, size, f);
	fclose(f);
}

static int extract(const struct bundle *b, const char *folder)
{
	const struct replay_consumer consumer = {.stretch = on_stretch};
	static struct pages p;
	struct replay_consumer c = consumer;
	const uint8_t *trace;
	size_t size;
	int r = replay_new(b, NULL, &p.replay);

	if (r != 0)
		return r;
	c.userdata = &p;
	p.dump = create(folder, "pages.dump");
	r = replay_all(p.replay, &c);
	fclose(p.dump);
	trace = bundle_cpu(b, 0, &size);
	write_all(folder, "pt.bin", trace, size);
	write_all(folder, "pages.addr", p.addresses, p.n * sizeof(p.addresses[0]));
	printf("%s: %zu bytes, %zu pages\n", folder, size, p.n);
	replay_free(p.replay);
	return r;
}

int main(int argc, char **argv)
{
	struct bundle *b = NULL;
	int fd = argc == 3 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, r;

	if (fd < 0 || bundle_open(fd, &b) != 0) {
		fprintf(stderr, "usage: bundle_pages BUNDLE FOLDER\n");
		return 2;
	}
	r = extract(b, argv[2]);
	bundle_free(b);
	close(fd);
	return r == 0 ? 0 : 1;
}
