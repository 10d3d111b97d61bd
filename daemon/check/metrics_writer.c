/*
 * Looks at what the recorder costs and writes the file of metrics, by a timer. A thread that can be
 * left behind (aside.h) writes one file at a time.
 */
#include "daemon/check/metrics_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "daemon/base/log.h"
#include "proto/base.h"

/* A task: one file to write. */
struct writing {
	struct aside_task task;
	char *path, *text; /* owned */
	size_t size;
	int r;
};

static void writing_run(void *context, struct aside_task *task)
{
	struct writing *t = (struct writing *)(void *)task;

	(void)context;
	t->r = metrics_write(t->path, t->text, t->size);
}

static void writing_free(struct aside_task *task)
{
	struct writing *t = (struct writing *)(void *)task;

	free(t->path);
	free(t->text);
	free(t);
}

static const struct aside_ops ops = {
	.run = writing_run,
	.task_free = writing_free,
};

static void tell(struct metrics_writer *w, const char *path, int r)
{
	if (r < 0 && r != w->error)
		log_warning("%s (MetricsFile=) cannot be written: %s", path, strerror(-r));
	w->error = r;
}

/* Takes the results of files that threads have written, perhaps late. */
static void metrics_writer_take(struct metrics_writer *w)
{
	struct aside_task *task;

	aside_clear(w->aside);
	while ((task = aside_take(w->aside))) {
		const struct writing *t = (const struct writing *)(const void *)task;
		const char *path = w->config->metrics_file;

		if (path && strcmp(t->path, path) == 0) {
			if (w->slow)
				log_info("%s (MetricsFile=) is written again", path);
			w->slow = false;
			tell(w, path, t->r);
		}
		writing_free(task);
	}
}

static int on_written(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	(void)source;
	(void)fd;
	(void)revents;
	metrics_writer_take(userdata);
	return 0;
}

/* Has a thread write the file. 0, ASIDE_FULL or -errno, as aside_ask(). */
static int metrics_writer_ask(struct metrics_writer *w)
{
	struct writing *t = calloc(1, sizeof(*t));
	int r = -ENOMEM;

	if (!t)
		return r;
	t->path = strdup(w->config->metrics_file);
	if (t->path)
		r = metrics_make(w->from, &t->text, &t->size);
	if (r < 0)
		t->text = NULL;
	else
		r = aside_ask(w->aside, &t->task);
	if (r != 0)
		writing_free(&t->task);
	return r;
}

static void metrics_writer_write(struct metrics_writer *w)
{
	const char *path = w->config->metrics_file;
	int r;

	metrics_writer_take(w);
	if (!path)
		return;
	if (aside_pending(w->aside) > 0) {
		if (now_usec(CLOCK_MONOTONIC) - w->asked_usec < METRICS_USEC)
			return;
		if (!w->slow)
			log_warning("%s (MetricsFile=) takes more than %u s to write; nothing is "
				    "written until that is done",
				    path, METRICS_USEC / 1000000);
		w->slow = true;
		w->self.metrics_skipped++;
		return;
	}
	w->asked_usec = now_usec(CLOCK_MONOTONIC);
	r = metrics_writer_ask(w);
	if (r != 0)
		tell(w, path, r < 0 ? r : -EBUSY);
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct metrics_writer *w = userdata;
	int r;

	(void)usec;
	status_look(w->from);
	metrics_writer_write(w);
	r = sd_event_source_set_time_relative(source, METRICS_USEC);
	return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int metrics_writer_init(struct metrics_writer *w, sd_event *event, const struct config *config,
			const struct status_from *from)
{
	int r;

	*w = (struct metrics_writer){.config = config, .from = from};
	selfstat_init(&w->self, now_usec(CLOCK_MONOTONIC));
	r = aside_new(&ops, "", &w->aside);
	if (r >= 0)
		r = sd_event_add_io(event, &w->written, aside_fd(w->aside), EPOLLIN, on_written, w);
	/* The first file is written at once, for users who have just set MetricsFile=. */
	if (r >= 0)
		r = sd_event_add_time_relative(event, &w->timer, CLOCK_MONOTONIC, 0, 0, on_time, w);
	return r < 0 ? r : 0;
}

void metrics_writer_use(struct metrics_writer *w, const struct config *config)
{
	const char *old = w->config->metrics_file, *new = config->metrics_file;

	/* A thread that hangs with the old file is left behind. */
	if (old != new && !(old && new &&strcmp(old, new) == 0)) {
		(void)aside_give_up(w->aside, 0);
		w->slow = false;
	}
	w->config = config;
	w->error = 0;
	if (w->timer)
		sd_event_source_set_time_relative(w->timer, 0);
}

void metrics_writer_done(struct metrics_writer *w)
{
	sd_event_source_disable_unref(TAKE_PTR(w->timer));
	sd_event_source_disable_unref(TAKE_PTR(w->written));
	aside_free(TAKE_PTR(w->aside));
}
