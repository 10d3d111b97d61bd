/*
 * Where each known thread was at the trigger: on a CPU, waiting for one, blocked, or gone.
 *
 * The switch records tell when a thread got and lost its last CPU before the trigger, and whether
 * it could have gone on. What was recorded last of its code tells the system call. A thread that
 * blocked may have been woken since, and wait for a CPU: no record says so.
 */
#include <stdlib.h>

#include "decoder/code/insn.h"
#include "decoder/worker/count/tally.h"
#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"

/* Bytes of code in front of a system call in which its number is looked for. */
#define MAX_RUN 128u
/* The clocks of trace and sideband may differ this much. */
#define SLACK_NS 20000u

static int by_thread(const void *a, const void *b)
{
	const uintptr_t x = (uintptr_t)((const struct report_state *)a)->thread;
	const uintptr_t y = (uintptr_t)((const struct report_state *)b)->thread;

	return x < y ? -1 : x > y;
}

static struct report_state *find_state(const struct report *r, const struct timeline_thread *thread)
{
	const struct report_state key = {.thread = thread};

	if (!thread || r->n_states == 0)
		return NULL;
	return bsearch(&key, r->states, r->n_states, sizeof(key), by_thread);
}

const struct report_state *report_state(const struct report *r,
					const struct timeline_thread *thread)
{
	return find_state(r, thread);
}

void report_state_mark(struct report *r, const struct timeline_thread *thread)
{
	struct report_state *s = find_state(r, thread);

	if (s)
		s->listed = true;
}

/* TURN is the newest turn so far of the thread of S, on CPU. */
static void take_turn(struct report_state *s, const struct timeline_turn *turn, size_t cpu,
		      uint64_t now)
{
	s->seen = true;
	s->ran = turn->since;
	s->left = MIN_OF(turn->until, now);
	s->cpu = cpu;
	s->kind = turn->until > now ? REPORT_STATE_RUNNING
		  : turn->preempted ? REPORT_STATE_RUNNABLE
				    : REPORT_STATE_BLOCKED;
}

/* Takes the turns of CPU, those that began before NOW into the states. Returns until when the last
 * uncertain turn was. */
static uint64_t take_cpu(struct report *r, size_t cpu, uint64_t now)
{
	const struct timeline *timeline = r->d->replay->timeline;
	const size_t n = timeline_n_turns(timeline, r->m->cpus[cpu].cpu);
	uint64_t doubt = 0;

	for (size_t i = 0; i < n; i++) {
		struct timeline_turn turn;
		struct report_state *s;

		timeline_get_turn(timeline, r->m->cpus[cpu].cpu, i, &turn);
		if (turn.uncertain && turn.since <= now)
			doubt = MIN_OF(turn.until, now);
		r->doubt_behind |= turn.uncertain && turn.until > now;
		s = turn.uncertain ? NULL : find_state(r, turn.thread);
		if (turn.since > now) {
			if (s)
				s->again = true;
			continue;
		}
		if (s && (s->kind == REPORT_STATE_UNKNOWN || turn.since >= s->ran))
			take_turn(s, &turn, cpu, now);
	}
	return doubt;
}

/* What happened behind the last turn: the thread ended, or records were lost. */
static void finish(struct report_state *s, uint64_t now, uint64_t doubt)
{
	if (s->thread->end <= now) {
		s->kind = REPORT_STATE_EXITED;
		s->left = s->thread->end;
	}
	s->certain = s->kind == REPORT_STATE_EXITED ||
		     (s->kind != REPORT_STATE_UNKNOWN && s->left >= doubt);
}

int report_prepare_states(struct report *r)
{
	const struct timeline *timeline = r->d->replay->timeline;
	const uint64_t now = r->now;
	const size_t n = timeline_n_threads(timeline);
	uint64_t doubt = 0;

	r->states = calloc(n + 1, sizeof(*r->states));
	if (!r->states)
		return -ENOMEM;
	/* Without a trigger there is no last moment. */
	if (now == MANIFEST_ABSENT)
		return 0;
	for (size_t i = 0; i < n; i++) {
		const struct timeline_thread *thread = timeline_thread(timeline, i);

		if (thread->tid != 0 && thread->begin <= now)
			r->states[r->n_states++] = (struct report_state){.thread = thread};
	}
	qsort(r->states, r->n_states, sizeof(*r->states), by_thread);
	for (size_t cpu = 0; cpu < r->m->n_cpus; cpu++)
		doubt = MAX_OF(doubt, take_cpu(r, cpu, now));
	for (size_t i = 0; i < r->n_states; i++)
		finish(&r->states[i], now, doubt);
	return 0;
}

/* --- The system call in which a thread is --- */

static uint32_t get_u32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

/* What an instruction does to RAX: REPORT_NO_CALL if it is not known to leave or set it. */
static uint64_t next_rax(const uint8_t *at, size_t size, uint64_t rax)
{
	const uint8_t rex = (at[0] & 0xf0) == 0x40 ? at[0] : 0;
	const uint8_t *op = at + (rex != 0), modrm = size > 1u + (rex != 0) ? op[1] : 0;
	const bool plain_reg = (rex & 4) == 0 && (modrm >> 3 & 7) == 0;
	const bool plain_rm = (rex & 1) == 0 && (modrm & 7) == 0 && modrm >> 6 == 3;

	if (op[0] == 0xb8 && size == 5 && rex == 0)
		return get_u32(op + 1);
	if (rex == 0x48 && op[0] == 0xc7 && op[1] == 0xc0 && size == 7)
		return get_u32(op + 2);
	if (rex == 0 && (op[0] == 0x31 || op[0] == 0x33) && modrm == 0xc0)
		return 0;
	if (op[0] >= 0xb9 && op[0] <= 0xbf) /* mov to another register */
		return rax;
	if (op[0] == 0xb8 && (rex & 1)) /* mov to r8 */
		return rax;
	switch (op[0]) {
	case 0x8b: /* mov, lea, xor to a register */
	case 0x8d:
	case 0x33: return plain_reg ? REPORT_NO_CALL : rax;
	case 0x89: /* mov, xor from a register; arithmetic with a number */
	case 0x31:
	case 0x80:
	case 0x83: return plain_rm ? REPORT_NO_CALL : rax;
	default: return REPORT_NO_CALL;
	}
}

/* The number of the system call at FROM, if the code that was executed from TO on, without a taken
 * branch, sets it; REPORT_NO_CALL: not known. */
static uint64_t number_of(const struct report *r, uint32_t context, uint64_t to, uint64_t from)
{
	uint8_t code[MAX_RUN + INSN_MAX_SIZE];
	const size_t size = (size_t)(from - to) + 2;
	uint64_t rax = REPORT_NO_CALL;
	size_t at = 0;

	if (replay_read(r->d->replay, context, to, code, size) != size || code[size - 2] != 0x0f ||
	    code[size - 1] != 0x05)
		return REPORT_NO_CALL;
	while (at < size - 2) {
		struct insn insn;

		if (insn_read(r->reader, INSN_MODE_64, to + at, code + at, size - at, &insn) != 0 ||
		    (insn.class != INSN_OTHER && insn.class != INSN_COND))
			return REPORT_NO_CALL;
		rax = next_rax(code + at, insn.size, rax);
		at += insn.size;
	}
	return at == size - 2 ? rax : REPORT_NO_CALL;
}

bool report_code_is_known(const struct report *r, const struct report_state *s,
			  const struct tally_counters *counters)
{
	const uint64_t until = counters && counters->last_tsc != 0
				       ? tscmap_ns(&r->d->replay->clock, counters->last_tsc)
				       : MANIFEST_ABSENT;

	return s && s->seen && until != MANIFEST_ABSENT && until + SLACK_NS >= s->ran;
}

uint64_t report_call_at(const struct report *r, const struct tally_counters *c, uint64_t back)
{
	const uint64_t n = MIN_OF(c->n_last, (uint64_t)REPORT_LAST_BRANCHES);
	const struct tally_branch *last, *before;

	if (n < 2 || back > n - 2)
		return REPORT_NO_CALL;
	last = &c->last[(c->n_last - 1 - back) % REPORT_LAST_BRANCHES];
	before = &c->last[(c->n_last - 2 - back) % REPORT_LAST_BRANCHES];
	if (last->kind != FLOW_SYSCALL || before->context != last->context || before->to == 0 ||
	    before->to > last->from || last->from - before->to > MAX_RUN)
		return REPORT_NO_CALL;
	return number_of(r, last->context, before->to, last->from);
}

uint64_t report_system_call(const struct report *r, const struct timeline_thread *thread,
			    const struct tally_counters *counters)
{
	if (!report_code_is_known(r, report_state(r, thread), counters))
		return REPORT_NO_CALL;
	return report_call_at(r, counters, 0);
}

/* Calls that block, or that end a thread (arch/x86/entry/syscalls/syscall_64.tbl). */
static const struct {
	uint16_t number;
	const char *name;
} CALLS[] = {
	{0, "read"},
	{1, "write"},
	{3, "close"},
	{7, "poll"},
	{16, "ioctl"},
	{17, "pread64"},
	{18, "pwrite64"},
	{19, "readv"},
	{20, "writev"},
	{23, "select"},
	{24, "sched_yield"},
	{34, "pause"},
	{35, "nanosleep"},
	{40, "sendfile"},
	{42, "connect"},
	{43, "accept"},
	{44, "sendto"},
	{45, "recvfrom"},
	{46, "sendmsg"},
	{47, "recvmsg"},
	{58, "vfork"},
	{59, "execve"},
	{60, "exit"},
	{61, "wait4"},
	{62, "kill"},
	{65, "semop"},
	{72, "fcntl"},
	{73, "flock"},
	{74, "fsync"},
	{75, "fdatasync"},
	{82, "rename"},
	{87, "unlink"},
	{128, "rt_sigtimedwait"},
	{130, "rt_sigsuspend"},
	{162, "sync"},
	{200, "tkill"},
	{202, "futex"},
	{220, "semtimedop"},
	{230, "clock_nanosleep"},
	{231, "exit_group"},
	{232, "epoll_wait"},
	{234, "tgkill"},
	{247, "waitid"},
	{257, "openat"},
	{270, "pselect6"},
	{271, "ppoll"},
	{275, "splice"},
	{281, "epoll_pwait"},
	{285, "fallocate"},
	{288, "accept4"},
	{295, "preadv"},
	{296, "pwritev"},
	{299, "recvmmsg"},
	{306, "syncfs"},
	{316, "renameat2"},
	{426, "io_uring_enter"},
	{441, "epoll_pwait2"},
	{449, "futex_waitv"},
};

static const char *call_name(uint64_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(CALLS); i++)
		if (CALLS[i].number == number)
			return CALLS[i].name;
	return NULL;
}

void report_write_call(struct json_writer *w, uint64_t number)
{
	json_begin_object(w, "systemCall");
	json_u64(w, "number", number);
	json_string(w, "name", call_name(number));
	json_end_object(w);
}

void report_write_state(const struct report *r, struct json_writer *w,
			const struct timeline_thread *thread, const struct tally_counters *last)
{
	static const char *const names[] = {
		[REPORT_STATE_UNKNOWN] = "unknown",   [REPORT_STATE_RUNNING] = "running",
		[REPORT_STATE_RUNNABLE] = "runnable", [REPORT_STATE_BLOCKED] = "blocked",
		[REPORT_STATE_EXITED] = "exited",
	};
	const struct report_state *s = report_state(r, thread);
	const struct report_asleep *asleep;
	uint64_t call, since;

	if (!s || (s->kind != REPORT_STATE_UNKNOWN && !report_permits(r, thread, s->ran))) {
		json_null(w, "state");
		return;
	}
	since = s->kind == REPORT_STATE_RUNNING ? s->ran : s->left;
	json_begin_object(w, "state");
	json_string(w, "kind", names[s->kind]);
	report_at(r, w, "sinceNSec", since == 0 ? MANIFEST_ABSENT : since);
	if (s->seen)
		report_id(w, "cpu", r->m->cpus[s->cpu].cpu);
	else
		json_null(w, "cpu");
	json_boolean(w, "certain", s->certain);
	json_boolean(w, "codeKnown", report_code_is_known(r, s, last));
	call = report_system_call(r, thread, last);
	asleep = report_asleep(r, s, call);
	if (call == REPORT_NO_CALL && asleep)
		call = asleep->call;
	if (call != REPORT_NO_CALL)
		report_write_call(w, call);
	if (asleep)
		json_boolean(w, "uninterruptible", asleep->uninterruptible);
	if (asleep && asleep->futex != 0)
		json_hex(w, "futex", asleep->futex);
	json_end_object(w);
}
