/*
 * Connects to the bus, again when the connection is lost, and asks systemd for news of units.
 *
 * Every client of the bus can send us messages. The bus passes on only the broadcasts that the
 * match allows: those of systemd, which has the sender's name. Messages that are sent to us alone
 * are not compared with a match; systemd sends none of these, so they are ignored.
 */
#include "daemon/trigger/unitwatch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/base/log.h"
#include "proto/base.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define MATCH_UNITS                                                                       \
	"type='signal',sender='" SYSTEMD "',interface='org.freedesktop.DBus.Properties'," \
	"member='PropertiesChanged',path_namespace='/org/freedesktop/systemd1/unit'"
#define MATCH_LOST                                                                              \
	"type='signal',sender='org.freedesktop.DBus.Local',path='/org/freedesktop/DBus/Local'," \
	"interface='org.freedesktop.DBus.Local',member='Disconnected'"
#define RETRY_MIN_USEC 1000000u
#define RETRY_MAX_USEC 60000000u

struct unitwatch {
	sd_event *event; /* borrowed */
	struct unitwatch_handler handler;
	sd_bus *bus; /* NULL: not connected */
	sd_event_source *timer, *exit;
	uint64_t retry_usec;
	bool told; /* logged that there is no bus */
	struct unit_table table;
};

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata);

static void disconnect(struct unitwatch *w)
{
	if (w->bus)
		sd_bus_detach_event(w->bus);
	w->bus = sd_bus_close_unref(w->bus);
}

/* Closes a connection that is of no use, and tries again later. */
static void drop(struct unitwatch *w, int error)
{
	disconnect(w);
	if (!w->told)
		log_warning(
			"units that fail cannot be watched: no systemd on a system bus (%s); tried again "
			"now and then",
			strerror(error));
	w->told = true;
	w->timer = sd_event_source_disable_unref(w->timer);
	if (sd_event_add_time_relative(w->event, &w->timer, CLOCK_MONOTONIC, w->retry_usec, 0,
				       on_timer, w) < 0)
		log_warning("units that fail are not watched any more");
	w->retry_usec = MIN_OF(2 * w->retry_usec, (uint64_t)RETRY_MAX_USEC);
}

static int on_lost(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	(void)m;
	(void)error;
	drop(userdata, ECONNRESET);
	return 0;
}

static int on_changed(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct unitwatch *w = userdata;
	struct unit_news news;

	(void)error;
	if (sd_bus_message_get_destination(m))
		return 0;
	if (unitwatch_parse(m, &news) == 0 &&
	    unitwatch_judge(&w->table, &news, now_usec(CLOCK_MONOTONIC)))
		w->handler.on_failed(w->handler.userdata, &news);
	return 0;
}

/* The answer to Subscribe: systemd tells of its units from now on. */
static int on_subscribed(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct unitwatch *w = userdata;
	const sd_bus_error *e = sd_bus_message_get_error(m);

	(void)error;
	if (e) {
		drop(w, sd_bus_message_get_errno(m));
		return 0;
	}
	log_info("watching units that fail");
	w->told = false;
	w->retry_usec = RETRY_MIN_USEC;
	return 0;
}

/* The answer to the match: without a match no news would come. */
static int on_matched(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	(void)error;
	if (sd_bus_message_is_method_error(m, NULL))
		drop(userdata, sd_bus_message_get_errno(m));
	return 0;
}

static int open_bus(struct unitwatch *w)
{
	int r = sd_bus_open_system(&w->bus);

	if (r >= 0)
		r = sd_bus_set_exit_on_disconnect(w->bus, false);
	if (r >= 0)
		r = sd_bus_add_match(w->bus, NULL, MATCH_LOST, on_lost, w);
	if (r >= 0)
		r = sd_bus_add_match_async(w->bus, NULL, MATCH_UNITS, on_changed, on_matched, w);
	if (r >= 0)
		r = sd_bus_call_method_async(w->bus, NULL, SYSTEMD, "/org/freedesktop/systemd1",
					     SYSTEMD ".Manager", "Subscribe", on_subscribed, w, "");
	return r < 0 ? r : sd_bus_attach_event(w->bus, w->event, SD_EVENT_PRIORITY_NORMAL);
}

static void start(struct unitwatch *w)
{
	int r = open_bus(w);

	if (r < 0)
		drop(w, -r);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	(void)usec;
	start(userdata);
	return 0;
}

/* Disconnects before sd-bus does: sd-bus would wait for a bus that does not answer. */
static int on_exit_of_loop(sd_event_source *source, void *userdata)
{
	(void)source;
	disconnect(userdata);
	return 0;
}

int unitwatch_new(sd_event *event, const struct unitwatch_handler *handler, struct unitwatch **ret)
{
	struct unitwatch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->event = event;
	w->handler = *handler;
	w->retry_usec = RETRY_MIN_USEC;
	r = sd_event_add_exit(event, &w->exit, on_exit_of_loop, w);
	if (r >= 0)
		r = sd_event_source_set_priority(w->exit, SD_EVENT_PRIORITY_IMPORTANT);
	if (r < 0) {
		unitwatch_free(w);
		return r;
	}
	start(w);
	*ret = w;
	return 0;
}

void unitwatch_free(struct unitwatch *w)
{
	if (!w)
		return;
	sd_event_source_disable_unref(w->timer);
	sd_event_source_disable_unref(w->exit);
	disconnect(w);
	free(w);
}
