/*
 * What the manifest says of images, translated into sources of sideband/image. Called by replay.c.
 */
#include "decoder/worker/replay/replay_images.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

/* What the recorder writes of files that nobody could open any more. */
#define GONE "gone:"

static unsigned int hex_digit(char c)
{
	return (unsigned int)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* The manifest's text was checked: whole bytes, lower case, at most 20. */
static void take_build_id(struct image_source *to, const char *text)
{
	size_t i;

	for (i = 0; text != NULL && text[2 * i] != '\0' && i < sizeof(to->build_id); i++)
		to->build_id[i] =
			(uint8_t)(hex_digit(text[2 * i]) << 4 | hex_digit(text[2 * i + 1]));
	to->build_id_size = text != NULL ? (uint8_t)i : 0;
}

static bool is_kind(const struct manifest_image *from, const char *kind)
{
	return from->kind != NULL && strcmp(from->kind, kind) == 0;
}

/* Memory belongs to the space that the process had when it was read: not to one before an exec, and
 * not to another process that had its number before. */
static void take_memory(struct image_source *to, const struct manifest_image *from,
			const struct timeline *timeline)
{
	uint64_t time = from->read_ns == MANIFEST_ABSENT ? SPACE_NOW - 1 : from->read_ns;

	to->memory = is_kind(from, MANIFEST_IMAGE_MEMORY);
	to->vdso = is_kind(from, MANIFEST_IMAGE_VDSO);
	to->pid = from->pid;
	to->address = from->address;
	if (from->pid == MANIFEST_ANY)
		return;
	to->space = timeline_space(timeline, from->pid, time);
	/* Nobody can have mapped what wraps around. */
	if (from->address == MANIFEST_ABSENT || to->space == NULL)
		to->apart = true;
}

/* One piece needs no putting together. */
static void take_bytes(struct image_source *to, const struct bundle *bundle, size_t i)
{
	const struct manifest_piece *pieces;

	to->bytes = bundle_image(bundle, i, &to->size);
	if (to->bytes == NULL)
		return;
	pieces = bundle_image_pieces(bundle, i, &to->n_pieces);
	if (to->n_pieces == 1) {
		to->offset = pieces[0].offset;
		to->n_pieces = 0;
	} else {
		to->pieces = pieces;
	}
}

static void take_image(struct image_source *to, const struct bundle *bundle, size_t i,
		       const struct timeline *timeline)
{
	const struct manifest_image *from = &bundle_manifest(bundle)->images[i];

	*to = (struct image_source){
		.path = from->path,
		.maj = from->maj,
		.min = from->min,
		.ino = from->ino,
		.ino_generation = from->ino_generation,
		.missing = from->missing,
		.gone = from->missing != NULL && strncmp(from->missing, GONE, strlen(GONE)) == 0,
		.loadable = from->elsewhere,
		.file_size = from->file_size == MANIFEST_ABSENT ? 0 : from->file_size,
		.pid = MANIFEST_ANY,
		.address = from->address,
	};
	take_bytes(to, bundle, i);
	/* What is not for processes is compared by who reads it: it may be packed. */
	if (!is_kind(from, MANIFEST_IMAGE_KERNEL_FILE))
		take_build_id(to, from->build_id);
	if (is_kind(from, MANIFEST_IMAGE_MEMORY) || is_kind(from, MANIFEST_IMAGE_VDSO))
		take_memory(to, from, timeline);
	else
		to->apart = from->kind != NULL;
}

int replay_images(const struct bundle *bundle, const struct timeline *timeline,
		  const struct image_loader *loader, struct image_set **ret)
{
	const struct manifest *m = bundle_manifest(bundle);
	CLEANUP_FREE struct image_source *sources = calloc(m->n_images + 1, sizeof(*sources));
	size_t i;

	if (sources == NULL)
		return -ENOMEM;
	for (i = 0; i < m->n_images; i++)
		take_image(&sources[i], bundle, i, timeline);
	return image_set_new(sources, m->n_images, loader, ret);
}
