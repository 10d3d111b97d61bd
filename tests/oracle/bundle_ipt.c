/*
 * A bundle's trace decoded by libipt, for comparison with our decoder: prints, a line a CPU,
 * {"cpu":N,"instructions":N,"ipHash":"...","errors":N}. Code comes from the bundle's images by the
 * last state of the first process that has mappings. A test program: libipt is never linked into
 * what ships.
 */
#include <fcntl.h>
#include <intel-pt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"
#include "proto/bundle.h"
#include "sideband/image.h"
#include "sideband/timeline.h"

#define FNV_BASIS 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

struct oracle {
	struct image_set *images;
	const struct space *space;
	struct image_code code; /* the piece that was asked for last */
};

struct result {
	uint64_t instructions, hash, errors;
};

static int read_memory(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip,
		       void *context)
{
	struct oracle *o = context;
	uint64_t left;

	(void)asid;
	if (ip < o->code.address || ip - o->code.address >= o->code.size) {
		if (image_find(o->images, o->space, SPACE_NOW - 1, ip, &o->code) != 0)
			return -pte_nomap;
	}
	left = o->code.size - (ip - o->code.address);
	size = MIN_OF(size, left);
	memcpy(buffer, o->code.bytes + (ip - o->code.address), size);
	return (int)size;
}

static uint64_t hash_ip(uint64_t hash, uint64_t ip)
{
	for (unsigned i = 0; i < 8; i++)
		hash = (hash ^ (ip >> (8 * i) & 0xff)) * FNV_PRIME;
	return hash;
}

static int drain_events(struct pt_insn_decoder *d, int status)
{
	while (status >= 0 && (status & pts_event_pending)) {
		struct pt_event event;

		status = pt_insn_event(d, &event, sizeof(event));
	}
	return status;
}

static void walk_segment(struct pt_insn_decoder *d, int status, struct result *r)
{
	for (;;) {
		struct pt_insn insn;

		status = drain_events(d, status);
		if (status < 0)
			break;
		insn.iclass = ptic_error;
		status = pt_insn_next(d, &insn, sizeof(insn));
		if (insn.iclass != ptic_error) {
			r->instructions++;
			r->hash = hash_ip(r->hash, insn.ip);
		}
		if (status < 0)
			break;
	}
	if (status == -pte_eos)
		return;
	r->errors++;
	if (r->errors <= 3) {
		uint64_t offset = 0;

		pt_insn_get_offset(d, &offset);
		fprintf(stderr,
			"libipt: %s at offset 0x%" PRIx64 " after %" PRIu64 " instructions\n",
			pt_errstr(pt_errcode(status)), offset, r->instructions);
	}
}

static int decode(struct oracle *o, const uint8_t *trace, size_t size, const struct manifest *m,
		  struct result *r)
{
	struct pt_config config;
	struct pt_insn_decoder *d;
	struct pt_image *image = pt_image_alloc("bundle");

	pt_config_init(&config);
	config.begin = (uint8_t *)(uintptr_t)trace;
	config.end = (uint8_t *)(uintptr_t)trace + size;
	if (m->mtc_period != UINT32_MAX)
		config.mtc_freq = (uint8_t)m->mtc_period;
	config.nom_freq = (uint8_t)m->max_nonturbo_ratio;
	config.cpuid_0x15_eax = m->tsc_art_den;
	config.cpuid_0x15_ebx = m->tsc_art_num;
	d = pt_insn_alloc_decoder(&config);
	if (!d || !image)
		return -ENOMEM;
	pt_image_set_callback(image, read_memory, o);
	pt_insn_set_image(d, image);
	for (;;) {
		int status = pt_insn_sync_forward(d);

		if (status < 0)
			break;
		walk_segment(d, status, r);
	}
	pt_insn_free_decoder(d);
	pt_image_free(image);
	return 0;
}

static int open_images(const struct bundle *b, struct image_source **ret_sources,
		       struct image_set **ret)
{
	const struct manifest *m = bundle_manifest(b);
	struct image_source *sources = calloc(m->n_images + 1, sizeof(*sources));

	for (size_t i = 0; i < m->n_images; i++) {
		const struct manifest_image *image = &m->images[i];

		sources[i] = (struct image_source){
			.path = image->path,
			.maj = image->maj,
			.min = image->min,
			.ino = image->ino,
			.ino_generation = image->ino_generation,
			.offset = image->offset,
		};
		sources[i].bytes = bundle_image(b, i, &sources[i].size);
	}
	*ret_sources = sources;
	return image_set_new(sources, m->n_images, ret);
}

static const struct space *first_space(const struct timeline *t)
{
	for (size_t i = 0; i < timeline_n_threads(t); i++) {
		const struct space *s =
			timeline_space(t, timeline_thread(t, i)->pid, SPACE_NOW - 1);

		if (s && space_generation(s, SPACE_NOW - 1) > 0)
			return s;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct bundle *b = NULL;
	struct timeline *t = NULL;
	CLEANUP_FREE struct image_source *sources = NULL;
	struct oracle o = {0};
	const uint8_t *records;
	size_t size;
	uint64_t bad;
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || bundle_open(fd, &b) != 0)
		return fprintf(stderr, "usage: bundle_ipt BUNDLE\n"), 2;
	records = bundle_sideband(b, &size);
	if (timeline_load(records, size, &t, &bad) != 0 || open_images(b, &sources, &o.images) != 0)
		return 1;
	o.space = first_space(t);
	for (size_t i = 0; o.space && i < bundle_manifest(b)->n_cpus; i++) {
		struct result r = {.hash = FNV_BASIS};
		const uint8_t *trace = bundle_cpu(b, i, &size);

		if (decode(&o, trace, size, bundle_manifest(b), &r) != 0)
			return 1;
		printf("{\"cpu\":%u,\"instructions\":%" PRIu64 ",\"ipHash\":\"%016" PRIx64
		       "\",\"errors\":%" PRIu64 "}\n",
		       bundle_manifest(b)->cpus[i].cpu, r.instructions, r.hash, r.errors);
	}
	image_set_free(o.images);
	timeline_free(t);
	bundle_free(b);
	close(fd);
	return o.space ? 0 : 1;
}
