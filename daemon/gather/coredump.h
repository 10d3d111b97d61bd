/*
 * What systemd-coredump has kept of a process that crashed: only the names of its files are looked
 * at (src/coredump/coredump.c, make_filename: core.COMM.UID.BOOTID.PID.USEC, then how it is
 * compressed).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/store/entry.h"
#include "proto/bundle/manifest.h"

#define COREDUMP_DIR "/var/lib/systemd/coredump"
/* A crash that is older has nothing to do with a trigger. */
#define COREDUMP_MAX_AGE_USEC 600000000u

struct coredump_name {
	uint64_t pid, uid, realtime_usec;
	char boot_id[33]; /* without dashes */
};

/* False: NAME is something else. */
bool coredump_parse(const char *name, struct coredump_name *ret);
/* The newest core file in DIR of a process of UNIT (the host's systemd's name of it; units of that
 * name of users' or containers' systemd are others) that M tells of, or of process PID
 * (ENTRY_ABSENT: none): of this boot, and of the time up to COREDUMP_MAX_AGE_USEC before M's. "":
 * there is none. 0 or -errno of reading DIR. */
int coredump_find(const char *dir, const struct manifest *m, const char *unit, uint64_t pid,
		  char ret[ENTRY_CORE_SIZE]);
