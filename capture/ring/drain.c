/*
 * Empties DATA rings in a thread of its own, and hands the records to the recorder's loop.
 *
 * The rings and their list belong to the thread. The loop gives orders and waits for them; the
 * thread carries orders out between two passes. The thread waits for no lock, which a less urgent
 * thread could hold while it sleeps.
 *
 * The thread copies everything that a ring holds as one block without looking at it. The loop finds
 * the records in the copy, where the writer can no longer change them.
 *
 * A pass empties all rings, not only the rings that woke the thread. Thus records of all rings stay
 * close in time, and the number of passes depends on the fastest ring only.
 *
 * Perf events are polled edge-triggered. The kernel wakes pollers at each watermark
 * (kernel/events/ring_buffer.c, perf_output_put_handle), even if earlier records have not been
 * read. An event that has exited or is in error polls as hung up for ever (kernel/events/core.c,
 * perf_poll), which costs only one pass when edge-triggered.
 */
#include "capture/ring/drain.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "capture/ring/realtime.h"
#include "capture/ring/recqueue.h"
#include "proto/base.h"

/* The longest time that records below the watermark stay in a ring. */
#define SWEEP_MSEC 250
/* How long the thread waits for room in the queue before it tries again. */
#define STALL_MSEC 5
#define MAX_EVENTS 256

struct member {
	struct ring *ring;
	uint32_t index;
	int fd; /* polled; -EBADF: none */
};

/* Where a pass that found the queue full must go on. */
struct cursor {
	size_t at;	/* the member */
	uint64_t taken; /* the bytes taken from it so far */
};

enum order_kind { ORDER_ADD, ORDER_REMOVE, ORDER_FLUSH };

/* Lies on the stack of the loop, which waits for the order. */
struct order {
	enum order_kind kind;
	struct member member;	/* ADD: the new member; REMOVE: only its ring */
	struct member *members; /* ADD: a larger copy of the list; NULL: the list has room */
	int result;
};

struct drain {
	struct recqueue queue;
	pthread_t thread;
	/* The thread's; the loop may read the list between two orders. */
	struct member *members;
	size_t n, n_silent; /* silent: members without an fd */
	struct cursor pass, flush;
	bool stalled;  /* the last pass found the queue full */
	bool flushing; /* drain_flush() will be called again */
	/* Atomic. */
	struct order *order;
	bool ending;
	bool announced; /* ready_fd was written since the loop read it */
	uint64_t stalls, bad_bytes;
	/* Constant. */
	sem_t done; /* posted when an order was carried out */
	int period_msec;
	int epoll_fd, wake_fd, ready_fd;
	/* The loop's. */
	size_t capacity;
	const uint8_t *block; /* the rest of the queue's oldest entry; NULL: not peeked at yet */
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

/* --- Passes, in the thread --- */

/* Moves all that a ring holds as one block, if the ring is consistent and the block fits. */
static void drain_take_block(struct drain *d, const struct member *m, uint64_t *taken)
{
	uint64_t size;
	uint8_t *to;

	if (ring_used(m->ring, &size) != 0 || size > RECQUEUE_MAX_ENTRY)
		return;
	to = recqueue_reserve(&d->queue, m->index, size);
	if (!to)
		return;
	ring_copy_data(m->ring, size, to);
	recqueue_commit(&d->queue);
	ring_consume(m->ring, size);
	*taken += size;
}

/* Moves a block, and then record by record what could not be moved as a block. Takes at most the
 * ring's size (counted in *TAKEN) and a block, so that a fast writer cannot hold up a pass. 0 or
 * DRAIN_FULL. */
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

/* Empties all rings from C on. Then C is the first ring again; or the ring at which the queue was
 * full, with DRAIN_FULL. */
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

/* Makes the loop's fd readable if the queue is not empty. The thread puts records before it
 * exchanges ANNOUNCED here; the loop exchanges ANNOUNCED before it looks for records a last time
 * (drain_peek). Whichever comes second sees what the other did. */
static void drain_announce(struct drain *d)
{
	if (recqueue_used(&d->queue) > 0 &&
	    !__atomic_exchange_n(&d->announced, true, __ATOMIC_ACQ_REL))
		signal_fd(d->ready_fd);
}

static void drain_pass(struct drain *d)
{
	bool was_cut = d->pass.at > 0;

	/* After a cut pass, rings before the cut may have filled again, and their wakeups been
	 * consumed. */
	if (drain_take_from(d, &d->pass) == 0 && was_cut)
		drain_take_from(d, &d->pass);
	drain_announce(d);
}

/* How long the thread may sleep without a wakeup, for epoll_wait(2). */
static int drain_timeout(const struct drain *d)
{
	if (d->n == 0)
		return -1;
	if (d->stalled)
		return STALL_MSEC;
	return d->n_silent > 0 ? d->period_msec : SWEEP_MSEC;
}

/* --- Orders, in the thread --- */

/* Whether FD is polled from now on. */
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
	if (o->members)
		d->members = o->members;
	d->members[d->n++] = m;
	d->n_silent += m.fd < 0;
}

/* Corrects C after the removal of member I. */
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

static void *drain_run(void *userdata)
{
	struct epoll_event events[MAX_EVENTS];
	struct drain *d = userdata;

	pthread_setname_np(pthread_self(), "ptsnap-drain");
	/* It runs for some hundredths of a microsecond per record, and the size of the queue limits
	 * it. */
	realtime_enter();
	while (!__atomic_load_n(&d->ending, __ATOMIC_ACQUIRE)) {
		struct order *o;

		/* It does not matter which fd woke us, or whether a signal did. */
		(void)epoll_wait(d->epoll_fd, events, MAX_EVENTS, drain_timeout(d));
		o = __atomic_exchange_n(&d->order, NULL, __ATOMIC_ACQUIRE);
		if (o)
			drain_obey(d, o);
		/* During a flush, room in the queue is for the flush only. */
		if (!d->flushing)
			drain_pass(d);
	}
	return NULL;
}

/* Gives an order and waits until it is carried out. */
static int drain_order(struct drain *d, struct order *o)
{
	__atomic_store_n(&d->order, o, __ATOMIC_RELEASE);
	signal_fd(d->wake_fd);
	while (sem_wait(&d->done) < 0)
		; /* interrupted */
	return o->result;
}

/* Opens the fds and starts the thread. */
static int drain_start(struct drain *d)
{
	sigset_t all, before;
	int r;

	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll_fd < 0)
		return -errno;
	d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->wake_fd < 0)
		return -errno;
	d->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->ready_fd < 0 || !drain_poll_fd(d, d->wake_fd))
		return -errno;
	/* Only the loop handles signals. */
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

	if (!d)
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
	if (!d)
		return;
	__atomic_store_n(&d->ending, true, __ATOMIC_RELEASE);
	signal_fd(d->wake_fd);
	pthread_join(d->thread, NULL);
	drain_release(d);
}

/* --- The public functions, in the loop --- */

int drain_add(struct drain *d, uint32_t index, struct ring *ring, int fd)
{
	struct order o = {.kind = ORDER_ADD, .member = {ring, index, fd}};
	struct member *old = NULL;

	/* The loop allocates, so that the thread never waits for the allocator. */
	if (d->n == d->capacity) {
		size_t capacity = d->capacity > 0 ? 2 * d->capacity : 64;

		o.members = calloc(capacity, sizeof(*o.members));
		if (!o.members)
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

static void drain_end_block(struct drain *d)
{
	d->block = NULL;
	recqueue_consume(&d->queue);
}

/* The next record of the queue's oldest entry. Discards an entry from the first inconsistent record
 * on. 0 or DRAIN_EMPTY. */
static int drain_peek_block(struct drain *d, uint32_t *ret_index, const void **ret_record,
			    size_t *ret_size)
{
	struct perf_event_header header;

	for (;;) {
		if (!d->block) {
			const void *block;

			if (recqueue_peek(&d->queue, &d->block_index, &block, &d->block_size) != 0)
				return DRAIN_EMPTY;
			d->block = block;
		}
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
}

int drain_peek(struct drain *d, uint32_t *ret_index, const void **ret_record, size_t *ret_size)
{
	uint64_t count;

	if (drain_peek_block(d, ret_index, ret_record, ret_size) == 0)
		return 0;
	/* The queue looked empty. If records came meanwhile, the fd becomes readable again. */
	(void)!read(d->ready_fd, &count, sizeof(count));
	(void)__atomic_exchange_n(&d->announced, false, __ATOMIC_ACQ_REL);
	drain_announce(d);
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
