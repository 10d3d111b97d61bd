/*
 * Pieces of an image: text <-> list, and what makes a list of any ranges. Called where bundles are
 * read and written and by the recorder's image cache; the text may be anybody's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"

/* "0x" and up to 16 lower-case digits without leading zeros. */
static bool take_hex(const char **s, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	const char *first;
	uint64_t v = 0;

	if (strncmp(*s, "0x", 2) != 0)
		return false;
	*s += 2;
	for (first = *s; **s && strchr(digits, **s); (*s)++) {
		if (*s - first == 16)
			return false;
		v = v << 4 | (uint64_t)(strchr(digits, **s) - digits);
	}
	*ret = v;
	return *s > first && (*first != '0' || *s == first + 1);
}

/* One piece that begins behind END, with a gap between unless it is the first. */
static bool take_piece(const char **s, bool first, uint64_t *end, struct manifest_piece *ret)
{
	if (!take_hex(s, &ret->offset) || *(*s)++ != '+' || !take_hex(s, &ret->size))
		return false;
	if (ret->size == 0 || (!first && ret->offset <= *end))
		return false;
	return !__builtin_add_overflow(ret->offset, ret->size, end) && *end <= INT64_MAX;
}

static size_t count_pieces(const char *text)
{
	size_t n = 1;

	for (; *text; text++)
		n += *text == ',';
	return n;
}

int manifest_pieces_parse(const char *text, struct manifest_piece **ret, size_t *ret_n)
{
	CLEANUP_FREE struct manifest_piece *pieces = NULL;
	size_t i, n = count_pieces(text);
	uint64_t end = 0;

	if (n > MANIFEST_MAX_PIECES)
		return -E2BIG;
	pieces = calloc(n, sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		if (!take_piece(&text, i == 0, &end, &pieces[i]) ||
		    *text++ != (i + 1 < n ? ',' : '\0'))
			return -EBADMSG;
	*ret = TAKE_PTR(pieces);
	*ret_n = n;
	return 0;
}

/* ",0x" and "+0x" with 16 digits each. */
#define PIECE_TEXT 38u

int manifest_pieces_format(const struct manifest_piece *pieces, size_t n, char **ret)
{
	char *text = malloc(n * PIECE_TEXT + 1);
	size_t used = 0;

	if (!text)
		return -ENOMEM;
	text[0] = '\0';
	for (size_t i = 0; i < n; i++)
		used += (size_t)snprintf(text + used, PIECE_TEXT + 1, "%s0x%" PRIx64 "+0x%" PRIx64,
					 i > 0 ? "," : "", pieces[i].offset, pieces[i].size);
	*ret = text;
	return 0;
}

static int by_offset(const void *a, const void *b)
{
	const struct manifest_piece *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static bool is_sound(const struct manifest_piece *p)
{
	uint64_t end;

	return p->size > 0 && !__builtin_add_overflow(p->offset, p->size, &end) && end <= INT64_MAX;
}

size_t manifest_pieces_join(struct manifest_piece *pieces, size_t n)
{
	struct manifest_piece *last;
	size_t sound = 0, kept = 0;

	for (size_t i = 0; i < n; i++)
		if (is_sound(&pieces[i]))
			pieces[sound++] = pieces[i];
	if (sound == 0)
		return 0;
	qsort(pieces, sound, sizeof(*pieces), by_offset);
	for (size_t i = 1; i < sound; i++) {
		last = &pieces[kept];
		if (pieces[i].offset > last->offset + last->size)
			pieces[++kept] = pieces[i];
		else
			last->size = MAX_OF(last->offset + last->size,
					    pieces[i].offset + pieces[i].size) -
				     last->offset;
	}
	return kept + 1;
}
