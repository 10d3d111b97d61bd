/*
 * Source lines and inlined functions at a file offset, by the image's own DWARF or by that of its
 * file apart, opened when the first line of an image is asked for. Part of symbols.c.
 */
#include "proto/base.h"
#include "sideband/dwarf/dwarf.h"
#include "sideband/elf/elf.h"
#include "sideband/symbols/symbols_private.h"

/* That of image number NUMBER, which may be a file apart: results as of dwarf_file_open(). */
static int open_of(struct symbols *s, uint32_t number, struct dwarf_file **ret)
{
	struct elf_bytes bytes;

	if (image_elf_bytes(s->images, number, &bytes) != 0)
		return DWARF_NONE;
	return dwarf_file_open_within(&bytes, &s->limits, ret);
}

void symbols_limit_lines(struct symbols *s, bool (*enough)(void *userdata), void *userdata)
{
	s->limits.enough = enough;
	s->limits.userdata = userdata;
}

static bool may_have_lines(const struct image_source *source)
{
	return !source->apart && (!source->memory || source->vdso);
}

static void open_dwarf(struct symbols *s, uint32_t image, struct symbols_image *o)
{
	int own, apart = DWARF_NONE;

	o->dwarf_state = SYMBOLS_DWARF_NONE;
	if (!may_have_lines(image_source(s->images, image)) || !symbols_open_image(s, image))
		return;
	own = open_of(s, image, &o->dwarf);
	if (own == 0) {
		o->dwarf_state = SYMBOLS_DWARF_OWN;
		return;
	}
	if (o->has_apart)
		apart = open_of(s, o->apart, &o->dwarf);
	if (apart == 0)
		o->dwarf_state = SYMBOLS_DWARF_APART;
	else if (own != DWARF_NONE || apart != DWARF_NONE) /* or no memory */
		o->dwarf_state = SYMBOLS_DWARF_LARGE;
}

size_t symbols_lines(struct symbols *s, uint32_t image, uint64_t offset, struct dwarf_frame *ret,
		     size_t max)
{
	struct symbols_image *o;
	uint64_t address;

	if (image >= s->n || s->left_out)
		return 0;
	o = &s->opened[image];
	if (o->dwarf_state == SYMBOLS_DWARF_UNASKED)
		open_dwarf(s, image, o);
	if (!o->dwarf || !elf_file_address(o->elf, offset, &address))
		return 0;
	return dwarf_file_find(o->dwarf, address, ret, max);
}

enum symbols_dwarf symbols_dwarf(const struct symbols *s, uint32_t image)
{
	return image < s->n ? s->opened[image].dwarf_state : SYMBOLS_DWARF_UNASKED;
}

void symbols_lines_done(struct symbols_image *o)
{
	dwarf_file_free(o->dwarf);
}
