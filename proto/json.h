/*
 * A streaming JSON writer: constant memory, correct escaping, one error to test at the end. Reports
 * are never built as a tree (measured: 1 M objects cost json-c 1.2 GB, this writer 1 MB).
 *
 * Strings may hold anything: invalid UTF-8 becomes U+FFFD, controls are escaped. Keys are ours.
 * KEY is NULL inside arrays. Numbers above 2^53 come out as decimal strings, as JavaScript would
 * lose them; addresses always as "0x..." strings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bytes.h"

struct json_writer;

/* Writes to FD (borrowed) through a buffer of its own; at most LIMIT bytes (0: no limit).
 * PRETTY indents by two blanks. Returns 0 or -ENOMEM. */
int json_writer_new_fd(int fd, uint64_t limit, bool pretty, struct json_writer **ret);
/* Appends to OUT (borrowed). */
int json_writer_new_bytes(struct bytes_out *out, bool pretty, struct json_writer **ret);
/* Flushes; a document that goes to an fd, or is pretty, ends with a newline. Returns 0 or the first
 * error: -errno of write, -E2BIG when LIMIT was reached. The document must be complete (asserted
 * unless there was an error). */
int json_writer_finish(struct json_writer *w);
void json_writer_free(struct json_writer *w);
void json_writer_freep(struct json_writer **w);
/* Bytes produced so far, buffered ones included. */
uint64_t json_writer_size(const struct json_writer *w);

void json_begin_object(struct json_writer *w, const char *key);
void json_end_object(struct json_writer *w);
void json_begin_array(struct json_writer *w, const char *key);
void json_end_array(struct json_writer *w);
void json_null(struct json_writer *w, const char *key);
void json_boolean(struct json_writer *w, const char *key, bool v);
/* Function-like, because json-c has a type of that name. */
#define json_bool(w, key, v) json_boolean(w, key, v)
void json_u64(struct json_writer *w, const char *key, uint64_t v);
void json_i64(struct json_writer *w, const char *key, int64_t v);
/* A number with DIGITS digits after the point. */
void json_fixed(struct json_writer *w, const char *key, double v, int digits);
/* NULL gives null. */
void json_string(struct json_writer *w, const char *key, const char *v);
void json_string_n(struct json_writer *w, const char *key, const char *v, size_t size);
/* "0x..." in lower case. */
void json_hex(struct json_writer *w, const char *key, uint64_t v);
