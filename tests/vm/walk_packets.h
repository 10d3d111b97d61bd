/*
 * Writes the packets that a processor would write while it executes ptsnap-walk: the model's
 * branches (ctl/check/walk_model.h) as described in the SDM's volume 3, chapter "Intel Processor
 * Trace", with TSCs of this machine. Independent of our decoder.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

struct walk_packets_config {
	uint64_t seed;
	uint32_t rounds;
	uint32_t mtc_period;	   /* log2 of CTC ticks; UINT32_MAX: no MTC */
	uint32_t art_num, art_den; /* TSC ticks of a CTC tick: num / den */
	int feed;		   /* file descriptor that receives the packets */
	FILE *expected; /* receives "FROM TO" in hex for each taken branch; 0: not traced */
};

/* Feeds rounds 0 to ROUNDS - 1, from enabling tracing at the first round to an interrupt behind the
 * last. *ret_branches: number of lines in EXPECTED. 0; -errno of a write; -EAGAIN: the trace unit
 * did not accept all bytes. */
int walk_packets_feed(const struct walk_packets_config *config, uint64_t *ret_branches);
