/*
 * The processes that were seen, with what /proc said of them while they lived.
 *
 * The table has a limit: when it is full, the process that ended first makes room, and a process
 * that finds no room is counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/ring/source.h"
#include "daemon/config/exclude.h"

struct procs;

/* PROC is "/proc" (or a test's tree). SOURCE (borrowed, may be NULL) corrects the facts. */
int procs_new(const char *proc, uint32_t max, struct source *source, struct procs **ret);
void procs_free(struct procs *p);
void procs_freep(struct procs **p);

/* --- What records tell --- */

/* Process PID was seen. Allocates and reads nothing. */
void procs_see(struct procs *p, uint32_t pid);
/* PID was forked by PPID, or has ended, at TIME (perf ns). Records of different CPUs come in any
 * order: the end may be told before the beginning. */
void procs_fork(struct procs *p, uint32_t pid, uint32_t ppid, uint64_t time);
void procs_exit(struct procs *p, uint32_t pid, uint64_t time);
/* PID executes another program since TIME: its facts will be read again. */
void procs_exec(struct procs *p, uint32_t pid, uint64_t time);
/* Records up to TIME were lost, so what is known may no longer hold: the facts of all processes
 * will be read again. */
void procs_lost(struct procs *p, uint64_t time);
/* PID has mapped PATH executable. The first such file after an exec is taken as the program, in
 * case the process ends before /proc is read. */
void procs_map(struct procs *p, uint32_t pid, const char *path);

/* --- What /proc tells --- */

/* Facts of a process are read DELAY_NS after it was seen, unless it has ended by then: reading
 * /proc costs as much as hundreds of records, and most processes end soon. Initially 0: at once. */
void procs_set_delay(struct procs *p, uint64_t delay_ns);
/* Sets how long reading a command line may take: NS, or SNAPSHOT_NS while procs_refresh() waits.
 * A longer read is given up, as the process itself causes it. Initially a second, and a tenth. */
void procs_set_patience(struct procs *p, uint64_t ns, uint64_t snapshot_ns);
/* Takes over the facts that were read, and asks for those of at most BUDGET processes whose time
 * has come. BUDGET SIZE_MAX: asks for all that are pending and waits for them, at most a second,
 * and not for a process that delays its own. */
void procs_refresh(struct procs *p, size_t budget);

/* --- Exclusion --- */

/* X (borrowed; NULL: none) says which processes are excluded. */
void procs_set_exclude(struct procs *p, const struct exclude *x);
/* X may exclude more than before: judges all processes again, ended ones by what is known of them,
 * live ones also by new facts. */
void procs_exclude_again(struct procs *p);
/* Whether any process can be excluded. */
bool procs_excludes(const struct procs *p);
/* Whether PID is excluded: by its own facts or, if they are not known, as a child of an excluded
 * process. A pid that was ever an excluded process's stays excluded. */
bool procs_is_excluded(const struct procs *p, uint32_t pid);

/* --- Questions --- */

/* The process that forked PID, or is its parent by now; 0: not known. */
uint32_t procs_parent(const struct procs *p, uint32_t pid);

struct procs_told {
	const struct procinfo *info;
	uint64_t uid; /* of info, else of the process that forked it; MANIFEST_ABSENT */
	/* Since when (perf ns) the process certainly has the rights of that uid and no others;
	 * MANIFEST_ABSENT: not known, or it has others. */
	uint64_t uid_since;
	/* Excluded; also, if any process can be, one whose facts and ancestors are not known. */
	bool excluded;
};
/* Calls FN for each process. A result of FN other than 0 ends the walk and is returned. */
int procs_foreach(const struct procs *p, int (*fn)(void *userdata, const struct procs_told *told),
		  void *userdata);
/* The number of processes whose command line could not be read (procs_set_patience()); RET_PIDS
 * gets the first N of them. */
uint64_t procs_unread(const struct procs *p, uint32_t *ret_pids, size_t n);
/* Live processes. */
uint64_t procs_alive(const struct procs *p);
/* Processes that found no room. */
uint64_t procs_dropped(const struct procs *p);
