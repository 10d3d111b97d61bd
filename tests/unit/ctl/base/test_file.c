/*
 * Output files, with whatever another user may have put at their names, and reading of whole files.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctl/base/file.h"

static int make(const char *text)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static void whole_file_read_up_to_its_limit_is_all_of_it(void **state)
{
	int fd = make("a text");
	char *text = NULL;
	size_t size = 0;

	(void)state;
	assert_int_equal(file_read_whole(fd, 6, &text, &size), 0);
	assert_int_equal(size, 6);
	assert_memory_equal(text, "a text", 6);
	/* The file's position does not matter, and stays. */
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 6);
	free(text);
	close(fd);
}

static void whole_file_read_of_nothing_is_nothing(void **state)
{
	int fd = make("");
	char *text = NULL;
	size_t size = 1;

	(void)state;
	assert_int_equal(file_read_whole(fd, 0, &text, &size), 0);
	assert_int_equal(size, 0);
	assert_non_null(text);
	free(text);
	close(fd);
}

static void whole_file_read_beyond_its_limit_is_efbig(void **state)
{
	int fd = make("a text");
	char *text = NULL;
	size_t size = 1;

	(void)state;
	assert_int_equal(file_read_whole(fd, 5, &text, &size), -EFBIG);
	assert_null(text);
	assert_int_equal(size, 1);
	close(fd);
}

static void whole_file_read_of_a_pipe_is_ebadmsg(void **state)
{
	char *text = NULL;
	size_t size;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(file_read_whole(fds[0], 5, &text, &size), -EBADMSG);
	assert_int_equal(file_read_whole(-1, 5, &text, &size), -EBADF);
	assert_null(text);
	close(fds[0]);
	close(fds[1]);
}

#define STRANGER 65534

static char dir[64];

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/ptsnap-output-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static const char *path_of(const char *name)
{
	static char paths[4][128];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

/* Makes a file of MODE that belongs to UID. */
static void put(const char *name, uid_t uid, mode_t mode)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "old", 3), 3);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(fchown(fd, uid, (gid_t)-1), 0);
	close(fd);
}

static int write_output(const char *name)
{
	struct output o;
	int r;

	output_init(&o);
	r = output_open(&o, path_of(name));
	if (r == 0) {
		assert_int_equal(write(o.fd, "new", 3), 3);
		r = output_commit(&o);
	}
	output_done(&o);
	return r;
}

/* Expects a regular file of ours with what write_output() wrote, and no link to it. */
static void expect_new(const char *name, mode_t mode)
{
	char text[8] = "";
	struct stat st;
	int fd;

	assert_int_equal(lstat(path_of(name), &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_mode & 07777, mode);
	assert_int_equal(st.st_uid, geteuid());
	fd = open(path_of(name), O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	assert_string_equal(text, "new");
	close(fd);
}

static void expect_old(const char *name)
{
	struct stat st;
	char text[8] = "";
	int fd = open(path_of(name), O_RDONLY | O_CLOEXEC);

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	assert_string_equal(text, "old");
	close(fd);
}

static void output_takes_the_mode_of_a_file_of_ones_own(void **state)
{
	(void)state;
	assert_int_equal(write_output("absent"), 0);
	expect_new("absent", 0600);
	put("own", geteuid(), 0640);
	assert_int_equal(write_output("own"), 0);
	expect_new("own", 0640);
}

static void output_takes_no_mode_of_a_file_with_another_name(void **state)
{
	(void)state;
	put("own", geteuid(), 0644);
	assert_int_equal(link(path_of("own"), path_of("planted")), 0);
	assert_int_equal(write_output("planted"), 0);
	expect_new("planted", 0600);
	expect_old("own");
}

static void output_follows_a_link_of_ones_own(void **state)
{
	struct stat st;

	(void)state;
	put("target", geteuid(), 0640);
	assert_int_equal(symlink("target", path_of("link")), 0);
	assert_int_equal(write_output("link"), 0);
	expect_new("target", 0640);
	assert_int_equal(lstat(path_of("link"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

static void output_goes_directly_to_a_fifo_of_ones_own(void **state)
{
	char text[8] = "";
	int fd;

	(void)state;
	assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
	fd = open(path_of("fifo"), O_RDWR | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(write_output("fifo"), 0);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	close(fd);
}

/* The rest needs files of another user. */
static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void output_takes_no_mode_of_a_strangers_file(void **state)
{
	(void)state;
	need_root();
	put("planted", STRANGER, 0666);
	assert_int_equal(write_output("planted"), 0);
	expect_new("planted", 0600);
}

static void output_follows_no_link_of_a_stranger(void **state)
{
	(void)state;
	need_root();
	put("target", geteuid(), 0644);
	assert_int_equal(symlink("target", path_of("planted")), 0);
	assert_int_equal(lchown(path_of("planted"), STRANGER, (gid_t)-1), 0);
	assert_int_equal(write_output("planted"), 0);
	expect_new("planted", 0600);
	expect_old("target");
}

static void output_goes_to_no_fifo_of_a_stranger(void **state)
{
	char text[8];
	int fd;

	(void)state;
	need_root();
	assert_int_equal(mkfifo(path_of("planted"), 0666), 0);
	assert_int_equal(chown(path_of("planted"), STRANGER, (gid_t)-1), 0);
	fd = open(path_of("planted"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(write_output("planted"), 0);
	assert_int_equal(read(fd, text, sizeof(text)), 0);
	close(fd);
	expect_new("planted", 0600);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_file_read_up_to_its_limit_is_all_of_it),
		cmocka_unit_test(whole_file_read_of_nothing_is_nothing),
		cmocka_unit_test(whole_file_read_beyond_its_limit_is_efbig),
		cmocka_unit_test(whole_file_read_of_a_pipe_is_ebadmsg),
		CASE(output_takes_the_mode_of_a_file_of_ones_own),
		CASE(output_takes_no_mode_of_a_file_with_another_name),
		CASE(output_follows_a_link_of_ones_own),
		CASE(output_goes_directly_to_a_fifo_of_ones_own),
		CASE(output_takes_no_mode_of_a_strangers_file),
		CASE(output_follows_no_link_of_a_stranger),
		CASE(output_goes_to_no_fifo_of_a_stranger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
