/*
 * Configuration files: which settings and warnings are told, in which order, at which line; and
 * which files are read.
 */
#include "daemon/config/conffile.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/unit/daemon/scratch_dir.h"

/* The handlers' calls, a line each: "+ 3 [S] K=V", "! 4 text" (lost), "? 5 text" (unknown). */
static char told[65536];
static const char *skip; /* is cut off file names */

static void PRINTF_LIKE(1, 2) tell(const char *format, ...)
{
	size_t used = strlen(told);
	va_list args;

	va_start(args, format);
	vsnprintf(told + used, sizeof(told) - used, format, args);
	va_end(args);
}

static bool on_section(void *userdata, const char *name)
{
	(void)userdata;
	return strcmp(name, "S") == 0 || strcmp(name, "T") == 0;
}

static void on_setting(void *userdata, const struct conffile_setting *s)
{
	(void)userdata;
	tell("+ %u [%s] %s=%s\n", s->line, s->section, s->key, s->value);
}

static void on_warning(void *userdata, const struct conffile_warning *w)
{
	(void)userdata;
	tell("%c %u %s\n", w->lost ? '!' : '?', w->line, w->text);
}

static void on_file(void *userdata, const char *file)
{
	(void)userdata;
	tell("< %s\n", file + strlen(skip));
}

static const struct conffile_handler handler = {NULL, NULL, on_section, on_setting, on_warning};
static const struct conffile_handler with_files = {NULL, on_file, on_section, on_setting,
						   on_warning};

static void expect_bytes(const char *text, size_t size, const char *expected)
{
	told[0] = '\0';
	conffile_parse("f", text, size, &handler);
	assert_string_equal(told, expected);
}

static void expect(const char *text, const char *expected)
{
	expect_bytes(text, strlen(text), expected);
}

static void conffile_parse_settings_are_told_stripped(void **state)
{
	(void)state;
	expect("", "");
	expect("\n \n[S]\nA=1\n  B  =  two words \t\n[T]\nC==#;[\nD=", "+ 4 [S] A=1\n"
								       "+ 5 [S] B=two words\n"
								       "+ 7 [T] C==#;[\n"
								       "+ 8 [T] D=\n");
}

static void conffile_parse_comments_mean_nothing(void **state)
{
	(void)state;
	expect("# a\n;b\n[S]\n  # A=1\n\t;A=2\nA=3 # 4\n", "+ 6 [S] A=3 # 4\n");
}

/* A comment does not end a continuation, an empty line does. */
static void conffile_parse_backslash_continues(void **state)
{
	(void)state;
	expect("[S]\nA=1 \\\n  2\\\n# no\n3\nB=4\n", "+ 2 [S] A=1    2 3\n+ 6 [S] B=4\n");
	expect("[S]\nA=1\\\n\nB=2\n", "+ 2 [S] A=1\n+ 4 [S] B=2\n");
	expect("[S]\nA=1\\\\\nB=2\\ \nC=3\\", "+ 2 [S] A=1\\\\\n+ 3 [S] B=2\\\n+ 4 [S] C=3\n");
	expect("[S\\\n]\n[S]\n# c\\\nA=1\n", "? 1 unknown section [S ], ignored\n+ 5 [S] A=1\n");
}

static void conffile_parse_crlf_and_bom_are_text(void **state)
{
	(void)state;
	expect("\xef\xbb\xbf[S]\r\nA=1\\\r\n2\r\nB=3\r", "+ 2 [S] A=1 2\n+ 4 [S] B=3\n");
	expect("[S]\r\nA=1\r2\r\n", "! 2 line holds bytes that are no text, ignored\n");
}

static void conffile_parse_unknown_section_is_left_out(void **state)
{
	(void)state;
	expect("[U]\nA=1\nnonsense\n[S]\nB=2\n", "? 1 unknown section [U], ignored\n+ 5 [S] B=2\n");
	expect("[X-mine]\nA=1\n[S]\nX-A=1\nB=2\n", "+ 5 [S] B=2\n");
}

static void conffile_parse_broken_lines_are_left_out(void **state)
{
	(void)state;
	expect("A=1\n[S]\nword\n=1\nB=2\n", "! 1 a setting before the first [section], ignored\n"
					    "! 3 neither a [section] nor KEY=VALUE, ignored\n"
					    "! 4 neither a [section] nor KEY=VALUE, ignored\n"
					    "+ 5 [S] B=2\n");
	/* The settings that follow might belong to another section. */
	expect("[S]\nA=1\n[S\nB=2\n[]\nC=3\n[T]\nD=4\n",
	       "+ 2 [S] A=1\n"
	       "! 3 section header is not valid, the section is ignored\n"
	       "! 5 section header is not valid, the section is ignored\n"
	       "+ 8 [T] D=4\n");
}

static void conffile_parse_bytes_that_are_no_text_are_left_out(void **state)
{
	static const char nul[] = "[S]\nA=1\0B=2\nC=3\n[T\0]\nD=4\n";

	(void)state;
	expect_bytes(nul, sizeof(nul) - 1,
		     "! 2 line holds bytes that are no text, ignored\n"
		     "+ 3 [S] C=3\n"
		     "! 4 line holds bytes that are no text, ignored\n");
	expect("[S]\nA=\x1b[0m\nB=\xff\nC=\xc0\x80\nD=\xed\xa0\x80\nE=\xc3\nF=\xc3\xa4\t\xe2\x82\xac."
	       "\xf0\x9f\x98\x80\nG=\xf4\x90\x80\x80\n",
	       "! 2 line holds bytes that are no text, ignored\n"
	       "! 3 line holds bytes that are no text, ignored\n"
	       "! 4 line holds bytes that are no text, ignored\n"
	       "! 5 line holds bytes that are no text, ignored\n"
	       "! 6 line holds bytes that are no text, ignored\n"
	       "+ 7 [S] F=\xc3\xa4\t\xe2\x82\xac.\xf0\x9f\x98\x80\n"
	       "! 8 line holds bytes that are no text, ignored\n");
}

static void conffile_parse_line_as_long_as_can_be_is_told(void **state)
{
	static char text[2 * CONFFILE_MAX_LINE], expected[2 * CONFFILE_MAX_LINE];
	int value = (int)CONFFILE_MAX_LINE - 2;

	(void)state;
	snprintf(text, sizeof(text), "[S]\nA=%0*d\nB=1\n", value, 7);
	snprintf(expected, sizeof(expected), "+ 2 [S] A=%0*d\n+ 3 [S] B=1\n", value, 7);
	expect(text, expected);
	snprintf(text, sizeof(text), "[S]\nA=%0*d\nB=1\n", value + 1, 7);
	expect(text, "! 2 line is too long, ignored\n+ 3 [S] B=1\n");
	/* The line is too long with its continuation, and all continuations belong to the line. */
	snprintf(text, sizeof(text), "[S]\nA=%0*d\\\n%05d\\\nC=3\nB=1\n", value - 3, 7, 1);
	expect(text, "! 2 line is too long, ignored\n+ 5 [S] B=1\n");
	snprintf(text, sizeof(text), "[S]\n[%0*d\nB=1\n", value + 2, 7);
	expect(text, "! 2 line is too long, ignored\n");
}

struct fixture {
	char dir[SCRATCH_DIR_SIZE];
	char paths[3][80];
	const char *directories[4];
};

static void put(struct fixture *f, const char *name, const char *text)
{
	char path[160];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static const char *const subdirectories[] = {
	"run", "run/c.d", "etc", "etc/c.d", "lib", "lib/c.d",
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[160];

	scratch_dir_make(f->dir);
	for (size_t i = 0; i < ARRAY_SIZE(subdirectories); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->dir, subdirectories[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	for (size_t i = 0; i < 3; i++) {
		snprintf(f->paths[i], sizeof(f->paths[i]), "%s/%s", f->dir, subdirectories[2 * i]);
		f->directories[i] = f->paths[i];
	}
	skip = f->dir;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char path[160];

	for (size_t i = ARRAY_SIZE(subdirectories); i > 0; i--) {
		snprintf(path, sizeof(path), "%s/%s", f->dir, subdirectories[i - 1]);
		scratch_dir_remove(path);
	}
	scratch_dir_remove(f->dir);
	free(f);
	return 0;
}

static void expect_all(struct fixture *f, const char *expected)
{
	told[0] = '\0';
	conffile_read_all(f->directories, "c", &with_files);
	assert_string_equal(told, expected);
}

static void conffile_read_all_nothing_is_no_mistake(void **state)
{
	struct fixture *f = *state;

	expect_all(f, "");
	f->directories[0] = "/dev/null";
	f->directories[1] = "/no/such/directory";
	expect_all(f, "");
}

/* Only the strongest main file is read, and all drop-ins, in the order of their names. */
static void conffile_read_all_stronger_directories_win(void **state)
{
	struct fixture *f = *state;

	put(f, "lib/c", "[S]\nA=lib\n");
	put(f, "lib/c.d/50-b.conf", "[S]\nB=lib\n");
	put(f, "lib/c.d/10-a.conf", "[S]\nC=lib\n");
	expect_all(f, "< /lib/c\n+ 2 [S] A=lib\n"
		      "< /lib/c.d/10-a.conf\n+ 2 [S] C=lib\n"
		      "< /lib/c.d/50-b.conf\n+ 2 [S] B=lib\n");
	put(f, "etc/c", "[S]\nA=etc\n");
	put(f, "etc/c.d/50-b.conf", "[S]\nB=etc\n");
	put(f, "run/c.d/20-r.conf", "[S]\nD=run\n");
	expect_all(f, "< /etc/c\n+ 2 [S] A=etc\n"
		      "< /lib/c.d/10-a.conf\n+ 2 [S] C=lib\n"
		      "< /run/c.d/20-r.conf\n+ 2 [S] D=run\n"
		      "< /etc/c.d/50-b.conf\n+ 2 [S] B=etc\n");
	put(f, "run/c", "[S]\nA=run\n");
	put(f, "run/c.d/50-b.conf", "");
	expect_all(f, "< /run/c\n+ 2 [S] A=run\n"
		      "< /lib/c.d/10-a.conf\n+ 2 [S] C=lib\n"
		      "< /run/c.d/20-r.conf\n+ 2 [S] D=run\n"
		      "< /run/c.d/50-b.conf\n");
}

static void link_to(struct fixture *f, const char *target, const char *name)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	assert_int_equal(symlink(target, path), 0);
}

static void conffile_read_all_null_masks(void **state)
{
	struct fixture *f = *state;

	put(f, "lib/c", "[S]\nA=lib\n");
	put(f, "lib/c.d/a.conf", "[S]\nB=lib\n");
	link_to(f, "/dev/null", "etc/c");
	link_to(f, "/dev/null", "run/c.d/a.conf");
	expect_all(f, "");
}

static void conffile_read_all_other_names_are_no_drop_ins(void **state)
{
	struct fixture *f = *state;

	put(f, "etc/c.d/a.conf~", "[S]\nA=1\n");
	put(f, "etc/c.d/.b.conf", "[S]\nB=1\n");
	put(f, "etc/c.d/.conf", "[S]\nC=1\n");
	put(f, "etc/c.d/README", "[S]\nD=1\n");
	expect_all(f, "");
}

/* None of these may make the recorder wait. */
static void conffile_read_all_what_is_no_file_is_told(void **state)
{
	struct fixture *f = *state;
	char path[160];

	snprintf(path, sizeof(path), "%s/etc/c.d/f.conf", f->dir);
	assert_int_equal(mkfifo(path, 0644), 0);
	link_to(f, "/no/such/file", "etc/c.d/g.conf");
	link_to(f, "h.conf", "etc/c.d/h.conf");
	link_to(f, "/dev/zero", "etc/c.d/i.conf");
	link_to(f, "..", "etc/c.d/j.conf");
	put(f, "etc/c.d/k.conf", "[S]\nA=1\n");
	expect_all(f, "! 0 is not a regular file, ignored\n"
		      "! 0 leads to a file that is not there, ignored\n"
		      "! 0 cannot be read, ignored: Too many levels of symbolic links\n"
		      "! 0 is not a regular file, ignored\n"
		      "! 0 is not a regular file, ignored\n"
		      "< /etc/c.d/k.conf\n+ 2 [S] A=1\n");
}

static void conffile_read_size_is_limited(void **state)
{
	struct fixture *f = *state;
	char path[160];

	put(f, "etc/c", "[S]\nA=1\n");
	snprintf(path, sizeof(path), "%s/etc/c", f->dir);
	assert_int_equal(truncate(path, CONFFILE_MAX_FILE + 1), 0);
	expect_all(f, "< /etc/c\n! 0 is larger than 1 MiB, ignored\n");
	assert_int_equal(truncate(path, CONFFILE_MAX_FILE), 0);
	expect_all(f, "< /etc/c\n+ 2 [S] A=1\n! 3 line is too long, ignored\n");
}

static void conffile_read_missing_file_is_enoent(void **state)
{
	struct fixture *f = *state;
	char path[160];

	told[0] = '\0';
	snprintf(path, sizeof(path), "%s/etc/c", f->dir);
	assert_int_equal(conffile_read(path, &with_files), -ENOENT);
	assert_string_equal(told, "");
	assert_int_equal(conffile_read(f->dir, &with_files), 0);
	assert_string_equal(told, "! 0 is not a regular file, ignored\n");
}

static void conffile_read_all_drop_ins_are_limited(void **state)
{
	struct fixture *f = *state;
	size_t n = 0;
	char name[32];

	for (unsigned i = 0; i < CONFFILE_MAX_DROP_INS + 1; i++) {
		snprintf(name, sizeof(name), "etc/c.d/%u.conf", i);
		put(f, name, "");
	}
	told[0] = '\0';
	conffile_read_all(f->directories, "c", &with_files);
	for (const char *at = told; (at = strstr(at, "< /etc")); at++)
		n++;
	assert_int_equal(n, CONFFILE_MAX_DROP_INS);
	assert_non_null(strstr(told, "! 0 too many drop-ins, not all are read\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conffile_parse_settings_are_told_stripped),
		cmocka_unit_test(conffile_parse_comments_mean_nothing),
		cmocka_unit_test(conffile_parse_backslash_continues),
		cmocka_unit_test(conffile_parse_crlf_and_bom_are_text),
		cmocka_unit_test(conffile_parse_unknown_section_is_left_out),
		cmocka_unit_test(conffile_parse_broken_lines_are_left_out),
		cmocka_unit_test(conffile_parse_bytes_that_are_no_text_are_left_out),
		cmocka_unit_test(conffile_parse_line_as_long_as_can_be_is_told),
		cmocka_unit_test_setup_teardown(conffile_read_all_nothing_is_no_mistake, setup,
						teardown),
		cmocka_unit_test_setup_teardown(conffile_read_all_stronger_directories_win, setup,
						teardown),
		cmocka_unit_test_setup_teardown(conffile_read_all_null_masks, setup, teardown),
		cmocka_unit_test_setup_teardown(conffile_read_all_other_names_are_no_drop_ins,
						setup, teardown),
		cmocka_unit_test_setup_teardown(conffile_read_all_what_is_no_file_is_told, setup,
						teardown),
		cmocka_unit_test_setup_teardown(conffile_read_size_is_limited, setup, teardown),
		cmocka_unit_test_setup_teardown(conffile_read_missing_file_is_enoent, setup,
						teardown),
		cmocka_unit_test_setup_teardown(conffile_read_all_drop_ins_are_limited, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("daemon/conffile", tests, NULL, NULL);
}
