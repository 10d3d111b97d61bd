/*
 * Translates the kernel's records of a perf.data file, plain and compressed, into a bundle's
 * sideband.
 *
 * Records stay in the order of the file; ptsnap-decode sorts them by time. Decompression needs
 * constant memory: the content passes through one buffer, and an incomplete record stays in the
 * buffer until the next piece.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "proto/base.h"

#include "ctl/perfdata/import_private.h"

#define MAX_SIDEBAND ((size_t)1 << 30)
/* The first type of perf's own records (enum perf_user_event_type). */
#define FIRST_OF_PERF 64u
/* A few bytes of zstd can stand for 128 KiB. This limit of the whole content is far beyond what
 * a bundle may hold. zstd itself limits the memory (window) to 128 MiB. */
#define MAX_OUTPUT (2ull << 30)
/* More than one record, so that there is always room. */
#define BUFFER_SIZE (256u << 10)

int import_records_init(struct import_records *r, const struct perfdata *data, bool timeless,
			struct import_images *images)
{
	*r = (struct import_records){.data = data, .timeless = timeless, .images = images};
	bytes_out_init(&r->out, MAX_SIDEBAND);
	r->buffer = malloc(PERFRECORD_MAX_SIZE);
	return r->buffer ? 0 : -ENOMEM;
}

void import_records_done(struct import_records *r)
{
	bytes_out_done(&r->out);
	free(r->buffer);
	r->buffer = NULL;
}

static int put(struct import_records *r, struct perfrecord *parsed)
{
	size_t size;

	if (r->timeless)
		parsed->time = r->n + 1;
	else
		r->last_ns = MAX_OF(r->last_ns, parsed->time);
	/* Our trailer may make a record of the largest size too large. */
	if (perfrecord_compose(parsed, r->buffer, PERFRECORD_MAX_SIZE, &size) < 0) {
		r->bad++;
		return 0;
	}
	r->n++;
	bytes_put_block(&r->out, r->buffer, size);
	return r->out.error;
}

int import_records_add(struct import_records *r, const struct perfdata_record *record)
{
	uint16_t mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	struct perfrecord parsed;

	if (record->type >= FIRST_OF_PERF || record->type == PERF_RECORD_SAMPLE)
		return 0;
	/* Pids and addresses of a virtual machine are not the host's. */
	if (mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER)
		return 0;
	if (perfdata_parse(r->data, record, &parsed) < 0) {
		r->bad++;
		return 0;
	}
	/* A pid of UINT32_MAX: the kernel's own text. */
	if (parsed.type == PERF_RECORD_MMAP2 && parsed.u.mmap2.prot & PROT_EXEC &&
	    parsed.u.mmap2.pid != UINT32_MAX) {
		int result = import_images_add(r->images, &parsed);

		if (result < 0)
			return result;
	}
	return put(r, &parsed);
}

struct import_zstd {
	int (*fn)(void *userdata, const struct perfdata_record *record);
	void *userdata;
	ZSTD_DStream *stream;
	uint64_t total; /* bytes of content so far */
	size_t n;	/* bytes in buffer */
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

/* Passes complete records on. The rest moves to the beginning of the buffer. */
static int pass_records(struct import_zstd *z)
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
	/* Nothing moves while small pieces complete one large record. */
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
		r = pass_records(z);
		/* When the buffer was full, zstd may hold content of input that it has taken. */
	} while (r == 0 && (in.pos < in.size || out.pos == out.size));
	return r;
}
