/*
 * Kinds of file systems, from made-up mount tables and from those of this host.
 */
#include "capture/proc/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/proc/procfile.h"
#include "proto/base.h"
#include "tests/unit/capture/tree.h"

static const char table[] =
	"20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
	"21 20 0:50 / /mnt/my\\040fuse rw,nosuid shared:1 master:3 - fuse.sshfs host: rw\n"
	"22 20 0:51 / /home rw shared:2 - nfs4 server:/home rw,vers=4\n"
	"23 20 0:52 / /c1 rw - overlay overlay "
	"rw,lowerdir=/var/l2:/var/l1,upperdir=/var/u,workdir=/var/w\n"
	"24 20 0:53 / /c2 rw - overlay overlay rw,lowerdir=/var/l1:/home/layer,upperdir=/var/u2\n"
	"25 20 0:54 / /c3 rw - overlay overlay rw,lowerdir=l/A:l/B,upperdir=/mnt/my\\040fuse/up\n"
	"26 20 0:55 / /run rw - tmpfs tmpfs rw\n"
	"27 20 8:2 / /usb rw - fuseblk /dev/sdb2 rw\n"
	"no line of a table\n"
	"28 20 0:56 / /short rw -\n";

struct fixture {
	char *root;
	struct mounts *m;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->root = tree_new();
	tree_write(f->root, "self/mountinfo",
		   "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		   "30 20 0:70 / /srv rw - xfs /dev/x rw\n");
	tree_write(f->root, "1/mountinfo", "20 1 0:71 / / rw - btrfs /dev/y rw\n");
	tree_write(f->root, "100/mountinfo", table);
	tree_write(f->root, "101/empty", "");
	assert_int_equal(mounts_new(f->root, &f->m), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	mounts_free(f->m);
	tree_free(f->root);
	free(f);
	return 0;
}

static int look(const struct fixture *f, uint32_t pid)
{
	CLEANUP_CLOSE int dir = -EBADF;

	assert_int_equal(procfile_process(f->root, pid, &dir), 0);
	return mounts_look(f->m, dir);
}

static void mounts_device_tells_kinds(void **state)
{
	/* clang-format off */
	static const struct { uint32_t maj, min; enum mounts_kind kind; } cases[] = {
		{8, 1, MOUNTS_LOCAL}, {0, 50, MOUNTS_BLOCKING}, {0, 51, MOUNTS_BLOCKING},
		{0, 52, MOUNTS_ALIASED}, {0, 53, MOUNTS_BLOCKING}, {0, 54, MOUNTS_BLOCKING},
		{0, 55, MOUNTS_LOCAL}, {8, 2, MOUNTS_BLOCKING}, {0, 56, MOUNTS_UNKNOWN},
		{0, 57, MOUNTS_UNKNOWN},
		/* Mounts of this process, and of process 1. */
		{0, 70, MOUNTS_LOCAL}, {0, 71, MOUNTS_ALIASED},
	};
	/* clang-format on */
	struct fixture *f = *state;

	assert_int_equal(look(f, 100), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (mounts_device(f->m, cases[i].maj, cases[i].min) != cases[i].kind)
			fail_msg("%u:%u", cases[i].maj, cases[i].min);
}

static void mounts_path_is_blocked_below_a_mount_that_blocks(void **state)
{
	/* clang-format off */
	static const struct { const char *path; bool blocks; } cases[] = {
		{"/mnt/my fuse/lib.so", true}, {"/mnt/my fuse/a/b", true}, {"/mnt/my fuse", true},
		{"/mnt/my fuses/lib.so", false}, {"/usr/lib.so", false}, {"/home/u/x", true},
		{"/c1/x", false}, {"/c2/x", true},
	};
	/* clang-format on */
	struct fixture *f = *state;

	assert_int_equal(look(f, 100), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if ((mounts_path(f->m, cases[i].path) == MOUNTS_BLOCKING) != cases[i].blocks)
			fail_msg("%s", cases[i].path);
	assert_int_equal(mounts_look_self(f->m), 0);
	assert_int_equal(mounts_path(f->m, "/home/u/x"), MOUNTS_UNKNOWN);
}

static void mounts_look_sees_what_changed(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(look(f, 100), 0);
	tree_write(f->root, "100/mountinfo", "20 1 0:55 / / rw - fuse x rw\n");
	assert_int_equal(look(f, 100), 0);
	assert_int_equal(mounts_device(f->m, 0, 55), MOUNTS_BLOCKING);
	assert_int_equal(mounts_device(f->m, 0, 50), MOUNTS_UNKNOWN);
}

static void mounts_look_without_a_table_says_so(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(look(f, 100), 0);
	assert_int_equal(look(f, 101), -ESRCH);
	assert_int_equal(mounts_device(f->m, 0, 50), MOUNTS_UNKNOWN);
	tree_write(f->root, "101/mountinfo", "");
	assert_int_equal(look(f, 101), -ESRCH);
}

/* The layers of an overlay that a user mounted in another user namespace are unknown. */
static void mounts_overlay_of_another_user_blocks(void **state)
{
	struct fixture *f = *state;
	struct mounts *m = NULL;
	CLEANUP_CLOSE int dir = -EBADF;

	tree_write(f->root, "self/ns/user", "");
	tree_write(f->root, "100/ns/user", "");
	tree_write(f->root, "100/mountinfo",
		   "20 1 0:52 / / rw - overlay overlay rw,lowerdir=/l\n"
		   "21 1 0:53 / /b rw - overlay overlay rw,lowerdir=/l\n"
		   "22 1 0:54 / /c rw - tmpfs tmpfs rw\n");
	tree_write(f->root, "1/mountinfo", "90 1 0:53 / /run/c rw - overlay overlay rw\n");
	assert_int_equal(mounts_new(f->root, &m), 0);
	assert_int_equal(procfile_process(f->root, 100, &dir), 0);
	assert_int_equal(mounts_look(m, dir), 0);
	assert_int_equal(mounts_device(m, 0, 52), MOUNTS_BLOCKING);
	assert_int_equal(mounts_path(m, "/usr/bin/x"), MOUNTS_BLOCKING);
	assert_int_equal(mounts_device(m, 0, 53), MOUNTS_ALIASED); /* root mounted it */
	assert_int_equal(mounts_device(m, 0, 54), MOUNTS_LOCAL);
	mounts_free(m);
}

static void mounts_fd_of_this_host_is_known(void **state)
{
	CLEANUP_CLOSE int dir = -EBADF;
	CLEANUP_CLOSE int proc = open("/proc/self/maps", O_PATH | O_CLOEXEC);
	CLEANUP_CLOSE int memory = memfd_create("x", MFD_CLOEXEC);
	struct mounts *m = NULL;
	struct statx stx;
	struct stat st;

	(void)state;
	assert_int_equal(mounts_new("/proc", &m), 0);
	assert_int_equal(procfile_process("/proc", (uint32_t)getpid(), &dir), 0);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(mounts_look(m, dir), 0);
		assert_int_equal(mounts_fd(m, proc, &stx), MOUNTS_LOCAL);
		assert_int_equal(mounts_fd(m, memory, &stx), MOUNTS_LOCAL);
	}
	assert_true(S_ISREG(stx.stx_mode));
	assert_int_equal(fstat(memory, &st), 0);
	assert_int_equal(stx.stx_ino, st.st_ino);
	assert_int_equal(mounts_look(m, dir), 0);
	assert_int_equal(mounts_device(m, major(st.st_dev), minor(st.st_dev)), MOUNTS_LOCAL);
	assert_int_equal(mounts_fd(m, -1, &stx), MOUNTS_UNKNOWN);
	mounts_free(m);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(mounts_device_tells_kinds),
		CASE(mounts_path_is_blocked_below_a_mount_that_blocks),
		CASE(mounts_look_sees_what_changed),
		CASE(mounts_look_without_a_table_says_so),
		CASE(mounts_overlay_of_another_user_blocks),
		CASE(mounts_fd_of_this_host_is_known),
	};

	return cmocka_run_group_tests_name("capture/mounts", tests, NULL, NULL);
}
