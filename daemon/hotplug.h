/*
 * What happens to the host while its CPUs are traced: CPUs that go and come, sleep, another user of
 * Intel PT, events in error. Has the source look after its events, and tells what came of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "capture/ring/source.h"
#include "daemon/job/jobs.h"

struct hotplug;

/* SOURCE and JOBS are borrowed. Where the kernel's messages cannot be had, what they would tell is
 * found a little later. 0 or -errno; a source without ops->tend: 0, and nothing is ever done. */
int hotplug_new(sd_event *event, struct source *source, struct jobs *jobs, struct hotplug **ret);
void hotplug_free(struct hotplug *h);
/* A job has copied: what had to wait for it is done now. */
void hotplug_on_captured(struct hotplug *h);

/* Looks now, as something has happened; when a job has the events, as soon as it has copied. */
void hotplug_look(struct hotplug *h);
/* When it looks by itself the next time, after the last look. */
uint64_t hotplug_period_usec(const struct hotplug *h);

/* Is MESSAGE, of SIZE bytes, a uevent of the kernel about a CPU? Its form is
 * lib/kobject_uevent.c's: "ACTION@DEVPATH", NUL, "KEY=VALUE", NUL, ... */
bool hotplug_is_cpu_event(const char *message, size_t size);
