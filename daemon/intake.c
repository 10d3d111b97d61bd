/*
 * The daemon's steady state. A timer calls intake_drain in the loop's
 * thread; a job's evidence calls it once more after the CPUs were stopped. The job thread meanwhile
 * copies AUX bytes: another part of the ring, which nothing here touches.
 */
#include "daemon/intake.h"

#include <string.h>

#include "proto/base.h"

/* /proc is read for at most so many processes a drain. */
#define PROCS_BUDGET 16

int intake_init(struct intake *in, struct source *source, struct timeline *timeline,
		struct files *files, struct procs *procs)
{
	*in = (struct intake){
		.source = source, .timeline = timeline, .files = files, .procs = procs};
	in->cpus = calloc(source->n_cpus, sizeof(*in->cpus));
	return in->cpus ? 0 : -ENOMEM;
}

void intake_done(struct intake *in)
{
	free(in->cpus);
	in->cpus = NULL;
}

static void intake_task(struct intake *in, const struct perfrecord *r)
{
	if (r->type == PERF_RECORD_FORK && r->u.task.pid != r->u.task.ppid)
		procs_fork(in->procs, r->u.task.pid, r->u.task.ppid, r->time);
	if (r->type == PERF_RECORD_EXIT && r->u.task.pid == r->u.task.tid)
		procs_exit(in->procs, r->u.task.pid, r->time);
}

static void intake_comm(struct intake *in, const struct perfrecord *r)
{
	if (r->misc & PERF_RECORD_MISC_COMM_EXEC)
		procs_exec(in->procs, r->u.comm.pid);
	else
		procs_see(in->procs, r->u.comm.pid);
}

/* What a record means to others than the timeline. CPU: whose ring it came from, NULL: none. */
static void intake_meaning(struct intake *in, struct intake_cpu *cpu, const struct perfrecord *r)
{
	switch (r->type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT: intake_task(in, r); break;
	case PERF_RECORD_COMM: intake_comm(in, r); break;
	case PERF_RECORD_MMAP2: files_see(in->files, r); break;
	case PERF_RECORD_AUX:
		if (cpu)
			cpu->aux_flags |= r->u.aux.flags;
		break;
	case PERF_RECORD_LOST:
		if (cpu)
			cpu->lost += r->u.lost.lost;
		break;
	default: break;
	}
}

static void intake_one(struct intake *in, struct intake_cpu *cpu, const void *bytes, size_t size)
{
	struct perfrecord r;
	int kind = perfrecord_parse(bytes, size, &r);

	if (kind < 0) {
		in->bad_records++;
		return;
	}
	timeline_push(in->timeline, &r, bytes, size); /* counts what it drops */
	if (kind == 0)
		intake_meaning(in, cpu, &r);
}

int intake_record(void *userdata, const void *record, size_t size)
{
	intake_one(userdata, NULL, record, size);
	return 0;
}

/* One ring full at most, so that a writer faster than us cannot hold the loop. */
static uint64_t intake_ring(struct intake *in, struct intake_cpu *cpu, struct ring *ring)
{
	uint64_t taken = 0;

	while (taken < ring->data_size) {
		const void *record;
		size_t size;
		int r = ring_peek(ring, &record, &size);

		if (r == RING_EMPTY)
			break;
		if (r < 0) {
			in->bad_bytes += ring_skip_all(ring);
			break;
		}
		intake_one(in, cpu, record, size);
		ring_consume(ring, size);
		taken += size;
	}
	return taken;
}

uint64_t intake_drain(struct intake *in)
{
	uint64_t taken = 0;

	for (size_t i = 0; i < in->source->n_cpus; i++) {
		struct source_cpu *cpu = &in->source->cpus[i];

		taken += intake_ring(in, &in->cpus[i], &cpu->pt);
		if (cpu->sideband.data)
			taken += intake_ring(in, &in->cpus[i], &cpu->sideband);
	}
	procs_refresh(in->procs, PROCS_BUDGET);
	return taken;
}

uint64_t intake_take_flags(struct intake *in, size_t index)
{
	uint64_t flags = in->cpus[index].aux_flags;

	in->cpus[index].aux_flags = 0;
	return flags;
}
