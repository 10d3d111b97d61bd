/*
 * Takes perf records out of the DATA rings and keeps what they say: timeline, files, processes and
 * memory. This is all steady-state work of the recorder.
 *
 * This room learns while the recorder records. intake.c reads records and tells the others.
 * procs.c lists processes, by the records; procs_facts.c adds what /proc says of them, which
 * procreader.c reads in another thread; procs_uid.c tells whose a process certainly is and which
 * processes are excluded. files.c keeps a descriptor of each file that was mapped executable, in
 * the list of files_list.c; files_open.c opens one file. faults.c remembers when something went
 * wrong. memory.c lists code that is in no file. reread.c has the mappings of all processes read
 * again after records were lost. silence.c finds trace units that write nothing. command.c starts,
 * watches and ends the traced command.
 *
 * Decisions that govern the room:
 * - The drain's thread empties the rings whatever happens here. Records wait in its queue until the
 *   loop has time, so what takes long costs room in the queue and no record. A LOST record comes
 *   with the next record, if there is one; so the kernel's own count of lost records is read at
 *   each snapshot and before a ring is removed.
 * - Whatever a process can delay is done in a thread that can be left behind (daemon/base/aside.h):
 *   reading a command line, which is in the process's memory, reading its mappings again, and
 * opening a mapped file, for which the process's mappings are asked. The thread gets copies of all
 * it needs; the loop takes the results. A snapshot waits for results for a limited time.
 * - Looking at /proc costs as much as hundreds of records. The facts of a process are therefore
 *   read some time after it began, and not at all if it has ended by then. Records win over the
 *   first look at /proc, except that a process found there after its fork is what /proc says of
 *   that process.
 * - A process has no owner as such but a time since which it certainly had one uid and no rights of
 *   others. A child has the time of its birth if its forker had that uid then. The time is lost
 *   with each program that nobody looked at, and for all processes when records were lost.
 * - A file is known by device and inode, and by build id only together with its path: whoever maps
 *   a file with libc's build id at libc's path could lend its bytes to all reports.
 * - A process is excluded by facts, so after it began. Files that only excluded processes map are
 *   not handed on. A pid that was ever an excluded process's stays excluded.
 * - Every table has a limit and counts what found no room. Nothing is allocated for a record whose
 *   process and file are known. Only records, /proc and mappings are read; no file's content is
 *   parsed.
 *
 * All functions are for the loop's thread. The manager owns all objects.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/ring/drain.h"
#include "capture/ring/source.h"
#include "daemon/record/faults.h"
#include "daemon/record/files.h"
#include "daemon/record/memory.h"
#include "daemon/record/procs.h"
#include "daemon/record/reread.h"
#include "sideband/timeline/timeline.h"

struct intake_cpu {
	uint64_t aux_flags; /* PERF_AUX_FLAG_* of all AUX records, ORed */
	/* Times of the newest AUX record with PERF_AUX_FLAG_TRUNCATED, _PARTIAL and _COLLISION;
	 * MANIFEST_ABSENT: none. */
	uint64_t truncated_ns, partial_ns, collision_ns;
	uint64_t aux_ns; /* time of the last AUX record: the CPU had stopped */
	/* Records lost so far: of the sideband, and of those that the PT event writes into a ring
	 * of its own. */
	uint64_t lost, aux_lost;
	/* Lost records of the two rings that are there now, by enum source_ring. LOST records told
	 * of TOLD. The kernel's own count may have told of more, which makes KNOWN. */
	struct intake_lost {
		uint64_t told, known;
	} rings[SOURCE_N_RINGS];
	/* By the CPU's switch records: when a thread first began or ended a turn there since the
	 * last snapshot (0: none did), and whether a thread has the CPU now. */
	uint64_t turn_ns;
	bool busy;
	/* The judgement of silence_judge() at the last snapshot. */
	struct silence {
		bool is;	   /* the trace unit writes nothing although code runs */
		bool turns;	   /* threads had turns while the ring stood still */
		uint64_t since_ns; /* perf clock: the first restart behind which it did not */
		uint64_t until_ns; /* the last stop */
		uint64_t user_ns;  /* for how long user code ran in that time, at least */
	} silence;
};

/* All borrowed. */
struct intake_parts {
	struct source *source;
	struct timeline *timeline;
	struct files *files;
	struct procs *procs;
	struct memory *memory;
	struct reread *reread; /* NULL: mappings are not read again after a loss */
	uint64_t queue_bytes;  /* as for drain_new() */
	uint64_t period_usec;  /* as for drain_new() */
};

struct intake {
	struct source *source; /* borrowed, as the next five */
	struct timeline *timeline;
	struct files *files;
	struct procs *procs;
	struct memory *memory;
	struct reread *reread;
	struct drain *drain;	 /* owned */
	struct intake_cpu *cpus; /* owned; as many as the source has */
	uint64_t bad_records;	 /* records that contradicted themselves and were skipped */
	uint64_t bad_bytes;   /* bytes that were discarded with a ring that contradicted itself */
	struct faults faults; /* owned: when that was, and when records of PT events were lost */
	struct source_watch watch;
	bool started;	   /* rings that are added from now on come late */
	uint64_t silences; /* how often a CPU's trace unit was found to be silent */
	bool stopped;	   /* an AUX record came: an event was stopped. Whoever looks clears it */
	uint64_t unmarked[PERFRECORD_MAX_SIZE / 8];
};

/* Begins to empty the rings of the source, also those that are added later. IN takes the source's
 * watch and must not move. 0 or -errno. */
int intake_init(struct intake *in, const struct intake_parts *parts);
/* Call it before the source is freed. */
void intake_done(struct intake *in);
/* A descriptor that is readable when intake_some() should be called. Borrowed. */
int intake_fd(const struct intake *in);
/* Takes in some of the records that wait, for a few milliseconds. Returns the bytes taken. */
uint64_t intake_some(struct intake *in);
/* Takes in all that the rings hold at the time of the call. Returns the bytes taken. */
uint64_t intake_drain(struct intake *in);
/* After intake_drain(): asks the kernel how many records were lost, and counts those of which no
 * LOST record has told. Does nothing if the source cannot tell. */
void intake_settle(struct intake *in);
/* silence.c. After intake_drain(), when a job has copied: finds CPUs whose trace units write
 * nothing although code ran that is to be traced, and logs what is new. */
void silence_judge(struct intake *in);
/* Takes in a record that did not come from a ring (a procscan_fn; USERDATA is the struct intake).
 * Returns 0. */
int intake_record(void *userdata, const void *record, size_t size);
