/*
 * Writes the marks: the newest PTWRITEs, frequencies, power events, aborted transactions and
 * interrupts; and the number of all marks. A mark is not a branch.
 */
#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

/* Speeds that differ by at most so many percent count as one. */
#define SAME_SPEED 10u
/* Fewer instructions have no rate: each time is a few cycles off. */
#define IPC_INSTRUCTIONS 10000u

static const struct mark *mark_at(const struct report *r, enum marks_list_id list, size_t i)
{
	return &r->d->marks.lists[list].list[i];
}

/* The CPU, the thread and the time of a mark. */
static void write_head(const struct report *r, struct json_writer *w, const struct mark *mark)
{
	const struct timeline_thread *of = mark->thread ? mark->thread : mark->process;

	report_id(w, "cpu", r->m->cpus[mark->cpu].cpu);
	report_ids(w, of, mark->thread);
	report_when(r, w, mark->flow.tsc_lo, mark->flow.tsc_hi);
	report_tsc(w, "tsc", mark->flow.tsc_lo);
}

static void write_place(const struct report *r, struct json_writer *w, const struct mark *mark)
{
	if (mark->flow.flags & FLOW_MARK_HAS_IP)
		report_place(r, w, "place", mark->context, mark->flow.ip);
	else
		json_null(w, "place");
}

static void report_ptwrite(const struct report *r, struct json_writer *w, size_t i)
{
	const struct mark *mark = mark_at(r, MARKS_PTWRITES, i);

	json_begin_object(w, NULL);
	write_head(r, w, mark);
	json_hex(w, "payload", mark->flow.value);
	json_u64(w, "size", mark->flow.size);
	write_place(r, w, mark);
	json_end_object(w);
}

static void report_frequency(const struct report *r, struct json_writer *w, size_t i)
{
	const struct mark *mark = mark_at(r, MARKS_FREQUENCIES, i);

	json_begin_object(w, NULL);
	report_id(w, "cpu", r->m->cpus[mark->cpu].cpu);
	report_when(r, w, mark->flow.tsc_lo, mark->flow.tsc_hi);
	report_tsc(w, "tsc", mark->flow.tsc_lo);
	json_u64(w, "ratio", mark->flow.value);
	report_mhz(r, w, "mhz", mark->flow.value);
	if (r->m->max_nonturbo_ratio == 0)
		json_null(w, "percentOfNominal");
	else
		json_fixed(w, "percentOfNominal",
			   100.0 * (double)mark->flow.value / r->m->max_nonturbo_ratio, 1);
	json_end_object(w);
}

/* Decodes a C-state: 0 is C1, 15 is C0 (SDM volume 2, MWAIT, "MWAIT Hints Register"). PWRE and PWRX
 * have the same encoding (SDM volume 3, 33.4.2.24 and 25). */
static uint64_t c_state(uint64_t encoded)
{
	return (encoded + 1) & 0xf;
}

/* The name of the one bit that is set; NULL: no bit is set, or the bit has no name yet. */
static const char *wake_reason(uint64_t bits)
{
	switch (bits) {
	case 1: return "interrupt";
	case 2: return "timer-deadline";
	case 4: return "store-to-monitored-address";
	case 8: return "hw-autonomous-condition";
	default: return NULL;
	}
}

static void report_power(const struct report *r, struct json_writer *w, size_t i)
{
	const struct mark *mark = mark_at(r, MARKS_POWER, i);
	uint64_t value = mark->flow.value;
	const char *kind = "exstop";

	if (mark->flow.kind == FLOW_MARK_MWAIT)
		kind = "mwait";
	else if (mark->flow.kind == FLOW_MARK_PWRE)
		kind = "pwre";
	else if (mark->flow.kind == FLOW_MARK_PWRX)
		kind = "pwrx";
	json_begin_object(w, NULL);
	json_string(w, "kind", kind);
	write_head(r, w, mark);
	write_place(r, w, mark);
	switch (mark->flow.kind) {
	case FLOW_MARK_MWAIT:
		json_hex(w, "hints", value & 0xff);
		json_hex(w, "extensions", value >> 32 & 3);
		json_u64(w, "targetCState", c_state(value >> 4 & 0xf));
		json_u64(w, "targetSubCState", value & 0xf);
		break;
	case FLOW_MARK_PWRE:
		json_u64(w, "resolvedThreadCState", c_state(value >> 12 & 0xf));
		json_u64(w, "resolvedThreadSubCState", value >> 8 & 0xf);
		json_bool(w, "hw", value >> 7 & 1);
		break;
	case FLOW_MARK_PWRX:
		json_u64(w, "lastCoreCState", c_state(value >> 4 & 0xf));
		json_u64(w, "deepestCoreCState", c_state(value & 0xf));
		json_string(w, "wakeReason", wake_reason(value >> 8 & 0xf));
		break;
	default: break;
	}
	json_end_object(w);
}

static void report_abort(const struct report *r, struct json_writer *w, size_t i)
{
	const struct mark *mark = mark_at(r, MARKS_ABORTS, i);

	json_begin_object(w, NULL);
	write_head(r, w, mark);
	write_place(r, w, mark);
	json_end_object(w);
}

/* The types of CFE packets, and which types have a vector (SDM volume 3, 33.4.2, CFE). */
/* clang-format off */
static const struct {
	const char *name;
	bool vector;
} interrupts[] = {
	[PT_CFE_INTR] = {"INTR", true},
	[PT_CFE_IRET] = {"IRET", false},
	[PT_CFE_SMI] = {"SMI", false},
	[PT_CFE_RSM] = {"RSM", false},
	[PT_CFE_SIPI] = {"SIPI", true},
	[PT_CFE_INIT] = {"INIT", false},
	[PT_CFE_VMENTRY] = {"VMENTRY", false},
	[PT_CFE_VMEXIT] = {"VMEXIT", false},
	[PT_CFE_VMEXIT_INTR] = {"VMEXIT_INTR", true},
	[PT_CFE_SHUTDOWN] = {"SHUTDOWN", false},
	[PT_CFE_UINTR] = {"UINTR", true},
	[PT_CFE_UIRET] = {"UIRET", false},
	[PT_CFE_SWINTR] = {"SWINTR", true},
	[PT_CFE_SYSCALL] = {"SYSCALL", false},
};
/* clang-format on */

static void write_evd(struct json_writer *w, const char *key, const struct flow_mark *flow,
		      uint8_t flag, size_t i)
{
	report_hex(w, key, flow->flags & flag ? flow->evd[i] : MANIFEST_ABSENT);
}

static void report_interrupt(const struct report *r, struct json_writer *w, size_t i)
{
	const struct mark *mark = mark_at(r, MARKS_INTERRUPTS, i);
	const struct flow_mark *flow = &mark->flow;
	const char *name = flow->type < ARRAY_SIZE(interrupts) ? interrupts[flow->type].name : NULL;

	json_begin_object(w, NULL);
	json_string(w, "kind", name);
	json_u64(w, "type", flow->type);
	write_head(r, w, mark);
	write_place(r, w, mark);
	if (name && !interrupts[flow->type].vector)
		json_null(w, "vector");
	else
		json_u64(w, "vector", flow->value);
	write_evd(w, "cr2", flow, FLOW_MARK_CR2, 0);
	write_evd(w, "vmExitQualification", flow, FLOW_MARK_VMXQ, 1);
	write_evd(w, "vmExitReason", flow, FLOW_MARK_VMXR, 2);
	json_end_object(w);
}

void report_event_counts(const struct report *r, struct json_writer *w)
{
	json_begin_object(w, "eventCounts");
	for (int i = 0; i < MARKS_N_EVENTS; i++)
		if (r->d->marks.counts[i] > 0)
			json_u64(w, marks_event_name((enum marks_event)i), r->d->marks.counts[i]);
	json_end_object(w);
}

void report_cpu_frequency(const struct report *r, struct json_writer *w, size_t i)
{
	const struct marks_cpu *cpu = &r->d->marks.cpus[i];

	if (cpu->ratio == 0) {
		json_null(w, "frequency");
		return;
	}
	json_begin_object(w, "frequency");
	json_u64(w, "lowestRatio", cpu->lowest);
	json_u64(w, "highestRatio", cpu->highest);
	report_mhz(r, w, "lowestMhz", cpu->lowest);
	report_mhz(r, w, "highestMhz", cpu->highest);
	json_u64(w, "changes", cpu->changes);
	json_end_object(w);
}

/* CBR tells the speed of the core in units of the bus clock (SDM volume 3, 33.4.2.10), of which the
 * TSC has max_nonturbo_ratio. Without CYCs, times are too coarse for cycles. */
static double tick_cycles(const struct report *r)
{
	uint32_t lowest = UINT32_MAX, highest = 0;

	if (r->m->pt_config == MANIFEST_ABSENT || !(r->m->pt_config & PT_CONFIG_CYC) ||
	    r->m->max_nonturbo_ratio == 0)
		return 0;
	for (size_t i = 0; i < r->m->n_cpus; i++) {
		const struct marks_cpu *cpu = &r->d->marks.cpus[i];

		if (r->d->cpus[i].stats.instructions == 0)
			continue;
		if (cpu->ratio == 0)
			return 0;
		lowest = MIN_OF(lowest, cpu->lowest);
		highest = MAX_OF(highest, cpu->highest);
	}
	/* Nobody counted which instruction ran at which speed. */
	if (highest == 0 || (uint64_t)highest * 100 > (uint64_t)lowest * (100 + SAME_SPEED))
		return 0;
	return (lowest + highest) / 2.0 / r->m->max_nonturbo_ratio;
}

void report_ipc(const struct report *r, struct json_writer *w, uint64_t insns, uint64_t ticks)
{
	if (r->tick_cycles > 0 && insns >= IPC_INSTRUCTIONS && ticks > 0)
		json_fixed(w, "instructionsPerCycle",
			   (double)insns / ((double)ticks * r->tick_cycles), 2);
}

void report_prepare_marks(struct report *r)
{
	static const struct {
		enum report_list_id id;
		struct report_list list;
		int marks;
	} kinds[] = {
		{REPORT_ABORTS, {.key = "aborts", .element = report_abort}, MARKS_ABORTS},
		{REPORT_INTERRUPTS,
		 {.key = "interrupts", .element = report_interrupt},
		 MARKS_INTERRUPTS},
		{REPORT_POWER, {.key = "power", .element = report_power}, MARKS_POWER},
		{REPORT_FREQUENCIES,
		 {.key = "frequencies", .element = report_frequency},
		 MARKS_FREQUENCIES},
		{REPORT_PTWRITES, {.key = "ptwrites", .element = report_ptwrite}, MARKS_PTWRITES},
	};

	r->tick_cycles = tick_cycles(r);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct report_list *l = &r->lists[kinds[i].id];

		*l = kinds[i].list;
		l->total = r->d->marks.lists[kinds[i].marks].n;
		l->newest_first = true;
	}
}
