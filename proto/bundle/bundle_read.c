/*
 * A bundle mapped and checked, once, before anybody sees a pointer into it: every member lies
 * within the file, has a name that we know, appears once, and is what the manifest says. Called by
 * the worker, before and within its sandbox; the bytes may come from anybody.
 *
 * A file that shrinks while it is mapped makes SIGBUS, of which the worker dies alone.
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

/* What tar adds behind the end with its usual blocking factor of 20. */
#define MAX_TRAILING (20u * BUNDLE_BLOCK)

struct member {
	const uint8_t *data; /* into the mapping; NULL: not in the bundle */
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
	struct pieces *pieces; /* as many as the manifest has images */
};

struct pieces {
	struct manifest_piece *list; /* owned; NULL: ONE */
	size_t n;
	struct manifest_piece one;
};

/* A number without leading zeros, up to LIMIT; *s moves behind it. */
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

static bool take_text(const char **s, const char *text)
{
	size_t size = strlen(text);

	if (strncmp(*s, text, size) != 0)
		return false;
	*s += size;
	return true;
}

/* Where the member of that name belongs; NULL: not ours. */
static struct member *find_slot(struct bundle *b, const char *name)
{
	size_t i;

	if (strcmp(name, BUNDLE_MANIFEST_NAME) == 0)
		return &b->text;
	if (strcmp(name, BUNDLE_SIDEBAND_NAME) == 0)
		return &b->sideband;
	if (take_text(&name, "cpu"))
		return take_number(&name, MANIFEST_MAX_CPUS, &i) && strcmp(name, ".pt") == 0
			       ? &b->cpus[i]
			       : NULL;
	if (take_text(&name, "trace/"))
		return take_number(&name, MANIFEST_MAX_CPUS, &i) && !*name ? &b->traces[i] : NULL;
	if (take_text(&name, "pevent/"))
		return take_number(&name, MANIFEST_MAX_PEVENTS, &i) && !*name ? &b->pevents[i]
									      : NULL;
	if (take_text(&name, "texts/"))
		return take_number(&name, MANIFEST_MAX_TEXTS, &i) && !*name ? &b->texts[i] : NULL;
	if (take_text(&name, "images/") && take_number(&name, MANIFEST_MAX_IMAGES, &i) && !*name)
		return &b->images[i];
	return NULL;
}

static void count_member(struct bundle *b, const struct member *slot)
{
	b->n_cpus += slot >= b->cpus && slot < b->cpus + MANIFEST_MAX_CPUS;
	b->n_cpus += slot >= b->traces && slot < b->traces + MANIFEST_MAX_CPUS;
	b->n_images += slot >= b->images && slot < b->images + MANIFEST_MAX_IMAGES;
	b->n_pevents += slot >= b->pevents && slot < b->pevents + MANIFEST_MAX_PEVENTS;
	b->n_texts += slot >= b->texts && slot < b->texts + MANIFEST_MAX_TEXTS;
}

/* The member whose header is at *AT, which moves to the next. */
static int read_member(struct bundle *b, size_t *at)
{
	const uint8_t *header = b->map + *at;
	size_t left = b->map_size - *at - BUNDLE_BLOCK;
	char name[BUNDLE_NAME_MAX + 1];
	struct member *slot;
	uint64_t size;
	int r;

	r = bundle_tar_parse(header, name, &size);
	if (r != 0)
		return r;
	if (size > left || bundle_tar_padding(size) > left - size)
		return -EBADMSG;
	slot = find_slot(b, name);
	if (!slot || slot->data)
		return -EBADMSG;
	*slot = (struct member){header + BUNDLE_BLOCK, (size_t)size};
	count_member(b, slot);
	*at += BUNDLE_BLOCK + (size_t)size + bundle_tar_padding(size);
	return 0;
}

static int check_end(const struct bundle *b, size_t at)
{
	if (b->map_size - at < 2 * BUNDLE_BLOCK ||
	    b->map_size - at > MAX_TRAILING + 2 * BUNDLE_BLOCK)
		return -EBADMSG;
	for (; at < b->map_size; at++)
		if (b->map[at] != 0)
			return -EBADMSG;
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
	return r == BUNDLE_TAR_ZERO ? check_end(b, at) : r;
}

/* The trace of the manifest's cpus[INDEX]; without data: there is none. */
static const struct member *trace_of(const struct bundle *b, size_t index)
{
	uint32_t cpu = b->manifest.cpus[index].cpu;

	if (cpu == MANIFEST_ANY || b->traces[index].data)
		return &b->traces[index];
	return &b->cpus[cpu];
}

static int check_cpus(const struct bundle *b)
{
	const struct manifest *m = &b->manifest;

	if (b->n_cpus != m->n_cpus)
		return -EBADMSG;
	for (size_t i = 0; i < m->n_cpus; i++) {
		const struct member *found = trace_of(b, i);

		if (!found->data || found->size != m->cpus[i].bytes)
			return -EBADMSG;
	}
	return 0;
}

/* The pieces of an image, which are as large together as its member, within a file of its size. */
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
		sum += p->list[i].size; /* each ends below 2^63, behind the one before */
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
		n += found->data != NULL;
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

		if (!found->data != (m->texts[i].missing != NULL) ||
		    found->size != m->texts[i].size)
			return -EBADMSG;
		n += found->data != NULL;
	}
	return n == b->n_texts ? 0 : -EBADMSG;
}

static int check_pevents(const struct bundle *b)
{
	const struct manifest *m = &b->manifest;

	if (b->n_pevents != m->n_pevents)
		return -EBADMSG;
	for (size_t i = 0; i < m->n_pevents; i++)
		if (!b->pevents[i].data || b->pevents[i].size != m->pevents[i].size)
			return -EBADMSG;
	return 0;
}

/* Raw PT comes without sideband; a recorder always has some. */
static int check_sideband(const struct bundle *b)
{
	return b->sideband.data || strcmp(b->manifest.source, "raw") == 0 ? 0 : -EBADMSG;
}

static int check(struct bundle *b)
{
	int r;

	r = read_members(b);
	if (r < 0)
		return r;
	if (!b->text.data)
		return -EBADMSG;
	r = manifest_read(b->text.data, b->text.size, &b->manifest);
	if (r < 0)
		return r;
	r = check_cpus(b);
	if (r == 0)
		r = check_images(b);
	if (r == 0)
		r = check_pevents(b);
	if (r == 0)
		r = check_texts(b);
	if (r == 0)
		r = check_sideband(b);
	return r;
}

static int map(struct bundle *b, int fd)
{
	struct stat st;
	void *p;

	/* Not fstat(): glibc asks by newfstatat, which no filter of system calls can tell from a
	 * look at a path. */
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

static const uint8_t *give(const struct member *m, size_t *ret_size)
{
	*ret_size = m->size;
	return m->data;
}

const uint8_t *bundle_cpu(const struct bundle *b, size_t index, size_t *ret_size)
{
	static const struct member none, nothing = {.data = (const uint8_t *)""};
	const struct member *m = index < b->manifest.n_cpus ? trace_of(b, index) : &none;

	/* Who reads none of it may still reckon with its address. */
	return give(m != &none && m->data == NULL ? &nothing : m, ret_size);
}

const uint8_t *bundle_sideband(const struct bundle *b, size_t *ret_size)
{
	return give(&b->sideband, ret_size);
}

const uint8_t *bundle_image(const struct bundle *b, size_t index, size_t *ret_size)
{
	static const struct member none;

	return give(index < MANIFEST_MAX_IMAGES ? &b->images[index] : &none, ret_size);
}

const uint8_t *bundle_pevent(const struct bundle *b, size_t index, size_t *ret_size)
{
	static const struct member none;

	return give(index < MANIFEST_MAX_PEVENTS ? &b->pevents[index] : &none, ret_size);
}

const uint8_t *bundle_text(const struct bundle *b, size_t index, size_t *ret_size)
{
	static const struct member none;

	return give(index < MANIFEST_MAX_TEXTS ? &b->texts[index] : &none, ret_size);
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
