/*
 * Joins the pieces of each trace in a perf.data file.
 *
 * Ordinarily each piece begins where the previous piece of its CPU or thread ended. With --snapshot
 * a piece is the whole content of a ring: it continues the previous piece, or overlaps it, or
 * begins after bytes that were overwritten before perf read them. In the last case the bytes before
 * the piece's first PSB cannot be decoded: they are left out, and the manifest gets a seam.
 *
 * Pieces of --snapshot that continue each other have a seam, too: perf disables the event when it
 * takes a snapshot and enables it when the ring is copied (tools/perf/builtin-record.c,
 * snapshot_sig_handler() and record__read_auxtrace_snapshot()), so what ran in between is not in
 * the trace. The place is known where the trace begins again with a PSB.
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
/* Kinds of seams (decoder/packet/fault.h): bytes are missing; the event was disabled. */
#define SEAM_HOLE "trace-missing"
#define SEAM_COPY "snapshot-copy"

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
	/* With a CPU, tid is the process that perf record was asked for, or ANY
	 * (tools/perf/util/auxtrace.c, auxtrace_mmap_params__set_idx()). */
	t->tasks |= a.tid != PERFDATA_ANY;
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

/* How a piece is joined to the pieces before it. */
struct join {
	const char *kind; /* of the seam; NULL: there is none */
	size_t cut;	  /* so many bytes at the piece's beginning are left out */
};

/* LOST: the pieces before were left out for want of a PSB. */
static struct join join_of(const struct import_piece *last, const struct import_piece *piece,
			   bool snapshot, bool lost)
{
	struct join j = {0};

	if (snapshot && !lost)
		j.cut = import_traces_overlap(last->bytes, last->size, piece->bytes, piece->size);
	if (!lost && (j.cut > 0 || continues(last, piece, snapshot))) {
		j.kind = snapshot ? SEAM_COPY : NULL;
		return j;
	}
	j.kind = SEAM_HOLE;
	j.cut = find_psb(piece->bytes, piece->size, 0);
	return j;
}

/* A trace while its pieces are joined. */
struct joining {
	struct import_traces *t;
	struct manifest *m;
	struct manifest_cpu *cpu;
	bool snapshot, lost;
};

/* Notes the seam J in front of PIECE. 0 or -ENOMEM. */
static int note_seam(struct joining *w, const struct import_piece *piece, struct join *j)
{
	bool copy = strcmp(j->kind, SEAM_COPY) == 0;
	struct manifest_seam *seam;

	if (j->cut == piece->size)
		return 0;
	if (copy && find_psb(piece->bytes, piece->size, j->cut) != j->cut) {
		w->t->copies++;
		return 0;
	}
	if (w->m->n_seams == MANIFEST_MAX_SEAMS) {
		w->t->left_out++;
		w->lost = true;
		j->cut = piece->size;
		return 0;
	}
	seam = manifest_add_seam(w->m);
	if (!seam)
		return -ENOMEM;
	seam->trace = (uint32_t)(w->m->n_cpus - 1);
	seam->offset = w->cpu->bytes;
	seam->kind = strdup(j->kind);
	return seam->kind ? 0 : -ENOMEM;
}

/* Returns in *RET how many bytes at PIECE's beginning are to be left out. 0 or -ENOMEM. */
static int join(struct joining *w, const struct import_piece *last,
		const struct import_piece *piece, size_t *ret)
{
	struct join j = join_of(last, piece, w->snapshot, w->lost);
	int r;

	if (j.kind && strcmp(j.kind, SEAM_HOLE) == 0) {
		w->lost = j.cut == piece->size;
		w->t->cut += j.cut > 0;
	}
	r = j.kind ? note_seam(w, piece, &j) : 0;
	*ret = j.cut;
	return r;
}

static int write_trace(struct import_traces *t, size_t first, size_t end, bool snapshot,
		       struct manifest *m, struct bundle_writer *w)
{
	CLEANUP_FREE struct iovec *parts = calloc(end - first, sizeof(*parts));
	const struct import_piece *pieces = t->pieces;
	struct manifest_cpu *cpu = manifest_add_cpu(m);
	struct joining joining = {.t = t, .m = m, .cpu = cpu, .snapshot = snapshot};
	char name[32];

	if (!parts || !cpu)
		return import_no_memory();
	cpu->cpu = pieces[first].cpu;
	cpu->tid = pieces[first].tid;
	for (size_t i = first; i < end; i++) {
		size_t cut = 0;

		if (i > first && join(&joining, &pieces[i - 1], &pieces[i], &cut) < 0)
			return import_no_memory();
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
