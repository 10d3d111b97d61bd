/*
 * Opens the source that --source=auto|intel_pt|emulated means, and starts COMMAND.
 *
 * The hardware traces all that runs, so there COMMAND is an ordinary child. The emulated PMU traces
 * COMMAND alone; with EmulatorSocket= another process (emulate.c) has started COMMAND. auto takes
 * the hardware where there is a PMU, else the emulated PMU if there is a COMMAND, else the
 * hardware's sideband alone.
 */
#include "daemon/manager.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/perf/source_perf.h"
#include "proto/base.h"

#define PMU_TYPE "/sys/bus/event_source/devices/intel_pt/type"

static struct source_config choice_common(const struct config *config)
{
	return (struct source_config){
		.data_size = config->data_size,
		.aux_size = config->aux_size,
		.pt_terms = config->pt_terms,
		.preset = config->preset,
		.trace = config->trace,
		.cpus = config->cpus,
		.ring_budget = config->ring_budget,
		.degrade = !config->require_pt,
	};
}

static int check_traced(const struct config *config, char *why, size_t why_size)
{
	/* Where auto chose the emulated source, Trace=both was meant for the host. Then user code
	 * is traced, and the trace says so. */
	if (config->trace == SOURCE_TRACE_KERNEL ||
	    (config->trace == SOURCE_TRACE_BOTH && config->source == CONFIG_EMULATED)) {
		snprintf(why, why_size,
			 "the emulated source has no kernel to trace: use --trace=user");
		return -EINVAL;
	}
	return 0;
}

static int choice_emulated(const struct config *config, struct source **ret,
			   struct command *command, char *why, size_t why_size)
{
	const struct source_emu_config emu = {
		.common = choice_common(config),
		.n_cpus = config->emu_cpus,
		.max_tasks = config->emu_max_tasks,
		.quantum = config->emu_quantum,
		.overflow_bytes = config->emu_overflow_bytes,
		.lose_every = config->emu_lose_every,
		.build_id = config->emu_build_id,
		.offline = config->emu_offline,
		.n_offline = config->n_emu_offline,
		.virtual_clock = config->emu_virtual_clock,
		.truth_path = config->emu_truth,
		.plugin_path = config->emu_plugin,
		.qemu_path = config->emu_qemu,
		.argv = config->command,
	};
	int r = check_traced(config, why, why_size);

	if (r < 0)
		return r;
	r = source_emu_open(&emu, ret, why, why_size);
	if (r == 0)
		command_adopt(command, config->command, *ret);
	return r;
}

int source_choose(const struct config *config, const sigset_t *mask, struct source **ret,
		  struct command *ret_command, char *why, size_t why_size)
{
	bool automatic = config->source == CONFIG_AUTO && config->command && !config->require_pt;
	struct source_config common;
	int r;

	*ret_command = (struct command){.pidfd = -EBADF};
	*why = '\0';
	if (config->emu_socket) {
		r = check_traced(config, why, why_size);
		if (r == 0)
			r = source_emu_attach(config->emu_socket, config->ring_budget, ret, why,
					      why_size);
		if (r == 0)
			command_attach(ret_command, *ret);
		return r;
	}
	if (config->source == CONFIG_EMULATED || config->emulate ||
	    (automatic && access(PMU_TYPE, F_OK) < 0))
		return choice_emulated(config, ret, ret_command, why, why_size);
	common = choice_common(config);
	r = source_perf_open(&common, ret, why, why_size);
	if (r < 0 || !config->command)
		return r;
	r = command_spawn(ret_command, config->command, mask);
	if (r < 0) {
		snprintf(why, why_size, "%s cannot be started: %s", config->command[0],
			 strerror(-r));
		source_free(TAKE_PTR(*ret));
	}
	return r;
}
