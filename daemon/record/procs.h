/*
 * The processes that were seen, with what /proc said of them while they lived. Bounded: when the
 * table is full, ended processes make room first; what finds none is counted.
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
/* A process was seen. Nothing is allocated or read here. */
void procs_see(struct procs *p, uint32_t pid);
/* It was forked by PPID, has ended, at TIME (perf ns). Of different CPUs records come in any order:
 * an end may be told before its beginning. */
void procs_fork(struct procs *p, uint32_t pid, uint32_t ppid, uint64_t time);
void procs_exit(struct procs *p, uint32_t pid, uint64_t time);
/* It executes another program since TIME: its facts are read again. */
void procs_exec(struct procs *p, uint32_t pid, uint64_t time);
/* Records up to TIME (perf ns) were lost: of what is known of whom it may no longer hold. All are
 * looked at again. */
void procs_lost(struct procs *p, uint64_t time);
/* It has mapped PATH executable: the first such file after an exec is the program, should nobody be
 * there any more to be asked. */
void procs_map(struct procs *p, uint32_t pid, const char *path);
/* Who forked it, or is its parent by now; 0: not known. */
uint32_t procs_parent(const struct procs *p, uint32_t pid);
/* Of a process that is seen now facts are read only DELAY_NS later, unless it has ended by then: a
 * look at /proc costs as much as hundreds of records, and most processes are gone soon. 0, as it is
 * in the beginning: at once. */
void procs_set_delay(struct procs *p, uint64_t delay_ns);
/* A command line that takes longer than NS to read, or than SNAPSHOT_NS while procs_refresh waits,
 * is given up: it is its process that makes it so. In the beginning a second, and a tenth of one.
 */
void procs_set_patience(struct procs *p, uint64_t ns, uint64_t snapshot_ns);
/* Has a thread read the facts of at most BUDGET processes that are new or have changed, those whose
 * time has come, and takes over what it has read since the last call. With SIZE_MAX the facts of
 * all, which are waited for: for a second at most, and not for a process that keeps the thread. */
void procs_refresh(struct procs *p, size_t budget);
/* X (borrowed, NULL: nobody) are those to be left alone. */
void procs_set_exclude(struct procs *p, const struct exclude *x);
/* There may be more of them than before: all processes are looked at again, those that have ended
 * by what is known of them. */
void procs_exclude_again(struct procs *p);
/* Are there any? */
bool procs_excludes(const struct procs *p);
/* Is it one of those, or, where its own facts are not known, a child of one? A number that was ever
 * an excluded process' stays one. */
bool procs_is_excluded(const struct procs *p, uint32_t pid);

struct procs_told {
	const struct procinfo *info;
	uint64_t uid; /* info's, else that of who forked it; MANIFEST_ABSENT */
	/* Since when (perf ns) it has certainly had the rights of that uid and no others;
	 * MANIFEST_ABSENT: nobody knows that, or it has not. */
	uint64_t uid_since;
	bool excluded; /* or, where some are, of nobody whom anybody has looked at */
};
/* FN's first non-zero result ends it and is returned. */
int procs_foreach(const struct procs *p, int (*fn)(void *userdata, const struct procs_told *told),
		  void *userdata);
/* How many processes there are whose command line could not be read (procs_set_patience), the pids
 * of the first N of them in RET_PIDS. */
uint64_t procs_unread(const struct procs *p, uint32_t *ret_pids, size_t n);
/* Processes that live. */
uint64_t procs_alive(const struct procs *p);
/* Processes that found no room. */
uint64_t procs_dropped(const struct procs *p);
