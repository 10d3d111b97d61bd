/*
 * The facts known of one snapshot: struct entry, which is the control protocol's type Report as
 * JSON, and struct request, which is what somebody asked for. The file ID.entry has the same JSON,
 * so that a restarted recorder knows its old snapshots.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "proto/bundle/label.h"

#include "daemon/base/log.h"

enum entry_state {
	ENTRY_QUEUED = 0,
	ENTRY_CAPTURING,
	ENTRY_DECODING,
	ENTRY_DONE,
	ENTRY_FAILED,
};

/* Part of the error text of a snapshot that a former run of the recorder began. */
#define ENTRY_TAKEN_UP "decoded by a recorder that came after the one which took it"

/* A value: copied freely, owns nothing. Absent strings are "", absent numbers ENTRY_ABSENT. */
struct entry {
	char id[ENTRY_ID_SIZE];
	enum entry_state state;
	char trigger[16];	    /* kind of trigger: "control", "signal", "exit", "unit" */
	char name[ENTRY_NAME_SIZE]; /* which trigger of that kind */
	char reason[ENTRY_REASON_SIZE];
	char unit[ENTRY_UNIT_SIZE]; /* the unit that the snapshot is about */
	struct labels labels;
	uint64_t pid, uid;		   /* of the process that asked */
	char sender_unit[ENTRY_UNIT_SIZE]; /* the unit in which that process ran */
	char coredump[ENTRY_CORE_SIZE];	   /* systemd-coredump's file of the same process */
	uint64_t realtime_usec;
	char boot_id[40];
	uint64_t raw_bytes; /* of trace, all CPUs */
	uint64_t bundle_bytes, report_bytes, gaps;
	char error[ENTRY_ERROR_SIZE];
	bool pinned; /* is not removed to make room */
};

void entry_init(struct entry *e);
/* Whether the snapshot is done or failed. */
bool entry_ended(const struct entry *e);
/* The caller's; NULL: no memory. */
struct json_object *entry_to_json(const struct entry *e);
/* Adds LIST, {KEY: VALUE, ...}, to RET. 0; -EBADMSG: LIST is something else; or the first error of
 * labels_add() (-EINVAL, -E2BIG), after which nothing is added. */
int entry_read_labels(struct json_object *list, struct labels *ret);
/* 0 or -EBADMSG. */
int entry_from_json(struct json_object *o, struct entry *ret);
/* "queued", ... */
const char *entry_state_name(enum entry_state state);
/* The fields that all log events of this snapshot have; strings are borrowed from E. */
void entry_log_fields(const struct entry *e, struct log_fields *ret);

#define ENTRY_NO_CPU UINT32_MAX

/* A request for a snapshot: who asks, why, for how much, and when. A value. The trigger's source
 * (control, signal, exit, unit) fills it in; trigger.c adds the times. */
struct request {
	char kind[16];		    /* "control", "signal", "exit", "unit" */
	char name[ENTRY_NAME_SIZE]; /* which one of that kind; the configured trigger's name */
	/* The configured trigger that was chosen (trigger_choose()); "": the built-in one of
	 * that kind. */
	char trigger[ENTRY_NAME_SIZE];
	char reason[ENTRY_REASON_SIZE];
	char unit[ENTRY_UNIT_SIZE]; /* that the snapshot is about, for example a failed one; "" */
	struct labels labels;
	uint64_t pid, uid;		   /* of the sender; ENTRY_ABSENT */
	char sender_unit[ENTRY_UNIT_SIZE]; /* in which the sender runs; "": not known */
	uint64_t last_bytes, last_ns;	   /* how much of the trace; ENTRY_ABSENT: all */
	bool decode;
	uint64_t deadline_ns; /* for decoding, newest part first; ENTRY_ABSENT: decode all */
	uint32_t cpu;	      /* where the sender ran last; ENTRY_NO_CPU: not known */
	uint64_t realtime_ns, monotonic_ns, perf_ns, tsc; /* perf_ns ENTRY_ABSENT: no clock */
};
