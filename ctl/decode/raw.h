/*
 * Decoding without a recorder: options, bundles from raw files, answers to ptsnap-decode.
 *
 * `ptsnapctl decode' opens or composes a bundle, starts ptsnap-decode, and answers its questions.
 * raw.c composes a bundle in memory from raw files: PT bytes (--raw-pt), code (--raw-image) and
 * perf records of a foreign layout (--pevent, import_pevents.c). raw_option.c parses the options
 * for raw files, decode_option.c all options of the verb. While ptsnap-decode works, answers.c
 * answers its questions: files with symbols and DWARF come from directories of the user (--symbols)
 * or, through answers.c, from servers (--debuginfod).
 *
 * Decisions that govern the room:
 * - Raw files become a bundle in memory before anything is decoded. Everything behind that is the
 *   ordinary path.
 * - ptsnapctl opens files and passes descriptors; ptsnap-decode parses, in its sandbox. Nothing
 *   here looks into a program, a trace or a file with DWARF.
 * - The paths of a bundle's programs and the build ids in questions come from strangers. Files are
 *   looked for only in directories that the user named, no path leads out of these, and only
 *   regular files are opened for reading. ptsnap-decode compares build ids itself.
 * - The recorder looks for no file by what a decoder says; only ptsnapctl does.
 * - debuginfod-find is a program of its own, so that nothing of ours speaks with a network.
 * - Functions here print their error messages and return an exit code, or false; functions that
 *   return -errno say so and print nothing.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/bundle.h"
#include "proto/bundle/manifest.h"
#include "proto/bytes.h"

#include "ctl/perfdata/import_images.h"

/* --- The options --pevent:...: files of perf records, with the layout that a perf_event_attr
 * described, under the names of libipt's ptdump and ptxed (raw_option.c) --- */

#define PEVENT_OPTIONS_MAX 12u

struct pevent_file {
	char *path;	     /* owned */
	uint64_t begin, end; /* the used range of the file, in bytes; end 0: up to the file's end */
	bool secondary;	     /* records of another CPU than the trace's */
	uint64_t sample_type, time_zero, tsc_offset;
	uint32_t time_shift, time_mult;
};

/* Options about the layout apply to the files that follow them on the command line. */
struct pevent_options {
	struct pevent_file layout; /* of the next file */
	struct pevent_file *files;
	size_t n_files;
	const char *sysroot;   /* borrowed, or NULL */
	uint64_t kernel_start; /* 0: not given */
};

void pevent_options_init(struct pevent_options *p);
void pevent_options_done(struct pevent_options *p);
/* Fills TO with the options for getopt_long(3), the first with the value FIRST. Returns their
 * number. */
size_t pevent_option_table(struct option to[static PEVENT_OPTIONS_MAX], int first);
/* Stores VALUE for the option at INDEX in the table. Returns false after a message. */
bool pevent_option_take(struct pevent_options *p, size_t index, const char *value);

/* --- The options for raw files (raw_option.c) --- */

struct raw_image {
	char *path; /* owned */
	uint64_t offset;
	uint64_t length; /* UINT64_MAX: to the end of the file */
	uint64_t vaddr;
};

struct raw {
	const char *pt_path; /* borrowed */
	struct raw_image *images;
	size_t n_images;
	bool have_cpu;
	uint32_t family, model, stepping;
	uint32_t mtc_period; /* libipt's mtc_freq; UINT32_MAX: none */
	uint32_t max_nonturbo_ratio;
	uint32_t tsc_art_num, tsc_art_den;
	uint64_t pt_config; /* attr.config; MANIFEST_ABSENT: unknown */
	struct pevent_options pevents;
};

void raw_init(struct raw *raw);
void raw_done(struct raw *raw);
/* FILE[:OFFSET:LENGTH]@VADDR, parsed from the right, so that FILE may contain both signs. 0,
 * -EINVAL, -ERANGE (a number or the end of the range exceeds 64 bits), -ENOMEM. */
int raw_add_image(struct raw *raw, const char *text);
/* FAMILY/MODEL[/STEPPING]. 0, -EINVAL or -ERANGE. */
int raw_set_cpu(struct raw *raw, const char *text);
/* EAX,EBX of CPUID leaf 0x15, as for ptxed. 0, -EINVAL or -ERANGE. */
int raw_set_cpuid_0x15(struct raw *raw, const char *text);
#define RAW_IMAGE_VALID "FILE[:OFFSET:LENGTH]@VADDR, numbers decimal or 0x"
#define RAW_CPU_VALID	"FAMILY/MODEL or FAMILY/MODEL/STEPPING, like 6/85/4"
#define RAW_CPUID_VALID "EAX,EBX, like 2,308"

/* --- The bundle (raw.c) --- */

/* Composes the bundle in a sealed memfd, *ret_fd, the caller's. *ret_cut is the number of ranges
 * that were cut at the end of their file. 0, or an exit code after a message. */
int raw_compose(const struct raw *raw, int *ret_fd, size_t *ret_cut);

/* --- The perf records of raw_compose() (import_pevents.c): the bundle gets them unchanged, for the
 * views that show them, and translated, as sideband --- */

struct import_pevents {
	const struct pevent_options *options; /* borrowed */
	struct import_images images;	      /* the files that the records map */
	int fds[MANIFEST_MAX_PEVENTS];
	bool switches;	/* the records say which thread has the trace's CPU */
	uint64_t n_bad; /* records that do not parse */
};

void import_pevents_init(struct import_pevents *i, const struct pevent_options *options);
void import_pevents_done(struct import_pevents *i);
/* Appends the translated records to OUT, and sets M's pevents and clock. A file is read up to the
 * first bytes that cannot be a record. 0, or an exit code after a message. */
int import_pevents_read(struct import_pevents *i, struct manifest *m, struct bytes_out *out);
/* Writes the files as members, and, if IMAGES (the bundle has none yet), the files that the records
 * map. 0, or an exit code after a message. */
int import_pevents_write(struct import_pevents *i, bool images, struct manifest *m,
			 struct bundle_writer *w);
