/*
 * Arms the condition of a trigger and polls its descriptor.
 */
#include "daemon/condition/condition.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/condition/condition_kind.h"
#include "proto/base.h"

const struct condition_paths condition_host_paths = {"/proc/pressure", "/dev/kmsg"};

static const struct condition_kind *const kinds[] = {
	&condition_pressure, &condition_kernel_log, &condition_path,
	&condition_fifo,     &condition_metric,
};

struct condition {
	const struct condition_kind *kind;
	void *state;
	struct condition_handler handler;
	sd_event_source *io;
};

int condition_fail(int r, char why[CONDITION_WHY_SIZE], const char *what)
{
	snprintf(why, CONDITION_WHY_SIZE, "%.200s: %s", what, strerror(-r));
	return r;
}

const char *condition_text(const struct condition_setup *setup, enum trigger_key_id key)
{
	return setup->trigger->values[key].text;
}

void condition_copy_plain(const char *text, char *ret, size_t size)
{
	size_t n = 0;

	for (; text[n] && n + 1 < size; n++)
		ret[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
	ret[n] = '\0';
}

static const struct condition_kind *find_kind(enum trigger_on on)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i]->on == on)
			return kinds[i];
	return NULL;
}

static void tell_lost(const struct condition_handler *handler, enum trigger_on on, int r)
{
	char why[CONDITION_WHY_SIZE];

	condition_fail(r, why, trigger_on_name(on));
	handler->on_lost(handler->userdata, why);
}

/* Tells at most one event. The handler may free the condition. */
static int on_ready(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct condition *c = userdata;
	const struct condition_handler handler = c->handler;
	const enum trigger_on on = c->kind->on;
	struct condition_event event = {.pid = ENTRY_ABSENT, .cpu = CONDITION_NO_CPU};
	int r = c->kind->take(c->state, &event);

	(void)fd;
	(void)revents;
	/* A descriptor that is lost stays ready. */
	if (r < 0 || event.lost < 0)
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
	if (r == CONDITION_HAPPENED)
		handler.on_event(handler.userdata, &event);
	if (r < 0 || event.lost < 0)
		tell_lost(&handler, on, r < 0 ? r : event.lost);
	return 0;
}

int condition_new(sd_event *event, const struct condition_paths *paths,
		  const struct trigger_object *o, const struct condition_handler *handler,
		  struct condition **ret, char why[CONDITION_WHY_SIZE])
{
	const struct condition_setup setup = {paths, o};
	const struct condition_kind *kind = find_kind(o->on);
	struct condition *c;
	int fd, r;

	if (!kind)
		return condition_fail(-EOPNOTSUPP, why, trigger_on_name(o->on));
	c = calloc(1, sizeof(*c));
	if (!c)
		return condition_fail(-ENOMEM, why, o->name);
	c->kind = kind;
	c->handler = *handler;
	r = kind->arm(&setup, &c->state, &fd, why);
	if (r < 0) {
		free(c);
		return r;
	}
	/* Of the priority of records and clients: a log that is flooded keeps nobody waiting. */
	r = sd_event_add_io(event, &c->io, fd, kind->epoll, on_ready, c);
	if (r < 0) {
		condition_free(c);
		return condition_fail(r, why, o->name);
	}
	*ret = c;
	return 0;
}

void condition_free(struct condition *c)
{
	if (!c)
		return;
	sd_event_source_disable_unref(c->io);
	c->kind->disarm(c->state);
	free(c);
}

int condition_test(struct condition *c, char why[CONDITION_WHY_SIZE])
{
	if (c->kind->test)
		return c->kind->test(c->state, why);
	snprintf(why, CONDITION_WHY_SIZE, "an event of kind %s cannot be made without harm",
		 trigger_on_name(c->kind->on));
	return -EOPNOTSUPP;
}
