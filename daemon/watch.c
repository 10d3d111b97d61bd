/*
 * A timer: a look at ourselves, then the file. Called by the manager.
 */
#include "daemon/watch.h"

#include <string.h>
#include <time.h>

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "proto/base.h"

static uint64_t now_usec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

static void write_metrics(struct watch *w)
{
	const char *path = w->config->metrics_file;
	int r = path ? metrics_write(w->from, path) : 0;

	if (r < 0 && r != w->error)
		log_warning("%s (MetricsFile=) cannot be written: %s", path, strerror(-r));
	w->error = r;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct watch *w = userdata;
	int r;

	(void)usec;
	status_look(w->from);
	write_metrics(w);
	r = sd_event_source_set_time_relative(source, METRICS_USEC);
	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int watch_init(struct watch *w, sd_event *event, const struct config *config,
	       const struct status_from *from)
{
	int r;

	*w = (struct watch){.config = config, .from = from};
	selfstat_init(&w->self, now_usec());
	/* The first one soon: whoever set it up wants to see it. */
	r = sd_event_add_time_relative(event, &w->timer, CLOCK_MONOTONIC, 0, 0, on_time, w);
	return r < 0 ? r : 0;
}

void watch_use(struct watch *w, const struct config *config)
{
	w->config = config;
	w->error = 0;
	if (w->timer)
		sd_event_source_set_time_relative(w->timer, 0);
}

void watch_done(struct watch *w)
{
	sd_event_source_disable_unref(TAKE_PTR(w->timer));
}
