/*
 * The recorder, watching itself: looks at what it costs and writes the file of its metrics, again
 * and again.
 */
#pragma once

#include <systemd/sd-event.h>

#include "daemon/base/aside.h"
#include "daemon/check/selfstat.h"
#include "daemon/check/status.h"
#include "daemon/config/config.h"

struct watch {
	const struct config *config;	/* borrowed; watch_use */
	const struct status_from *from; /* borrowed; its self is ours */
	struct selfstat self;
	sd_event_source *timer, *written;
	struct aside *aside; /* owned */
	int error;	     /* of the last file that could not be written: said once */
	uint64_t asked_usec; /* when the last one was to be written */
	bool slow;	     /* one takes very long: said once */
};

/* FROM is not looked at before the loop runs. 0 or -errno. */
int watch_init(struct watch *w, sd_event *event, const struct config *config,
	       const struct status_from *from);
void watch_done(struct watch *w);
/* CONFIG is what holds from now on. */
void watch_use(struct watch *w, const struct config *config);
