/*
 * The emulated source: virtual CPUs on a memory file, whose rings the software PMU fills in the
 * kernel's layout.
 *
 * This file has the operations on a machine that exists. source_emu_open.c makes a machine,
 * source_emu_attach.c takes one over from another process. The emulator's processes belong to the
 * traced program and may write anything into the shared memory, so that all offsets and sizes come
 * from our own copy.
 */
#include "capture/emu/host/source_emu_private.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/emu/machine/vcpu.h"
#include "capture/perf/pmu.h"
#include "capture/proc/procscan.h"
#include "proto/base.h"
#include "proto/perf/perfrecord.h"

/* How long a CPU may take to answer, and how often we check whether its process still lives. */
#define ANSWER_NS 2000000000ull
#define LOOK_NS	  1000000l

#define TERMS_SIZE 256

static struct source_emu *emu_of(const struct source *s)
{
	return (struct source_emu *)s;
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

/* Asks the keeper to serve the requests of CPU INDEX, if the CPU runs no user code. */
static void serve(struct source_emu *e, uint32_t index)
{
	if (e->keeper) {
		emu_keeper_serve(e->keeper, index);
		return;
	}
	atomic_fetch_add(&e->head->bell, 1);
	futex(&e->head->bell, FUTEX_WAKE, INT_MAX, NULL);
}

/* Whether the process with the machine is gone, so that no CPU can answer. */
static bool is_alone(const struct source_emu *e)
{
	struct pollfd channel = {.fd = e->channel};

	return !e->keeper &&
	       (e->channel < 0 || (poll(&channel, 1, 0) > 0 && (channel.revents & POLLHUP) != 0));
}

/* Waits until CPU INDEX is in the state WANT. False: no answer in time. */
static bool await_answer(struct source_emu *e, uint32_t index, uint32_t want)
{
	static const struct timespec look = {.tv_nsec = LOOK_NS};
	struct emuring_cpu *c = e->cpus[index].cpu;
	uint64_t deadline = now_ns(CLOCK_MONOTONIC) + ANSWER_NS;
	uint32_t is;

	serve(e, index);
	for (;;) {
		is = atomic_load(&c->is);
		if (is == want)
			return true;
		if (now_ns(CLOCK_MONOTONIC) >= deadline)
			return false;
		if (futex(&c->is, FUTEX_WAIT, is, &look) < 0 && errno == ETIMEDOUT) {
			if (is_alone(e))
				return false;
			/* A keeper in another process does this by itself. */
			if (e->keeper)
				emu_keeper_mend(e->keeper, index);
			serve(e, index);
		}
	}
}

static int emu_switch(struct source *s, uint32_t index, bool on)
{
	struct source_emu *e = emu_of(s);
	struct emu_cpu *c = &e->cpus[index];
	uint32_t want;
	uint64_t pos;

	/* The process with the machine has stopped all CPUs before it ended. */
	if (is_alone(e) && (on || (atomic_load(&c->cpu->is) & 1) == 0))
		return 0;
	want = c->generation + (((c->generation & 1) != 0) == on ? 2 : 1);
	c->generation = want;
	atomic_store(&c->cpu->want, want);
	if (await_answer(e, index, want))
		return 0;
	/* The trace ends where the CPU published it last. */
	pos = atomic_load_explicit(&c->cpu->aux_pos, memory_order_acquire);
	if (!on)
		__atomic_store_n(&c->page->aux_head, pos & (e->aux_size - 1), __ATOMIC_RELEASE);
	return SOURCE_NO_ANSWER;
}

static int emu_disable(struct source *s, uint32_t index)
{
	return emu_switch(s, index, false);
}

static int emu_enable(struct source *s, uint32_t index)
{
	return emu_switch(s, index, true);
}

/* Bytes of the emulator's own options, which precede the program's arguments. */
#define OPTIONS_MAX 8192u

/* The string behind the string AT, or NULL at the END. */
static const char *next(const char *at, const char *end)
{
	return !at || at >= end ? NULL : at + strlen(at) + 1;
}

/* Finds the program behind the emulator's options: -0 ARGV0 -- PROGRAM ARGS (emustart.h). */
static bool find_program(const char *text, const char *end, const char **ret_argv0,
			 const char **ret_program)
{
	const char *at = text;

	while (at && at < end && strcmp(at, "-0") != 0)
		at = next(at, end);
	*ret_argv0 = next(at, end);
	at = next(*ret_argv0, end);
	if (!at || at >= end || strcmp(at, "--") != 0)
		return false;
	*ret_program = next(at, end);
	return *ret_program && *ret_program < end;
}

/* Joins ARGV0 and the NUL-separated ARGS with blanks. NULL: no memory. *RET_CUT: the result was cut
 * to PROCSCAN_CMDLINE_MAX bytes. */
static char *join(const char *argv0, const char *args, const char *end, bool *ret_cut)
{
	size_t n0 = strlen(argv0), rest = args < end ? (size_t)(end - args) : 0;
	char *text = malloc(n0 + rest + 2);

	if (!text)
		return NULL;
	memcpy(text, argv0, n0);
	for (size_t i = 0; i < rest; i++)
		text[n0 + 1 + i] = args[i] == '\0' ? ' ' : args[i];
	text[n0] = rest > 0 ? ' ' : '\0';
	/* With arguments, the last NUL was turned into a blank. */
	text[n0 + rest + (rest > 0 ? 0 : 1)] = '\0';
	*ret_cut = strlen(text) > PROCSCAN_CMDLINE_MAX;
	if (*ret_cut)
		text[PROCSCAN_CMDLINE_MAX] = '\0';
	return text;
}

/* A process of the report whose INFO is that of the emulator gets the name and arguments of the
 * program that the emulator runs. Any failure leaves INFO unchanged. */
static void emu_describe(struct source *s, struct procinfo *info)
{
	char path[64], text[OPTIONS_MAX + PROCSCAN_CMDLINE_MAX];
	const char *argv0, *program, *end;
	CLEANUP_CLOSE int fd = -EBADF;
	char *exe, *cmdline;
	ssize_t n;
	bool cut;

	if (!info->exe || strcmp(info->exe, emu_of(s)->qemu) != 0)
		return;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", info->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (n <= 0)
		return;
	text[n] = '\0';
	end = text + n;
	if (!find_program(text, end, &argv0, &program))
		return;
	exe = realpath(program, NULL);
	if (exe) {
		free(info->exe);
		info->exe = exe;
	}
	cmdline = join(argv0, next(program, end), end, &cut);
	if (cmdline) {
		free(info->cmdline);
		info->cmdline = cmdline;
		info->cmdline_cut = cut;
	}
}

static int add_note(struct manifest *m, const char *kind, uint64_t count, const char *why)
{
	return count == 0 ? 0 : manifest_add_note(m, kind, count, why);
}

/* The newest absence of CPU INDEX has its own times; those before it ended before it began. */
static int add_absences(struct source *s, uint32_t index, struct manifest *m)
{
	const struct source_emu *e = emu_of(s);
	const struct emuring_cpu *c = e->cpus[index].cpu;
	const uint64_t gone = atomic_load(&c->gone_tsc), back = atomic_load(&c->back_tsc);
	const uint32_t n = atomic_load(&c->absences);
	char why[64];
	struct manifest_note note = {
		.kind = (char *)"cpu-offline",
		.count = 1,
		.why = why,
		.cpu = s->cpus[index].cpu,
		.since_ns = sideband_time(e->head, gone),
		.until_ns = back > gone ? sideband_time(e->head, back) : MANIFEST_ABSENT,
	};
	int r;

	if (n == 0)
		return 0;
	snprintf(why, sizeof(why), "CPU %u was away for %" PRIu64 " ms in all", index,
		 atomic_load(&c->away_ns) / 1000000);
	r = manifest_add_note_at(m, &note);
	if (r < 0 || n == 1)
		return r;
	note.count = n - 1;
	note.until_ns = note.since_ns;
	note.since_ns = MANIFEST_ABSENT;
	return manifest_add_note_at(m, &note);
}

/* Threads, children and programs that are not followed may still run, and an instruction that is
 * not understood may run again: these notes have no end. */
static int emu_add_notes(struct source *s, struct manifest *m)
{
	struct source_emu *e = emu_of(s);
	const struct emuring_head *h = e->head;
	uint32_t n = MIN_OF(atomic_load(&h->n_reasons), EMURING_MAX_REASONS);
	char why[EMURING_MAX_REASONS * EMURING_REASON_SIZE] = "";
	size_t used = 0;
	int r = add_note(m, "untraced-thread", h->untraced_threads,
			 "more threads than the emulated machine takes (--emu-tasks)");

	if (r == 0)
		r = add_note(m, "untraced-child", h->untraced_children,
			     "more processes than the emulated machine takes (--emu-tasks), or in "
			     "another pid namespace");
	/* The programs that ran untraced. The guests can write to this text. */
	for (uint32_t i = 0; i < n; i++)
		used += (size_t)snprintf(why + used, sizeof(why) - used, "%s%.*s",
					 i > 0 ? "; " : "", (int)EMURING_REASON_SIZE - 3,
					 h->reasons[i]);
	if (r == 0)
		r = add_note(m, "untraced-exec", h->untraced_execs, why);
	for (uint32_t i = 0; r == 0 && i < s->n_cpus; i++)
		r = add_absences(s, i, m);
	if (r == 0)
		r = add_note(m, "event-unreachable", h->decode_failures,
			     "transitions or instructions that the software PMU could not explain");
	return r;
}

static uint64_t emu_read_tsc(struct source *s, uint32_t index)
{
	const struct source_emu *e = emu_of(s);

	if (!e->virtual_clock)
		return __builtin_ia32_rdtsc();
	return atomic_load(&e->cpus[index].cpu->tsc);
}

static void emu_free(struct source *s)
{
	struct source_emu *e = emu_of(s);

	emu_keeper_free(e->keeper);
	if (e->head)
		munmap(e->head, e->size);
	close_fd(e->ring_fd);
	close_fd(e->pidfd);
	close_fd(e->channel);
	free(e->offer);
	emu_command_done(&e->command);
	free(e->cpus);
	free(e->scratch);
	free(e->terms);
	free(e->qemu);
	free(e->source.cpus);
	free(e);
}

static const struct source_ops emu_ops = {
	.name = "emulated",
	.disable = emu_disable,
	.enable = emu_enable,
	.describe = emu_describe,
	.add_notes = emu_add_notes,
	.free = emu_free,
	.read_tsc = emu_read_tsc,
};

void source_emu_freep(struct source_emu **e)
{
	if (*e)
		emu_free(&(*e)->source);
}

struct source_emu *source_emu_new(void)
{
	struct source_emu *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->source.ops = &emu_ops;
	e->ring_fd = e->pidfd = e->channel = -EBADF;
	return e;
}

/* CPUID leaf 0x15: TSC = ART * num / den. */
void source_emu_pmu(const struct source_emu *e, struct pmu *ret)
{
	pmu_emulated(ret);
	ret->max_nonturbo_ratio = e->source.max_nonturbo_ratio;
	ret->tsc_art_num = e->source.tsc_art_num;
	ret->tsc_art_den = e->source.tsc_art_den;
	ret->crystal_hz = SOURCE_EMU_ART_HZ;
}

int source_emu_describe_trace(struct source_emu *e)
{
	struct source *s = &e->source;
	struct pmu pmu;

	source_emu_pmu(e, &pmu);
	e->terms = calloc(1, TERMS_SIZE);
	if (!e->terms)
		return -ENOMEM;
	pmu_format_terms(&pmu, s->pt_config, e->terms, TERMS_SIZE);
	s->pt_terms = e->terms;
	s->trace_user = true;
	s->noretcomp = pmu_term_value(&pmu, s->pt_config, "noretcomp") != 0;
	s->mtc_period = pmu_term_value(&pmu, s->pt_config, "mtc") != 0
				? (uint32_t)pmu_term_value(&pmu, s->pt_config, "mtc_period")
				: UINT32_MAX;
	return 0;
}

int source_emu_new_cpus(struct source_emu *e, uint32_t n)
{
	e->source.n_cpus = n;
	e->source.cpus = calloc(n, sizeof(*e->source.cpus));
	e->cpus = calloc(n, sizeof(*e->cpus));
	e->scratch = malloc(PERFRECORD_MAX_SIZE);
	return !e->source.cpus || !e->cpus || !e->scratch ? -ENOMEM : 0;
}

int source_emu_use_rings(struct source_emu *e, uint32_t index)
{
	const struct emuring_head *fixed = &e->ring.fixed;
	struct source_cpu *c = &e->source.cpus[index];

	c->cpu = index;
	c->node = -1;
	return ring_init(&c->pt, e->cpus[index].page, 4096 + fixed->data_size + fixed->aux_size,
			 e->scratch);
}

pid_t source_emu_pid(const struct source *s)
{
	assert(s->ops == &emu_ops);
	return emu_of(s)->reaped ? 0 : emu_of(s)->pid;
}

int source_emu_pidfd(const struct source *s)
{
	assert(s->ops == &emu_ops);
	return emu_of(s)->pidfd;
}

void source_emu_reaped(struct source *s)
{
	assert(s->ops == &emu_ops && !emu_of(s)->reaped);
	emu_of(s)->reaped = true;
	if (emu_of(s)->keeper)
		emu_keeper_sweep(emu_of(s)->keeper);
}

int source_emu_kill(const struct source *s, int signal)
{
	assert(s->ops == &emu_ops);
	if (emu_of(s)->reaped)
		return -ESRCH;
	return kill(emu_of(s)->pid, signal) < 0 ? -errno : 0;
}

void source_emu_stop(struct source *s)
{
	struct source_emu *e = emu_of(s);

	assert(s->ops == &emu_ops);
	for (uint32_t i = 0; i < s->n_cpus; i++) {
		/* Another process may have changed the generation. */
		e->cpus[i].generation = atomic_load(&e->cpus[i].cpu->want);
		emu_switch(s, i, false);
	}
}
