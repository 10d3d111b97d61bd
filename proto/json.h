/*
 * A streaming JSON writer: constant memory, correct escaping, one error to test at the end.
 *
 * A string may contain anything: invalid UTF-8 becomes U+FFFD, and control characters and
 * characters that reorder text are escaped. Keys are ours; KEY is NULL inside arrays. Numbers above
 * 2^53 become decimal strings, because JavaScript would round them; addresses are always "0x..."
 * strings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bytes.h"

struct json_writer;

/* Writes to FD (borrowed) through a buffer, at most LIMIT bytes (0: no limit). PRETTY indents by
 * two blanks. 0 or -ENOMEM. */
int json_writer_new_fd(int fd, uint64_t limit, bool pretty, struct json_writer **ret);
/* Appends to OUT (borrowed). */
int json_writer_new_bytes(struct bytes_out *out, bool pretty, struct json_writer **ret);
/* Writes what is left. A document for an fd, or a pretty document, ends with a newline. 0 or the
 * first error: -errno of write(2), -E2BIG: LIMIT was reached. The document must be complete unless
 * there was an error (asserted). */
int json_writer_finish(struct json_writer *w);
void json_writer_free(struct json_writer *w);
void json_writer_freep(struct json_writer **w);
/* Returns the size of the document so far. */
uint64_t json_writer_size(const struct json_writer *w);

void json_begin_object(struct json_writer *w, const char *key);
void json_end_object(struct json_writer *w);
void json_begin_array(struct json_writer *w, const char *key);
void json_end_array(struct json_writer *w);
void json_null(struct json_writer *w, const char *key);
void json_boolean(struct json_writer *w, const char *key, bool v);
/* A macro with arguments, because json-c has a type with this name. */
#define json_bool(w, key, v) json_boolean(w, key, v)
void json_u64(struct json_writer *w, const char *key, uint64_t v);
void json_i64(struct json_writer *w, const char *key, int64_t v);
/* A number with DIGITS digits after the point. */
void json_fixed(struct json_writer *w, const char *key, double v, int digits);
/* V NULL writes null. */
void json_string(struct json_writer *w, const char *key, const char *v);
void json_string_n(struct json_writer *w, const char *key, const char *v, size_t size);
/* Writes "0x..." in lower case. */
void json_hex(struct json_writer *w, const char *key, uint64_t v);
