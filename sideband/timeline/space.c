/*
 * The mappings of one address space over time, found by time and address.
 *
 * The present mappings are an array in order of address; they never overlap. A mapping ends only
 * when a later one covers it. With history, the pieces that a mapping covered lie below it as a
 * layer. A lookup for an earlier time goes down from layer to layer until it meets a piece that
 * existed then. A place that is mapped again and again (a plug-in loaded and unloaded) would make
 * that slow. Pieces of equal extent therefore form a chain with jumps (Myers, "An applicative
 * random-access stack", 1983), which a lookup passes in a logarithmic number of steps.
 *
 * Lookups change nothing, so threads may look at the same space at the same time.
 */
#include "sideband/timeline/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/base.h"
#include "sideband/timeline/timeline_private.h"

struct piece {
	struct space_mapping m;
	struct layer *below; /* the pieces that this one covered; NULL: none, or no history */
	/* Set if the piece covered exactly one piece of the same extent: */
	uint64_t depth;	    /* number of such pieces below this one */
	struct piece *jump; /* one of these pieces, maybe not the next one */
};

struct layer {
	size_t n;
	struct piece *pieces[]; /* in order of address */
};

struct space {
	struct pool *pool;
	bool owns_pool;
	bool history;
	uint64_t id;
	uint32_t pid;
	uint64_t since;	      /* begin of the first mapping; something is mapped from then on */
	struct piece **alive; /* the present mappings in order of address */
	size_t n, capacity;
	uint64_t newest;   /* the latest begin of a mapping */
	uint32_t *shared;  /* without history: the number of spaces that share ALIVE; NULL: one */
	uint64_t *changes; /* with history: the time of each change */
	uint64_t n_changes;
	size_t changes_capacity;
};

struct space *space_new_in(struct pool *pool, bool history)
{
	/* Global, as ids must also differ between timelines. */
	static uint64_t last_id;
	struct space *s = pool_get(pool, sizeof(*s));

	if (!s)
		return NULL;
	s->pool = pool;
	s->history = history;
	s->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	s->since = UINT64_MAX;
	return s;
}

struct space *space_new(bool history)
{
	struct pool *pool = malloc(sizeof(*pool));
	struct space *s;

	if (!pool)
		return NULL;
	pool_init(pool, SIZE_MAX);
	s = space_new_in(pool, history);
	if (!s) {
		pool_done(pool);
		free(pool);
		return NULL;
	}
	s->owns_pool = true;
	return s;
}

static void put_alive(struct space *s)
{
	if (s->shared && --*s->shared > 0)
		return;
	pool_put(s->pool, s->shared, sizeof(*s->shared));
	for (size_t i = 0; i < s->n; i++)
		pool_put(s->pool, s->alive[i], sizeof(struct piece));
	pool_put(s->pool, s->alive, s->capacity * sizeof(*s->alive));
}

static void put_back(struct space *s)
{
	put_alive(s);
	pool_put(s->pool, s, sizeof(*s));
}

void space_free(struct space *s)
{
	struct pool *pool;

	if (!s)
		return;
	pool = s->pool;
	if (s->owns_pool) {
		pool_done(pool); /* S is in the pool */
		free(pool);
	} else if (!s->history) {
		put_back(s);
	}
}

uint64_t space_id(const struct space *s)
{
	return s->id;
}

void space_set_pid(struct space *space, uint32_t pid)
{
	space->pid = pid;
}

uint32_t space_pid(const struct space *space)
{
	return space->pid;
}

size_t space_n_mappings(const struct space *s)
{
	return s->n;
}

static uint64_t end_of(const struct piece *p)
{
	return p->m.start + p->m.size;
}

/* The first of N pieces that ends after ADDRESS. */
static size_t first_after(struct piece *const *pieces, size_t n, uint64_t address)
{
	return FIRST_WHERE(i, n, end_of(pieces[i]) > address);
}

/* The piece at ADDRESS among the N PIECES of a layer. Lowers *NEXT to the first address above
 * ADDRESS for which the result may differ. */
static const struct piece *covering(struct piece *const *pieces, size_t n, uint64_t address,
				    uint64_t *next)
{
	size_t i = first_after(pieces, n, address);

	if (i == n)
		return NULL;
	if (pieces[i]->m.start > address) {
		*next = MIN_OF(*next, pieces[i]->m.start);
		return NULL;
	}
	*next = MIN_OF(*next, end_of(pieces[i]));
	return pieces[i];
}

/* The piece at ADDRESS at TIME. The result holds for all addresses below *RET_NEXT. */
static const struct piece *locate(const struct space *s, uint64_t time, uint64_t address,
				  uint64_t *ret_next)
{
	const struct piece *p;

	*ret_next = UINT64_MAX;
	p = covering(s->alive, s->n, address, ret_next);
	while (p && p->m.begin > time)
		if (p->jump && p->jump->m.begin > time)
			p = p->jump;
		else if (p->below)
			p = covering(p->below->pieces, p->below->n, address, ret_next);
		else
			p = NULL;
	return p;
}

const struct space_mapping *space_find(const struct space *s, uint64_t time, uint64_t address)
{
	uint64_t next;
	const struct piece *p = locate(s, time, address, &next);

	return p ? &p->m : NULL;
}

int space_foreach(const struct space *s, uint64_t time,
		  int (*fn)(void *userdata, const struct space_mapping *m), void *userdata)
{
	uint64_t next;

	for (uint64_t at = 0; at < UINT64_MAX; at = next) {
		const struct piece *p = locate(s, time, at, &next);
		struct space_mapping m;
		int r;

		if (!p)
			continue;
		m = p->m;
		m.pgoff += at - m.start;
		m.start = at;
		m.size = next - at;
		r = fn(userdata, &m);
		if (r)
			return r;
	}
	return 0;
}

bool space_is_mapped(const struct space *s, uint64_t time)
{
	return s->since <= time;
}

uint64_t space_generation(const struct space *s, uint64_t time)
{
	if (!s->history)
		return s->n_changes;
	return FIRST_WHERE(i, s->n_changes, s->changes[i] > time);
}

/* Makes room for N pointers or times in ARRAY. False: no memory. */
static bool reserve(struct pool *pool, void **array, size_t *capacity, size_t n)
{
	size_t more = MAX_OF(MAX_OF(n, 4), 2 * *capacity);
	void *grown;

	if (n <= *capacity)
		return true;
	grown = pool_grow(pool, *array, *capacity * sizeof(uint64_t), more * sizeof(uint64_t));
	if (!grown)
		return false;
	*array = grown;
	*capacity = more;
	return true;
}

/* 0, -ENOMEM, -E2BIG. */
static int reserve_alive(struct space *s, size_t n)
{
	_Static_assert(sizeof(*s->alive) == sizeof(uint64_t), "one size for both arrays");
	void *array = s->alive;
	bool ok;

	if (n > SPACE_MAX_MAPPINGS)
		return -E2BIG;
	ok = reserve(s->pool, &array, &s->capacity, n);
	s->alive = array;
	return ok ? 0 : -ENOMEM;
}

static void insert(struct space *s, size_t at, struct piece *p)
{
	memmove(&s->alive[at + 1], &s->alive[at], (s->n - at) * sizeof(*s->alive));
	s->alive[at] = p;
	s->n++;
}

/* If a piece extends across ADDRESS, splits it there into two. 0, -ENOMEM, -E2BIG. */
static int split(struct space *s, uint64_t address)
{
	size_t i = first_after(s->alive, s->n, address);
	struct piece *left = i < s->n ? s->alive[i] : NULL;
	struct piece *right;
	uint64_t part;
	int r;

	if (!left || left->m.start >= address)
		return 0;
	r = reserve_alive(s, s->n + 1);
	if (r < 0)
		return r;
	right = pool_get(s->pool, sizeof(*right));
	if (!right)
		return -ENOMEM;
	part = address - left->m.start;
	*right = *left;
	right->m.start = address;
	right->m.size -= part;
	right->m.pgoff += part;
	left->m.size = part;
	insert(s, i + 1, right);
	return 0;
}

static bool same_file(const struct space_file *a, const struct space_file *b)
{
	if (a == b)
		return true;
	if (!a || !b || strcmp(a->path, b->path) != 0)
		return false;
	if (a->build_id_size && b->build_id_size)
		return a->build_id_size == b->build_id_size &&
		       memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
	/* A record with a build id has no inode, and /proc/PID/maps has no generation. */
	if (a->build_id_size || b->build_id_size)
		return true;
	return a->maj == b->maj && a->min == b->min && a->ino == b->ino &&
	       (a->ino_generation == b->ino_generation || !a->ino_generation || !b->ino_generation);
}

/* True: the same bytes at the same place, and M says nothing new of them. The scan of /proc and the
 * kernel may both report one mapping, and mprotect(2) reports it again. */
static bool same_content(const struct piece *p, const struct space_mapping *m)
{
	return p->m.start == m->start && p->m.size == m->size && p->m.pgoff == m->pgoff &&
	       (m->prot & ~p->m.prot & PROT_WRITE) == 0 && same_file(p->m.file, m->file);
}

bool space_shows(const struct space *s, uint64_t start, uint64_t size, uint64_t pgoff,
		 const struct space_file *file)
{
	uint64_t at = start, end;

	if (size == 0 || __builtin_add_overflow(start, size, &end))
		return false;
	for (size_t i = first_after(s->alive, s->n, start); at < end; i++) {
		const struct space_mapping *m = i < s->n ? &s->alive[i]->m : NULL;

		if (!m || m->start > at || m->start - m->pgoff != start - pgoff ||
		    !same_file(m->file, file))
			return false;
		at = m->start + m->size;
	}
	return true;
}

/* Makes the present pieces [LO, HI) the layer below P. 0, -ENOMEM. */
static int cover(struct space *s, struct piece *p, size_t lo, size_t hi)
{
	struct piece *under;

	p->below = pool_get(s->pool, sizeof(*p->below) + (hi - lo) * sizeof(p->below->pieces[0]));
	if (!p->below)
		return -ENOMEM;
	p->below->n = hi - lo;
	memcpy(p->below->pieces, &s->alive[lo], (hi - lo) * sizeof(p->below->pieces[0]));
	for (size_t i = lo; i < hi; i++)
		s->alive[i]->m.end = p->m.begin;
	under = s->alive[lo];
	if (hi - lo > 1 || under->m.start != p->m.start || under->m.size != p->m.size)
		return 0;
	p->depth = under->depth + 1;
	p->jump = under;
	if (under->jump && under->jump->jump &&
	    under->depth - under->jump->depth == under->jump->depth - under->jump->jump->depth)
		p->jump = under->jump->jump;
	return 0;
}

/* Puts M in place of the pieces [LO, HI), which M covers wholly. 0, -ENOMEM, -E2BIG. */
static int replace(struct space *s, const struct space_mapping *m, size_t lo, size_t hi)
{
	void *changes = s->changes;
	struct piece *p;
	bool ok;
	int r;

	r = reserve_alive(s, s->n + 1 - (hi - lo));
	if (r < 0)
		return r;
	ok = !s->history ||
	     reserve(s->pool, &changes, &s->changes_capacity, (size_t)s->n_changes + 1);
	s->changes = changes;
	p = ok ? pool_get(s->pool, sizeof(*p)) : NULL;
	if (!p)
		return -ENOMEM;
	p->m = *m;
	if (s->history && hi > lo && cover(s, p, lo, hi) < 0) {
		pool_put(s->pool, p, sizeof(*p));
		return -ENOMEM;
	}
	for (size_t i = lo; !s->history && i < hi; i++)
		pool_put(s->pool, s->alive[i], sizeof(*p));
	memmove(&s->alive[lo], &s->alive[hi], (s->n - hi) * sizeof(*s->alive));
	s->n -= hi - lo;
	insert(s, lo, p);
	s->since = MIN_OF(s->since, m->begin);
	s->newest = MAX_OF(s->newest, m->begin);
	if (s->history)
		s->changes[s->n_changes] = m->begin;
	s->n_changes++;
	return 0;
}

/* True: M is older than what it overlaps. The scan of /proc reports mappings late and must not undo
 * newer records. */
static bool is_old(const struct space *s, const struct space_mapping *m, size_t lo, size_t hi)
{
	for (size_t i = lo; i < hi; i++)
		if (s->alive[i]->m.begin > m->begin)
			return true;
	return s->history && s->n_changes && s->changes[s->n_changes - 1] > m->begin;
}

/* Copies what FROM maps at TIME into TO, which is empty. 0, -ENOMEM. */
static int copy(struct space *to, const struct space *from, uint64_t time)
{
	uint64_t next;

	if (reserve_alive(to, from->n) < 0)
		return -ENOMEM;
	for (uint64_t at = 0; at < UINT64_MAX; at = next) {
		const struct piece *p = locate(from, time, at, &next);
		struct piece *c;

		if (!p)
			continue;
		c = reserve_alive(to, to->n + 1) == 0 ? pool_get(to->pool, sizeof(*c)) : NULL;
		if (!c)
			return -ENOMEM;
		c->m = p->m;
		c->m.pgoff += at - c->m.start;
		c->m.start = at;
		c->m.size = next - at;
		c->m.begin = time;
		c->m.end = SPACE_NOW;
		to->alive[to->n++] = c;
		to->since = time;
	}
	to->newest = time;
	return 0;
}

/* Gives S mappings of its own if it shares them. 0, -ENOMEM. */
static int unshare(struct space *s)
{
	struct space own = {.pool = s->pool};
	uint64_t since = s->since;

	if (!s->shared)
		return 0;
	if (*s->shared == 1) {
		pool_put(s->pool, s->shared, sizeof(*s->shared));
		s->shared = NULL;
		return 0;
	}
	if (copy(&own, s, SPACE_NOW) < 0) {
		put_alive(&own);
		return -ENOMEM;
	}
	for (size_t i = 0; i < own.n; i++)
		own.alive[i]->m.begin = s->alive[i]->m.begin;
	put_alive(s);
	s->alive = own.alive;
	s->capacity = own.capacity;
	s->shared = NULL;
	s->since = since;
	return 0;
}

int space_map(struct space *s, uint64_t time, uint64_t start, uint64_t size, uint64_t pgoff,
	      uint32_t prot, uint32_t flags, const struct space_file *file)
{
	uint64_t end = size > UINT64_MAX - start ? UINT64_MAX : start + size;
	struct space_mapping m = {start, end - start, pgoff, time, SPACE_NOW, file, prot, flags};
	size_t lo = first_after(s->alive, s->n, start), hi = lo;
	int r;

	while (hi < s->n && s->alive[hi]->m.start < end)
		hi++;
	if (end == start || is_old(s, &m, lo, hi) ||
	    (hi - lo == 1 && same_content(s->alive[lo], &m)))
		return 0;
	r = unshare(s);
	if (r < 0)
		return r;
	r = split(s, start);
	if (r < 0)
		return r;
	r = split(s, end);
	if (r < 0)
		return r;
	/* Every piece that begins within M now also ends within M. */
	lo = first_after(s->alive, s->n, start);
	for (hi = lo; hi < s->n && s->alive[hi]->m.start < end;)
		hi++;
	return replace(s, &m, lo, hi);
}

/* Without history, parent and child share the mappings until one of them changes: most children
 * execute another program first. Mappings that began before TIME keep their begins, as nobody asks
 * a space without history for the past. */
static bool share(struct space *to, struct space *from, uint64_t time)
{
	if (from->history || from->newest > time)
		return false;
	if (!from->shared) {
		from->shared = pool_get(from->pool, sizeof(*from->shared));
		if (!from->shared)
			return false;
		*from->shared = 1;
	}
	++*from->shared;
	to->shared = from->shared;
	to->alive = from->alive;
	to->n = from->n;
	to->capacity = from->capacity;
	to->newest = time;
	to->since = to->n ? time : to->since;
	return true;
}

struct space *space_fork_in(struct pool *pool, struct space *space, uint64_t time)
{
	struct space *s = space_new_in(pool, space->history);

	if (!s)
		return NULL;
	if (share(s, space, time) || copy(s, space, time) == 0)
		return s;
	put_back(s);
	return NULL;
}

struct space *space_fork(const struct space *space, uint64_t time)
{
	struct space *s = space_new(space->history);

	if (s && copy(s, space, time) < 0) {
		space_free(s);
		return NULL;
	}
	return s;
}
