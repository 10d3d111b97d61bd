/*
 * Maps a bundle, and checks all of it before anybody gets a pointer into it.
 */
#include "proto/bundle/bundle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/base.h"
#include "proto/bundle/bundle_tar.h"

/* The most that tar adds behind the end, with its usual blocking factor of 20. */
#define MAX_TRAILING (20u * BUNDLE_BLOCK)

struct member {
	const uint8_t *data; /* in the mapping; NULL: not in the bundle */
	size_t size;
};

struct bundle {
	const uint8_t *map;
	size_t map_size;
	struct manifest manifest;
	struct member text;
	struct member sideband;
	size_t n_cpus, n_images, n_pevents, n_texts; /* members found */
	struct member cpus[MANIFEST_MAX_CPUS];	     /* by number of the CPU */
	struct member traces[MANIFEST_MAX_CPUS];     /* by index of the manifest's list */
	struct member images[MANIFEST_MAX_IMAGES];
	struct member pevents[MANIFEST_MAX_PEVENTS];
	struct member texts[MANIFEST_MAX_TEXTS];
	struct pieces *pieces; /* owned, one for each of the manifest's images */
};

struct pieces {
	struct manifest_piece *list; /* owned; NULL: the pieces are ONE */
	size_t n;
	struct manifest_piece one;
};

/* Takes a number below LIMIT without leading zeros from *S. */
static bool take_number(const char **s, size_t limit, size_t *ret)
{
	const char *first = *s;
	size_t v = 0;

	while (**s >= '0' && **s <= '9' && v < limit)
		v = v * 10 + (size_t)(*(*s)++ - '0');
	if (*s == first || (*first == '0' && *s - first > 1) || v >= limit)
		return false;
	*ret = v;
	return true;
}

/* Returns where the member NAME belongs, and its counter, or NULL for an unknown name. */
static struct member *find_slot(struct bundle *b, const char *name, size_t **ret_count)
{
	const struct {
		const char *prefix, *suffix;
		size_t limit;
		struct member *members;
		size_t *count;
	} kinds[] = {
		{"images/", "", MANIFEST_MAX_IMAGES, b->images, &b->n_images},
		{"cpu", ".pt", MANIFEST_MAX_CPUS, b->cpus, &b->n_cpus},
		{"trace/", "", MANIFEST_MAX_CPUS, b->traces, &b->n_cpus},
		{"texts/", "", MANIFEST_MAX_TEXTS, b->texts, &b->n_texts},
		{"pevent/", "", MANIFEST_MAX_PEVENTS, b->pevents, &b->n_pevents},
	};
	size_t i;

	*ret_count = NULL;
	if (strcmp(name, BUNDLE_MANIFEST_NAME) == 0)
		return &b->text;
	if (strcmp(name, BUNDLE_SIDEBAND_NAME) == 0)
		return &b->sideband;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		if (strncmp(name, kinds[k].prefix, strlen(kinds[k].prefix)) != 0)
			continue;
		name += strlen(kinds[k].prefix);
		if (!take_number(&name, kinds[k].limit, &i) || strcmp(name, kinds[k].suffix) != 0)
			return NULL;
		*ret_count = kinds[k].count;
		return &kinds[k].members[i];
	}
	return NULL;
}

/* Reads the member whose header is at *AT, and moves *AT to the next header. */
static int read_member(struct bundle *b, size_t *at)
{
	const uint8_t *header = b->map + *at;
	size_t left = b->map_size - *at - BUNDLE_BLOCK;
	char name[BUNDLE_NAME_MAX + 1];
	struct member *slot;
	uint64_t size;
	size_t *count;
	int r;

	r = bundle_tar_parse(header, name, &size);
	if (r != 0)
		return r;
	if (size > left || bundle_tar_padding(size) > left - size)
		return -EBADMSG;
	slot = find_slot(b, name, &count);
	if (!slot || slot->data)
		return -EBADMSG;
	*slot = (struct member){header + BUNDLE_BLOCK, (size_t)size};
	if (count)
		*count += 1;
	*at += BUNDLE_BLOCK + (size_t)size + bundle_tar_padding(size);
	return 0;
}

static int read_members(struct bundle *b)
{
	size_t at = 0;
	int r;

	do {
		if (b->map_size - at < BUNDLE_BLOCK)
			return -EBADMSG;
		r = read_member(b, &at);
	} while (r == 0);
	if (r != BUNDLE_TAR_ZERO)
		return r;
	if (b->map_size - at < 2 * BUNDLE_BLOCK ||
	    b->map_size - at > MAX_TRAILING + 2 * BUNDLE_BLOCK)
		return -EBADMSG;
	for (; at < b->map_size; at++)
		if (b->map[at] != 0)
			return -EBADMSG;
	return 0;
}

/* Returns the trace of the manifest's cpus[INDEX]; without data if there is none. */
static const struct member *trace_of(const struct bundle *b, size_t index)
{
	uint32_t cpu = b->manifest.cpus[index].cpu;

	if (cpu == MANIFEST_ANY || b->traces[index].data)
		return &b->traces[index];
	return &b->cpus[cpu];
}

/* Reads the pieces of an image: they are together as large as its member, and lie within its file.
 */
static int check_pieces(struct bundle *b, size_t index)
{
	const struct manifest_image *image = &b->manifest.images[index];
	struct pieces *p = &b->pieces[index];
	uint64_t sum = 0;
	int r;

	p->one = (struct manifest_piece){image->offset, image->size};
	p->n = image->size > 0;
	if (!image->pieces)
		return 0;
	r = manifest_pieces_parse(image->pieces, &p->list, &p->n);
	if (r < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	for (size_t i = 0; i < p->n; i++)
		sum += p->list[i].size; /* no overflow: they do not overlap, and end below 2^63 */
	if (sum != image->size ||
	    p->list[p->n - 1].offset + p->list[p->n - 1].size > image->file_size)
		return -EBADMSG;
	return 0;
}

static int check_images(struct bundle *b)
{
	const struct manifest *m = &b->manifest;
	size_t n = 0;
	int r = 0;

	b->pieces = calloc(m->n_images + 1, sizeof(*b->pieces));
	if (!b->pieces)
		return -ENOMEM;

	for (size_t i = 0; i < m->n_images && r == 0; i++) {
		const struct member *found = &b->images[i];

		if (!found->data != (m->images[i].missing || m->images[i].elsewhere))
			return -EBADMSG;
		if (found->size != m->images[i].size)
			return -EBADMSG;
		n += !!found->data;
		r = check_pieces(b, i);
	}
	if (r < 0)
		return r;
	return n == b->n_images ? 0 : -EBADMSG;
}

static int check_texts(const struct bundle *b)
{
	const struct manifest *m = &b->manifest;
	size_t n = 0;

	for (size_t i = 0; i < m->n_texts; i++) {
		const struct member *found = &b->texts[i];

		if (!found->data != !!m->texts[i].missing || found->size != m->texts[i].size)
			return -EBADMSG;
		n += !!found->data;
	}
	return n == b->n_texts ? 0 : -EBADMSG;
}

static int check(struct bundle *b)
{
	const struct manifest *m = &b->manifest;
	int r;

	r = read_members(b);
	if (r < 0)
		return r;
	if (!b->text.data)
		return -EBADMSG;
	r = manifest_read(b->text.data, b->text.size, &b->manifest);
	if (r < 0)
		return r;
	if (b->n_cpus != m->n_cpus || b->n_pevents != m->n_pevents)
		return -EBADMSG;
	for (size_t i = 0; i < m->n_cpus; i++) {
		const struct member *found = trace_of(b, i);

		if (!found->data || found->size != m->cpus[i].bytes)
			return -EBADMSG;
	}
	for (size_t i = 0; i < m->n_pevents; i++)
		if (!b->pevents[i].data || b->pevents[i].size != m->pevents[i].size)
			return -EBADMSG;
	r = check_images(b);
	if (r == 0)
		r = check_texts(b);
	if (r < 0)
		return r;
	/* Raw PT comes without sideband; a recorder always has some. */
	return b->sideband.data || strcmp(m->source, "raw") == 0 ? 0 : -EBADMSG;
}

static int map(struct bundle *b, int fd)
{
	struct stat st;
	void *p;

	/* Not fstat(3): glibc calls newfstatat, which a system call filter cannot tell from a look
	 * at a path. */
	if (syscall(SYS_fstat, fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -EBADMSG;
	if ((uint64_t)st.st_size > BUNDLE_MAX_BYTES)
		return -EFBIG;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	b->map = p;
	b->map_size = (size_t)st.st_size;
	return 0;
}

int bundle_open(int fd, struct bundle **ret)
{
	CLEANUP(bundle_freep) struct bundle *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	manifest_init(&b->manifest);
	r = map(b, fd);
	if (r == 0)
		r = check(b);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(b);
	return 0;
}

void bundle_free(struct bundle *b)
{
	if (!b)
		return;
	for (size_t i = 0; b->pieces && i < b->manifest.n_images; i++)
		free(b->pieces[i].list);
	free(b->pieces);
	manifest_done(&b->manifest);
	if (b->map)
		munmap((void *)(uintptr_t)b->map, b->map_size);
	free(b);
}

void bundle_freep(struct bundle **b)
{
	bundle_free(*b);
}

const struct manifest *bundle_manifest(const struct bundle *b)
{
	return &b->manifest;
}

static const uint8_t *bytes_of(const struct member *m, size_t *ret_size)
{
	*ret_size = m->size;
	return m->data;
}

const uint8_t *bundle_cpu(const struct bundle *b, size_t index, size_t *ret_size)
{
	static const struct member none, nothing = {.data = (const uint8_t *)""};
	const struct member *m = index < b->manifest.n_cpus ? trace_of(b, index) : &none;

	/* A caller may compute with the address of no bytes. */
	return bytes_of(m != &none && !m->data ? &nothing : m, ret_size);
}

const uint8_t *bundle_sideband(const struct bundle *b, size_t *ret_size)
{
	return bytes_of(&b->sideband, ret_size);
}

const uint8_t *bundle_image(const struct bundle *b, size_t index, size_t *ret_size)
{
	static const struct member none;

	return bytes_of(index < MANIFEST_MAX_IMAGES ? &b->images[index] : &none, ret_size);
}

const uint8_t *bundle_pevent(const struct bundle *b, size_t index, size_t *ret_size)
{
	static const struct member none;

	return bytes_of(index < MANIFEST_MAX_PEVENTS ? &b->pevents[index] : &none, ret_size);
}

const uint8_t *bundle_text(const struct bundle *b, size_t index, size_t *ret_size)
{
	static const struct member none;

	return bytes_of(index < MANIFEST_MAX_TEXTS ? &b->texts[index] : &none, ret_size);
}

const struct manifest_piece *bundle_image_pieces(const struct bundle *b, size_t index,
						 size_t *ret_n)
{
	const struct pieces *p = index < b->manifest.n_images ? &b->pieces[index] : NULL;

	*ret_n = p ? p->n : 0;
	if (!p || p->n == 0)
		return NULL;
	return p->list ? p->list : &p->one;
}
