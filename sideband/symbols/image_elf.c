/*
 * Images as ELF files: their bytes are brought when a reader of ELF asks for them; and the file
 * apart that may have the names of one. Part of image.c.
 */
#include <errno.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/elf/elf.h"
#include "sideband/symbols/image_private.h"

static bool is_there(void *userdata, uint64_t offset, uint64_t size)
{
	const struct image_reading *r = userdata;

	return image_need(r->set, r->image, offset, size) != NULL;
}

int image_elf_bytes(struct image_set *s, uint32_t image, struct elf_bytes *ret)
{
	const struct image_source *source;
	struct image_body *b;

	if (image >= s->n_all || image_bytes_open(s, image) != 0)
		return ELF_NOT;
	source = &s->sources[image];
	b = &s->bodies[image];
	*ret = (struct elf_bytes){.bytes = source->bytes, .size = source->size, .room = &s->room};
	if (b->region) {
		b->reading = (struct image_reading){s, image};
		ret->bytes = b->region;
		ret->size = (size_t)b->size;
		ret->need = is_there;
		ret->userdata = &b->reading;
	} else if (source->offset != 0) {
		return ELF_NOT;
	}
	return 0;
}

static int open_elf(struct image_set *s, uint32_t image, enum elf_wanted wanted,
		    struct elf_file **ret)
{
	struct elf_bytes bytes;
	int r = image_elf_bytes(s, image, &bytes);

	return r != 0 ? r : elf_file_open(&bytes, wanted, ret);
}

int image_open_elf(struct image_set *s, uint32_t image, struct elf_file **ret)
{
	if (image >= s->n || image_bytes_open(s, image) != 0)
		return ELF_NOT;
	s->bodies[image].named = true;
	return open_elf(s, image, ELF_NAMES, ret);
}

/* The recorder opens by path what the records know by build id; it does not read files. */
bool image_has_its_build_id(struct image_set *s, uint32_t image)
{
	const struct image_source *source = &s->sources[image];
	struct elf_file *f;
	const uint8_t *id;
	size_t size;
	bool same;

	if (source->build_id_size == 0)
		return true;
	if (open_elf(s, image, ELF_BUILD_ID, &f) != 0)
		return false;
	id = elf_file_build_id(f, &size);
	same = size == source->build_id_size && memcmp(id, source->build_id, size) == 0;
	elf_file_free(f);
	return same;
}

/* --- Files apart --- */

/* That of IMAGE, number APART. Its source says nothing, so what is read of it is not told. */
static int open_apart(struct image_set *s, uint32_t image, const uint8_t *build_id, size_t id_size,
		      uint32_t apart)
{
	struct image_body *b = &s->bodies[apart];
	int r = s->loader.debug(s->loader.userdata, image, build_id, id_size, &b->size);

	b->end = b->size;
	return r == 0 ? image_bytes_reserve(s, apart) : r;
}

int image_open_debug(struct image_set *s, uint32_t image, const uint8_t *build_id, size_t id_size,
		     uint32_t *ret_image)
{
	uint32_t apart = (uint32_t)s->n + image;
	struct image_body *b;

	if (image >= s->n || !s->loader.debug)
		return ELF_NOT;
	b = &s->bodies[apart];
	if (b->state == IMAGE_NEW)
		b->state = open_apart(s, image, build_id, id_size, apart) == 0 ? IMAGE_OPEN
									       : IMAGE_NONE;
	*ret_image = apart;
	return b->state == IMAGE_OPEN ? 0 : ELF_NOT;
}
