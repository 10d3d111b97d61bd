/*
 * A file of which only the requested bytes are there, and a comparison of names. Include after
 * cmocka.h.
 */
#pragma once

#include <string.h>

#include "sideband/elf/elf.h"
#include "tests/unit/sideband/self.h"

/* COPY has the bytes that were requested so far, and zeros elsewhere. */
struct some {
	struct file file;
	uint8_t *copy;
	uint64_t bytes;
	uint64_t most; /* requests beyond this number of bytes fail */
};

static inline bool bring(void *userdata, uint64_t offset, uint64_t size)
{
	struct some *s = userdata;

	assert_true(size > 0 && offset <= s->file.size && size <= s->file.size - offset);
	if (s->bytes + size > s->most)
		return false;
	memcpy(s->copy + offset, s->file.bytes + offset, size);
	s->bytes += size;
	return true;
}

static inline struct elf_bytes bytes_of_some(struct some *s)
{
	return (struct elf_bytes){
		.bytes = s->copy, .size = s->file.size, .need = bring, .userdata = s};
}

static inline void assert_same_names(const struct elf_file *a, const struct elf_file *b)
{
	size_t n, same;
	const struct elf_symbol *x = elf_file_symbols(a, &n), *y = elf_file_symbols(b, &same);

	assert_int_equal(same, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(x[i].offset, y[i].offset);
		assert_int_equal(x[i].size, y[i].size);
		assert_int_equal(!x[i].name, !y[i].name);
		if (x[i].name)
			assert_string_equal(x[i].name, y[i].name);
	}
}
