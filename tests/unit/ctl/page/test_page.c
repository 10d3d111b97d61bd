/*
 * ctl/page: a page holds its data and no stranger's text, and says what it left out.
 */
#include "ctl/page/page.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "proto/base.h"

#define DATA_BEGIN "id=\"data\">\n"

static const struct callstream_item head = {.kind = CALLSTREAM_HEAD,
					    .version = CALLSTREAM_VERSION,
					    .time = 1000,
					    .width = 300,
					    .value = 1200,
					    .name = "",
					    .image = "",
					    .file = ""};
static const struct callstream_item end = {
	.kind = CALLSTREAM_END, .value = 2, .cut = 7, .name = "", .image = "", .file = ""};

static struct callstream_item frame(bool begin, uint64_t time)
{
	return (struct callstream_item){.kind = begin ? CALLSTREAM_BEGIN : CALLSTREAM_FINISH,
					.thread = 1,
					.time = time,
					.cpu = 3,
					.function = begin ? 1 : 0,
					.insns = begin ? 0 : 200,
					.name = "",
					.image = "",
					.file = ""};
}

static char *read_page(int fd, size_t *ret_size)
{
	struct stat st;
	char *text;

	assert_int_equal(fstat(fd, &st), 0);
	text = calloc(1, (size_t)st.st_size + 1);
	assert_non_null(text);
	assert_int_equal(pread(fd, text, (size_t)st.st_size, 0), st.st_size);
	*ret_size = (size_t)st.st_size;
	return text;
}

/* Makes a page of N items; the caller's text of it. */
static char *make(const char *title, const struct callstream_item *items, size_t n,
		  uint64_t max_frames, struct page_told *told, size_t *ret_size)
{
	int fd = memfd_create("page", MFD_CLOEXEC);
	struct page *p = NULL;
	char *text;

	assert_true(fd >= 0);
	assert_int_equal(page_new(fd, title, max_frames, &p), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(page_take(p, &items[i]), 0);
	assert_int_equal(page_finish(p, told), 0);
	page_freep(&p);
	assert_null(p);
	text = read_page(fd, ret_size);
	close(fd);
	return text;
}

static int digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = strchr(digits, c);

	return at && c != '\0' ? (int)(at - digits) : -1;
}

/* The records in TEXT, decoded and decompressed by zlib. */
static uint8_t *records(const char *text, size_t *ret_size)
{
	const char *at = strstr(text, DATA_BEGIN);
	uint8_t *packed = malloc(strlen(text)), *data = malloc(1 << 20);
	uLongf size = 1 << 20, used;
	uint32_t bits = 0, n_bits = 0;
	size_t n = 0;

	assert_non_null(at);
	for (at += strlen(DATA_BEGIN); *at != '<'; at++) {
		if (*at == '\n' || *at == '=')
			continue;
		assert_true(digit(*at) >= 0);
		bits = bits << 6 | (uint32_t)digit(*at);
		n_bits += 6;
		if (n_bits < 8)
			continue;
		n_bits -= 8;
		packed[n++] = (uint8_t)(bits >> n_bits);
	}
	assert_int_equal(strncmp(at, "</script>\n", 10), 0);
	used = n;
	assert_int_equal(uncompress2(data, &size, packed, &used), Z_OK);
	assert_int_equal(used, n); /* padding is no data */
	free(packed);
	*ret_size = size;
	return data;
}

static void check_records(const char *text, const uint8_t *wanted, size_t n)
{
	size_t size = 0;
	uint8_t *data = records(text, &size);

	assert_int_equal(size, n);
	assert_memory_equal(data, wanted, n);
	free(data);
}

static void page_items_of_each_kind_become_records(void **state)
{
	const struct callstream_item items[] = {
		head,
		{.kind = CALLSTREAM_THREAD,
		 .thread = 1,
		 .pid = 300,
		 .tid = 5,
		 .name = "ab",
		 .image = "",
		 .file = ""},
		{.kind = CALLSTREAM_FUNCTION,
		 .function = 1,
		 .address = UINT64_C(0x100000002),
		 .name = "f",
		 .image = "i",
		 .file = "s",
		 .line = 4},
		{.kind = CALLSTREAM_ON,
		 .thread = 1,
		 .time = 1000,
		 .cpu = 3,
		 .name = "",
		 .image = "",
		 .file = ""},
		{.kind = CALLSTREAM_BEGIN,
		 .thread = 1,
		 .time = 1010,
		 .cpu = 3,
		 .function = 1,
		 .begin = CALLSTREAM_FOUND,
		 .name = "",
		 .image = "",
		 .file = ""},
		{.kind = CALLSTREAM_FINISH,
		 .thread = 1,
		 .time = 1020,
		 .width = 2,
		 .cpu = 3,
		 .insns = 200,
		 .end = CALLSTREAM_LOST,
		 .name = "",
		 .image = "",
		 .file = ""},
		{.kind = CALLSTREAM_OFF,
		 .thread = 1,
		 .time = 1030,
		 .cpu = 3,
		 .why = CALLSTREAM_BLOCKED,
		 .name = "",
		 .image = "",
		 .file = ""},
		{.kind = CALLSTREAM_GAP,
		 .time = 1040,
		 .width = 6,
		 .cpu = 2,
		 .name = "g",
		 .image = "",
		 .file = ""},
		{.kind = CALLSTREAM_MARK,
		 .time = 1050,
		 .value = 9,
		 .cpu = 2,
		 .name = "m",
		 .image = "",
		 .file = ""},
		end,
	};
	static const uint8_t wanted[] = {
		1,    1,    't',				       /* title */
		2,    0xe8, 7,	  0xac, 2,  0xb0, 9,		       /* head: 1000, 300, 1200 */
		3,    1,    0xac, 2,	5,  2,	  'a', 'b',	       /* thread */
		4,    1,    1,	  2,	1,  'f',  1,   'i', 1, 's', 4, /* function */
		5,    1,    3,	  6,	0,			       /* lane, on */
		0x16, 10,   1,					       /* found */
		0x2c, 10,   0xc8, 1,	2,			       /* lost, with a width */
		7,    10,   1,					       /* off: blocked */
		5,    0,    2,	  8,	40, 6,	  1,   'g',	       /* gap */
		9,    50,   0,	  9,	1,  'm',		       /* mark */
		10,   1,    7,	  0,	0,			       /* end */
	};
	struct page_told told;
	size_t size;
	char *text = make("t", items, ARRAY_SIZE(items), 100, &told, &size);

	(void)state;
	check_records(text, wanted, sizeof(wanted));
	assert_int_equal(told.frames, 1);
	assert_int_equal(told.cut, 7);
	free(text);
}

static void page_add_suspect_place_is_of_what_is_known(void **state)
{
	const struct page_suspect all = {.kind = "k",
					 .text = "ab",
					 .function = "f",
					 .from = 900, /* before the first time */
					 .to = 1040,
					 .has_time = true,
					 .has_tid = true,
					 .has_cpu = true,
					 .tid = 7,
					 .cpu = 3};
	const struct page_suspect early = {
		.kind = "", .text = "", .function = "", .from = 10, .to = 20, .has_time = true};
	static const uint8_t wanted[] = {
		1,   0,				  /* title */
		2,   0xe8, 7,	0xac, 2, 0xb0, 9, /* head */
		11,				  /* suspects were looked for */
		12,  7,	   0,	40,   7, 3,    1, 'k', 2,
		'a', 'b',  1,	'f',			  /* of time, thread and CPU */
		12,  0,	   0,	0,    0, 0,    0, 0,   0, /* of no place in the page */
		13,  2,	   'o', 'n',			  /* the occasion */
	};
	int fd = memfd_create("page", MFD_CLOEXEC);
	CLEANUP(page_freep) struct page *p = NULL;
	size_t size;
	char *text;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(page_new(fd, "", 100, &p), 0);
	assert_int_equal(page_looked(p), -ENODATA);
	assert_int_equal(page_set_occasion(p, "on"), -ENODATA);
	assert_int_equal(page_add_suspect(p, &all), -ENODATA);
	assert_int_equal(page_take(p, &head), 0);
	assert_int_equal(page_looked(p), 0);
	assert_int_equal(page_add_suspect(p, &all), 0);
	assert_int_equal(page_add_suspect(p, &early), 0);
	assert_int_equal(page_set_occasion(p, "on"), 0);
	assert_int_equal(page_finish(p, NULL), 0);
	text = read_page(fd, &size);
	check_records(text, wanted, sizeof(wanted));
	free(text);
	close(fd);
}

static void page_hostile_texts_are_not_in_the_page(void **state)
{
	static const char *const hostile[] = {"</script><script>alert(1)</script>",
					      "<img src=x onerror=alert(1)>", "\xe2\x80\xaetxt.exe",
					      "<!--<script>", "]]>\"'><svg/onload=alert(1)>"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
		const char *bad = hostile[i];
		const struct callstream_item items[] = {
			head,
			{.kind = CALLSTREAM_THREAD,
			 .thread = 1,
			 .name = bad,
			 .image = "",
			 .file = ""},
			{.kind = CALLSTREAM_FUNCTION,
			 .function = 1,
			 .name = bad,
			 .image = bad,
			 .file = bad},
			{.kind = CALLSTREAM_GAP,
			 .time = 1000,
			 .name = bad,
			 .image = "",
			 .file = ""},
			{.kind = CALLSTREAM_MARK,
			 .time = 1000,
			 .name = bad,
			 .image = "",
			 .file = ""},
			end,
		};
		size_t size, n;
		char *text = make(bad, items, ARRAY_SIZE(items), 100, NULL, &size);
		uint8_t *data = records(text, &n);

		assert_null(memmem(text, size, bad, strlen(bad)));
		assert_int_equal(strlen(text), size);
		assert_non_null(memmem(data, n, bad, strlen(bad)));
		free(data);
		free(text);
	}
}

static void page_same_items_make_the_same_page(void **state)
{
	const struct callstream_item items[] = {head, frame(true, 1001), frame(false, 1002), end};
	size_t size, size2;
	char *text = make("t", items, ARRAY_SIZE(items), 100, NULL, &size);
	char *text2 = make("t", items, ARRAY_SIZE(items), 100, NULL, &size2);

	(void)state;
	assert_int_equal(size, size2);
	assert_memory_equal(text, text2, size);
	free(text);
	free(text2);
}

static void page_frames_beyond_the_limit_are_counted_and_leave_no_end(void **state)
{
	/* The second frame is within the first one, and the third one behind both. */
	const struct callstream_item items[] = {head,
						frame(true, 1001),
						frame(true, 1002),
						frame(false, 1003),
						frame(false, 1004),
						frame(true, 1005),
						frame(false, 1006),
						end};
	static const uint8_t wanted[] = {1,    1, 't', 2,    0xe8, 7,	 0xac, 2,  0xb0, 9, 5, 1, 3,
					 0x10, 1, 1,   0x20, 3,	   0xc8, 1,    10, 1,	 7, 2, 0};
	struct page_told told;
	size_t size;
	char *text = make("t", items, ARRAY_SIZE(items), 1, &told, &size);

	(void)state;
	check_records(text, wanted, sizeof(wanted));
	assert_int_equal(told.frames, 1);
	assert_int_equal(told.left_out, 2);
	free(text);
}

static void page_frames_too_deep_are_counted(void **state)
{
	int fd = memfd_create("page", MFD_CLOEXEC);
	struct page_told told;
	struct page *p = NULL;

	(void)state;
	assert_int_equal(page_new(fd, "t", PAGE_MAX_FRAMES, &p), 0);
	assert_int_equal(page_take(p, &head), 0);
	for (uint64_t i = 0; i < PAGE_MAX_DEPTH + 3; i++) {
		const struct callstream_item item = frame(true, 1000 + i);

		assert_int_equal(page_take(p, &item), 0);
	}
	assert_int_equal(page_finish(p, &told), 0);
	assert_int_equal(told.frames, PAGE_MAX_DEPTH);
	assert_int_equal(told.left_out, 3);
	page_freep(&p);
	close(fd);
}

static void page_events_without_a_valid_place_are_repaired_and_counted(void **state)
{
	/* An end without a begin; a begin before the first time; an end before its begin. */
	const struct callstream_item items[] = {
		head, frame(false, 1001), frame(true, 900), frame(true, 1010), frame(false, 1005),
		end};
	static const uint8_t wanted[] = {1, 1,	  't', 2,    0xe8, 7, 0xac, 2,	0xb0, 9,
					 5, 1,	  3,   0x10, 0,	   1, 0x10, 10, 1,    0x20,
					 0, 0xc8, 1,   10,   2,	   7, 0,    3};
	struct page_told told;
	size_t size;
	char *text = make("t", items, ARRAY_SIZE(items), 100, &told, &size);

	(void)state;
	check_records(text, wanted, sizeof(wanted));
	assert_int_equal(told.repaired, 3);
	free(text);
}

static void page_stream_without_its_end_has_no_end_record(void **state)
{
	static const uint8_t wanted[] = {1, 1, 't', 2, 0xe8, 7, 0xac, 2, 0xb0, 9};
	size_t size;
	char *text = make("t", &head, 1, 100, NULL, &size);

	(void)state;
	check_records(text, wanted, sizeof(wanted));
	free(text);
}

static void page_take_item_that_cannot_come_is_ebadmsg(void **state)
{
	struct callstream_item item = frame(true, 1001);
	int fd = memfd_create("page", MFD_CLOEXEC);
	struct page *p = NULL;

	(void)state;
	assert_int_equal(page_new(fd, "t", 100, &p), 0);
	assert_int_equal(page_take(p, &item), -EBADMSG); /* before the head */
	assert_int_equal(page_take(p, &head), 0);
	assert_int_equal(page_take(p, &head), -EBADMSG);
	item.thread = PAGE_MAX_NUMBER + 1;
	assert_int_equal(page_take(p, &item), -EBADMSG);
	item = frame(true, 1001);
	item.function = PAGE_MAX_NUMBER + 1;
	assert_int_equal(page_take(p, &item), -EBADMSG);
	assert_int_equal(page_take(p, &end), 0);
	item = frame(true, 1001);
	assert_int_equal(page_take(p, &item), -EBADMSG); /* behind the end */
	page_freep(&p);
	close(fd);
}

static void page_finish_without_a_head_is_enodata(void **state)
{
	int fd = memfd_create("page", MFD_CLOEXEC);
	struct page *p = NULL;

	(void)state;
	assert_int_equal(page_new(fd, "t", 100, &p), 0);
	assert_int_equal(page_finish(p, NULL), -ENODATA);
	page_freep(&p);
	close(fd);
}

static void page_output_that_is_full_is_its_error(void **state)
{
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct page *p = NULL;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(page_new(fd, "t", 100, &p), -ENOSPC);
	assert_null(p);
	close(fd);
}

/* More data than one line of base64, which does not compress. */
static void page_long_data_decodes(void **state)
{
	int fd = memfd_create("page", MFD_CLOEXEC);
	struct page *p = NULL;
	uint64_t random = 1, time = 1000;
	size_t size, n;
	uint8_t *data;
	char *text;

	(void)state;
	assert_int_equal(page_new(fd, "t", PAGE_MAX_FRAMES, &p), 0);
	assert_int_equal(page_take(p, &head), 0);
	for (unsigned i = 0; i < 50000; i++) {
		struct callstream_item item;

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
		time += random >> 44;
		item = frame(i % 2 == 0, time);
		item.width = random >> 33;
		assert_int_equal(page_take(p, &item), 0);
	}
	assert_int_equal(page_finish(p, NULL), 0);
	page_freep(&p);
	text = read_page(fd, &size);
	data = records(text, &n);
	assert_true(n > 400000);
	assert_non_null(strchr(strstr(text, DATA_BEGIN) + strlen(DATA_BEGIN), '\n'));
	free(data);
	free(text);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page_items_of_each_kind_become_records),
		cmocka_unit_test(page_add_suspect_place_is_of_what_is_known),
		cmocka_unit_test(page_hostile_texts_are_not_in_the_page),
		cmocka_unit_test(page_same_items_make_the_same_page),
		cmocka_unit_test(page_frames_beyond_the_limit_are_counted_and_leave_no_end),
		cmocka_unit_test(page_frames_too_deep_are_counted),
		cmocka_unit_test(page_events_without_a_valid_place_are_repaired_and_counted),
		cmocka_unit_test(page_stream_without_its_end_has_no_end_record),
		cmocka_unit_test(page_take_item_that_cannot_come_is_ebadmsg),
		cmocka_unit_test(page_finish_without_a_head_is_enodata),
		cmocka_unit_test(page_output_that_is_full_is_its_error),
		cmocka_unit_test(page_long_data_decodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
