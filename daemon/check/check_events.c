/*
 * Perf events as ptsnapd would open them, really opened and closed again: what the kernel says is
 * worth more than any file. Called by check.c.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "capture/perf/perf_attr.h"
#include "capture/perf/perf_sys.h"
#include "capture/perf/preset.h"
#include "capture/proc/holders.h"
#include "daemon/check/check_private.h"

static void check_sideband(struct check *c)
{
	char missing[128];

	if (c->open_error == 0) {
		perf_attr_missing(c->kinds, missing, sizeof(missing));
		if (*missing)
			check_say(c, FINDING_WARNING, "sideband",
				  "run a newer kernel (5.9 tells all)",
				  "this kernel does not tell of: %s", missing);
		else
			check_say(c, FINDING_OK, "sideband", "",
				  "perf events can be opened; the kernel tells everything");
		return;
	}
	/* check_rights.c has said why. */
	if (c->open_error == -EPERM || c->open_error == -EACCES || c->open_error == -ENOSYS)
		check_say(c, FINDING_FAILURE, "sideband", "see above",
			  "perf events cannot be opened: %s", strerror(-c->open_error));
	else
		check_say(c, FINDING_FAILURE, "sideband",
			  c->open_error == -EMFILE ? "LimitNOFILE=65536 in the unit" : "",
			  "perf events cannot be opened on CPU %u: %s", check_first_cpu(c),
			  strerror(-c->open_error));
}

/* Nobody else than a recorder, which has it for us? */
static const struct holder *recorder_of(const struct holders *h)
{
	for (size_t i = 0; i < MIN_OF(h->n, HOLDERS_MAX); i++)
		if (strcmp(h->all[i].comm, "ptsnapd") == 0)
			return &h->all[i];
	return NULL;
}

static void explain_busy(struct check *c)
{
	const struct holder *recorder;
	struct holders holders;
	char names[200];

	holders_find(c->paths->proc, (uint32_t)getpid(), &holders);
	holders_format(&holders, names, sizeof(names));
	recorder = recorder_of(&holders);
	if (recorder)
		check_say(
			c, FINDING_OK, "pt", "",
			"Intel PT is in use by a recorder, ptsnapd (pid %u); ptsnapctl check asks "
			"it",
			recorder->pid);
	else
		check_say(c, FINDING_FAILURE, "pt",
			  "end the one that traces; ptsnapd takes Intel PT as soon as it is free",
			  "Intel PT is in use by somebody else; perf events are open in: %s%s",
			  names, holders.partial ? " (not all processes could be seen)" : "");
}

/* The configuration as the source will have it. False: it is not valid here, which was said. */
static bool choose_config(struct check *c, uint64_t *ret)
{
	char why[256] = "no memory";
	const char *preset;
	int r = preset_config(&c->pmu, c->config->preset, c->config->pt_terms, ret, &preset, why,
			      sizeof(why));

	if (r == 0)
		return true;
	check_say(c, FINDING_FAILURE, "terms", "change Preset= or Terms= (--preset=, --pt=)",
		  "this configuration is not for this CPU: %s", why);
	return false;
}

static void explain_pt(struct check *c, int r)
{
	if (r == -EBUSY)
		explain_busy(c);
	else if (r == -EPERM || r == -EACCES)
		check_say(c, FINDING_FAILURE, "pt",
			  check_trace_kernel(c) ? "CAP_PERFMON or CAP_SYS_ADMIN, or Trace=user"
						: "CAP_PERFMON or CAP_SYS_ADMIN",
			  "the intel_pt event is refused: %s", strerror(-r));
	else if (r == -EINVAL)
		check_say(c, FINDING_FAILURE, "pt", "change Preset= or Terms= (--preset=, --pt=)",
			  "the kernel does not take the intel_pt event with this configuration");
	else
		check_say(c, FINDING_FAILURE, "pt", "dmesg | tail", "the intel_pt event: %s",
			  strerror(-r));
}

static void check_pt(struct check *c)
{
	struct perf_event_attr attr;
	uint64_t config;
	int r;

	if (!c->have_pmu || !choose_config(c, &config))
		return;
	c->have_config = true;
	c->pt_config = config;
	if (c->paths->leave_pt || c->open_error < 0)
		return;
	perf_attr_pt(c->pmu.type, config, c->config->trace ? c->config->trace : SOURCE_TRACE_USER,
		     &attr);
	r = perf_sys_open(&attr, check_first_cpu(c));
	if (r < 0) {
		explain_pt(c, r);
		return;
	}
	close(r);
	check_say(c, FINDING_OK, "pt", "", "Intel PT is free and can be taken");
}

void check_events(struct check *c)
{
	check_sideband(c);
	check_pt(c);
}
