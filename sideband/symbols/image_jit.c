/*
 * Code by the dumps of just-in-time compilers.
 *
 * A dump has the bytes as they were written down. The newest code of a place is in the process's
 * memory, too, if that was read: where the two differ the compiler has patched the code, or has
 * written other code that is not in the dump yet, and the memory is used.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/symbols/image_private.h"
#include "sideband/symbols/jitdump.h"

int image_add_jit(struct image_set *s, uint32_t image, uint32_t pid, const struct space *space,
		  struct jitdump *dump, struct jitcode *code)
{
	if (ARRAY_RESERVE(s->jits, s->jits_capacity, s->n_jits + 1) < 0) {
		jitcode_free(code);
		jitdump_free(dump);
		return -ENOMEM;
	}
	s->jits[s->n_jits++] = (struct image_jit){
		.pid = pid, .image = image, .space = space, .dump = dump, .code = code};
	return 0;
}

void image_jit_done(struct image_set *s)
{
	for (size_t i = 0; i < s->n_jits; i++) {
		jitcode_free(s->jits[i].code);
		jitdump_free(s->jits[i].dump);
	}
	free(s->jits);
}

/* A bundle has few dumps. */
static const struct image_jit *jit_of(const struct image_set *s, const struct space *space)
{
	for (size_t i = 0; i < s->n_jits; i++) {
		const struct image_jit *j = &s->jits[i];

		if (j->code && j->pid == space_pid(space) && (!j->space || j->space == space))
			return j;
	}
	return NULL;
}

const struct jitcode *image_jitcode(const struct image_set *s, const struct space *space)
{
	const struct image_jit *j = jit_of(s, space);

	return j ? j->code : NULL;
}

const struct jitdump *image_jitdump(const struct image_set *s, uint32_t image, bool *ret_times)
{
	for (size_t i = 0; i < s->n_jits; i++) {
		if (s->jits[i].image != image)
			continue;
		if (ret_times)
			*ret_times = s->jits[i].code;
		return s->jits[i].dump;
	}
	return NULL;
}

enum memory { MEMORY_UNKNOWN, MEMORY_SAME, MEMORY_OTHER };

/* What the process's memory has at the bytes of PIECE. */
static enum memory look_at_memory(struct image_set *s, const struct space *space,
				  const struct space_mapping *m, const struct image_jit *j,
				  const struct jitcode_piece *piece)
{
	uint64_t offset, size = piece->end - piece->begin;
	uint32_t image = image_index_memory(s, space, m, piece->begin, &offset);
	const uint8_t *bytes = image != UINT32_MAX ? image_need(s, image, offset, size) : NULL;

	if (!bytes)
		return MEMORY_UNKNOWN;
	return memcmp(bytes,
		      jitdump_bytes(j->dump, piece->load) + (piece->begin - piece->load->address),
		      (size_t)size) == 0
		       ? MEMORY_SAME
		       : MEMORY_OTHER;
}

bool image_jit_find(struct image_set *s, const struct space *space, const struct space_mapping *m,
		    uint64_t time, uint64_t address, struct image_code *ret)
{
	const struct image_jit *j = s->n_jits > 0 ? jit_of(s, space) : NULL;
	struct jitcode_piece piece;
	enum memory memory;
	uint64_t into, behind;

	if (!j || !jitcode_find(j->code, jitcode_at(j->code, time), address, &piece))
		return false;
	piece.begin = MAX_OF(piece.begin, m->start);
	/* A mapping may claim to reach over the end of all addresses. */
	behind = MIN_OF(m->size - (address - m->start), UINT64_MAX - address);
	piece.end = MIN_OF(piece.end, address + behind);
	memory = piece.newest ? look_at_memory(s, space, m, j, &piece) : MEMORY_UNKNOWN;
	if (memory == MEMORY_OTHER)
		return false;
	if (piece.newest && memory == MEMORY_UNKNOWN)
		piece.until = MIN_OF(piece.until, jitcode_end(j->code));
	into = piece.begin - piece.load->address;
	*ret = (struct image_code){
		.bytes = jitdump_bytes(j->dump, piece.load) + into,
		.address = piece.begin,
		.size = piece.end - piece.begin,
		.image = j->image,
		.offset = piece.load->offset + into,
		.map_begin = piece.begin,
		.map_end = piece.end,
		.jit_since = piece.since,
		.jit_until = piece.until,
	};
	return true;
}

void image_jit_clip(const struct image_set *s, const struct space *space, uint64_t time,
		    uint64_t address, struct image_code *code)
{
	const struct image_jit *j = s->n_jits > 0 ? jit_of(s, space) : NULL;
	uint32_t version = j ? jitcode_at(j->code, time) : 0;
	struct jitcode_piece piece;
	uint64_t begin, end, cut;

	if (!j)
		return;
	/* The memory of this piece differs from the dump; that of the next piece may not. */
	if (jitcode_find(j->code, version, address, &piece)) {
		begin = piece.begin;
		end = piece.end;
	} else {
		jitcode_gap(j->code, version, address, &begin, &end);
	}
	code->map_begin = MAX_OF(code->map_begin, begin);
	code->map_end = MIN_OF(code->map_end, end);
	code->size = MIN_OF(code->size, end - code->address);
	if (begin <= code->address)
		return;
	cut = begin - code->address;
	if (code->touched)
		code->touched += (begin >> IMAGE_PAGE_SHIFT) - (code->address >> IMAGE_PAGE_SHIFT);
	code->bytes += cut;
	code->offset += cut;
	code->size -= cut;
	code->address = begin;
}
