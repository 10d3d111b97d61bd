/*
 * One snapshot as the control protocol's type Report tells it: struct <-> JSON. The same object is
 * kept beside the snapshot's files, so that a restarted recorder knows its old ones.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "proto/bundle/label.h"

#include "daemon/base/entry_size.h"
#include "daemon/base/log.h"

enum entry_state {
	ENTRY_QUEUED = 0,
	ENTRY_CAPTURING,
	ENTRY_DECODING,
	ENTRY_DONE,
	ENTRY_FAILED,
};

/* In the error text of one that a recorder has taken up which another one had begun. */
#define ENTRY_TAKEN_UP "decoded by a recorder that came after the one which took it"

/* A value: copied freely, owns nothing. Strings are "" and numbers ENTRY_ABSENT when absent. */
struct entry {
	char id[ENTRY_ID_SIZE];
	enum entry_state state;
	char trigger[16];	    /* "control", "signal", "exit", "unit" */
	char name[ENTRY_NAME_SIZE]; /* which one of that kind */
	char reason[ENTRY_REASON_SIZE];
	char unit[ENTRY_UNIT_SIZE]; /* that it is about */
	struct labels labels;
	uint64_t pid, uid;		   /* who asked, */
	char sender_unit[ENTRY_UNIT_SIZE]; /* out of which unit */
	char coredump[ENTRY_CORE_SIZE]; /* the file that systemd-coredump made of the same process
					 */
	uint64_t realtime_usec;
	char boot_id[40];
	uint64_t raw_bytes; /* of trace, all CPUs */
	uint64_t bundle_bytes, report_bytes, gaps;
	char error[ENTRY_ERROR_SIZE];
	bool pinned; /* is not forgotten to make room for others */
};

void entry_init(struct entry *e);
/* Has it come to its end, one way or the other? */
bool entry_ended(const struct entry *e);
/* The caller's; NULL: no memory. */
struct json_object *entry_to_json(const struct entry *e);
/* LIST is {KEY: VALUE, ...}, which joins RET. 0; -EINVAL, -E2BIG: as labels_add, which is then not
 * asked any more; -EBADMSG: it is something else. */
int entry_read_labels(struct json_object *list, struct labels *ret);
/* 0 or -EBADMSG. */
int entry_from_json(struct json_object *o, struct entry *ret);
/* "queued", ... */
const char *entry_state_name(enum entry_state state);
/* What E tells; the fields of all events of a snapshot. */
void entry_log_fields(const struct entry *e, struct log_fields *ret);
