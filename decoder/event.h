/*
 * Packets -> events: what the walk over the code has to do next, with the packets that belong
 * together (FUP and TIP, PSB+, OVF and FUP) made one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/errata.h"
#include "decoder/fault.h"
#include "decoder/insn.h"
#include "decoder/packet.h"

enum event_kind {
	EVENT_NONE,
	EVENT_TNT,	 /* n, bits */
	EVENT_TIP,	 /* to */
	EVENT_ENABLE,	 /* to */
	EVENT_DISABLE,	 /* by a branch; to: where it would have gone */
	EVENT_ASYNC,	 /* from, to */
	EVENT_ASYNC_OFF, /* from */
	EVENT_PSB,	 /* from: tracing is on and there; none: tracing is off */
	EVENT_STATUS,	 /* from: a transaction begins or ends there, or the mode changes */
	EVENT_OVERFLOW,	 /* to: tracing is on again there */
	EVENT_STOP,	 /* TraceSTOP */
	EVENT_BAD,	 /* fault; what follows stands behind the gap */
	EVENT_END,	 /* from: as far as execution is known to have come */
};

struct event {
	uint64_t from, to, bits;
	uint64_t offset; /* of its first packet */
	uint64_t end;	 /* of its last one */
	uint8_t kind;
	uint8_t n; /* EVENT_TNT */
	uint8_t fault;
	uint8_t mode; /* enum insn_mode, from this event on */
	bool has_from, has_to;
	bool in_tx; /* from this event on */
};

struct event_counts {
	uint64_t packets, psbs, cbr, overflows, unknown;
	uint64_t tsc_first, tsc_last;
};

struct event_reader {
	struct packet_cursor c;
	const uint8_t *trace;
	const uint8_t *stop; /* no packet that begins there or behind belongs to this reader */
	struct errata errata;
	uint64_t last_ip;
	uint8_t mode, next_mode;
	bool in_tx;
	bool mode_waits; /* MODE.Exec came, its TIP did not yet */
	bool tx_waits, tx_abort;
	bool fup_taken; /* the next FUP belongs to PTW, EXSTOP, MWAIT, BEP or CFE */
	struct event_counts counts;
};

/* Reads the SIZE bytes at TRACE from START (a PSB) to STOP. */
void event_reader_init(struct event_reader *r, const uint8_t *trace, size_t size, size_t start,
		       size_t stop, struct errata errata);
/* The next one; EVENT_END for ever at the end. */
void event_next(struct event_reader *r, struct event *ret);
/* Whether what follows shows that tracing is off here: no branch before TIP.PGE, a PSB+ without
 * FUP, TraceSTOP or the end. */
bool event_off_ahead(const struct event_reader *r);
