#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "proto/base.h"
#include "proto/json.h"
#include "proto/memfd.h"

struct document {
	struct bytes_out out;
	struct json_writer *w;
};

static void begin(struct document *d, bool pretty)
{
	bytes_out_init(&d->out, SIZE_MAX);
	assert_int_equal(json_writer_new_bytes(&d->out, pretty, &d->w), 0);
}

/* Finishes the document, and returns it as json-c parses it in strict mode. */
static struct json_object *end(struct document *d)
{
	struct json_tokener *tok = json_tokener_new();
	struct json_object *o;

	assert_int_equal(json_writer_finish(d->w), 0);
	assert_int_equal(json_writer_size(d->w), d->out.size);
	while (d->out.size > 0 && d->out.data[d->out.size - 1] == '\n')
		d->out.size--;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	o = json_tokener_parse_ex(tok, (const char *)d->out.data, (int)d->out.size);
	assert_int_equal(json_tokener_get_error(tok), json_tokener_success);
	assert_int_equal(json_tokener_get_parse_end(tok), d->out.size);
	json_tokener_free(tok);
	json_writer_free(d->w);
	return o;
}

static void check_text(struct document *d, const char *expected)
{
	assert_int_equal(json_writer_finish(d->w), 0);
	bytes_put_u8(&d->out, 0);
	assert_string_equal((char *)d->out.data, expected);
	json_writer_free(d->w);
	bytes_out_done(&d->out);
}

static void write_everything(struct json_writer *w)
{
	json_begin_object(w, NULL);
	json_begin_object(w, "empty");
	json_end_object(w);
	json_begin_array(w, "list");
	json_u64(w, NULL, 1);
	json_begin_object(w, NULL);
	json_null(w, "n");
	json_boolean(w, "t", true);
	json_end_object(w);
	json_begin_array(w, NULL);
	json_end_array(w);
	json_end_array(w);
	json_i64(w, "i", -5);
	json_fixed(w, "f", 2.5, 3);
	json_string(w, "s", "x");
	json_string(w, "none", NULL);
	json_hex(w, "h", 0xfffffffffffffabc);
	json_end_object(w);
}

static void json_write_everything_is_compact(void **state)
{
	struct document d;

	(void)state;
	begin(&d, false);
	write_everything(d.w);
	check_text(&d, "{\"empty\":{},\"list\":[1,{\"n\":null,\"t\":true},[]],\"i\":-5,\"f\":2.500,"
		       "\"s\":\"x\",\"none\":null,\"h\":\"0xfffffffffffffabc\"}");
}

static void json_write_pretty_indents(void **state)
{
	struct document d;

	(void)state;
	begin(&d, true);
	json_begin_object(d.w, NULL);
	json_begin_array(d.w, "a");
	json_u64(d.w, NULL, 1);
	json_u64(d.w, NULL, 2);
	json_end_array(d.w);
	json_begin_array(d.w, "b");
	json_end_array(d.w);
	json_end_object(d.w);
	check_text(&d, "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": []\n}\n");
}

static void json_write_pretty_and_compact_mean_the_same(void **state)
{
	struct document a, b;
	struct json_object *x, *y;

	(void)state;
	begin(&a, false);
	write_everything(a.w);
	begin(&b, true);
	write_everything(b.w);
	x = end(&a);
	y = end(&b);
	assert_true(json_object_equal(x, y));
	json_object_put(x);
	json_object_put(y);
	bytes_out_done(&a.out);
	bytes_out_done(&b.out);
}

static void json_string_is_escaped(void **state)
{
	static const struct {
		const char *in;
		size_t size;
		const char *out;
	} cases[] = {
		{"plain", 5, "\"plain\""},
		{"a\"b\\c/", 6, "\"a\\\"b\\\\c/\""},
		{"\n\t\r\b\f\x01\x1f\x7f", 8,
		 "\"\\n\\t\\u000d\\u0008\\u000c\\u0001\\u001f\\u007f\""},
		{"a\0b", 3, "\"a\\u0000b\""},
		{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9,
		 "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
		{"\xc2\x9b", 2, "\"\\u009b\""},
		{"\xc2\xa0", 2, "\"\xc2\xa0\""},
		{"\xe2\x80\xae\xe2\x80\xad", 6, "\"\\u202e\\u202d\""},
		{"\xe2\x81\xa6\xe2\x81\xa9", 6, "\"\\u2066\\u2069\""},
		{"\xe2\x80\x8f\xd8\x9c", 5, "\"\\u200f\\u061c\""},
		{"\xe2\x80\xa7\xe2\x81\xa5", 6, "\"\xe2\x80\xa7\xe2\x81\xa5\""},
		{"\x80", 1, "\"\xef\xbf\xbd\""},
		{"\xc0\x80", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\xc3", 1, "\"\xef\xbf\xbd\""},
		{"\xe0\x9f\xbf", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\xf4\x8f\xbf\xbf", 4, "\"\xf4\x8f\xbf\xbf\""},
		{"\xf4\x90\x80\x80", 4, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\xf5\x80\x80\x80", 4, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
		{"\xff\xfe", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct document d;

		begin(&d, false);
		json_string_n(d.w, NULL, cases[i].in, cases[i].size);
		check_text(&d, cases[i].out);
	}
}

static uint32_t random_next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* Any bytes: json-c must accept the text, and valid UTF-8 must come back unchanged. */
static void json_string_random_is_read_by_json_c(void **state)
{
	uint32_t seed = 1;

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		char s[64], ascii[64];
		size_t size = random_next(&seed) % sizeof(s);
		struct document d;
		struct json_object *o;

		for (size_t i = 0; i < size; i++) {
			s[i] = (char)random_next(&seed);
			ascii[i] = (char)(random_next(&seed) & 0x7f);
		}
		begin(&d, round % 2);
		json_begin_array(d.w, NULL);
		json_string_n(d.w, NULL, s, size);
		json_string_n(d.w, NULL, ascii, size);
		json_end_array(d.w);
		o = end(&d);
		assert_int_equal(json_object_array_length(o), 2);
		assert_int_equal(json_object_get_string_len(json_object_array_get_idx(o, 1)), size);
		assert_memory_equal(json_object_get_string(json_object_array_get_idx(o, 1)), ascii,
				    size);
		json_object_put(o);
		bytes_out_done(&d.out);
	}
}

static void json_number_above_2_53_is_a_string(void **state)
{
	struct document d;

	(void)state;
	begin(&d, false);
	json_begin_array(d.w, NULL);
	json_u64(d.w, NULL, UINT64_C(1) << 53);
	json_u64(d.w, NULL, (UINT64_C(1) << 53) + 1);
	json_u64(d.w, NULL, UINT64_MAX);
	json_i64(d.w, NULL, -(INT64_C(1) << 53));
	json_i64(d.w, NULL, -(INT64_C(1) << 53) - 1);
	json_i64(d.w, NULL, INT64_MIN);
	json_i64(d.w, NULL, INT64_MAX);
	json_end_array(d.w);
	check_text(&d, "[9007199254740992,\"9007199254740993\",\"18446744073709551615\","
		       "-9007199254740992,\"-9007199254740993\",\"-9223372036854775808\","
		       "\"9223372036854775807\"]");
}

static void json_fixed_has_its_digits(void **state)
{
	struct document d;

	(void)state;
	begin(&d, false);
	json_begin_array(d.w, NULL);
	json_fixed(d.w, NULL, 99.996, 2);
	json_fixed(d.w, NULL, -0.5, 0);
	json_fixed(d.w, NULL, 1.0 / 3, 5);
	json_fixed(d.w, NULL, NAN, 2);
	json_fixed(d.w, NULL, -INFINITY, 2);
	json_fixed(d.w, NULL, 1e17, 1);
	json_end_array(d.w);
	check_text(&d, "[100.00,-0,0.33333,null,null,\"100000000000000000.0\"]");
	begin(&d, false);
	json_fixed(d.w, NULL, -DBL_MAX, 100);
	assert_int_equal(json_writer_finish(d.w), 0);
	assert_int_equal(d.out.size, 2 + 1 + 309 + 1 + 17);
	json_writer_free(d.w);
	bytes_out_done(&d.out);
}

static void json_writer_fd_writes_more_than_its_buffer(void **state)
{
	CLEANUP_CLOSE int fd = -EBADF;
	CLEANUP(json_writer_freep) struct json_writer *w = NULL;
	CLEANUP_FREE char *long_text = malloc(300000);

	(void)state;
	memset(long_text, 'l', 299999);
	long_text[299999] = 0;
	assert_int_equal(memfd_new("json", 0, &fd), 0);
	assert_int_equal(json_writer_new_fd(fd, 0, false, &w), 0);
	json_begin_array(w, NULL);
	for (unsigned i = 0; i < 50000; i++)
		json_u64(w, NULL, 1);
	json_string(w, NULL, long_text);
	json_end_array(w);
	assert_int_equal(json_writer_size(w), 2 + 50000 * 2 + 300001);
	assert_int_equal(json_writer_finish(w), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), 2 + 50000 * 2 + 300001 + 1); /* newline */
}

static void json_writer_limit_is_never_exceeded(void **state)
{
	(void)state;
	for (uint64_t limit = 1; limit < 40; limit++) {
		CLEANUP_CLOSE int fd = -EBADF;
		CLEANUP(json_writer_freep) struct json_writer *w = NULL;

		assert_int_equal(memfd_new("json", 0, &fd), 0);
		assert_int_equal(json_writer_new_fd(fd, limit, false, &w), 0);
		json_begin_array(w, NULL);
		for (unsigned i = 0; i < 10; i++)
			json_u64(w, NULL, 22);
		json_end_array(w); /* 31 bytes, and a newline at the end */
		assert_int_equal(json_writer_finish(w), limit < 32 ? -E2BIG : 0);
		assert_true((uint64_t)lseek(fd, 0, SEEK_END) <= limit);
	}
}

static void json_writer_write_error_is_reported_once_at_the_end(void **state)
{
	CLEANUP_CLOSE int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	CLEANUP(json_writer_freep) struct json_writer *w = NULL;
	CLEANUP_FREE char *long_text = calloc(1, 200000);

	(void)state;
	if (fd < 0)
		skip();
	memset(long_text, 'l', 199999);
	assert_int_equal(json_writer_new_fd(fd, 0, false, &w), 0);
	json_begin_array(w, NULL);
	json_string(w, NULL, long_text);
	json_string(w, NULL, long_text);
	assert_int_equal(json_writer_finish(w), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_write_everything_is_compact),
		cmocka_unit_test(json_write_pretty_indents),
		cmocka_unit_test(json_write_pretty_and_compact_mean_the_same),
		cmocka_unit_test(json_string_is_escaped),
		cmocka_unit_test(json_string_random_is_read_by_json_c),
		cmocka_unit_test(json_number_above_2_53_is_a_string),
		cmocka_unit_test(json_fixed_has_its_digits),
		cmocka_unit_test(json_writer_fd_writes_more_than_its_buffer),
		cmocka_unit_test(json_writer_limit_is_never_exceeded),
		cmocka_unit_test(json_writer_write_error_is_reported_once_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
