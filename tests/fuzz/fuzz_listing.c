/*
 * Fuzzes execution streams: ctl/listing reads the lines behind the first two bytes. The first byte
 * chooses the slice, the second how many of the last lines are kept.
 * Invariants: a line that is handed on has an origin, an instruction has a place, and places have
 * functions that exist.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "ctl/listing/listing.h"
#include "proto/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void choose(struct slice *s, uint8_t bits)
{
	static const char *const values[SLICE_OPTIONS] = {"1us", "-1us", "1",	   "100",
							  "101", "t*",	 "[a-m]*", "/*"};

	for (size_t i = 0; i < SLICE_OPTIONS; i++)
		if (bits >> i & 1)
			assert(slice_option_take(s, i, values[i]) == 0);
}

struct reading {
	const struct listing *listing;
	size_t text; /* bytes of all texts: they can be read */
};

static void look(struct reading *r, const struct listing_place *place)
{
	const struct listing_function *f;

	if (!place)
		return;
	f = listing_function(r->listing, place);
	r->text += strlen(place->bytes) + strlen(place->text) + strlen(place->file);
	if (f)
		r->text += strlen(f->name) + strlen(f->image);
}

static int take(void *userdata, const struct listing_line *line)
{
	struct reading *r = userdata;

	assert(line->origin);
	assert(line->kind != EXECSTREAM_INSN || line->from);
	assert((line->kind == EXECSTREAM_GAP) == (line->gap != NULL));
	r->text += strlen(line->origin->comm);
	look(r, line->from);
	look(r, line->to);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	CLEANUP(listing_freep) struct listing *l = NULL;
	CLEANUP_FREE char *text = NULL;
	struct reading reading = {0};
	struct slice slice = {0};
	int r = 0;

	if (size < 2 || memchr(bytes + 2, '\0', size - 2))
		return 0;
	choose(&slice, bytes[0]);
	text = strndup((const char *)bytes + 2, size - 2);
	assert(text);
	assert(listing_new(&slice, bytes[1], take, &reading, &l) == 0);
	reading.listing = l;
	for (char *line = text, *next; line && r == 0; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		/* Behind the last line is nothing. */
		if (*line == '\0' && !next)
			break;
		r = listing_take(l, line);
	}
	assert(r == 0 || r == -EBADMSG || r == -EINVAL);
	if (r == 0)
		r = listing_finish(l, false);
	assert(r == 0 || r == -EBADMSG || r == -EINVAL);
	return 0;
}
