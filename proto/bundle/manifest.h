/*
 * What a snapshot says about itself besides trace bytes and sideband records: struct <-> the
 * bundle's manifest.json. Absent numbers have a "have" flag or the documented empty value, and are
 * null in JSON, never 0.
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
#define MANIFEST_MAX_NOTES     4096u
#define MANIFEST_MAX_PEVENTS   64u
#define MANIFEST_MAX_LABELS    8u
#define MANIFEST_MAX_TEXTS     4096u
#define MANIFEST_MAX_PIECES    65536u	   /* of one image */
#define MANIFEST_MAX_TEXT      (64u << 20) /* bytes of JSON */
#define MANIFEST_MAX_BUILD_ID  40u	   /* hex digits */
#define MANIFEST_ABSENT	       UINT64_MAX  /* for every u64 that may be absent */

#define MANIFEST_ANY UINT32_MAX

/* Either cpu or tid is ANY, no CPU is there twice. */
struct manifest_cpu {
	uint32_t cpu;	       /* ANY: the trace is one thread's, wherever it ran */
	uint32_t tid;	       /* of that thread; ANY: of whatever ran on that CPU */
	uint64_t ring_bytes;   /* size of the AUX ring */
	uint64_t bytes;	       /* copied, in member "cpuN.pt" or "trace/INDEX", oldest first */
	uint64_t asked_bytes;  /* --last=SIZE; ABSENT: all or by time */
	uint64_t stop_ns;      /* perf clock when this CPU's event was stopped; ABSENT: raw */
	uint64_t dark_ns;      /* from stop to restart; ABSENT where it was not restarted */
	uint64_t copy_ns;      /* time of the copy; ABSENT: raw */
	uint64_t aux_flags;    /* PERF_AUX_FLAG_* of AUX records since the last snapshot, or'ed */
	uint64_t lost_records; /* sideband records that the DATA ring lost, in all */
	bool stop_timeout;     /* did not answer: the copy ends where its last packet was written */
	char *state;	       /* owned; "tracing", "offline", "busy", "yielded", "failed", "no-pt";
				* NULL: not told */
	char *why;	       /* owned; why it is not tracing, in words; NULL */
	uint64_t stop_order;   /* 0: it was stopped first; ABSENT */
};

struct manifest_process {
	uint32_t pid;
	uint64_t ppid;	   /* ABSENT: unknown; so for the others */
	uint64_t start_ns; /* CLOCK_BOOTTIME */
	uint64_t uid;
	char *exe, *cmdline, *cgroup; /* owned, NULL when unknown; cmdline: arguments joined by
					 blanks, cut */
	uint64_t mount_ns;	      /* inode of its mount namespace */
	uint64_t ns_pid;	      /* its number in the innermost pid namespace */
	/* Since when (perf ns) it has certainly had that uid and no rights of any other; ABSENT:
	 * nobody knows, or it has not. */
	uint64_t uid_since_ns;
	bool excluded; /* nothing of it is to be decoded or shown; exe and cmdline are NULL */
};

/* Part of an image. */
struct manifest_piece {
	uint64_t offset, size; /* bytes; size is not 0 */
};

/* Kinds of images; NULL: a file. */
#define MANIFEST_IMAGE_MEMORY "memory" /* anonymous code (JIT) of process PID, at ADDRESS */
#define MANIFEST_IMAGE_VDSO                                                                        \
	"vdso"			       /* [vdso] of process PID at ADDRESS; PID ANY: of all others \
					* that have one of this size */
#define MANIFEST_IMAGE_KERNEL "kernel" /* kernel text at ADDRESS, as it was at READ_NS: exact */
#define MANIFEST_IMAGE_KERNEL_FILE                                        \
	"kernel-file" /* vmlinux or a module's file (PATH "[NAME]"): laid \
		       * out by the text "kernel-sections", and not to    \
		       * be believed where the kernel patches itself */

/* Code. First of all a file that was mapped executable: a MMAP2 record means the image with the
 * same device and inode and generation, else (all of them 0) the same path. One with a build id
 * means the image with that build id and that path; nobody has compared the file's own yet. */
struct manifest_image {
	char *path; /* owned; as the record names it */
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint64_t size;	 /* bytes of member "images/INDEX"; 0 and missing set: not in the bundle */
	char *missing;	 /* owned; NULL: the bytes are there or elsewhere; else why not, in words */
	uint64_t offset; /* the member holds the file's bytes from here on */
	char *build_id;	 /* owned, lower-case hex, as the records say; NULL: they name an inode */
	/* There is no member, SIZE is 0: the bytes lie with whoever has the bundle, who is asked
	 * for them by INDEX (worker.h), or are listed beside it (kept.h). */
	bool elsewhere;
	uint64_t file_size; /* of the whole; ABSENT: OFFSET + SIZE */
	char *pieces;	    /* owned; the member holds these pieces one behind the other
			     * (manifest_pieces_parse), OFFSET is 0; NULL: one, at OFFSET */
	char *kind;	    /* owned; above; NULL: a file */
	uint32_t pid;	    /* ANY: of no single process */
	uint64_t address;   /* of memory: where its first byte lies; ABSENT */
	uint64_t read_ns;   /* of memory: when it was read (perf clock); ABSENT */
};

/* Text that the worker parses: member "texts/INDEX". */
#define MANIFEST_TEXT_KALLSYMS "kallsyms" /* /proc/kallsyms, functions only */
#define MANIFEST_TEXT_MODULES  "modules"  /* /proc/modules */
#define MANIFEST_TEXT_KERNEL_SECTIONS                                                     \
	"kernel-sections" /* lines "MODULE SECTION 0xADDRESS"; * is the kernel: "* kprobe \
			     0xADDRESS", and "* kprobes 0x1": those are all */
#define MANIFEST_TEXT_PERF_MAP "perf-map" /* /tmp/perf-PID.map of process PID */
struct manifest_text {
	char *kind;    /* owned */
	uint32_t pid;  /* ANY */
	uint64_t size; /* bytes of the member; 0 and missing set: none */
	char *missing; /* owned; NULL */
};

/* Something that the source or the recorder knows it did not see; becomes a gap of that kind. */
struct manifest_note {
	char *kind; /* owned; a name of decoder/packet/fault.h */
	uint64_t count;
	char *why; /* owned; NULL: none */
};

/* Sideband as libipt's tools take it, for their views: a file of perf records as a foreign
 * perf_event_attr laid them out, in member "pevent/INDEX". The same records stand, translated, in
 * the sideband member. */
struct manifest_pevent {
	char *name; /* owned; as messages name it */
	uint64_t size;
	bool secondary;	      /* of another CPU */
	uint64_t sample_type; /* attr.sample_type */
	uint32_t time_shift, time_mult;
	uint64_t time_zero, tsc_offset;
};

struct manifest_label {
	char *key, *value; /* owned, not NULL */
};

struct manifest {
	/* identity */
	char *id, *version;
	/* host; strings NULL when unknown */
	char *hostname, *kernel_release, *machine, *boot_id, *cpu_model_name;
	bool have_cpu;
	uint32_t cpu_family, cpu_model, cpu_stepping;
	bool cpu_intel;
	/* trigger */
	char *trigger_kind; /* "control", "signal", "exit", "offline" */
	char *trigger_name, *reason;
	char *unit;	   /* that it is about; NULL: none */
	char *sender_unit; /* that the sender runs in; NULL: not known */
	char *coredump;	   /* the file that systemd-coredump made of the process; NULL: none */
	uint64_t sender_pid, sender_uid;		  /* ABSENT */
	uint64_t realtime_ns, monotonic_ns, perf_ns, tsc; /* ABSENT */
	/* clock: perf ns = time_zero + (tsc * time_mult >> time_shift), see
	 * include/uapi/linux/perf_event.h, cap_user_time_zero */
	bool have_clock;
	uint16_t time_shift;
	uint32_t time_mult;
	uint64_t time_zero;
	/* trace configuration */
	char *source;		       /* "emulated", "intel_pt", "raw" */
	char *pt_terms;		       /* "tsc,mtc,mtc_period=9,...", NULL: unknown */
	uint64_t pt_config;	       /* attr.config; ABSENT */
	bool trace_user, trace_kernel; /* what the attr did not exclude */
	uint32_t mtc_period; /* log2 of CTC ticks between MTCs; UINT32_MAX: no MTC or unknown */
	uint32_t max_nonturbo_ratio;	   /* 0: unknown */
	uint32_t tsc_art_num, tsc_art_den; /* CPUID 0x15 EBX, EAX; 0: unknown */
	bool noretcomp;
	bool clock_is_monotonic;       /* have_clock false: times are CLOCK_MONOTONIC's */
	char *preset;		       /* owned; NULL: none */
	char *pt_attr, *sideband_attr; /* owned; the perf_event_attrs in words; NULL */
	char *sideband_missing;	       /* owned; kinds that the kernel does not tell, joined
					* by commas; NULL: none */
	char *sizes_note;	       /* owned; rings smaller than asked for, in words; NULL */
	/* request */
	uint64_t last_bytes, last_ns; /* ABSENT: everything */
	uint64_t previous_stop_ns;    /* when the snapshot before this one stopped; ABSENT */
	/* sideband */
	uint64_t horizon_ns; /* before this only the folded base state is known; ABSENT: none */
	uint64_t dropped_records; /* that the timeline's limit folded */
	bool excluding; /* some processes are excluded, and so is whoever is not in the list */
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
	uint64_t kernel_start; /* first address of the kernel; ABSENT: the upper canonical half */
};

/* All empty and absent. */
void manifest_init(struct manifest *m);
void manifest_done(struct manifest *m);
/* Elements appended, all zero but for what may be ABSENT, which is; NULL: no memory, or the limit
 * above is reached. The pointer is good until the next one. */
struct manifest_cpu *manifest_add_cpu(struct manifest *m);
struct manifest_process *manifest_add_process(struct manifest *m);
struct manifest_image *manifest_add_image(struct manifest *m);
struct manifest_pevent *manifest_add_pevent(struct manifest *m);
struct manifest_label *manifest_add_label(struct manifest *m);
struct manifest_text *manifest_add_text(struct manifest *m);
/* "0x0+0x1000,0x8000+0x200" <-> pieces in order of offset that neither touch nor overlap, at most
 * MAX_PIECES. *ret is malloc'ed. 0, -EBADMSG, -E2BIG, -ENOMEM. */
int manifest_pieces_parse(const char *text, struct manifest_piece **ret, size_t *ret_n);
int manifest_pieces_format(const struct manifest_piece *pieces, size_t n, char **ret);
/* Sorts PIECES of any order, joins those that touch or overlap; returns how many are left. Empty
 * ones, and those that end beyond 2^63, are dropped. */
size_t manifest_pieces_join(struct manifest_piece *pieces, size_t n);
/* 0; -ENOMEM; -ENOSPC: the limit above is reached. */
int manifest_add_note(struct manifest *m, const char *kind, uint64_t count, const char *why);
/* The manifest as JSON text, appended. 0, -ENOMEM, or -E2BIG when OUT's limit does not hold it. A
 * string that may not be absent (id, version, trigger_kind, source, path, kind) but is NULL comes
 * out empty. */
int manifest_write(const struct manifest *m, struct bytes_out *out);
/* Parses (json-c, strict, depth 8) and checks ranges and limits; M must be initialised and is empty
 * again on failure. 0, -EBADMSG (not ours or damaged), -EPROTONOSUPPORT (a newer version), -ENOMEM.
 */
int manifest_read(const void *text, size_t size, struct manifest *m);
