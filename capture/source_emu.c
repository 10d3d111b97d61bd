/*
 * The emulated source: rings on a memory file that the software PMU (capture/emu, a plugin in the
 * emulator's process) fills in the kernel's layout. Called by the recorder. The emulator's process
 * belongs to whom is traced, and may write anything into the shared memory: all offsets and sizes
 * are taken from our own copy, laid out before it starts.
 */
#include "capture/source.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "capture/emu_command.h"
#include "capture/emu_qemu.h"
#include "capture/pmu.h"
#include "proto/base.h"
#include "proto/emuring.h"
#include "proto/memfd.h"

/* How long a CPU may take to answer, and how often we look whether its process still can. */
#define ANSWER_NS 2000000000ull
#define LOOK_NS	  20000000l

/* Identifiers of the events in sample_id; any will do. */
#define PT_EVENT_ID    1000u
#define DUMMY_EVENT_ID 2000u

/* The crystal that the software PMU pretends to have. */
#define ART_HZ 24000000ull

struct emu_cpu {
	struct emuring_cpu *cpu;
	struct perf_event_mmap_page *page;
	uint8_t *aux;
	uint32_t generation; /* of the last wish */
	bool finished;	     /* of a process that died: nothing more can come */
};

struct source_emu {
	struct source source;
	struct emuring_head *head;
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

/* The state letter of /proc/PID/task/TID/stat, 0 when there is no such task. */
static char task_state(pid_t pid, uint32_t tid)
{
	char path[64], text[256], *after;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/stat", pid, tid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	/* The name is in parentheses and may hold anything, parentheses too. */
	after = strrchr(text, ')');
	return after != NULL && after[1] == ' ' ? after[2] : 0;
}

static bool task_gone(pid_t pid, uint32_t tid)
{
	char state = task_state(pid, tid);

	return state == 0 || state == 'Z' || state == 'X';
}

enum life { LIFE_RUNS, LIFE_STOPPED, LIFE_OVER };

/* Whether anybody can still answer for CPU. */
static enum life life_of(const struct source_emu *e, const struct emu_cpu *c)
{
	uint32_t helper = atomic_load(&e->head->helper_tid);
	uint32_t guest = (uint32_t)e->pid;
	char state;

	if (e->reaped || task_gone(e->pid, guest))
		/* The first thread may end before the others do; its state is Z then. */
		return helper == 0 || e->reaped || task_gone(e->pid, helper) ? LIFE_OVER
									     : LIFE_RUNS;
	/* exec replaced the emulator by a program that knows nothing of us. */
	if (helper != 0 && task_gone(e->pid, helper))
		return LIFE_OVER;
	state = task_state(e->pid, guest);
	if ((state == 'T' || state == 't') &&
	    (helper == 0 || atomic_load(&c->cpu->where) == EMURING_USER ||
	     task_state(e->pid, helper) == state))
		return LIFE_STOPPED;
	return LIFE_RUNS;
}

/* Nobody answers: the trace ends where it was last published. */
static void end_trace(struct source_emu *e, struct emu_cpu *c, enum life life)
{
	uint64_t pos = atomic_load_explicit(&c->cpu->aux_pos, memory_order_acquire);

	if (life == LIFE_OVER && !c->finished) {
		pos = emuring_finish(c->cpu, c->aux, e->aux_size, pos);
		atomic_store_explicit(&c->cpu->aux_pos, pos, memory_order_release);
		c->finished = true;
	}
	__atomic_store_n(&c->page->aux_head, pos & (e->aux_size - 1), __ATOMIC_RELEASE);
}

static int emu_switch(struct source *s, uint32_t index, bool on)
{
	static const struct timespec look = {.tv_nsec = LOOK_NS};
	struct source_emu *e = emu_of(s);
	struct emu_cpu *c = &e->cpus[index];
	uint64_t deadline = monotonic_ns() + ANSWER_NS;
	uint32_t want, is;
	enum life life = LIFE_RUNS;

	want = c->generation + (((c->generation & 1) != 0) == on ? 2 : 1);
	c->generation = want;
	atomic_store(&c->cpu->want, want);
	futex(&c->cpu->want, FUTEX_WAKE, INT_MAX, NULL);
	while ((is = atomic_load(&c->cpu->is)) != want) {
		life = life_of(e, c);
		if (life != LIFE_RUNS || monotonic_ns() >= deadline)
			break;
		futex(&c->cpu->is, FUTEX_WAIT, is, &look);
	}
	if (is == want || atomic_load(&c->cpu->is) == want)
		return 0;
	if (!on)
		end_trace(e, c, life);
	/* A process that ended by itself has written all there was to write. */
	if (!on && life == LIFE_OVER && atomic_load(&e->head->exited) != 0)
		return 0;
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

static char *joined_arguments(char *const *argv, bool *ret_cut)
{
	char *text = calloc(1, PROCSCAN_CMDLINE_MAX + 1);
	size_t used = 0;

	*ret_cut = false;
	for (size_t i = 0; text != NULL && argv[i] != NULL; i++) {
		size_t room = PROCSCAN_CMDLINE_MAX + 1 - used;
		int n = snprintf(text + used, room, "%s%s", i > 0 ? " " : "", argv[i]);

		if (n < 0 || (size_t)n >= room) {
			*ret_cut = true;
			break;
		}
		used += (size_t)n;
	}
	return text;
}

/* The program instead of its emulator, for the traced process and for children that it forked. */
static void emu_describe(struct source *s, struct procinfo *info)
{
	struct source_emu *e = emu_of(s);
	char *exe, *cmdline;
	bool cut;

	if (info->exe == NULL || strcmp(info->exe, e->qemu) != 0)
		return;
	exe = realpath(e->command.program, NULL);
	cmdline = joined_arguments(e->command.argv, &cut);
	if (exe != NULL) {
		free(info->exe);
		info->exe = exe;
	}
	if (cmdline != NULL) {
		free(info->cmdline);
		info->cmdline = cmdline;
		info->cmdline_cut = cut;
	}
}

static int add_note(struct manifest *m, const char *kind, uint64_t count, const char *why)
{
	return count == 0 ? 0 : manifest_add_note(m, kind, count, why);
}

static int emu_add_notes(struct source *s, struct manifest *m)
{
	const struct emuring_head *h = emu_of(s)->head;
	int r = add_note(m, "untraced-thread", h->untraced_threads,
			 "the software PMU follows the first thread only");

	if (r == 0)
		r = add_note(m, "untraced-child", h->untraced_children,
			     "the software PMU does not follow fork");
	if (r == 0)
		r = add_note(m, "untraced-exec", h->untraced_execs,
			     "the software PMU does not follow exec");
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

static int choose_terms(struct source_emu *e, const char *terms, uint64_t hz, char *why,
			size_t why_size)
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
	r = pmu_parse_terms(&pmu, terms != NULL ? terms : PMU_DEFAULT_TERMS, &s->pt_config, why,
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
		      uint64_t stride)
{
	const struct source *s = &e->source;

	*e->head = (struct emuring_head){
		.magic = EMURING_MAGIC,
		.version = EMURING_VERSION,
		.n_cpus = (uint32_t)s->n_cpus,
		.data_size = config->common.data_size,
		.aux_size = config->common.aux_size,
		.cpu_stride = stride,
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

	c->cpu = emuring_cpu_at(e->head, index);
	c->page = emuring_page_at(e->head, index);
	c->aux = emuring_aux_at(e->head, index);
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
	return ring_init(&e->source.cpus[index].pt, c->page, total, e->scratch);
}

static int make_rings(struct source_emu *e, const struct source_emu_config *config, uint64_t hz,
		      char *why, size_t why_size)
{
	uint32_t n = config->n_cpus;
	uint64_t stride;
	int r = emuring_layout(n, config->common.data_size, config->common.aux_size, &stride,
			       &e->size);

	if (r < 0) {
		snprintf(why, why_size, "ring sizes must be powers of two of at least 4096 bytes");
		return r;
	}
	e->aux_size = config->common.aux_size;
	e->source.n_cpus = n;
	e->source.cpus = calloc(n, sizeof(*e->source.cpus));
	e->cpus = calloc(n, sizeof(*e->cpus));
	e->scratch = malloc(PERFRECORD_MAX_SIZE);
	if (e->source.cpus == NULL || e->cpus == NULL || e->scratch == NULL)
		return -ENOMEM;
	r = memfd_new("ptsnap-rings", e->size, &e->ring_fd);
	if (r < 0)
		return r;
	e->head = mmap(NULL, e->size, PROT_READ | PROT_WRITE, MAP_SHARED, e->ring_fd, 0);
	if (e->head == MAP_FAILED) {
		e->head = NULL;
		return -errno;
	}
	fill_head(e, config, hz, stride);
	for (uint32_t i = 0; r == 0 && i < n; i++)
		r = set_up_cpu(e, i);
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
	return e->pidfd < 0 ? -errno : 0;
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
	if (r == 0)
		r = choose_clock(e, config->virtual_clock, &hz);
	if (r == 0)
		r = choose_terms(e, config->common.pt_terms, hz, why, why_size);
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
}

int source_emu_kill(const struct source *s, int signal)
{
	if (emu_of(s)->reaped)
		return -ESRCH;
	return kill(emu_of(s)->pid, signal) < 0 ? -errno : 0;
}
