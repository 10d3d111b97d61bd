/*
 * Reduces an input that shows a difference: removes bytes of the trace, first many at once, then
 * few; then removes unneeded code.
 */
#include <string.h>

#include "proto/base.h"
#include "tests/oracle/diff_input.h"

struct reduction {
	bool (*same)(void *userdata, const struct diff_input *in);
	void *userdata;
};

static bool without_bytes(struct diff_input *in, size_t at, size_t n, const struct reduction *how)
{
	static uint8_t before[DIFF_TRACE_MAX];
	size_t size = in->size;

	memcpy(before, in->trace, size);
	memmove(in->trace + at, in->trace + at + n, size - at - n);
	in->size = size - n;
	if (how->same(how->userdata, in))
		return true;
	memcpy(in->trace, before, size);
	in->size = size;
	return false;
}

static void reduce_trace(struct diff_input *in, const struct reduction *how)
{
	for (size_t n = MAX_OF(in->size / 2, (size_t)1); n > 0; n /= 2)
		for (size_t end = in->size; end >= n && in->size > n; end -= MIN_OF(n, end)) {
			size_t at = MIN_OF(end, in->size) - n;

			if (MIN_OF(end, in->size) >= n)
				without_bytes(in, at, n, how);
		}
}

static bool without_pieces(struct diff_input *in, size_t at, size_t n, const struct reduction *how)
{
	static struct diff_piece before[DIFF_PIECES_MAX];
	size_t count = in->n_pieces;

	memcpy(before, in->pieces, count * sizeof(before[0]));
	memmove(in->pieces + at, in->pieces + at + n, (count - at - n) * sizeof(before[0]));
	in->n_pieces = count - n;
	if (how->same(how->userdata, in))
		return true;
	memcpy(in->pieces, before, count * sizeof(before[0]));
	in->n_pieces = count;
	return false;
}

static void reduce_pieces(struct diff_input *in, const struct reduction *how)
{
	for (size_t n = MAX_OF(in->n_pieces / 2, (size_t)1); n > 0; n /= 2)
		for (size_t at = 0; at + n <= in->n_pieces;)
			if (!without_pieces(in, at, n, how))
				at += n;
}

/* Removes N bytes at the beginning or the end of P. */
static bool shorten(struct diff_input *in, struct diff_piece *p, size_t n, bool front,
		    const struct reduction *how)
{
	struct diff_piece before = *p;

	if (p->size <= n)
		return false;
	p->size -= n;
	if (front) {
		p->address += n;
		p->bytes += n;
	}
	if (how->same(how->userdata, in))
		return true;
	*p = before;
	return false;
}

static void reduce_code(struct diff_input *in, const struct reduction *how)
{
	for (size_t i = 0; i < in->n_pieces; i++)
		for (size_t n = in->pieces[i].size / 2; n > 0; n /= 2) {
			while (shorten(in, &in->pieces[i], n, true, how))
				;
			while (shorten(in, &in->pieces[i], n, false, how))
				;
		}
}

void diff_reduce(struct diff_input *in, bool (*same)(void *userdata, const struct diff_input *in),
		 void *userdata)
{
	const struct reduction how = {same, userdata};
	size_t before;

	do {
		before = in->size;
		reduce_trace(in, &how);
		reduce_pieces(in, &how);
		reduce_code(in, &how);
	} while (in->size < before);
}
