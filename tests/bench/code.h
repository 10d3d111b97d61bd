/*
 * The code of a bundle's only process, whose mappings do not change. For bench_ipt and bench_walk.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/bundle.h"

struct code_section {
	uint64_t address, size; /* bytes */
	uint64_t offset;	/* in the file */
	int fd; /* has the size of the original file; bytes that the bundle lacks are zero */
	const uint8_t *bytes; /* mapped */
};

struct code {
	struct code_section *sections; /* in the order of the mappings: a later one hides others */
	size_t n;
	int *files; /* one for each image of the manifest; -EBADF: no bytes */
	size_t n_files;
};

/* BUNDLE may be freed afterwards. 0 or -errno; call code_close() in either case. */
int code_open(const struct bundle *b, struct code *ret);
void code_close(struct code *c);
/* The bytes from ADDRESS to the end of its section; NULL: no code there. */
const uint8_t *code_at(const struct code *c, uint64_t address, size_t *ret_left);
