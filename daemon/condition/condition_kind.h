/*
 * What a kind of condition consists of. Private to this room and its tests.
 *
 * A kind owns one descriptor, which becomes ready when the event may have come. A kind whose events
 * come from another room (a perf event, a ring buffer of BPF) puts that room's descriptor and its
 * callbacks behind these four functions.
 */
#pragma once

#include "daemon/condition/condition.h"

struct condition_setup {
	const struct condition_paths *paths;
	const struct trigger_object *trigger; /* both borrowed while arm() runs */
};

struct condition_kind {
	enum trigger_on on;
	uint32_t epoll; /* EPOLLIN or EPOLLPRI */
	/* Begins to watch. 0: *RET_STATE is for the functions below, and *RET_FD, which belongs to
	 * the state, is ready when there is something to take; -errno with WHY. */
	int (*arm)(const struct condition_setup *setup, void **ret_state, int *ret_fd,
		   char why[CONDITION_WHY_SIZE]);
	/* The descriptor is ready. CONDITION_HAPPENED: RET, in which nothing is known before, has
	 * the event; 0: it was something else;
	 * -errno: the condition is lost. Takes a bounded number of bytes. */
	int (*take)(void *state, struct condition_event *ret);
	void (*disarm)(void *state);
	/* As condition_test(). NULL: the event cannot be made without harm. */
	int (*test)(void *state, char why[CONDITION_WHY_SIZE]);
};
#define CONDITION_HAPPENED 1

extern const struct condition_kind condition_pressure, condition_kernel_log, condition_path,
	condition_fifo, condition_metric;

/* Sets WHY to "WHAT: what R means". Returns R, a -errno. */
int condition_fail(int r, char why[CONDITION_WHY_SIZE], const char *what);
/* The text of a key of the trigger, which has the key. */
const char *condition_text(const struct condition_setup *setup, enum trigger_key_id key);
/* Copies TEXT to RET, cut to its size, with '?' for bytes that are not printable ASCII. */
void condition_copy_plain(const char *text, char *ret, size_t size);
