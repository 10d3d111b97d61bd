/*
 * Writes a bundle anew, with the images that it lacked.
 *
 * Members are copied as they are, and images come piece by piece from the files that the source
 * opens. All are mapped and not read into memory. The new manifest says where the bytes of each
 * image are, or why they are missing. The bundle and the list were checked when they were read;
 * join.c checks that they belong together.
 */
#include "ctl/client/stored.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "proto/base.h"

#define UNTOUCHED "no code of it was needed"
#define LOST	  "the recorder could not keep it"

struct join {
	const struct bundle *bundle;
	const struct kept *kept;
	const struct join_source *source;
	struct manifest manifest; /* of the new bundle */
	struct bundle_writer writer;
	struct join_counts *counts;
};

bool join_needed(const struct manifest *m)
{
	for (size_t i = 0; i < m->n_images; i++)
		if (m->images[i].elsewhere)
			return true;
	return false;
}

/* Each line of the list must name an image that is elsewhere, with the same file size. */
static int check_list(const struct join *j)
{
	const struct manifest *m = &j->manifest;

	for (size_t i = 0; j->kept && i < j->kept->n; i++) {
		const struct kept_image *k = &j->kept->images[i];
		const struct manifest_image *image;

		if (k->index >= m->n_images)
			return -EBADMSG;
		image = &m->images[k->index];
		if (!image->elsewhere ||
		    (image->file_size != MANIFEST_ABSENT && image->file_size != k->file_size))
			return -EBADMSG;
		if (k->n_pieces > 0 &&
		    k->pieces[k->n_pieces - 1].offset + k->pieces[k->n_pieces - 1].size >
			    k->file_size)
			return -EBADMSG;
	}
	return 0;
}

static void copy_cpus(struct join *j)
{
	char name[32];

	for (size_t i = 0; i < j->manifest.n_cpus; i++) {
		const struct manifest_cpu *cpu = &j->manifest.cpus[i];
		size_t size;
		const uint8_t *bytes = bundle_cpu(j->bundle, i, &size);

		if (cpu->cpu != MANIFEST_ANY)
			snprintf(name, sizeof(name), "cpu%u.pt", cpu->cpu);
		else
			snprintf(name, sizeof(name), "trace/%zu", i);
		bundle_write_member(&j->writer, name, bytes, size);
	}
}

static void copy_numbered(struct join *j, const char *directory, size_t n,
			  const uint8_t *(*get)(const struct bundle *, size_t, size_t *))
{
	char name[32];

	for (size_t i = 0; i < n; i++) {
		size_t size;
		const uint8_t *bytes = get(j->bundle, i, &size);

		snprintf(name, sizeof(name), "%s/%zu", directory, i);
		if (bytes)
			bundle_write_member(&j->writer, name, bytes, size);
	}
}

static int leave_out(struct join *j, uint32_t index, const char *why, uint64_t *count)
{
	struct manifest_image *image = &j->manifest.images[index];

	++*count;
	free(image->missing);
	image->missing = strdup(why);
	image->elsewhere = false;
	return image->missing ? 0 : -ENOMEM;
}

static int write_pieces(struct join *j, const struct kept_image *k, const uint8_t *file)
{
	struct manifest_image *image = &j->manifest.images[k->index];
	CLEANUP_FREE struct iovec *parts = calloc(k->n_pieces, sizeof(*parts));
	uint64_t size = 0;
	char name[32];
	int r;

	if (!parts)
		return -ENOMEM;
	for (size_t i = 0; i < k->n_pieces; i++) {
		parts[i].iov_base = (void *)(uintptr_t)(file + k->pieces[i].offset);
		parts[i].iov_len = (size_t)k->pieces[i].size;
		size += k->pieces[i].size;
	}
	image->elsewhere = false;
	image->size = size;
	image->offset = 0;
	image->file_size = k->file_size;
	if (size != k->file_size) {
		r = manifest_pieces_format(k->pieces, k->n_pieces, &image->pieces);
		if (r < 0)
			return r;
	}
	snprintf(name, sizeof(name), "images/%u", k->index);
	return bundle_write_parts(&j->writer, name, parts, k->n_pieces);
}

static int write_from(struct join *j, const struct kept_image *k, int fd)
{
	struct stat st;
	uint8_t *file;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != k->file_size)
		return -EBADMSG;
	file = mmap(NULL, (size_t)k->file_size, PROT_READ, MAP_PRIVATE, fd, 0);
	/* A program's owner can make its file larger than our address space. */
	if (file == MAP_FAILED)
		return leave_out(j, k->index, LOST, &j->counts->lost);
	j->counts->joined++;
	r = write_pieces(j, k, file);
	munmap(file, (size_t)k->file_size);
	return r;
}

static int write_image(struct join *j, uint32_t index)
{
	const struct kept_image *k = j->kept ? kept_find(j->kept, index) : NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	const uint8_t *bytes;
	char name[32];
	size_t size;
	int r;

	if (!j->manifest.images[index].elsewhere) {
		bytes = bundle_image(j->bundle, index, &size);
		snprintf(name, sizeof(name), "images/%u", index);
		return bytes ? bundle_write_member(&j->writer, name, bytes, size) : 0;
	}
	if (k && k->n_pieces == 0)
		return leave_out(j, index, UNTOUCHED, &j->counts->untouched);
	r = k ? j->source->open(j->source->userdata, k, &fd) : -ENOENT;
	if (r == -ENOENT)
		return leave_out(j, index, LOST, &j->counts->lost);
	return r != 0 ? r : write_from(j, k, fd);
}

static int write_all(struct join *j)
{
	size_t size;
	const uint8_t *sideband = bundle_sideband(j->bundle, &size);
	int r = check_list(j);

	if (r < 0)
		return r;
	copy_cpus(j);
	if (sideband)
		bundle_write_member(&j->writer, "sideband", sideband, size);
	copy_numbered(j, "texts", j->manifest.n_texts, bundle_text);
	copy_numbered(j, "pevent", j->manifest.n_pevents, bundle_pevent);
	for (uint32_t i = 0; i < j->manifest.n_images && r == 0; i++)
		r = write_image(j, i);
	return r != 0 ? r : bundle_write_end(&j->writer, &j->manifest);
}

int join_write(const struct bundle *b, const struct kept *kept, const struct join_source *source,
	       int to, struct join_counts *ret)
{
	struct join j = {.bundle = b, .kept = kept, .source = source, .counts = ret};
	CLEANUP(bytes_out_done) struct bytes_out text;
	int r;

	*ret = (struct join_counts){0};
	manifest_init(&j.manifest);
	bundle_writer_init(&j.writer, to);
	/* A copy of the manifest to change: write and read it. */
	bytes_out_init(&text, MANIFEST_MAX_TEXT);
	r = manifest_write(bundle_manifest(b), &text);
	if (r == 0)
		r = manifest_read(text.data, text.size, &j.manifest);
	if (r == 0)
		r = write_all(&j);
	manifest_done(&j.manifest);
	return r;
}
