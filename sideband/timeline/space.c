/*
 * The mappings of now are an array in order of address; they never overlap. As a munmap leaves no
 * record, a mapping ends only where a later one covers it. With history, what a mapping covered
 * lies below it as a layer, so the question for an earlier time goes down from layer to layer until
 * it meets one that was there then. The same place mapped again and again (a plug-in loaded and
 * unloaded) would make that long: layers of equal extent are a chain with jumps (Myers, "An
 * applicative random-access stack", 1983), passed in a logarithmic number of steps.
 *
 * Owned by the timeline; in the daemon without, in the worker with history. Asking changes nothing,
 * so threads may ask at the same time.
 */
#include "sideband/timeline/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/timeline/space_private.h"

struct piece {
	struct space_mapping m;
	struct layer *below; /* what it covered, NULL: nothing or unknown */
	/* When it covered one piece of just its extent: steps to the first of these, and one of
	 * them (maybe not the next). */
	uint64_t depth;
	struct piece *jump;
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
	uint64_t since;	      /* when the first mapping began: from then on there is one */
	struct piece **alive; /* in order of address */
	size_t n, capacity;
	uint64_t newest;   /* begin of any of them */
	uint32_t *shared;  /* without history: how many spaces have ALIVE in common; NULL: one */
	uint64_t *changes; /* with history: the time of each */
	uint64_t n_changes;
	size_t changes_capacity;
};

/* The one number that programs' objects share: ids must differ between timelines too. */
static uint64_t next_id(void)
{
	static uint64_t last;

	return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

struct space *space_new_in(struct pool *pool, bool history)
{
	struct space *s = pool_get(pool, sizeof(*s));

	if (!s)
		return NULL;
	s->pool = pool;
	s->history = history;
	s->id = next_id();
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

static void free_with_pool(struct pool *pool)
{
	pool_done(pool);
	free(pool);
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
	if (!s)
		return;
	if (s->owns_pool)
		free_with_pool(s->pool);
	else if (!s->history)
		put_back(s);
}

uint64_t space_id(const struct space *s)
{
	return s->id;
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

/* The piece of a layer at ADDRESS. *NEXT shrinks to where the answer may change. */
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

/* The piece at ADDRESS at TIME, which holds up to *RET_NEXT. */
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

/* Room for N pointers or times in an array of *CAPACITY. */
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

static bool reserve_change(struct space *s)
{
	void *array = s->changes;
	bool ok = !s->history ||
		  reserve(s->pool, &array, &s->changes_capacity, (size_t)s->n_changes + 1);

	s->changes = array;
	return ok;
}

static void insert(struct space *s, size_t at, struct piece *p)
{
	memmove(&s->alive[at + 1], &s->alive[at], (s->n - at) * sizeof(*s->alive));
	s->alive[at] = p;
	s->n++;
}

/* Makes of a piece that goes on across ADDRESS two, equal in all but their extent. */
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
	/* A record with a build id has no inode, /proc/PID/maps knows no generation. */
	if (a->build_id_size || b->build_id_size)
		return true;
	return a->maj == b->maj && a->min == b->min && a->ino == b->ino &&
	       (a->ino_generation == b->ino_generation || !a->ino_generation || !b->ino_generation);
}

/* The same bytes at the same place: the scan's and the kernel's word on one mapping, or a mprotect.
 */
static bool same_content(const struct piece *p, const struct space_mapping *m)
{
	return p->m.start == m->start && p->m.size == m->size && p->m.pgoff == m->pgoff &&
	       same_file(p->m.file, m->file);
}

/* P lies right above the pieces [LO, HI) now. */
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

/* M in place of the pieces [LO, HI), which it covers wholly. */
static int replace(struct space *s, const struct space_mapping *m, size_t lo, size_t hi)
{
	struct piece *p;
	int r = reserve_alive(s, s->n + 1 - (hi - lo));

	if (r < 0)
		return r;
	p = reserve_change(s) ? pool_get(s->pool, sizeof(*p)) : NULL;
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

/* An older record does not undo a newer one (the scan of /proc, told after the event). */
static bool is_old(const struct space *s, const struct space_mapping *m, size_t lo, size_t hi)
{
	for (size_t i = lo; i < hi; i++)
		if (s->alive[i]->m.begin > m->begin)
			return true;
	return s->history && s->n_changes && s->changes[s->n_changes - 1] > m->begin;
}

static int copy(struct space *to, const struct space *from, uint64_t time);

/* What was shared becomes S's own. */
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
	if (r == 0)
		r = split(s, start);
	if (r == 0)
		r = split(s, end);
	if (r < 0)
		return r;
	/* What begins within it now ends within it too. */
	lo = first_after(s->alive, s->n, start);
	for (hi = lo; hi < s->n && s->alive[hi]->m.start < end;)
		hi++;
	return replace(s, &m, lo, hi);
}

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

/* Without history a fork's copy is made when one of the two changes: most of them execute another
 * program first. When all was mapped before TIME, the begins do not matter: nobody asks for earlier
 * times. */
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
	struct space *s;

	s = space_new(space->history);
	if (s && copy(s, space, time) < 0) {
		space_free(s);
		return NULL;
	}
	return s;
}

void space_set_pid(struct space *space, uint32_t pid)
{
	space->pid = pid;
}

uint32_t space_pid(const struct space *space)
{
	return space->pid;
}
