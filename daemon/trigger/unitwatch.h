/*
 * Units that fail, as the system's systemd tells them on the bus. Optional: for triggers with
 * Watch=yes; where there is no bus, it tries again now and then.
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

/* What one message says of a unit; a value. */
struct unit_news {
	char unit[ENTRY_UNIT_SIZE];
	char active[UNITWATCH_TEXT_SIZE]; /* ActiveState; "": not said */
	char result[UNITWATCH_TEXT_SIZE]; /* Result of a service; "": not said */
	bool has_invocation;
	uint8_t invocation[16];
	uint64_t changed_usec; /* CLOCK_MONOTONIC: of the change, of the main process' end; 0 */
	uint64_t pid;	       /* of the main process that ended; 0: not said */
	int32_t code, status;  /* its si_code and si_status (sigaction(2)); 0 */
};

/* Units that have failed and have not been seen well since: the same failure is told several times.
 */
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

/* M, a PropertiesChanged of /org/freedesktop/systemd1/unit/..., into RET. 0; -ENOENT: it says
 * nothing of that; -EBADMSG: it is not of that form. */
int unitwatch_parse(sd_bus_message *m, struct unit_news *ret);
/* Whether NEWS is a failure that was not known and is not long ago. */
bool unitwatch_judge(struct unit_table *t, const struct unit_news *news, uint64_t now_usec);
/* "signal, killed by SIGSEGV", ... */
void unitwatch_describe(const struct unit_news *news, char *ret, size_t size);

struct unitwatch_handler {
	void *userdata;
	void (*on_failed)(void *userdata, const struct unit_news *news);
};

struct unitwatch;

/* 0 or -errno; that there is no bus is no error. */
int unitwatch_new(sd_event *event, const struct unitwatch_handler *handler, struct unitwatch **ret);
void unitwatch_free(struct unitwatch *w);
