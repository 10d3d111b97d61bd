/*
 * --emu-...: the software PMU and the machine of virtual CPUs around it. Called by config.c while
 * it reads the command line; what options mean together (a CPU that is taken away must be there) is
 * checked when all have been read.
 */
#include "daemon/config_private.h"

#include <stdio.h>
#include <string.h>

#include "proto/base.h"
#include "proto/emuring.h"

_Static_assert(EMURING_MIN_TASKS == 16 && EMURING_MAX_TASKS == 4096,
	       "--emu-tasks says which numbers are valid");
_Static_assert(SOURCE_EMU_MAX_CPUS == 64 && SOURCE_EMU_MAX_CPUS <= EMURING_MAX_CPUS,
	       "--emu-cpus says which numbers are valid");

/* What is valid for the option of a number. */
struct config_range {
	const char *option;
	uint64_t min, max;
	bool zero; /* 0 is valid, too */
	const char *valid;
};

/* clang-format off */
static const struct config_range range_cpus = {
	"emu-cpus", 1, SOURCE_EMU_MAX_CPUS, false, "a number from 1 to 64"};
static const struct config_range range_tasks = {
	"emu-tasks", EMURING_MIN_TASKS, EMURING_MAX_TASKS, false, "a number from 16 to 4096"};
static const struct config_range range_quantum = {
	"emu-quantum", 1000, 1000000000, false,
	"a number of instructions from 1000 to 1000000000 (suffixes K, M, G: binary)"};
static const struct config_range range_overflow = {
	"emu-overflow", 256, 1u << 30, true, "0 (none) or a size from 256 to 1G"};
static const struct config_range range_lose = {
	"emu-lose", 1, UINT32_MAX, true, "0 (none) or a number up to 4294967295"};
/* clang-format on */

static int config_number(const struct config_range *range, const char *value, uint64_t *ret,
			 const struct config_why *why)
{
	uint64_t v;

	if (config_parse_size(value, &v) < 0 ||
	    ((v < range->min || v > range->max) && !(range->zero && v == 0)))
		return config_bad_value(range->option, value, range->valid, why);
	*ret = v;
	return 0;
}

static int config_number32(const struct config_range *range, const char *value, uint32_t *ret,
			   const struct config_why *why)
{
	uint64_t v;
	int r = config_number(range, value, &v, why);

	if (r == 0)
		*ret = (uint32_t)v;
	return r;
}

static int config_clock(const char *value, struct config *c, const struct config_why *why)
{
	c->emu_virtual_clock = strcmp(value, "virtual") == 0;
	if (c->emu_virtual_clock || strcmp(value, "host") == 0)
		return 0;
	return config_bad_value("emu-clock", value, "host, virtual", why);
}

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

static int config_offline(const char *value, struct config *c, const struct config_why *why)
{
	char text[64];

	if (c->n_emu_offline == SOURCE_EMU_MAX_OFFLINE) {
		snprintf(why->text, why->size, "--emu-offline=%s is one too many; valid: up to %u",
			 value, SOURCE_EMU_MAX_OFFLINE);
		return -EINVAL;
	}
	if (snprintf(text, sizeof(text), "%s", value) < (int)sizeof(text) &&
	    parse_offline(text, &c->emu_offline[c->n_emu_offline]) == 0) {
		c->n_emu_offline++;
		return 0;
	}
	return config_bad_value("emu-offline", value,
				"CPU:FROM:TO with FROM before TO, such as 1:200ms:500ms; without "
				"TO (1:200ms:) the CPU stays away",
				why);
}

int config_emu_option(int code, const char *v, struct config *c, const struct config_why *why)
{
	switch (code) {
	case OPTION_EMU_PLUGIN: return config_path("emu-plugin", v, c->emu_plugin, why);
	case OPTION_EMU_QEMU: return config_text("emu-qemu", v, &c->emu_qemu, why);
	case OPTION_EMU_TRUTH: return config_text("emu-truth", v, &c->emu_truth, why);
	case OPTION_EMU_CLOCK: return config_clock(v, c, why);
	case OPTION_EMU_CPUS: return config_number32(&range_cpus, v, &c->emu_cpus, why);
	case OPTION_EMU_QUANTUM: return config_number(&range_quantum, v, &c->emu_quantum, why);
	case OPTION_EMU_OVERFLOW:
		return config_number(&range_overflow, v, &c->emu_overflow_bytes, why);
	case OPTION_EMU_LOSE: return config_number32(&range_lose, v, &c->emu_lose_every, why);
	case OPTION_EMU_OFFLINE: return config_offline(v, c, why);
	case OPTION_EMU_BUILD_ID: c->emu_build_id = true; return 0;
	case OPTION_EMU_TASKS: return config_number32(&range_tasks, v, &c->emu_max_tasks, why);
	default: return -EINVAL;
	}
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

int config_emu_check(const struct config *c, const struct config_why *why)
{
	int r = 0;

	for (size_t i = 0; i < c->n_emu_offline && r == 0; i++)
		r = check_offline(c, &c->emu_offline[i], why);
	return r;
}
