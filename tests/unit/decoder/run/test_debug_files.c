/*
 * Files with symbols and DWARF are found where they should be. Nothing outside of the directory,
 * and nothing but a regular file, is opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/openat2.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "decoder/run/debug_files.h"
#include "proto/base.h"
#include "tests/support/beside.h"

/* The build id of all tests. Its file is .build-id/0a/bcff.debug. */
static const uint8_t ID[] = {0x0a, 0xbc, 0xff};
#define ID_FILE ".build-id/0a/bcff"

struct fixture {
	char dir[64];
	struct debug_files files;
};

static int openat2_error;

/* openat2() fails as on a kernel before Linux 5.6, or with a system call filter. */
long __wrap_syscall(long number, int dir, const char *path, const struct open_how *how,
		    size_t size);
long __real_syscall(long number, int dir, const char *path, const struct open_how *how,
		    size_t size);
long __wrap_syscall(long number, int dir, const char *path, const struct open_how *how, size_t size)
{
	if (number != SYS_openat2 || openat2_error == 0)
		return __real_syscall(number, dir, path, how, size);
	errno = openat2_error;
	return -1;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *tmp = getenv("TMPDIR");

	if (!f)
		return -1;
	snprintf(f->dir, sizeof(f->dir), "%s/ptsnap-test-XXXXXX",
		 tmp && strlen(tmp) < 32 ? tmp : "/tmp");
	debug_files_init(&f->files);
	openat2_error = 0;
	*state = f;
	return mkdtemp(f->dir) && chdir(f->dir) == 0 ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int r;

	debug_files_done(&f->files);
	r = chdir("/");
	if (r == 0)
		r = nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(f);
	return r;
}

/* Makes all directories of PATH. */
static void make_parents(const char *path)
{
	char part[PATH_MAX];

	for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
		if (mkdir(part, 0700) < 0)
			assert_int_equal(errno, EEXIST);
	}
}

static void make_file(const char *path, const char *text)
{
	int fd;

	make_parents(path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void make_link(const char *path, const char *to)
{
	make_parents(path);
	assert_int_equal(symlink(to, path), 0);
}

static void use(struct fixture *f, const char *directory)
{
	make_parents(directory);
	if (mkdir(directory, 0700) < 0)
		assert_int_equal(errno, EEXIST);
	assert_int_equal(debug_files_add(&f->files, directory), 0);
}

/* Expects a file with the content TEXT, or, if that is NULL, no file. */
static void expect(struct fixture *f, const char *path, const char *text)
{
	int fd = -EBADF, r;
	char got[64] = "";
	uint64_t size = 0;

	r = debug_files_find(&f->files, ID, sizeof(ID), path, &fd, &size);
	assert_int_equal(r, text ? 0 : -ENOENT);
	if (!text)
		return;
	assert_int_equal(size, strlen(text));
	assert_int_equal(pread(fd, got, sizeof(got), 0), size);
	assert_string_equal(got, text);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void debug_files_find_takes_the_first_of_the_documented_order(void **state)
{
	static const char *const order[] = {
		"one/" ID_FILE ".debug", "one/" ID_FILE,  "two/" ID_FILE ".debug", "two/" ID_FILE,
		"one/usr/bin/p.debug",	 "one/usr/bin/p", "two/usr/bin/p.debug",   "two/usr/bin/p",
	};
	struct fixture *f = *state;

	use(f, "one");
	use(f, "two");
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		make_file(order[i], order[i]);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		expect(f, "/usr/bin/p", order[i]);
		assert_int_equal(unlink(order[i]), 0);
	}
	expect(f, "/usr/bin/p", NULL);
	assert_false(f->files.without_path);
}

static void debug_files_find_of_a_build_id_follows_links(void **state)
{
	struct fixture *f = *state;

	use(f, "dir");
	make_file("elsewhere/p", "elsewhere");
	make_link("dir/" ID_FILE ".debug", "../../../elsewhere/p");
	expect(f, NULL, "elsewhere");
	assert_int_equal(unlink("elsewhere/p"), 0);
	expect(f, NULL, NULL);
}

static void debug_files_find_of_any_size_of_build_id_stays_within_bounds(void **state)
{
	static const uint8_t id[21] = {0xff, 1};
	struct fixture *f = *state;
	uint64_t size;
	int fd;

	use(f, "dir");
	make_file("dir/.build-id/ff/01000000000000000000000000000000000000.debug", "20");
	make_file("dir/p", "path");
	assert_int_equal(debug_files_find(&f->files, id, 20, NULL, &fd, &size), 0);
	assert_int_equal(size, 2);
	assert_int_equal(debug_files_find(&f->files, id, 21, "/p", &fd, &size), -ENOENT);
	assert_int_equal(debug_files_find(&f->files, id, 0, "/p", &fd, &size), -ENOENT);
	/* A build id of one byte leaves no bytes for the name of the file. */
	make_file("dir/.build-id/ff/.debug", "none");
	assert_int_equal(debug_files_find(&f->files, id, 1, NULL, &fd, &size), -ENOENT);
	assert_int_equal(debug_files_find(&f->files, id, 1, "/p", &fd, &size), 0);
}

/* A path comes from the bundle. It is looked up as if the directory were the root. */
static void debug_files_find_of_a_path_never_leaves_the_directory(void **state)
{
	struct fixture *f = *state;
	char inside[128];

	use(f, "dir");
	make_file("secret", "secret");
	make_file("dir/lib/real", "inside");
	snprintf(inside, sizeof(inside), "%s/secret", f->dir);
	make_link("dir/absolute", inside);
	make_link("dir/up", "../secret");
	make_link("dir/further", "../../../../../../../../../../../../etc/passwd");
	make_link("dir/root", "/");
	make_link("dir/magic", "/proc/self/cwd/secret");
	expect(f, "/absolute", NULL);
	expect(f, "/up", NULL);
	expect(f, "/further", NULL);
	expect(f, "/magic", NULL);
	expect(f, inside, NULL);
	expect(f, "/root/secret", NULL);
	/* Links within the directory are followed; absolute ones begin at the directory. */
	make_link("dir/bin", "lib");
	make_link("dir/link", "/lib/real");
	expect(f, "/bin/real", "inside");
	expect(f, "/link", "inside");
	expect(f, "/root/lib/real", "inside");
}

static void debug_files_find_of_a_path_that_is_odd_finds_nothing(void **state)
{
	static const char *const odd[] = {
		"",	  "relative", "p",	"../p",	  "/../p", "/a/../p", "/a/..",
		"//../p", "/..",      "[vdso]", "//anon", "/",	   "/.",      "/a/",
	};
	struct fixture *f = *state;
	char *endless = malloc(2 * PATH_MAX);

	use(f, "dir/below");
	make_file("dir/below/p", "p");
	make_file("dir/below/a/p", "p");
	make_file("dir/p", "above");
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		expect(f, odd[i], NULL);
	assert_non_null(endless);
	for (size_t n = 1; n < 2 * PATH_MAX; n++) {
		if (n > 64 && n < PATH_MAX - 16 && n % 512 != 0)
			continue;
		memset(endless, '/', n);
		endless[n] = '\0';
		expect(f, endless, NULL);
		memset(endless + 1, 'x', n - 1);
		expect(f, endless, NULL);
	}
	/* If this path were cut, it would be the path of a file. */
	memset(endless, '/', PATH_MAX - 2);
	strcpy(endless + PATH_MAX - 2, "pq");
	expect(f, endless, NULL);
	free(endless);
	expect(f, NULL, NULL);
	expect(f, "/p", "p");
	/* Two dots as part of a name are valid. */
	make_file("dir/below/..p", "dots");
	make_file("dir/below/a../...", "more");
	expect(f, "/..p", "dots");
	expect(f, "/a../...", "more");
}

static void debug_files_find_of_a_program_that_was_replaced_has_its_path(void **state)
{
	struct fixture *f = *state;

	use(f, "dir");
	make_file("dir/p.debug", "p");
	expect(f, "/p (deleted)", "p");
	expect(f, "/p (deleted) ", NULL);
	expect(f, " (deleted)", NULL);
	expect(f, "/ (deleted)", NULL);
}

/* Opening a pipe would wait for ever; a loop of links ends; a device is not touched. */
static void debug_files_find_takes_regular_files_only(void **state)
{
	static const char *const names[] = {"dir/p", "dir/" ID_FILE ".debug"};
	struct fixture *f = *state;

	use(f, "dir");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		make_parents(names[i]);
		assert_int_equal(mkfifo(names[i], 0600), 0);
		expect(f, "/p", NULL);
		assert_int_equal(unlink(names[i]), 0);
		assert_int_equal(mkdir(names[i], 0700), 0);
		expect(f, "/p", NULL);
		assert_int_equal(rmdir(names[i]), 0);
		make_link(names[i], "/dev/zero");
		expect(f, "/p", NULL);
		assert_int_equal(unlink(names[i]), 0);
		make_link(names[i], strrchr(names[i], '/') + 1);
		expect(f, "/p", NULL);
		assert_int_equal(unlink(names[i]), 0);
		make_file(names[i], "");
		expect(f, "/p", NULL);
		assert_int_equal(unlink(names[i]), 0);
	}
	/* If the first one is not a file, the next one is used. */
	assert_int_equal(mkfifo("dir/" ID_FILE ".debug", 0600), 0);
	make_file("dir/" ID_FILE, "file");
	expect(f, "/p", "file");
}

static void debug_files_find_without_openat2_goes_by_build_ids(void **state)
{
	static const int errors[] = {ENOSYS, EPERM};
	struct fixture *f = *state;

	use(f, "dir");
	make_file("dir/p", "path");
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		openat2_error = 0;
		f->files.without_path = false;
		expect(f, "/p", "path");
		expect(f, "/none", NULL);
		assert_false(f->files.without_path);
		openat2_error = errors[i];
		expect(f, "/p", NULL);
		assert_true(f->files.without_path);
	}
	make_file("dir/" ID_FILE, "id");
	expect(f, "/p", "id");
}

static void debug_files_add_takes_directories_up_to_its_limit(void **state)
{
	struct fixture *f = *state;
	int before = count_open_fds();

	make_file("file", "");
	assert_int_equal(debug_files_add(&f->files, "none"), -ENOENT);
	assert_int_equal(debug_files_add(&f->files, "file"), -ENOTDIR);
	for (size_t i = 0; i < DEBUG_FILES_MAX_DIRS; i++)
		use(f, "dir");
	assert_int_equal(debug_files_add(&f->files, "dir"), -E2BIG);
	make_file("dir/p", "p");
	expect(f, "/p", "p");
	expect(f, "/p", "p");
	assert_int_equal(count_open_fds(), before + (int)DEBUG_FILES_MAX_DIRS + 1);
	debug_files_done(&f->files);
	assert_int_equal(count_open_fds(), before);
}

static bool have_openat2(void)
{
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC};
	int fd = (int)__real_syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

	close_fd(fd);
	return fd >= 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(debug_files_find_takes_the_first_of_the_documented_order),
		CASE(debug_files_find_of_a_build_id_follows_links),
		CASE(debug_files_find_of_any_size_of_build_id_stays_within_bounds),
		CASE(debug_files_find_of_a_path_never_leaves_the_directory),
		CASE(debug_files_find_of_a_path_that_is_odd_finds_nothing),
		CASE(debug_files_find_of_a_program_that_was_replaced_has_its_path),
		CASE(debug_files_find_takes_regular_files_only),
		CASE(debug_files_find_without_openat2_goes_by_build_ids),
		CASE(debug_files_add_takes_directories_up_to_its_limit),
	};

	return have_openat2() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
