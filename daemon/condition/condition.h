/*
 * What the recorder watches for its triggers: one armed condition, which tells its events.
 *
 * This room waits for events of the host. condition.c finds the kind of a condition, arms it and
 * polls its descriptor in the loop. condition_kind.h is the table of functions that each kind has.
 * pressure.c, kernel_log.c, path.c, fifo.c and metric_file.c are the kinds. kernel_text.c
 * understands lines of the kernel's log.
 *
 * Decisions that govern the room:
 * - A kind is one descriptor and four functions, so that the loop needs no thread and a new kind
 *   changes nothing else. Settings are keys of the trigger (daemon/config/trigger_set.h).
 * - condition_new() succeeds when the kernel watches already: no event after it is missed. It
 *   fails with one line that says why, and leaves nothing behind. Nothing outlives the recorder's
 *   descriptors, so nothing is left after kill -9 either.
 * - An event is told in words, in one line, which becomes the reason of the snapshot. Text of the
 *   kernel is escaped; bytes that another program wrote to a FIFO are thrown away unread.
 * - There is no condition that runs a command. The recorder has capabilities, sees what all users
 *   do, and may not start programs of others; a timer unit of its own can run the command, and
 *   write to a FIFO or a file of metrics.
 * - Only a condition that can be made without harm has a test: what reads the kernel's log or
 *   measures pressure of memory is not shown that it works by a host that suffers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "daemon/config/trigger_set.h"

#define CONDITION_WHY_SIZE 256
#define CONDITION_NO_CPU   UINT32_MAX

struct condition_event {
	char what[ENTRY_REASON_SIZE]; /* one line without control characters */
	uint64_t pid; /* of the process that the event is about; ENTRY_ABSENT: not known */
	uint32_t cpu; /* where the event happened, to be stopped first; CONDITION_NO_CPU */
	bool test;    /* condition_test() made the event */
	int lost;     /* -errno: the condition saw this event and is lost; else 0 */
};

struct condition_handler {
	void *userdata;
	/* The event has come. Both functions may free the condition, and USERDATA outlives it. */
	void (*on_event)(void *userdata, const struct condition_event *event);
	/* The condition sees no events any more: WHY is one line. */
	void (*on_lost)(void *userdata, const char *why);
};

/* Where the kernel's files are; tests have others. */
struct condition_paths {
	const char *pressure; /* a directory */
	const char *kernel_log;
};
extern const struct condition_paths condition_host_paths;

struct condition;

/* Arms the condition of O, whose kind has one (trigger_on_is_condition()) and whose keys are
 * complete (trigger_object_check()). EVENT and PATHS are borrowed, O is not. 0: events from now on
 * are told in the loop; -errno with WHY: nothing is armed. */
int condition_new(sd_event *event, const struct condition_paths *paths,
		  const struct trigger_object *o, const struct condition_handler *handler,
		  struct condition **ret, char why[CONDITION_WHY_SIZE]);
void condition_free(struct condition *c);
/* Makes the condition's event, or one that takes the same way and that no other program can take
 * for real. 0: on_event() will get it, with test set; -errno with WHY: it cannot be made. */
int condition_test(struct condition *c, char why[CONDITION_WHY_SIZE]);
