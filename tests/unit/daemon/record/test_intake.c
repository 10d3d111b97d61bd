/*
 * Records of synthetic rings reach the timeline, the processes, the files and the counters; and the
 * steady state allocates nothing.
 */
#include "daemon/record/intake.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/unit/daemon/ring_source.h"

/* -Wl,--wrap: counts every allocation of the code under test. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static uint64_t allocations;

void *__wrap_malloc(size_t size)
{
	allocations++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	allocations++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	allocations++;
	return __real_realloc(p, size);
}

struct fixture {
	struct ring_source *source;
	struct timeline *timeline;
	struct files *files;
	struct procs *procs;
	struct intake intake;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct intake_parts parts;

	f->source = ring_source_new(2);
	assert_int_equal(timeline_new(1 << 16, 1 << 20, &f->timeline), 0);
	assert_int_equal(files_new("/proc", 8, &f->files), 0);
	assert_int_equal(procs_new("/proc", 4, NULL, &f->procs), 0);
	parts = (struct intake_parts){.source = ring_source_base(f->source),
				      .timeline = f->timeline,
				      .files = f->files,
				      .procs = f->procs,
				      .queue_bytes = 1 << 20,
				      .period_usec = 1000};
	assert_int_equal(intake_init(&f->intake, &parts), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	intake_done(&f->intake);
	procs_free(f->procs);
	files_free(f->files);
	timeline_free(f->timeline);
	ring_source_free(f->source);
	free(f);
	return 0;
}

static uint64_t records(const struct fixture *f)
{
	struct timeline_stats stats;

	timeline_get_stats(f->timeline, &stats);
	return stats.records;
}

static void intake_drain_empty_rings_takes_nothing(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(intake_drain(&f->intake), 0);
	assert_int_equal(records(f), 0);
}

static void intake_drain_takes_all_rings_into_the_timeline(void **state)
{
	struct fixture *f = *state;
	struct perfrecord comm = ring_source_comm(100, "one", 10);
	struct perfrecord out = ring_source_switch(100, 20);

	ring_source_put(f->source, 0, &comm);
	ring_source_put(f->source, 0, &out);
	ring_source_put(f->source, 1, &out);
	assert_true(intake_drain(&f->intake) > 0);
	assert_int_equal(records(f), 3);
	assert_int_equal(intake_drain(&f->intake), 0);
}

static bool was_read_again(const struct fixture *f)
{
	struct timeline_stats stats;

	timeline_get_stats(f->timeline, &stats);
	return stats.log_mappings > 0;
}

static void intake_some_after_a_loss_reads_mappings_again(void **state)
{
	struct fixture *f = *state;
	struct perfrecord lost = ring_source_switch(100, 20);
	struct reread_stats stats = {0};

	assert_int_equal(reread_new("/proc", &f->intake.reread), 0);
	ring_source_base(f->source)->clock_is_monotonic = true;
	intake_some(&f->intake);
	assert_false(was_read_again(f));
	lost.type = PERF_RECORD_LOST;
	lost.u.lost.lost = 1;
	ring_source_put(f->source, 0, &lost);
	intake_drain(&f->intake);
	for (int i = 0; i < 10000 && !was_read_again(f); i++) {
		intake_some(&f->intake);
		usleep(1000);
		reread_get_stats(f->intake.reread, &stats);
	}
	assert_true(was_read_again(f));
	assert_true(stats.told > 0);
	reread_free(f->intake.reread);
}

static void intake_drain_sees_which_cpus_have_threads(void **state)
{
	struct fixture *f = *state;
	struct perfrecord out = ring_source_switch(100, 20), idle = ring_source_switch(0, 30);

	ring_source_put(f->source, 0, &idle); /* from idle to idle */
	intake_drain(&f->intake);
	assert_int_equal(f->intake.cpus[0].turn_ns, 0);
	assert_false(f->intake.cpus[0].busy);
	ring_source_put(f->source, 0, &out); /* a thread leaves, and the CPU is idle */
	intake_drain(&f->intake);
	assert_int_equal(f->intake.cpus[0].turn_ns, 20);
	assert_false(f->intake.cpus[0].busy);
	out.misc = 0; /* a thread begins */
	out.time = 40;
	ring_source_put(f->source, 0, &out);
	intake_drain(&f->intake);
	assert_int_equal(f->intake.cpus[0].turn_ns, 20);
	assert_true(f->intake.cpus[0].busy);
	assert_int_equal(f->intake.cpus[1].turn_ns, 0);
}

static void intake_drain_counts_losses_and_flags_by_cpu(void **state)
{
	struct fixture *f = *state;
	struct perfrecord lost = {.type = PERF_RECORD_LOST, .time = 5};
	struct perfrecord aux = {.type = PERF_RECORD_AUX, .time = 6};

	lost.u.lost.lost = 7;
	aux.u.aux.flags = PERF_AUX_FLAG_OVERWRITE;
	ring_source_put(f->source, 1, &lost);
	ring_source_put(f->source, 1, &lost);
	ring_source_put(f->source, 1, &aux);
	aux.u.aux.flags = PERF_AUX_FLAG_PARTIAL;
	aux.time = 9;
	ring_source_put(f->source, 1, &aux);
	intake_drain(&f->intake);
	assert_int_equal(f->intake.cpus[0].lost, 0);
	assert_int_equal(f->intake.cpus[1].lost, 14);
	assert_int_equal(f->intake.cpus[0].aux_flags, 0);
	assert_true(f->intake.cpus[0].partial_ns == MANIFEST_ABSENT);
	assert_int_equal(f->intake.cpus[1].aux_flags,
			 PERF_AUX_FLAG_OVERWRITE | PERF_AUX_FLAG_PARTIAL);
	assert_int_equal(f->intake.cpus[1].partial_ns, 9);
	assert_true(f->intake.cpus[1].truncated_ns == MANIFEST_ABSENT);
}

static void intake_drain_skips_a_record_that_contradicts_itself(void **state)
{
	struct fixture *f = *state;
	/* A COMM record that is too short for its fields. */
	struct perf_event_header bad = {.type = PERF_RECORD_COMM, .size = sizeof(bad)};
	struct perfrecord good = ring_source_switch(100, 20);

	ring_source_put_bytes(f->source, 0, &bad, sizeof(bad));
	ring_source_put(f->source, 0, &good);
	intake_drain(&f->intake);
	assert_int_equal(f->intake.bad_records, 1);
	assert_int_equal(records(f), 1);
}

static void intake_drain_gives_up_a_ring_that_contradicts_itself(void **state)
{
	struct fixture *f = *state;
	struct perf_event_header bad = {.type = PERF_RECORD_COMM, .size = 0};
	struct perfrecord good = ring_source_switch(100, 20);

	ring_source_put_bytes(f->source, 0, &bad, sizeof(bad));
	ring_source_put(f->source, 1, &good);
	intake_drain(&f->intake);
	assert_int_equal(f->intake.bad_bytes, sizeof(bad));
	assert_int_equal(records(f), 1);
	ring_source_put(f->source, 0, &good);
	intake_drain(&f->intake);
	assert_int_equal(records(f), 2);
}

/* A CPU's rings are removed and added again: no record of before or after is lost. */
static void intake_rings_that_go_and_come_are_followed(void **state)
{
	struct fixture *f = *state;
	struct perfrecord lost = {.type = PERF_RECORD_LOST, .time = 5};

	lost.u.lost.lost = 3;
	for (uint64_t turn = 1; turn <= 5; turn++) {
		ring_source_put(f->source, 1, &lost);
		ring_source_remove(f->source, 1);
		assert_int_equal(f->intake.cpus[1].lost, 3 * (2 * turn - 1));
		ring_source_put(f->source, 0, &lost);
		intake_drain(&f->intake);
		ring_source_add(f->source, 1);
		ring_source_put(f->source, 1, &lost);
		intake_drain(&f->intake);
		assert_int_equal(f->intake.cpus[1].lost, 3 * 2 * turn);
		assert_int_equal(f->intake.cpus[0].lost, 3 * turn);
	}
	assert_int_equal(f->intake.bad_bytes, 0);
}

static void intake_sideband_ring_that_comes_late_is_a_loss(void **state)
{
	struct fixture *f = *state;
	struct source *s = ring_source_base(f->source);
	struct source_cpu *cpu = &s->cpus[1];
	struct timeline_stats stats;

	cpu->sideband = cpu->pt;
	f->intake.watch.ring_added(&f->intake, 1, &cpu->sideband, 0);
	assert_int_equal(f->intake.cpus[0].lost, 0);
	assert_int_equal(f->intake.cpus[1].lost, 1);
	timeline_get_stats(f->timeline, &stats);
	assert_int_equal(stats.lost, 1);
	f->intake.watch.ring_removed(&f->intake, 1, &cpu->sideband);
	cpu->sideband = (struct ring){0};
}

static uint64_t lost_ever, aux_lost_ever;

static int lost(const struct source *s, uint32_t index, enum source_ring ring, uint64_t *ret)
{
	(void)s;
	*ret = index != 1 ? 0 : ring == SOURCE_RING_PT ? aux_lost_ever : lost_ever;
	return 0;
}

static uint64_t told_lost;

void __real_procs_lost(struct procs *p, uint64_t time);
void __wrap_procs_lost(struct procs *p, uint64_t time);

void __wrap_procs_lost(struct procs *p, uint64_t time)
{
	told_lost++;
	__real_procs_lost(p, time);
}

static void intake_drain_tells_processes_of_losses(void **state)
{
	struct fixture *f = *state;
	struct perfrecord r = {.type = PERF_RECORD_LOST, .time = 5, .u.lost.lost = 2};

	told_lost = 0;
	ring_source_put(f->source, 0, &r);
	intake_drain(&f->intake);
	assert_int_equal(told_lost, 1);
}

/* Uses CPU 1's ring as a sideband ring. */
static struct source_cpu *have_sideband(struct fixture *f, struct source_ops *ops)
{
	struct source *s = ring_source_base(f->source);

	*ops = *s->ops;
	ops->lost = lost;
	s->ops = ops;
	f->intake.watch.ring_removed(&f->intake, 1, &s->cpus[1].pt);
	s->cpus[1].sideband = s->cpus[1].pt;
	f->intake.watch.ring_added(&f->intake, 1, &s->cpus[1].sideband, 0);
	f->intake.cpus[1].lost = 0;
	lost_ever = told_lost = 0;
	return &s->cpus[1];
}

static void intake_settle_knows_of_losses_that_no_record_follows(void **state)
{
	struct fixture *f = *state;
	struct source_ops ops;
	struct source_cpu *cpu = have_sideband(f, &ops);
	struct perfrecord r = {.type = PERF_RECORD_LOST, .time = 5, .cpu = 1, .u.lost.lost = 10};
	struct timeline_stats stats;
	uint64_t before;

	timeline_get_stats(f->timeline, &stats);
	before = stats.lost;
	intake_settle(&f->intake);
	assert_int_equal(told_lost, 0);
	lost_ever = 10;
	intake_settle(&f->intake);
	assert_int_equal(f->intake.cpus[1].lost, 10);
	assert_int_equal(told_lost, 1);
	timeline_get_stats(f->timeline, &stats);
	assert_int_equal(stats.lost, before + 10);
	intake_settle(&f->intake); /* a second call tells nothing new */
	assert_int_equal(told_lost, 1);
	/* The LOST record comes after all, and is not counted again. */
	ring_source_put(f->source, 1, &r);
	intake_drain(&f->intake);
	assert_int_equal(f->intake.cpus[1].lost, 10);
	intake_settle(&f->intake);
	assert_int_equal(told_lost, 2);
	lost_ever = 13;
	intake_settle(&f->intake);
	assert_int_equal(f->intake.cpus[1].lost, 13);
	assert_int_equal(told_lost, 3);
	f->intake.watch.ring_removed(&f->intake, 1, &cpu->sideband);
	cpu->sideband = (struct ring){0};
}

/* Another ring of the CPU counts from 0; the last losses of the ring before are counted. */
static void intake_ring_that_goes_tells_its_last_losses(void **state)
{
	struct fixture *f = *state;
	struct source_ops ops;
	struct source_cpu *cpu = have_sideband(f, &ops);

	lost_ever = 4;
	f->intake.watch.ring_removed(&f->intake, 1, &cpu->sideband);
	assert_int_equal(f->intake.cpus[1].lost, 4);
	f->intake.watch.ring_added(&f->intake, 1, &cpu->sideband, 0);
	assert_int_equal(f->intake.cpus[1].lost, 5); /* one more, as the ring came late */
	lost_ever = 3;
	intake_settle(&f->intake);
	assert_int_equal(f->intake.cpus[1].lost, 8);
	f->intake.watch.ring_removed(&f->intake, 1, &cpu->sideband);
	cpu->sideband = (struct ring){0};
}

/* The notes that a snapshot has now. */
static struct manifest notes_of(const struct fixture *f)
{
	struct manifest m;

	manifest_init(&m);
	assert_int_equal(faults_tell(&f->intake.faults, &m), 0);
	return m;
}

/* Records lost in the PT event's own ring tell of the trace, and say nothing of the sideband. */
static void intake_lost_records_of_the_trace_are_counted_apart(void **state)
{
	struct fixture *f = *state;
	struct source *s = ring_source_base(f->source);
	struct source_ops ops = *s->ops;
	struct perfrecord aux = {.type = PERF_RECORD_AUX, .time = 5, .cpu = 1};
	struct perfrecord r = {.type = PERF_RECORD_LOST, .time = 9, .cpu = 1, .u.lost.lost = 10};
	struct ring fake = s->cpus[0].pt;
	struct timeline_stats stats;
	struct manifest m;

	ops.lost = lost;
	s->ops = &ops;
	s->cpus[1].sideband = fake; /* now there is a sideband ring */
	lost_ever = told_lost = aux_lost_ever = 0;
	ring_source_put(f->source, 1, &aux);
	ring_source_put(f->source, 1, &r);
	intake_drain(&f->intake);
	assert_int_equal(f->intake.cpus[1].aux_lost, 10);
	assert_int_equal(f->intake.cpus[1].lost, 0);
	assert_int_equal(told_lost, 0);
	timeline_get_stats(f->timeline, &stats);
	assert_int_equal(stats.lost, 0);
	/* The kernel knows of three that no record has told of, also when asked twice. */
	aux_lost_ever = 13;
	intake_settle(&f->intake);
	intake_settle(&f->intake);
	assert_int_equal(f->intake.cpus[1].aux_lost, 13);
	lost_ever = 4;
	intake_settle(&f->intake);
	assert_int_equal(f->intake.cpus[1].lost, 4);
	assert_int_equal(f->intake.cpus[1].aux_lost, 13);
	m = notes_of(f);
	assert_int_equal(m.n_notes, 2);
	assert_string_equal(m.notes[1].kind, "aux-lost");
	assert_int_equal(m.notes[1].cpu, 1);
	assert_int_equal(m.notes[1].count, 10);
	assert_int_equal(m.notes[1].since_ns, 5);
	assert_int_equal(m.notes[1].until_ns, 9);
	assert_string_equal(m.notes[0].kind, "aux-lost");
	assert_int_equal(m.notes[0].count, 3);
	manifest_done(&m);
	s->cpus[1].sideband = (struct ring){0};
}

/* A snapshot's notes say when: what is long ago is no fault of its trace. */
static void intake_faults_have_a_time_and_a_limit(void **state)
{
	struct fixture *f = *state;
	struct source *s = ring_source_base(f->source);
	struct perf_event_header bad = {.type = PERF_RECORD_COMM, .size = sizeof(bad)};
	struct manifest m;
	uint64_t count = 0;

	s->clock = (struct clock_params){.valid = true, .time_mult = 1};
	for (int i = 0; i < 3 * (int)FAULTS_APART; i++) {
		ring_source_put_bytes(f->source, 1, &bad, sizeof(bad));
		intake_drain(&f->intake);
	}
	m = notes_of(f);
	assert_int_equal(m.n_notes, FAULTS_APART);
	for (size_t i = 0; i < m.n_notes; i++) {
		assert_string_equal(m.notes[i].kind, "sideband-bad");
		assert_int_equal(m.notes[i].cpu, 1);
		assert_true(m.notes[i].until_ns != MANIFEST_ABSENT);
		/* The newest first, and each of them apart but the oldest. */
		assert_true(i == 0 || m.notes[i].until_ns <= m.notes[i - 1].until_ns);
		assert_true(i == m.n_notes - 1 || m.notes[i].count == 1);
		count += m.notes[i].count;
	}
	assert_int_equal(count, 3 * FAULTS_APART);
	assert_int_equal(f->intake.bad_records, 3 * FAULTS_APART);
	manifest_done(&m);
}

/* The ring has more than the loop takes in one turn. */
static void intake_some_much_that_waits_is_taken_in_parts(void **state)
{
	struct fixture *f = *state;
	struct pollfd p = {.fd = intake_fd(&f->intake), .events = POLLIN};
	uint64_t n = 0;
	struct drain_stats stats;
	int parts = 0;

	do {
		struct perfrecord r = ring_source_switch(100, ++n);

		ring_source_put(f->source, 0, &r);
		assert_int_equal(drain_flush(f->intake.drain), 0);
		drain_get_stats(f->intake.drain, &stats);
	} while (stats.queue_used < 900 << 10);
	for (; poll(&p, 1, 0) == 1; parts++)
		assert_true(intake_some(&f->intake) < 300 << 10);
	assert_true(parts >= 3);
	assert_int_equal(records(f), n);
}

/* The loop only waits, and the drain's thread wakes it. */
static void intake_fd_wakes_for_what_the_rings_hold(void **state)
{
	struct fixture *f = *state;
	struct pollfd p = {.fd = intake_fd(&f->intake), .events = POLLIN};

	for (uint64_t n = 1; n <= 20; n++) {
		struct perfrecord r = ring_source_switch(100, n);

		ring_source_put(f->source, n & 1, &r);
		while (records(f) < n) {
			assert_int_equal(poll(&p, 1, -1), 1);
			intake_some(&f->intake);
		}
	}
}

static int find_self(void *userdata, const struct procs_told *told)
{
	*(const struct procinfo **)userdata = told->info;
	return told->info->pid == (uint32_t)getpid();
}

static void intake_drain_learns_the_facts_of_processes(void **state)
{
	struct fixture *f = *state;
	struct perfrecord comm = ring_source_comm((uint32_t)getpid(), "self", 10);
	const struct procinfo *info = NULL;

	comm.misc = PERF_RECORD_MISC_COMM_EXEC;
	ring_source_put(f->source, 0, &comm);
	intake_drain(&f->intake);
	procs_refresh(f->procs, SIZE_MAX);
	assert_int_equal(procs_foreach(f->procs, find_self, &info), 1);
	assert_int_equal(info->ppid, getppid());
	assert_non_null(info->exe);
}

static int count_all(void *userdata, const struct procs_told *told)
{
	(void)told;
	++*(int *)userdata;
	return 0;
}

static void intake_drain_more_processes_than_fit_drops_ended_ones_first(void **state)
{
	struct fixture *f = *state;
	struct perfrecord r = {.type = PERF_RECORD_FORK};
	int n = 0;

	for (uint32_t pid = 0x7fffff00; pid < 0x7fffff04; pid++) {
		r.u.task.pid = r.u.task.tid = pid;
		r.u.task.ppid = r.u.task.ptid = 1;
		ring_source_put(f->source, 0, &r);
	}
	r.u.task.pid = r.u.task.tid = 0x7fffff10;
	ring_source_put(f->source, 0, &r); /* no process has ended, so there is no room */
	intake_drain(&f->intake);
	assert_int_equal(procs_dropped(f->procs), 1);
	r.type = PERF_RECORD_EXIT;
	r.u.task.pid = r.u.task.tid = 0x7fffff02;
	ring_source_put(f->source, 0, &r);
	r.type = PERF_RECORD_FORK;
	r.u.task.pid = r.u.task.tid = 0x7fffff11;
	ring_source_put(f->source, 0, &r);
	intake_drain(&f->intake);
	assert_int_equal(procs_dropped(f->procs), 1);
	assert_int_equal(procs_foreach(f->procs, count_all, &n), 0);
	assert_int_equal(n, 4);
}

static void intake_drain_sees_mapped_files(void **state)
{
	struct fixture *f = *state;
	struct perfrecord r = {.type = PERF_RECORD_MMAP2, .time = 1};

	r.u.mmap2.pid = r.u.mmap2.tid = (uint32_t)getpid();
	r.u.mmap2.addr = 0x1000;
	r.u.mmap2.len = 0x1000;
	r.u.mmap2.ino = 1;
	r.u.mmap2.prot = PROT_EXEC;
	r.u.mmap2.filename = "/no/such/file";
	ring_source_put(f->source, 0, &r);
	intake_drain(&f->intake);
	assert_int_equal(files_count(f->files), 1);
	assert_non_null(files_at(f->files, 0)->missing);
}

static int give_file(void *userdata, const struct space_file *file)
{
	*(struct space_file *)userdata = *file;
	return 0;
}

/* The mark that another event's wish for build ids leaves on the record. */
static void intake_drain_of_maps_by_inode_takes_no_mark_of_a_build_id(void **state)
{
	struct fixture *f = *state;
	struct perfrecord r = {.type = PERF_RECORD_MMAP2, .time = 1};
	struct space_file file = {0};
	uint64_t bytes[32];
	struct perf_event_header h;
	size_t size;

	r.u.mmap2.pid = r.u.mmap2.tid = (uint32_t)getpid();
	r.u.mmap2.addr = 0x1000;
	r.u.mmap2.len = 0x1000;
	r.u.mmap2.maj = 8; /* would be a valid size of a build id */
	r.u.mmap2.ino = 77;
	r.u.mmap2.prot = PROT_EXEC;
	r.u.mmap2.filename = "/no/such/file";
	assert_int_equal(perfrecord_compose(&r, bytes, sizeof(bytes), &size), 0);
	memcpy(&h, bytes, sizeof(h));
	h.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
	memcpy(bytes, &h, sizeof(h));
	ring_source_base(f->source)->maps_by_inode = true;
	assert_int_equal(intake_record(&f->intake, bytes, size), 0);
	assert_int_equal(f->intake.bad_records, 0);
	assert_int_equal(timeline_foreach_file(f->timeline, give_file, &file), 0);
	assert_int_equal(file.build_id_size, 0);
	assert_int_equal(file.ino, 77);
	assert_int_equal(file.maj, 8);
}

/* Enough records of a known process to wrap the rings and the log many times. */
static void intake_drain_steady_state_allocates_nothing(void **state)
{
	struct fixture *f = *state;
	uint64_t time = 1000, before = 0;

	for (int round = 0; round < 600; round++) {
		struct perfrecord comm = ring_source_comm(100, round & 1 ? "odd" : "even", time);

		if (round == 300)
			before = allocations;
		ring_source_put(f->source, 0, &comm);
		for (int i = 0; i < 20; i++) {
			struct perfrecord r = ring_source_switch(100, time += 100000000);

			r.misc = i & 1 ? PERF_RECORD_MISC_SWITCH_OUT : 0;
			ring_source_put(f->source, 0, &r);
			ring_source_put(f->source, 1, &r);
		}
		intake_drain(&f->intake);
	}
	assert_int_equal(allocations - before, 0);
	assert_true(before > 0); /* --wrap works */
	assert_int_equal(records(f), 600 * 41);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(intake_drain_empty_rings_takes_nothing),
		CASE(intake_drain_takes_all_rings_into_the_timeline),
		CASE(intake_some_after_a_loss_reads_mappings_again),
		CASE(intake_drain_sees_which_cpus_have_threads),
		CASE(intake_drain_counts_losses_and_flags_by_cpu),
		CASE(intake_drain_skips_a_record_that_contradicts_itself),
		CASE(intake_drain_gives_up_a_ring_that_contradicts_itself),
		CASE(intake_rings_that_go_and_come_are_followed),
		CASE(intake_sideband_ring_that_comes_late_is_a_loss),
		CASE(intake_drain_tells_processes_of_losses),
		CASE(intake_settle_knows_of_losses_that_no_record_follows),
		CASE(intake_ring_that_goes_tells_its_last_losses),
		CASE(intake_lost_records_of_the_trace_are_counted_apart),
		CASE(intake_faults_have_a_time_and_a_limit),
		CASE(intake_some_much_that_waits_is_taken_in_parts),
		CASE(intake_fd_wakes_for_what_the_rings_hold),
		CASE(intake_drain_learns_the_facts_of_processes),
		CASE(intake_drain_more_processes_than_fit_drops_ended_ones_first),
		CASE(intake_drain_sees_mapped_files),
		CASE(intake_drain_of_maps_by_inode_takes_no_mark_of_a_build_id),
		CASE(intake_drain_steady_state_allocates_nothing),
	};

	return cmocka_run_group_tests_name("daemon/intake", tests, NULL, NULL);
}
