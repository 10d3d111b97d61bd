/*
 * What ptxed's lines need to know of instructions. Part of views_ptxed.c.
 */
#include <string.h>

#include "decoder/worker/view/views_ptxed.h"
#include "proto/base.h"

/* The instruction at IP, its bytes, and the number of the file that it is of; false: it cannot be
 * read. */
static bool read_insn(const struct views_ptxed *v, const struct replay_stretch *s, uint64_t ip,
		      struct insn *ret, uint8_t bytes[INSN_MAX_SIZE], uint32_t *ret_image)
{
	struct image_code code;
	size_t n;

	*ret_image = UINT32_MAX;
	if (replay_find(v->replay, s->context, ip, &code) != 0)
		return false;
	*ret_image = code.image;
	n = replay_read(v->replay, s->context, ip, bytes, INSN_MAX_SIZE);
	return insn_read(v->reader, v->mode, ip, bytes, n, ret) == 0;
}

/* Of the far transfers those that come back to the next instruction: call far (9A, FF /3), vmcall
 * (0F 01 C1). SDM volume 2. */
static bool is_far_call(const uint8_t *bytes, size_t size)
{
	size_t i = 0;

	while (i + 1 < size && (bytes[i] == 0x66 || (bytes[i] & 0xf0) == 0x40))
		i++;
	if (bytes[i] == 0x9a)
		return true;
	if (bytes[i] == 0xff)
		return i + 1 < size && (bytes[i + 1] >> 3 & 7) == 3;
	return size - i == 3 && memcmp(bytes + i, "\x0f\x01\xc1", 3) == 0;
}

/* Where execution goes on when tracing was disabled by the branch at IP: behind a call. */
uint64_t views_ptxed_behind(const struct views_ptxed *v, const struct replay_stretch *s,
			    uint64_t ip)
{
	struct insn insn;
	uint32_t image;
	uint8_t bytes[INSN_MAX_SIZE];

	if (!read_insn(v, s, ip, &insn, bytes, &image))
		return 0;
	switch (insn.class) {
	case INSN_CALL:
	case INSN_CALL_IND:
	case INSN_SYSCALL: return ip + insn.size;
	case INSN_FAR: return is_far_call(bytes, insn.size) ? ip + insn.size : 0;
	default: return 0;
	}
}

uint32_t views_ptxed_image(const struct views_ptxed *v, const struct replay_stretch *s, uint64_t ip,
			   bool *ret_ends)
{
	uint8_t bytes[INSN_MAX_SIZE];
	uint32_t image;
	struct insn insn;

	*ret_ends = read_insn(v, s, ip, &insn, bytes, &image) && insn.class == INSN_COND;
	return image;
}
