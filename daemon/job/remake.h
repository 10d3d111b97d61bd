/*
 * Makes reports for one user: decodes a stored bundle again, for what belongs to that uid alone
 * (docs/io.ptsnap.recorder.7). One report is made at a time, in a thread of its own; a few requests
 * wait, at most one for each uid. Finished reports are remembered for a while, within limits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <systemd/sd-event.h>

#include "daemon/config/config.h"
#include "daemon/store/entry.h"
#include "daemon/store/store.h"

struct remake;

struct remake_handler {
	void *userdata;
	/* The report is there (remake_find), or could not be made. In the loop's thread. */
	void (*on_done)(void *userdata, const char *id, uid_t uid);
};

/* All borrowed. 0 or -errno. */
int remake_new(sd_event *event, const struct config *config, struct store *store,
	       const struct remake_handler *handler, struct remake **ret);
/* Ends the decoder that runs, without calling the handler. */
void remake_free(struct remake *m);
/* Uses CONFIG, borrowed, for reports that begin from now on. */
void remake_use(struct remake *m, const struct config *config);
bool remake_is_running(const struct remake *m);

/* Gives the remembered report of snapshot ID for UID: the caller's fd, read-only. 0; -ENOENT: not
 * remembered; -errno. */
int remake_find(struct remake *m, const char *id, uid_t uid, int *ret_fd, uint64_t *ret_size);
/* Has the report made, if that is not under way already; on_done comes later. 0; -ENOENT: E has no
 * bundle; -EBUSY: another report is being made for UID, or too many wait; -errno. */
int remake_begin(struct remake *m, const struct entry *e, uid_t uid);
