/*
 * Units that fail, as the host's systemd tells on the system bus, for triggers with Watch=yes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "daemon/store/entry.h"

#define UNITWATCH_MAX_FAILED 256u
#define UNITWATCH_TEXT_SIZE  32

/* The news of a unit in one message. Owns nothing. */
struct unit_news {
	char unit[ENTRY_UNIT_SIZE];
	char active[UNITWATCH_TEXT_SIZE]; /* ActiveState; "": not said */
	char result[UNITWATCH_TEXT_SIZE]; /* Result of a service; "": not said */
	bool has_invocation;
	uint8_t invocation[16];
	/* CLOCK_MONOTONIC, of the unit's change or of its main process's end; 0: not said */
	uint64_t changed_usec;
	uint64_t pid;	      /* of the main process that ended; 0: not said */
	int32_t code, status; /* its si_code and si_status (sigaction(2)); 0: not said */
};

/* A unit that has failed and has not been seen well since. Systemd tells a failure several times,
 * and only the first one counts. */
struct unit_failed {
	char unit[ENTRY_UNIT_SIZE];
	bool has_invocation;
	uint8_t invocation[16];
	uint64_t order; /* greater is newer; 0: free */
};
struct unit_table {
	struct unit_failed all[UNITWATCH_MAX_FAILED];
	uint64_t orders;
};

/* Parses M, a PropertiesChanged of /org/freedesktop/systemd1/unit/... 0; -ENOENT: M says nothing of
 * the unit's state; -EBADMSG: M has another form. */
int unitwatch_parse(sd_bus_message *m, struct unit_news *ret);
/* Whether NEWS is a failure that was not known and not long ago. */
bool unitwatch_judge(struct unit_table *t, const struct unit_news *news, uint64_t now_usec);
/* "signal, killed by SIGSEGV", ... */
void unitwatch_describe(const struct unit_news *news, char *ret, size_t size);

struct unitwatch_handler {
	void *userdata;
	void (*on_failed)(void *userdata, const struct unit_news *news);
};

struct unitwatch;

/* Where there is no bus, tries again now and then. 0 or -errno. */
int unitwatch_new(sd_event *event, const struct unitwatch_handler *handler, struct unitwatch **ret);
void unitwatch_free(struct unitwatch *w);
