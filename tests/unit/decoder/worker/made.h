/*
 * A synthetic bundle, opened: what all tests of the worker begin with.
 */
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include "proto/bundle/bundle.h"
#include "tests/support/make_bundle.h"

static inline struct bundle *made_open(const struct make_bundle *how)
{
	struct bundle *bundle = NULL;
	int fd = memfd_create("bundle", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(make_bundle(how, fd), 0);
	assert_int_equal(bundle_open(fd, &bundle), 0);
	close(fd);
	return bundle;
}

/* All that was written to FD, terminated; freed by the caller. FD is closed. */
static inline char *made_text(int fd, size_t *ret_size)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = calloc(1, (size_t)size + 1);

	assert_non_null(text);
	assert_int_equal(pread(fd, text, (size_t)size, 0), size);
	close(fd);
	*ret_size = (size_t)size;
	return text;
}
