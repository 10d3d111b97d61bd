/*
 * Has the source look after its events when CPUs go or come, when the host has slept, and as time
 * passes (another user of Intel PT, events in error), and logs the changes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "capture/ring/source.h"
#include "daemon/job/jobs.h"

struct hotplug;

/* SOURCE and JOBS are borrowed. Without messages of the kernel changes are found a little later. 0
 * or -errno. With a source that has no ops->tend nothing is ever done. */
int hotplug_new(sd_event *event, struct source *source, struct jobs *jobs, struct hotplug **ret);
void hotplug_free(struct hotplug *h);
/* Does what had to wait for a job. Call when a job has copied. */
void hotplug_on_captured(struct hotplug *h);

/* Looks now, as something has happened; if a job has the events, when the job has copied. */
void hotplug_look(struct hotplug *h);
/* The time from the last look to the next one. */
uint64_t hotplug_period_usec(const struct hotplug *h);

/* Whether MESSAGE, of SIZE bytes, is a uevent of the kernel about a CPU. The form is that of
 * lib/kobject_uevent.c: "ACTION@DEVPATH", NUL, "KEY=VALUE", NUL, ... */
bool hotplug_is_cpu_event(const char *message, size_t size);
