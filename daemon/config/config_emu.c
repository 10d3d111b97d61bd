/*
 * --emu-offline: CPUs that the emulated machine takes away; and what the options of that machine
 * mean together (a CPU that is taken away must be there), which is checked when all have been read.
 */
#include "daemon/config/config_setting.h"

#include <stdio.h>
#include <string.h>

#include "proto/base.h"

/* "CPU:FROM:TO", cut at its colons. */
static int parse_offline(char *text, struct source_emu_offline *ret)
{
	char *from = strchr(text, ':'), *to = from ? strchr(from + 1, ':') : NULL;
	uint64_t cpu;

	if (!to)
		return -EINVAL;
	*from++ = *to++ = '\0';
	if (config_parse_size(text, &cpu) < 0 || cpu >= SOURCE_EMU_MAX_CPUS ||
	    config_parse_time(from, &ret->from_usec) < 0)
		return -EINVAL;
	ret->cpu = (uint32_t)cpu;
	ret->to_usec = UINT64_MAX;
	if (*to && config_parse_time(to, &ret->to_usec) < 0)
		return -EINVAL;
	return ret->from_usec < ret->to_usec ? 0 : -EINVAL;
}

int config_emu_offline(const struct config_setting *s, const char *text, struct config *c)
{
	char copy[SOURCE_EMU_MAX_OFFLINE * 64], *at = copy, *one;
	size_t n = 0;

	(void)s;
	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return -EINVAL;
	while (*text && (one = strsep(&at, ","))) {
		if (n == SOURCE_EMU_MAX_OFFLINE || parse_offline(one, &c->emu_offline[n]) < 0)
			return -EINVAL;
		n++;
	}
	c->n_emu_offline = n;
	return 0;
}

static bool holds(const struct source_emu_offline *o, uint64_t usec)
{
	return o->from_usec <= usec && usec < o->to_usec;
}

/* As CPUs come back at other times than they go, the fewest are left when one goes: then. */
static int check_offline(const struct config *c, const struct source_emu_offline *at,
			 const struct config_why *why)
{
	uint32_t away = 0;

	if (at->cpu >= c->emu_cpus) {
		snprintf(why->text, why->size,
			 "--emu-offline takes away CPU %u, but there are only %u (--emu-cpus), "
			 "numbered from 0",
			 at->cpu, c->emu_cpus);
		return -EINVAL;
	}
	for (size_t i = 0; i < c->n_emu_offline; i++) {
		const struct source_emu_offline *other = &c->emu_offline[i];

		if (other != at && other->cpu == at->cpu && holds(other, at->from_usec)) {
			snprintf(why->text, why->size,
				 "--emu-offline takes away CPU %u while it is away already",
				 at->cpu);
			return -EINVAL;
		}
		away += holds(other, at->from_usec);
	}
	if (away < c->emu_cpus)
		return 0;
	snprintf(why->text, why->size,
		 "--emu-offline leaves no CPU when CPU %u is taken away; valid: at least one of "
		 "%u (--emu-cpus) stays at all times",
		 at->cpu, c->emu_cpus);
	return -EINVAL;
}

/* A machine is kept by one process and read by another, or both is one. */
static int check_channel(const struct config *c, const struct config_why *why)
{
	const char *wrong = NULL;

	if (c->emulate && c->action == CONFIG_SERVE && !c->command)
		wrong = "--emulate needs a command to run: ptsnapd --emulate=PATH -- COMMAND ARGS";
	else if (c->emulate && c->emu_socket)
		wrong = "--emulate keeps a machine and --emu-socket reads one: not both";
	else if (c->emu_socket && c->source == CONFIG_INTEL_PT)
		wrong = "--emu-socket (EmulatorSocket=) is not for --source=intel_pt";
	else if (c->emu_socket && c->command)
		wrong = "--emu-socket (EmulatorSocket=) is for a command that runs elsewhere: no "
			"COMMAND here";
	if (!wrong)
		return 0;
	snprintf(why->text, why->size, "%s", wrong);
	return -EINVAL;
}

int config_emu_check(const struct config *c, const struct config_why *why)
{
	int r = check_channel(c, why);

	for (size_t i = 0; i < c->n_emu_offline && r == 0; i++)
		r = check_offline(c, &c->emu_offline[i], why);
	return r;
}
