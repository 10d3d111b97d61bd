/*
 * The block cache, which the walk uses. Blocks lie in an arena, and an open-addressing hash table
 * finds them. Pieces of code that the user gave are kept by context, so that the cache asks for
 * each piece once.
 *
 * A stranger's trace says which addresses are asked for, so neither memory nor time may depend on
 * them. A block costs at most GRAPH_BLOCK_MAX instructions and a bounded search for its place
 * (PROBES_MAX). Where that search or the memory would exceed its limit, the cache throws away all
 * blocks, and the table that has grown for them: adding the blocks has paid for that cost.
 */
#include "decoder/code/graph.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define LOCK_TRIES  200u
#define PAGE_SHIFT  12 /* as in struct flow_code */
#define CHUNK_BYTES ((size_t)256 << 10)
#define TABLE_MIN   4096u
#define PROBES_MAX  256u /* addresses are a stranger's: they may be chosen to lie together */
#define PIECES_MAX  ((size_t)1 << 14) /* beyond this number all are forgotten and asked for anew */

struct chunk {
	struct chunk *next;
	size_t used;
	_Alignas(16) uint8_t bytes[CHUNK_BYTES];
};

struct piece {
	uint64_t context;
	struct flow_code code;
};

/* An entry of the hash table. It has the block's address, so that a search reads few blocks, which
 * lie anywhere. */
struct slot {
	uint64_t ip;
	struct graph_block *block; /* NULL: free */
};

struct graph {
	int (*code)(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret);
	int (*kernel)(void *userdata, uint64_t ip, uint32_t version, struct flow_code *ret);
	void *userdata;
	struct insn_reader *insns;
	size_t max_bytes, bytes;
	uint64_t generation;
	struct chunk *chunks; /* the newest first */
	struct slot *table;
	size_t table_size, n_blocks; /* size: a power of two */
	/* Pieces sorted by context and address. */
	struct piece *pieces;
	size_t n_pieces, max_pieces;
	/* For several threads. */
	_Alignas(64) pthread_mutex_t lock;
	bool held;
	_Alignas(64) bool shared;
	bool known;
	bool missing; /* code was wanted that is not known, since the lock was taken: */
	uint64_t missing_context, missing_ip;
};

/* A graph of zeros, aligned as its lock must be. */
static struct graph *new_graph(void)
{
	struct graph *g = aligned_alloc(_Alignof(struct graph), sizeof(*g));

	if (g != NULL)
		*g = (struct graph){0};
	return g;
}

struct graph *graph_new(int (*code)(void *userdata, uint64_t context, uint64_t ip,
				    struct flow_code *ret),
			void *userdata, size_t max_bytes)
{
	struct graph *g = new_graph();

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
	if (g->shared)
		pthread_mutex_destroy(&g->lock);
	free(g);
}

int graph_share(struct graph *g)
{
	if (g->shared)
		return 0;
	g->shared = pthread_mutex_init(&g->lock, NULL) == 0;
	return g->shared ? 0 : -ENOMEM;
}

/* Threads hold the lock for a short time: to sleep would take longer. A waiting thread only reads
 * `held`, which the holder does not write again before it is done. */
static void take_lock(struct graph *g)
{
	for (unsigned int i = 0; i < LOCK_TRIES; i++) {
		if (!__atomic_load_n(&g->held, __ATOMIC_RELAXED) &&
		    pthread_mutex_trylock(&g->lock) == 0)
			return;
#if defined(__x86_64__)
		__builtin_ia32_pause();
#endif
	}
	pthread_mutex_lock(&g->lock);
}

void graph_lock(struct graph *g, bool known)
{
	if (!g->shared)
		return;
	take_lock(g);
	__atomic_store_n(&g->held, true, __ATOMIC_RELAXED);
	g->known = known;
	g->missing = false;
}

void graph_unlock(struct graph *g)
{
	if (!g->shared)
		return;
	g->known = false;
	__atomic_store_n(&g->held, false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&g->lock);
}

uint64_t graph_generation(const struct graph *g)
{
	return g->generation;
}

/* Throws away all blocks, and goes back to a small table. The growth of the table has paid for
 * clearing it. */
static void forget_blocks(struct graph *g)
{
	struct slot *table = calloc(TABLE_MIN, sizeof(*table));

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

/* Takes SIZE bytes, which is far below CHUNK_BYTES. NULL: no memory. */
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

/* Shortens P, which was taken last, to SIZE bytes. */
static void arena_trim(struct graph *g, const void *p, size_t size)
{
	struct chunk *c = g->chunks;

	c->used = (size_t)((const uint8_t *)p - c->bytes) + ((size + 15) & ~(size_t)15);
}

/* Index of the first piece behind (CONTEXT, IP). */
static size_t piece_bound(const struct graph *g, uint64_t context, uint64_t ip)
{
	return FIRST_WHERE(i, g->n_pieces,
			   g->pieces[i].context > context || (g->pieces[i].context == context &&
							      g->pieces[i].code.address > ip));
}

static int insert_piece(struct graph *g, uint64_t context, const struct flow_code *code)
{
	size_t at;

	if (g->n_pieces >= PIECES_MAX)
		g->n_pieces = 0;
	if (ARRAY_RESERVE(g->pieces, g->max_pieces, g->n_pieces + 1) < 0)
		return -ENOMEM;
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
	return g->code(g->userdata, context, ip, ret);
}

static int ask_for(const struct graph *g, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	int r;

	*ret = (struct flow_code){0};
	r = ask_code(g, context, ip, ret);
	if (r == 0 && (ret->bytes == NULL || ip < ret->address || ip - ret->address >= ret->size))
		return FAULT_UNMAPPED;
	return r;
}

/* Whether CODE may be read now. With KNOWN a thread may walk ahead in vain, and code that only such
 * a walk reads must not count as touched. */
static bool may_read(const struct graph *g, const struct flow_code *code)
{
	return !g->known || code->touched == NULL;
}

/* Finds the piece of code around IP, or asks the user for it. 0, an enum fault, or -ENOMEM. */
static int find_code(struct graph *g, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	size_t at = piece_bound(g, context, ip);
	int r;

	if (at > 0) {
		*ret = g->pieces[at - 1].code;
		if (g->pieces[at - 1].context == context && ip - ret->address < ret->size)
			return may_read(g, ret) ? 0 : -ENOMEM;
	}
	if (g->known) {
		g->missing = true;
		g->missing_context = context;
		g->missing_ip = ip;
		return -ENOMEM;
	}
	r = ask_for(g, context, ip, ret);
	return r == 0 ? insert_piece(g, context, ret) : r;
}

bool graph_unlock_and_ask(struct graph *g)
{
	bool missing = g->shared && g->missing;
	uint64_t context = g->missing_context, ip = g->missing_ip;
	struct flow_code code;
	int r;

	graph_unlock(g);
	if (!missing || ask_for(g, context, ip, &code) != 0)
		return false;
	graph_lock(g, false);
	r = insert_piece(g, context, &code);
	graph_unlock(g);
	return r == 0;
}

int graph_code(struct graph *g, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	return find_code(g, context, ip, ret);
}

/* Notes that the SIZE bytes at AT of CODE were looked at. */
static void touch(const struct flow_code *code, uint64_t at, uint64_t size)
{
	uint64_t first = code->address >> PAGE_SHIFT, ip = code->address + at;

	if (code->touched == NULL)
		return;
	code->touched[(ip >> PAGE_SHIFT) - first] = 1;
	code->touched[((ip + size - 1) >> PAGE_SHIFT) - first] = 1;
}

/* Reads an instruction that crosses the end of its piece. Its bytes are put together from this
 * piece and the next one. */
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

/* Adds RUN to B. RUN's sizes are behind those of B already. */
static void add_run(struct graph_block *b, const struct insn_run *run)
{
	if (run->n == 0)
		return;
	b->n = (uint8_t)(b->n + run->n);
	b->next += run->bytes;
	b->last = b->next - b->sizes[b->n - 1];
	b->class = run->last.class;
	b->target = run->last.target;
}

/* Reads the instructions from b->next on, which is in CODE, LEFT bytes before its end. 0, an enum
 * fault, or -ENOMEM. */
static int read_run(struct graph *g, struct graph_block *b, const struct flow_code *code,
		    uint64_t left)
{
	struct insn_run run = {.sizes = b->sizes + b->n, .max = GRAPH_BLOCK_MAX - b->n};
	uint64_t at = b->next - code->address;
	int r = insn_read_run(g->insns, b->mode, b->next, code->bytes + at, (size_t)left, &run);

	if (run.n > 0)
		touch(code, at, run.bytes);
	add_run(b, &run);
	left -= run.bytes;
	if (r == 0 || left == 0)
		return 0;
	/* There is no whole instruction here, and any of these bytes may be the reason. */
	touch(code, at + run.bytes, MIN_OF(left, (uint64_t)INSN_MAX_SIZE));
	if (r != INSN_SHORT)
		return FAULT_BAD_INSN;
	r = read_across(g, b, code, &run.last);
	if (r != 0)
		return r;
	run.n = 1;
	run.bytes = b->sizes[b->n] = run.last.size;
	add_run(b, &run);
	return 0;
}

/* Reads the next instructions of B, in another piece if CODE ends here. 0, an enum fault, or
 * -ENOMEM. */
static int read_next(struct graph *g, struct graph_block *b, struct flow_code *code)
{
	uint64_t at = b->next - code->address;
	int r;

	if (at >= code->size) {
		r = find_code(g, b->context, b->next, code);
		if (r != 0)
			return r;
		at = b->next - code->address;
	}
	return read_run(g, b, code, code->size - at);
}

static bool ends_here(const struct graph_block *b, const struct flow_code *code)
{
	return code->ends && b->n > 0 && b->next - code->address >= code->size;
}

/* Reads the instructions of B, which is empty and has room for GRAPH_BLOCK_MAX of them. 0 or
 * -ENOMEM. */
static int draw_up(struct graph *g, struct graph_block *b)
{
	struct flow_code code = {0};

	while (b->fault == FAULT_NONE && b->class == INSN_OTHER && b->n < GRAPH_BLOCK_MAX &&
	       !ends_here(b, &code)) {
		int r = read_next(g, b, &code);

		if (r < 0)
			return r;
		b->changing = MAX_OF(b->changing, code.changing);
		b->fault = (uint8_t)r;
	}
	return 0;
}

static size_t slot_of(const struct graph *g, uint64_t context, uint64_t ip)
{
	uint64_t h = (ip ^ context * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);

	return (size_t)(h >> 32 ^ h >> 11) & (g->table_size - 1);
}

static struct slot *find_slot(const struct graph *g, uint64_t context, uint8_t mode, uint64_t ip)
{
	for (size_t i = slot_of(g, context, ip);; i = (i + 1) & (g->table_size - 1)) {
		struct slot *s = &g->table[i];

		if (s->block == NULL ||
		    (s->ip == ip && s->block->context == context && s->block->mode == mode))
			return s;
	}
}

/* How far SLOT, the place for a new block, is from the slot where a search for the block begins. */
static size_t count_probes(const struct graph *g, const struct slot *slot, uint64_t context,
			   uint64_t ip)
{
	return ((size_t)(slot - g->table) - slot_of(g, context, ip)) & (g->table_size - 1);
}

static int grow_table(struct graph *g)
{
	struct slot *old = g->table, *grown;
	size_t old_size = g->table_size;

	grown = calloc(old_size * 2, sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	g->table = grown;
	g->table_size = old_size * 2;
	for (size_t i = 0; i < old_size; i++) {
		const struct graph_block *b = old[i].block;

		if (b != NULL)
			*find_slot(g, b->context, b->mode, b->ip) = old[i];
	}
	free(old);
	return 0;
}

/* Adds the block that begins as HEAD. Takes room for the largest block, and gives back what the
 * block does not need. SLOT is the block's place unless the table changes. */
static struct graph_block *add_block(struct graph *g, const struct graph_block *head,
				     struct slot *slot)
{
	bool forget = g->bytes + g->table_size * sizeof(g->table[0]) > g->max_bytes ||
		      count_probes(g, slot, head->context, head->ip) > PROBES_MAX;
	bool grow = !forget && g->n_blocks >= g->table_size / 2;
	struct graph_block *b;

	if (forget && g->known)
		return NULL;
	if (forget)
		forget_blocks(g);
	if (grow && grow_table(g) != 0)
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
	if (forget || grow)
		slot = find_slot(g, b->context, b->mode, b->ip);
	g->n_blocks += slot->block == NULL;
	*slot = (struct slot){b->ip, b};
	return b;
}

/* Makes B an empty block at IP. */
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

/* Whether B ends where there was no code, and there is code now: another thread may have mapped it
 * since. Nodes of another context with the same content do not ask again, so blocks must not keep
 * what was true once. */
static bool has_come(struct graph *g, const struct graph_block *b)
{
	union graph_room room;

	if (b->fault == FAULT_NONE || b->fault == FAULT_BAD_INSN || g->known)
		return false;
	begin_block(&room.block, b->context, b->mode, b->ip);
	return draw_up(g, &room.block) == 0 &&
	       (room.block.n > b->n || room.block.fault == FAULT_NONE);
}

static struct graph_block *get(struct graph *g, uint64_t context, enum insn_mode mode, uint64_t ip)
{
	struct slot *slot = find_slot(g, context, (uint8_t)mode, ip);
	struct graph_block head;

	if (slot->block != NULL && !has_come(g, slot->block))
		return slot->block;
	begin_block(&head, context, mode, ip);
	return add_block(g, &head, slot);
}

struct graph_block *graph_get(struct graph *g, uint64_t context, enum insn_mode mode, uint64_t ip)
{
	struct graph_block *b;

	graph_lock(g, false);
	b = get(g, context, mode, ip);
	graph_unlock(g);
	return b;
}

const struct graph_block *graph_look_locked(struct graph *g, uint64_t context, enum insn_mode mode,
					    uint64_t ip, union graph_room *room)
{
	const struct graph_block *b = find_slot(g, context, (uint8_t)mode, ip)->block;

	if (b != NULL && !has_come(g, b))
		return b;
	begin_block(&room->block, context, mode, ip);
	return draw_up(g, &room->block) == 0 ? &room->block : NULL;
}

const struct graph_block *graph_look(struct graph *g, uint64_t context, enum insn_mode mode,
				     uint64_t ip, union graph_room *room)
{
	const struct graph_block *b;

	graph_lock(g, false);
	b = graph_look_locked(g, context, mode, ip, room);
	graph_unlock(g);
	return b;
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
