/*
 * A machine of our own: creates the shared memory, starts its keeper and COMMAND. Used by the
 * recorder, and by ptsnapd --emulate, which keeps the machine for a recorder in another process.
 */
#include "capture/emu/host/source_emu_private.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "capture/emu/host/emu_qemu.h"
#include "capture/perf/pmu.h"
#include "proto/base.h"
#include "proto/memfd.h"

/* Event IDs in sample_id; the values are arbitrary. */
#define PT_EVENT_ID    1000u
#define DUMMY_EVENT_ID 2000u

/* Chooses the clock and its ratios, and the configuration of the trace. */
static int choose_trace(struct source_emu *e, const struct source_emu_config *config, char *why,
			size_t why_size)
{
	struct source *s = &e->source;
	struct pmu pmu;
	int r = 0;

	e->virtual_clock = config->virtual_clock;
	if (e->virtual_clock) {
		e->tsc_hz = EMURING_VIRTUAL_HZ;
		clock_make(&s->clock, e->tsc_hz, 0, 0);
	} else {
		r = clock_calibrate(&s->clock, &e->tsc_hz);
	}
	if (r < 0)
		return r;
	/* With a denominator of 2, the error is at most half a tick of the crystal. */
	s->tsc_art_den = 2;
	s->tsc_art_num = (uint32_t)((e->tsc_hz * 2 + SOURCE_EMU_ART_HZ / 2) / SOURCE_EMU_ART_HZ);
	s->max_nonturbo_ratio = (uint32_t)((e->tsc_hz + 50000000) / 100000000);
	source_emu_pmu(e, &pmu);
	r = preset_config(&pmu, config->common.preset, config->common.pt_terms, &s->pt_config,
			  &s->preset, why, why_size);
	return r < 0 ? r : source_emu_describe_trace(e);
}

static void fill_head(struct source_emu *e, const struct source_emu_config *config,
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
		.tsc_hz = e->tsc_hz,
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
	/* Trace from the first instruction on. */
	c->generation = 1;
	atomic_store(&c->cpu->want, 1);
	return source_emu_use_rings(e, index);
}

/* Creates the shared memory. */
static int lay_out(struct source_emu *e, const struct source_emu_config *config)
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
	if (r == 0)
		r = memfd_seal_size(e->ring_fd);
	if (r < 0)
		return r;
	e->head = mmap(NULL, e->size, PROT_READ | PROT_WRITE, MAP_SHARED, e->ring_fd, 0);
	if (e->head == MAP_FAILED) {
		e->head = NULL;
		return -errno;
	}
	fill_head(e, config, &l);
	emuring_attach(&e->ring, e->head);
	return 0;
}

static int make_rings(struct source_emu *e, const struct source_emu_config *config, char *why,
		      size_t why_size)
{
	uint32_t n = config->n_cpus;
	int r;

	e->aux_size = config->common.aux_size;
	r = source_emu_new_cpus(e, n);
	if (r < 0)
		return r;
	r = lay_out(e, config);
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
	if (!getcwd(directory, sizeof(directory)))
		return -errno;
	return (size_t)snprintf(ret, size, "%s/%s", directory, path) < size ? 0 : -ENAMETOOLONG;
}

/* Starts COMMAND under the emulator, and the keeper. */
static int start(struct source_emu *e, const struct source_emu_config *config, char *why,
		 size_t why_size)
{
	char ring[64], plugin[PATH_MAX], truth[PATH_MAX];
	struct emu_start how = {.qemu = e->qemu,
				.plugin = plugin,
				.ring = ring,
				.truth = config->truth_path ? truth : NULL,
				.repeatable = config->virtual_clock,
				.command = &e->command};
	int r = absolute_path(config->plugin_path, plugin, sizeof(plugin));

	if (r == 0 && access(plugin, R_OK) < 0)
		r = -errno;
	if (r < 0) {
		snprintf(why, why_size, "%s: %s: the software PMU is missing", config->plugin_path,
			 strerror(-r));
		return r;
	}
	if (how.truth)
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
	CLEANUP(source_emu_freep) struct source_emu *e = source_emu_new();
	int r;

	assert(config->n_cpus > 0 && config->n_cpus <= SOURCE_EMU_MAX_CPUS);
	assert(config->max_tasks >= EMURING_MIN_TASKS);
	if (!e)
		return -ENOMEM;
	why[0] = '\0';
	r = emu_command_find(config->argv, &e->command, why, why_size);
	if (r == 0)
		r = emu_qemu_find(config->qemu_path, &e->qemu, why, why_size);
	if (r == 0 && config->virtual_clock && config->n_cpus > 1) {
		snprintf(
			why, why_size,
			"the virtual clock counts the instructions of one CPU and needs --emu-cpus=1");
		r = -EINVAL;
	}
	if (r == 0)
		r = choose_trace(e, config, why, why_size);
	if (r == 0)
		r = make_rings(e, config, why, why_size);
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

int source_emu_offer(const struct source *s, struct emuoffer *ret)
{
	const struct source_emu *e = (const struct source_emu *)s;
	const struct emuring_head *h = &e->ring.fixed;

	*ret = (struct emuoffer){
		.magic = EMUOFFER_MAGIC,
		.version = EMUOFFER_VERSION | EMURING_VERSION << 16,
		.flags = h->flags,
		.n_cpus = h->n_cpus,
		.max_tasks = h->max_tasks,
		.data_size = h->data_size,
		.aux_size = h->aux_size,
		.pt_config = h->pt_config,
		.tsc_hz = h->tsc_hz,
		.clock = h->clock,
		.tsc_art_num = h->tsc_art_num,
		.tsc_art_den = h->tsc_art_den,
		.max_nonturbo_ratio = h->max_nonturbo_ratio,
		.time_shift = h->time_shift,
		.time_mult = h->time_mult,
		.time_zero = h->time_zero,
		.pid = (uint32_t)e->pid,
	};
	snprintf(ret->preset, sizeof(ret->preset), "%s", s->preset);
	snprintf(ret->name, sizeof(ret->name), "%s", e->command.argv[0]);
	if ((size_t)snprintf(ret->qemu, sizeof(ret->qemu), "%s", e->qemu) >= sizeof(ret->qemu))
		return -ENAMETOOLONG;
	return e->ring_fd;
}
