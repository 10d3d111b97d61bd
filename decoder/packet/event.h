/*
 * Packets -> events: what the walk over the code has to do next, with the packets that belong
 * together (FUP and TIP, PSB+, OVF and FUP) made one, and what is not a branch made a mark.
 *
 * Work is linear in the trace: a packet is read once as what it is, and once more for each kind of
 * question about what follows (enum event_question), whose answers are kept for the places between
 * where it was asked and where it was decided.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/packet/errata.h"
#include "decoder/packet/fault.h"
#include "decoder/packet/mark.h"
#include "decoder/packet/mode.h"
#include "decoder/packet/packet.h"

enum event_kind {
	EVENT_NONE,	 /* nothing to do */
	EVENT_TNT,	 /* n, bits */
	EVENT_TIP,	 /* to */
	EVENT_ENABLE,	 /* to */
	EVENT_DISABLE,	 /* by a branch; to: where it would have gone */
	EVENT_ASYNC,	 /* from, to */
	EVENT_ASYNC_OFF, /* from */
	EVENT_PSB,	 /* from: tracing is on and there; none: tracing is off */
	EVENT_STATUS,	 /* from: a transaction begins or ends there, or the mode changes */
	EVENT_MARK,	 /* event_mark; bind, and from or n */
	EVENT_OVERFLOW,	 /* to: tracing is on again there */
	EVENT_STOP,	 /* TraceSTOP */
	EVENT_BAD,	 /* fault; what follows stands behind the gap */
	EVENT_END,	 /* from: as far as execution is known to have come */
};

/* Where a mark belongs. While tracing is off each belongs where it stands. */
enum event_bind {
	EVENT_NOW,     /* behind the decisions before it */
	EVENT_BEFORE,  /* before the instruction at from */
	EVENT_BEHIND,  /* behind the instruction at from */
	EVENT_CR3,     /* behind the next instruction that may write CR3 or change the VM */
	EVENT_VMCS,    /* behind the next one that may load a VMCS */
	EVENT_PTWRITE, /* behind the next PTWRITE */
	EVENT_COUNT,   /* behind n instructions */
};

struct event {
	uint64_t from, to, bits;
	uint64_t offset; /* of its first packet */
	uint64_t last;	 /* of its last packet */
	uint64_t end;	 /* behind that */
	uint32_t n;	 /* EVENT_TNT, EVENT_COUNT */
	uint8_t kind;
	uint8_t fault;
	uint8_t mode; /* enum insn_mode, from this event on */
	uint8_t bind; /* EVENT_MARK */
	uint8_t mark; /* EVENT_MARK: for event_mark */
	bool has_from, has_to;
	bool in_tx; /* from this event on */
	bool guest; /* from this event on a virtual machine runs */
	bool abort; /* EVENT_ASYNC, EVENT_ASYNC_OFF: of a transaction */
	bool timed; /* a timing packet stood between it and the one before */
	bool late;  /* EVENT_TIP: of the decisions before it some may belong behind it */
	bool clash; /* EVENT_PSB: at bits, it says another mode than the packets before it */
};

struct event_counts {
	uint64_t packets, psbs, cbr, overflows, unknown;
	uint64_t tsc_first, tsc_last;
};

/* What was asked about the packets ahead. The answer holds for places in [from, until). */
enum event_question {
	EVENT_ASK_ENABLE, /* BDM70: nothing but status up to a TIP.PGE? */
	EVENT_ASK_OFF,	  /* is tracing off? */
	EVENT_ASK_TIP,	  /* does a TIP belong to the FUP before it? */
	EVENT_ASK_PROMPT, /* does a TNT follow the TIPs? */
	EVENT_QUESTIONS,
};
struct event_answer {
	const uint8_t *from, *until;
	bool yes;
};

/* Marks and events that wait to be given: a FUP can settle a few packets at once. */
#define EVENT_QUEUE 24u
#define EVENT_WAITS 8u

struct event_wait {
	uint8_t rule; /* enum event_rule of event_private.h: what it waits for */
	struct flow_mark mark;
};

struct event_reader {
	struct packet_cursor c;
	const uint8_t *trace;
	const uint8_t *stop; /* no packet that begins there or behind belongs to this reader */
	const uint8_t *at;   /* the packet that was read last */
	struct errata errata;
	uint64_t last_ip;
	uint8_t mode, next_mode;
	bool iflag, next_iflag;
	bool mode_known, iflag_known;
	bool in_tx, guest, timed;
	bool fup_owed;	 /* an OVF's FUP may still come, behind a PSB+ that said where */
	bool mode_waits; /* MODE.Exec came, its TIP or FUP did not yet */
	bool cbr_known, cr3_known, vmcs_known;
	uint8_t cbr;
	uint64_t cr3, vmcs;
	uint8_t bbp_type;
	uint8_t order; /* enum event_order of event_private.h */
	bool prompt;   /* so far no TIP was deferred, as far as was read */
	/* EVDs that wait for their CFE. */
	uint8_t evd_flags;
	uint64_t evd[3];
	/* Packets that wait for their FUP, TIP or EXSTOP. */
	struct event_wait waits[EVENT_WAITS];
	uint8_t n_waits;
	/* Given before anything else is read. */
	struct event queue[EVENT_QUEUE];
	uint8_t queue_head, queue_n;
	struct flow_mark marks[EVENT_QUEUE]; /* of the queue's events */
	struct event_answer answers[EVENT_QUESTIONS];
	struct event_counts counts;
};

/* Reads the SIZE bytes at TRACE from START (a PSB) to STOP. */
void event_reader_init(struct event_reader *r, const uint8_t *trace, size_t size, size_t start,
		       size_t stop, struct errata errata);
/* The next one; EVENT_END for ever at the end. */
void event_next(struct event_reader *r, struct event *ret);
/* Where nothing waits: passes by the events that are branches or decisions within user code (TNT,
 * and TIP to an address that is not of the kernel's half), as if they had been given. */
void event_pass_branches(struct event_reader *r);
/* The mark of the EVENT_MARK that was given last; its times are zero. */
const struct flow_mark *event_mark(const struct event_reader *r, const struct event *e);
/* Whether what follows shows that tracing is off here: no branch before TIP.PGE, a PSB+ without
 * FUP, TraceSTOP or the end. */
bool event_off_ahead(struct event_reader *r);
/* Whether the TIP that was read last is seen to be none that was deferred: the TNT before it was
 * not full, so the TIP made the processor write it, and the next TNT needed nothing else, either.
 */
bool event_prompt_ahead(struct event_reader *r);
/* The cursor's quirks for these errata. */
uint8_t event_quirks(const struct errata *e);
