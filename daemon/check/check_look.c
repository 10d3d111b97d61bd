/*
 * The facts that several parts of the check judge by: the CPU, the CPUs, our own rights, whether
 * perf events can be opened at all.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "capture/perf/perf_attr.h"
#include "capture/proc/number.h"
#include "daemon/check/check_private.h"

/* Of the first CPU: those that differ are told by their PMU. */
static void look_at_cpu(struct check *c, char *text, size_t size)
{
	char flags[8192], number[32];

	check_read(c->paths->proc, "cpuinfo", text, size);
	check_value(text, "vendor_id", c->vendor, sizeof(c->vendor));
	check_value(text, "model name", c->model_name, sizeof(c->model_name));
	check_value(text, "cpu family", number, sizeof(number));
	number_parse(number, 10, UINT32_MAX, "", NULL, &c->family);
	check_value(text, "model", number, sizeof(number));
	number_parse(number, 10, UINT32_MAX, "", NULL, &c->model);
	check_value(text, "flags", flags, sizeof(flags));
	c->flag_pt = check_word(flags, "intel_pt");
	c->flag_hypervisor = check_word(flags, "hypervisor");
}

static void look_at_us(struct check *c, char *text, size_t size)
{
	char value[32];

	check_read(c->paths->proc, "self/status", text, size);
	if (check_value(text, "CapEff", value, sizeof(value)))
		number_parse(value, 16, UINT64_MAX, "", NULL, &c->capabilities);
	c->seccomp = check_value(text, "Seccomp", value, sizeof(value)) && *value == '2';
}

/* CPUs that are there, of those that CPUs= names. */
static void look_at_cpus(struct check *c, char *text, size_t size)
{
	struct cpulist wanted;

	check_read(c->paths->sys, "devices/system/cpu/online", text, size);
	if (cpulist_parse(text, &c->online) < 0 || cpulist_count(&c->online) == 0)
		cpulist_parse("0", &c->online);
	c->n_online = cpulist_count(&c->online);
	if (!c->config->cpus || cpulist_parse(c->config->cpus, &wanted) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(wanted.bits); i++)
		c->online.bits[i] &= wanted.bits[i];
}

uint32_t check_first_cpu(const struct check *c)
{
	for (uint32_t cpu = 0; cpu < CPULIST_MAX; cpu++)
		if (cpulist_has(&c->online, cpu))
			return cpu;
	return 0;
}

/* What each says of itself. Those that cannot be asked are not known. */
static void look_at_cpuids(struct check *c)
{
	c->cpuids = calloc(cpulist_count(&c->online) + 1, sizeof(*c->cpuids));
	for (uint32_t cpu = 0; c->cpuids && cpu < CPULIST_MAX; cpu++)
		if (cpulist_has(&c->online, cpu))
			cpuid_read(&c->paths->calls.cpuid, cpu, &c->cpuids[c->n_cpuids++]);
}

void check_look(struct check *c)
{
	char text[CHECK_TEXT_MAX];
	int64_t number;

	c->emulated = c->config->source == CONFIG_EMULATED || c->config->emu_socket;
	look_at_cpu(c, text, sizeof(text));
	look_at_us(c, text, sizeof(text));
	look_at_cpus(c, text, sizeof(text));
	look_at_cpuids(c);
	c->paranoid = INT_MAX;
	if (check_number(c->paths->proc, "sys/kernel/perf_event_paranoid", &number))
		c->paranoid = (int)MAX_OF(INT_MIN, MIN_OF(number, INT_MAX - 1));
	c->open_error = perf_attr_probe(check_first_cpu(c), false, &c->kinds);
}
