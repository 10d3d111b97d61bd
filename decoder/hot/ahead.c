/*
 * Gives segments of traces to threads. Each trace is cut into segments at PSBs. Threads get them in
 * order, only a few more than the walk has taken, so memory is in proportion to threads and not to
 * traces. The thread that the flows belong to gives away the segments ahead of it, takes pieces as
 * it comes to them, and walks a segment ahead itself where it would have to wait.
 *
 * One lock guards everything here, but the walk reads without the lock what a thread has written
 * into a segment, as far as the segment's `n` says.
 */
#include "decoder/hot/ahead.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/hot/hot_private.h"
#include "decoder/packet/packet.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

/* PSBs are seldom nearer to one another than 16 KiB: each begins a segment. */
#define SEGMENT_BYTES (((size_t)16 << 10) - 256)
#define WINDOW_MAX    256u
#define WINDOW_MIN    3u
#define MANY_TRACES   8u /* with more traces each has only one segment */
#define THREADS_MAX   64u
/* Segments of all traces, half a megabyte each: so many, and so many for each thread. */
#define SEGMENTS_MIN	32u
#define SEGMENTS_THREAD 4u
#define PATIENCE	400u /* looks at what another thread is doing */

struct ahead_trace {
	struct ahead *pool;
	struct ahead_trace *next;
	struct ahead_config config;
	/* Under the lock. */
	const uint8_t *scan; /* a PSB: nothing from here on is given away yet; NULL: all is */
	/* Segments [first, last), in order, that are given away and not behind the walk. */
	struct ahead_segment *ring[WINDOW_MAX];
	uint64_t first, last;
	unsigned int running; /* segments that a thread is at work on */
	uint64_t context;
	/* The caller's. */
	bool started;
	struct ahead_segment *at;   /* the walk stands in it; NULL: in none */
	struct ahead_segment *lent; /* its steps are in use */
	const uint8_t *until;	    /* AT holds up to here */
	uint32_t piece;		    /* of AT, the next one */
};

struct thread {
	struct ahead *pool;
	struct crew_thread *at;
	struct ahead_walker walker;
};

struct ahead {
	pthread_mutex_t lock;
	pthread_cond_t work, idle;
	struct ahead_trace *traces;
	unsigned int n_traces, sleeping;
	struct ahead_segment *spare;
	unsigned int n_segments; /* in all */
	bool stop;
	uint32_t n; /* threads without the caller */
	struct ahead_walker *own;
	struct crew *own_crew; /* NULL: the threads come from the caller's crew */
	struct thread *threads[THREADS_MAX];
};

/* --- Segments --- */

static const uint8_t *stop_of(const struct ahead_trace *t)
{
	return t->config.trace + t->config.stop;
}

/* Where the segment at POS ends. */
static const uint8_t *find_end(const struct ahead_trace *t, const uint8_t *pos)
{
	const uint8_t *stop = stop_of(t), *psb;

	if ((size_t)(stop - pos) <= t->config.segment_bytes)
		return stop;
	psb = sync_find(pos + t->config.segment_bytes, stop);
	return psb ? psb : stop;
}

static void set_scan(struct ahead_trace *t, const uint8_t *to)
{
	t->scan = to < stop_of(t) ? to : NULL;
}

/* Segments that a trace may have given away at once. */
static uint64_t window(const struct ahead *a)
{
	uint64_t n = 2 * (a->n + 1u) / MAX_OF(a->n_traces, 1u) + 1;

	if (a->n_traces <= MANY_TRACES)
		n = MAX_OF(n, (uint64_t)WINDOW_MIN);
	return MIN_OF(n, (uint64_t)WINDOW_MAX);
}

static struct ahead_segment *take_spare(struct ahead *a)
{
	struct ahead_segment *s = a->spare;

	if (s) {
		a->spare = s->next;
		return s;
	}
	s = malloc(sizeof(*s));
	a->n_segments += s != NULL;
	return s;
}

static void put_spare(struct ahead *a, struct ahead_segment *s)
{
	s->next = a->spare;
	a->spare = s;
}

static bool can_claim(const struct ahead_trace *t)
{
	const struct ahead *a = t->pool;

	return t->scan && t->last - t->first < window(a) &&
	       (a->spare || a->n_segments < SEGMENTS_MIN + SEGMENTS_THREAD * a->n);
}

/* The next segment of T, for the caller to walk. NULL: there is none, or none yet. */
static struct ahead_segment *claim(struct ahead_trace *t)
{
	struct ahead_segment *s;

	if (!can_claim(t))
		return NULL;
	s = take_spare(t->pool);
	if (!s)
		return NULL;
	s->begin = t->scan;
	s->end = find_end(t, s->begin);
	s->at = s->begin;
	s->context = t->context;
	s->rule = t->config.rule;
	s->done = s->dropped = false;
	s->n = 0;
	s->n_steps = s->n_points = s->n_returns = 0;
	set_scan(t, s->end);
	t->ring[t->last++ % WINDOW_MAX] = s;
	t->running++;
	return s;
}

/* A segment of the trace that has least ahead of the walk. */
static struct ahead_segment *claim_any(struct ahead *a, struct ahead_trace **ret)
{
	struct ahead_trace *best = NULL;

	for (struct ahead_trace *t = a->traces; t; t = t->next) {
		if (t->scan && (!best || t->last - t->first < best->last - best->first))
			best = t;
	}
	*ret = best;
	return best ? claim(best) : NULL;
}

static void finish(struct ahead_trace *t, struct ahead_segment *s)
{
	__atomic_store_n(&s->done, true, __ATOMIC_RELEASE);
	if (s->dropped && s != t->lent)
		put_spare(t->pool, s);
	if (--t->running == 0)
		pthread_cond_broadcast(&t->pool->idle);
}

/* The walk is behind S. */
static void drop(struct ahead_trace *t, struct ahead_segment *s)
{
	__atomic_store_n(&s->dropped, true, __ATOMIC_RELAXED);
	if (s->done && s != t->lent)
		put_spare(t->pool, s);
}

/* --- Threads --- */

static void run(void *userdata)
{
	struct thread *self = userdata;
	struct ahead *a = self->pool;

	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		struct ahead_trace *t;
		struct ahead_segment *s = claim_any(a, &t);

		if (!s) {
			a->sleeping++;
			if (a->sleeping == a->n)
				pthread_cond_broadcast(&a->idle);
			pthread_cond_wait(&a->work, &a->lock);
			a->sleeping--;
			continue;
		}
		pthread_mutex_unlock(&a->lock);
		ahead_run(&self->walker, &t->config, s);
		pthread_mutex_lock(&a->lock);
		finish(t, s);
	}
	pthread_mutex_unlock(&a->lock);
}

static bool start_thread(struct ahead *a, struct crew *crew, struct nodes *nodes)
{
	struct thread *t = calloc(1, sizeof(*t));

	if (!t)
		return false;
	t->pool = a;
	t->walker.nodes = nodes;
	t->at = crew_start(crew, run, t);
	if (!t->at) {
		free(t);
		return false;
	}
	a->threads[a->n++] = t;
	return true;
}

uint32_t ahead_count_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 1;
	return (uint32_t)CPU_COUNT(&set);
}

/* Starts THREADS threads, or fewer, where so many cannot be had. */
static void start_threads(struct ahead *a, uint32_t threads, struct crew *crew, struct nodes *nodes)
{
	threads = MIN_OF(threads, THREADS_MAX);
	if (!crew && crew_new(threads, &a->own_crew) == 0)
		crew = a->own_crew;
	pthread_mutex_lock(&a->lock);
	while (crew && a->n < threads && start_thread(a, crew, nodes))
		;
	pthread_mutex_unlock(&a->lock);
}

int ahead_new(struct graph *graph, struct nodes *nodes, uint32_t threads, struct crew *crew,
	      struct ahead **ret)
{
	struct ahead *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->own = calloc(1, sizeof(*a->own));
	r = a->own ? graph_share(graph) : -ENOMEM;
	if (r != 0) {
		free(a->own);
		free(a);
		return r;
	}
	a->own->nodes = nodes;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->work, NULL);
	pthread_cond_init(&a->idle, NULL);
	start_threads(a, threads - 1, crew, nodes);
	*ret = a;
	return 0;
}

void ahead_free(struct ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_broadcast(&a->work);
	pthread_mutex_unlock(&a->lock);
	for (uint32_t i = 0; i < a->n; i++) {
		crew_finish(a->threads[i]->at);
		free(a->threads[i]);
	}
	crew_free(a->own_crew);
	while (a->spare) {
		struct ahead_segment *next = a->spare->next;

		free(a->spare);
		a->spare = next;
	}
	pthread_cond_destroy(&a->idle);
	pthread_cond_destroy(&a->work);
	pthread_mutex_destroy(&a->lock);
	free(a->own);
	free(a);
}

/* --- Traces --- */

int ahead_open(struct ahead *a, const struct ahead_config *config, struct ahead_trace **ret)
{
	struct ahead_trace *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->pool = a;
	t->config = *config;
	if (t->config.segment_bytes == 0)
		t->config.segment_bytes = SEGMENT_BYTES;
	t->until = config->trace + config->from;
	pthread_mutex_lock(&a->lock);
	t->next = a->traces;
	a->traces = t;
	a->n_traces++;
	pthread_mutex_unlock(&a->lock);
	*ret = t;
	return 0;
}

void ahead_close(struct ahead_trace *t)
{
	struct ahead_trace **at;
	struct ahead *a;

	if (!t)
		return;
	a = t->pool;
	pthread_mutex_lock(&a->lock);
	for (at = &a->traces; *at != t;)
		at = &(*at)->next;
	*at = t->next;
	a->n_traces--;
	while (t->first < t->last)
		drop(t, t->ring[t->first++ % WINDOW_MAX]);
	while (t->running > 0)
		pthread_cond_wait(&a->idle, &a->lock);
	if (t->lent)
		put_spare(a, t->lent);
	pthread_mutex_unlock(&a->lock);
	free(t);
}

/* --- The walk --- */

/* The walk itself goes over what no thread has taken. */
static void take_own(struct ahead_trace *t, const uint8_t *pos)
{
	if (!t->started || (t->scan && pos >= t->scan))
		set_scan(t, find_end(t, pos));
	t->started = true;
	t->until = t->scan ? t->scan : stop_of(t);
}

/* The walk is at POS, behind what is known of it: finds the segment there, and gives more away. */
static void look_again(struct ahead_trace *t, const uint8_t *pos)
{
	struct ahead_segment *s = NULL;
	struct ahead *a = t->pool;

	while (t->first < t->last && t->ring[t->first % WINDOW_MAX]->end <= pos)
		drop(t, t->ring[t->first++ % WINDOW_MAX]);
	if (t->first < t->last)
		s = t->ring[t->first % WINDOW_MAX];
	t->at = NULL;
	t->piece = 0;
	if (!s) {
		take_own(t, pos);
	} else if (s->begin <= pos) {
		t->at = s;
		t->until = s->end;
	} else {
		t->until = s->begin;
	}
	/* Threads wake up where there is work for several of them, and not for each segment. */
	if (a->sleeping > 0 && t->scan && 2 * (t->last - t->first) <= window(a))
		pthread_cond_broadcast(&a->work);
}

/* Walks a segment ahead. False: there is none. */
static bool help(struct ahead_trace *t)
{
	struct ahead *a = t->pool;
	struct ahead_segment *s;

	pthread_mutex_lock(&a->lock);
	s = claim(t);
	pthread_mutex_unlock(&a->lock);
	if (!s)
		return false;
	ahead_run(a->own, &t->config, s);
	pthread_mutex_lock(&a->lock);
	finish(t, s);
	pthread_mutex_unlock(&a->lock);
	return true;
}

/* The piece at POS of the segment that the walk stands in. NULL: there is none, or with *RET_BUSY:
 * none yet. */
static const struct ahead_piece *find_piece(struct ahead_trace *t, const uint8_t *pos,
					    bool *ret_busy)
{
	const struct ahead_segment *s = t->at;
	bool done = __atomic_load_n(&s->done, __ATOMIC_ACQUIRE);
	const uint8_t *at = __atomic_load_n(&s->at, __ATOMIC_ACQUIRE);
	uint32_t n = __atomic_load_n(&s->n, __ATOMIC_ACQUIRE);

	while (t->piece < n && s->pieces[t->piece].pos < pos)
		t->piece++;
	*ret_busy = t->piece == n && !done && at <= pos;
	return t->piece < n && s->pieces[t->piece].pos == pos ? &s->pieces[t->piece] : NULL;
}

const struct ahead_piece *ahead_take(struct ahead_trace *t, const uint8_t *pos, uint64_t context,
				     const uint8_t **ret_limit)
{
	const struct ahead_piece *p = NULL;
	unsigned int patience = PATIENCE;
	bool busy = true;

	*ret_limit = stop_of(t);
	if (pos >= t->until || context != t->context) {
		pthread_mutex_lock(&t->pool->lock);
		t->context = context;
		look_again(t, pos);
		pthread_mutex_unlock(&t->pool->lock);
	}
	if (!t->at)
		return NULL;
	while (busy && patience > 0) {
		p = find_piece(t, pos, &busy);
		if (busy && !help(t)) {
			patience--;
#if defined(__x86_64__)
			__builtin_ia32_pause();
#endif
		}
	}
	if (busy)
		*ret_limit = pos + AHEAD_BYTES;
	return p;
}

void ahead_set_rule(struct ahead_trace *t, uint8_t rule)
{
	pthread_mutex_lock(&t->pool->lock);
	t->config.rule = rule;
	pthread_mutex_unlock(&t->pool->lock);
}

const uint32_t *ahead_steps(const struct ahead_trace *t)
{
	return t->at->steps;
}

void ahead_lend(struct ahead_trace *t)
{
	if (t->lent == t->at)
		return;
	pthread_mutex_lock(&t->pool->lock);
	t->lent = t->at;
	pthread_mutex_unlock(&t->pool->lock);
}

void ahead_return(struct ahead_trace *t)
{
	struct ahead *a = t->pool;

	if (!t->lent)
		return;
	pthread_mutex_lock(&a->lock);
	if (t->lent->dropped && t->lent->done)
		put_spare(t->pool, t->lent);
	t->lent = NULL;
	pthread_mutex_unlock(&a->lock);
}

void ahead_settle(struct ahead_trace *t)
{
	struct ahead *a = t->pool;

	pthread_mutex_lock(&a->lock);
	while (a->n > 0 && (can_claim(t) || t->running > 0)) {
		pthread_cond_broadcast(&a->work);
		pthread_cond_wait(&a->idle, &a->lock);
	}
	pthread_mutex_unlock(&a->lock);
}
