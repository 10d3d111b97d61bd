/*
 * The evidence that belongs to the moment of a snapshot, gathered for the job that writes the
 * bundle: the manifest, the sideband records, the descriptors of images, and texts.
 *
 * This room collects everything around the trace. evidence.c gathers what the loop knows, in the
 * loop's thread, when a job has copied the rings and the DATA rings are drained up to that moment.
 * host.c adds the facts of the host and of its CPUs. The rest may take long and runs in the job's
 * thread: memory_read.c copies code in the memory of processes, with a helper process
 * (memory_copy.c), and takes what JIT compilers write down (memory_names.c); kernel.c
 * copies the kernel's text, symbols and modules; coredump.c finds the core file of a crash.
 *
 * Decisions that govern the room:
 * - struct evidence is handed over whole, from the loop to the job, and lent back once, when memory
 *   was read. Whoever has it is the only one to write to it.
 * - The manifest says what could not be had: an image or text with the reason why it is missing, or
 *   a note with a count and the name of a fault (decoder/packet/fault.h).
 * - A process can make reads of its memory hang (a FUSE file that nobody serves). A helper process
 *   reads it, with a timeout, and is left behind when it hangs.
 * - Code in memory is read after the trigger, so it may be newer than the trace: each image has the
 *   time at which it was read, and the time since when it is certainly the same. The latter counts
 *   up to the reading: the mappings are looked at before and behind it, and then the loop looks for
 *   records that came meanwhile.
 * - The kernel has other means to see writes, which were not taken. Soft-dirty bits
 *   (/proc/PID/clear_refs) write-protect all memory of a process each time that they are cleared,
 *   so that each page costs a fault at its next write, and they are one's only: a checkpoint
 *   (CRIU) uses them, too. Many kernels do not have them (CONFIG_MEM_SOFT_DIRTY). Write protection
 * by userfaultfd(2), and PAGEMAP_SCAN, which reads its bits, need a descriptor that the process
 *   itself makes. Perf maps have no times; the records of a jitdump have, but neither tells of code
 *   that a compiler patches after it was written down: the decoder compares it with the memory.
 * - Perf maps and jitdumps are a stranger's files in directories where everybody may write. They
 * are opened within the process's root, never through a symbolic link and never on a mount that can
 * block, and only if its owner is the process's user, or root with read permission for everybody.
 * - The kernel's text is copied as soon as possible, as the kernel patches itself. Where
 *   /proc/kcore is closed the bundle has the kernel's files in its place, and a note.
 * - The files and memory of excluded processes are not handed on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/ring/source.h"
#include "daemon/config/config.h"
#include "daemon/record/intake.h"
#include "daemon/store/entry.h"
#include "proto/bundle/manifest.h"
#include "proto/bytes.h"

struct evidence_image {
	int fd; /* owned; negative: missing */
	uint64_t size;
};

struct evidence {
	struct manifest manifest; /* cpus[]: all but what the freeze measured */
	struct bytes_out sideband;
	struct evidence_image *images; /* as many as the manifest has */
	size_t images_capacity;
	struct memory_region *regions;
	size_t n_regions;
	struct bytes_out *texts; /* as many as the manifest has; each owned */
	size_t texts_capacity;
	bool traced; /* some CPU has a trace ring: images are needed */
};

/* All borrowed. */
struct evidence_from {
	const struct config *config;
	struct intake *intake; /* with its source, timeline, files, processes */
	const struct request *request;
	const char *id;
	uint64_t previous_stop_ns; /* ENTRY_ABSENT */
};

/* 0, -ENOMEM, or -E2BIG: the sideband is beyond its limit. */
int evidence_new(const struct evidence_from *from, struct evidence **ret);
void evidence_free(struct evidence *e);

/* Whether some memory is known to be unchanged since some time (manifest_image.unchanged_ns). */
bool evidence_has_unchanged(const struct evidence *e);
/* In the loop, when the memory was read and all records up to then were taken in: memory of which
 * MEMORY has heard since may have changed before it was read. */
void evidence_look_at_records(struct evidence *e, const struct memory *memory);

/* In a job's thread: since when files are unchanged, by the time of their inodes' last change,
 * which no process can set (struct stat, st_ctim). */
void evidence_date_files(struct evidence *e);

/* Adds an image with its bytes to the manifest. FD is taken over, also on failure; -1: the bytes
 * are missing. NULL: no memory, or the manifest's limit. */
struct manifest_image *evidence_add_image(struct evidence *e, int fd, uint64_t size);
/* Adds a text. BYTES is taken over, also on failure, and empty afterwards. NULL: no memory, or the
 * manifest's limit. */
struct manifest_text *evidence_add_text(struct evidence *e, struct bytes_out *bytes);

/* "xxxxxxxx-xxxx-...": /proc/sys/kernel/random/boot_id, zeros where it cannot be read. */
#define HOST_BOOT_ID_SIZE 37
void host_boot_id(char ret[HOST_BOOT_ID_SIZE]);
/* Puts host name, kernel, machine and boot id into M; WITH_CPU: also the processor, for a trace of
 * this host's processor. CPUINFO is "/proc/cpuinfo" (or a test's file). 0 or -ENOMEM. */
int host_describe(struct manifest *m, const char *cpuinfo, bool with_cpu);
/* Adds to M a note for each time before the snapshot's stop in which a CPU of S was not traced; and
 * for CPUs whose source does not list such times, a note for each state and reason for not tracing,
 * with the number of such CPUs. 0 or -ENOMEM. */
int cpunotes_add(const struct source *s, struct manifest *m);

/*
 * coredump.c: the core file that systemd-coredump kept of a process that crashed. Only names of
 * files are read (src/coredump/coredump.c, make_filename: core.COMM.UID.BOOTID.PID.USEC, and the
 * suffix of a compressed file).
 */

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

/*
 * kernel.c: what a trace of the kernel needs besides: the kernel's text as images, its symbols and
 * modules as texts.
 */
struct kernel;

/* Where to look; tests have trees of their own. */
struct kernel_paths {
	const char *proc, *sys; /* "/proc", "/sys" */
	const char *root;	/* before the folders with files of kernels; "" */
	const char *release;	/* NULL: that of the running kernel */
};

/* Remembers which modules are loaded, so that a later snapshot can say which are gone. PATHS is
 * borrowed; NULL: the host's. 0 or -ENOMEM. */
int kernel_new(const struct kernel_paths *paths, struct kernel **ret);
void kernel_free(struct kernel *k);
/* Adds images, texts and notes to E. Call in a job's thread, when the CPUs run again; two jobs may
 * call at once. Does nothing if E was not traced, SOURCE does not trace the kernel, or K is NULL.
 * The manifest says what could not be had. 0, -ENOMEM, or -E2BIG: the manifest's limits. */
int kernel_gather(struct kernel *k, struct source *source, struct evidence *e);
