/*
 * The compressed records of a perf.data (`perf record -z'): all of them together are one stream of
 * zstd, whose content is a stream of records, each of which may begin in one and end in another.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/perf/perfdata.h"

struct import_zstd;

/* FN gets each record, valid until it returns; another result than 0 ends it. 0 or -ENOMEM. */
int import_zstd_new(int (*fn)(void *userdata, const struct perfdata_record *record), void *userdata,
		    struct import_zstd **ret);
void import_zstd_free(struct import_zstd *z);
/* The next piece of the stream. 0; -EBADMSG: it is damaged; -E2BIG: it grows beyond reason;
 * -ENOMEM; or what FN returned. */
int import_zstd_feed(struct import_zstd *z, const uint8_t *bytes, size_t size);
/* Bytes of a record whose end never came. */
size_t import_zstd_left(const struct import_zstd *z);
