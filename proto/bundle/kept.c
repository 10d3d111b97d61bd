/*
 * Reads and writes the list of image bytes that a stored bundle needs.
 */
#include "proto/bundle/kept.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

void kept_init(struct kept *k)
{
	*k = (struct kept){0};
}

void kept_done(struct kept *k)
{
	for (size_t i = 0; i < k->n; i++) {
		free(k->images[i].name);
		free(k->images[i].pieces);
	}
	free(k->images);
	*k = (struct kept){0};
}

/* Checks and adds an image. NAME and PIECES are taken over, also on failure. */
static int add(struct kept *k, uint32_t index, char *name, uint64_t file_size,
	       struct manifest_piece *pieces, size_t n)
{
	size_t length = strspn(name, "0123456789abcdefghijklmnopqrstuvwxyz.-");
	bool valid = length > 0 && length <= KEPT_NAME_MAX && !name[length] && name[0] != '.' &&
		     index < MANIFEST_MAX_IMAGES && file_size <= INT64_MAX &&
		     (k->n == 0 || index > k->images[k->n - 1].index);
	uint64_t end = 0;
	int r = -EINVAL;

	/* Pieces lie within the file, in order, with gaps between them. */
	for (size_t i = 0; i < n && valid; i++)
		valid = pieces[i].size > 0 && (i == 0 || pieces[i].offset > end) &&
			!__builtin_add_overflow(pieces[i].offset, pieces[i].size, &end) &&
			end <= file_size;
	if (valid)
		r = ARRAY_RESERVE(k->images, k->capacity, k->n + 1);
	if (r < 0) {
		free(name);
		free(pieces);
		return r;
	}
	k->images[k->n++] = (struct kept_image){.index = index,
						.name = name,
						.file_size = file_size,
						.pieces = pieces,
						.n_pieces = n};
	return 0;
}

int kept_add(struct kept *k, uint32_t index, const char *name, uint64_t file_size,
	     const struct manifest_piece *pieces, size_t n)
{
	CLEANUP_FREE char *name_copy = strdup(name);
	CLEANUP_FREE struct manifest_piece *copy = NULL;

	if (n > MANIFEST_MAX_PIECES)
		return -E2BIG;
	copy = calloc(n + 1, sizeof(*copy));
	if (!name_copy || !copy)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		copy[i] = pieces[i];
	return add(k, index, TAKE_PTR(name_copy), file_size, TAKE_PTR(copy), n);
}

const struct kept_image *kept_find(const struct kept *k, uint32_t index)
{
	size_t lo = FIRST_WHERE(i, k->n, k->images[i].index >= index);

	return lo < k->n && k->images[lo].index == index ? &k->images[lo] : NULL;
}

static int write_image(const struct kept_image *image, struct bytes_out *out)
{
	CLEANUP_FREE char *pieces = NULL;
	char head[32 + KEPT_NAME_MAX + 32];
	int n, r = manifest_pieces_format(image->pieces, image->n_pieces, &pieces);

	if (r < 0)
		return r;
	n = snprintf(head, sizeof(head), "%" PRIu32 " %s %" PRIu64 " ", image->index, image->name,
		     image->file_size);
	bytes_put_block(out, head, (size_t)n);
	if (image->n_pieces == 0)
		bytes_put_block(out, "-", 1);
	bytes_put_block(out, pieces, strlen(pieces));
	bytes_put_block(out, "\n", 1);
	return out->error;
}

int kept_write(const struct kept *k, struct bytes_out *out)
{
	int r = 0;

	for (size_t i = 0; i < k->n && r == 0; i++)
		r = write_image(&k->images[i], out);
	return r;
}

/* Parses TEXT as a decimal number without leading zeros. */
static bool parse_number(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (!*text || (text[0] == '0' && text[1]))
		return false;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (unsigned)(*text - '0'), &v))
			return false;
	*ret = v;
	return !*text && v <= max;
}

/* Takes the word at *S up to the character BEHIND, which becomes a NUL. NULL: there is no word. */
static char *take_word(char **s, char behind)
{
	char *word = *s, *end = strchr(word, behind);

	if (!end)
		return NULL;
	*end = '\0';
	*s = end + 1;
	return word;
}

static int read_line(char *line, struct kept *k)
{
	char *index = take_word(&line, ' ');
	char *name = index ? take_word(&line, ' ') : NULL;
	char *size = name ? take_word(&line, ' ') : NULL;
	char *copy;
	struct manifest_piece *pieces = NULL;
	uint64_t number, file_size;
	size_t n = 0;
	int r = 0;

	if (!size || !parse_number(index, MANIFEST_MAX_IMAGES - 1, &number) ||
	    !parse_number(size, INT64_MAX, &file_size))
		return -EBADMSG;
	if (strcmp(line, "-") != 0)
		r = manifest_pieces_parse(line, &pieces, &n);
	if (r < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	copy = strdup(name);
	if (!copy) {
		free(pieces);
		return -ENOMEM;
	}
	r = add(k, (uint32_t)number, copy, file_size, pieces, n);
	return r == -EINVAL ? -EBADMSG : r;
}

int kept_read(const void *text, size_t size, struct kept *k)
{
	CLEANUP_FREE char *copy = NULL;
	char *at, *line;
	int r = 0;

	assert(k->n == 0);
	if (size > KEPT_MAX_TEXT || (size > 0 && memchr(text, 0, size)))
		return -EBADMSG;
	copy = malloc(size + 1);
	if (!copy)
		return -ENOMEM;
	if (size > 0)
		memcpy(copy, text, size);
	copy[size] = '\0';
	for (at = copy; *at && r == 0;) {
		line = take_word(&at, '\n');
		r = line ? read_line(line, k) : -EBADMSG;
	}
	if (r < 0)
		kept_done(k);
	return r;
}
