/*
 * Code in the memory of live processes, read at a snapshot in a job's thread, when the CPUs run
 * again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/proc/mounts.h"
#include "capture/ring/source.h"
#include "daemon/gather/evidence.h"

/* Bytes. */
struct memory_limits {
	uint64_t process, all; /* of memory: for one process, for all */
	uint64_t map, maps;    /* of perf maps and jitdumps: for one, for all */
};
extern const struct memory_limits memory_default_limits;

/* Reads the regions of E into images of kind "memory" and "vdso", and of their processes the perf
 * maps into texts and the jitdumps into images. The processes go on meanwhile, so what is read may
 * be newer than the trace. PROC is "/proc" (or a test's tree). A process that has ended or was
 * replaced is left out; bytes beyond a limit make a note. Does nothing if nothing was traced. 0 or
 * -ENOMEM. */
int memory_read(struct source *source, const char *proc, const struct memory_limits *limits,
		struct evidence *e);

/* Reads /tmp/perf-PID.map, the names that a JIT compiler tells of its code
 * (tools/perf/Documentation/jit-interface.txt), into a text of E. PID is the number of the process
 * here, and DIR its directory in /proc; the file is looked for in the process's own root by the
 * process's number in its own namespace. A file of more than MAX or *LEFT bytes, which the read
 * reduces, is a text that is missing; without a file there is no text. 0 or -ENOMEM. */
int memory_names_read(struct mounts *mounts, int dir, uint32_t pid, uint64_t max, uint64_t *left,
		      struct evidence *e);

/* Whether PATH, which the process in DIR maps, is the name of its jitdump: jit-PID.dump with its
 * number in its own namespace (tools/perf/util/jitdump.c, jit_detect()). */
bool memory_dump_is_name(int dir, const char *path);

struct memory_dump {
	uint32_t pid;	  /* here */
	const char *path; /* in the process's own root, as it is mapped */
	uint64_t now_ns;  /* perf clock, or MANIFEST_ABSENT */
};

/* Copies a jitdump, the code that a JIT compiler made
 * (tools/perf/Documentation/jitdump-specification.txt), into an image of E. Of a file of more than
 * MAX or *LEFT bytes, which the copy reduces, the header and the newest part are copied, and a note
 * says how much is not. 0 or -ENOMEM. */
int memory_dump_read(struct mounts *mounts, int dir, const struct memory_dump *dump, uint64_t max,
		     uint64_t *left, struct evidence *e);

/*
 * Memory of another process, copied by a helper process that can be left behind. Reading memory
 * makes the kernel fetch its pages; a page of a FUSE file comes when its owner pleases, and a
 * process that waits for the page cannot be ended.
 */

/* How long a piece may take. */
#define MEMORY_COPY_PATIENCE_MS 1000
/* How many helpers are left behind before nothing is read any more. */
#define MEMORY_COPY_MAX_LEFT 4u

struct memory_copy {
	int channel; /* to the helper; -EBADF: there is none yet */
	pid_t helper;
	int patience_ms; /* tests have less */
	unsigned left;	 /* helpers left behind */
};

void memory_copy_init(struct memory_copy *c);
/* Ends the helper, if it does not hang. */
void memory_copy_done(struct memory_copy *c);
/* Appends SIZE bytes at ADDRESS of MEM (/proc/PID/mem) to the file TO; both borrowed. Returns the
 * number of bytes, fewer where the rest cannot be read. -ETIMEDOUT: the pages do not come, and TO
 * may still be written to; -errno: there is no helper. */
ssize_t memory_copy(struct memory_copy *c, int mem, uint64_t address, size_t size, int to);
