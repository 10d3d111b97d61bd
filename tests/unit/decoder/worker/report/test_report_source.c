/*
 * decoder/worker/report/report_source.c: a made bundle's report, with what symbols_lines(),
 * symbols_dwarf() and demangle() would have said of its program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "proto/base.h"
#include "proto/report.h"
#include "sideband/dwarf/dwarf.h"
#include "sideband/symbols/symbols.h"
#include "tests/unit/decoder/worker/report/made_report.h"

#define LEAF_OFFSET (MAKE_LEAF - MAKE_BASE)
#define MAIN_OFFSET (MAKE_MAIN - MAKE_BASE)
#define USER	    1000u

/* The answers of the wrapped functions, set by each test, and counts of their calls. */
static struct {
	enum symbols_dwarf dwarf;
	bool no_lines, no_file, many_lines;
	size_t name_size; /* of "leaf"; 0: no name has another */
	size_t lines_asked, names_asked, other_images;
} say;

size_t __wrap_symbols_lines(struct symbols *s, uint32_t image, uint64_t offset,
			    struct dwarf_frame *ret, size_t max);
enum symbols_dwarf __wrap_symbols_dwarf(const struct symbols *s, uint32_t image);
char *__wrap_demangle(const char *name);

/* In leaf: inlined "inner", line 3, called from "outer", line 5, that from line 7. */
static size_t lines_in_leaf(struct dwarf_frame *ret)
{
	ret[0] = (struct dwarf_frame){"inner", say.no_file ? NULL : "/src/in.h", 3, 1};
	ret[1] = (struct dwarf_frame){NULL, "/src/out\n.h", 5, 1};
	ret[2] = (struct dwarf_frame){"leaf", "leaf.c", say.no_file ? 0 : 7, 1};
	return 3;
}

size_t __wrap_symbols_lines(struct symbols *s, uint32_t image, uint64_t offset,
			    struct dwarf_frame *ret, size_t max)
{
	size_t i;

	(void)s;
	say.lines_asked++;
	say.other_images += image != 0;
	assert_true(max >= DWARF_MAX_FRAMES);
	if (say.no_lines)
		return 0;
	for (i = 0; say.many_lines && i < max; i++)
		ret[i] = (struct dwarf_frame){"deep", "deep.c", (uint32_t)i + 1, 0};
	if (say.many_lines)
		return max;
	if (offset >= LEAF_OFFSET && offset < LEAF_OFFSET + 3)
		return lines_in_leaf(ret);
	ret[0] = (struct dwarf_frame){"main", "main.c", (uint32_t)(offset - MAIN_OFFSET) + 1, 0};
	return 1;
}

enum symbols_dwarf __wrap_symbols_dwarf(const struct symbols *s, uint32_t image)
{
	(void)s;
	(void)image;
	return say.lines_asked > 0 ? say.dwarf : SYMBOLS_DWARF_UNASKED;
}

char *__wrap_demangle(const char *name)
{
	char *text;

	say.names_asked++;
	if (say.name_size == 0 || (strcmp(name, "leaf") != 0 && strcmp(name, "inner") != 0))
		return NULL;
	text = malloc(say.name_size + 1);
	assert_non_null(text);
	memset(text, 'L', say.name_size);
	text[say.name_size] = '\0';
	return text;
}

static void add_users(struct manifest *m, uint64_t begin, uint64_t end)
{
	(void)begin;
	(void)end;
	for (size_t i = 0; i < m->n_processes; i++) {
		m->processes[i].uid = USER;
		m->processes[i].uid_since_ns = 1;
	}
}

static struct json_object *report_made(const struct make_bundle *how,
				       const struct decode_options *options, size_t *ret_size)
{
	return report_parsed(report_text_of(how, add_users, options, ret_size));
}

static struct json_object *report_with(const struct decode_options *options, size_t *ret_size)
{
	const struct make_bundle how = {.rounds = 20, .in_leaf = true};

	return report_made(&how, options, ret_size);
}

static struct json_object *report_lines(bool lines)
{
	const struct decode_options options = {.view = WORKER_VIEW_REPORT, .lines = lines};
	size_t size;

	return report_with(&options, &size);
}

static bool has(struct json_object *o, const char *key)
{
	return json_object_object_get_ex(o, key, NULL);
}

static int setup(void **state)
{
	(void)state;
	memset(&say, 0, sizeof(say));
	say.dwarf = SYMBOLS_DWARF_OWN;
	return 0;
}

static void report_write_with_lines_stack_has_them_innermost_first(void **state)
{
	struct json_object *o = report_lines(true), *frame;

	(void)state;
	assert_string_equal(text_at(o, "schemaVersion"), REPORT_SCHEMA_VERSION);
	frame = place_of(o, "threads/0/stack/0");
	assert_string_equal(text_at(frame, "name"), "leaf");
	assert_false(has(frame, "linkage"));
	assert_string_equal(text_at(frame, "file"), "leaf.c");
	assert_int_equal(number_at(frame, "line"), 7);
	assert_int_equal(length_at(frame, "inlined"), 2);
	assert_string_equal(text_at(frame, "inlined/0/name"), "inner");
	assert_string_equal(text_at(frame, "inlined/0/file"), "/src/in.h");
	assert_int_equal(number_at(frame, "inlined/0/line"), 3);
	assert_null(at(frame, "inlined/1/name"));
	assert_string_equal(text_at(frame, "inlined/1/file"), "/src/out\n.h");
	assert_int_equal(number_at(frame, "inlined/1/line"), 5);
	/* The call itself: nothing is taken from its address. */
	frame = place_of(o, "threads/0/stack/1");
	assert_string_equal(text_at(frame, "file"), "main.c");
	assert_int_equal(number_at(frame, "line"), 1);
	assert_false(has(frame, "inlined"));
	json_object_put(o);
}

static void report_write_with_lines_branches_and_functions_have_them(void **state)
{
	struct json_object *o = report_lines(true), *list = at(o, "functions"), *place;
	size_t i;

	(void)state;
	/* je 20b at 207 or ret at 222, whatever was inlined there. */
	place = place_of(o, "threads/0/lastBranches/62/from");
	assert_string_equal(text_at(place, "file"), "main.c");
	assert_int_equal(number_at(place, "line"), 1);
	place = place_of(o, "threads/0/lastBranches/62/to");
	assert_string_equal(text_at(place, "inlined/0/file"), "/src/in.h");
	assert_int_equal(number_at(place, "inlined/0/line"), 3);
	for (i = 0; i < json_object_array_length(list); i++) {
		struct json_object *f = json_object_array_get_idx(list, i);
		const char *name = text_at(f, "name");

		assert_string_equal(text_at(f, "file"),
				    strcmp(name, "leaf") == 0 ? "leaf.c" : "main.c");
		assert_int_equal(number_at(f, "line"), strcmp(name, "leaf") == 0   ? 7
						       : strcmp(name, "main") == 0 ? 1
										   : 8);
	}
	assert_string_equal(text_at(o, "images/0/dwarf"), "own");
	json_object_put(o);
}

static void report_write_names_of_the_source_linkage_tells_the_others(void **state)
{
	struct json_object *o;

	(void)state;
	say.name_size = 5;
	o = report_lines(false);
	assert_string_equal(text_at(o, "schemaVersion"), REPORT_SCHEMA_VERSION);
	assert_string_equal(text_at(place_of(o, "threads/0/stack/0"), "name"), "LLLLL");
	assert_string_equal(text_at(place_of(o, "threads/0/stack/0"), "linkage"), "leaf");
	assert_false(has(place_of(o, "threads/0/stack/0"), "file"));
	assert_false(has(place_of(o, "threads/0/stack/1"), "linkage"));
	assert_string_equal(text_at(place_of(o, "threads/0/lastBranches/63/from"), "name"),
			    "LLLLL");
	assert_false(has(at(o, "images/0"), "dwarf"));
	json_object_put(o);
	assert_int_equal(say.lines_asked, 0);
}

static void report_write_nothing_new_says_the_current_version(void **state)
{
	struct json_object *o = report_lines(false);

	(void)state;
	assert_string_equal(text_at(o, "schemaVersion"), REPORT_SCHEMA_VERSION);
	json_object_put(o);
	assert_int_equal(say.lines_asked, 0);
}

static void report_write_lines_of_nothing_says_the_current_version(void **state)
{
	const struct make_bundle how = {.rounds = 20, .no_image = true};
	const struct decode_options options = {
		.view = WORKER_VIEW_REPORT, .lines = 1, .report_limit = 1 << 20};
	struct json_object *o;
	size_t size;

	(void)state;
	o = report_made(&how, &options, &size);
	assert_string_equal(text_at(o, "schemaVersion"), REPORT_SCHEMA_VERSION);
	assert_false(has(at(o, "images/0"), "dwarf"));
	json_object_put(o);
}

static void report_write_lines_asked_for_in_vain_image_says_so(void **state)
{
	struct json_object *o;

	(void)state;
	say.no_lines = true;
	say.dwarf = SYMBOLS_DWARF_NONE;
	o = report_lines(true);
	assert_string_equal(text_at(o, "schemaVersion"), REPORT_SCHEMA_VERSION);
	assert_string_equal(text_at(o, "images/0/dwarf"), "none");
	assert_false(has(place_of(o, "threads/0/stack/0"), "file"));
	assert_false(has(place_of(o, "threads/0/stack/0"), "inlined"));
	json_object_put(o);
}

static void report_write_half_known_lines_are_left_out(void **state)
{
	struct json_object *o, *frame;

	(void)state;
	say.no_file = true;
	o = report_lines(true);
	frame = place_of(o, "threads/0/stack/0");
	assert_false(has(frame, "file"));
	assert_int_equal(length_at(frame, "inlined"), 2);
	assert_false(has(at(frame, "inlined/0"), "file"));
	json_object_put(o);
}

static void report_write_each_place_is_looked_up_once(void **state)
{
	const struct decode_options options = {
		.view = WORKER_VIEW_REPORT, .lines = 1, .report_limit = 1 << 20};
	struct json_object *o;
	size_t size;

	(void)state;
	o = report_with(&options, &size);
	json_object_put(o);
	/* The program has 12 instructions, and names three functions; inner is a fourth. */
	assert_in_range(say.lines_asked, 3, 12);
	assert_in_range(say.names_asked, 3, 4);
	assert_int_equal(say.other_images, 0);
}

static void report_write_without_symbols_asks_for_nothing(void **state)
{
	const struct decode_options options = {
		.view = WORKER_VIEW_REPORT, .lines = 1, .no_symbols = 1};
	struct json_object *o;
	size_t size;

	(void)state;
	o = report_with(&options, &size);
	assert_string_equal(text_at(o, "schemaVersion"), REPORT_SCHEMA_VERSION);
	json_object_put(o);
	assert_int_equal(say.lines_asked, 0);
	assert_int_equal(say.names_asked, 0);
}

static void report_write_for_one_user_asks_for_what_is_his(void **state)
{
	struct decode_options options = {
		.view = WORKER_VIEW_REPORT, .lines = 1, .has_only_uid = 1, .only_uid = USER + 1};
	struct json_object *o;
	size_t size;

	(void)state;
	say.name_size = 5;
	o = report_with(&options, &size);
	assert_string_equal(text_at(o, "schemaVersion"), REPORT_SCHEMA_VERSION);
	json_object_put(o);
	assert_int_equal(say.lines_asked, 0);
	assert_int_equal(say.names_asked, 0);
	options.only_uid = USER;
	o = report_with(&options, &size);
	assert_string_equal(text_at(o, "schemaVersion"), REPORT_SCHEMA_VERSION);
	assert_string_equal(text_at(place_of(o, "threads/0/stack/0"), "file"), "leaf.c");
	json_object_put(o);
}

static void report_write_long_names_and_chains_limit_is_kept(void **state)
{
	static const uint64_t limits[] = {4500, 5000, 6000, 9000, 15000, 20000, 200000};
	size_t i, size;

	(void)state;
	say.name_size = DEMANGLE_MAX_TEXT;
	say.many_lines = true;
	say.dwarf = SYMBOLS_DWARF_LARGE;
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		const struct decode_options options = {
			.view = WORKER_VIEW_REPORT, .lines = 1, .report_limit = limits[i]};
		struct json_object *o = report_with(&options, &size);

		assert_true(size <= limits[i]);
		/* In the largest all is there. */
		assert_int_equal(length_at(o, "cut") == 0, i + 1 == ARRAY_SIZE(limits));
		json_object_put(o);
	}
	assert_true(size > 20000);
}

static void report_write_very_long_names_are_cut(void **state)
{
	struct json_object *o;

	(void)state;
	say.name_size = 10000;
	o = report_lines(false);
	assert_int_equal(strlen(text_at(place_of(o, "threads/0/stack/0"), "name")), 4096);
	json_object_put(o);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(report_write_with_lines_stack_has_them_innermost_first),
		TEST(report_write_with_lines_branches_and_functions_have_them),
		TEST(report_write_names_of_the_source_linkage_tells_the_others),
		TEST(report_write_nothing_new_says_the_current_version),
		TEST(report_write_lines_of_nothing_says_the_current_version),
		TEST(report_write_lines_asked_for_in_vain_image_says_so),
		TEST(report_write_half_known_lines_are_left_out),
		TEST(report_write_each_place_is_looked_up_once),
		TEST(report_write_without_symbols_asks_for_nothing),
		TEST(report_write_for_one_user_asks_for_what_is_his),
		TEST(report_write_long_names_and_chains_limit_is_kept),
		TEST(report_write_very_long_names_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
