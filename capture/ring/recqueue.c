/*
 * A ring of entries without locks, each a small header and some records.
 *
 * If an entry does not fit before the end of the memory, a header of size 0 marks the rest as
 * unused and the entry goes to the beginning. Thus every entry lies in one piece.
 */
#include "capture/ring/recqueue.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Entries are multiples of 8 bytes, as records are, so a header always fits before the end. */
struct header {
	uint32_t size; /* of the records behind the header; 0: go on at the beginning */
	uint32_t index;
};

int recqueue_init(struct recqueue *q, uint64_t size)
{
	void *bytes;

	if (size < RECQUEUE_MIN_BYTES || (size & (size - 1)) != 0)
		return -EINVAL;
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED)
		return -ENOMEM;
	/* Locks pages once they are touched: the thread that empties rings must not wait for a swap
	 * device. Without the permission to lock, the queue works unlocked. */
	(void)mlock2(bytes, size, MLOCK_ONFAULT);
	*q = (struct recqueue){.bytes = bytes, .size = size};
	return 0;
}

void recqueue_done(struct recqueue *q)
{
	if (q->bytes)
		munmap(q->bytes, q->size);
	*q = (struct recqueue){0};
}

/* The offset of the entry at POS. The reader may call this only after it has seen the entry. */
static uint64_t offset_of(const struct recqueue *q, uint64_t pos)
{
	return (pos - __atomic_load_n(&q->origin, __ATOMIC_RELAXED)) & (q->size - 1);
}

static void write_header(struct recqueue *q, uint64_t pos, struct header e)
{
	memcpy(q->bytes + offset_of(q, pos), &e, sizeof(e));
}

uint8_t *recqueue_reserve(struct recqueue *q, uint32_t index, size_t size)
{
	uint64_t head = __atomic_load_n(&q->head, __ATOMIC_RELAXED), rest, skip, used;
	/* Pairs with the release in recqueue_consume(): the reader has read everything before the
	 * tail. */
	uint64_t tail = __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE);
	size_t need = sizeof(struct header) + size;

	assert(size > 0 && size % 8 == 0 && size <= RECQUEUE_MAX_ENTRY);
	/* The queue is empty: the reader reads nothing until it sees a new head, and then it sees
	 * the new origin too. */
	if (head == tail)
		__atomic_store_n(&q->origin, head, __ATOMIC_RELAXED);
	rest = q->size - offset_of(q, head);
	skip = rest < need ? rest : 0;
	used = head - tail + skip + need;
	if (used > q->size)
		return NULL;
	if (skip > 0)
		write_header(q, head, (struct header){0});
	head += skip;
	write_header(q, head, (struct header){.size = (uint32_t)size, .index = index});
	if (used > __atomic_load_n(&q->most, __ATOMIC_RELAXED))
		__atomic_store_n(&q->most, used, __ATOMIC_RELAXED);
	q->reserved = head + need;
	return q->bytes + offset_of(q, head) + sizeof(struct header);
}

void recqueue_commit(struct recqueue *q)
{
	__atomic_store_n(&q->head, q->reserved, __ATOMIC_RELEASE);
}

bool recqueue_put(struct recqueue *q, uint32_t index, const void *bytes, size_t size)
{
	uint8_t *to = recqueue_reserve(q, index, size);

	if (!to)
		return false;
	memcpy(to, bytes, size);
	recqueue_commit(q);
	return true;
}

static struct header read_header(const struct recqueue *q, uint64_t pos)
{
	struct header e;

	memcpy(&e, q->bytes + offset_of(q, pos), sizeof(e));
	return e;
}

int recqueue_peek(struct recqueue *q, uint32_t *ret_index, const void **ret_bytes, size_t *ret_size)
{
	uint64_t tail = __atomic_load_n(&q->tail, __ATOMIC_RELAXED);
	struct header e;

	if (tail == __atomic_load_n(&q->head, __ATOMIC_ACQUIRE))
		return RECQUEUE_EMPTY;
	e = read_header(q, tail);
	if (e.size == 0) { /* another entry always follows */
		tail += q->size - offset_of(q, tail);
		__atomic_store_n(&q->tail, tail, __ATOMIC_RELEASE);
		e = read_header(q, tail);
	}
	*ret_index = e.index;
	*ret_bytes = q->bytes + offset_of(q, tail) + sizeof(e);
	*ret_size = e.size;
	return 0;
}

void recqueue_consume(struct recqueue *q)
{
	uint64_t tail = __atomic_load_n(&q->tail, __ATOMIC_RELAXED);

	__atomic_store_n(&q->tail, tail + sizeof(struct header) + read_header(q, tail).size,
			 __ATOMIC_RELEASE);
}

uint64_t recqueue_used(const struct recqueue *q)
{
	/* Reads the tail first: it never overtakes the head. */
	uint64_t tail = __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&q->head, __ATOMIC_ACQUIRE) - tail;
}

uint64_t recqueue_most(const struct recqueue *q)
{
	return __atomic_load_n(&q->most, __ATOMIC_RELAXED);
}
