/*
 * A bundle written, member by member, to an fd that only needs to take bytes in order. Called by
 * the recorder's snapshot job and by the offline client for raw traces.
 */
#include "proto/bundle/bundle.h"

#include <errno.h>
#include <sys/uio.h>

#include "proto/base.h"
#include "proto/bundle/bundle_tar.h"
#include "proto/memfd.h"

static const uint8_t zeros[16384];

void bundle_writer_init(struct bundle_writer *w, int fd)
{
	*w = (struct bundle_writer){.fd = fd};
}

static int fail(struct bundle_writer *w, int error)
{
	if (!w->error)
		w->error = error;
	return w->error;
}

static int write_bytes(struct bundle_writer *w, const void *data, size_t size)
{
	int r;

	if (w->error)
		return w->error;
	r = memfd_write_all(w->fd, data, size);
	if (r < 0)
		return fail(w, r);
	w->bytes += size;
	return 0;
}

static int write_zeros(struct bundle_writer *w, uint64_t size)
{
	while (size > 0 && !w->error) {
		size_t part = (size_t)MIN_OF(size, (uint64_t)sizeof(zeros));

		write_bytes(w, zeros, part);
		size -= part;
	}
	return w->error;
}

/* Refuses what the reader would: the two blocks of the end must still fit. */
static int write_header(struct bundle_writer *w, const char *name, uint64_t size)
{
	uint8_t block[BUNDLE_BLOCK];
	int r;

	if (w->error)
		return w->error;
	if (size > BUNDLE_MAX_BYTES ||
	    w->bytes + size + bundle_tar_padding(size) + 3 * BUNDLE_BLOCK > BUNDLE_MAX_BYTES)
		return fail(w, -EFBIG);
	r = bundle_tar_compose(name, size, block);
	return r < 0 ? fail(w, r) : write_bytes(w, block, sizeof(block));
}

int bundle_write_member(struct bundle_writer *w, const char *name, const void *data, size_t size)
{
	write_header(w, name, size);
	write_bytes(w, data, size);
	return write_zeros(w, bundle_tar_padding(size));
}

int bundle_write_parts(struct bundle_writer *w, const char *name, const struct iovec *parts,
		       size_t n)
{
	uint64_t size = 0;

	for (size_t i = 0; i < n; i++)
		if (__builtin_add_overflow(size, parts[i].iov_len, &size))
			return fail(w, -EFBIG);
	write_header(w, name, size);
	for (size_t i = 0; i < n; i++)
		write_bytes(w, parts[i].iov_base, parts[i].iov_len);
	return write_zeros(w, bundle_tar_padding(size));
}

int bundle_write_file(struct bundle_writer *w, const char *name, int from, uint64_t offset,
		      uint64_t size, uint64_t *ret_copied)
{
	struct memfd_copied copied;
	int r;

	*ret_copied = 0;
	r = write_header(w, name, size);
	if (r < 0)
		return r;
	r = memfd_copy_readable(from, offset, size, w->fd, &copied);
	w->bytes += copied.bytes;
	*ret_copied = copied.bytes;
	if (r < 0)
		return fail(w, r);
	return write_zeros(w, size - copied.bytes + bundle_tar_padding(size));
}

int bundle_write_end(struct bundle_writer *w, const struct manifest *m)
{
	CLEANUP(bytes_out_done) struct bytes_out text;
	int r;

	bytes_out_init(&text, MANIFEST_MAX_TEXT);
	r = manifest_write(m, &text);
	if (r < 0)
		return fail(w, r);
	bundle_write_member(w, BUNDLE_MANIFEST_NAME, text.data, text.size);
	return write_zeros(w, 2 * BUNDLE_BLOCK);
}
