/*
 * The reader of samples: the addresses that the packets of a trace hold, in order and with time.
 * The reader looks at no code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/flow/flow.h"
#include "decoder/packet/errata.h"
#include "decoder/packet/packet.h"
#include "decoder/time/timing.h"

enum skim_kind {
	SKIM_PSB,     /* the FUP of a PSB+; without an address: tracing is off */
	SKIM_TIP,     /* where a branch went */
	SKIM_ENABLE,  /* TIP.PGE: where tracing goes on */
	SKIM_DISABLE, /* TIP.PGD: where a branch went that ended tracing */
	SKIM_FUP,     /* where an event happened */
	SKIM_N_,
};

struct skim_sample {
	uint64_t offset; /* of the packet; SKIM_PSB: of the PSB */
	uint64_t ip;
	/* When the sample was taken: as timing_at() says; for a PSB+, exactly its TSC. 0 and
	 * UINT64_MAX where unknown. */
	uint64_t tsc_lo, tsc_hi;
	uint8_t kind; /* enum skim_kind */
	uint8_t mode; /* SKIM_PSB: enum insn_mode, if mode_known */
	bool has_ip, mode_known;
	bool guest; /* a virtual machine runs */
};

struct skim_config {
	const uint8_t *trace; /* borrowed */
	size_t size;
	size_t start;		       /* reading begins here */
	const struct flow_seam *seams; /* borrowed; as in struct flow_config */
	size_t n_seams;
	bool psb_only; /* only PSB+ are read; the bytes between are searched for the next PSB */
	struct errata errata;
	struct timing_config timing;
};

struct skim_counts {
	uint64_t head;		      /* bytes from start to the first PSB */
	uint64_t psbs;		      /* all */
	uint64_t samples;	      /* that have an address */
	uint64_t overflows;	      /* not with psb_only */
	uint64_t bad_packets;	      /* places that hold no packet */
	uint64_t bad_bytes;	      /* bytes from there to the next PSB */
	uint64_t backwards;	      /* places where time runs backwards */
	uint64_t backwards_bytes;     /* that are doubted for that */
	uint64_t seams;		      /* places where the trace does not go on */
	uint64_t tsc_first, tsc_last; /* of PSBs; 0: none */
};

void skim_counts_add(struct skim_counts *to, const struct skim_counts *c);

/* Owns nothing. */
struct skim_reader {
	struct skim_config config;
	struct packet_cursor c;
	struct timing timing;
	struct skim_counts counts;
	uint64_t last_ip;
	uint64_t tsc_lo, tsc_hi; /* of packets before ASK_FROM */
	uint64_t ask_from;	 /* the offset from which on the time is another */
	uint64_t lost_at;	 /* the offset of the last overflow, bad packet or seam */
	size_t next_seam;	 /* index into config.seams: where the piece at hand ends */
	uint64_t time, psb_time; /* as in struct event_reader, of PSBs */
	uint8_t searches;	 /* as there */
	bool guest;
	bool begun;
};

void skim_reader_init(struct skim_reader *r, const struct skim_config *config);
/* The next packet with an address, or the next PSB even without one. False: the end. All calls
 * together take time linear in the trace. */
bool skim_reader_next(struct skim_reader *r, struct skim_sample *ret);
/* The TSC of the first and of the last PSB of TRACE from START on that tell one. False: none does.
 */
bool skim_span(const uint8_t *trace, size_t size, size_t start, uint64_t *ret_first,
	       uint64_t *ret_last);
