/*
 * The triggers of a configuration: their names, what fires them, what is then done, and how often.
 *
 * "control", "signal", "unit" and "exit" are built in, and files of these names change them; other
 * files add triggers. Owned by struct config, and const once read. The history of a trigger while
 * the recorder runs is in daemon/trigger/gate.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/base/log.h"
#include "daemon/config/names.h"
#include "proto/bundle/label.h"

/* --- One trigger (trigger_object.c) --- */

enum trigger_on {
	TRIGGER_ON_CONTROL = 0, /* a client asks for it by name */
	TRIGGER_ON_SIGNAL,	/* SIGUSR2 */
	TRIGGER_ON_UNIT,	/* a unit failed, as a client or systemd says */
	TRIGGER_ON_EXIT,	/* COMMAND ended */
	/* Conditions, which the recorder watches itself (daemon/condition). */
	TRIGGER_ON_PRESSURE,   /* tasks stalled for too long (PSI) */
	TRIGGER_ON_KERNEL_LOG, /* a line of the kernel's log */
	TRIGGER_ON_PATH,       /* a file appears */
	TRIGGER_ON_FIFO,       /* another program writes to a FIFO */
	TRIGGER_ON_METRIC,     /* a number of a Prometheus text file crosses a limit */
	TRIGGER_N_ON,
};

enum trigger_key_id {
	TRIGGER_ENABLED = 0,
	TRIGGER_ON,
	TRIGGER_UNITS,
	TRIGGER_WATCH,
	TRIGGER_SIGNAL_USERS,
	TRIGGER_LAST_BYTES,
	TRIGGER_LAST_TIME,
	TRIGGER_DECODE,
	TRIGGER_DEADLINE,
	TRIGGER_REASON,
	TRIGGER_LABEL,
	TRIGGER_BURST,
	TRIGGER_INTERVAL,
	TRIGGER_MIN_FILL,
	TRIGGER_COUNT,
	TRIGGER_EXPIRE_AFTER,
	TRIGGER_EVENTS,
	TRIGGER_EVENTS_WITHIN,
	TRIGGER_PRESSURE, /* from here on, each key belongs to one kind of condition */
	TRIGGER_PRESSURE_STALL,
	TRIGGER_PRESSURE_WINDOW,
	TRIGGER_KERNEL_LOG,
	TRIGGER_KERNEL_LOG_MATCH,
	TRIGGER_PATH_APPEARS,
	TRIGGER_FIFO,
	TRIGGER_METRIC_FILE,
	TRIGGER_METRIC,
	TRIGGER_METRIC_ABOVE,
	TRIGGER_METRIC_BELOW,
	TRIGGER_N_KEYS,
};

#define TRIGGER_MAX_UNITS  64u
#define TRIGGER_MAX_USERS  64u
#define TRIGGER_MAX_EVENTS 32u

/* A key's text in the file. */
struct trigger_value {
	char *text; /* owned; NULL: the default */
	unsigned line;
};

enum trigger_resource { TRIGGER_NO_RESOURCE = 0, TRIGGER_CPU, TRIGGER_MEMORY, TRIGGER_IO };

/* Reports of the kernel that KernelLog= names. */
enum trigger_report {
	TRIGGER_HUNG_TASK = 0,
	TRIGGER_SOFT_LOCKUP,
	TRIGGER_HARD_LOCKUP,
	TRIGGER_RCU_STALL,
	TRIGGER_MACHINE_CHECK,
	TRIGGER_OOPS,
	TRIGGER_OOM_KILL,
	TRIGGER_N_REPORTS,
};

/* The values of a condition's keys. Texts (paths, patterns) are those of the keys themselves:
 * trigger_object_text(). */
struct trigger_condition {
	enum trigger_resource pressure;
	bool pressure_full;		  /* all tasks stalled; else some */
	uint64_t stall_usec, window_usec; /* so much of each window */
	uint32_t kernel_log;		  /* 1u << enum trigger_report */
	double above, below;		  /* infinite: no such limit */
};

struct trigger_object {
	char name[ENTRY_NAME_SIZE];
	bool built_in;
	bool runtime; /* an administrator added the trigger while the recorder runs */
	enum trigger_on on;
	bool enabled;
	bool watch;			/* ON_UNIT: ask systemd which units fail */
	char *units[TRIGGER_MAX_UNITS]; /* ON_UNIT: fnmatch(3) patterns, owned; none: all */
	size_t n_units;
	size_t n_users; /* ON_SIGNAL: users in the value, whose signals count; 0: everybody's */
	uint64_t last_bytes, last_ns; /* ENTRY_ABSENT: everything */
	bool decode;
	uint64_t deadline_ns;		/* ENTRY_ABSENT: none */
	char reason[ENTRY_REASON_SIZE]; /* if the request gives none */
	struct labels labels;
	bool has_burst, has_interval; /* else those of section [Limits] hold */
	uint32_t burst;		      /* 0: no limit */
	uint64_t interval_usec;
	uint64_t min_fill_ns;
	uint32_t count;	      /* snapshots after which the trigger is over; 0: no limit */
	uint64_t expire_usec; /* after which the trigger is over; 0: never */
	/* The condition fires the trigger at each EVENTS'th event within that time; 1: at each. */
	uint32_t events;
	uint64_t events_within_usec;
	struct trigger_condition condition;

	char *file; /* owned; NULL: none */
	struct trigger_value values[TRIGGER_N_KEYS];
};

struct trigger_key {
	const char *name;
	const char *valid; /* for messages */
	bool list;	   /* a second value is appended to the first */
	uint32_t needs;	   /* 1u << enum trigger_on, the kinds that have the key; 0: all */
};
extern const struct trigger_key trigger_keys[TRIGGER_N_KEYS];

/* "control", ... */
const char *trigger_on_name(enum trigger_on on);
/* Whether the recorder arms a condition for triggers of kind ON. */
bool trigger_on_is_condition(enum trigger_on on);
/* "hung-task", ... */
const char *trigger_report_name(enum trigger_report report);
/* Whether NAME is up to 63 letters, digits, "-", "_" and ".", and does not begin with "-" or ".".
 */
bool trigger_name_is_valid(const char *name);

/* Makes a trigger with defaults. NAME is valid. */
void trigger_object_init(struct trigger_object *o, const char *name, enum trigger_on on,
			 bool built_in);
void trigger_object_done(struct trigger_object *o);
/* Sets KEY to TEXT ("": the default), as LINE of the trigger's file says. 0; -EINVAL: TEXT is not
 * valid, and nothing has changed; -ENOMEM. */
int trigger_object_set(struct trigger_object *o, enum trigger_key_id key, const char *text,
		       unsigned line);
/* Finds the key NAME. TRIGGER_N_KEYS: there is none. */
enum trigger_key_id trigger_key_find(const char *name);
/* Copies all but the file. 0, or -ENOMEM and *RET has nothing to free. */
int trigger_object_copy(const struct trigger_object *o, struct trigger_object *ret);
/* Whether A and B wait for the same: both are enabled, of one kind, with the same condition. */
bool trigger_object_same_condition(const struct trigger_object *a, const struct trigger_object *b);

/* What is wrong with the keys of a trigger together. */
struct trigger_problem {
	enum trigger_key_id key; /* is wrong, or, if the trigger lacks it, missing */
	bool drop;		 /* without KEY the trigger means something; else it does not */
	char needs[160];	 /* "Deadline=1s needs Decode=yes" */
};
/* Completes O when all keys are set: without On=, the keys of a condition choose the kind. Then
 * looks for the first problem. False: there is none. */
bool trigger_object_check(struct trigger_object *o, struct trigger_problem *ret);
/* The value of KEY as a file would have it. */
#define TRIGGER_TEXT_SIZE 64
const char *trigger_object_text(const struct trigger_object *o, enum trigger_key_id key,
				char buffer[TRIGGER_TEXT_SIZE]);
/* Whether the trigger fires for UNIT; for a signal of UID (ENTRY_ABSENT: not known). Users whom
 * NAMES do not know (yet) do not count. */
bool trigger_object_has_unit(const struct trigger_object *o, const char *unit);
bool trigger_object_has_user(const struct trigger_object *o, const struct names *names,
			     uint64_t uid);

/* --- All triggers (trigger_set.c) --- */

#define TRIGGER_SET_MAX 64u

struct trigger_set {
	struct trigger_object *all; /* owned: the built-in ones, then those of files by name */
	size_t n;
};

/* Makes a set of the built-in triggers. 0 or -ENOMEM. */
int trigger_set_new(struct trigger_set **ret);
void trigger_set_free(struct trigger_set *s);

struct config_warn;

/* Reads the files triggers.d/ *.conf of DIRECTORIES (conffile_read_drop_ins()) or, unless ONLY is
 * NULL, those of the directory ONLY ("": none). Anything wrong in them is reported and left out.
 * 0 or -ENOMEM. */
int trigger_set_read(struct trigger_set *s, const char *const *directories, const char *only,
		     struct config_warn *warn);

/* Copies all triggers of FROM. The caller's; NULL: no memory. */
struct trigger_set *trigger_set_copy(const struct trigger_set *from);
/* Adds O, which is taken over. 0 or -ENOSPC: there are too many. */
int trigger_set_add(struct trigger_set *s, struct trigger_object *o);
void trigger_set_remove(struct trigger_set *s, const char *name);

/* NULL: there is none. */
struct trigger_object *trigger_set_find(const struct trigger_set *s, const char *name);
/* The trigger that fires when UNIT failed, or for SIGUSR2 of UID (ENTRY_ABSENT: not known): the
 * first enabled one that is not built in and wants it, else the built-in one, else NULL. WATCHED:
 * only triggers with Watch=yes. */
const struct trigger_object *trigger_set_for_unit(const struct trigger_set *s, const char *unit,
						  bool watched);
const struct trigger_object *trigger_set_for_signal(const struct trigger_set *s,
						    const struct names *names, uint64_t uid);
/* Whether any enabled trigger has Watch=yes. */
bool trigger_set_watches(const struct trigger_set *s);
