/*
 * bundle_keep DECODER BUNDLE: decodes a bundle with all images whole; then without images, which
 * are requested one by one; then with only the needed pieces. The three reports must be identical.
 * Prints what was needed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl/client/stored.h"
#include "decoder/run/worker_run.h"
#include "proto/base.h"

struct keep {
	const char *decoder;
	struct bundle *whole;
	struct manifest_piece **pieces; /* needed pieces of each image */
	size_t *n_pieces;
	unsigned long asked;
	int fd; /* of the last requested image */
};

static void die(const char *what, int error)
{
	fprintf(stderr, "bundle_keep: %s: %s\n", what, strerror(error));
	exit(1);
}

static int new_memfd(const void *bytes, size_t size)
{
	int fd = memfd_create("bundle_keep", MFD_CLOEXEC);

	for (size_t done = 0; fd >= 0 && done < size;) {
		ssize_t n = write(fd, (const uint8_t *)bytes + done, size - done);

		if (n < 0)
			die("write", errno);
		done += (size_t)n;
	}
	return fd;
}

static int on_image(void *userdata, uint32_t image, int *ret_fd, uint64_t *ret_size)
{
	struct keep *k = userdata;
	const uint8_t *bytes;
	size_t size;

	if (image >= bundle_manifest(k->whole)->n_images)
		return -EINVAL;
	bytes = bundle_image(k->whole, image, &size);
	close_fd(k->fd);
	k->asked++;
	k->fd = *ret_fd = new_memfd(bytes, size);
	*ret_size = size;
	return 0;
}

static void on_keep(void *userdata, uint32_t image, uint64_t offset, uint64_t size)
{
	struct keep *k = userdata;
	size_t n = k->n_pieces[image]++;

	k->pieces[image] = realloc(k->pieces[image], (n + 1) * sizeof(struct manifest_piece));
	if (k->pieces[image] == NULL)
		die("keep", ENOMEM);
	k->pieces[image][n] = (struct manifest_piece){offset, size};
}

static char *decode(struct keep *k, int bundle, bool keep)
{
	struct worker_outcome outcome;
	struct worker_job job = {
		.program = k->decoder,
		.bundle_fd = bundle,
		.output_fd = memfd_create("report", MFD_CLOEXEC),
		.request.options = {.view = WORKER_VIEW_REPORT,
				    .report_limit = 64u << 20,
				    .pretty = 1,
				    .memory_limit = UINT64_C(2) << 30,
				    .keep = keep},
		.image = on_image,
		.keep = on_keep,
		.userdata = k,
		.cancel_fd = -1,
	};
	int r = worker_run(&job, &outcome);
	off_t size = lseek(job.output_fd, 0, SEEK_END);
	char *text = calloc(1, (size_t)size + 1);

	if (r != 0 || text == NULL)
		die("decode", r < 0 ? -r : -outcome.error);
	if (pread(job.output_fd, text, (size_t)size, 0) != size)
		die("read", errno);
	close(job.output_fd);
	return text;
}

static void copy_member(struct bundle_writer *w, const char *before, size_t index,
			const char *behind, const uint8_t *bytes, size_t size)
{
	char text[64];

	snprintf(text, sizeof(text), "%s%zu%s", before, index, behind);
	if (bytes != NULL && bundle_write_member(w, text, bytes, size) != 0)
		die(text, EIO);
}

/* Writes the bundle without its images. */
static int make_elsewhere(struct keep *k)
{
	const struct bundle *b = k->whole;
	struct manifest m = *bundle_manifest(b);
	struct manifest_image *images = calloc(m.n_images + 1, sizeof(*images));
	int fd = new_memfd(NULL, 0), r;
	struct bundle_writer w;
	const uint8_t *bytes;
	size_t size;

	if (images == NULL)
		die("images", ENOMEM);
	memcpy(images, m.images, m.n_images * sizeof(*images));
	m.images = images;
	for (size_t i = 0; i < m.n_images; i++) {
		if (images[i].missing != NULL || images[i].offset != 0 || images[i].pieces)
			continue;
		images[i].file_size = images[i].size;
		images[i].size = 0;
		images[i].elsewhere = true;
	}
	bundle_writer_init(&w, fd);
	for (size_t i = 0; i < m.n_cpus; i++) {
		bytes = bundle_cpu(b, i, &size);
		if (m.cpus[i].cpu == MANIFEST_ANY)
			copy_member(&w, "trace/", i, "", bytes, size);
		else
			copy_member(&w, "cpu", m.cpus[i].cpu, ".pt", bytes, size);
	}
	bytes = bundle_sideband(b, &size);
	if (bundle_write_member(&w, "sideband", bytes, size) != 0)
		die("sideband", EIO);
	for (size_t i = 0; i < m.n_texts; i++) {
		bytes = bundle_text(b, i, &size);
		copy_member(&w, "texts/", i, "", bytes, size);
	}
	r = bundle_write_end(&w, &m);
	if (r != 0)
		die("bundle", -r);
	free(images);
	return fd;
}

static int open_kept(void *userdata, const struct kept_image *image, int *ret_fd)
{
	const struct keep *k = userdata;
	size_t size;
	const uint8_t *bytes = bundle_image(k->whole, image->index, &size);

	*ret_fd = new_memfd(bytes, size);
	return 0;
}

/* Decodes with only the needed pieces. */
static int make_joined(struct keep *k, int elsewhere)
{
	const struct join_source source = {.open = open_kept, .userdata = k};
	int fd = new_memfd(NULL, 0), r;
	struct join_counts told;
	struct bundle *b;
	struct kept kept;

	kept_init(&kept);
	r = bundle_open(elsewhere, &b);
	for (size_t i = 0; r == 0 && i < bundle_manifest(b)->n_images; i++)
		if (bundle_manifest(b)->images[i].elsewhere)
			r = kept_add(&kept, (uint32_t)i, "x",
				     bundle_manifest(b)->images[i].file_size, k->pieces[i],
				     k->n_pieces[i]);
	if (r == 0)
		r = join_write(b, &kept, &source, fd, &told);
	if (r != 0)
		die("join", -r);
	kept_done(&kept);
	bundle_free(b);
	return fd;
}

static void print_needed(const struct keep *k)
{
	uint64_t bytes = 0, needed = 0;
	size_t images = 0, pieces = 0;

	for (size_t i = 0; i < bundle_manifest(k->whole)->n_images; i++) {
		bytes += bundle_manifest(k->whole)->images[i].size;
		images += k->n_pieces[i] > 0;
		pieces += k->n_pieces[i];
		for (size_t j = 0; j < k->n_pieces[i]; j++)
			needed += k->pieces[i][j].size;
	}
	printf("%zu images: asked %lu times, needed %zu of them, %zu pieces, %llu of %llu bytes\n",
	       bundle_manifest(k->whole)->n_images, k->asked, images, pieces,
	       (unsigned long long)needed, (unsigned long long)bytes);
}

/* Removes build ids, which may differ: the decoder reads those of unneeded files only where reading
 * is free. */
static void cut_build_ids(char *text)
{
	char *to = text;

	while (*text != 0) {
		size_t size = strcspn(text, "\n");

		size += text[size] != 0;
		if (memmem(text, size, "\"buildId\"", 9) == NULL) {
			memmove(to, text, size);
			to += size;
		}
		text += size;
	}
	*to = 0;
}

static bool is_same(const char *a, const char *b, const char *what)
{
	size_t at = 0, line = 1;

	while (a[at] == b[at] && a[at] != 0)
		line += a[at++] == '\n';
	if (a[at] == b[at])
		return true;
	printf("%s: the report differs from line %zu on:\n< %.200s\n> %.200s\n", what, line, a + at,
	       b + at);
	return false;
}

static void done(struct keep *k)
{
	for (size_t i = 0; i < bundle_manifest(k->whole)->n_images; i++)
		free(k->pieces[i]);
	free(k->pieces);
	free(k->n_pieces);
	close_fd(k->fd);
	bundle_free(k->whole);
}

int main(int argc, char **argv)
{
	struct keep k = {.fd = -1};
	char *whole, *asked, *joined;
	int fd, elsewhere, r;
	bool same;

	if (argc != 3)
		return 2;
	k.decoder = argv[1];
	fd = open(argv[2], O_RDONLY | O_CLOEXEC);
	r = fd < 0 ? -errno : bundle_open(fd, &k.whole);
	if (r != 0)
		die(argv[2], -r);
	k.pieces = calloc(bundle_manifest(k.whole)->n_images + 1, sizeof(*k.pieces));
	k.n_pieces = calloc(bundle_manifest(k.whole)->n_images + 1, sizeof(*k.n_pieces));
	if (k.pieces == NULL || k.n_pieces == NULL)
		die("images", ENOMEM);
	whole = decode(&k, fd, false);
	elsewhere = make_elsewhere(&k);
	asked = decode(&k, elsewhere, true);
	print_needed(&k);
	joined = decode(&k, make_joined(&k, elsewhere), false);
	same = is_same(asked, joined, "joined");
	cut_build_ids(whole);
	cut_build_ids(asked);
	same = is_same(whole, asked, "asked") && same;
	free(whole);
	free(asked);
	free(joined);
	done(&k);
	return same ? 0 : 1;
}
