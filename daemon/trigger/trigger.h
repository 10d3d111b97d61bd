/*
 * Every request for a snapshot (of a client, a signal, a unit that fails, the end of COMMAND) comes
 * through here, and is joined, refused or begun.
 *
 * This room decides whether a snapshot is taken. trigger.c chooses the trigger of a request and
 * fires it. gate.c counts how often triggers fire, and for how long CPUs have been traced.
 * trigger_events.c fires triggers by SIGUSR2 and by units that fail. trigger_conditions.c arms
 * conditions, and adds and removes triggers while the recorder runs; armed.c is one condition with
 * its rests. trigger_json.c lists triggers. unitwatch.c is the connection
 * to the bus that tells of units, and unitwatch_news.c understands its messages.
 *
 * Decisions that govern the room:
 * - A trigger has two halves. The object of the configuration says what it does (struct
 *   trigger_object); the gate has its tokens and counters, by name. A reload changes the first half
 *   and keeps the second.
 * - Refusals come in the order in which they cost least: a request that can join a snapshot about
 *   to be taken is never refused; then too many snapshots, too little trace (MinFill=), and last
 *   the limits, as only they take a token.
 * - Users have shares of their own of each trigger's tokens and of the queue, so that a unit that
 *   fails has its snapshot, whatever users do.
 * - The CPU that the sender ran on last is stopped first, as its ring has most to lose.
 * - SIGUSR2 is no queued signal: the kernel keeps one until the recorder reads it, with the sender
 * of the first, and does not say how many came (kernel/signal.c, legacy_queue). Each that is read
 * is counted, and a line of the log for each refusal would let a sender fill the log.
 * - A condition is armed before anybody is told that it is, and what is armed goes on over a reload
 *   that does not change it. A condition with too many events is disarmed for a while, which costs
 *   nothing then, and the log says so.
 * - Triggers that are added while the recorder runs are for administrators: a condition sees the
 *   kernel's log, pressure and files with the recorder's rights, and each snapshot stops all CPUs.
 *   They last until the recorder ends; what shall last longer is a file.
 * - The bus is optional: where there is none, or systemd is not on it, the watcher tries again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "capture/ring/source.h"
#include "daemon/condition/condition.h"
#include "daemon/config/config.h"
#include "daemon/config/trigger_set.h"
#include "daemon/job/jobs.h"
#include "daemon/store/entry.h"
#include "daemon/store/store.h"
#include "daemon/trigger/armed.h"
#include "daemon/trigger/gate.h"
#include "daemon/trigger/unitwatch.h"

struct trigger_answer;

/* Hears of the snapshot of a test: R and ANSWER as of trigger_fire(). */
struct trigger_tested {
	void *userdata;
	void (*fn)(void *userdata, const char *name, int r, const struct trigger_answer *answer);
};

struct trigger {
	struct source *source; /* borrowed, as all below unless said otherwise */
	struct store *store;
	struct jobs *jobs;
	const struct config *config;
	/* Owned: a copy of the configuration's, and triggers of administrators. The gate has the
	 * same order. */
	struct trigger_set *set;
	const struct names *names; /* NULL: users are known by their numbers only */
	struct gate gate;
	struct fill fill;
	struct unitwatch *watch; /* owned; NULL: no trigger wants units watched */
	struct armed_setup arming;
	struct armed *armed[TRIGGER_SET_MAX]; /* owned, in any order */
	struct trigger_tested on_tested;
	bool closed; /* the recorder ends: no new snapshot begins */
	uint64_t n, joined, refused, limited;
	/* Nobody asks for the answer to a signal or to a unit that fails: the log has the refusals,
	 * as far as this bucket has tokens, and then how many it has not. */
	struct bucket telling;
	uint64_t untold;
};

/* Uses CONFIG, which is borrowed until the next trigger_use. 0 or -ENOMEM. */
int trigger_init(struct trigger *t, struct source *source, struct store *store, struct jobs *jobs,
		 const struct config *config);
void trigger_done(struct trigger *t);
/* Uses the triggers of CONFIG from now on, and those that were added while the recorder runs; call
 * trigger_arm() and trigger_watch_units() then. 0; -ENOMEM: all stays as it was. */
int trigger_use(struct trigger *t, const struct config *config);
/* The set has changed: counters and limits follow. */
void trigger_use_set(struct trigger *t);
/* Call when CPUs may have changed state. */
void trigger_look(struct trigger *t);

/* An empty request: everything, decoded, sent by nobody. */
void request_init(struct request *q, const char *kind, const char *name);

/* The functions below choose a trigger for Q, whose unit, pid and uid are set already, and put the
 * trigger's kind, name and actions into Q. 0, or TRIGGER_UNKNOWN with Q as it was: no trigger is to
 * fire. */

/* For a client that named the trigger NAME; "unit" stands for the trigger that is for Q's unit. */
int trigger_choose(const struct trigger *t, const char *name, struct request *q);
/* For SIGUSR2. */
int trigger_choose_signal(const struct trigger *t, struct request *q);
/* For an event of the condition of trigger NAME. */
int trigger_choose_condition(const struct trigger *t, const char *name, struct request *q);
/* For Q's unit, which the watcher saw fail. */
int trigger_choose_watched(const struct trigger *t, struct request *q);

struct trigger_answer {
	char id[ENTRY_ID_SIZE]; /* with 0 */
	uint64_t retry_usec;	/* with TRIGGER_LIMITED: not before that time */
	char why[256];		/* with a refusal: one line */
};

/* Asks for a snapshot. Where no trigger was chosen, the built-in one of the request's kind fires.
 * 0: RET's id is a new snapshot, or one that is about to be taken and serves this request as well,
 * which costs no token; a refusal; or -errno. */
#define TRIGGER_BUSY	 1
#define TRIGGER_CLOSED	 2
#define TRIGGER_LIMITED	 3
#define TRIGGER_UNFILLED 4 /* MinFill= */
#define TRIGGER_UNKNOWN	 5 /* there is no such trigger, or it is not enabled, or over */
int trigger_fire(struct trigger *t, const struct request *request, struct trigger_answer *ret);

/* The history of each trigger, for Status. The caller's; NULL: no memory. */
struct json_object *trigger_to_json(const struct trigger *t);
/* The same, with state, events and settings, for ListTriggers. */
struct json_object *trigger_list_to_json(const struct trigger *t);

/* The CPU that process PID ran on last, as PROC ("/proc") tells; ENTRY_NO_CPU: not known. */
uint32_t sender_last_cpu(const char *proc, uint64_t pid);

/* trigger_events.c: watches units that fail if a trigger wants that, or stops. 0 or -errno. */
int trigger_watch_units(struct trigger *t, sd_event *event);
/* SIGUSR2, which must be blocked, fires T with the sender's pid and uid. */
int trigger_add_signal(struct trigger *t, sd_event *event, sd_event_source **ret);
/* Logs that there is no snapshot for WHAT, or counts what it does not log. */
void trigger_tell_refused(struct trigger *t, const struct log_fields *fields, const char *what,
			  const char *why);

/* trigger_conditions.c: arms the conditions of all triggers that have one and are not armed, and
 * disarms those that no trigger waits for. A condition that cannot be armed is logged and tried
 * again. 0 or -ENOMEM. */
int trigger_arm(struct trigger *t, sd_event *event);
/* The place in `armed` of the condition of trigger NAME; TRIGGER_SET_MAX: there is none. */
size_t trigger_find_armed(const struct trigger *t, const char *name);
/* Disarms triggers that are over. */
void trigger_end_conditions(struct trigger *t);
void trigger_disarm(struct trigger *t);
/* Adds a trigger with the N SETTINGS, "KEY=VALUE" as in a file. 0: its condition is armed; -EINVAL,
 * -EEXIST, -ENOSPC or another -errno, with one line in WHY: nothing has changed. */
int trigger_add(struct trigger *t, const char *name, const char *const *settings, size_t n,
		char why[CONDITION_WHY_SIZE]);
/* 0; -ENOENT: there is no such trigger; -EPERM: a file has it, or it is built in. */
int trigger_remove(struct trigger *t, const char *name);
/* Makes the event of trigger NAME. 0: on_tested hears of the snapshot; TRIGGER_UNKNOWN; -errno with
 * WHY: the event cannot be made. */
int trigger_test(struct trigger *t, const char *name, char why[CONDITION_WHY_SIZE]);
