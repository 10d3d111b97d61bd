/*
 * Writes dumps of just-in-time compilers, record by record, independently of the reader.
 */
#pragma once

#include <stdint.h>

#include "proto/bytes.h"

#define JIT_PID 77u

/* The header; FLAGS 1: times are TSCs. */
void jit_put_header(struct bytes_out *out, uint64_t flags);
/* A piece of code: SIZE bytes CODE at ADDRESS. */
void jit_put_load(struct bytes_out *out, uint64_t time, uint64_t address, const void *code,
		  uint64_t size, uint64_t index, const char *name);
void jit_put_move(struct bytes_out *out, uint64_t time, uint64_t from, uint64_t to, uint64_t size,
		  uint64_t index);
struct jit_line {
	uint64_t address;
	uint32_t line;
	const char *file;
};
void jit_put_lines(struct bytes_out *out, uint64_t time, uint64_t address,
		   const struct jit_line *lines, uint64_t n);
/* A record without contents: 3 closes the dump, 4 has data for unwinding. */
void jit_put_other(struct bytes_out *out, uint64_t time, uint32_t id);
