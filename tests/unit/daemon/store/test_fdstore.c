/*
 * Descriptors of a snapshot, packed into the socket that systemd keeps and unpacked again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/store/fdstore.h"
#include "proto/base.h"
#include "proto/memfd.h"

static ino_t inode(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static void make(struct fdstore_item *item, size_t n)
{
	*item = (struct fdstore_item){.bundle_fd = -EBADF};
	assert_int_equal(memfd_new("bundle", 0, &item->bundle_fd), 0);
	item->images = calloc(n + 1, sizeof(*item->images));
	assert_non_null(item->images);
	for (uint32_t i = 0; i < n; i++) {
		item->images[i] = (struct fdstore_image){3 * i, -EBADF, 1000 + i};
		assert_int_equal(memfd_new("image", 0, &item->images[i].fd), 0);
	}
	item->n_images = n;
}

/* Packs N images and unpacks them; the first LEFT_OUT have no descriptor and are missing then. */
static void check_round(size_t n, size_t left_out)
{
	struct fdstore_item item, back = {.id = "kept"};
	size_t missing;
	int fd;

	make(&item, n);
	assert_int_equal(fdstore_pack(&item, &fd, &missing), 0);
	assert_int_equal(missing, left_out);
	assert_int_equal(fdstore_unpack(fd, &back), 0);
	assert_string_equal(back.id, "kept");
	assert_int_equal(inode(back.bundle_fd), inode(item.bundle_fd));
	assert_int_equal(back.n_images, n - left_out);
	for (size_t i = 0; i < back.n_images; i++) {
		assert_int_equal(back.images[i].index, item.images[i].index);
		assert_int_equal(back.images[i].size, item.images[i].size);
		assert_int_equal(inode(back.images[i].fd), inode(item.images[i].fd));
	}
	close(fd);
	fdstore_item_done(&item);
	fdstore_item_done(&back);
}

static void fdstore_unpack_what_was_packed_is_the_same(void **state)
{
	(void)state;
	check_round(0, 0);
	check_round(1, 0);
	check_round(127, 0);
	check_round(128, 0);
	check_round(500, 0);
}

static void fdstore_pack_images_without_fd_leaves_them_out(void **state)
{
	struct fdstore_item item, back = {0};
	size_t missing;
	int fd;

	(void)state;
	make(&item, 3);
	item.images[1].fd = close_fd(item.images[1].fd);
	assert_int_equal(fdstore_pack(&item, &fd, &missing), 0);
	assert_int_equal(fdstore_unpack(fd, &back), 0);
	assert_int_equal(back.n_images, 2);
	assert_int_equal(back.images[1].index, 6);
	close(fd);
	fdstore_item_done(&item);
	fdstore_item_done(&back);
}

/* Sets the limit so that only N more descriptors can be opened. */
static void leave_fds(struct rlimit *before, rlim_t n)
{
	struct rlimit limit;
	int first = dup(0);

	assert_int_equal(close(first), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
	limit = *before;
	limit.rlim_cur = (rlim_t)first + n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void fdstore_unpack_without_descriptors_keeps_the_bundle(void **state)
{
	struct fdstore_item item, back = {0};
	struct rlimit before;
	size_t missing;
	int fd;

	(void)state;
	make(&item, 300);
	assert_int_equal(fdstore_pack(&item, &fd, &missing), 0);
	assert_int_equal(missing, 0);
	leave_fds(&before, 150);
	assert_int_equal(fdstore_unpack(fd, &back), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(inode(back.bundle_fd), inode(item.bundle_fd));
	assert_int_equal(back.n_images, 127);
	close(fd);
	fdstore_item_done(&item);
	fdstore_item_done(&back);
}

static void fdstore_unpack_garbage_is_refused_and_closed(void **state)
{
	struct fdstore_item back = {0};
	int pair[2], before;

	(void)state;
	before = dup(0);
	close(before);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(fdstore_unpack(pair[0], &back), -EBADMSG); /* an empty queue */
	assert_int_equal(send(pair[1], "garbage", 7, 0), 7);
	assert_int_equal(fdstore_unpack(pair[0], &back), -EBADMSG);
	assert_int_equal(back.bundle_fd, -EBADF);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(fdstore_unpack(0, &back) < 0, true);
	assert_int_equal(dup(0), before);
	close(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fdstore_unpack_what_was_packed_is_the_same),
		cmocka_unit_test(fdstore_pack_images_without_fd_leaves_them_out),
		cmocka_unit_test(fdstore_unpack_without_descriptors_keeps_the_bundle),
		cmocka_unit_test(fdstore_unpack_garbage_is_refused_and_closed),
	};

	return cmocka_run_group_tests_name("fdstore", tests, NULL, NULL);
}
