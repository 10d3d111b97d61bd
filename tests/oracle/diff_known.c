/*
 * Recognises the known differences from libipt. docs/DIFFERENCES.md gives the reason of each.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/code/insn.h"
#include "decoder/packet/errata.h"
#include "decoder/packet/event.h"
#include "decoder/packet/packet.h"
#include "proto/base.h"
#include "tests/oracle/diff_decode.h"

/* Copies the bytes at IP, which may span pieces. */
static size_t bytes_at(const struct diff_input *in, uint64_t ip, uint8_t to[INSN_MAX_SIZE])
{
	size_t n = 0;

	for (; n < INSN_MAX_SIZE; n++) {
		const struct diff_piece *p = diff_input_find(in, ip + n);

		if (p == NULL)
			break;
		to[n] = p->bytes[ip + n - p->address];
	}
	return n;
}

int diff_class_at(const struct diff_input *in, uint64_t ip, enum insn_mode mode)
{
	struct insn_reader *reader = insn_reader_new();
	uint8_t bytes[INSN_MAX_SIZE];
	size_t n = bytes_at(in, ip, bytes);
	struct insn insn = {0};
	int r;

	if (reader == NULL)
		abort();
	r = insn_read(reader, mode, ip, bytes, n, &insn);
	insn_reader_free(reader);
	return r == 0 ? insn.class : -1;
}

static bool is_prefix(uint8_t byte)
{
	static const uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65,
					   0x66, 0x67, 0xf0, 0xf2, 0xf3};

	return byte >> 4 == 4 || memchr(prefixes, byte, sizeof(prefixes)) != NULL;
}

/* Whether libipt 2.0 knows only the length of the instruction at IP, often correctly: REX2
 * (JMPABS), ERETU and ERETS, RSM, UD0 and UD1 with their ModRM byte, and invalid instructions. */
static bool is_odd(const struct diff_input *in, uint64_t ip)
{
	uint8_t b[INSN_MAX_SIZE] = {0};
	size_t n = bytes_at(in, ip, b);

	while (n > 1 && is_prefix(b[0]) && memcmp(b + 1, "\x0f\x01", 2) != 0)
		memmove(b, b + 1, --n);
	for (int mode = INSN_MODE_64; n > 0 && mode <= INSN_MODE_16; mode++)
		if (diff_class_at(in, ip, (enum insn_mode)mode) < 0)
			return true;
	return b[0] == 0xd5 || (b[0] == 0x0f && memchr("\xff\xb9\xaa", b[1], 3) != NULL) ||
	       memcmp(b + 1, "\x0f\x01\xca", 3) == 0;
}

/* Whether a FUP is the next packet that matters. */
static bool has_fup(struct packet_cursor c)
{
	struct packet p;

	while (packet_next(&c, &p) == 0)
		if (!diff_is_aside(p.type))
			return p.type == PACKET_FUP;
	return false;
}

/* Whether a packet neither branches nor says where execution is; C is behind P. */
static bool is_remark(const struct packet *p, const struct packet_cursor *c)
{
	switch (p->type) {
	case PACKET_PIP:
	case PACKET_VMCS:
	case PACKET_PTW:
	case PACKET_EXSTOP:
	case PACKET_MWAIT:
	case PACKET_PWRE:
	case PACKET_PWRX: return true;
	case PACKET_MODE_TSX: return (p->u.mode.bits & 2) == 0 || !has_fup(*c);
	default: return false;
	}
}

/* Whether packets of this type mark a place that a following FUP gives. */
static bool owns_fup(const struct packet *p)
{
	return p->type == PACKET_MODE_TSX || p->type == PACKET_MWAIT ||
	       (p->type == PACKET_PTW && p->u.ptw.ip != 0) ||
	       (p->type == PACKET_EXSTOP && p->u.exstop.ip != 0);
}

/* Copies IN without mark packets and their FUPs; packets in a PSB+ stay. */
static void strip(const struct diff_input *in, struct diff_input *ret)
{
	const uint8_t *end = in->trace + in->size;
	struct packet_cursor c = {.pos = sync_find(in->trace, end), .end = end};
	bool in_psb = false, owned = false;
	struct packet p;

	*ret = *in;
	ret->size = 0;
	while (c.pos != NULL && c.pos < end) {
		const uint8_t *pos = c.pos;
		bool gone = false;
		size_t size;

		if (packet_next(&c, &p) == 0) {
			in_psb = p.type == PACKET_PSB ||
				 (in_psb && p.type != PACKET_PSBEND && p.type != PACKET_OVF);
			gone = !in_psb && (is_remark(&p, &c) || (owned && p.type == PACKET_FUP));
			if (!diff_is_aside(p.type))
				owned = !in_psb && gone && p.type != PACKET_FUP &&
					(owned || owns_fup(&p));
		} else {
			c.pos = sync_find(pos + 1, end);
			c.bip_bytes = 0;
		}
		size = (size_t)((c.pos != NULL ? c.pos : end) - pos);
		if (!gone) {
			memcpy(ret->trace + ret->size, pos, size);
			ret->size += size;
		}
	}
}

/* Whether a MODE packet is followed by a packet to which it does not bind, or the mode changes
 * without a far branch: libipt changes the mode where execution meets the address. */
static bool has_odd_mode(const struct diff_input *in)
{
	const uint8_t *end = in->trace + in->size;
	struct packet_cursor c = {.pos = sync_find(in->trace, end), .end = end};
	uint8_t mode = 0xff;
	bool in_psb = false, waits = false;
	struct packet p;

	while (c.pos != NULL && c.pos < end) {
		if (packet_next(&c, &p) != 0) {
			c.pos = sync_find(c.pos + 1, end);
			continue;
		}
		in_psb = p.type == PACKET_PSB ||
			 (in_psb && p.type != PACKET_PSBEND && p.type != PACKET_OVF);
		if (p.type == PACKET_MODE_EXEC) {
			if (!in_psb && mode != 0xff && mode != (p.u.mode.bits & 3))
				return true;
			mode = p.u.mode.bits & 3;
		}
		if (in_psb || diff_is_aside(p.type))
			continue;
		if (waits && p.type != PACKET_TIP && p.type != PACKET_TIP_PGE)
			return true;
		waits = p.type == PACKET_MODE_EXEC;
	}
	return false;
}

static bool is_psb_at(const struct diff_input *in, uint64_t offset)
{
	const uint8_t *pos = in->trace + offset;

	return offset < in->size && sync_find(pos, in->trace + in->size) == pos;
}

/* Whether some MODE.Exec gives a mode of 32 or 16 bits, which is impossible at IP. */
static bool is_too_high(const struct diff_input *in, uint64_t ip)
{
	const uint8_t *end = in->trace + in->size;
	const uint8_t *pos = in->trace;

	while (ip >> 32 != 0 && (pos = memchr(pos, 0x99, (size_t)(end - pos))) != NULL) {
		if (++pos < end && (*pos & 0xe1) == 0)
			return true;
	}
	return false;
}

/* The number of libipt's next instructions that may be involved: an erratum may have made it look
 * ahead. */
#define LOOK ((size_t)16)

static bool has_odd(const struct diff_input *in, const uint64_t *ips, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_odd(in, ips[i]))
			return true;
	return false;
}

/* Whether branches of newer processors, or RSM, are among the N instructions: libipt continues
 * behind them. */
static bool has_new_branch(const struct diff_input *in, const uint64_t *ips, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t b[INSN_MAX_SIZE] = {0};

		bytes_at(in, ips[i], b);
		if (b[0] == 0xd5 || memcmp(b, "\x0f\xaa", 2) == 0)
			return true;
	}
	return false;
}

/* Whether an overflow replaced the packet that belongs to a FUP. */
static bool has_cut_fup(const struct diff_input *in)
{
	const uint8_t *end = in->trace + in->size;
	const struct errata errata = errata_for(in->family, in->model);
	struct packet_cursor c = {
		.pos = sync_find(in->trace, end), .end = end, .quirks = event_quirks(&errata)};
	bool in_psb = false;
	struct packet p;
	uint8_t before = PACKET_PAD;

	while (c.pos != NULL && c.pos < end) {
		if (packet_next(&c, &p) != 0) {
			c.pos = sync_find(c.pos + 1, end);
			continue;
		}
		if (p.type == PACKET_OVF && before == PACKET_FUP && !in_psb)
			return true;
		in_psb = p.type == PACKET_PSB ||
			 (in_psb && p.type != PACKET_PSBEND && p.type != PACKET_OVF);
		if (!diff_is_aside(p.type) && p.type != PACKET_PIP && p.type != PACKET_VMCS)
			before = p.type;
	}
	return false;
}

/* Whether one of the last LOOK of the N instructions is a direct branch. */
static bool has_direct_branch(const struct diff_input *in, const uint64_t *ips, size_t n)
{
	for (size_t i = n - MIN_OF(n, LOOK); i < n; i++) {
		int class = diff_class_at(in, ips[i], INSN_MODE_64);

		if (class == INSN_JUMP || class == INSN_CALL)
			return true;
	}
	return false;
}

/* libipt applies BDM64 to direct branches, too, although they have no packet; and SKD022 only if
 * valid packets follow. The N instructions at IPS are equal; NEXT is our next instruction. */
static bool is_erratum(const struct diff_input *in, const uint64_t *ips, size_t n, uint64_t next)
{
	struct errata e = errata_for(in->family, in->model);

	if (e.bdm64 && has_direct_branch(in, ips, n))
		return memmem(in->trace, in->size, "\x99\x22", 2) != NULL;
	return e.skd022 &&
	       ((n > 0 && diff_class_at(in, ips[n - 1], INSN_MODE_64) == INSN_VMENTRY) ||
		diff_class_at(in, next, INSN_MODE_64) == INSN_VMENTRY);
}

/* Whether the decoders agree without mark packets, or differ for a known reason. */
static bool agree_without_remarks(const struct diff_input *in)
{
	static struct diff_input bare;
	static struct diff_result r;
	static bool within; /* stops the recursion: diff_compare calls this function */
	struct diff_difference d;
	bool agree;

	if (within)
		return false;
	within = true;
	strip(in, &bare);
	agree = bare.size < in->size && diff_decode(&bare, &r) &&
		(!diff_compare(&bare, &r, &d) || d.known != NULL);
	within = false;
	return agree;
}

/* docs/DIFFERENCES.md has each of them. */
const char *diff_explain(const struct diff_input *in, const struct diff_result *r,
			 const struct diff_segment *a, const struct diff_segment *b, size_t at)
{
	const uint64_t *x = r->ours.ips + a->first, *y = r->ipt.ips + b->first;
	uint64_t last = at > 0 ? x[at - 1] : 0;

	if ((at > 0 && is_odd(in, last)) || has_odd(in, y + at, MIN_OF(b->n - at, LOOK)) ||
	    has_new_branch(in, x, at))
		return "an instruction that one of the two does not know";
	if (is_too_high(in, last))
		return "code of 32 bits beyond 4 GiB";
	if (b->failed && b->why == DIFF_ENOUGH)
		return "code that goes in a circle";
	if (is_erratum(in, x, at, at < a->n ? x[at] : last))
		return "BDM64 at a direct branch, or SKD022";
	if (has_cut_fup(in))
		return "an overflow behind a FUP";
	if (has_odd_mode(in))
		return "MODE.Exec without its branch";
	if (at < a->n && a->failed && is_psb_at(in, a->offset))
		return "a PSB+ elsewhere than execution";
	if (agree_without_remarks(in))
		return "a packet without what it binds to";
	return NULL;
}
