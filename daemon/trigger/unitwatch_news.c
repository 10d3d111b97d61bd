/*
 * Messages of the bus -> units that fail. Called by unitwatch.c with each message.
 *
 * A failing service shows Result= other than "success"; with Restart= it may never be seen as
 * "failed", and a job says nothing of it. Other units show ActiveState=failed. systemd sends the
 * properties of the unit's own type first and then those of all units, as they are when it sends
 * (src/core/dbus-unit.c, send_changed_signal()), several times for one failure, and again when
 * it reloads.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/unitname.h"
#include "daemon/trigger/unitwatch.h"
#include "proto/base.h"

#define INTERFACE_UNIT	  "org.freedesktop.systemd1.Unit"
#define INTERFACE_SERVICE "org.freedesktop.systemd1.Service"
/* What happened longer ago is told because of something else. */
#define STALE_USEC 10000000u

static int read_text(sd_bus_message *m, char ret[UNITWATCH_TEXT_SIZE])
{
	const char *text;
	int r = sd_bus_message_read(m, "v", "s", &text);

	if (r < 0)
		return r;
	snprintf(ret, UNITWATCH_TEXT_SIZE, "%s", text);
	return 0;
}

static int read_invocation(sd_bus_message *m, struct unit_news *news)
{
	const void *bytes;
	size_t size;
	int r = sd_bus_message_enter_container(m, SD_BUS_TYPE_VARIANT, "ay");

	if (r < 0)
		return r;
	r = sd_bus_message_read_array(m, 'y', &bytes, &size);
	if (r < 0)
		return r;
	news->has_invocation = size == sizeof(news->invocation);
	if (news->has_invocation)
		memcpy(news->invocation, bytes, size);
	return sd_bus_message_exit_container(m);
}

static int read_pid(sd_bus_message *m, struct unit_news *news)
{
	uint32_t pid;
	int r = sd_bus_message_read(m, "v", "u", &pid);

	if (r >= 0)
		news->pid = pid;
	return r;
}

/* The value of property NAME, whose entry of the dictionary M stands in. */
static int read_property(sd_bus_message *m, const char *name, bool service, struct unit_news *news)
{
	if (!service && strcmp(name, "ActiveState") == 0)
		return read_text(m, news->active);
	if (!service && strcmp(name, "InvocationID") == 0)
		return read_invocation(m, news);
	if (!service && strcmp(name, "StateChangeTimestampMonotonic") == 0)
		return sd_bus_message_read(m, "v", "t", &news->changed_usec);
	if (service && strcmp(name, "Result") == 0)
		return read_text(m, news->result);
	if (service && strcmp(name, "ExecMainExitTimestampMonotonic") == 0)
		return sd_bus_message_read(m, "v", "t", &news->changed_usec);
	if (service && strcmp(name, "ExecMainPID") == 0)
		return read_pid(m, news);
	if (service && strcmp(name, "ExecMainCode") == 0)
		return sd_bus_message_read(m, "v", "i", &news->code);
	if (service && strcmp(name, "ExecMainStatus") == 0)
		return sd_bus_message_read(m, "v", "i", &news->status);
	return sd_bus_message_skip(m, "v");
}

static int read_properties(sd_bus_message *m, bool service, struct unit_news *news)
{
	int r = sd_bus_message_enter_container(m, SD_BUS_TYPE_ARRAY, "{sv}");

	while (r >= 0 &&
	       (r = sd_bus_message_enter_container(m, SD_BUS_TYPE_DICT_ENTRY, "sv")) > 0) {
		const char *name;

		r = sd_bus_message_read(m, "s", &name);
		if (r >= 0)
			r = read_property(m, name, service, news);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r;
}

int unitwatch_parse(sd_bus_message *m, struct unit_news *ret)
{
	const char *path = sd_bus_message_get_path(m), *interface;
	struct unit_news news = {.unit = ""};
	bool service;

	if (!path || unitname_of_bus_path(path, news.unit) < 0 ||
	    sd_bus_message_read(m, "s", &interface) < 0)
		return -EBADMSG;
	service = strcmp(interface, INTERFACE_SERVICE) == 0;
	if (!service && strcmp(interface, INTERFACE_UNIT) != 0)
		return -ENOENT;
	if (read_properties(m, service, &news) < 0)
		return -EBADMSG;
	*ret = news;
	return *news.active || *news.result ? 0 : -ENOENT;
}

static struct unit_failed *table_find(struct unit_table *t, const char *unit)
{
	for (size_t i = 0; i < UNITWATCH_MAX_FAILED; i++)
		if (t->all[i].order && strcmp(t->all[i].unit, unit) == 0)
			return &t->all[i];
	return NULL;
}

/* A free place, or that of the one that failed first. */
static struct unit_failed *table_add(struct unit_table *t, const char *unit)
{
	struct unit_failed *oldest = &t->all[0];

	for (size_t i = 0; i < UNITWATCH_MAX_FAILED; i++)
		if (t->all[i].order < oldest->order)
			oldest = &t->all[i];
	*oldest = (struct unit_failed){.order = ++t->orders};
	strcpy(oldest->unit, unit);
	return oldest;
}

/* Another run of the unit than the one that F is about. One that is not known yet is F's. */
static bool is_another_run(struct unit_failed *f, const struct unit_news *news)
{
	bool differs = f->has_invocation && news->has_invocation &&
		       memcmp(f->invocation, news->invocation, sizeof(f->invocation)) != 0;

	if (news->has_invocation) {
		f->has_invocation = true;
		memcpy(f->invocation, news->invocation, sizeof(f->invocation));
	}
	return differs;
}

static bool is_stale(const struct unit_news *news, uint64_t now_usec)
{
	return news->changed_usec && now_usec > news->changed_usec &&
	       now_usec - news->changed_usec > STALE_USEC;
}

/* Fails; is well; or nothing is said of that: between two runs of a service it is "inactive", and
 * when its start limit is hit then, it has the result of the last run again. */
static bool says_failed(const struct unit_news *news)
{
	return strcmp(news->active, "failed") == 0 ||
	       (*news->result && strcmp(news->result, "success") != 0);
}

static bool says_well(const struct unit_news *news)
{
	return strcmp(news->result, "success") == 0 || strcmp(news->active, "active") == 0;
}

bool unitwatch_judge(struct unit_table *t, const struct unit_news *news, uint64_t now_usec)
{
	struct unit_failed *f = table_find(t, news->unit);
	bool stale = is_stale(news, now_usec);

	if (!says_failed(news)) {
		if (f && says_well(news))
			f->order = 0;
		return false;
	}
	if (f)
		return is_another_run(f, news) && !stale;
	/* The main process may have ended long before the unit failed: what follows says so. */
	if (stale && *news->result)
		return false;
	f = table_add(t, news->unit);
	(void)is_another_run(f, news);
	return !stale;
}

static void describe_end(const struct unit_news *news, char *ret, size_t size)
{
	const char *name = sigabbrev_np(news->status);

	if (news->code == CLD_EXITED)
		snprintf(ret, size, ", exited with %d", news->status);
	else if (news->code != CLD_KILLED && news->code != CLD_DUMPED)
		*ret = '\0';
	else if (name)
		snprintf(ret, size, ", killed by SIG%s", name);
	else
		snprintf(ret, size, ", killed by signal %d", news->status);
}

void unitwatch_describe(const struct unit_news *news, char *ret, size_t size)
{
	char end[64];

	describe_end(news, end, sizeof(end));
	snprintf(ret, size, "%s failed%s%s%s", news->unit, *news->result ? ": " : "", news->result,
		 end);
}
