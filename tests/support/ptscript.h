/*
 * A .pts text: a program, the trace that a processor would write of it, the records that a kernel
 * would write beside it, and what decoding all that must give, in one file. docs/PTSCRIPT.md has
 * the language. For tests of the decoder; the layouts of packets are written from the SDM and not
 * from our decoder, so that each tests the other.
 *
 * Used in this order: parse, then assemble (ptscript_program.h) or add labels, then trace and
 * sideband, then expand. Running out of memory ends the process: this is a tool for tests.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bytes.h"

enum ptscript_kind {
	PTSCRIPT_PROGRAM,
	PTSCRIPT_TRACE,
	PTSCRIPT_SIDEBAND,
	PTSCRIPT_OPTIONS,
	PTSCRIPT_EXPECT, /* the only one that may come more than once */
};

struct ptscript_section {
	enum ptscript_kind kind;
	unsigned line; /* of its header */
	char *view;    /* EXPECT: the word before the colon; else NULL; owned */
	char *words;   /* behind the colon, trimmed; owned */
	char *text;    /* the lines below, as they stand; owned */
};

struct ptscript_label {
	char *name; /* owned */
	uint64_t value;
};

struct ptscript {
	const char *path; /* as messages name it; borrowed */
	struct ptscript_section *sections;
	size_t n_sections;
	struct ptscript_label *labels;
	size_t n_labels;
	struct bytes_out trace;	   /* of ptscript_trace */
	struct bytes_out sideband; /* of ptscript_sideband */
	bool has_kernel;      /* so: the program's sections at kernel addresses are the kernel's */
	uint64_t kernel_time; /* and were read then, perf ns */
	char error[512];      /* "PATH:LINE: why", of the last call that failed */
};

/* Cuts TEXT into sections. 0 or -EINVAL and s->error; ptscript_done in either case. */
int ptscript_parse(struct ptscript *s, const char *path, const char *text);
void ptscript_done(struct ptscript *s);

/* The first section of that kind; NULL: there is none. */
const struct ptscript_section *ptscript_find(const struct ptscript *s, enum ptscript_kind kind);

/* 0 or -EEXIST. */
int ptscript_add_label(struct ptscript *s, const char *name, uint64_t value);

/* The trace section as packets, the sideband section as perf records (proto/perf/perfrecord.h). A
 * label of a packet becomes one of the script: its offset. 0 or -EINVAL and s->error; without such
 * a section there are no bytes. */
int ptscript_trace(struct ptscript *s);
int ptscript_sideband(struct ptscript *s);

/* The lines that SECTION, an EXPECT, expects, labels replaced, appended to OUT. Same errors. */
int ptscript_expand(struct ptscript *s, const struct ptscript_section *section,
		    struct bytes_out *out);
