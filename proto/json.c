/*
 * Writes JSON as a stream, so that a report of any length needs constant memory.
 */
#include "proto/json.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "proto/memfd.h"

#define BUFFER_SIZE 65536u
#define MAX_DEPTH   64u
/* Number.MAX_SAFE_INTEGER + 1: a double holds all integers up to this one exactly. */
#define EXACT_MAX  (UINT64_C(1) << 53)
#define MAX_DIGITS 17

struct level {
	bool array;
	bool filled;
};

struct json_writer {
	struct bytes_out *out; /* the caller's, or own */
	struct bytes_out own;  /* the buffer before FD */
	size_t start;	       /* where the document begins in OUT */
	int fd;		       /* -EBADF: the document stays in OUT */
	uint64_t limit;
	uint64_t flushed;
	int error;
	bool pretty;
	bool complete;
	unsigned depth;
	struct level levels[MAX_DEPTH];
};

static int writer_new(bool pretty, struct json_writer **ret)
{
	struct json_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->fd = -EBADF;
	w->limit = UINT64_MAX;
	w->pretty = pretty;
	*ret = w;
	return 0;
}

int json_writer_new_fd(int fd, uint64_t limit, bool pretty, struct json_writer **ret)
{
	struct json_writer *w;
	int r;

	assert(fd >= 0);
	r = writer_new(pretty, &w);
	if (r < 0)
		return r;
	bytes_out_init(&w->own, BUFFER_SIZE);
	w->out = &w->own;
	w->fd = fd;
	if (limit > 0)
		w->limit = limit;
	*ret = w;
	return 0;
}

int json_writer_new_bytes(struct bytes_out *out, bool pretty, struct json_writer **ret)
{
	struct json_writer *w;
	int r;

	r = writer_new(pretty, &w);
	if (r < 0)
		return r;
	w->out = out;
	w->start = out->size;
	*ret = w;
	return 0;
}

void json_writer_free(struct json_writer *w)
{
	if (!w)
		return;
	bytes_out_done(&w->own);
	free(w);
}

void json_writer_freep(struct json_writer **w)
{
	json_writer_free(*w);
}

uint64_t json_writer_size(const struct json_writer *w)
{
	return w->flushed + (w->out->size - w->start);
}

static void flush(struct json_writer *w)
{
	if (w->fd < 0 || w->error)
		return;
	w->error = memfd_write_all(w->fd, w->own.data, w->own.size);
	if (!w->error)
		w->flushed += w->own.size;
	bytes_out_reset(&w->own);
}

/* What does not fit into the buffer, or goes beyond the limit. */
static void put_rest(struct json_writer *w, const char *data, size_t size)
{
	if (w->error)
		return;
	if (size > w->limit - json_writer_size(w)) {
		w->error = -E2BIG;
		return;
	}
	while (w->fd >= 0 && !w->error && size > BUFFER_SIZE - w->own.size) {
		size_t part = BUFFER_SIZE - w->own.size;

		bytes_put_block(&w->own, data, part);
		flush(w);
		data += part;
		size -= part;
	}
	bytes_put_block(w->out, data, size);
	if (!w->error)
		w->error = w->out->error;
}

static inline void put(struct json_writer *w, const char *data, size_t size)
{
	struct bytes_out *out = w->out;

	if (size == 0)
		return;
	if (w->error || out->error || size > out->capacity - out->size ||
	    size > w->limit - json_writer_size(w)) {
		put_rest(w, data, size);
		return;
	}
	memcpy(out->data + out->size, data, size);
	out->size += size;
}

static inline void put_text(struct json_writer *w, const char *text)
{
	put(w, text, strlen(text));
}

int json_writer_finish(struct json_writer *w)
{
	assert(w->error || (w->complete && w->depth == 0));
	if (w->pretty || w->fd >= 0)
		put_text(w, "\n");
	flush(w);
	return w->error;
}

static void put_line(struct json_writer *w)
{
	if (!w->pretty)
		return;
	put_text(w, "\n");
	for (unsigned i = 0; i < w->depth; i++)
		put_text(w, "  ");
}

/* Returns the length of the well-formed UTF-8 character at S, or 0 (Unicode 15, table 3-7). */
static size_t utf8_length(const uint8_t *s, size_t size)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (n == 0 || s[0] > 0xf4 || n > size)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90))
		return 0; /* overlong */
	if ((s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0; /* a surrogate, or beyond U+10FFFF */
	return n;
}

static uint32_t utf8_decode(const uint8_t *s, size_t n)
{
	uint32_t c = n == 1 ? s[0] : s[0] & (0x7fu >> n);

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

/* Whether the character C must be escaped: quotes; C0 controls, and C1 controls, which terminals
 * obey; line separators; and what reorders its neighbours: marks, embeddings, overrides, isolates
 * (Unicode standard annex 9, table 4). */
static bool is_special(uint32_t c)
{
	return c < 0x20 || c == '"' || c == '\\' || (c >= 0x7f && c < 0xa0) || c == 0x61c ||
	       c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* How many characters at S, one byte each, are written as they are. */
static size_t plain_length(const uint8_t *s, const uint8_t *end)
{
	const uint8_t *at = s;

	while (at < end && *at >= 0x20 && *at < 0x7f && *at != '"' && *at != '\\')
		at++;
	return (size_t)(at - s);
}

static void put_quoted(struct json_writer *w, const char *v, size_t size)
{
	const uint8_t *s = (const uint8_t *)v, *plain = s, *end = s + size;
	char text[8];

	put_text(w, "\"");
	for (s += plain_length(s, end); s < end; s += plain_length(s, end)) {
		size_t n = utf8_length(s, (size_t)(end - s));
		uint32_t c = utf8_decode(s, n);

		if (n > 0 && !is_special(c)) {
			s += n;
			continue;
		}
		put(w, (const char *)plain, (size_t)(s - plain));
		if (n == 0)
			strcpy(text, "\xef\xbf\xbd"); /* U+FFFD */
		else if (c == '"' || c == '\\')
			snprintf(text, sizeof(text), "\\%c", (char)c);
		else if (c == '\n')
			strcpy(text, "\\n");
		else if (c == '\t')
			strcpy(text, "\\t");
		else
			snprintf(text, sizeof(text), "\\u%04x", (unsigned)c);
		put_text(w, text);
		s += MAX_OF(n, (size_t)1);
		plain = s;
	}
	put(w, (const char *)plain, (size_t)(s - plain));
	put_text(w, "\"");
}

/* A key is ours, and needs no escapes. */
static void put_key(struct json_writer *w, const char *key)
{
	put_text(w, "\"");
	put_text(w, key);
	put_text(w, w->pretty ? "\": " : "\":");
}

/* Writes what comes before a value: comma, new line, key. */
static void begin_value(struct json_writer *w, const char *key)
{
	struct level *l;

	if (w->depth == 0) {
		assert(!w->complete && !key);
		w->complete = true;
		return;
	}
	l = &w->levels[w->depth - 1];
	assert(l->array == !key);
	if (l->filled)
		put_text(w, ",");
	l->filled = true;
	put_line(w);
	if (key)
		put_key(w, key);
}

static void put_value(struct json_writer *w, const char *key, const char *text)
{
	begin_value(w, key);
	put_text(w, text);
}

static void begin_level(struct json_writer *w, const char *key, bool array)
{
	put_value(w, key, array ? "[" : "{");
	assert(w->depth < MAX_DEPTH);
	w->levels[w->depth++] = (struct level){.array = array};
}

static void end_level(struct json_writer *w, bool array)
{
	bool filled;

	assert(w->depth > 0 && w->levels[w->depth - 1].array == array);
	filled = w->levels[--w->depth].filled;
	if (filled)
		put_line(w);
	put_text(w, array ? "]" : "}");
}

void json_begin_object(struct json_writer *w, const char *key)
{
	begin_level(w, key, false);
}

void json_end_object(struct json_writer *w)
{
	end_level(w, false);
}

void json_begin_array(struct json_writer *w, const char *key)
{
	begin_level(w, key, true);
}

void json_end_array(struct json_writer *w)
{
	end_level(w, true);
}

void json_null(struct json_writer *w, const char *key)
{
	put_value(w, key, "null");
}

void json_boolean(struct json_writer *w, const char *key, bool v)
{
	put_value(w, key, v ? "true" : "false");
}

/* V, negative if MINUS. A report has many numbers, and printf() takes ten times as long. */
static void put_number(struct json_writer *w, const char *key, uint64_t v, bool minus)
{
	const char *quote = v > EXACT_MAX ? "\"" : "";
	char text[24], *end = text + sizeof(text), *at = end;

	do
		*--at = (char)('0' + v % 10);
	while ((v /= 10) > 0);
	if (minus)
		*--at = '-';
	put_value(w, key, quote);
	put(w, at, (size_t)(end - at));
	put_text(w, quote);
}

void json_u64(struct json_writer *w, const char *key, uint64_t v)
{
	put_number(w, key, v, false);
}

void json_i64(struct json_writer *w, const char *key, int64_t v)
{
	put_number(w, key, v < 0 ? -(uint64_t)v : (uint64_t)v, v < 0);
}

void json_fixed(struct json_writer *w, const char *key, double v, int digits)
{
	char text[352]; /* DBL_MAX has 309 digits before the point */
	size_t size, whole;
	bool exact;

	if (!isfinite(v)) {
		json_null(w, key);
		return;
	}
	digits = MIN_OF(MAX_OF(digits, 0), MAX_DIGITS);
	size = (size_t)snprintf(text, sizeof(text), "%.*f", digits, v);
	/* The locale's decimal point may be any text: use the digits before and behind it. */
	whole = strspn(text, "-0123456789");
	exact = fabs(v) <= (double)EXACT_MAX;
	begin_value(w, key);
	put_text(w, exact ? "" : "\"");
	put(w, text, whole);
	put_text(w, digits > 0 ? "." : "");
	put(w, text + size - digits, (size_t)digits);
	put_text(w, exact ? "" : "\"");
}

void json_string(struct json_writer *w, const char *key, const char *v)
{
	if (v)
		json_string_n(w, key, v, strlen(v));
	else
		json_null(w, key);
}

void json_string_n(struct json_writer *w, const char *key, const char *v, size_t size)
{
	begin_value(w, key);
	put_quoted(w, v, size);
}

void json_hex(struct json_writer *w, const char *key, uint64_t v)
{
	char text[32];

	snprintf(text, sizeof(text), "\"0x%" PRIx64 "\"", v);
	put_value(w, key, text);
}
