/*
 * A .pts file: a program, the trace that a processor would write of it, the records that a kernel
 * would write, and the expected results of decoding, in one text. docs/PTSCRIPT.md describes the
 * language. For tests of the decoder. Packet layouts are written from the SDM and not taken from
 * our decoder, so that each tests the other.
 * Order of use: parse, then assemble (ptscript_program.h) or add labels, then trace and sideband,
 * then expand. Out of memory ends the process: only tests use this code.
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
	PTSCRIPT_EXPECT, /* may occur more than once */
};

struct ptscript_section {
	enum ptscript_kind kind;
	unsigned line; /* line of its header */
	char *view;    /* EXPECT: the word before the colon; else NULL; owned */
	char *words;   /* the text behind the colon, trimmed; owned */
	char *text;    /* the lines below, unchanged; owned */
};

struct ptscript_label {
	char *name; /* owned */
	uint64_t value;
};

/* A place where the trace does not go on (struct manifest_seam). */
#define PTSCRIPT_SEAMS 8
struct ptscript_seam {
	uint64_t offset;
	char kind[32];
};

struct ptscript {
	const char *path; /* as shown in messages; borrowed */
	struct ptscript_section *sections;
	size_t n_sections;
	struct ptscript_label *labels;
	size_t n_labels;
	struct bytes_out trace;	   /* written by ptscript_trace */
	struct bytes_out sideband; /* written by ptscript_sideband */
	bool has_kernel;	   /* the program's sections at kernel addresses are kernel code */
	uint64_t kernel_time;	   /* when the kernel code was read, perf ns */
	bool has_trigger;
	uint64_t trigger_time; /* perf ns */
	struct ptscript_seam seams[PTSCRIPT_SEAMS];
	size_t n_seams;
	char error[512]; /* "PATH:LINE: why", of the last failed call */
};

/* Splits TEXT into sections. 0, or -EINVAL and s->error; call ptscript_done in either case. */
int ptscript_parse(struct ptscript *s, const char *path, const char *text);
void ptscript_done(struct ptscript *s);

/* The first section of kind KIND; NULL: none. */
const struct ptscript_section *ptscript_find(const struct ptscript *s, enum ptscript_kind kind);

/* 0 or -EEXIST. */
int ptscript_add_label(struct ptscript *s, const char *name, uint64_t value);

/* Write the trace section as packets, and the sideband section as perf records
 * (proto/perf/perfrecord.h). A packet's label becomes a label of the script; its value is the
 * packet's offset. 0, or -EINVAL and s->error. A missing section gives no bytes. */
int ptscript_trace(struct ptscript *s);
int ptscript_sideband(struct ptscript *s);

/* Appends the lines that SECTION (an EXPECT) expects to OUT, with labels replaced. Same errors. */
int ptscript_expand(struct ptscript *s, const struct ptscript_section *section,
		    struct bytes_out *out);
