/*
 * Chooses the programs that make a kind of probe, and attaches them.
 */
#pragma once

#include "capture/probe/files.h"

struct probe_bpf;
struct bpf_link;

/* A static probe of one name may be at many places. */
#define PROBE_PLACES 64

struct probe {
	enum probe_kind kind;
	probe_fn fn;
	void *userdata;
	struct probe_bpf *bpf;
	struct ring_buffer *events;
	struct bpf_link *links[PROBE_PLACES];
	unsigned n_links;
	struct probe_file exe, file;
};

/* Writes the specification into the programs' read-only data. P->exe and P->file are open. 0, or
 * -errno with a sentence. */
int attach_fill(struct probe *p, const struct probe_spec *spec, char **ret_error);
/* Chooses the programs of the kind, before they are loaded. */
void attach_choose(struct probe *p);
/* Attaches the loaded programs. 0, or -errno with a sentence; links that exist stay in P. */
int attach_all(struct probe *p, const struct probe_spec *spec, char **ret_error);
