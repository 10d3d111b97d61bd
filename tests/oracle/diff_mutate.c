/*
 * Changes traces and code: bits, bytes, whole packets, cuts, splices; moves, patches and removes
 * pieces of code.
 */
#include <string.h>

#include "decoder/packet/packet.h"
#include "proto/base.h"
#include "tests/oracle/diff_input.h"

#define WINDOW_MAX  8192u
#define CHANGES_MAX 4u

static const uint8_t psb[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
			      0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};

/* Replaces N bytes at AT by the SIZE bytes of WITH, as far as they fit. */
static void replace(struct diff_input *in, size_t at, size_t n, const void *with, size_t size)
{
	size_t rest = in->size - at - n;

	size = MIN_OF(size, DIFF_TRACE_MAX - at);
	rest = MIN_OF(rest, DIFF_TRACE_MAX - at - size);
	memmove(in->trace + at + size, in->trace + at + n, rest);
	memcpy(in->trace + at, with, size);
	in->size = at + size + rest;
}

/* Picks a random packet of IN by reading from a PSB; *ret_size 0: none found. */
static size_t some_packet(const struct diff_input *in, struct diff_random *r, size_t *ret_size)
{
	const uint8_t *end = in->trace + in->size;
	const uint8_t *from = sync_find(in->trace + diff_below(r, in->size), end);
	size_t skip = diff_below(r, 64), at = 0;
	struct packet_cursor c;
	struct packet p;

	*ret_size = 0;
	if (from == NULL)
		from = sync_find(in->trace, end);
	c = (struct packet_cursor){.pos = from, .end = end};
	while (from != NULL && packet_next(&c, &p) == 0) {
		if (p.type == PACKET_PAD && diff_below(r, 16) != 0)
			continue;
		at = (size_t)(c.pos - in->trace) - p.size;
		*ret_size = p.size;
		if (skip-- == 0)
			break;
	}
	return at;
}

static uint64_t some_address(const struct diff_input *in, struct diff_random *r)
{
	const struct diff_piece *p;

	if (in->n_pieces == 0 || diff_below(r, 16) == 0)
		return diff_random(r);
	p = &in->pieces[diff_below(r, in->n_pieces)];
	return p->address + diff_below(r, p->size);
}

static size_t put_ip(uint8_t *to, uint8_t opcode, uint64_t ip, struct diff_random *r)
{
	static const uint8_t sizes[8] = {0, 2, 4, 6, 6, 0, 8, 0};
	static const uint8_t forms[] = {0, 1, 2, 3, 4, 6, 3, 3, 1};
	uint8_t form = forms[diff_below(r, sizeof(forms))];

	to[0] = (uint8_t)(opcode | form << 5);
	memcpy(to + 1, &ip, sizes[form]);
	return 1u + sizes[form];
}

/* Makes a random packet that libipt 2.0 knows. */
static size_t make_packet(const struct diff_input *in, struct diff_random *r, uint8_t *to)
{
	static const struct {
		uint8_t size, bytes[11];
	} fixed[] = {
		{1, {0x00}},			     /* PAD */
		{2, {0x02, 0x23}},		     /* PSBEND */
		{2, {0x02, 0xf3}},		     /* OVF */
		{2, {0x02, 0x83}},		     /* TraceSTOP */
		{2, {0x99, 0x00}},		     /* MODE.Exec 16 bit */
		{2, {0x99, 0x01}},		     /* 64 bit */
		{2, {0x99, 0x02}},		     /* 32 bit */
		{2, {0x99, 0x20}},		     /* MODE.TSX: end */
		{2, {0x99, 0x21}},		     /* begin */
		{2, {0x99, 0x22}},		     /* abort */
		{4, {0x02, 0x03, 0x10, 0x00}},	     /* CBR */
		{8, {0x02, 0x43, 0x00, 0x10}},	     /* PIP */
		{8, {0x02, 0x43, 0x01, 0x10}},	     /* PIP, non-root */
		{7, {0x02, 0xc8, 0x10}},	     /* VMCS */
		{8, {0x19, 0x01, 0x02}},	     /* TSC */
		{2, {0x59, 0x10}},		     /* MTC */
		{7, {0x02, 0x73, 0x01}},	     /* TMA */
		{1, {0x0b}},			     /* CYC */
		{11, {0x02, 0xc3, 0x88}},	     /* MNT */
		{2, {0x02, 0x62}},		     /* EXSTOP */
		{2, {0x02, 0xe2}},		     /* EXSTOP, IP */
		{10, {0x02, 0xc2}},		     /* MWAIT */
		{4, {0x02, 0x22}},		     /* PWRE */
		{7, {0x02, 0xa2}},		     /* PWRX */
		{6, {0x02, 0x12}},		     /* PTW */
		{6, {0x02, 0x92}},		     /* PTW, IP */
		{10, {0x02, 0xb2}},		     /* PTW, IP, 8 bytes */
		{8, {0x02, 0xa3, 0x55, 0xaa, 0x01}}, /* TNT-64 */
	};
	static const uint8_t ips[] = {0x0d, 0x11, 0x01, 0x1d}; /* TIP, PGE, PGD, FUP */
	size_t i;

	switch (diff_below(r, 8)) {
	case 0: to[0] = (uint8_t)((4 + diff_below(r, 0x7c)) << 1); return 1; /* TNT-8 */
	case 1: memcpy(to, psb, sizeof(psb)); return sizeof(psb);
	case 2:
	case 3:
	case 4: return put_ip(to, ips[diff_below(r, 4)], some_address(in, r), r);
	default:
		i = diff_below(r, ARRAY_SIZE(fixed));
		memcpy(to, fixed[i].bytes, fixed[i].size);
		return fixed[i].size;
	}
}

static void change_packet(struct diff_input *in, struct diff_random *r)
{
	size_t size, at = some_packet(in, r, &size), other_size, other;
	uint8_t bytes[32];

	switch (diff_below(r, 5)) {
	case 0: /* remove */ replace(in, at, size, bytes, 0); break;
	case 1: /* duplicate */
		memcpy(bytes, in->trace + at, size);
		replace(in, at, 0, bytes, size);
		break;
	case 2: /* replace */ replace(in, at, size, bytes, make_packet(in, r, bytes)); break;
	case 3: /* insert */ replace(in, at, 0, bytes, make_packet(in, r, bytes)); break;
	default: /* copy from elsewhere */
		other = some_packet(in, r, &other_size);
		memcpy(bytes, in->trace + other, other_size);
		replace(in, at, 0, bytes, other_size);
		break;
	}
}

static void cut(struct diff_input *in, struct diff_random *r)
{
	size_t at = diff_below(r, in->size), n = 1 + diff_below(r, 64);

	if (diff_below(r, 4) == 0)
		in->size = MAX_OF(at, (size_t)1);
	else
		replace(in, at, MIN_OF(n, in->size - at), "", 0);
}

static void splice(const struct diff_seeds *seeds, struct diff_input *in, struct diff_random *r)
{
	const struct diff_seed *s = &seeds->list[diff_below(r, seeds->n)];
	size_t from = diff_below(r, s->size), n = 1 + diff_below(r, 256), at;
	size_t size;

	at = diff_below(r, 2) != 0 ? some_packet(in, r, &size) : diff_below(r, in->size);
	replace(in, at, 0, s->trace + from, MIN_OF(n, s->size - from));
}

static void change_bytes(struct diff_input *in, struct diff_random *r)
{
	size_t at = diff_below(r, in->size);

	switch (diff_below(r, 3)) {
	case 0: in->trace[at] ^= (uint8_t)(1u << diff_below(r, 8)); break;
	case 1: in->trace[at] = (uint8_t)diff_random(r); break;
	default: in->trace[at] = (uint8_t)(in->trace[at] + diff_below(r, 9) - 4); break;
	}
}

static void change_trace(const struct diff_seeds *seeds, struct diff_input *in,
			 struct diff_random *r)
{
	if (in->size == 0)
		return;
	switch (diff_below(r, 8)) {
	case 0: cut(in, r); break;
	case 1: splice(seeds, in, r); break;
	case 2:
	case 3: change_bytes(in, r); break;
	default: change_packet(in, r); break;
	}
}

/* Gives the piece bytes of its own; NULL: no room. */
static uint8_t *own(struct diff_input *in, struct diff_piece *p)
{
	uint8_t *copy;

	if (in->n_own == ARRAY_SIZE(in->own_bytes) || p->size > sizeof(in->own_bytes[0]))
		return NULL;
	copy = in->own_bytes[in->n_own++];
	memcpy(copy, p->bytes, p->size);
	p->bytes = copy;
	return copy;
}

static void patch(struct diff_input *in, struct diff_piece *p, struct diff_random *r)
{
	static const struct {
		uint8_t size, bytes[8];
	} code[] = {
		{1, {0xc3}},			     /* ret */
		{3, {0xc2, 0x08, 0x00}},	     /* ret 8 */
		{2, {0xff, 0xe0}},		     /* jmp *rax */
		{2, {0xff, 0xd0}},		     /* call *rax */
		{2, {0xeb, 0x02}},		     /* jmp */
		{2, {0xeb, 0xfe}},		     /* jmp to itself */
		{2, {0x75, 0x03}},		     /* jne */
		{2, {0x74, 0xf0}},		     /* je, back */
		{2, {0xe2, 0xfe}},		     /* loop */
		{5, {0xe8, 0x00}},		     /* call to the next */
		{5, {0xe8, 0x10}},		     /* call */
		{2, {0x0f, 0x05}},		     /* syscall */
		{2, {0x0f, 0x34}},		     /* sysenter */
		{2, {0x0f, 0x07}},		     /* sysret */
		{2, {0x48, 0xcf}},		     /* iretq */
		{2, {0xcd, 0x80}},		     /* int */
		{1, {0xcc}},			     /* int3 */
		{1, {0xf1}},			     /* int1 */
		{1, {0xce}},			     /* into */
		{3, {0x0f, 0x22, 0xd8}},	     /* mov cr3 */
		{3, {0x0f, 0x01, 0xc1}},	     /* vmcall */
		{3, {0x0f, 0x01, 0xc2}},	     /* vmlaunch */
		{2, {0xff, 0x28}},		     /* far jmp */
		{2, {0xff, 0x18}},		     /* far call */
		{1, {0xcb}},			     /* far ret */
		{5, {0xf3, 0x48, 0x0f, 0xae, 0xe0}}, /* ptwrite */
		{6, {0xc7, 0xf8, 0x10}},	     /* xbegin */
		{3, {0xc6, 0xf8, 0x01}},	     /* xabort */
		{3, {0x0f, 0x01, 0xd5}},	     /* xend */
		{1, {0x06}},			     /* invalid in 64-bit mode */
		{3, {0x66, 0xeb, 0x02}},	     /* operand size on a jump */
		{5, {0x66, 0xe8, 0x02}},	     /* the same on a call */
		{4, {0x66, 0x0f, 0x84, 0x02}},	     /* the same on je */
		{2, {0xf2, 0xc3}},		     /* bnd ret */
		{2, {0x0f, 0x0b}},		     /* ud2 */
		{3, {0x67, 0xe3, 0x02}},	     /* jecxz */
	};
	uint8_t *bytes = own(in, p);
	size_t i = diff_below(r, ARRAY_SIZE(code)), at = diff_below(r, p->size);

	if (bytes == NULL)
		return;
	if (diff_below(r, 3) == 0)
		bytes[at] ^= (uint8_t)(1u << diff_below(r, 8));
	else
		memcpy(bytes + at, code[i].bytes, MIN_OF((size_t)code[i].size, p->size - at));
}

static void change_code(const struct diff_seeds *seeds, struct diff_input *in,
			struct diff_random *r)
{
	struct diff_piece *p = in->n_pieces > 0 ? &in->pieces[diff_below(r, in->n_pieces)] : NULL;
	const struct diff_seed *s;

	if (p == NULL)
		return;
	switch (diff_below(r, 8)) {
	case 0: p->address += diff_below(r, 33) - 16; break;
	case 1: *p = in->pieces[--in->n_pieces]; break;
	case 2: p->size = 1 + diff_below(r, p->size); break;
	case 3: /* replace by other code */
		s = &seeds->list[diff_below(r, seeds->n)];
		if (s->n_pieces > 0) {
			p->bytes = s->pieces[0].bytes;
			p->size = MIN_OF(p->size, s->pieces[0].size);
		}
		break;
	default: patch(in, p, r); break;
	}
	diff_input_order(in);
}

/* Takes a short trace whole; of a long one, a part that begins with a PSB. */
static void take_window(const struct diff_seed *s, struct diff_random *r, struct diff_input *ret)
{
	size_t n = s->size, from = 0;

	if (n > WINDOW_MAX || diff_below(r, 8) == 0) {
		size_t most = 1 + diff_below(r, WINDOW_MAX);
		const uint8_t *found;

		found = sync_find(s->trace + diff_below(r, n), s->trace + n);
		from = found != NULL ? (size_t)(found - s->trace) : 0;
		n = MIN_OF(n - from, most);
	}
	memcpy(ret->trace, s->trace + from, n);
	ret->size = n;
}

void diff_mutate(const struct diff_seeds *seeds, struct diff_random *r, struct diff_input *ret)
{
	static const uint8_t models[] = {0, 0x3d, 0x4f, 0x5e, 0x55, 0x5c, 0x5f, 0x7a, 0x8e, 0x97};
	const struct diff_seed *s = &seeds->list[diff_below(r, seeds->n)];
	size_t n = diff_below(r, CHANGES_MAX + 1);

	ret->n_own = 0;
	take_window(s, r, ret);
	ret->n_pieces = s->n_pieces;
	if (s->n_pieces > 0)
		memcpy(ret->pieces, s->pieces, s->n_pieces * sizeof(ret->pieces[0]));
	diff_input_order(ret);
	ret->model = diff_below(r, 2) != 0 ? models[diff_below(r, sizeof(models))] : s->model;
	ret->family = ret->model != 0 ? 6 : 0;
	for (; n > 0; n--)
		if (diff_below(r, 4) == 0)
			change_code(seeds, ret, r);
		else
			change_trace(seeds, ret, r);
}
