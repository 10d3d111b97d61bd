/*
 * The manifest: what a snapshot says about itself besides trace bytes and sideband records, in
 * memory and as the bundle's manifest.json.
 *
 * A number that is not known has a "have" flag or the documented empty value, and is null in JSON,
 * never 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bytes.h"

#define MANIFEST_VERSION       1
#define MANIFEST_MAX_CPUS      4096u
#define MANIFEST_MAX_IMAGES    65536u
#define MANIFEST_MAX_PROCESSES 65536u
#define MANIFEST_MAX_NOTES     16384u
#define MANIFEST_MAX_PEVENTS   64u
#define MANIFEST_MAX_LABELS    8u
#define MANIFEST_MAX_TEXTS     4096u
#define MANIFEST_MAX_SEAMS     65536u	   /* of all traces */
#define MANIFEST_MAX_PIECES    65536u	   /* of one image */
#define MANIFEST_MAX_TEXT      (64u << 20) /* bytes of JSON */
#define MANIFEST_MAX_BUILD_ID  40u	   /* hex digits */
#define MANIFEST_ABSENT	       UINT64_MAX  /* an unknown u64 */

#define MANIFEST_ANY UINT32_MAX

/* The trace of a CPU or of a thread. Either cpu or tid is ANY, and no CPU is there twice. */
struct manifest_cpu {
	uint32_t cpu;	      /* ANY: the trace is of one thread on all CPUs */
	uint32_t tid;	      /* ANY: the trace is of all threads on this CPU */
	uint64_t ring_bytes;  /* size of the AUX ring */
	uint64_t bytes;	      /* of trace, in member "cpuN.pt" or "trace/INDEX", oldest first */
	uint64_t asked_bytes; /* of --last=SIZE; ABSENT: everything, or by time */
	uint64_t stop_ns;     /* perf clock when the CPU's event was stopped; ABSENT: raw */
	uint64_t dark_ns;     /* from stop to restart; ABSENT: was not restarted */
	uint64_t copy_ns;     /* duration of the copy; ABSENT: raw */
	uint64_t aux_flags;   /* all PERF_AUX_FLAG_* of AUX records since recording began */
	/* Perf clock of the newest AUX record with PERF_AUX_FLAG_TRUNCATED, _PARTIAL and
	 * _COLLISION; ABSENT: there was none, or the time is unknown. */
	uint64_t truncated_ns, partial_ns, collision_ns;
	uint64_t lost_records; /* sideband records that the DATA ring lost, in total */
	bool stop_timeout;     /* the CPU did not answer: the copy ends with its last packet */
	char *state;	       /* owned; "tracing", "offline", "busy", "yielded", "failed", "no-pt";
				* NULL: unknown */
	char *why;	       /* owned; why the CPU is not tracing, for people; or NULL */
	uint64_t stop_order;   /* 0: was stopped first; or ABSENT */
};

/* A place in a trace where the bytes do not simply go on: the packets behind it were not written
 * directly behind those before it. */
struct manifest_seam {
	uint32_t trace;	 /* index of the CPU (struct manifest_cpu) */
	uint64_t offset; /* of the first byte behind the seam, a PSB; less than the trace's bytes */
	char *kind;	 /* owned; the name of a fault (decoder/packet/fault.h) */
};

struct manifest_process {
	uint32_t pid;
	uint64_t ppid;	   /* ABSENT: unknown, as for the numbers below */
	uint64_t start_ns; /* CLOCK_BOOTTIME */
	uint64_t uid;
	char *exe, *cmdline, *cgroup; /* owned, NULL: unknown; cmdline has the arguments joined by
				       * blanks, and may be cut */
	uint64_t mount_ns;	      /* inode of the mount namespace */
	uint64_t ns_pid;	      /* pid in the innermost pid namespace */
	/* perf clock since when the process certainly has this uid and no rights of another;
	 * ABSENT: there is no such time, or it is unknown. */
	uint64_t uid_since_ns;
	bool excluded; /* must not be decoded or shown; exe and cmdline are NULL */
};

/* A part of an image. */
struct manifest_piece {
	uint64_t offset, size; /* bytes; size is not 0 */
};

/* Kinds of images. A file has none (NULL). */
/* anonymous code (JIT) of process PID, at ADDRESS */
#define MANIFEST_IMAGE_MEMORY "memory"
/* [vdso] of process PID at ADDRESS; PID ANY: of all other processes with a [vdso] of this size */
#define MANIFEST_IMAGE_VDSO "vdso"
/* kernel text at ADDRESS, exactly as it was at READ_NS */
#define MANIFEST_IMAGE_KERNEL "kernel"
/* What a just-in-time compiler of process PID wrote down of its code
 * (tools/perf/Documentation/jitdump-specification.txt). PATH is the file's, and READ_NS says when
 * it was read; ABSENT: when nobody wrote to it any more. A part behind the header may be left out.
 */
#define MANIFEST_IMAGE_JITDUMP "jitdump"
/* vmlinux or the file of a module (PATH "[NAME]"). The text "kernel-sections" says where its
 * sections lie. Where the kernel patches itself, the file's bytes are not those in memory. */
#define MANIFEST_IMAGE_KERNEL_FILE "kernel-file"

/* An image: code, most often of a file that was mapped executable. An MMAP2 record means the image
 * with the same device, inode and generation, or, if all of these are 0, with the same path; and a
 * record with a build id means the image with this build id and path. Nobody has compared the build
 * id with the file's own. */
struct manifest_image {
	char *path; /* owned; as in the record */
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint64_t size;	 /* of member "images/INDEX"; 0 if missing or elsewhere */
	char *missing;	 /* owned; why the bytes are missing, for people; or NULL */
	uint64_t offset; /* in the file, of the member's first byte */
	char *build_id;	 /* owned, lower-case hex, as in the records; NULL: these have an inode */
	/* There is no member, and SIZE is 0. The program that has the bundle has the bytes and
	 * gives them out by INDEX (worker.h), or a list beside the bundle names them (kept.h). */
	bool elsewhere;
	uint64_t file_size; /* of the whole file; ABSENT: OFFSET + SIZE */
	char *pieces;	    /* owned; the member has these pieces (manifest_pieces_parse) one behind
			     * the other, and OFFSET is 0; NULL: one piece, at OFFSET */
	char *kind;	    /* owned; MANIFEST_IMAGE_*, or NULL for a file */
	uint32_t pid;	    /* ANY: not of one process */
	uint64_t address;   /* of memory: address of the first byte; or ABSENT */
	uint64_t read_ns;   /* of memory: perf clock when it was read; or ABSENT */
	/* Perf clock since when nothing shows that the bytes may have changed: of memory up to when
	 * they were read, of a file up to the snapshot. ABSENT: not known, or, of memory, it could
	 * be written to. */
	uint64_t unchanged_ns;
	/* The bytes are of a file that was found by its name later, and without a build id nothing
	 * shows that it is the one that was mapped. */
	bool unverified;
};

/* Kinds of texts. ptsnap-decode parses them; the recorder only copies them. */
#define MANIFEST_TEXT_KALLSYMS "kallsyms" /* /proc/kallsyms, functions only */
#define MANIFEST_TEXT_MODULES  "modules"  /* /proc/modules */
/* Lines "MODULE SECTION 0xADDRESS"; module * is the kernel. "* kprobe 0xADDRESS" is a kprobe, and
 * "* kprobes 0x1" says that all kprobes are listed. */
#define MANIFEST_TEXT_KERNEL_SECTIONS "kernel-sections"
#define MANIFEST_TEXT_PERF_MAP	      "perf-map" /* /tmp/perf-PID.map of process PID */
/* Threads that were asleep behind the trigger: "left N", which were not read, then lines
 * "PID TID NSTID STATE NUMBER 0xFUTEX OWNER". NSTID is TID in its own pid namespace; STATE that of
 * /proc/PID/status, S or D; NUMBER that of the system call, or -; FUTEX what it waits for, or 0;
 * OWNER, if that is a mutex of glibc, the thread that holds it, an NSTID, or 0. */
#define MANIFEST_TEXT_THREADS "threads"
struct manifest_text {
	char *kind;    /* owned */
	uint32_t pid;  /* or ANY */
	uint64_t size; /* of member "texts/INDEX"; 0 if missing */
	char *missing; /* owned; why the text is missing, for people; or NULL */
};

/* Something that the recorder knows to be missing in its records; becomes a gap of that kind. */
struct manifest_note {
	char *kind; /* owned; the name of a fault (decoder/packet/fault.h) */
	uint64_t count;
	char *why;    /* owned; or NULL */
	uint32_t cpu; /* ANY: the note is not about one CPU */
	/* When it happened, perf clock. A report leaves out what ended before the report's window.
	 * SINCE_NS ABSENT: the beginning is unknown. UNTIL_NS ABSENT: it still lasts at the
	 * trigger, or the end is unknown. */
	uint64_t since_ns, until_ns;
};

/* Sideband as for libipt's tools, for the views that show them: a file of perf records in the
 * layout of a foreign perf_event_attr, in member "pevent/INDEX". The sideband member has the same
 * records, translated. */
struct manifest_pevent {
	char *name; /* owned; for messages */
	uint64_t size;
	bool secondary;	      /* of another CPU than the trace */
	uint64_t sample_type; /* attr.sample_type */
	uint32_t time_shift, time_mult;
	uint64_t time_zero, tsc_offset;
};

struct manifest_label {
	char *key, *value; /* owned, never NULL */
};

struct manifest {
	/* Identity */
	char *id, *version;
	/* Host; strings may be NULL */
	char *hostname, *kernel_release, *machine, *boot_id, *cpu_model_name;
	bool have_cpu;
	uint32_t cpu_family, cpu_model, cpu_stepping;
	bool cpu_intel;
	/* Trigger */
	char *trigger_kind; /* "control", "signal", "exit", "offline" */
	char *trigger_name, *reason;
	char *unit;			 /* the systemd unit that the snapshot is about, or NULL */
	char *sender_unit;		 /* the unit that the sender runs in, or NULL */
	char *coredump;			 /* the process's file of systemd-coredump, or NULL */
	uint64_t sender_pid, sender_uid; /* or ABSENT */
	uint64_t realtime_ns, monotonic_ns, perf_ns, tsc; /* or ABSENT */
	/* Clock: perf ns = time_zero + (tsc * time_mult >> time_shift)
	 * (include/uapi/linux/perf_event.h, cap_user_time_zero) */
	bool have_clock;
	uint16_t time_shift;
	uint32_t time_mult;
	uint64_t time_zero;
	/* Configuration of the trace */
	char *source;		       /* "emulated", "intel_pt", "raw" */
	char *pt_terms;		       /* "tsc,mtc,mtc_period=9,...", or NULL */
	uint64_t pt_config;	       /* attr.config, or ABSENT */
	bool trace_user, trace_kernel; /* not excluded by the attr */
	bool tasks_only;	       /* only tasks that the recorder was asked for were traced */
	bool paused;	      /* traced only between the events of others (attr.aux_start_paused) */
	char *address_filter; /* only some addresses were traced: the filter, for people; or NULL */
	uint32_t mtc_period;  /* log2 of the CTC ticks between MTCs; UINT32_MAX: none or unknown */
	uint32_t max_nonturbo_ratio;	   /* 0: unknown */
	uint32_t tsc_art_num, tsc_art_den; /* CPUID 0x15 EBX, EAX; 0: unknown */
	bool noretcomp;
	bool clock_is_monotonic;       /* without have_clock: times are of CLOCK_MONOTONIC */
	char *preset;		       /* or NULL */
	char *pt_attr, *sideband_attr; /* the perf_event_attrs as text, or NULL */
	char *sideband_missing;	       /* kinds of records that the kernel does not offer, joined by
					* commas, or NULL */
	char *sizes_note;	       /* which rings are smaller than asked for, or NULL */
	/* Request */
	uint64_t last_bytes, last_ns; /* both ABSENT: everything */
	uint64_t previous_stop_ns;    /* perf clock when the previous snapshot stopped the CPUs, or
					 ABSENT */
	/* Sideband */
	uint64_t horizon_ns;	  /* only the folded base state is known before this; or ABSENT */
	uint64_t dropped_records; /* folded by the timeline's limit */
	/* CPUs on which threads may have run and whose sideband was not recorded; ABSENT: unknown.
	 */
	uint64_t unrecorded_cpus;
	bool excluding; /* some processes are excluded, and with them all that are not listed */
	struct manifest_cpu *cpus;
	size_t n_cpus;
	struct manifest_process *processes;
	size_t n_processes;
	struct manifest_image *images;
	size_t n_images;
	struct manifest_note *notes;
	size_t n_notes;
	struct manifest_pevent *pevents;
	size_t n_pevents;
	struct manifest_label *labels; /* of the trigger */
	size_t n_labels;
	struct manifest_text *texts;
	size_t n_texts;
	struct manifest_seam *seams; /* rising by trace, then by offset */
	size_t n_seams;
	uint64_t kernel_start; /* first address of the kernel; ABSENT: the upper canonical half */
};

/* How much the packets of a trace can tell, by its configuration. */
enum manifest_contents {
	MANIFEST_BRANCHES, /* each branch; also if the configuration is unknown */
	MANIFEST_TARGETS,  /* without TNT: only the targets of some branches, and events */
	MANIFEST_EVENTS,   /* without branches: only events, such as PTWRITE */
};

enum manifest_contents manifest_contents(const struct manifest *m);

/* What of the execution a trace leaves out, by its configuration. Bits. */
enum manifest_filter {
	MANIFEST_ONLY_USER = 1,	     /* user code only */
	MANIFEST_ONLY_KERNEL = 2,    /* the kernel's code only */
	MANIFEST_ONLY_TASKS = 4,     /* only some tasks */
	MANIFEST_ONLY_ADDRESSES = 8, /* only some addresses */
	MANIFEST_ONLY_CR3 = 16,	     /* only one address space, by the processor */
	MANIFEST_ONLY_BETWEEN = 32,  /* only between events of others, which pause the trace */
};

unsigned int manifest_filters(const struct manifest *m);
/* The seams of the trace with index TRACE, and their number; NULL: there are none. */
const struct manifest_seam *manifest_seams(const struct manifest *m, size_t trace, size_t *ret_n);

/* Makes M empty, with all values absent. */
void manifest_init(struct manifest *m);
void manifest_done(struct manifest *m);
/* Append an element, with all values absent or zero. The pointer is valid until the next one is
 * appended. NULL: no memory, or the limit above is reached. */
struct manifest_cpu *manifest_add_cpu(struct manifest *m);
struct manifest_process *manifest_add_process(struct manifest *m);
struct manifest_image *manifest_add_image(struct manifest *m);
struct manifest_pevent *manifest_add_pevent(struct manifest *m);
struct manifest_label *manifest_add_label(struct manifest *m);
struct manifest_text *manifest_add_text(struct manifest *m);
struct manifest_seam *manifest_add_seam(struct manifest *m);
/* Appends a copy of NOTE. 0; -ENOMEM; -ENOSPC: the limit above is reached. */
int manifest_add_note_at(struct manifest *m, const struct manifest_note *note);
/* The same for a note that is not about one CPU and has no times. */
int manifest_add_note(struct manifest *m, const char *kind, uint64_t count, const char *why);

/* Pieces as text: "0x0+0x1000,0x8000+0x200", in order of offset, which neither touch nor overlap,
 * at most MANIFEST_MAX_PIECES. *ret is malloc()ed. 0, -EBADMSG, -E2BIG, -ENOMEM. */
int manifest_pieces_parse(const char *text, struct manifest_piece **ret, size_t *ret_n);
int manifest_pieces_format(const struct manifest_piece *pieces, size_t n, char **ret);
/* Sorts PIECES and joins those that touch or overlap. Drops pieces that are empty or end beyond
 * 2^63. Returns the number of pieces that are left. */
size_t manifest_pieces_join(struct manifest_piece *pieces, size_t n);
/* Appends the manifest as JSON to OUT. A string that must not be absent (id, version, trigger_kind,
 * source, path, kind) but is NULL becomes "". 0, -ENOMEM, or -E2BIG: OUT's limit. */
int manifest_write(const struct manifest *m, struct bytes_out *out);
/* Parses the JSON text strictly, to depth 8, and checks ranges and limits. M must be initialised,
 * and is empty again on failure. 0; -EBADMSG: not a manifest, or damaged; -EPROTONOSUPPORT: of a
 * newer version; -ENOMEM. */
int manifest_read(const void *text, size_t size, struct manifest *m);
