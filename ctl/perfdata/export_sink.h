/*
 * A file written from its beginning to its end: small pieces collected, large ones passed on from
 * where they lie. Remembers its first failure, so that a caller tests once, at the end.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/bytes.h"

struct sink {
	int fd; /* borrowed, at its position */
	struct bytes_out pending;
	uint64_t bytes; /* given, written or not */
	int error;	/* 0 or -errno */
};

void sink_init(struct sink *s, int fd);
void sink_done(struct sink *s);
void sink_block(struct sink *s, const void *data, size_t size);
/* What is collected goes out. 0 or the sticky -errno. */
int sink_flush(struct sink *s);
