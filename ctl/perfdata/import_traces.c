/*
 * Joins the pieces of each trace in a perf.data file.
 *
 * Ordinarily each piece begins where the previous piece of its CPU or thread ended. With --snapshot
 * a piece is the whole content of a ring: it continues the previous piece, or overlaps it, or
 * begins after bytes that were overwritten before perf read them. In the last case the bytes before
 * the piece's first PSB cannot be decoded: they are left out, and the seam is counted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "proto/base.h"
#include "proto/perf/ptpacket.h"

#include "ctl/base/say.h"
#include "ctl/perfdata/import_private.h"

#define PSB_TEXT "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
/* Limit of comparisons, as a multiple of the bytes of both pieces. */
#define MAX_COMPARED 8u
/* A ring has at least one page. */
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
	/* With a CPU, tid is only the process that perf record was asked for. */
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

/* Returns the offset of the first PSB from AT on, or SIZE. */
static size_t find_psb(const uint8_t *bytes, size_t size, size_t at)
{
	const uint8_t *found = memmem(bytes + at, size - at, PSB_TEXT, PT_PSB_SIZE);

	return found ? (size_t)(found - bytes) : size;
}

/* Counts equal bytes at A and B, at most N and at most *BUDGET, and takes them off *BUDGET. */
static size_t count_same(const uint8_t *a, const uint8_t *b, size_t n, size_t *budget)
{
	size_t i = 0;

	n = MIN_OF(n, *budget);
	while (i < n && a[i] == b[i])
		i++;
	*budget -= i;
	return i;
}

/* Looks in A for the first PSB of B. Where B overlaps A, the bytes behind this PSB are equal up to
 * A's end, and the bytes before it are equal back to B's beginning. The time stamp behind a PSB
 * makes the bytes unique. */
size_t import_traces_overlap(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
	size_t anchor = find_psb(b, b_size, 0), at, same, budget;

	if (anchor == b_size || !mul_ok(a_size + b_size, MAX_COMPARED, &budget))
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

/* Whether PIECE begins where LAST ended. With --snapshot, offsets are places in a ring, whose size
 * is a power of two that the file does not tell. */
static bool continues(const struct import_piece *last, const struct import_piece *piece,
		      bool snapshot)
{
	uint64_t end = last->offset + last->size, behind = end - piece->offset;

	if (behind == 0)
		return true;
	return snapshot && piece->offset < end && behind >= MIN_RING && behind >= piece->size &&
	       behind >= last->size && (behind & (behind - 1)) == 0;
}

/* Returns how many bytes at PIECE's beginning are to be left out. */
static size_t bytes_to_skip(struct import_traces *t, const struct import_piece *last,
			    const struct import_piece *piece, bool snapshot)
{
	size_t cut;

	if (snapshot) {
		cut = import_traces_overlap(last->bytes, last->size, piece->bytes, piece->size);
		if (cut > 0)
			return cut;
	}
	if (continues(last, piece, snapshot))
		return 0;
	cut = find_psb(piece->bytes, piece->size, 0);
	t->seams++;
	return cut;
}

static int write_trace(struct import_traces *t, size_t first, size_t end, bool snapshot,
		       struct manifest *m, struct bundle_writer *w)
{
	CLEANUP_FREE struct iovec *parts = calloc(end - first, sizeof(*parts));
	const struct import_piece *pieces = t->pieces;
	struct manifest_cpu *cpu = manifest_add_cpu(m);
	char name[32];

	if (!parts || !cpu)
		return import_no_memory();
	cpu->cpu = pieces[first].cpu;
	cpu->tid = pieces[first].tid;
	for (size_t i = first; i < end; i++) {
		size_t cut = i > first ? bytes_to_skip(t, &pieces[i - 1], &pieces[i], snapshot) : 0;

		parts[i - first].iov_base = (void *)(uintptr_t)(pieces[i].bytes + cut);
		parts[i - first].iov_len = pieces[i].size - cut;
		cpu->bytes += pieces[i].size - cut;
	}
	cpu->ring_bytes = cpu->bytes;
	if (cpu->cpu == PERFDATA_ANY)
		snprintf(name, sizeof(name), "trace/%zu", m->n_cpus - 1);
	else
		snprintf(name, sizeof(name), "cpu%u.pt", cpu->cpu);
	return import_written(bundle_write_parts(w, name, parts, end - first));
}

int import_traces_write(struct import_traces *t, const char *path, bool snapshot,
			struct manifest *m, struct bundle_writer *w)
{
	const struct import_piece *p = t->pieces;
	size_t end;

	if (t->n > 0)
		qsort(t->pieces, t->n, sizeof(*t->pieces), by_trace);
	for (size_t first = 0; first < t->n; first = end) {
		int r;

		end = first + 1;
		while (end < t->n && p[end].cpu == p[first].cpu && p[end].tid == p[first].tid)
			end++;
		if (m->n_cpus == MANIFEST_MAX_CPUS)
			return say_error(EXIT_CODE_FAILURE,
					 "%s: traces of more than %u threads in one file", path,
					 MANIFEST_MAX_CPUS);
		r = write_trace(t, first, end, snapshot, m, w);
		if (r != 0)
			return r;
	}
	return 0;
}
