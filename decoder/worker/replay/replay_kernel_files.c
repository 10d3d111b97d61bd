/*
 * Images of kind "kernel-file" -> pieces and masks of struct kernel. Called by replay_kernel.c.
 */
#include "decoder/worker/replay/replay_kernel_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/kernel/kernel.h"
#include "sideband/kernel/kernel_file.h"

#define MAX_NAME 64

struct files {
	struct replay *replay;
	struct kernel_links *links; /* owned */
	const char *sections;
	size_t sections_size;
	bool placed; /* the kernel itself is there: other files of it are not needed */
};

struct reading {
	struct image_set *images;
	uint32_t image;
};

static ssize_t read_image(void *userdata, uint64_t offset, void *to, size_t size)
{
	const struct reading *r = userdata;
	const uint8_t *bytes = image_need(r->images, r->image, offset, size);

	if (bytes == NULL)
		return -ENODATA;
	memcpy(to, bytes, size);
	return (ssize_t)size;
}

static const char *find_text(const struct replay *r, const char *kind, size_t *ret_size)
{
	const struct manifest *m = r->manifest;

	for (size_t i = 0; i < m->n_texts; i++) {
		const void *text = bundle_text(r->bundle, i, ret_size);

		if (text != NULL && m->texts[i].kind != NULL && strcmp(m->texts[i].kind, kind) == 0)
			return text;
	}
	*ret_size = 0;
	return "";
}

static unsigned int digit_of(char c)
{
	return (unsigned int)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* The manifest's text was checked. */
static size_t take_build_id(const char *text, uint8_t ret[MANIFEST_MAX_BUILD_ID / 2])
{
	size_t n = 0;

	for (; text != NULL && text[2 * n] != '\0' && n < MANIFEST_MAX_BUILD_ID / 2; n++)
		ret[n] = (uint8_t)(digit_of(text[2 * n]) << 4 | digit_of(text[2 * n + 1]));
	return n;
}

/* "[virtio]" -> virtio. */
static bool take_name(const char *path, char ret[MAX_NAME])
{
	size_t size = path != NULL ? strlen(path) : 0;

	if (size < 3 || size - 2 >= MAX_NAME || path[0] != '[' || path[size - 1] != ']')
		return false;
	memcpy(ret, path + 1, size - 2);
	ret[size - 2] = '\0';
	return true;
}

/* TEXT's bytes are the kernel's then. */
static int add_text(struct files *f, size_t image, struct kernel_file_text *text)
{
	struct kernel_piece piece = {.address = text->address,
				     .size = text->size,
				     .read_ns = KERNEL_ABSENT,
				     .image = (uint32_t)image,
				     .bytes = text->bytes};
	int result = kernel_add_piece(f->replay->kernel, &piece);

	if (result == 0)
		text->bytes = NULL;
	for (size_t i = 0; i < text->n_masked && result == 0; i++)
		result = kernel_add_masked(f->replay->kernel, text->masked[i].begin,
					   text->masked[i].end - text->masked[i].begin);
	return result;
}

static int add_file(struct files *f, size_t i)
{
	const struct manifest_image *m = &f->replay->manifest->images[i];
	struct reading reading = {f->replay->images, (uint32_t)i};
	uint8_t build_id[MANIFEST_MAX_BUILD_ID / 2];
	struct kernel_file file = {
		.source = {.read = read_image, .userdata = &reading},
		.build_id = build_id,
		.links = f->links,
		.sections = f->sections,
		.sections_size = f->sections_size,
	};
	struct kernel_file_text text;
	char name[MAX_NAME];
	int result;

	if (!take_name(m->path, name) || m->missing != NULL)
		return 0;
	file.module = strcmp(name, "kernel") == 0 ? NULL : name;
	if (file.module == NULL && f->placed)
		return 0;
	file.source.size = m->file_size != MANIFEST_ABSENT ? m->file_size : m->offset + m->size;
	file.build_id_size = take_build_id(m->build_id, build_id);
	result = kernel_file_text(&file, &text);
	/* Nor what is larger than the memory that there is. */
	if (result != 0)
		return 0;
	f->placed |= file.module == NULL;
	result = add_text(f, i, &text);
	kernel_file_text_done(&text);
	return result;
}

static bool is_kernel_file(const struct manifest_image *m)
{
	return m->kind != NULL && strcmp(m->kind, MANIFEST_IMAGE_KERNEL_FILE) == 0;
}

static int add_files(struct files *f)
{
	const struct manifest *m = f->replay->manifest;
	int result = 0;

	for (size_t i = 0; i < m->n_images && result == 0; i++)
		if (is_kernel_file(&m->images[i]))
			result = add_file(f, i);
	return result;
}

int replay_kernel_files(struct replay *r)
{
	struct files f = {.replay = r};
	const char *symbols;
	size_t size, n = 0;
	int result;

	for (size_t i = 0; i < r->manifest->n_images; i++)
		n += is_kernel_file(&r->manifest->images[i]);
	if (n == 0)
		return 0;
	symbols = find_text(r, MANIFEST_TEXT_KALLSYMS, &size);
	f.sections = find_text(r, MANIFEST_TEXT_KERNEL_SECTIONS, &f.sections_size);
	result = kernel_links_new(symbols, size, &f.links);
	if (result == 0)
		result = add_files(&f);
	kernel_links_free(f.links);
	return result;
}
