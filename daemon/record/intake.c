/*
 * Records from the drain's queue, each passed to the timeline and to all others that it concerns.
 */
#include "daemon/record/intake.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/base/log.h"
#include "proto/base.h"

/* Taken in by one call of intake_some(), in a few milliseconds. */
#define SOME_BYTES (256u << 10)
/* /proc is read for at most this many processes a call, and for more when no records wait. */
#define PROCS_BUDGET	  16
#define PROCS_BUDGET_IDLE 64

/* Names of decoder/packet/fault.h. */
#define FAULT_BAD      "sideband-bad"
#define FAULT_AUX_LOST "aux-lost"

/* Where a record came from. */
struct intake_from {
	struct intake_cpu *cpu; /* NULL: not from a ring */
	enum source_ring ring;
	bool only_aux; /* the ring is the PT event's own, without sideband */
};

static void intake_one(struct intake *in, const struct intake_from *from, const void *bytes,
		       size_t size);
static uint64_t intake_digest_now(struct intake *in);

/* Counts N records of CPU INDEX as lost up to now, and tells all others by a LOST record. */
static void intake_missed(struct intake *in, uint32_t index, uint64_t n)
{
	const struct intake_from nowhere = {0};
	uint64_t now = source_now_ns(in->source, index), bytes[16];
	const struct perfrecord lost = {
		.type = PERF_RECORD_LOST,
		.pid = UINT32_MAX,
		.tid = UINT32_MAX,
		.time = now != MANIFEST_ABSENT ? now : 0,
		.cpu = in->source->cpus[index].cpu,
		.u.lost.lost = n,
	};
	size_t size;

	in->cpus[index].lost += n;
	if (perfrecord_compose(&lost, bytes, sizeof(bytes), &size) == 0)
		intake_one(in, &nowhere, bytes, size);
}

/* Remembers N faults of KIND that are known since NOW and happened behind SINCE, perf clock. */
static void intake_fault(struct intake *in, uint32_t cpu, const char *kind, const char *why,
			 uint64_t n, uint64_t since, uint64_t now)
{
	faults_add(&in->faults, &(struct manifest_note){.kind = (char *)kind,
							.why = (char *)why,
							.count = n,
							.cpu = cpu,
							.since_ns = since,
							.until_ns = now});
}

/* Counts N lost records of the PT event's own ring, which tell of the trace. They were lost behind
 * the last AUX record, up to NOW. */
static void intake_aux_missed(struct intake *in, uint32_t index, uint64_t n, uint64_t now)
{
	struct intake_cpu *cpu = &in->cpus[index];

	cpu->aux_lost += n;
	intake_fault(in, in->source->cpus[index].cpu, FAULT_AUX_LOST, "the event's ring was full",
		     n, cpu->aux_ns > 0 ? cpu->aux_ns : MANIFEST_ABSENT, now);
}

static bool has_own_ring(const struct intake *in, uint32_t index)
{
	return in->source->cpus[index].sideband.data;
}

/* Counts what the kernel knows to be lost and no record has told of. */
static void intake_settle_ring(struct intake *in, uint32_t index, enum source_ring ring)
{
	struct intake_lost *known = &in->cpus[index].rings[ring];
	const struct source *s = in->source;
	const struct ring *r =
		ring == SOURCE_RING_PT ? &s->cpus[index].pt : &s->cpus[index].sideband;
	uint64_t lost;

	if (!s->ops->lost || !r->data || s->ops->lost(s, index, ring, &lost) < 0 ||
	    lost <= known->known)
		return;
	if (ring == SOURCE_RING_PT && has_own_ring(in, index))
		intake_aux_missed(in, index, lost - known->known, source_now_ns(in->source, index));
	else
		intake_missed(in, index, lost - known->known);
	known->known = lost;
}

void intake_settle(struct intake *in)
{
	for (uint32_t i = 0; i < in->source->n_cpus; i++) {
		intake_settle_ring(in, i, SOURCE_RING_PT);
		intake_settle_ring(in, i, SOURCE_RING_SIDEBAND);
	}
}

static void intake_ring_added(void *userdata, uint32_t index, struct ring *ring, int fd)
{
	struct intake *in = userdata;
	const bool sideband = ring == &in->source->cpus[index].sideband;
	/* The drain's number of a ring; there are two rings for each CPU. */
	int r = drain_add(in->drain, 2 * index + sideband, ring, fd);

	in->cpus[index].rings[sideband ? SOURCE_RING_SIDEBAND : SOURCE_RING_PT] =
		(struct intake_lost){0};
	/* The ring comes late: no record tells what happened on its CPU before. */
	if (in->started && sideband)
		intake_missed(in, index, 1);
	if (r < 0)
		log_error("CPU %u: its ring cannot be emptied: %s", in->source->cpus[index].cpu,
			  strerror(-r));
}

static void intake_ring_removed(void *userdata, uint32_t index, struct ring *ring)
{
	struct intake *in = userdata;

	intake_drain(in); /* makes room in the queue for what is left in the ring */
	intake_settle_ring(in, index,
			   ring == &in->source->cpus[index].sideband ? SOURCE_RING_SIDEBAND
								     : SOURCE_RING_PT);
	drain_remove(in->drain, ring);
	intake_digest_now(in); /* before another ring gets its number */
}

int intake_init(struct intake *in, const struct intake_parts *parts)
{
	int r;

	*in = (struct intake){
		.source = parts->source,
		.timeline = parts->timeline,
		.files = parts->files,
		.procs = parts->procs,
		.memory = parts->memory,
		.reread = parts->reread,
		.watch = {in, intake_ring_added, intake_ring_removed},
	};
	in->cpus = calloc(parts->source->n_cpus, sizeof(*in->cpus));
	if (!in->cpus)
		return -ENOMEM;
	for (size_t i = 0; i < parts->source->n_cpus; i++)
		in->cpus[i].truncated_ns = in->cpus[i].partial_ns = in->cpus[i].collision_ns =
			MANIFEST_ABSENT;
	r = drain_new(parts->queue_bytes, parts->period_usec, &in->drain);
	if (r < 0) {
		intake_done(in);
		return r;
	}
	source_set_watch(in->source, &in->watch);
	in->started = true;
	return 0;
}

void intake_done(struct intake *in)
{
	if (in->drain)
		source_set_watch(in->source, NULL);
	drain_free(TAKE_PTR(in->drain));
	faults_done(&in->faults);
	free(TAKE_PTR(in->cpus));
}

/* Counts N lost records that a LOST record of TIME tells of, less those that were counted already.
 */
static void intake_lost(struct intake *in, const struct intake_from *from, uint64_t n,
			uint64_t time)
{
	struct intake_lost *ring = &from->cpu->rings[from->ring];

	ring->told += n;
	n = ring->told > ring->known ? ring->told - ring->known : 0;
	ring->known += n;
	if (!from->only_aux)
		from->cpu->lost += n;
	else if (n > 0)
		intake_aux_missed(in, (uint32_t)(from->cpu - in->cpus), n, time);
}

static void intake_aux(struct intake_cpu *cpu, const struct perfrecord *r)
{
	const uint64_t flags = r->u.aux.flags;

	cpu->aux_ns = r->time;
	cpu->aux_flags |= flags;
	if (flags & PERF_AUX_FLAG_TRUNCATED)
		cpu->truncated_ns = r->time;
	if (flags & PERF_AUX_FLAG_PARTIAL)
		cpu->partial_ns = r->time;
	if (flags & PERF_AUX_FLAG_COLLISION)
		cpu->collision_ns = r->time;
}

/* Passes a record to all but the timeline. */
static void intake_meaning(struct intake *in, const struct intake_from *from,
			   const struct perfrecord *r)
{
	switch (r->type) {
	case PERF_RECORD_FORK:
		if (r->u.task.pid == r->u.task.ppid)
			break; /* a thread */
		if (r->time > 0 && (r->misc & PERF_RECORD_MISC_FORK_EXEC)) {
			procs_see(in->procs, r->u.task.pid); /* of procscan_again() */
			break;
		}
		reread_changed(in->reread, r->u.task.pid, r->time);
		procs_fork(in->procs, r->u.task.pid, r->u.task.ppid, r->time);
		memory_fork(in->memory, r->u.task.pid, r->u.task.ppid, r->time);
		break;
	case PERF_RECORD_EXIT:
		if (r->u.task.pid != r->u.task.tid)
			break; /* a thread */
		reread_changed(in->reread, r->u.task.pid, r->time);
		procs_exit(in->procs, r->u.task.pid, r->time);
		memory_exit(in->memory, r->u.task.pid);
		break;
	case PERF_RECORD_COMM:
		if (!(r->misc & PERF_RECORD_MISC_COMM_EXEC)) {
			procs_see(in->procs, r->u.comm.pid);
			break;
		}
		reread_changed(in->reread, r->u.comm.pid, r->time);
		procs_exec(in->procs, r->u.comm.pid, r->time);
		memory_exec(in->memory, r->u.comm.pid, r->time);
		break;
	case PERF_RECORD_MMAP2:
		reread_changed(in->reread, r->u.mmap2.pid, r->time);
		files_see(in->files, r);
		if (r->u.mmap2.prot & PROT_EXEC)
			procs_map(in->procs, r->u.mmap2.pid, r->u.mmap2.filename);
		/* The findings of the scan of /proc hold since the scan, at the latest since now.
		 */
		memory_see(in->memory, r, r->time ? r->time : source_now_ns(in->source, 0));
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE: memory_ran(in->memory, r->pid, r->time); break;
	case PERF_RECORD_AUX:
		if (from->cpu) {
			intake_aux(from->cpu, r);
			in->source->cpus[from->cpu - in->cpus].aux_ns = r->time;
			in->stopped = true;
		}
		break;
	case PERF_RECORD_LOST:
		procs_lost(in->procs, r->time);
		memory_lost(in->memory, r->time);
		reread_lost(in->reread);
		if (from->cpu)
			intake_lost(in, from, r->u.lost.lost, r->time);
		break;
	default: break;
	}
}

/* For a source whose MMAP2 records are marked as having a build id but have an inode (source.h,
 * maps_by_inode): returns the record without the mark. */
static const void *intake_unmark(struct intake *in, const void *bytes, size_t size)
{
	struct perf_event_header h;

	if (!in->source->maps_by_inode || size < sizeof(h) || size > sizeof(in->unmarked))
		return bytes;
	memcpy(&h, bytes, sizeof(h));
	if (h.type != PERF_RECORD_MMAP2 || !(h.misc & PERF_RECORD_MISC_MMAP_BUILD_ID))
		return bytes;
	h.misc &= (uint16_t)~PERF_RECORD_MISC_MMAP_BUILD_ID;
	memcpy(in->unmarked, bytes, size);
	memcpy(in->unmarked, &h, sizeof(h));
	return in->unmarked;
}

/* The idle task has the number 0. A record of a thread that leaves names the next one. */
static void intake_turn(struct intake_cpu *cpu, const struct perfrecord_switch *s)
{
	bool out = (s->misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;

	cpu->busy = (out ? s->next_prev_tid : s->tid) != 0;
	if (cpu->turn_ns == 0 && (s->tid != 0 || s->next_prev_tid != 0))
		cpu->turn_ns = s->time;
}

static void intake_one(struct intake *in, const struct intake_from *from, const void *bytes,
		       size_t size)
{
	struct perfrecord_switch s;
	struct perfrecord r;
	int kind;

	if (perfrecord_get_switch(bytes, size, &s) && s.size == size) {
		timeline_push_switch(in->timeline, bytes, size);
		if (from->cpu)
			intake_turn(from->cpu, &s);
		memory_ran(in->memory, s.pid, s.time);
		return;
	}
	bytes = intake_unmark(in, bytes, size);
	kind = perfrecord_parse(bytes, size, &r);
	if (kind < 0) {
		in->bad_records++;
		intake_fault(in,
			     from->cpu ? in->source->cpus[from->cpu - in->cpus].cpu : MANIFEST_ANY,
			     FAULT_BAD, "records that contradicted themselves", 1, MANIFEST_ABSENT,
			     source_now_ns(in->source, 0));
		return;
	}
	/* It says nothing of processes, mappings and switches. */
	if (kind == 0 && r.type == PERF_RECORD_LOST && from->only_aux) {
		intake_lost(in, from, r.u.lost.lost, r.time);
		return;
	}
	timeline_push(in->timeline, &r, bytes, size); /* counts what it drops */
	if (kind == 0)
		intake_meaning(in, from, &r);
}

int intake_record(void *userdata, const void *record, size_t size)
{
	const struct intake_from nowhere = {0};

	intake_one(userdata, &nowhere, record, size);
	return 0;
}

/* Takes in what waits in the queue, LIMIT bytes or a little more. */
static uint64_t intake_digest(struct intake *in, uint64_t limit)
{
	uint64_t taken = 0, bad;
	const void *record;
	uint32_t index;
	size_t size;

	while (taken < limit && drain_peek(in->drain, &index, &record, &size) == 0) {
		const bool sideband = index % 2 != 0;
		const struct intake_from from = {&in->cpus[index / 2],
						 sideband ? SOURCE_RING_SIDEBAND : SOURCE_RING_PT,
						 !sideband && has_own_ring(in, index / 2)};

		intake_one(in, &from, record, size);
		drain_consume(in->drain);
		taken += size;
	}
	bad = drain_take_bad_bytes(in->drain);
	in->bad_bytes += bad;
	if (bad > 0)
		intake_fault(in, MANIFEST_ANY, FAULT_BAD,
			     "bytes of a ring that contradicted itself", bad, MANIFEST_ABSENT,
			     source_now_ns(in->source, 0));
	return taken;
}

int intake_fd(const struct intake *in)
{
	return drain_fd(in->drain);
}

/* Takes in what is in the queue now, and no more: it may be filled as fast as it is emptied. */
static uint64_t intake_digest_now(struct intake *in)
{
	struct drain_stats stats;

	drain_get_stats(in->drain, &stats);
	return intake_digest(in, stats.queue_used);
}

/* Takes in all that the rings hold. */
static uint64_t intake_flush(struct intake *in)
{
	uint64_t taken = 0;

	while (drain_flush(in->drain) == DRAIN_FULL)
		taken += intake_digest_now(in);
	return taken + intake_digest_now(in);
}

/* Has mappings read again that a loss made doubtful. */
static void intake_reread(struct intake *in)
{
	if (!in->reread)
		return;
	/* A record of a change that came before the answer must be known. */
	if (reread_take(in->reread)) {
		intake_flush(in);
		reread_give(in->reread, source_now_ns(in->source, 0), intake_record, in);
	}
	reread_ask(in->reread, source_now_ns(in->source, 0));
}

uint64_t intake_some(struct intake *in)
{
	uint64_t taken = intake_digest(in, SOME_BYTES);

	files_take(in->files);
	intake_reread(in);
	procs_refresh(in->procs, taken < SOME_BYTES ? PROCS_BUDGET_IDLE : PROCS_BUDGET);
	return taken;
}

uint64_t intake_drain(struct intake *in)
{
	uint64_t taken = intake_flush(in);

	procs_refresh(in->procs, PROCS_BUDGET);
	return taken;
}
