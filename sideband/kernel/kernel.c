/*
 * Finds what lies where in the kernel: pieces of images, sites that change, and masked ranges.
 */
#include "sideband/kernel/kernel.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"
#include "sideband/kernel/kernel_private.h"

int kernel_new(struct image_set *images, struct kernel **ret)
{
	struct kernel *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	k->images = images;
	*ret = k;
	return 0;
}

void kernel_free(struct kernel *k)
{
	if (!k)
		return;
	kernel_free_sites(k);
	for (size_t i = 0; i < k->n_texts; i++)
		free(k->texts[i]);
	free(k->texts);
	free(k->names);
	free(k->changes);
	free(k->masked);
	free(k->pieces);
	free(k);
}

static bool is_range(uint64_t address, uint64_t size)
{
	uint64_t end;

	return size > 0 && !__builtin_add_overflow(address, size, &end);
}

int kernel_add_piece(struct kernel *k, const struct kernel_piece *piece)
{
	assert(!k->ready);
	if (!is_range(piece->address, piece->size) || !is_range(piece->offset, piece->size)) {
		free(piece->bytes);
		return 0;
	}
	if (ARRAY_RESERVE(k->pieces, k->max_pieces, k->n_pieces + 1) < 0 ||
	    ARRAY_RESERVE(k->texts, k->max_texts, k->n_texts + 1) < 0)
		return -ENOMEM;
	k->pieces[k->n_pieces++] = *piece;
	if (piece->bytes)
		k->texts[k->n_texts++] = (char *)piece->bytes;
	return 0;
}

int kernel_add_masked(struct kernel *k, uint64_t address, uint64_t size)
{
	assert(!k->ready);
	if (!is_range(address, size))
		return 0;
	if (ARRAY_RESERVE(k->masked, k->max_masked, k->n_masked + 1) < 0)
		return -ENOMEM;
	k->masked[k->n_masked++] = (struct kernel_range){address, size};
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct kernel_piece *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static int by_begin(const void *a, const void *b)
{
	const struct kernel_range *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

int kernel_ready(struct kernel *k)
{
	size_t n = 0;

	assert(!k->ready);
	k->ready = true;
	if (k->n_pieces > 1)
		qsort(k->pieces, k->n_pieces, sizeof(*k->pieces), by_address);
	for (size_t i = 0; i < k->n_pieces; i++)
		if (n == 0 ||
		    k->pieces[i].address - k->pieces[n - 1].address >= k->pieces[n - 1].size)
			k->pieces[n++] = k->pieces[i];
	k->n_pieces = n;

	/* Masked ranges that touch become one. */
	if (k->n_masked > 1)
		qsort(k->masked, k->n_masked, sizeof(*k->masked), by_begin);
	n = 0;
	for (size_t i = 0; i < k->n_masked; i++) {
		const struct kernel_range *r = &k->masked[i];
		struct kernel_range *last = n > 0 ? &k->masked[n - 1] : NULL;

		if (!last || r->address - last->address > last->size)
			k->masked[n++] = *r;
		else
			last->size = MAX_OF(last->size, r->address - last->address + r->size);
	}
	k->n_masked = n;

	kernel_sort_names(k);
	return kernel_make_sites(k);
}

const struct kernel_piece *kernel_piece_at(const struct kernel *k, uint64_t address)
{
	size_t lo = FIRST_WHERE(i, k->n_pieces, k->pieces[i].address > address);

	if (lo == 0 || address - k->pieces[lo - 1].address >= k->pieces[lo - 1].size)
		return NULL;
	return &k->pieces[lo - 1];
}

size_t kernel_find_masked(const struct kernel *k, uint64_t address)
{
	return FIRST_WHERE(i, k->n_masked, k->masked[i].address + k->masked[i].size > address);
}

/* How many of SITE's changes were done at TIME. */
static uint32_t count_changes(const struct kernel *k, const struct kernel_site *site, uint64_t time)
{
	const struct kernel_change *changes = &k->changes[site->first];

	return (uint32_t)FIRST_WHERE(i, site->n, changes[i].time > time);
}

uint32_t kernel_version(const struct kernel *k, uint64_t address, uint64_t lo, uint64_t hi,
			uint32_t *ret_last)
{
	size_t at = kernel_find_site(k, address);
	const struct kernel_site *site = &k->sites[at];

	*ret_last = 0;
	if (at == k->n_sites || address < site->address)
		return 0;
	*ret_last = count_changes(k, site, MAX_OF(lo, hi)) + 1;
	return count_changes(k, site, lo) + 1;
}

/* The known bytes of SITE around ADDRESS. */
static int find_in_site(struct kernel *k, struct kernel_site *site, uint64_t address,
			uint32_t version, struct kernel_code *ret)
{
	const struct kernel_text *texts = kernel_texts_of(k, site), *text;
	const struct kernel_piece *piece = kernel_piece_at(k, address);
	uint64_t at = address - site->address, begin = at, end = at;

	if (!texts || version > site->n + 1)
		return KERNEL_UNRELIABLE;
	text = &texts[version - 1];
	if (text->states[at] != KERNEL_IS_KNOWN)
		return text->states[at] == KERNEL_IS_MISSING ? KERNEL_MISSING : KERNEL_UNRELIABLE;
	while (begin > 0 && text->states[begin - 1] == KERNEL_IS_KNOWN)
		begin--;
	while (end < site->size && text->states[end] == KERNEL_IS_KNOWN)
		end++;
	*ret = (struct kernel_code){.bytes = text->bytes + begin,
				    .address = site->address + begin,
				    .size = end - begin,
				    .ends = end == site->size,
				    .image = piece ? piece->image : UINT32_MAX};
	if (piece && ret->address >= piece->address)
		ret->offset = piece->offset + (ret->address - piece->address);
	return 0;
}

/* Cuts *RET, which never changes, down to what lies between its neighbours: SITE and MASKED are the
 * next site and the next masked range behind it. */
static void cut(const struct kernel *k, size_t site, size_t masked, struct kernel_code *ret)
{
	uint64_t begin = ret->address, end = ret->address + ret->size;

	if (site > 0)
		begin = MAX_OF(begin, k->sites[site - 1].address + k->sites[site - 1].size);
	if (masked > 0)
		begin = MAX_OF(begin, k->masked[masked - 1].address + k->masked[masked - 1].size);
	if (masked < k->n_masked)
		end = MIN_OF(end, k->masked[masked].address);
	if (site < k->n_sites && k->sites[site].address <= end) {
		end = k->sites[site].address;
		ret->ends = true;
	}
	if (ret->touched)
		ret->touched += (begin >> 12) - (ret->address >> 12);
	ret->bytes += begin - ret->address;
	ret->offset += begin - ret->address;
	ret->address = begin;
	ret->size = end - begin;
}

int kernel_piece_code(struct kernel *k, const struct kernel_piece *piece, uint64_t offset,
		      struct image_code *ret)
{
	if (!piece->bytes)
		return image_at(k->images, piece->image, offset, ret);
	*ret = (struct image_code){.bytes = piece->bytes,
				   .address = piece->offset,
				   .size = piece->size,
				   .image = piece->image,
				   .offset = piece->offset};
	return offset - piece->offset < piece->size ? 0 : IMAGE_SHORT;
}

static int find_in_piece(struct kernel *k, const struct kernel_piece *piece, uint64_t address,
			 struct kernel_code *ret)
{
	uint64_t offset = piece->offset + (address - piece->address), begin, end;
	struct image_code code;

	if (kernel_piece_code(k, piece, offset, &code) != 0)
		return KERNEL_MISSING;
	begin = MAX_OF(code.address, piece->offset);
	end = MIN_OF(code.address + code.size, piece->offset + piece->size);
	*ret = (struct kernel_code){.bytes = code.bytes + (begin - code.address),
				    .address = piece->address + (begin - piece->offset),
				    .size = end - begin,
				    .image = piece->image,
				    .offset = begin};
	/* Pages that were needed are noted by pages of the file. If the pages of the text are not
	 * pages of the file, all bytes are noted. */
	if (code.touched && ((piece->address - piece->offset) & 0xfff) == 0)
		ret->touched = code.touched + ((begin >> 12) - (code.address >> 12));
	else if (code.touched)
		image_need(k->images, piece->image, begin, end - begin);
	return 0;
}

int kernel_find(struct kernel *k, uint64_t address, uint32_t version, struct kernel_code *ret)
{
	size_t site = kernel_find_site(k, address), masked = kernel_find_masked(k, address);
	const struct kernel_piece *piece;
	int r;

	assert(k->ready);
	*ret = (struct kernel_code){0};
	if (site < k->n_sites && address >= k->sites[site].address) {
		if (version == 0)
			return KERNEL_UNRELIABLE;
		return find_in_site(k, &k->sites[site], address, version, ret);
	}
	if (masked < k->n_masked && address >= k->masked[masked].address)
		return KERNEL_UNRELIABLE;
	piece = kernel_piece_at(k, address);
	if (!piece)
		return KERNEL_MISSING;
	r = find_in_piece(k, piece, address, ret);
	if (r == 0)
		cut(k, site, masked, ret);
	return r;
}
