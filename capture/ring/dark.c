/*
 * The bounded list of the spans in which a CPU was not traced.
 */
#include "capture/ring/dark.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"

static struct dark_span *at(struct dark *d, size_t index)
{
	return &d->spans[(d->first + index) % DARK_SPANS];
}

const struct dark_span *dark_at(const struct dark *d, size_t index)
{
	assert(index < d->n);
	return &d->spans[(d->first + index) % DARK_SPANS];
}

const struct dark_span *dark_open(const struct dark *d)
{
	const struct dark_span *last = d->n > 0 ? dark_at(d, d->n - 1) : NULL;

	return last && last->open ? last : NULL;
}

/* Only the newest span can be open, and DARK_SPANS is more than one. */
static void forget_oldest(struct dark *d)
{
	const struct dark_span *oldest = dark_at(d, 0);

	d->forgotten++;
	d->forgotten_until_ns = oldest->until_ns;
	d->first = (d->first + 1) % DARK_SPANS;
	d->n--;
}

void dark_begin(struct dark *d, const char *kind, const char *why, uint64_t ns)
{
	const struct dark_span *open = dark_open(d);
	struct dark_span *span;

	if (open && strcmp(open->kind, kind) == 0)
		return;
	/* A span that has just begun gets the better reason. */
	if (open && open->since_ns == ns)
		d->n--;
	else
		dark_end(d, ns);
	if (d->n == DARK_SPANS)
		forget_oldest(d);
	span = at(d, d->n++);
	*span = (struct dark_span){
		.kind = kind, .open = true, .since_ns = ns, .until_ns = MANIFEST_ABSENT};
	snprintf(span->why, sizeof(span->why), "%s", why ? why : "");
}

void dark_end(struct dark *d, uint64_t ns)
{
	struct dark_span *span;

	if (!dark_open(d))
		return;
	span = at(d, d->n - 1);
	span->open = false;
	span->until_ns = ns;
	d->count++;
	if (ns == MANIFEST_ABSENT || span->since_ns == MANIFEST_ABSENT)
		return;
	/* The beginning may be the kernel's time, and the end ours. */
	span->until_ns = MAX_OF(ns, span->since_ns);
	d->total_ns += span->until_ns - span->since_ns;
}

void dark_add(struct dark *d, const char *kind, const char *why, uint64_t since_ns,
	      uint64_t until_ns)
{
	assert(!dark_open(d));
	dark_begin(d, kind, why, since_ns);
	dark_end(d, until_ns);
}
