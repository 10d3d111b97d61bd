/*
 * Parses messages of the bus, and tells new failures of units from known ones.
 *
 * A service that fails has a Result other than "success". With Restart= it may never be in the
 * state "failed", and no job tells of it. Other units have ActiveState=failed. systemd sends the
 * properties of the unit's own type first and then those of all units, with the values at the time
 * of sending (src/core/dbus-unit.c, send_changed_signal()), several times for one failure, and
 * again when systemd reloads.
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
/* A failure that is older is told because of another event. */
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

/* Reads the value of property NAME; M stands in the property's entry of the dictionary. */
static int read_property(sd_bus_message *m, const char *name, bool service, struct unit_news *news)
{
	uint32_t pid;
	int r;

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
	if (service && strcmp(name, "ExecMainPID") == 0) {
		r = sd_bus_message_read(m, "v", "u", &pid);
		if (r >= 0)
			news->pid = pid;
		return r;
	}
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

/* Takes a free place, or that of the unit that failed first. */
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

/* Whether NEWS is about another run of the unit than F, which is then about the run of NEWS. A run
 * without a known invocation is the same one. */
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

bool unitwatch_judge(struct unit_table *t, const struct unit_news *news, uint64_t now_usec)
{
	/* News can say neither: between two runs a service is "inactive", and when its start limit
	 * is hit then, it has the result of the last run again. */
	bool failed = strcmp(news->active, "failed") == 0 ||
		      (*news->result && strcmp(news->result, "success") != 0);
	bool well = strcmp(news->result, "success") == 0 || strcmp(news->active, "active") == 0;
	bool stale = news->changed_usec && now_usec > news->changed_usec &&
		     now_usec - news->changed_usec > STALE_USEC;
	struct unit_failed *f = NULL;

	for (size_t i = 0; i < UNITWATCH_MAX_FAILED && !f; i++)
		if (t->all[i].order && strcmp(t->all[i].unit, news->unit) == 0)
			f = &t->all[i];
	if (!failed) {
		if (f && well)
			f->order = 0;
		return false;
	}
	if (f)
		return is_another_run(f, news) && !stale;
	/* The main process may have ended long before the unit failed; then another message, with
	 * ActiveState=failed, follows. */
	if (stale && *news->result)
		return false;
	f = table_add(t, news->unit);
	(void)is_another_run(f, news);
	return !stale;
}

void unitwatch_describe(const struct unit_news *news, char *ret, size_t size)
{
	bool killed = news->code == CLD_KILLED || news->code == CLD_DUMPED;
	const char *name = sigabbrev_np(news->status);
	char end[64] = "";

	if (news->code == CLD_EXITED)
		snprintf(end, sizeof(end), ", exited with %d", news->status);
	else if (killed && name)
		snprintf(end, sizeof(end), ", killed by SIG%s", name);
	else if (killed)
		snprintf(end, sizeof(end), ", killed by signal %d", news->status);
	snprintf(ret, size, "%s failed%s%s%s", news->unit, *news->result ? ": " : "", news->result,
		 end);
}
