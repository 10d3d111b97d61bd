/*
 * Fuzzes call streams: ctl/calls reads the bytes behind the first two, ctl/calls/slice takes a
 * part, and ctl/export writes it. The first byte chooses the format, the second what the slice is.
 * Invariants: a text format has no control characters but those of its own.
 */
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/calls/slice.h"
#include "ctl/export/export.h"
#include "proto/base.h"
#include "proto/memfd.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void choose(struct slice *s, uint8_t bits)
{
	static const char *const values[SLICE_OPTIONS] = {"1us", "-1us", "1",	   "100",
							  "101", "t*",	 "[a-m]*", "/*"};

	for (size_t i = 0; i < SLICE_OPTIONS; i++)
		if (bits >> i & 1)
			assert(slice_option_take(s, i, values[i]) == 0);
}

static void check_text(int fd)
{
	char buffer[4096];
	ssize_t n;

	for (off_t at = 0; (n = pread(fd, buffer, sizeof(buffer), at)) > 0; at += n)
		for (ssize_t i = 0; i < n; i++) {
			uint8_t c = (uint8_t)buffer[i];

			assert((c >= ' ' && c != 0x7f) || c == '\n' || c == '\r');
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct export_format *format = export_formats;
	CLEANUP_CLOSE int in = -EBADF;
	CLEANUP_CLOSE int out = -EBADF;
	CLEANUP(exporter_freep) struct exporter *e = NULL;
	CLEANUP(slicer_freep) struct slicer *s = NULL;
	struct exporter_told told;
	struct slice slice = {0};
	int r;

	if (size < 2)
		return 0;
	for (unsigned i = bytes[0]; i > 0; i--)
		format = format[1].name ? format + 1 : export_formats;
	choose(&slice, bytes[1]);
	if (memfd_new("in", 0, &in) < 0 || memfd_new("out", 0, &out) < 0 ||
	    memfd_write_all(in, bytes + 2, size - 2) < 0 || lseek(in, 0, SEEK_SET) != 0)
		return 0;
	assert(exporter_new(format, EXPORT_INSNS, out, &e) == 0);
	assert(slicer_new(&slice, exporter_take, e, &s) == 0);
	r = calls_read_fd(in, slicer_take, s);
	if (r == 0)
		r = exporter_finish(e, &told);
	if (r == 0 && !format->binary)
		check_text(out);
	return 0;
}
