/*
 * The block cache. Blocks lie in an arena and are found by an open-addressing hash table; pieces of
 * code that the user gave are kept by context, so that each is asked for once. Used by the walk.
 *
 * Which addresses are asked for a stranger's trace says, so neither memory nor time may depend on
 * them: a block costs at most the instructions of one (GRAPH_BLOCK_MAX) and a bounded search for
 * its place (PROBES_MAX). Where either limit would be exceeded all blocks are thrown away, with the
 * table that they had made grow: what that costs was paid for when they were added.
 */
#include "decoder/graph.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define PAGE_SHIFT  12 /* as in struct flow_code */
#define CHUNK_BYTES ((size_t)256 << 10)
#define TABLE_MIN   4096u
#define PROBES_MAX  256u /* addresses are a stranger's: they may be chosen to lie together */
#define PIECES_MAX  ((size_t)1 << 14) /* remembered before they are asked for anew */

struct chunk {
	struct chunk *next;
	size_t used;
	_Alignas(16) uint8_t bytes[CHUNK_BYTES];
};

struct piece {
	uint64_t context;
	struct flow_code code;
};

struct graph {
	int (*code)(void *userdata, uint64_t ip, struct flow_code *ret);
	int (*kernel)(void *userdata, uint64_t ip, uint32_t version, struct flow_code *ret);
	void *userdata;
	struct insn_reader *insns;
	size_t max_bytes, bytes;
	uint64_t generation;
	struct chunk *chunks; /* the newest first */
	struct graph_block **table;
	size_t table_size, n_blocks; /* size: a power of two */
	/* Pieces sorted by context and address. */
	struct piece *pieces;
	size_t n_pieces, max_pieces;
};

struct graph *graph_new(int (*code)(void *userdata, uint64_t ip, struct flow_code *ret),
			void *userdata, size_t max_bytes)
{
	struct graph *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	g->code = code;
	g->userdata = userdata;
	g->max_bytes = max_bytes;
	g->insns = insn_reader_new();
	g->table = calloc(TABLE_MIN, sizeof(g->table[0]));
	g->table_size = TABLE_MIN;
	if (g->insns == NULL || g->table == NULL) {
		graph_free(g);
		return NULL;
	}
	return g;
}

void graph_set_kernel(struct graph *g, int (*code)(void *userdata, uint64_t ip, uint32_t version,
						   struct flow_code *ret))
{
	g->kernel = code;
}

static void free_chunks(struct graph *g)
{
	while (g->chunks != NULL) {
		struct chunk *next = g->chunks->next;

		free(g->chunks);
		g->chunks = next;
	}
	g->bytes = 0;
}

void graph_free(struct graph *g)
{
	if (g == NULL)
		return;
	free_chunks(g);
	insn_reader_free(g->insns);
	free(g->table);
	free(g->pieces);
	free(g);
}

uint64_t graph_generation(const struct graph *g)
{
	return g->generation;
}

/* Also back to a small table: what clearing it costs was paid for by its growth. */
static void forget_blocks(struct graph *g)
{
	struct graph_block **table = calloc(TABLE_MIN, sizeof(*table));

	free_chunks(g);
	if (table != NULL) {
		free(g->table);
		g->table = table;
		g->table_size = TABLE_MIN;
	} else {
		memset(g->table, 0, g->table_size * sizeof(g->table[0]));
	}
	g->n_blocks = 0;
	g->generation++;
}

/* SIZE is far below CHUNK_BYTES. */
static void *arena_take(struct graph *g, size_t size)
{
	struct chunk *c = g->chunks;

	size = (size + 15) & ~(size_t)15;
	if (c == NULL || CHUNK_BYTES - c->used < size) {
		c = malloc(sizeof(*c));
		if (c == NULL)
			return NULL;
		c->next = g->chunks;
		c->used = 0;
		g->chunks = c;
		g->bytes += sizeof(*c);
	}
	c->used += size;
	return c->bytes + c->used - size;
}

/* P was taken last: it keeps SIZE bytes. */
static void arena_trim(struct graph *g, const void *p, size_t size)
{
	struct chunk *c = g->chunks;

	c->used = (size_t)((const uint8_t *)p - c->bytes) + ((size + 15) & ~(size_t)15);
}

/* Index of the first piece behind (CONTEXT, IP). */
static size_t piece_bound(const struct graph *g, uint64_t context, uint64_t ip)
{
	size_t low = 0, high = g->n_pieces;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct piece *p = &g->pieces[middle];

		if (p->context < context || (p->context == context && p->code.address <= ip))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int insert_piece(struct graph *g, uint64_t context, const struct flow_code *code)
{
	size_t at;

	if (g->n_pieces >= PIECES_MAX)
		g->n_pieces = 0;
	if (g->n_pieces == g->max_pieces) {
		size_t max = g->max_pieces == 0 ? 64 : g->max_pieces * 2;
		struct piece *grown = realloc(g->pieces, max * sizeof(*grown));

		if (grown == NULL)
			return -ENOMEM;
		g->pieces = grown;
		g->max_pieces = max;
	}
	at = piece_bound(g, context, code->address);
	memmove(&g->pieces[at + 1], &g->pieces[at], (g->n_pieces - at) * sizeof(g->pieces[0]));
	g->pieces[at] = (struct piece){context, *code};
	g->n_pieces++;
	return 0;
}

static int ask_code(const struct graph *g, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	if ((context & GRAPH_KERNEL) != 0 && g->kernel != NULL)
		return g->kernel(g->userdata, ip, (uint32_t)context, ret);
	return g->code(g->userdata, ip, ret);
}

/* 0, an enum fault, or -ENOMEM. */
static int find_code(struct graph *g, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	size_t at = piece_bound(g, context, ip);
	int r;

	if (at > 0) {
		*ret = g->pieces[at - 1].code;
		if (g->pieces[at - 1].context == context && ip - ret->address < ret->size)
			return 0;
	}
	*ret = (struct flow_code){0};
	r = ask_code(g, context, ip, ret);
	if (r != 0)
		return r;
	if (ret->bytes == NULL || ip < ret->address || ip - ret->address >= ret->size)
		return FAULT_UNMAPPED;
	return insert_piece(g, context, ret);
}

/* The SIZE bytes at AT of CODE were looked at. */
static void touch(const struct flow_code *code, uint64_t at, uint64_t size)
{
	uint64_t first = code->address >> PAGE_SHIFT, ip = code->address + at;

	if (code->touched == NULL)
		return;
	code->touched[(ip >> PAGE_SHIFT) - first] = 1;
	code->touched[((ip + size - 1) >> PAGE_SHIFT) - first] = 1;
}

/* An instruction that crosses the end of its piece: its bytes are put together from both. */
static int read_across(struct graph *g, const struct graph_block *b, const struct flow_code *code,
		       struct insn *ret)
{
	uint64_t at = b->next - code->address, left = code->size - at, gone;
	uint8_t bytes[INSN_MAX_SIZE];
	struct flow_code more;
	size_t n;
	int r;

	if (left >= INSN_MAX_SIZE)
		return FAULT_BAD_INSN;
	memcpy(bytes, code->bytes + at, (size_t)left);
	r = find_code(g, b->context, b->next + left, &more);
	if (r != 0)
		return r;
	gone = b->next + left - more.address;
	n = (size_t)MIN_OF(more.size - gone, INSN_MAX_SIZE - left);
	memcpy(bytes + left, more.bytes + gone, n);
	r = insn_read(g->insns, b->mode, b->next, bytes, (size_t)left + n, ret);
	touch(&more, gone, r == 0 ? ret->size - left : n);
	return r == 0 ? 0 : FAULT_BAD_INSN;
}

/* The instruction at b->next. 0, an enum fault, or -ENOMEM. */
static int read_next(struct graph *g, const struct graph_block *b, struct flow_code *code,
		     struct insn *ret)
{
	uint64_t at = b->next - code->address, left;
	int r;

	if (at >= code->size) {
		r = find_code(g, b->context, b->next, code);
		if (r != 0)
			return r;
		at = b->next - code->address;
	}
	left = MIN_OF(code->size - at, (uint64_t)INSN_MAX_SIZE);
	r = insn_read(g->insns, b->mode, b->next, code->bytes + at, (size_t)left, ret);
	/* What is no instruction is none because of any of its bytes. */
	touch(code, at, r == 0 ? ret->size : left);
	if (r == 0)
		return 0;
	return r == INSN_SHORT ? read_across(g, b, code, ret) : FAULT_BAD_INSN;
}

static bool ends_here(const struct graph_block *b, const struct flow_code *code)
{
	return code->ends && b->n > 0 && b->next - code->address >= code->size;
}

/* Fills B, which has room for GRAPH_BLOCK_MAX instructions, from its ip on. 0 or -ENOMEM. */
static int draw_up(struct graph *g, struct graph_block *b)
{
	struct flow_code code = {0};
	struct insn insn;

	while (b->fault == FAULT_NONE && b->class == INSN_OTHER && b->n < GRAPH_BLOCK_MAX &&
	       !ends_here(b, &code)) {
		int r = read_next(g, b, &code, &insn);

		if (r < 0)
			return r;
		b->changing |= code.changing;
		if (r > 0) {
			b->fault = (uint8_t)r;
			break;
		}
		b->sizes[b->n++] = insn.size;
		b->last = b->next;
		b->next += insn.size;
		b->class = insn.class;
		b->target = insn.target;
	}
	return 0;
}

static size_t slot_of(const struct graph *g, uint64_t context, uint64_t ip)
{
	uint64_t h = (ip ^ context * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);

	return (size_t)(h >> 32 ^ h >> 11) & (g->table_size - 1);
}

static struct graph_block **find_slot(const struct graph *g, uint64_t context, uint8_t mode,
				      uint64_t ip)
{
	for (size_t i = slot_of(g, context, ip);; i = (i + 1) & (g->table_size - 1)) {
		struct graph_block *b = g->table[i];

		if (b == NULL || (b->ip == ip && b->context == context && b->mode == mode))
			return &g->table[i];
	}
}

/* How far the place for a new block is from where it should be. */
static size_t count_probes(const struct graph *g, const struct graph_block *b)
{
	size_t at = (size_t)(find_slot(g, b->context, b->mode, b->ip) - g->table);

	return (at - slot_of(g, b->context, b->ip)) & (g->table_size - 1);
}

static int grow_table(struct graph *g)
{
	struct graph_block **old = g->table, **grown;
	size_t old_size = g->table_size;

	grown = calloc(old_size * 2, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	g->table = grown;
	g->table_size = old_size * 2;
	for (size_t i = 0; i < old_size; i++) {
		if (old[i] != NULL)
			*find_slot(g, old[i]->context, old[i]->mode, old[i]->ip) = old[i];
	}
	free(old);
	return 0;
}

/* Room for the largest block; what it did not need is given back. */
static struct graph_block *add_block(struct graph *g, const struct graph_block *head)
{
	struct graph_block *b;

	if (g->bytes + g->table_size * sizeof(g->table[0]) > g->max_bytes ||
	    count_probes(g, head) > PROBES_MAX)
		forget_blocks(g);
	if (g->n_blocks >= g->table_size / 2 && grow_table(g) != 0)
		return NULL;
	b = arena_take(g, sizeof(*b) + GRAPH_BLOCK_MAX);
	if (b == NULL)
		return NULL;
	*b = *head;
	if (draw_up(g, b) != 0) {
		arena_trim(g, b, 0);
		return NULL;
	}
	arena_trim(g, b, sizeof(*b) + b->n);
	*find_slot(g, b->context, b->mode, b->ip) = b;
	g->n_blocks++;
	return b;
}

/* Nothing is known yet of what is behind IP. */
static void begin_block(struct graph_block *b, uint64_t context, enum insn_mode mode, uint64_t ip)
{
	*b = (struct graph_block){
		.context = context,
		.ip = ip,
		.last = ip,
		.next = ip,
		.class = INSN_OTHER,
		.mode = (uint8_t)mode,
	};
}

struct graph_block *graph_get(struct graph *g, uint64_t context, enum insn_mode mode, uint64_t ip)
{
	struct graph_block *b = *find_slot(g, context, (uint8_t)mode, ip);
	struct graph_block head;

	if (b != NULL)
		return b;
	begin_block(&head, context, mode, ip);
	return add_block(g, &head);
}

const struct graph_block *graph_look(struct graph *g, uint64_t context, enum insn_mode mode,
				     uint64_t ip, union graph_room *room)
{
	const struct graph_block *b = *find_slot(g, context, (uint8_t)mode, ip);

	if (b != NULL)
		return b;
	begin_block(&room->block, context, mode, ip);
	return draw_up(g, &room->block) == 0 ? &room->block : NULL;
}

int graph_index(const struct graph_block *b, uint64_t ip)
{
	uint64_t at = b->ip;

	if (ip < b->ip || ip > b->last)
		return -1;
	for (int i = 0; i < b->n && at <= ip; i++) {
		if (at == ip)
			return i;
		at += b->sizes[i];
	}
	return -1;
}
