/*
 * --source=auto|intel_pt|emulated -> struct source. Called once by main.c. The hardware traces all
 * that runs, so there COMMAND is an ordinary child; the emulated PMU traces COMMAND alone.
 */
#include "daemon/source_choice.h"

#include <stdio.h>
#include <string.h>

#include "daemon/check.h"
#include "proto/base.h"

#define SYSFS_PMUS "/sys/bus/event_source/devices"
#define CPUINFO	   "/proc/cpuinfo"

static struct source_config choice_common(const struct config *config)
{
	return (struct source_config){
		.data_size = config->data_size,
		.aux_size = config->aux_size,
		.pt_terms = config->pt_terms,
	};
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
	int r = source_emu_open(&emu, ret, why, why_size);

	if (r == 0)
		command_adopt(command, config->command, *ret);
	return r;
}

static int choice_hardware(const struct config *config, const sigset_t *mask, struct source **ret,
			   struct command *command, char *why, size_t why_size)
{
	const struct source_config common = choice_common(config);
	int r = source_perf_open(&common, ret, why, why_size);

	if (r < 0 || !config->command)
		return r;
	r = command_spawn(command, config->command, mask);
	if (r == 0)
		return 0;
	snprintf(why, why_size, "%s cannot be started: %s", config->command[0], strerror(-r));
	source_free(TAKE_PTR(*ret));
	return r;
}

/* Without a PMU and without a COMMAND there is nothing to trace. 0: intel_pt, 1: emulated. */
static int choice_auto(const struct config *config, char *why, size_t why_size)
{
	static const char hint[] = "; ptsnapd -- COMMAND ARGS traces COMMAND in software instead";
	int r = check_intel_pt(SYSFS_PMUS, CPUINFO, why, why_size);

	if (r == 0)
		return 0;
	if (config->command)
		return 1;
	strncat(why, hint, why_size - strlen(why) - 1);
	return r;
}

int source_choose(const struct config *config, const sigset_t *mask, struct source **ret,
		  struct command *ret_command, char *why, size_t why_size)
{
	int emulated = config->source == CONFIG_EMULATED;

	*ret_command = (struct command){.pidfd = -EBADF};
	*why = '\0';
	if (config->source == CONFIG_AUTO)
		emulated = choice_auto(config, why, why_size);
	if (emulated < 0)
		return emulated;
	return emulated ? choice_emulated(config, ret, ret_command, why, why_size)
			: choice_hardware(config, mask, ret, ret_command, why, why_size);
}
