/*
 * Functions that the compiler inlined around a call: frames without branches of their own.
 *
 * DWARF tells which inlined functions lie around a call instruction. Such a frame has no begin and
 * no end in the trace. The stream shows it around the call alone: as long as the call it is known
 * to be there, and nothing says how long it was there before and after.
 */
#include "decoder/worker/calltree/calltree_private.h"

#include <stdio.h>
#include <stdlib.h>

#include "sideband/dwarf/dwarf.h"
#include "sideband/symbols/symbols.h"

/* A call instruction, by its place in a file. */
struct calltree_site {
	uint64_t offset;
	uint32_t image;
	uint32_t first; /* number in the stream of the outermost function; N further in follow */
	uint8_t n;
	bool used;
};

static struct calltree_site *find_slot(const struct calltree *c, uint32_t image, uint64_t offset)
{
	const size_t mask = c->n_site_slots - 1;
	size_t i = (size_t)((offset ^ (uint64_t)image << 48) * 0x9e3779b97f4a7c15ull >> 32) & mask;

	while (c->sites[i].used && (c->sites[i].image != image || c->sites[i].offset != offset))
		i = (i + 1) & mask;
	return &c->sites[i];
}

static int grow(struct calltree *c)
{
	const size_t n = c->n_site_slots;
	struct calltree_site *old = c->sites, *sites;

	sites = calloc(n ? 2 * n : 256, sizeof(*sites));
	if (!sites)
		return -ENOMEM;
	c->sites = sites;
	c->n_site_slots = n ? 2 * n : 256;
	for (size_t i = 0; i < n; i++)
		if (old[i].used)
			*find_slot(c, old[i].image, old[i].offset) = old[i];
	free(old);
	return 0;
}

/* Defines FRAME as a function of its own, which no call can be taken for. */
static int define(struct calltree *c, const struct dwarf_frame *frame, const char *image,
		  uint64_t address)
{
	CLEANUP_FREE char *source = frame->function ? demangle(frame->function) : NULL;
	CLEANUP_FREE char *name = NULL;
	const char *plain = frame->function ? frame->function : "?";

	if (asprintf(&name, "%s (inlined)", source ? source : plain) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	calltree_put(c, &(struct callstream_item){.kind = CALLSTREAM_FUNCTION,
						  .function = (uint32_t)++c->functions_defined,
						  .address = address,
						  .name = name,
						  .image = image,
						  .file = frame->file ? frame->file : "",
						  .line = frame->file ? frame->line : 0});
	return 0;
}

static int look_up(struct calltree *c, struct calltree_site *site, uint64_t address)
{
	const struct manifest *m = c->replay->manifest;
	const char *path = site->image < m->n_images ? m->images[site->image].path : NULL;
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	size_t n = symbols_lines(c->replay->symbols, site->image, site->offset, frames,
				 DWARF_MAX_FRAMES);
	int r = 0;

	site->first = (uint32_t)c->functions_defined + 1;
	/* The outermost one is the function that is on the stack itself. */
	for (size_t i = n > 0 ? n - 1 : 0; i-- > 0 && r == 0; site->n++)
		r = define(c, &frames[i], path ? path : "", address);
	return r;
}

int calltree_inlined(struct calltree *c, uint32_t context, uint64_t from, uint32_t *ret_first,
		     unsigned *ret_n)
{
	struct functions_span span;
	const struct function *f;
	struct calltree_site *site;
	uint64_t offset;
	int r;

	*ret_n = 0;
	if (!c->options->lines || c->options->no_symbols || from == 0)
		return 0;
	r = functions_find(&c->tally->functions, context, from, &span);
	if (r < 0)
		return r;
	f = &c->tally->functions.list[span.function];
	if (span.function == 0 || f->offset == FUNCTIONS_WHOLE_IMAGE || from < span.entry)
		return 0;
	offset = f->offset + (from - span.entry);
	if (2 * c->n_sites >= c->n_site_slots && grow(c) < 0)
		return -ENOMEM;
	site = find_slot(c, f->image, offset);
	if (!site->used) {
		*site = (struct calltree_site){.used = true, .image = f->image, .offset = offset};
		c->n_sites++;
		r = look_up(c, site,
			    f->file_address ? f->file_address + (from - span.entry) : from);
	}
	*ret_first = site->first;
	*ret_n = site->n;
	return r;
}
