/*
 * Reports for one user: made again by the decoder from a stored bundle, with what belongs to that
 * uid alone (docs/io.ptsnap.recorder.7). One is made at a time, in a thread of its own; a few wait,
 * at most one a uid. What was made is remembered for a while, within limits.
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
	/* What was asked for is there (remake_find), or could not be made. In the loop's thread. */
	void (*on_done)(void *userdata, const char *id, uid_t uid);
};

/* All borrowed. 0 or -errno. */
int remake_new(sd_event *event, const struct config *config, struct store *store,
	       const struct remake_handler *handler, struct remake **ret);
/* Ends what is being made; nobody hears of it. */
void remake_free(struct remake *m);
/* What begins from now on goes by CONFIG, borrowed; what runs, by the one before. */
void remake_use(struct remake *m, const struct config *config);
bool remake_is_running(const struct remake *m);

/* The report of snapshot ID for UID, if it is remembered: the caller's fd, read-only. 0; -ENOENT;
 * -errno. */
int remake_find(struct remake *m, const char *id, uid_t uid, int *ret_fd, uint64_t *ret_size);
/* Has it made, unless that is under way already; on_done comes later. 0; -ENOENT: E has no bundle;
 * -EBUSY: another one is being made for UID, or too many wait; -errno. */
int remake_begin(struct remake *m, const struct entry *e, uid_t uid);
