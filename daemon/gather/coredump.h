/*
 * The core file that systemd-coredump kept of a process that crashed. Only names of files are read
 * (src/coredump/coredump.c, make_filename: core.COMM.UID.BOOTID.PID.USEC, and the suffix of a
 * compressed file).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/store/entry.h"
#include "proto/bundle/manifest.h"

#define COREDUMP_DIR "/var/lib/systemd/coredump"
/* An older crash has nothing to do with the trigger. */
#define COREDUMP_MAX_AGE_USEC 600000000u

struct coredump_name {
	uint64_t pid, uid, realtime_usec;
	char boot_id[33]; /* without dashes */
};

/* Parses the NAME of a core file; false: NAME is another file's. */
bool coredump_parse(const char *name, struct coredump_name *ret);
/* Finds the newest core file in DIR of process PID (ENTRY_ABSENT: none), or of a process in M that
 * belongs to UNIT of the host's own systemd ("": none). The file is of M's boot and at most
 * COREDUMP_MAX_AGE_USEC older than M. RET is its name; "": there is none. 0 or -errno of reading
 * DIR. */
int coredump_find(const char *dir, const struct manifest *m, const char *unit, uint64_t pid,
		  char ret[ENTRY_CORE_SIZE]);
