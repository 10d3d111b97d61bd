/*
 * What was seen of the kernel, into the manifest: images, texts, and notes of what could not be
 * had. Called by kernel.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/kernel/kernel_files.h"
#include "daemon/gather/kernel_private.h"
#include "proto/base.h"

static int set_text(char **to, const char *text)
{
	free(*to);
	*to = strdup(text);
	return *to ? 0 : -ENOMEM;
}

/* FD is taken over. */
static struct manifest_image *add_image(struct evidence *e, const char *name, const char *kind,
					int fd, uint64_t size)
{
	struct manifest_image *image = evidence_add_image(e, fd, size);
	char path[KERNEL_OWNER_SIZE + 2];

	if (!image)
		return NULL;
	snprintf(path, sizeof(path), "[%s]", name);
	image->pid = MANIFEST_ANY;
	image->elsewhere = fd >= 0;
	image->file_size = fd >= 0 ? size : MANIFEST_ABSENT;
	if (set_text(&image->path, path) < 0 || set_text(&image->kind, kind) < 0)
		return NULL;
	return image;
}

/* BYTES is taken over. */
static int add_text(struct evidence *e, const char *kind, struct bytes_out *bytes, const char *why)
{
	struct manifest_text *text = evidence_add_text(e, bytes);

	if (!text)
		return -ENOMEM;
	text->pid = MANIFEST_ANY;
	if (set_text(&text->kind, kind) < 0)
		return -ENOMEM;
	return why ? set_text(&text->missing, why) : 0;
}

static int add_copy(struct evidence *e, const struct kernel_look *l, size_t i)
{
	const struct kernel_region *region = &l->regions[i];
	struct kernel_copy *copy = &l->copies[i];
	struct manifest_image *image;
	char why[128];

	image = add_image(e, region->name, MANIFEST_IMAGE_KERNEL, take_fd(&copy->fd), region->size);
	if (!image)
		return -ENOMEM;
	image->address = region->address;
	image->read_ns = copy->read_ns;
	if (l->errors[i] == 0 && !copy->changing)
		return 0;
	if (l->errors[i] == 0)
		return manifest_add_note(&e->manifest, "kernel-text-unreliable", 1,
					 "the kernel's text was patched while it was copied");
	snprintf(why, sizeof(why), "/proc/kcore: %s", strerror(-l->errors[i]));
	return set_text(&image->missing, why);
}

/* Text comes and goes with BPF programs: what is gone reads as zeros. */
static bool is_empty(const struct kernel_copy *copy)
{
	char bytes[64];
	ssize_t n = pread(copy->fd, bytes, sizeof(bytes), 0);

	for (ssize_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return n > 0;
}

static int add_copies(struct evidence *e, struct kernel_look *l)
{
	int r = 0;

	for (size_t i = 0; i < l->n && r == 0; i++)
		if (l->copies[i].fd < 0 || l->copies[i].changing || !is_empty(&l->copies[i]))
			r = add_copy(e, l, i);
	return r;
}

static int add_file(struct evidence *e, struct kernel_file *f)
{
	char build_id[2 * KERNEL_FILE_BUILD_ID + 1] = "";
	struct manifest_image *image =
		add_image(e, f->name, MANIFEST_IMAGE_KERNEL_FILE, take_fd(&f->fd), f->size);

	if (!image)
		return -ENOMEM;
	for (size_t i = 0; i < f->build_id_size; i++)
		snprintf(build_id + 2 * i, 3, "%02x", f->build_id[i]);
	if (*build_id && set_text(&image->build_id, build_id) < 0)
		return -ENOMEM;
	return f->why ? set_text(&image->missing, f->why) : 0;
}

static int add_files(struct evidence *e, const struct kernel *k, const struct kernel_look *l)
{
	struct kernel_places places = {k->paths.root, k->paths.sys, k->release};
	struct kernel_files files;
	int r = kernel_files_open(&places, &l->modules, &files);

	if (r < 0)
		return r;
	for (size_t i = 0; i < files.n && r == 0; i++)
		r = add_file(e, &files.items[i]);
	if (r == 0)
		r = add_text(e, MANIFEST_TEXT_KERNEL_SECTIONS, &files.sections,
			     files.sections.size ? NULL : "nothing in /sys/module/*/sections");
	kernel_files_done(&files);
	return r;
}

static const char *why_no_symbols(int error)
{
	return error == -EACCES ? "its addresses are hidden: CAP_SYSLOG, kernel.kptr_restrict"
				: strerror(-error);
}

static int add_texts(struct evidence *e, struct kernel_look *l)
{
	const char *why = l->symbols_error ? why_no_symbols(l->symbols_error) : NULL;
	int r;

	if (why)
		bytes_out_reset(&l->symbols.text);
	r = add_text(e, MANIFEST_TEXT_KALLSYMS, &l->symbols.text, why);
	if (l->symbols.first)
		e->manifest.kernel_start = l->symbols.first;
	return r < 0 ? r : add_text(e, MANIFEST_TEXT_MODULES, &l->modules.text, NULL);
}

static int note_files(struct evidence *e, int error)
{
	char why[160];

	snprintf(why, sizeof(why),
		 "/proc/kcore: %s: the kernel's code is taken from files, but for what it patches",
		 strerror(-error));
	return manifest_add_note(&e->manifest, "kernel-text-unreliable", 1, why);
}

int kernel_add_look(struct evidence *e, const struct kernel *k, struct kernel_look *l)
{
	int r = add_texts(e, l);

	if (r == 0 && l->symbols_error == 0 && l->kcore_error == 0)
		r = add_copies(e, l);
	else if (r == 0)
		r = add_files(e, k, l);
	if (r == 0 && l->symbols_error == 0 && l->kcore_error < 0)
		r = note_files(e, l->kcore_error);
	return r;
}
