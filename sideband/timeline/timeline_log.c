/*
 * The daemon's log: a byte ring of records as they came, allocated at once.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/timeline/timeline_private.h"

int log_init(struct log *log, uint64_t size)
{
	*log = (struct log){
		.ring = malloc(size), .size = size, .scratch = malloc(LOG_SCRATCH_SIZE)};
	return log->ring && log->scratch ? 0 : -ENOMEM;
}

void log_done(struct log *log)
{
	free(log->ring);
	free(log->scratch);
	*log = (struct log){0};
}

bool log_fits(const struct log *log, size_t size)
{
	return size <= log->size - (log->head - log->tail);
}

void log_append(struct log *log, const void *bytes, size_t size)
{
	uint64_t at = log->head & (log->size - 1);
	size_t first = MIN_OF(size, (size_t)(log->size - at));

	memcpy(log->ring + at, bytes, first);
	if (first < size)
		memcpy(log->ring, (const uint8_t *)bytes + first, size - first);
	log->head += size;
}

static void copy_out(const struct log *log, uint64_t at, void *to, size_t size)
{
	uint64_t from = at & (log->size - 1);
	size_t first = MIN_OF(size, (size_t)(log->size - from));

	memcpy(to, log->ring + from, first);
	memcpy((uint8_t *)to + first, log->ring, size - first);
}

const uint8_t *log_at(const struct log *log, uint64_t at, uint8_t *scratch, size_t *ret_size)
{
	uint64_t from = at & (log->size - 1);
	struct perf_event_header header;

	if (sizeof(header) <= log->size - from)
		memcpy(&header, log->ring + from, sizeof(header));
	else
		copy_out(log, at, &header, sizeof(header));
	*ret_size = header.size;
	if (header.size <= log->size - from)
		return log->ring + from;
	copy_out(log, at, scratch, header.size);
	return scratch;
}
