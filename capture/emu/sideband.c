/*
 * Perf records of the traced task. Called by machine.c and calls.c in the emulator's process, by
 * the owner of the CPU's rings. The PT event posts ITRACE_START and AUX, the dummy event of the
 * same CPU everything else; both write into one DATA ring (PERF_EVENT_IOC_SET_OUTPUT on real
 * kernels).
 */
#include "capture/emu/sideband.h"

#include <string.h>

enum event { EVENT_PT = 0, EVENT_DUMMY = 1 };

uint64_t sideband_time(const struct emuring_head *head, uint64_t tsc)
{
	uint64_t quotient = tsc >> head->time_shift;
	uint64_t rest = tsc & ((1ull << head->time_shift) - 1);

	return head->time_zero + quotient * head->time_mult +
	       (rest * head->time_mult >> head->time_shift);
}

static void write_record(struct sideband *s, enum event event, uint64_t tsc, struct perfrecord *r)
{
	uint8_t bytes[PERFRECORD_SAMPLE_ID_SIZE + 4096 + 128];
	size_t size;

	r->pid = s->pid;
	r->tid = s->tid;
	r->time = sideband_time(s->head, tsc);
	r->cpu = s->cpu;
	r->id = s->head->sample_id[event] + s->cpu;
	if (perfrecord_compose(r, bytes, sizeof(bytes), &size) == 0)
		emuring_write_record(s->head, s->cpu, bytes, size);
}

void sideband_comm(struct sideband *s, uint64_t tsc, const char *comm, bool exec)
{
	struct perfrecord r = {.type = PERF_RECORD_COMM};

	r.misc = exec ? PERF_RECORD_MISC_COMM_EXEC : 0;
	r.u.comm.pid = s->pid;
	r.u.comm.tid = s->tid;
	r.u.comm.comm = comm;
	write_record(s, EVENT_DUMMY, tsc, &r);
}

void sideband_mmap(struct sideband *s, uint64_t tsc, const struct sideband_mapping *m)
{
	struct perfrecord r = {.type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER};

	r.u.mmap2.pid = s->pid;
	r.u.mmap2.tid = s->tid;
	r.u.mmap2.addr = m->addr;
	r.u.mmap2.len = m->len;
	r.u.mmap2.pgoff = m->pgoff;
	r.u.mmap2.maj = m->maj;
	r.u.mmap2.min = m->min;
	r.u.mmap2.ino = m->ino;
	r.u.mmap2.prot = m->prot;
	r.u.mmap2.flags = m->flags;
	r.u.mmap2.filename = m->name;
	write_record(s, EVENT_DUMMY, tsc, &r);
}

void sideband_fork(struct sideband *s, uint64_t tsc, uint32_t pid, uint32_t tid)
{
	struct perfrecord r = {.type = PERF_RECORD_FORK};

	r.u.task.pid = pid;
	r.u.task.tid = tid;
	r.u.task.ppid = s->pid;
	r.u.task.ptid = s->tid;
	r.u.task.time = sideband_time(s->head, tsc);
	write_record(s, EVENT_DUMMY, tsc, &r);
}

void sideband_exit(struct sideband *s, uint64_t tsc)
{
	struct perfrecord r = {.type = PERF_RECORD_EXIT};

	r.u.task.pid = s->pid;
	r.u.task.tid = s->tid;
	r.u.task.ppid = s->ppid;
	r.u.task.ptid = s->ppid;
	r.u.task.time = sideband_time(s->head, tsc);
	write_record(s, EVENT_DUMMY, tsc, &r);
}

void sideband_switch(struct sideband *s, uint64_t tsc, bool out)
{
	struct perfrecord r = {.type = PERF_RECORD_SWITCH_CPU_WIDE};

	r.misc = out ? PERF_RECORD_MISC_SWITCH_OUT : 0;
	write_record(s, EVENT_DUMMY, tsc, &r);
}

void sideband_itrace_start(struct sideband *s, uint64_t tsc)
{
	struct perfrecord r = {.type = PERF_RECORD_ITRACE_START};

	r.u.itrace_start.pid = s->pid;
	r.u.itrace_start.tid = s->tid;
	write_record(s, EVENT_PT, tsc, &r);
}

void sideband_aux(struct sideband *s, uint64_t tsc, uint64_t head)
{
	struct perfrecord r = {.type = PERF_RECORD_AUX};

	r.u.aux.offset = head;
	r.u.aux.size = s->head->aux_size;
	r.u.aux.flags = PERF_AUX_FLAG_OVERWRITE;
	write_record(s, EVENT_PT, tsc, &r);
}
