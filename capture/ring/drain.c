/*
 * A thread, a queue, and a list of rings. Used by the recorder's intake.
 *
 * The rings and the list of them belong to the thread alone. The loop's wishes are orders, which it
 * waits for and the thread carries out between two passes; thus the thread never waits for anybody:
 * there is no lock that somebody less urgent could sleep on.
 *
 * What a ring holds is copied as one block, whatever it is: the loop looks for the records in it,
 * when the writer cannot change them any more.
 *
 * A pass empties all rings, not only those that woke the thread: so their records stay near one
 * another in time, and how often there is a pass depends on the fastest ring only.
 *
 * A perf event's fd is polled on edges. The kernel wakes its pollers for each watermark that was
 * written (kernel/events/ring_buffer.c, perf_output_put_handle), whether or not somebody has read
 * what was before; and an event that has exited or is in error polls as hung up for ever
 * (kernel/events/core.c, perf_poll), which on edges costs one look.
 */
#include "capture/ring/drain.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capture/ring/recqueue.h"
#include "proto/base.h"

/* Records below the watermark are not left lying for longer than this. */
#define SWEEP_MSEC 250
/* How long rings wait for room in the queue. */
#define STALL_MSEC 5
#define NICE	   (-10)
#define MAX_EVENTS 256

struct member {
	struct ring *ring;
	uint32_t index;
	int fd; /* that is polled; -EBADF: none */
};

/* How far a pass came that found the queue full: the member, the bytes that were taken from it. */
struct cursor {
	size_t at;
	uint64_t taken;
};

enum order_kind { ORDER_ADD, ORDER_REMOVE, ORDER_FLUSH };

/* On the stack of the loop, which waits. */
struct order {
	enum order_kind kind;
	struct member member;	/* ADD; REMOVE: only its ring */
	struct member *members; /* ADD: a larger list, a copy; NULL: there is room */
	int result;
};

struct drain {
	struct recqueue queue;
	pthread_t thread;
	/* The thread's; the loop may look at the list between two orders. */
	struct member *members;
	size_t n, n_silent; /* silent: members without an fd */
	struct cursor pass, flush;
	bool stalled;  /* the last pass found the queue full */
	bool flushing; /* drain_flush is to be called again */
	/* Atomic. */
	struct order *order;
	bool ending;
	bool announced; /* ready_fd was written since the loop read it */
	uint64_t stalls, bad_bytes;
	/* Constant. */
	sem_t done; /* an order was carried out */
	int period_msec;
	int epoll_fd, wake_fd, ready_fd;
	/* The loop's. */
	size_t capacity;
	const uint8_t
		*block; /* what is left of the queue's oldest entry; NULL: it was not looked at */
	size_t block_size;
	uint32_t block_index;
};

static void bump(uint64_t *counter, uint64_t by)
{
	__atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

static void signal_fd(int fd)
{
	uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one));
}

/* --- Passes; in the thread --- */

/* All that a ring holds in one piece, as far as that goes; the loop looks into it. */
static void drain_take_block(struct drain *d, const struct member *m, uint64_t *taken)
{
	uint64_t size;
	uint8_t *to;

	if (ring_used(m->ring, &size) != 0 || size > RECQUEUE_MAX_ENTRY)
		return;
	to = recqueue_reserve(&d->queue, m->index, size);
	if (to == NULL)
		return;
	ring_copy_data(m->ring, size, to);
	recqueue_commit(&d->queue);
	ring_consume(m->ring, size);
	*taken += size;
}

/* At most one ring full (*TAKEN counts) and a block, so that a fast writer cannot hold a pass. What
 * is no block goes record by record. 0 or DRAIN_FULL. */
static int drain_take(struct drain *d, const struct member *m, uint64_t *taken)
{
	const void *record;
	size_t size;
	int r = 0;

	drain_take_block(d, m, taken);
	while (*taken < m->ring->data_size && (r = ring_peek(m->ring, &record, &size)) == 0) {
		if (!recqueue_put(&d->queue, m->index, record, size))
			return DRAIN_FULL;
		ring_consume(m->ring, size);
		*taken += size;
	}
	if (r < 0)
		bump(&d->bad_bytes, ring_skip_all(m->ring));
	return 0;
}

/* All rings from C on, which is the first one afterwards, or where the queue was full. 0 or
 * DRAIN_FULL. */
static int drain_take_from(struct drain *d, struct cursor *c)
{
	for (; c->at < d->n; c->at++, c->taken = 0) {
		if (drain_take(d, &d->members[c->at], &c->taken) != DRAIN_FULL)
			continue;
		bump(&d->stalls, !d->stalled);
		d->stalled = true;
		return DRAIN_FULL;
	}
	*c = (struct cursor){0};
	d->stalled = false;
	return 0;
}

/* Records are put before ANNOUNCED is exchanged here; the loop exchanges it before it looks for
 * records a last time (drain_settle). Whoever comes second sees what the other did. */
static void drain_announce(struct drain *d)
{
	if (recqueue_used(&d->queue) > 0 &&
	    !__atomic_exchange_n(&d->announced, true, __ATOMIC_ACQ_REL))
		signal_fd(d->ready_fd);
}

static void drain_pass(struct drain *d)
{
	bool was_cut = d->pass.at > 0;
	int r = drain_take_from(d, &d->pass);

	/* Those before the cut may have been written, and their wakeups seen, meanwhile. */
	if (r == 0 && was_cut)
		drain_take_from(d, &d->pass);
	drain_announce(d);
}

/* How long the thread may sleep when nobody wakes it. */
static int drain_timeout(const struct drain *d)
{
	if (d->n == 0)
		return -1;
	if (d->stalled)
		return STALL_MSEC;
	return d->n_silent > 0 ? d->period_msec : SWEEP_MSEC;
}

/* --- Orders; in the thread --- */

/* True: FD is polled from now on. */
static bool drain_poll_fd(struct drain *d, int fd)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0;
}

static void drain_do_add(struct drain *d, const struct order *o)
{
	struct member m = o->member;

	if (m.fd <= 0 || !drain_poll_fd(d, m.fd))
		m.fd = -EBADF;
	if (o->members != NULL)
		d->members = o->members;
	d->members[d->n++] = m;
	d->n_silent += m.fd < 0;
}

/* Member I is no more. */
static void cursor_fit(struct cursor *c, size_t i)
{
	if (i == c->at)
		c->taken = 0;
	c->at -= i < c->at;
}

static void drain_do_remove(struct drain *d, const struct ring *ring)
{
	uint64_t taken = 0;
	struct member m;
	size_t i = 0;

	while (i < d->n && d->members[i].ring != ring)
		i++;
	if (i == d->n)
		return;
	m = d->members[i];
	if (m.fd >= 0)
		(void)epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, m.fd, NULL);
	if (drain_take(d, &m, &taken) == DRAIN_FULL)
		bump(&d->bad_bytes, ring_skip_all(m.ring));
	d->n--;
	d->n_silent -= m.fd < 0;
	memmove(&d->members[i], &d->members[i + 1], (d->n - i) * sizeof(m));
	cursor_fit(&d->pass, i);
	cursor_fit(&d->flush, i);
}

static void drain_obey(struct drain *d, struct order *o)
{
	o->result = 0;
	switch (o->kind) {
	case ORDER_ADD: drain_do_add(d, o); break;
	case ORDER_REMOVE: drain_do_remove(d, o->member.ring); break;
	case ORDER_FLUSH:
		o->result = drain_take_from(d, &d->flush);
		d->flushing = o->result == DRAIN_FULL;
		break;
	}
	drain_announce(d);
	sem_post(&d->done);
}

/* --- The thread --- */

/* A thread of the usual class can be kept waiting for longer than a ring lasts, whatever its nice
 * value, where others of other groups (cgroup(7), sched(7) on autogroups) are busy. This one runs
 * for some hundredths of a microsecond a record and is bounded by the queue. */
static void drain_be_quick(void)
{
	const struct sched_param p = {.sched_priority = 1};

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &p) < 0)
		(void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
}

static void *drain_run(void *userdata)
{
	struct epoll_event events[MAX_EVENTS];
	struct drain *d = userdata;

	pthread_setname_np(pthread_self(), "ptsnap-drain");
	drain_be_quick();
	while (!__atomic_load_n(&d->ending, __ATOMIC_ACQUIRE)) {
		struct order *o;

		/* Who woke us does not matter; an interrupted wait is just a short one. */
		(void)epoll_wait(d->epoll_fd, events, MAX_EVENTS, drain_timeout(d));
		o = __atomic_exchange_n(&d->order, NULL, __ATOMIC_ACQUIRE);
		if (o != NULL)
			drain_obey(d, o);
		/* The room that the loop makes for a flush is the flush's. */
		if (!d->flushing)
			drain_pass(d);
	}
	return NULL;
}

/* In the loop. */
static int drain_order(struct drain *d, struct order *o)
{
	__atomic_store_n(&d->order, o, __ATOMIC_RELEASE);
	signal_fd(d->wake_fd);
	while (sem_wait(&d->done) < 0)
		; /* interrupted */
	return o->result;
}

static int drain_open(struct drain *d)
{
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll_fd < 0)
		return -errno;
	d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->wake_fd < 0)
		return -errno;
	d->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->ready_fd < 0 || !drain_poll_fd(d, d->wake_fd))
		return -errno;
	return 0;
}

static int drain_start(struct drain *d)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&d->thread, NULL, drain_run, d);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

static void drain_release(struct drain *d)
{
	close_fd(d->epoll_fd);
	close_fd(d->wake_fd);
	close_fd(d->ready_fd);
	recqueue_done(&d->queue);
	free(d->members);
	sem_destroy(&d->done);
	free(d);
}

int drain_new(uint64_t queue_bytes, uint64_t period_usec, struct drain **ret)
{
	struct drain *d = aligned_alloc(_Alignof(struct drain), sizeof(*d));
	int r;

	if (d == NULL)
		return -ENOMEM;
	*d = (struct drain){
		.period_msec = (int)MIN_OF((period_usec + 999) / 1000, (uint64_t)SWEEP_MSEC),
		.epoll_fd = -EBADF,
		.wake_fd = -EBADF,
		.ready_fd = -EBADF,
	};
	d->period_msec = MAX_OF(d->period_msec, 1);
	sem_init(&d->done, 0, 0);
	r = recqueue_init(&d->queue, queue_bytes);
	if (r == 0)
		r = drain_open(d);
	if (r == 0)
		r = drain_start(d);
	if (r < 0) {
		drain_release(d);
		return r;
	}
	*ret = d;
	return 0;
}

void drain_free(struct drain *d)
{
	if (d == NULL)
		return;
	__atomic_store_n(&d->ending, true, __ATOMIC_RELEASE);
	signal_fd(d->wake_fd);
	pthread_join(d->thread, NULL);
	drain_release(d);
}

/* --- For the loop --- */

int drain_add(struct drain *d, uint32_t index, struct ring *ring, int fd)
{
	struct order o = {.kind = ORDER_ADD, .member = {ring, index, fd}};
	struct member *old = NULL;

	/* The thread never waits for the allocator. */
	if (d->n == d->capacity) {
		size_t capacity = d->capacity > 0 ? 2 * d->capacity : 64;

		o.members = calloc(capacity, sizeof(*o.members));
		if (o.members == NULL)
			return -ENOMEM;
		old = d->members;
		if (d->n > 0)
			memcpy(o.members, old, d->n * sizeof(*old));
		d->capacity = capacity;
	}
	drain_order(d, &o);
	free(old);
	return 0;
}

void drain_remove(struct drain *d, struct ring *ring)
{
	struct order o = {.kind = ORDER_REMOVE, .member = {.ring = ring}};

	drain_order(d, &o);
}

int drain_fd(const struct drain *d)
{
	return d->ready_fd;
}

int drain_flush(struct drain *d)
{
	struct order o = {.kind = ORDER_FLUSH};

	return drain_order(d, &o);
}

/* The queue looked empty. When it is not, after all, its fd is made readable again. */
static void drain_settle(struct drain *d)
{
	uint64_t count;

	(void)!read(d->ready_fd, &count, sizeof(count));
	(void)__atomic_exchange_n(&d->announced, false, __ATOMIC_ACQ_REL);
	drain_announce(d);
}

static void drain_end_block(struct drain *d)
{
	d->block = NULL;
	recqueue_consume(&d->queue);
}

static bool drain_find_block(struct drain *d)
{
	const void *block;

	if (recqueue_peek(&d->queue, &d->block_index, &block, &d->block_size) != 0)
		return false;
	d->block = block;
	return true;
}

/* The next record of the queue's oldest entry. What contradicts itself there is thrown away. 0 or
 * DRAIN_EMPTY. */
static int drain_peek_block(struct drain *d, uint32_t *ret_index, const void **ret_record,
			    size_t *ret_size)
{
	struct perf_event_header header;

	while (d->block || drain_find_block(d)) {
		memcpy(&header, d->block, sizeof(header));
		if (header.size >= sizeof(header) && header.size % 8 == 0 &&
		    header.size <= d->block_size) {
			*ret_index = d->block_index;
			*ret_record = d->block;
			*ret_size = header.size;
			return 0;
		}
		bump(&d->bad_bytes, d->block_size);
		drain_end_block(d);
	}
	return DRAIN_EMPTY;
}

int drain_peek(struct drain *d, uint32_t *ret_index, const void **ret_record, size_t *ret_size)
{
	if (drain_peek_block(d, ret_index, ret_record, ret_size) == 0)
		return 0;
	drain_settle(d);
	return drain_peek_block(d, ret_index, ret_record, ret_size);
}

void drain_consume(struct drain *d)
{
	struct perf_event_header header;

	memcpy(&header, d->block, sizeof(header));
	d->block += header.size;
	d->block_size -= header.size;
	if (d->block_size == 0)
		drain_end_block(d);
}

uint64_t drain_take_bad_bytes(struct drain *d)
{
	return __atomic_exchange_n(&d->bad_bytes, 0, __ATOMIC_RELAXED);
}

void drain_get_stats(const struct drain *d, struct drain_stats *ret)
{
	*ret = (struct drain_stats){
		.queue_bytes = d->queue.size,
		.queue_used = recqueue_used(&d->queue),
		.queue_most = recqueue_most(&d->queue),
		.stalls = __atomic_load_n(&d->stalls, __ATOMIC_RELAXED),
	};
}
