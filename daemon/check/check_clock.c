/*
 * Whether times of the trace can be told in those of the host, and what it costs. Called by
 * check.c.
 */
#include <stdio.h>
#include <string.h>

#include "capture/perf/perf_attr.h"
#include "capture/perf/perf_event.h"
#include "capture/perf/preset.h"
#include "capture/proc/budget.h"
#include "daemon/check/check_private.h"
#include "proto/perf/perfrecord.h"

/* Does the kernel say how its clock follows from the TSC? arch/x86/events/core.c,
 * arch_perf_update_userpage. */
static bool kernel_converts(const struct check *c)
{
	static const uint64_t data = BUDGET_PAGE;
	uint8_t scratch[PERFRECORD_MAX_SIZE];
	struct perf_event_attr attr;
	struct perf_event event;
	uint64_t aux = 0;
	bool ret;

	perf_attr_sideband(0, false, &attr);
	if (perf_event_start(&event, &attr, check_first_cpu(c), data, &aux, scratch) < 0)
		return true; /* not this part's to say */
	ret = event.ring.page->cap_user_time_zero;
	perf_event_stop(&event);
	return ret;
}

static void check_source_of_time(struct check *c)
{
	char text[64];

	check_read(c->paths->sys, "devices/system/clocksource/clocksource0/current_clocksource",
		   text, sizeof(text));
	if (c->open_error == 0 && !kernel_converts(c))
		check_say(
			c, FINDING_WARNING, "clock",
			"dmesg | grep -i tsc; tsc=reliable on the kernel's command line if the "
			"firmware is to be trusted",
			"the kernel does not tell how its clock follows from the TSC (clocksource "
			"%s): times of the trace are not those of the sideband, threads cannot be "
			"told apart",
			*text ? text : "unknown");
	else if (*text && strcmp(text, "tsc") != 0)
		check_say(
			c, FINDING_WARNING, "clock",
			"dmesg | grep -i tsc; tsc=reliable on the kernel's command line if the "
			"firmware is to be trusted",
			"the clocksource is %s, not tsc: the kernel found the TSC unstable, times "
			"of the trace may drift from the host's",
			text);
	else
		check_say(c, FINDING_OK, "clock", "", "the kernel's clock follows the TSC");
}

/* SDM volume 2, CPUID, leaf 15H: EBX / EAX is TSC / crystal; ECX its frequency, often 0. */
static void check_crystal(struct check *c)
{
	bool mtc = pmu_term_value(&c->pmu, c->pt_config, "mtc") != 0;

	if (!mtc || (c->pmu.tsc_art_num && c->pmu.tsc_art_den))
		return;
	check_say(c, FINDING_WARNING, "crystal", "Terms= without mtc, or with a smaller psb_period",
		  "the ratio of TSC and crystal is unknown (tsc_art_ratio): MTC packets cannot be "
		  "told in time");
}

static void check_cost(struct check *c)
{
	uint64_t cost = preset_mtc_cost(&c->pmu, c->pt_config);

	if (cost > PRESET_MTC_BYTES_PER_SECOND)
		check_say(
			c, FINDING_WARNING, "mtc", "a greater mtc_period= in Terms=, or Preset=std",
			"MTC packets cost %llu kB/s of each ring, also while a CPU is in the kernel",
			(unsigned long long)cost / 1000);
	else if (cost)
		check_say(c, FINDING_OK, "mtc", "", "MTC packets cost at most %llu kB/s a CPU",
			  (unsigned long long)(cost + 999) / 1000);
}

void check_clock(struct check *c)
{
	if (c->emulated)
		return;
	if (c->have_pmu)
		check_source_of_time(c);
	if (!c->have_pmu || !c->have_config)
		return;
	check_crystal(c);
	check_cost(c);
}
