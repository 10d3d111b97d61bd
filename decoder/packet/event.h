/*
 * The event reader: turns packets into events, which say what the walk over the code does next.
 *
 * Packets that belong together (FUP and TIP, PSB+, OVF and FUP) become one event. A packet that is
 * no branch becomes a mark.
 *
 * Work is linear in the trace: each packet is read once, and scanned at most once more for each
 * kind of question about what follows (enum event_question). An answer is kept for all places
 * between the place of the question and the packet that decided it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/packet/errata.h"
#include "decoder/packet/fault.h"
#include "decoder/packet/packet.h"

/* --- Marks: what a trace shows besides branches. The walk places them between instructions --- */

/* The kinds of marks, and what `value` and other fields of each kind hold. Source: SDM volume 3
 * (edition 083), 33.4.2, at the packet's name. */
enum flow_mark_kind {
	FLOW_MARK_MODE,	   /* MODE.Exec, if the mode changes: value is enum insn_mode */
	FLOW_MARK_IFLAG,   /* MODE.Exec, if the flag changes: value 1: interrupts enabled */
	FLOW_MARK_TSX,	   /* MODE.TSX, if the state changes: value is enum flow_tsx */
	FLOW_MARK_PAGING,  /* PIP: value is CR3; FLOW_MARK_NON_ROOT */
	FLOW_MARK_VMCS,	   /* VMCS: value is the base address */
	FLOW_MARK_PTWRITE, /* PTW: value is the payload, of size bytes (4 or 8) */
	FLOW_MARK_CBR,	   /* CBR: value is the ratio; in a PSB+ only if it changes */
	FLOW_MARK_EXSTOP,  /* EXSTOP: execution stopped */
	FLOW_MARK_MWAIT,   /* MWAIT: value: hints in bits 7:0, extensions in bits 33:32 */
	FLOW_MARK_PWRE,	   /* PWRE: value is the payload */
	FLOW_MARK_PWRX,	   /* PWRX: value is the payload */
	FLOW_MARK_MNT,	   /* MNT: value is the payload */
	FLOW_MARK_CFE,	   /* CFE: value is the vector, type the CFE type; evds */
	FLOW_MARK_TRIG,	   /* TRIG: value is TRBV; type 1: MULT; size 1: evd[0] is ICNT */
	FLOW_MARK_PEBS,	   /* BIP: value has size bytes; type of the block, id of the item */
	FLOW_MARK_OFF,	   /* TIP.PGD behind a gap: tracing ended at an unknown place */
	FLOW_MARK_TICK,	   /* flow_config.ticks: a timing packet moved the time */
	FLOW_MARK_N_,
};
enum flow_tsx { FLOW_TSX_BEGIN, FLOW_TSX_COMMIT, FLOW_TSX_ABORT };

#define FLOW_MARK_HAS_IP   0x01 /* ip is the place, from a FUP or found in the code */
#define FLOW_MARK_NON_ROOT 0x02 /* PAGING: of a virtual machine */
#define FLOW_MARK_STATUS   0x04 /* from the PSB+ of a PSB where decoding begins or goes on */
/* The mark belongs to the branch of the item before it, which ended tracing. */
#define FLOW_MARK_OF_BRANCH 0x08
#define FLOW_MARK_CR2	    0x10 /* CFE: evd[0] is CR2 of a page fault */
#define FLOW_MARK_VMXQ	    0x20 /* CFE: evd[1] is a VM exit's qualification */
#define FLOW_MARK_VMXR	    0x40 /* CFE: evd[2] is a VM exit's reason */

struct flow_mark {
	uint64_t offset; /* of the packet */
	uint64_t ip;	 /* FLOW_MARK_HAS_IP: the address in the packets */
	uint64_t value;
	uint64_t evd[3];
	uint64_t tsc_lo, tsc_hi;
	uint8_t kind; /* enum flow_mark_kind */
	uint8_t type, size, id;
	uint8_t flags;
};

/* --- Events --- */

enum event_kind {
	EVENT_NONE,	 /* nothing to do */
	EVENT_TNT,	 /* n, bits */
	EVENT_TIP,	 /* to */
	EVENT_ENABLE,	 /* to */
	EVENT_DISABLE,	 /* a branch ended tracing; to: the branch's target */
	EVENT_ASYNC,	 /* from, to */
	EVENT_ASYNC_OFF, /* from */
	EVENT_PSB,	 /* from: the place of execution; without from: tracing is off */
	EVENT_STATUS,	 /* from: where a transaction begins or ends, or the mode changes */
	EVENT_MARK,	 /* event_mark; bind, and from or n */
	EVENT_OVERFLOW,	 /* to: where tracing goes on */
	EVENT_STOP,	 /* TraceSTOP */
	EVENT_BAD,	 /* fault; the next events stand behind the gap */
	EVENT_END,	 /* from: the last known place of execution */
};

/* Where a mark belongs. While tracing is off, every mark belongs where its packet stands. */
enum event_bind {
	EVENT_NOW,     /* behind the decisions before the mark */
	EVENT_BEFORE,  /* before the instruction at from */
	EVENT_BEHIND,  /* behind the instruction at from */
	EVENT_CR3,     /* behind the next instruction that may write CR3 or change the VM */
	EVENT_VMCS,    /* behind the next instruction that may load a VMCS */
	EVENT_PTWRITE, /* behind the next PTWRITE */
	EVENT_COUNT,   /* behind n instructions */
};

struct event {
	uint64_t from, to, bits;
	uint64_t offset; /* of the first packet */
	uint64_t last;	 /* of the last packet */
	uint64_t end;	 /* behind the last packet */
	uint32_t n;	 /* EVENT_TNT, EVENT_COUNT */
	uint8_t kind;
	uint8_t fault;
	uint8_t mode; /* enum insn_mode, from this event on */
	uint8_t bind; /* EVENT_MARK */
	uint8_t mark; /* EVENT_MARK: for event_mark */
	bool has_from, has_to;
	bool in_tx; /* from this event on */
	bool guest; /* from this event on a virtual machine runs */
	bool abort; /* EVENT_ASYNC, EVENT_ASYNC_OFF: a transaction aborted */
	bool timed; /* a timing packet stands between this event and the one before */
	bool late;  /* EVENT_TIP: some decisions before it may belong behind it (deferred TIP) */
	bool clash; /* EVENT_PSB: the packet at offset bits contradicts the mode before the PSB */
};

struct event_counts {
	uint64_t packets, psbs, cbr, overflows, unknown;
	uint64_t tsc_first, tsc_last;
};

/* Questions about the packets ahead. The answer holds for all places in [from, until). */
enum event_question {
	EVENT_ASK_ENABLE, /* event_enable_ahead() */
	EVENT_ASK_OFF,	  /* event_off_ahead() */
	EVENT_ASK_TIP,	  /* event_tip_ahead() */
	EVENT_ASK_BRANCH, /* event_branch_ahead() */
	EVENT_ASK_PROMPT, /* event_prompt_ahead() */
	EVENT_QUESTIONS,
};
struct event_answer {
	const uint8_t *from, *until;
	bool yes;
};

/* The sizes of the queue of events to return, and of the list of packets that wait: a FUP can
 * settle several packets at once. */
#define EVENT_QUEUE 24u
#define EVENT_WAITS 8u

struct event_wait {
	uint8_t rule; /* enum event_rule of event_read.h: what the mark waits for */
	struct flow_mark mark;
};

struct event_reader {
	struct packet_cursor c;
	const uint8_t *trace;
	const uint8_t *stop; /* packets that begin here or behind do not belong to this reader */
	const uint8_t *at;   /* the packet read last */
	struct errata errata;
	uint64_t last_ip;
	uint8_t mode, next_mode;
	bool iflag, next_iflag;
	bool mode_known, iflag_known;
	bool in_tx, guest, timed;
	bool fup_owed;	 /* an OVF's FUP may still come, behind a PSB+ with a FUP */
	bool mode_waits; /* a MODE.Exec waits for its TIP or FUP */
	bool cbr_known, cr3_known, vmcs_known;
	uint8_t cbr;
	uint64_t cr3, vmcs;
	/* The last TSC, and the last one of a PSB+; 0: none. Not of virtual machines. */
	uint64_t time, psb_time;
	bool back;	  /* the TSC read last is earlier than the one before */
	uint8_t searches; /* for the end of doubt, that found none (event_time.c) */
	uint8_t bbp_type;
	uint8_t order; /* enum event_order of event_read.h */
	bool prompt;   /* a TIP has proved that this processor does not defer TIPs */
	/* EVDs that wait for their CFE. */
	uint8_t evd_flags;
	uint64_t evd[3];
	/* Packets that wait for their FUP, TIP or EXSTOP. */
	struct event_wait waits[EVENT_WAITS];
	uint8_t n_waits;
	/* Events to return before another packet is read. */
	struct event queue[EVENT_QUEUE];
	uint8_t queue_head, queue_n;
	struct flow_mark marks[EVENT_QUEUE]; /* of the queue's events */
	struct event_answer answers[EVENT_QUESTIONS];
	struct event_counts counts;
};

/* Reads the SIZE bytes at TRACE from START (a PSB) to STOP. */
void event_reader_init(struct event_reader *r, const uint8_t *trace, size_t size, size_t start,
		       size_t stop, struct errata errata);
/* Notes the time of the PSBs before START, where the reader stands: packets behind START that are
 * earlier are doubted (FAULT_TIME_BACKWARDS). */
void event_note_before(struct event_reader *r, const uint8_t *start);
/* Returns the next event; at the end EVENT_END, again and again. */
void event_next(struct event_reader *r, struct event *ret);
/* Skips events that are branches or decisions within user code (TNT, and TIP to an address in the
 * lower half), as if event_next() had returned them. Does nothing while a packet waits for another.
 */
void event_pass_branches(struct event_reader *r);
/* The mark of E, the EVENT_MARK returned last. The mark's times are zero. */
const struct flow_mark *event_mark(const struct event_reader *r, const struct event *e);
/* Whether the packets ahead show that tracing is off here: no branch comes before a TIP.PGE, a PSB+
 * without FUP, a TraceSTOP, an OVF or the end. */
bool event_off_ahead(struct event_reader *r);
/* Whether the packets ahead prove that the TIP read last was not deferred: the TNT before the TIP
 * was not full, so the TIP made the processor write the TNT; and another TNT follows the TIPs. */
bool event_prompt_ahead(struct event_reader *r);
/* The quirks of struct packet_cursor for the errata E. */
uint8_t event_quirks(const struct errata *e);
