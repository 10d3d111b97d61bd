/*
 * One trigger: its name, what fires it, what is then done, and how often that may be. Made out of
 * defaults and of a file; then const. What has become of it while the recorder runs is gate.h's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config/names.h"
#include "proto/bundle/label.h"

#include "daemon/base/entry_size.h"

enum trigger_on {
	TRIGGER_ON_CONTROL = 0, /* a client asks for it by name */
	TRIGGER_ON_SIGNAL,	/* SIGUSR2 */
	TRIGGER_ON_UNIT,	/* a unit has failed, as a client or systemd says */
	TRIGGER_ON_EXIT,	/* COMMAND has ended */
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
	TRIGGER_N_KEYS,
};

#define TRIGGER_MAX_UNITS 64u
#define TRIGGER_MAX_USERS 64u

/* A key as the file said it last. */
struct trigger_value {
	char *text; /* owned; NULL: the default */
	unsigned line;
};

struct trigger_object {
	char name[ENTRY_NAME_SIZE];
	bool built_in;
	enum trigger_on on;
	bool enabled;
	bool watch;			/* ON_UNIT: find out by ourselves which units fail */
	char *units[TRIGGER_MAX_UNITS]; /* owned; ON_UNIT: patterns as of fnmatch(3); none: all */
	size_t n_units;
	size_t n_users; /* ON_SIGNAL: whose signals, as the value says; none: everybody's */
	uint64_t last_bytes, last_ns; /* ENTRY_ABSENT: everything */
	bool decode;
	uint64_t deadline_ns;		/* ENTRY_ABSENT: none */
	char reason[ENTRY_REASON_SIZE]; /* where the request gives none */
	struct labels labels;
	bool has_burst, has_interval; /* else those of section [Limits] */
	uint32_t burst;		      /* 0: no limit */
	uint64_t interval_usec;
	uint64_t min_fill_ns;

	char *file; /* owned; NULL: there is none */
	struct trigger_value values[TRIGGER_N_KEYS];
};

/* What --test-config and messages need of a key. */
struct trigger_key {
	const char *name, *valid;
	bool list; /* said again it adds to what is there */
};
extern const struct trigger_key trigger_keys[TRIGGER_N_KEYS];

/* "control", ... */
const char *trigger_on_name(enum trigger_on on);
/* Up to 63 letters, digits, "-", "_", ".", not beginning with the last two. */
bool trigger_name_is_valid(const char *name);

/* A trigger as it is when no file says anything. NAME is valid. */
void trigger_object_init(struct trigger_object *o, const char *name, enum trigger_on on,
			 bool built_in);
void trigger_object_done(struct trigger_object *o);
/* KEY is TEXT ("": as if nothing had been said), as line LINE of its file says. 0; -EINVAL: TEXT is
 * not valid, and nothing has changed; -ENOMEM. */
int trigger_object_set(struct trigger_object *o, enum trigger_key_id key, const char *text,
		       unsigned line);
/* What KEY is, as a file would say it. */
#define TRIGGER_TEXT_SIZE 64
const char *trigger_object_text(const struct trigger_object *o, enum trigger_key_id key,
				char buffer[TRIGGER_TEXT_SIZE]);
/* Does it fire for UNIT; for a signal of UID (ENTRY_ABSENT: not known)? Users whom NAMES do not
 * know (yet) are nobody. */
bool trigger_object_has_unit(const struct trigger_object *o, const char *unit);
bool trigger_object_has_user(const struct trigger_object *o, const struct names *names,
			     uint64_t uid);
