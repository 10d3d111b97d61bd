/*
 * Mutates a bundle for libFuzzer: changes bytes of one member, which may grow or shrink, then
 * repairs the tar headers and the sizes in the manifest, so that most inputs pass the reader's
 * checks of the archive. Linked into targets that take a bundle, only in the libFuzzer build. A
 * target whose inputs are more than a bundle has a mutator of its own (request_mutator.c), which
 * calls bundle_mutate().
 */
#include "tests/fuzz/bundle_mutator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "proto/bundle/bundle_tar.h"

#define MEMBERS_MAX 32u
/* Images of more than 64 KiB, of which all parts can be changed. */
#define ROOM 1048576u

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

struct member {
	char name[BUNDLE_NAME_MAX + 1];
	uint8_t bytes[ROOM];
	size_t size;
};

struct archive {
	struct member members[MEMBERS_MAX];
	size_t n;
};

static struct archive archive;

/* The members of the bundle that could be parsed. */
static void take_apart(struct archive *a, const uint8_t *data, size_t size)
{
	size_t at = 0;

	a->n = 0;
	while (a->n < MEMBERS_MAX && size - at >= BUNDLE_BLOCK) {
		struct member *m = &a->members[a->n];
		uint64_t n;

		if (bundle_tar_parse(data + at, m->name, &n) != 0)
			return;
		at += BUNDLE_BLOCK;
		if (n > ROOM || n > size - at)
			return;
		m->size = (size_t)n;
		memcpy(m->bytes, data + at, m->size);
		at += MIN_OF(size - at, m->size + bundle_tar_padding(n));
		a->n++;
	}
}

/* 0: the result would not fit. */
static size_t put_together(const struct archive *a, uint8_t *data, size_t max_size)
{
	size_t at = 0;

	for (size_t i = 0; i < a->n; i++) {
		const struct member *m = &a->members[i];
		size_t padding = bundle_tar_padding(m->size);

		if (max_size - at < 3 * BUNDLE_BLOCK + m->size + padding)
			return 0;
		bundle_tar_compose(m->name, m->size, data + at);
		memcpy(data + at + BUNDLE_BLOCK, m->bytes, m->size);
		memset(data + at + BUNDLE_BLOCK + m->size, 0, padding);
		at += BUNDLE_BLOCK + m->size + padding;
	}
	if (max_size - at < 2 * BUNDLE_BLOCK)
		return 0;
	memset(data + at, 0, 2 * BUNDLE_BLOCK);
	return at + 2 * BUNDLE_BLOCK;
}

static struct member *find_member(struct archive *a, const char *name)
{
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->members[i].name, name) == 0)
			return &a->members[i];
	return NULL;
}

/* Sets the INDEXth "bytes" of LIST in the manifest to SIZE. */
static void set_size(struct archive *a, const char *list, size_t index, size_t size)
{
	static char text[ROOM + 1];
	struct member *m = find_member(a, "manifest.json");
	char *at, *end;

	if (m == NULL)
		return;
	memcpy(text, m->bytes, m->size);
	text[m->size] = '\0';
	at = strstr(text, list);
	for (size_t i = 0; at != NULL && i <= index; i++)
		at = strstr(at + 1, "\"bytes\": ");
	if (at == NULL)
		return;
	at += strlen("\"bytes\": ");
	end = at + strspn(at, "0123456789");
	m->size = (size_t)snprintf((char *)m->bytes, ROOM, "%.*s%zu%s", (int)(at - text), text,
				   size, end);
	m->size = MIN_OF(m->size, (size_t)ROOM - 1);
}

static void tell_size(struct archive *a, const struct member *m)
{
	unsigned int index;

	if (sscanf(m->name, "cpu%u.pt", &index) == 1)
		set_size(a, "\"cpus\":", index, m->size);
	else if (sscanf(m->name, "images/%u", &index) == 1)
		set_size(a, "\"images\":", index, m->size);
}

size_t bundle_mutate(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	struct member *m;
	size_t n;

	take_apart(&archive, data, size);
	/* Sometimes mutate the archive itself. */
	if (archive.n == 0 || seed % 16 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	m = &archive.members[seed / 16 % archive.n];
	m->size = LLVMFuzzerMutate(m->bytes, m->size, ROOM / 2);
	if (seed / 512 % 8 != 0)
		tell_size(&archive, m);
	n = put_together(&archive, data, max_size);
	return n != 0 ? n : size;
}

__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
						     unsigned int seed)
{
	return bundle_mutate(data, size, max_size, seed);
}
