/*
 * Reads the mappings of all processes again after records were lost.
 *
 * A lost record may be a mapping of any process. Without this, a process that began before the loss
 * stays in doubt until its next exec, which a server never makes. The mappings are in the process's
 * memory map, whose lock the process can hold, so another thread reads them (daemon/base/aside.h).
 *
 * An answer counts only if no record says that the mappings changed between the question and the
 * answer; else the process is asked again, a few times. A process that never holds still stays in
 * doubt.
 *
 * All functions are for the loop's thread, and do nothing if R is NULL.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/proc/procscan.h"

struct reread;

/* PROC is "/proc" (or a test's tree). 0 or -errno. */
int reread_new(const char *proc, struct reread **ret);
void reread_free(struct reread *r);

/* Records were lost: all processes are to be read again. */
void reread_lost(struct reread *r);
/* A record of TIME (perf ns) says that PID began, ended, executed or mapped something. */
void reread_changed(struct reread *r, uint32_t pid, uint64_t time);
/* Asks for the processes that are to be read, some at a time. NOW is perf ns; MANIFEST_ABSENT: the
 * clock is not known, and nothing is asked. */
void reread_ask(struct reread *r, uint64_t now);
/* Takes over what was read. True: there is something for reread_give(). Before that call, the
 * caller takes in all records that the rings hold, and tells reread_changed(). */
bool reread_take(struct reread *r);
/* Gives FN the records of each process that did not change (procscan_again()), and asks for the
 * others again. NOW is perf ns. */
void reread_give(struct reread *r, uint64_t now, procscan_fn fn, void *userdata);

struct reread_stats {
	uint64_t sweeps, told; /* begun; processes whose mappings were given */
	uint64_t failed;       /* processes that changed each time, were too large, or hung */
};
void reread_get_stats(const struct reread *r, struct reread_stats *ret);
