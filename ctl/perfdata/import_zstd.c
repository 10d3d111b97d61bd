/*
 * The compressed records of a perf.data, in constant memory: what comes out goes through one
 * buffer, and a record that is not whole stays in it until the next piece.
 *
 * A bomb: zstd can say 128 KiB in a few bytes. The whole output is limited, far beyond what
 * a bundle may hold of it; and by the window (128 MiB, zstd's own default) the memory.
 */
#include "ctl/perfdata/import_zstd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "proto/base.h"

#define MAX_OUTPUT (2ull << 30)
/* More than one record, so that there is always room. */
#define BUFFER_SIZE (256u << 10)

struct import_zstd {
	int (*fn)(void *userdata, const struct perfdata_record *record);
	void *userdata;
	ZSTD_DStream *stream;
	uint64_t total;
	size_t n; /* bytes in buffer */
	uint8_t buffer[BUFFER_SIZE];
};

int import_zstd_new(int (*fn)(void *userdata, const struct perfdata_record *record), void *userdata,
		    struct import_zstd **ret)
{
	struct import_zstd *z = calloc(1, sizeof(*z));

	if (!z)
		return -ENOMEM;
	z->fn = fn;
	z->userdata = userdata;
	z->stream = ZSTD_createDStream();
	if (!z->stream) {
		import_zstd_free(z);
		return -ENOMEM;
	}
	*ret = z;
	return 0;
}

void import_zstd_free(struct import_zstd *z)
{
	if (!z)
		return;
	ZSTD_freeDStream(z->stream);
	free(z);
}

size_t import_zstd_left(const struct import_zstd *z)
{
	return z->n;
}

/* The records that are whole; what is left moves to the buffer's beginning. */
static int give_records(struct import_zstd *z)
{
	struct perfdata_record record;
	size_t at = 0;
	int r;

	while ((r = perfdata_frame(z->buffer + at, z->n - at, &record)) == 0) {
		record.offset = z->total - z->n + at;
		r = z->fn(z->userdata, &record);
		if (r != 0)
			return r;
		at += record.size;
	}
	z->n -= at;
	/* Pieces of a few bytes may make one large record: it is moved once. */
	if (at > 0)
		memmove(z->buffer, z->buffer + at, z->n);
	return r == PERFDATA_CUT ? 0 : r;
}

int import_zstd_feed(struct import_zstd *z, const uint8_t *bytes, size_t size)
{
	ZSTD_inBuffer in = {bytes, size, 0};
	ZSTD_outBuffer out;
	size_t result;
	int r;

	do {
		out = (ZSTD_outBuffer){z->buffer, sizeof(z->buffer), z->n};
		result = ZSTD_decompressStream(z->stream, &out, &in);
		if (ZSTD_isError(result))
			return ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? -ENOMEM
											 : -EBADMSG;
		z->total += out.pos - z->n;
		z->n = out.pos;
		if (z->total > MAX_OUTPUT)
			return -E2BIG;
		r = give_records(z);
		/* A full buffer may hold more back than the input shows. */
	} while (r == 0 && (in.pos < in.size || out.pos == out.size));
	return r;
}
