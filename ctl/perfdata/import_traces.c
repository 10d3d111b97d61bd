/*
 * The pieces of a perf.data's trace, put together. Ordinarily each goes on where the last one of
 * its CPU or thread ended. With --snapshot each is what a ring held, that is newer than the last
 * piece, or overlaps it, or begins after something was overwritten unseen: then what lies before
 * its first PSB cannot be read, and is dropped and counted.
 */
#include "ctl/perfdata/import_traces.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "proto/base.h"
#include "proto/perf/ptpacket.h"

#include "ctl/base/say.h"

#define PSB_TEXT "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
/* So many times the bytes of both pieces are compared at most, whatever they are made of. */
#define MAX_COMPARED 8u
/* Rings have at least a page. */
#define MIN_RING 4096u

void import_traces_done(struct import_traces *t)
{
	free(t->pieces);
	*t = (struct import_traces){0};
}

int import_traces_add(struct import_traces *t, const struct perfdata_record *record)
{
	struct perfdata_auxtrace a;

	if (perfdata_parse_auxtrace(record, &a) < 0)
		return -EBADMSG;
	if (a.cpu == PERFDATA_ANY ? a.tid > INT32_MAX : a.cpu >= MANIFEST_MAX_CPUS)
		return -EBADMSG;
	if (a.size == 0)
		return 0;
	if (ARRAY_RESERVE(t->pieces, t->capacity, t->n + 1) < 0)
		return -ENOMEM;
	/* Of a CPU's trace tid is what perf record was asked for, if that was one process. */
	t->pieces[t->n] = (struct import_piece){
		.cpu = a.cpu,
		.tid = a.cpu == PERFDATA_ANY ? a.tid : PERFDATA_ANY,
		.offset = a.offset,
		.bytes = record->trace,
		.size = (size_t)a.size,
		.place = t->n,
	};
	t->n++;
	return 0;
}

static int by_trace(const void *a, const void *b)
{
	const struct import_piece *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->place < y->place ? -1 : 1;
}

/* The first PSB from AT on; SIZE: none. */
static size_t find_psb(const uint8_t *bytes, size_t size, size_t at)
{
	const uint8_t *found = memmem(bytes + at, size - at, PSB_TEXT, PT_PSB_SIZE);

	return found ? (size_t)(found - bytes) : size;
}

/* Equal bytes from A and B on, at most N, which *BUDGET may cut short. */
static size_t count_same(const uint8_t *a, const uint8_t *b, size_t n, size_t *budget)
{
	size_t i = 0;

	n = MIN_OF(n, *budget);
	while (i < n && a[i] == b[i])
		i++;
	*budget -= i;
	return i;
}

/* The first PSB of B is looked for in A: if B goes on where A does, A's bytes from there on are
 * B's, and so are those before it, back to where B begins. Time stamps behind PSBs make them
 * unique. */
size_t import_traces_overlap(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
	size_t anchor = find_psb(b, b_size, 0), at, same, budget;

	if (anchor == b_size || mul_ok(a_size + b_size, MAX_COMPARED, &budget) == false)
		return 0;
	for (at = find_psb(a, a_size, 0); at < a_size && budget > 0;
	     at = find_psb(a, a_size, at + 1)) {
		size_t rest = a_size - at;

		if (at < anchor || rest > b_size - anchor)
			continue;
		same = count_same(a + at, b + anchor, rest, &budget);
		if (same == rest && count_same(a + at - anchor, b, anchor, &budget) == anchor)
			return anchor + rest;
	}
	return 0;
}

/* With --snapshot, offsets are places in a ring, whose size is a power of two. */
static bool goes_on(const struct import_piece *last, const struct import_piece *piece,
		    bool snapshot)
{
	uint64_t end = last->offset + last->size, behind = end - piece->offset;

	if (behind == 0)
		return true;
	return snapshot && piece->offset < end && behind >= MIN_RING && behind >= piece->size &&
	       behind >= last->size && (behind & (behind - 1)) == 0;
}

/* How many bytes of PIECE are not to be used. */
static size_t cut_of(struct import_traces *t, const struct import_piece *last,
		     const struct import_piece *piece, bool snapshot)
{
	size_t cut;

	if (snapshot) {
		cut = import_traces_overlap(last->bytes, last->size, piece->bytes, piece->size);
		if (cut > 0)
			return cut;
	}
	if (goes_on(last, piece, snapshot))
		return 0;
	cut = find_psb(piece->bytes, piece->size, 0);
	t->seams++;
	t->dropped += cut;
	return cut;
}

static int out_of_memory(void)
{
	return say_error(EXIT_CODE_FAILURE, "out of memory");
}

static int write_trace(struct import_traces *t, size_t first, size_t end, bool snapshot,
		       struct manifest *m, struct bundle_writer *w)
{
	CLEANUP_FREE struct iovec *parts = calloc(end - first, sizeof(*parts));
	const struct import_piece *pieces = t->pieces;
	struct manifest_cpu *cpu = manifest_add_cpu(m);
	char name[32];
	int r;

	if (!parts || !cpu)
		return out_of_memory();
	cpu->cpu = pieces[first].cpu;
	cpu->tid = pieces[first].tid;
	for (size_t i = first; i < end; i++) {
		size_t cut = i > first ? cut_of(t, &pieces[i - 1], &pieces[i], snapshot) : 0;

		parts[i - first].iov_base = (void *)(uintptr_t)(pieces[i].bytes + cut);
		parts[i - first].iov_len = pieces[i].size - cut;
		cpu->bytes += pieces[i].size - cut;
	}
	cpu->ring_bytes = cpu->bytes;
	if (cpu->cpu == PERFDATA_ANY)
		snprintf(name, sizeof(name), "trace/%zu", m->n_cpus - 1);
	else
		snprintf(name, sizeof(name), "cpu%u.pt", cpu->cpu);
	r = bundle_write_parts(w, name, parts, end - first);
	return r == 0 ? 0
		      : say_error(EXIT_CODE_FAILURE, "cannot compose the bundle in memory: %s",
				  strerror(-r));
}

static bool is_same_trace(const struct import_piece *a, const struct import_piece *b)
{
	return a->cpu == b->cpu && a->tid == b->tid;
}

int import_traces_write(struct import_traces *t, const char *path, bool snapshot,
			struct manifest *m, struct bundle_writer *w)
{
	size_t end;
	int r = 0;

	if (t->n > 0)
		qsort(t->pieces, t->n, sizeof(*t->pieces), by_trace);
	for (size_t first = 0; first < t->n && r == 0; first = end) {
		end = first + 1;
		while (end < t->n && is_same_trace(&t->pieces[first], &t->pieces[end]))
			end++;
		if (m->n_cpus == MANIFEST_MAX_CPUS)
			return say_error(EXIT_CODE_FAILURE,
					 "%s: traces of more than %u threads in one file", path,
					 MANIFEST_MAX_CPUS);
		r = write_trace(t, first, end, snapshot, m, w);
	}
	return r;
}
