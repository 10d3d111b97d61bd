/*
 * Several threads: whose a stretch is, in what order a thread's stretches come, what it must not be
 * taken for. The traces are written packet by packet; every time of a packet is unknown but for the
 * TSC packets at their ends, as if MTC were as coarse as that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/count/tally.h"
#include "decoder/worker/replay/replay.h"
#include "proto/base.h"
#include "proto/perf/perfrecord.h"
#include "tests/unit/decoder/worker/made.h"

/* Program 0 is make_bundle's; program 1 has nops up to the system call instead, at the same
 * addresses: it executes no branch that a TNT would tell. */
#define SYSCALL_AT (MAKE_MAIN + 11)
#define BACK	   (MAKE_MAIN + 13)
#define INSNS_0	   7u /* a round from BACK on, je taken */
#define INSNS_1	   13u
#define BEGIN	   1000u /* TSC, which is ns */
#define END	   100000u
#define MAX_CPUS   2

/* Thread N is the first of process N + 1. */
#define TID(n) (100u + (n))

struct fixture {
	struct bytes_out traces[MAX_CPUS], programs[2], sideband;
	unsigned n_cpus;
	struct bundle *bundle;
	struct replay *replay;
	struct tally tally;
	uint64_t faults[FAULT_N_];
	uint64_t order[16]; /* tids of stretches, as they came */
	size_t n_order;
};

/* Packets: SDM volume 3, "Trace Packets and Data Types". */
static void put_ip(struct bytes_out *out, uint8_t opcode, uint64_t ip)
{
	int i;

	bytes_put_u8(out, (uint8_t)(opcode | 3 << 5));
	for (i = 0; i < 48; i += 8)
		bytes_put_u8(out, (uint8_t)(ip >> i));
}

static void put_tsc(struct bytes_out *out, uint64_t tsc)
{
	int i;

	bytes_put_u8(out, 0x19);
	for (i = 0; i < 56; i += 8)
		bytes_put_u8(out, (uint8_t)(tsc >> i));
}

static void enter(struct fixture *f, unsigned cpu, uint64_t ip)
{
	put_ip(&f->traces[cpu], 0x11, ip);
}

static void leave(struct fixture *f, unsigned cpu)
{
	bytes_put_u8(&f->traces[cpu], 0x01);
}

static void leave_async(struct fixture *f, unsigned cpu, uint64_t ip)
{
	put_ip(&f->traces[cpu], 0x1d, ip);
	leave(f, cpu);
}

/* One round of PROGRAM from BACK to its system call. */
static void put_round(struct fixture *f, unsigned cpu, unsigned program)
{
	enter(f, cpu, BACK);
	if (program == 0)
		bytes_put_u8(&f->traces[cpu], 0x0e); /* TNT: ret and je taken */
	leave(f, cpu);
}

static void put_record(struct fixture *f, struct perfrecord *record, uint32_t cpu, uint64_t time)
{
	uint8_t buffer[1024];
	size_t size;

	record->cpu = cpu;
	record->time = time;
	assert_int_equal(perfrecord_compose(record, buffer, sizeof(buffer), &size), 0);
	bytes_put_block(&f->sideband, buffer, size);
}

/* Process PID maps program PROGRAM over what it had. */
static void put_mapping(struct fixture *f, uint32_t pid, unsigned program, uint64_t time)
{
	struct perfrecord r = {.type = PERF_RECORD_MMAP2, .pid = pid, .tid = pid};

	r.u.mmap2.pid = r.u.mmap2.tid = pid;
	r.u.mmap2.addr = MAKE_BASE;
	r.u.mmap2.len = 0x1000;
	r.u.mmap2.maj = 8;
	r.u.mmap2.ino = 10 + program;
	r.u.mmap2.prot = PROT_READ | PROT_EXEC;
	r.u.mmap2.flags = MAP_PRIVATE;
	r.u.mmap2.filename = program == 0 ? "/zero" : "/one";
	put_record(f, &r, 0, time);
}

static void put_comm(struct fixture *f, uint32_t pid, uint32_t tid)
{
	struct perfrecord r = {.type = PERF_RECORD_COMM, .pid = pid, .tid = tid};

	r.u.comm.pid = pid;
	r.u.comm.tid = tid;
	r.u.comm.comm = "t";
	put_record(f, &r, 0, 0);
}

/* Writes that TO has CPU from TIME on, and that FROM had it before; 0: nobody. */
static void put_switch(struct fixture *f, uint32_t cpu, uint64_t time, uint32_t from, uint32_t to,
		       bool preempted)
{
	struct perfrecord out = {.type = PERF_RECORD_SWITCH_CPU_WIDE,
				 .misc = PERF_RECORD_MISC_SWITCH_OUT,
				 .pid = from,
				 .tid = from};
	struct perfrecord in = {.type = PERF_RECORD_SWITCH_CPU_WIDE, .pid = to, .tid = to};

	if (preempted)
		out.misc |= PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	out.u.context_switch.next_prev_pid = out.u.context_switch.next_prev_tid = to;
	in.u.context_switch.next_prev_pid = in.u.context_switch.next_prev_tid = from;
	put_record(f, &out, cpu, time);
	put_record(f, &in, cpu, time);
}

static void put_lost(struct fixture *f, uint32_t cpu, uint64_t time)
{
	struct perfrecord r = {.type = PERF_RECORD_LOST};

	r.u.lost.lost = 5;
	put_record(f, &r, cpu, time);
}

static void begin(struct fixture *f, unsigned n_cpus)
{
	unsigned i;
	int byte;

	*f = (struct fixture){.n_cpus = n_cpus};
	for (i = 0; i < 2; i++) {
		bytes_out_init(&f->programs[i], 1 << 20);
		make_program(&f->programs[i]);
	}
	for (byte = 0x200; byte < 0x20b; byte++)
		f->programs[1].data[byte] = 0x90;
	bytes_out_init(&f->sideband, 1 << 20);
	for (i = 0; i < MAX_CPUS; i++) {
		bytes_out_init(&f->traces[i], 1 << 20);
		for (byte = 0; byte < 8; byte++)
			bytes_put_u16(&f->traces[i], 0x8202);
		put_tsc(&f->traces[i], BEGIN);
		bytes_put_u16(&f->traces[i], 0x0199); /* MODE.Exec: 64 bits */
		bytes_put_u16(&f->traces[i], 0x2302); /* PSBEND */
	}
	for (i = 0; i < 2; i++) {
		put_comm(f, TID(i), TID(i));
		put_mapping(f, TID(i), i, 0);
	}
}

static void describe(const struct fixture *f, struct manifest *m)
{
	unsigned i;

	m->id = strdup("threads");
	m->version = strdup("0");
	m->trigger_kind = strdup("offline");
	m->source = strdup("emulated");
	m->have_clock = true;
	m->time_mult = 1;
	m->trace_user = true;
	m->mtc_period = UINT32_MAX;
	m->perf_ns = END;
	m->last_ns = MANIFEST_ABSENT;
	for (i = 0; i < f->n_cpus; i++) {
		struct manifest_cpu *cpu = manifest_add_cpu(m);

		assert_non_null(cpu);
		cpu->cpu = i;
		cpu->bytes = f->traces[i].size;
		cpu->stop_ns = END;
	}
	for (i = 0; i < 2; i++) {
		struct manifest_image *image = manifest_add_image(m);

		assert_non_null(image);
		image->path = strdup(i == 0 ? "/zero" : "/one");
		image->maj = 8;
		image->ino = 10 + i;
		image->size = f->programs[i].size;
	}
}

static void open_bundle(struct fixture *f)
{
	int fd = memfd_create("bundle", MFD_CLOEXEC);
	struct bundle_writer w;
	struct manifest m;
	char name[32];
	unsigned i;

	assert_true(fd >= 0);
	manifest_init(&m);
	bundle_writer_init(&w, fd);
	describe(f, &m);
	for (i = 0; i < f->n_cpus; i++) {
		put_tsc(&f->traces[i], END - 1000);
		snprintf(name, sizeof(name), "cpu%u.pt", i);
		assert_int_equal(bundle_write_member(&w, name, f->traces[i].data,
						     m.cpus[i].bytes = f->traces[i].size),
				 0);
	}
	assert_int_equal(bundle_write_member(&w, "sideband", f->sideband.data, f->sideband.size),
			 0);
	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "images/%u", i);
		assert_int_equal(
			bundle_write_member(&w, name, f->programs[i].data, f->programs[i].size), 0);
	}
	assert_int_equal(bundle_write_end(&w, &m), 0);
	manifest_done(&m);
	assert_int_equal(bundle_open(fd, &f->bundle), 0);
	close(fd);
}

static int on_stretch(void *userdata, const struct replay_stretch *s)
{
	struct fixture *f = userdata;
	size_t i;

	for (i = 0; i < s->n_gaps; i++)
		f->faults[s->gaps[i].fault]++;
	for (i = 0; i < s->n_items; i++)
		if (s->items[i].kind == FLOW_ENABLE && f->n_order < ARRAY_SIZE(f->order))
			f->order[f->n_order++] = (s->thread ? s->thread->tid : 0) * 10ull + s->cpu;
	return tally_stretch(&f->tally, s);
}

static void replay(struct fixture *f)
{
	const struct replay_consumer consumer = {.stretch = on_stretch, .userdata = f};

	open_bundle(f);
	assert_int_equal(replay_new(f->bundle, NULL, &f->replay), 0);
	assert_int_equal(tally_init(&f->tally, f->replay), 0);
	assert_int_equal(replay_all(f->replay, &consumer), 0);
	tally_end(&f->tally);
}

static void done(struct fixture *f)
{
	unsigned i;

	tally_done(&f->tally);
	replay_free(f->replay);
	bundle_free(f->bundle);
	for (i = 0; i < MAX_CPUS; i++)
		bytes_out_done(&f->traces[i]);
	for (i = 0; i < 2; i++)
		bytes_out_done(&f->programs[i]);
	bytes_out_done(&f->sideband);
}

/* TID 0: of no thread. */
static uint64_t insns_of(const struct fixture *f, uint32_t tid)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < f->tally.n_threads; i++) {
		const struct tally_counters *counters = f->tally.threads[i];

		if ((counters->thread != NULL ? counters->thread->tid : 0) == tid)
			sum += counters->insns;
	}
	return sum;
}

static void assert_no_faults(const struct fixture *f)
{
	int i;

	for (i = 0; i < FAULT_N_; i++)
		if (f->faults[i] != 0)
			fail_msg("%llu gaps \"%s\"", (unsigned long long)f->faults[i],
				 fault_name((enum fault)i));
}

/* Four turns and seven stretches between two times: only the code tells whose they are. */
static void replay_two_processes_at_one_address(void **state)
{
	static const unsigned programs[] = {0, 0, 1, 0, 1, 1, 1};
	struct fixture f;
	size_t i;

	(void)state;
	begin(&f, 1);
	put_switch(&f, 0, 500, 0, TID(0), false);
	put_switch(&f, 0, 2000, TID(0), TID(1), false);
	put_switch(&f, 0, 3000, TID(1), TID(0), false);
	put_switch(&f, 0, 4000, TID(0), TID(1), false);
	for (i = 0; i < ARRAY_SIZE(programs); i++)
		put_round(&f, 0, programs[i]);
	replay(&f);
	assert_no_faults(&f);
	assert_int_equal(insns_of(&f, TID(0)), 3 * INSNS_0);
	assert_int_equal(insns_of(&f, TID(1)), 4 * INSNS_1);
	for (i = 0; i < ARRAY_SIZE(programs); i++)
		assert_int_equal(f.order[i], TID(programs[i]) * 10);
	done(&f);
}

/* Interrupted in leaf on one CPU, it goes on in leaf on the other: with its stack. */
static void replay_thread_moves_with_its_stack(void **state)
{
	static const uint64_t order[] = {TID(0) * 10, TID(0) * 10 + 1, TID(0) * 10};
	struct fixture f;
	size_t i, n = 0;

	(void)state;
	begin(&f, 2);
	put_switch(&f, 0, 500, 0, TID(0), false);
	put_switch(&f, 0, 2000, TID(0), 0, true);
	put_switch(&f, 0, 5000, 0, TID(0), false);
	put_switch(&f, 1, 500, 0, TID(1), false);
	put_switch(&f, 1, 3000, TID(1), TID(0), false);
	put_switch(&f, 1, 4000, TID(0), TID(1), true);
	enter(&f, 0, MAKE_MAIN);
	leave_async(&f, 0, MAKE_LEAF);
	put_tsc(&f.traces[0], 1900);
	put_round(&f, 1, 1);
	enter(&f, 1, MAKE_LEAF);
	leave_async(&f, 1, MAKE_LEAF + 2);
	put_round(&f, 1, 1);
	enter(&f, 0, MAKE_LEAF + 2);
	put_ip(&f.traces[0], 0x0d, MAKE_MAIN + 5); /* TIP: the call was before */
	leave_async(&f, 0, MAKE_MAIN + 7);
	replay(&f);
	assert_no_faults(&f);
	assert_int_equal(insns_of(&f, TID(0)), 1 + 1 + 2);
	assert_int_equal(insns_of(&f, TID(1)), 2 * INSNS_1);
	for (i = 0; i < f.n_order; i++)
		if (f.order[i] / 10 == TID(0))
			assert_int_equal(f.order[i], order[n++]);
	assert_int_equal(n, ARRAY_SIZE(order));
	for (i = 0; i < f.tally.n_threads; i++) {
		const struct tally_counters *counters = f.tally.threads[i];

		if (counters->thread == NULL || counters->thread->tid != TID(0))
			continue;
		/* The return found its call, and nothing looked like a signal. */
		assert_int_equal(calls_depth(&counters->calls), 0);
		assert_int_equal(counters->ip, MAKE_MAIN + 7);
		assert_int_equal(counters->n_last, 3 * 2 + 2);
	}
	done(&f);
}

/* On one CPU, on the other, and back: where time is known nothing waits, and still the order is
 * that of the thread's life. */
static void replay_pieces_come_in_order_of_life(void **state)
{
	static const uint64_t order[] = {TID(0) * 10 + 1, TID(0) * 10, TID(0) * 10 + 1};
	struct fixture f;
	size_t i;

	(void)state;
	begin(&f, 2);
	put_switch(&f, 1, 500, 0, TID(0), false);
	put_switch(&f, 1, 2000, TID(0), 0, false);
	put_switch(&f, 0, 3000, 0, TID(0), false);
	put_switch(&f, 0, 4000, TID(0), 0, false);
	put_switch(&f, 1, 5000, 0, TID(0), false);
	put_round(&f, 1, 0);
	put_tsc(&f.traces[1], 1500);
	put_tsc(&f.traces[1], 5500);
	put_round(&f, 1, 0);
	put_tsc(&f.traces[0], 3200);
	put_round(&f, 0, 0);
	put_tsc(&f.traces[0], 3400);
	replay(&f);
	assert_no_faults(&f);
	assert_int_equal(f.n_order, ARRAY_SIZE(order));
	for (i = 0; i < ARRAY_SIZE(order); i++)
		assert_int_equal(f.order[i], order[i]);
	done(&f);
}

/* Another file at the same address, between two stretches of which only the order is known. */
static void replay_mapping_changes_between_stretches(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 1);
	put_switch(&f, 0, 500, 0, TID(0), false);
	put_mapping(&f, TID(0), 1, 3000);
	put_mapping(&f, TID(0), 0, 4000);
	put_round(&f, 0, 0);
	put_round(&f, 0, 1);
	put_round(&f, 0, 0);
	replay(&f);
	assert_no_faults(&f);
	assert_int_equal(insns_of(&f, TID(0)), 2 * INSNS_0 + INSNS_1);
	done(&f);
}

/* Lost switches: nobody's; lost mappings: somebody's, and not decoded. */
static void replay_lost_records_claim_nothing(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 1);
	put_switch(&f, 0, 500, 0, TID(0), false);
	put_switch(&f, 0, 2000, TID(0), TID(1), false);
	put_lost(&f, 0, 5000);
	put_switch(&f, 0, 9000, TID(0), TID(1), false);
	put_round(&f, 0, 0);
	put_tsc(&f.traces[0], 1900);
	put_tsc(&f.traces[0], 4000);
	put_round(&f, 0, 1);
	put_tsc(&f.traces[0], 4500);
	put_tsc(&f.traces[0], 8000);
	put_round(&f, 0, 0);
	put_tsc(&f.traces[0], 8500);
	put_tsc(&f.traces[0], 9500);
	put_round(&f, 0, 1);
	replay(&f);
	assert_int_equal(insns_of(&f, TID(0)), INSNS_0);
	assert_int_equal(insns_of(&f, TID(1)), 0);
	assert_int_equal(insns_of(&f, 0), 0);
	assert_int_equal(f.faults[FAULT_THREAD_UNCERTAIN], 1);
	assert_int_equal(f.faults[FAULT_IMAGE_UNCERTAIN], 2);
	done(&f);
}

/* A switch cannot happen within a stretch: it is of one thread although its end may be late. */
static void replay_stretch_is_of_one_thread(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, 1);
	put_switch(&f, 0, 500, 0, TID(0), false);
	put_switch(&f, 0, 3000, TID(0), TID(1), false);
	enter(&f, 0, BACK);
	put_tsc(&f.traces[0], 2000);
	bytes_put_u8(&f.traces[0], 0x0e);
	leave(&f, 0);
	put_tsc(&f.traces[0], 4000);
	put_round(&f, 0, 1);
	replay(&f);
	assert_no_faults(&f);
	assert_int_equal(insns_of(&f, TID(0)), INSNS_0);
	assert_int_equal(insns_of(&f, TID(1)), INSNS_1);
	done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replay_two_processes_at_one_address),
		cmocka_unit_test(replay_thread_moves_with_its_stack),
		cmocka_unit_test(replay_pieces_come_in_order_of_life),
		cmocka_unit_test(replay_mapping_changes_between_stretches),
		cmocka_unit_test(replay_lost_records_claim_nothing),
		cmocka_unit_test(replay_stretch_is_of_one_thread),
	};

	return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
