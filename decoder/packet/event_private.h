/*
 * The reader's inside, shared by the files that are the reader: event.c (packets that branch),
 * event_psb.c (PSB+ and overflows), event_mark.c (packets that do not branch), event_ahead.c (what
 * follows), event_pass.c (what is not looked at).
 */
#pragma once

#include "decoder/packet/event.h"

/* event.c */
/* The next packet; results as of packet_next. */
int event_read(struct event_reader *r, struct packet *ret);
/* Takes back the packet that was just read. */
void event_unread(struct event_reader *r, const struct packet *p);
/* E ends with the packet that was read last, and the reader's state holds from it on. */
void event_finish(const struct event_reader *r, struct event *e);
/* A place at the queue's end, for an event whose first packet was read last; NULL: full. */
struct event *event_push(struct event_reader *r, enum event_kind kind);
/* No packet could be read (RESULT of packet_next): E is the end, or a gap up to the next PSB. */
void event_unreadable(struct event_reader *r, int result, struct event *e);
/* P, which was read last, cannot stand there: it is put back, E is a gap. */
void event_misplaced(struct event_reader *r, const struct packet *p, struct event *e);
/* Packets that may stand between any two packets that belong together, and say nothing but time. */
bool event_is_timing(uint8_t type);
uint8_t event_mode_of(const struct packet *p);
bool event_iflag_of(const struct packet *p);

/* event_psb.c */
void event_read_psb(struct event_reader *r);
void event_read_overflow(struct event_reader *r);

/* Which TNT and TIP packets stood last, with none but PAD and CYC between. SDM 33.4.2.3 "Deferred
 * TIPs": a processor may write TIPs behind a TNT that goes on behind their branches. */
enum event_order {
	ORDER_OTHER,
	ORDER_FULL,	   /* a full TNT */
	ORDER_PARTIAL,	   /* another TNT */
	ORDER_FULL_TIP,	   /* TIPs behind a full TNT */
	ORDER_PARTIAL_TIP, /* TIPs behind another one */
};

/* event_mark.c */
/* What a mark waits for. */
enum event_rule {
	RULE_BEFORE,  /* the FUP that it owns; the mark is before the instruction there */
	RULE_BEHIND,  /* the same, behind it */
	RULE_NOTHING, /* owns a FUP and is no mark */
	RULE_TSX,     /* a FUP that it owns unless the transaction aborts */
	RULE_CFE,     /* FUP, TIP, TIP.PGE or TIP.PGD of the event, which it does not own */
	RULE_MWAIT,   /* EXSTOP, whose FUP is its own too */
	RULE_PWRE,    /* EXSTOP, behind which it stands */
};

/* A packet that does not branch: its mark goes into the queue, or waits. False: it cannot stand
 * there. */
bool event_note(struct event_reader *r, const struct packet *p);
/* As above, between packets that belong together: marks go into the queue as they are. */
bool event_note_within(struct event_reader *r, const struct packet *p);
/* As above, of a PSB+: marks for what changed. */
bool event_note_psb(struct event_reader *r, const struct packet *p);
/* What waited stands before the packet that was read last. */
void event_settle(struct event_reader *r);
/* What waited is settled by a FUP. True: the FUP is theirs. *ret_abort: a transaction aborts. */
bool event_settle_fup(struct event_reader *r, bool has_from, uint64_t from, bool *ret_abort);
/* What waited stands behind the branch whose event was pushed last. OFF: it ended tracing. */
void event_settle_branch(struct event_reader *r, bool off);
/* The mode that waited holds from here on: marks for what changed. AT: the event of its own that
 * says where; NULL: it is with a branch. */
void event_take_mode(struct event_reader *r, const struct event *at);
/* Nothing waits any more. */
void event_forget(struct event_reader *r);

/* event_pass.c */
/* Passes by MTCs as if they had been read, many of them if there are. */
void event_pass_mtcs(struct event_reader *r);

/* event_ahead.c */
/* Erratum BDM70: is there nothing but status up to a TIP.PGE? */
bool event_enable_ahead(struct event_reader *r);
/* Does a TIP or TIP.PGD belong to the FUP that was just read? */
bool event_tip_ahead(struct event_reader *r);
/* Does a FUP belong to the OVF that was just read? */
bool event_fup_ahead(const struct event_reader *r);
