/*
 * The packets that a processor would write while it executes ptsnap-walk: the model's branches
 * (ctl/check/walk_model.h) in the language of the SDM's volume 3, chapter "Intel Processor Trace",
 * stamped with this machine's TSC. Knows nothing of our decoder. Called by feeder.c.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

struct walk_packets_config {
	uint64_t seed;
	uint32_t rounds;
	uint32_t mtc_period;	   /* log2 of CTC ticks; UINT32_MAX: no MTC */
	uint32_t art_num, art_den; /* TSC ticks of a CTC tick: num / den */
	int feed;		   /* where the packets go */
	FILE *expected;		   /* "FROM TO" in hex for each taken branch, 0 for not traced */
};

/* Rounds 0 .. ROUNDS - 1, from tracing enabled at the first to an interrupt behind the last.
 * *ret_branches: lines of EXPECTED. 0; -errno of a write; -EAGAIN: the trace unit did not take all.
 */
int walk_packets_feed(const struct walk_packets_config *config, uint64_t *ret_branches);
