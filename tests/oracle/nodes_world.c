/*
 * Makes random code and mappings, answers the decoder's questions about them, and changes a world.
 */
#include "tests/oracle/nodes_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/code/insn.h"
#include "decoder/packet/packet.h"
#include "proto/base.h"

#define KERNEL UINT64_C(0xffffffff80000000)

/* --- Code --- */

struct bytes {
	uint8_t size, bytes[9];
};

static const struct bytes fillers[] = {
	{1, {0x90}},		       /* nop */
	{2, {0x66, 0x90}},	       /* nop */
	{3, {0x48, 0x89, 0xc8}},       /* mov %rcx, %rax */
	{3, {0x83, 0xc0, 0x01}},       /* add $1, %eax */
	{4, {0x8d, 0x44, 0x24, 8}},    /* lea 8(%rsp), %eax */
	{4, {0xf3, 0x0f, 0x1e, 0xfa}}, /* endbr64 */
	{5, {0xb8, 1, 2, 3, 4}},       /* mov $, %eax */
	{5, {0x0f, 0x1f, 0x44}},       /* nop */
	{1, {0x50}},		       /* push %rax */
	{9, {0x66, 0x0f, 0x1f, 0x84}}, /* nop */
};

static const struct bytes odd[] = {
	{2, {0x0f, 0x05}},		     /* syscall */
	{1, {0xcc}},			     /* int3 */
	{2, {0xcd, 0x80}},		     /* int */
	{2, {0x48, 0xcf}},		     /* iretq */
	{2, {0xff, 0x28}},		     /* far jmp */
	{1, {0xcb}},			     /* far ret */
	{3, {0x0f, 0x22, 0xd8}},	     /* mov cr3 */
	{5, {0xf3, 0x48, 0x0f, 0xae, 0xe0}}, /* ptwrite */
	{1, {0x06}},			     /* invalid in 64-bit mode */
	{3, {0x0f, 0x01, 0xc2}},	     /* vmlaunch */
	{2, {0x0f, 0x0b}},		     /* ud2 */
	{3, {0x66, 0xeb, 0x02}},	     /* operand size on a jump */
};

/* The character of a content's code: odds of each kind of end. */
struct style {
	uint8_t cond, loop, jump, call, empty_call, jump_ind, call_ind, ret, odd, far_off;
	uint8_t fillers;
};

static const struct style styles[] = {
	{40, 4, 10, 10, 1, 4, 6, 14, 2, 2, 6}, {10, 1, 30, 30, 2, 3, 3, 20, 0, 2, 3},
	{80, 8, 5, 2, 0, 2, 2, 3, 0, 0, 4},    {20, 0, 4, 30, 1, 2, 10, 30, 1, 1, 2},
	{10, 2, 40, 2, 4, 10, 10, 4, 4, 4, 2}, {30, 4, 10, 10, 4, 10, 10, 14, 6, 8, 40},
	{4, 0, 60, 20, 4, 4, 4, 8, 0, 0, 1},
};

struct writer {
	struct nodes_world *w;
	struct diff_random *r;
	uint32_t content;
	size_t at;
	struct {
		uint32_t at; /* of the displacement */
		uint8_t size;
	} fixes[NODES_BLOCKS];
	size_t n_fixes;
};

static bool put(struct writer *c, const void *bytes, size_t n)
{
	if (c->at + n > NODES_CODE_BYTES)
		return false;
	memcpy(c->w->codes[c->content] + c->at, bytes, n);
	c->at += n;
	return true;
}

/* A direct branch, short or long; its target is chosen at the end. */
static void put_direct(struct writer *c, const void *opcode, size_t n, uint8_t size)
{
	static const uint8_t zero[4];

	if (!put(c, opcode, n) || !put(c, zero, size) || c->n_fixes == NODES_BLOCKS)
		return;
	c->fixes[c->n_fixes].at = (uint32_t)c->at - size;
	c->fixes[c->n_fixes++].size = size;
}

static void put_one(struct writer *c, const struct bytes *list, size_t n)
{
	const struct bytes *b = &list[diff_below(c->r, n)];

	put(c, b->bytes, b->size);
}

/* True: use the next kind of end. N: its share of ALL. */
static bool is_kind(size_t *left, uint8_t n)
{
	if (*left < n) {
		*left = SIZE_MAX;
		return true;
	}
	*left -= *left == SIZE_MAX ? 0 : n;
	return false;
}

static size_t sum(const struct style *s)
{
	return (size_t)s->cond + s->loop + s->jump + s->call + s->empty_call + s->jump_ind +
	       s->call_ind + s->ret + s->odd;
}

static void put_end(struct writer *c, const struct style *s)
{
	size_t left = diff_below(c->r, sum(s));
	uint8_t cc = (uint8_t)(0x70 + diff_below(c->r, 16)), far[2] = {0x0f, (uint8_t)(cc + 0x10)};

	if (is_kind(&left, s->cond)) {
		if (nodes_once(c->r, 3))
			put_direct(c, far, 2, 4);
		else
			put_direct(c, &cc, 1, 1);
	} else if (is_kind(&left, s->loop)) {
		put_direct(c, "\xe2", 1, 1);
	} else if (is_kind(&left, s->jump)) {
		if (nodes_once(c->r, 3))
			put_direct(c, "\xe9", 1, 4);
		else
			put_direct(c, "\xeb", 1, 1);
	} else if (is_kind(&left, s->call)) {
		put_direct(c, "\xe8", 1, 4);
	} else if (is_kind(&left, s->empty_call)) {
		put(c, "\xe8\x00\x00\x00\x00", 5);
	} else if (is_kind(&left, s->jump_ind)) {
		put(c, "\xff\xe0", 2);
	} else if (is_kind(&left, s->call_ind)) {
		put(c, "\xff\xd0", 2);
	} else if (is_kind(&left, s->ret)) {
		if (nodes_once(c->r, 4))
			put(c, "\xc2\x08\x00", 3);
		else
			put(c, "\xc3", 1);
	} else {
		put_one(c, odd, ARRAY_SIZE(odd));
	}
}

/* Picks a target that SIZE bytes of displacement reach. */
static int64_t some_target(struct writer *c, size_t i, const struct style *s)
{
	size_t n = c->w->n_blocks[c->content];
	uint32_t next = c->fixes[i].at + c->fixes[i].size;

	if (diff_below(c->r, 100) < s->far_off)
		return (int64_t)diff_below(c->r, 3 * NODES_CODE_BYTES) - NODES_CODE_BYTES;
	if (nodes_once(c->r, 16))
		return next;
	for (unsigned int tries = 0; tries < 16; tries++) {
		int64_t to = c->w->blocks[c->content][diff_below(c->r, n)];

		if (c->fixes[i].size == 4 || (to - next >= -128 && to - next < 128))
			return to;
	}
	return next + (int64_t)diff_below(c->r, 20) - 10;
}

static void fix(struct writer *c, const struct style *s)
{
	for (size_t i = 0; i < c->n_fixes; i++) {
		uint32_t next = c->fixes[i].at + c->fixes[i].size;
		int32_t distance = (int32_t)(some_target(c, i, s) - next);

		memcpy(c->w->codes[c->content] + c->fixes[i].at, &distance, c->fixes[i].size);
	}
}

static void make_code(struct nodes_world *w, struct diff_random *r, uint32_t content)
{
	const struct style *s = &styles[diff_below(r, ARRAY_SIZE(styles))];
	struct writer c = {.w = w, .r = r, .content = content};
	/* With few blocks, some blocks become hot. */
	size_t bytes = nodes_once(r, 2) ? NODES_CODE_BYTES : 40 + diff_below(r, 400);

	memset(w->codes[content], nodes_once(r, 2) ? 0x90 : 0xc3, NODES_CODE_BYTES);
	w->n_blocks[content] = 0;
	while (c.at < bytes && w->n_blocks[content] < NODES_BLOCKS) {
		w->blocks[content][w->n_blocks[content]++] = (uint16_t)c.at;
		for (size_t n = diff_below(r, s->fillers + 1u); n > 0; n--)
			put_one(&c, fillers, ARRAY_SIZE(fillers));
		put_end(&c, s);
		if (c.at + 16 > NODES_CODE_BYTES)
			break;
	}
	fix(&c, s);
}

/* --- Places --- */

const struct nodes_place *nodes_world_find(const struct nodes_world *w, uint64_t context,
					   uint64_t ip)
{
	for (size_t i = 0; i < w->n_places; i++) {
		const struct nodes_place *p = &w->places[i];

		if (p->context == context && ip - p->address < p->size)
			return p;
	}
	return NULL;
}

static bool is_free(const struct nodes_world *w, const struct nodes_place *p)
{
	for (size_t i = 0; i < w->n_places; i++) {
		const struct nodes_place *q = &w->places[i];

		if (p->context == q->context && p->address < q->address + q->size &&
		    q->address < p->address + p->size)
			return false;
	}
	return true;
}

static void add_place(struct nodes_world *w, struct diff_random *r, uint64_t context)
{
	static const uint64_t bases[] = {0x400000,	 0x400800,	 0x401000,
					 0x555555554000, 0x7ffff7dd0000, 0x7ffff7dd0800,
					 0x7ffffffff800, KERNEL,	 0x10000};
	struct nodes_place p = {.context = context,
				.content = (uint32_t)diff_below(r, NODES_CODES),
				.size = NODES_CODE_BYTES,
				.mapping = !nodes_once(r, 3),
				.changing = nodes_once(r, 8)};

	p.address = bases[diff_below(r, ARRAY_SIZE(bases))];
	if (nodes_once(r, 4)) {
		p.first = (uint32_t)diff_below(r, NODES_CODE_BYTES / 2);
		p.size = 1 + (uint32_t)diff_below(r, NODES_CODE_BYTES - p.first);
	}
	if (nodes_once(r, 4)) {
		p.piece = (p.mapping ? INSN_MAX_SIZE : 1) + (uint32_t)diff_below(r, 256);
		p.mixed = !p.mapping && nodes_once(r, 4);
	}
	p.ends = nodes_once(r, 16);
	if (is_free(w, &p) && w->n_places < NODES_PLACES)
		w->places[w->n_places++] = p;
}

/* Places with the same content share a mapping: their pieces have equal bytes. */
static int give_piece(const struct nodes_world *w, const struct nodes_place *p, uint64_t ip,
		      struct flow_code *ret)
{
	uint64_t at = ip - p->address, size = p->size;

	*ret = (struct flow_code){.bytes = w->codes[p->content] + p->first,
				  .address = p->address,
				  .size = p->size,
				  .changing = p->changing,
				  .ends = p->ends};
	if (p->mapping) {
		ret->map_address = p->address;
		ret->map_size = p->size;
	}
	if (p->piece == 0)
		return 0;
	at -= at % p->piece;
	ret->bytes += at;
	ret->address += at;
	ret->size = MIN_OF((uint64_t)p->piece, size - at);
	ret->changing ^= p->mixed && at / p->piece % 2 != 0;
	return 0;
}

static int give_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	const struct nodes_world *w = userdata;
	const struct nodes_place *p = nodes_world_find(w, context, ip);

	if (p == NULL)
		return ip & 0x100 ? FAULT_ANONYMOUS : FAULT_UNMAPPED;
	return give_piece(w, p, ip, ret);
}

static int give_kernel_code(void *userdata, uint64_t ip, uint32_t version, struct flow_code *ret)
{
	const struct nodes_world *w = userdata;
	const struct nodes_place *p = nodes_world_find(w, 0, ip);

	(void)version;
	return p != NULL ? give_piece(w, p, ip, ret) : FAULT_UNMAPPED;
}

static uint32_t give_version(void *userdata, uint64_t ip, uint64_t lo, uint64_t hi,
			     uint32_t *ret_last)
{
	(void)userdata;
	(void)ip;
	(void)lo;
	(void)hi;
	*ret_last = 0;
	return 0;
}

static uint64_t give_context(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi)
{
	struct nodes_world *w = userdata;
	uint64_t at = flow_asked_at(w->flow), context = 0;

	(void)ip;
	(void)tsc_lo;
	(void)tsc_hi;
	if (w->often_later && !flow_asked_again(w->flow) && !flow_asked_switch(w->flow) &&
	    (at & 3) == 0) {
		w->later = !w->later;
		if (w->later)
			return FLOW_CONTEXT_LATER;
	}
	for (size_t i = 0; i < w->n_enables && w->enables[i].offset <= at; i++)
		context = w->enables[i].context;
	return context;
}

void nodes_world_reset(void *world, struct flow *f)
{
	struct nodes_world *w = world;

	w->flow = f;
	w->later = false;
}

static void make_config(struct nodes_world *w, struct diff_random *r)
{
	static const uint8_t models[] = {0,    0,    0x5e, 0x8e, 0x97, 0xcf, 0x3d,
					 0x4f, 0x4f, 0x55, 0x5c, 0x5f, 0x7a};

	w->config = (struct flow_config){.mtc_period = nodes_once(r, 8) ? UINT32_MAX : 3,
					 .max_nonturbo_ratio = nodes_once(r, 8) ? 0 : 32,
					 .tsc_art_num = nodes_once(r, 8) ? 0 : 266,
					 .tsc_art_den = 2,
					 .code = give_code,
					 .context = give_context,
					 .userdata = w,
					 .marks = nodes_once(r, 2),
					 .ticks = nodes_once(r, 64),
					 .guests = nodes_once(r, 4),
					 .resume_at_psb = nodes_once(r, 6),
					 .resume_at_tip = nodes_once(r, 6),
					 .retstack_libipt = nodes_once(r, 6),
					 .retstack = (enum retstack_rule)diff_below(r, 8),
					 .cut = nodes_once(r, 6)};
	/* Mostly not known. */
	if (w->config.retstack > RETSTACK_COMPRESSED)
		w->config.retstack = RETSTACK_ASK;
	w->config.cpu_model = models[diff_below(r, sizeof(models))];
	w->config.cpu_family = w->config.cpu_model != 0 ? 6 : 0;
	if (nodes_once(r, 12)) {
		w->config.kernel_start = KERNEL;
		if (nodes_once(r, 3))
			w->config.kernel_start = w->places[diff_below(r, w->n_places)].address +
						 diff_below(r, NODES_CODE_BYTES);
		w->config.kernel_code = give_kernel_code;
		w->config.kernel_version = give_version;
	}
	w->often_later = nodes_once(r, 8);
}

void nodes_world_make(struct nodes_world *w, struct diff_random *r)
{
	size_t contexts = 1 + diff_below(r, 3);

	for (uint32_t i = 0; i < NODES_CODES; i++)
		make_code(w, r, i);
	w->n_places = w->n_enables = w->size = 0;
	for (uint64_t c = 0; c < contexts; c++) {
		size_t n = 1 + diff_below(r, 5);

		while (n-- > 0)
			add_place(w, r, c);
	}
	make_config(w, r);
	nodes_world_run(w, r);
}

/* --- Changes --- */

static void shift_enables(struct nodes_world *w, size_t at, size_t gone, size_t come)
{
	for (size_t i = 0; i < w->n_enables; i++) {
		uint64_t *offset = &w->enables[i].offset;

		if (*offset >= at + gone)
			*offset += come - gone;
		else if (*offset > at)
			*offset = at;
	}
}

static void replace(struct nodes_world *w, size_t at, size_t n, const uint8_t *with, size_t size)
{
	size_t rest = w->size - at - n;

	if (at + size + rest > NODES_TRACE_MAX)
		return;
	memmove(w->trace + at + size, w->trace + at + n, rest);
	memcpy(w->trace + at, with, size);
	w->size = at + size + rest;
	shift_enables(w, at, n, size);
}

void nodes_world_cut(struct nodes_world *w, size_t at, size_t n)
{
	replace(w, at, n, w->trace, 0);
}

/* Picks the beginning of a packet. */
static size_t some_packet(const struct nodes_world *w, struct diff_random *r, size_t *ret_size)
{
	size_t skip = diff_below(r, w->size), at = 0;
	struct packet_cursor c = {.pos = w->trace, .end = w->trace + w->size};
	struct packet p;

	*ret_size = 1;
	while (packet_next(&c, &p) == 0) {
		at = (size_t)(c.pos - w->trace) - p.size;
		*ret_size = p.size;
		if (at >= skip)
			break;
	}
	return at;
}

static size_t make_packet(const struct nodes_world *w, struct diff_random *r, uint8_t *to)
{
	static const struct bytes fixed[] = {
		{1, {0x00}},
		{2, {0x02, 0xf3}},
		{2, {0x99, 0x01}},
		{2, {0x99, 0x02}},
		{4, {0x02, 0x03, 0x10, 0x00}},
		{8, {0x02, 0x43, 0x00, 0x10}},
		{8, {0x19, 0x01, 0x02}},
		{2, {0x59, 0x10}},
		{7, {0x02, 0x73, 0x01}},
		{1, {0x0b}},
		{2, {0x0f, 0x02}},
		{3, {0x0f, 0x03, 0x02}},
		{6, {0x02, 0x12}},
		{8, {0x02, 0xa3, 0x55, 0xaa, 0x01}},
		{1, {0x01}},
		{2, {0x99, 0x21}},
		{8, {0x02, 0xa3, 0, 0, 0, 0, 0, 0x80}},
		{8, {0x02, 0xa3, 0x01}},
		{9, {0x02, 0xa3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x06}},
	};
	static const uint8_t ips[] = {0x0d, 0x0d, 0x11, 0x01, 0x1d};
	const struct nodes_place *p = &w->places[diff_below(r, w->n_places)];
	const struct bytes *b = &fixed[diff_below(r, ARRAY_SIZE(fixed))];
	uint64_t ip = p->address + diff_below(r, p->size + 8u);

	switch (diff_below(r, 3)) {
	case 0: to[0] = (uint8_t)((2 + diff_below(r, 0x7e)) << 1); return 1; /* TNT */
	case 1:
		to[0] = (uint8_t)(ips[diff_below(r, sizeof(ips))] | 3u << 5);
		memcpy(to + 1, &ip, 6);
		return 7;
	default: memcpy(to, b->bytes, b->size); return b->size;
	}
}

void nodes_world_change_trace(struct nodes_world *w, struct diff_random *r)
{
	size_t size, at = some_packet(w, r, &size), any = diff_below(r, w->size);
	size_t some = 1 + diff_below(r, 64);
	uint8_t bytes[64];

	switch (diff_below(r, 9)) {
	case 0: w->trace[any] ^= (uint8_t)(1u << diff_below(r, 8)); break;
	case 1: w->trace[any] = (uint8_t)diff_random(r); break;
	case 2: replace(w, at, size, bytes, 0); break;
	case 3:
		memcpy(bytes, w->trace + at, size);
		replace(w, at, 0, bytes, size);
		break;
	case 4: replace(w, at, size, bytes, make_packet(w, r, bytes)); break;
	case 5:
	case 6: replace(w, at, 0, bytes, make_packet(w, r, bytes)); break;
	case 7: replace(w, any, MIN_OF(w->size - any, some), bytes, 0); break;
	default:
		if (nodes_once(r, 4)) {
			w->size = any + 1;
			break;
		}
		size = MIN_OF(w->size - any, some);
		memcpy(bytes, w->trace + any, size);
		replace(w, diff_below(r, w->size), 0, bytes, size);
		break;
	}
}

static void change_code(struct nodes_world *w, struct diff_random *r)
{
	uint8_t *code = w->codes[diff_below(r, NODES_CODES)];
	size_t at = diff_below(r, NODES_CODE_BYTES - 16), i = diff_below(r, w->n_places);
	const struct bytes *b = &odd[diff_below(r, ARRAY_SIZE(odd))];

	switch (diff_below(r, 6)) {
	case 0: code[at] ^= (uint8_t)(1u << diff_below(r, 8)); break;
	case 1: memcpy(code + at, b->bytes, b->size); break;
	case 2: w->places[i].size = 1 + (uint32_t)diff_below(r, w->places[i].size); break;
	case 3: w->places[i].changing = !w->places[i].changing; break;
	case 4:
		if (w->n_places > 1)
			w->places[i] = w->places[--w->n_places];
		break;
	default: memcpy(code + at, "\xeb\xfe", 2); break;
	}
}

void nodes_world_change(struct nodes_world *w, struct diff_random *r)
{
	if (nodes_once(r, 4))
		change_code(w, r);
	else if (w->size > 0)
		nodes_world_change_trace(w, r);
}

void nodes_world_print(const struct nodes_world *w)
{
	printf("cpu %" PRIu32 " kernel %" PRIx64 " marks %d guests %d psb %d tip %d libipt %d "
	       "cut %d\ntrace",
	       w->config.cpu_model, w->config.kernel_start, w->config.marks, w->config.guests,
	       w->config.resume_at_psb, w->config.resume_at_tip, w->config.retstack_libipt,
	       w->config.cut);
	for (size_t i = 0; i < w->size; i++)
		printf(" %02x", w->trace[i]);
	for (size_t i = 0; i < w->n_places; i++) {
		const struct nodes_place *p = &w->places[i];

		printf("\nplace %" PRIu64 ": %" PRIx64 " of %" PRIu32 "+%" PRIx32 " size %" PRIx32
		       " piece %" PRIu32 "%s%s%s",
		       p->context, p->address, p->content, p->first, p->size, p->piece,
		       p->mapping ? " mapping" : "", p->changing ? " changing" : "",
		       p->ends ? " ends" : "");
	}
	for (size_t i = 0; i < w->n_enables; i++)
		printf("\nfrom %" PRIu64 " context %" PRIu64, w->enables[i].offset,
		       w->enables[i].context);
	for (size_t i = 0; i < NODES_CODES; i++) {
		printf("\ncode %zu", i);
		for (size_t at = 0; at < NODES_CODE_BYTES; at++)
			printf("%s%02x", at % 32 == 0 ? "\n" : "", w->codes[i][at]);
	}
	printf("\n");
}
