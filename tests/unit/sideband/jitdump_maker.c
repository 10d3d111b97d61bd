#include "tests/unit/sideband/jitdump_maker.h"

#include <string.h>

static void put_record(struct bytes_out *out, uint32_t id, uint64_t contents, uint64_t time)
{
	bytes_put_u32(out, id);
	bytes_put_u32(out, (uint32_t)(16 + contents));
	bytes_put_u64(out, time);
}

void jit_put_header(struct bytes_out *out, uint64_t flags)
{
	bytes_put_block(out, "DTiJ", 4);
	bytes_put_u32(out, 1);
	bytes_put_u32(out, 40);
	bytes_put_u32(out, 62); /* EM_X86_64 */
	bytes_put_u32(out, 0);
	bytes_put_u32(out, JIT_PID);
	bytes_put_u64(out, 1);
	bytes_put_u64(out, flags);
}

void jit_put_load(struct bytes_out *out, uint64_t time, uint64_t address, const void *code,
		  uint64_t size, uint64_t index, const char *name)
{
	put_record(out, 0, 40 + strlen(name) + 1 + size, time);
	bytes_put_u32(out, JIT_PID);
	bytes_put_u32(out, JIT_PID);
	bytes_put_u64(out, address);
	bytes_put_u64(out, address);
	bytes_put_u64(out, size);
	bytes_put_u64(out, index);
	bytes_put_block(out, name, strlen(name) + 1);
	bytes_put_block(out, code, size);
}

void jit_put_move(struct bytes_out *out, uint64_t time, uint64_t from, uint64_t to, uint64_t size,
		  uint64_t index)
{
	put_record(out, 1, 48, time);
	bytes_put_u32(out, JIT_PID);
	bytes_put_u32(out, JIT_PID);
	bytes_put_u64(out, to);
	bytes_put_u64(out, from);
	bytes_put_u64(out, to);
	bytes_put_u64(out, size);
	bytes_put_u64(out, index);
}

void jit_put_lines(struct bytes_out *out, uint64_t time, uint64_t address,
		   const struct jit_line *lines, uint64_t n)
{
	uint64_t size = 16;

	for (uint64_t i = 0; i < n; i++)
		size += 16 + strlen(lines[i].file) + 1;
	put_record(out, 2, size, time);
	bytes_put_u64(out, address);
	bytes_put_u64(out, n);
	for (uint64_t i = 0; i < n; i++) {
		bytes_put_u64(out, lines[i].address);
		bytes_put_u32(out, lines[i].line);
		bytes_put_u32(out, 0);
		bytes_put_block(out, lines[i].file, strlen(lines[i].file) + 1);
	}
}

void jit_put_other(struct bytes_out *out, uint64_t time, uint32_t id)
{
	put_record(out, id, 0, time);
}
