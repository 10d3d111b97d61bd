/*
 * Files of every host that the tests of ELF read, and a look at their symbols.
 */
#pragma once

#include "proto/base.h"
#include "sideband/elf/elf.h"

static const char *const real_files[] = {
	"/proc/self/exe",
	"/bin/ls",
	"/bin/sh",
	"/usr/bin/python3",
	"/lib64/ld-linux-x86-64.so.2",
	"/lib/x86_64-linux-gnu/libc.so.6",
};

/* The symbol that begins at OFFSET, or NULL. */
static inline const struct elf_symbol *symbol_at(const struct elf_file *f, uint64_t offset)
{
	size_t n;
	const struct elf_symbol *s = elf_file_symbols(f, &n);
	const size_t i = FIRST_WHERE(j, n, s[j].offset >= offset);

	return i < n && s[i].offset == offset ? &s[i] : NULL;
}
