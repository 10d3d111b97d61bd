/*
 * The emulated source: a machine of virtual CPUs on a memory file, whose rings the software PMU
 * (capture/emu, a plugin in the emulator's processes) fills in the kernel's layout. Called by the
 * recorder. The emulator's processes belong to whom is traced, and may write anything into the
 * shared memory: all offsets and sizes are taken from our own copy, laid out before they start.
 */
#include "capture/source.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "capture/emu_command.h"
#include "capture/emu_describe.h"
#include "capture/emu_keeper.h"
#include "capture/emu_qemu.h"
#include "capture/pmu.h"
#include "capture/preset.h"
#include "proto/base.h"
#include "proto/emuring.h"
#include "proto/memfd.h"

/* How long a CPU may take to answer, and how often we look whether its process still can. */
#define ANSWER_NS 2000000000ull
#define LOOK_NS	  1000000l

/* Identifiers of the events in sample_id; any will do. */
#define PT_EVENT_ID    1000u
#define DUMMY_EVENT_ID 2000u

/* The crystal that the software PMU pretends to have. */
#define ART_HZ 24000000ull

struct emu_cpu {
	struct emuring_cpu *cpu;
	struct perf_event_mmap_page *page;
	uint32_t generation; /* of the last wish */
};

struct source_emu {
	struct source source;
	struct emuring_head *head;
	struct emuring ring;
	struct emu_keeper *keeper;
	uint64_t size, aux_size;
	int ring_fd;
	struct emu_cpu *cpus;
	uint8_t *scratch;
	char *terms, *qemu;
	struct emu_command command;
	pid_t pid;
	int pidfd;
	bool reaped, virtual_clock;
};

static struct source_emu *emu_of(const struct source *s)
{
	return (struct source_emu *)s;
}

static uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

/* Nobody answers: the trace ends where it was last published. */
static void end_trace(struct source_emu *e, struct emu_cpu *c)
{
	uint64_t pos = atomic_load_explicit(&c->cpu->aux_pos, memory_order_acquire);

	__atomic_store_n(&c->page->aux_head, pos & (e->aux_size - 1), __ATOMIC_RELEASE);
}

static int emu_switch(struct source *s, uint32_t index, bool on)
{
	static const struct timespec look = {.tv_nsec = LOOK_NS};
	struct source_emu *e = emu_of(s);
	struct emu_cpu *c = &e->cpus[index];
	uint64_t deadline = monotonic_ns() + ANSWER_NS;
	uint32_t want, is;

	want = c->generation + (((c->generation & 1) != 0) == on ? 2 : 1);
	c->generation = want;
	atomic_store(&c->cpu->want, want);
	for (;;) {
		emu_keeper_serve(e->keeper, index);
		is = atomic_load(&c->cpu->is);
		if (is == want)
			return 0;
		if (monotonic_ns() >= deadline)
			break;
		if (futex(&c->cpu->is, FUTEX_WAIT, is, &look) < 0 && errno == ETIMEDOUT)
			emu_keeper_mend(e->keeper, index);
	}
	if (!on)
		end_trace(e, c);
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

/* The program instead of its emulator. */
static void emu_describe(struct source *s, struct procinfo *info)
{
	emu_describe_process(emu_of(s)->qemu, info);
}

static int add_note(struct manifest *m, const char *kind, uint64_t count, const char *why)
{
	return count == 0 ? 0 : manifest_add_note(m, kind, count, why);
}

/* Which programs were not followed; the text was written by the guests' side. */
static int add_execs(struct source_emu *e, struct manifest *m)
{
	uint32_t n = MIN_OF(atomic_load(&e->head->n_reasons), EMURING_MAX_REASONS);
	char why[EMURING_MAX_REASONS * EMURING_REASON_SIZE] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < n; i++)
		used += (size_t)snprintf(why + used, sizeof(why) - used, "%s%.*s",
					 i > 0 ? "; " : "", (int)EMURING_REASON_SIZE - 3,
					 e->head->reasons[i]);
	return add_note(m, "untraced-exec", e->head->untraced_execs, why);
}

static int add_absences(struct source_emu *e, struct manifest *m)
{
	char why[128];
	uint64_t ns;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < e->source.n_cpus; i++) {
		uint32_t n = emu_keeper_absences(e->keeper, i, &ns);

		snprintf(why, sizeof(why), "CPU %u was away for %" PRIu64 " ms", i, ns / 1000000);
		r = add_note(m, "cpu-offline", n, why);
	}
	return r;
}

static int emu_add_notes(struct source *s, struct manifest *m)
{
	struct source_emu *e = emu_of(s);
	const struct emuring_head *h = e->head;
	int r = add_note(m, "untraced-thread", h->untraced_threads,
			 "more threads than the emulated machine takes (--emu-tasks)");

	if (r == 0)
		r = add_note(m, "untraced-child", h->untraced_children,
			     "more processes than the emulated machine takes (--emu-tasks), or in "
			     "another pid namespace");
	if (r == 0)
		r = add_execs(e, m);
	if (r == 0)
		r = add_absences(e, m);
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
	if (e->head != NULL)
		munmap(e->head, e->size);
	close_fd(e->ring_fd);
	close_fd(e->pidfd);
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

static void freep(struct source_emu **e)
{
	if (*e != NULL)
		emu_free(&(*e)->source);
}

static int choose_clock(struct source_emu *e, bool virtual_clock, uint64_t *ret_hz)
{
	e->virtual_clock = virtual_clock;
	if (!virtual_clock)
		return clock_calibrate(&e->source.clock, ret_hz);
	*ret_hz = EMURING_VIRTUAL_HZ;
	clock_make(&e->source.clock, *ret_hz, 0, 0);
	return 0;
}

static int choose_terms(struct source_emu *e, const struct source_config *config, uint64_t hz,
			char *why, size_t why_size)
{
	struct source *s = &e->source;
	struct pmu pmu;
	int r;

	/* CPUID leaf 0x15: TSC = ART * num / den; den 2 keeps it within half a crystal's tick. */
	s->tsc_art_den = 2;
	s->tsc_art_num = (uint32_t)((hz * 2 + ART_HZ / 2) / ART_HZ);
	s->max_nonturbo_ratio = (uint32_t)((hz + 50000000) / 100000000);
	pmu_emulated(&pmu);
	pmu.max_nonturbo_ratio = s->max_nonturbo_ratio;
	pmu.tsc_art_num = s->tsc_art_num;
	pmu.tsc_art_den = s->tsc_art_den;
	pmu.crystal_hz = ART_HZ;
	r = preset_config(&pmu, config->preset, config->pt_terms, &s->pt_config, &s->preset, why,
			  why_size);
	if (r < 0)
		return r;
	e->terms = calloc(1, 256);
	if (e->terms == NULL)
		return -ENOMEM;
	pmu_format_terms(&pmu, s->pt_config, e->terms, 256);
	s->pt_terms = e->terms;
	s->trace_user = true;
	s->noretcomp = pmu_term_value(&pmu, s->pt_config, "noretcomp") != 0;
	s->mtc_period = pmu_term_value(&pmu, s->pt_config, "mtc") != 0
				? (uint32_t)pmu_term_value(&pmu, s->pt_config, "mtc_period")
				: UINT32_MAX;
	return 0;
}

static void fill_head(struct source_emu *e, const struct source_emu_config *config, uint64_t hz,
		      const struct emuring_layout *l)
{
	const struct source *s = &e->source;

	*e->head = (struct emuring_head){
		.magic = EMURING_MAGIC,
		.version = EMURING_VERSION,
		.n_cpus = l->n_cpus,
		.data_size = l->data_size,
		.aux_size = l->aux_size,
		.cpu_stride = l->cpu_stride,
		.cpus_at = l->cpus_at,
		.tasks_at = l->tasks_at,
		.max_tasks = l->max_tasks,
		.flags = config->build_id ? EMURING_BUILD_ID : 0,
		.quantum = config->quantum,
		.overflow_bytes = config->overflow_bytes,
		.lose_every = config->lose_every,
		.recorder_pid = (uint32_t)getpid(),
		.clock = config->virtual_clock ? EMURING_CLOCK_VIRTUAL : EMURING_CLOCK_HOST,
		.pt_config = s->pt_config,
		.sample_id = {PT_EVENT_ID, DUMMY_EVENT_ID},
		.tsc_hz = hz,
		.tsc_art_num = s->tsc_art_num,
		.tsc_art_den = s->tsc_art_den,
		.max_nonturbo_ratio = s->max_nonturbo_ratio,
		.time_shift = s->clock.time_shift,
		.time_mult = s->clock.time_mult,
		.time_zero = s->clock.time_zero,
	};
}

static int set_up_cpu(struct source_emu *e, uint32_t index)
{
	struct emu_cpu *c = &e->cpus[index];
	const struct clock_params *clock = &e->source.clock;
	uint64_t total = 4096 + e->head->data_size + e->head->aux_size;

	c->cpu = emuring_cpu_at(&e->ring, index);
	c->page = emuring_page_at(&e->ring, index);
	c->page->data_offset = 4096;
	c->page->data_size = e->head->data_size;
	c->page->aux_offset = 4096 + e->head->data_size;
	c->page->aux_size = e->head->aux_size;
	c->page->time_shift = clock->time_shift;
	c->page->time_mult = clock->time_mult;
	c->page->time_zero = clock->time_zero;
	c->page->cap_user_time = c->page->cap_user_time_zero = 1;
	atomic_store(&c->cpu->tsc, e->virtual_clock ? EMURING_VIRTUAL_BASE : 0);
	/* Tracing from the first instruction on. */
	c->generation = 1;
	atomic_store(&c->cpu->want, 1);
	e->source.cpus[index].cpu = index;
	e->source.cpus[index].node = -1;
	return ring_init(&e->source.cpus[index].pt, c->page, total, e->scratch);
}

static int lay_out(struct source_emu *e, const struct source_emu_config *config, uint64_t hz)
{
	struct emuring_layout l = {.n_cpus = config->n_cpus,
				   .max_tasks = config->max_tasks,
				   .data_size = config->common.data_size,
				   .aux_size = config->common.aux_size};
	int r = emuring_layout(&l);

	if (r < 0)
		return r;
	e->size = l.total;
	r = memfd_new("ptsnap-rings", e->size, &e->ring_fd);
	if (r < 0)
		return r;
	e->head = mmap(NULL, e->size, PROT_READ | PROT_WRITE, MAP_SHARED, e->ring_fd, 0);
	if (e->head == MAP_FAILED) {
		e->head = NULL;
		return -errno;
	}
	fill_head(e, config, hz, &l);
	emuring_attach(&e->ring, e->head);
	return 0;
}

static int make_rings(struct source_emu *e, const struct source_emu_config *config, uint64_t hz,
		      char *why, size_t why_size)
{
	uint32_t n = config->n_cpus;
	int r;

	e->aux_size = config->common.aux_size;
	e->source.n_cpus = n;
	e->source.cpus = calloc(n, sizeof(*e->source.cpus));
	e->cpus = calloc(n, sizeof(*e->cpus));
	e->scratch = malloc(PERFRECORD_MAX_SIZE);
	if (e->source.cpus == NULL || e->cpus == NULL || e->scratch == NULL)
		return -ENOMEM;
	r = lay_out(e, config, hz);
	if (r == -EINVAL)
		snprintf(why, why_size,
			 "ring sizes must be powers of two of at least 4096 bytes, with room for "
			 "all CPUs");
	for (uint32_t i = 0; r == 0 && i < n; i++)
		r = set_up_cpu(e, i);
	if (r == 0)
		r = emu_keeper_new(e->head, e->qemu, config->offline, config->n_offline,
				   &e->keeper);
	return r;
}

static int absolute_path(const char *path, char *ret, size_t size)
{
	char directory[PATH_MAX];

	if (path[0] == '/')
		return (size_t)snprintf(ret, size, "%s", path) < size ? 0 : -ENAMETOOLONG;
	if (getcwd(directory, sizeof(directory)) == NULL)
		return -errno;
	return (size_t)snprintf(ret, size, "%s/%s", directory, path) < size ? 0 : -ENAMETOOLONG;
}

static int start(struct source_emu *e, const struct source_emu_config *config, char *why,
		 size_t why_size)
{
	char ring[64], plugin[PATH_MAX], truth[PATH_MAX];
	struct emu_start how = {.qemu = e->qemu,
				.plugin = plugin,
				.ring = ring,
				.truth = config->truth_path != NULL ? truth : NULL,
				.repeatable = config->virtual_clock,
				.command = &e->command};
	int r = absolute_path(config->plugin_path, plugin, sizeof(plugin));

	if (r == 0 && access(plugin, R_OK) < 0)
		r = -errno;
	if (r < 0) {
		snprintf(why, why_size, "%s: %s: the software PMU is not there",
			 config->plugin_path, strerror(-r));
		return r;
	}
	if (how.truth != NULL)
		r = absolute_path(config->truth_path, truth, sizeof(truth));
	if (r < 0)
		return r;
	snprintf(ring, sizeof(ring), "/proc/%d/fd/%d", getpid(), e->ring_fd);
	r = emu_qemu_start(&how, &e->pid);
	if (r < 0) {
		snprintf(why, why_size, "%s: %s", e->qemu, strerror(-r));
		return r;
	}
	e->pidfd = (int)syscall(SYS_pidfd_open, e->pid, 0);
	return e->pidfd < 0 ? -errno : emu_keeper_start(e->keeper);
}

int source_emu_open(const struct source_emu_config *config, struct source **ret, char *why,
		    size_t why_size)
{
	__attribute__((cleanup(freep))) struct source_emu *e = calloc(1, sizeof(*e));
	uint64_t hz;
	int r;

	if (e == NULL)
		return -ENOMEM;
	why[0] = '\0';
	e->source.ops = &emu_ops;
	e->ring_fd = e->pidfd = -EBADF;
	r = emu_command_find(config->argv, &e->command, why, why_size);
	if (r == 0)
		r = emu_qemu_find(config->qemu_path, &e->qemu, why, why_size);
	if (r == 0 && config->virtual_clock && config->n_cpus > 1) {
		snprintf(why, why_size,
			 "the virtual clock counts one CPU's instructions: it needs --emu-cpus=1");
		r = -EINVAL;
	}
	if (r == 0)
		r = choose_clock(e, config->virtual_clock, &hz);
	if (r == 0)
		r = choose_terms(e, &config->common, hz, why, why_size);
	if (r == 0)
		r = make_rings(e, config, hz, why, why_size);
	if (r == 0)
		r = start(e, config, why, why_size);
	if (r < 0) {
		if (why[0] == '\0')
			snprintf(why, why_size, "emulated source: %s", strerror(-r));
		return r;
	}
	*ret = &TAKE_PTR(e)->source;
	return 0;
}

pid_t source_emu_pid(const struct source *s)
{
	return emu_of(s)->reaped ? 0 : emu_of(s)->pid;
}

int source_emu_pidfd(const struct source *s)
{
	return emu_of(s)->pidfd;
}

void source_emu_reaped(struct source *s)
{
	emu_of(s)->reaped = true;
	emu_keeper_sweep(emu_of(s)->keeper);
}

int source_emu_kill(const struct source *s, int signal)
{
	if (emu_of(s)->reaped)
		return -ESRCH;
	return kill(emu_of(s)->pid, signal) < 0 ? -errno : 0;
}
