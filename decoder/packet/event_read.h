/*
 * The parts of the event reader, for its four files (packet.h names them) and for the hot loop,
 * which reads most packets itself and leaves the others to these functions.
 */
#pragma once

#include "decoder/packet/event.h"

/* --- event.c: packets that branch --- */

/* Reads the next packet; results as of packet_next(). */
int event_read(struct event_reader *r, struct packet *ret);
/* Puts back P, the packet read last. */
void event_unread(struct event_reader *r, const struct packet *p);
/* Ends E with the packet read last, and copies the reader's state into E. */
void event_finish(const struct event_reader *r, struct event *e);
/* Adds an event to the queue, whose first packet is the packet read last. NULL: the queue is full.
 */
struct event *event_push(struct event_reader *r, enum event_kind kind);
/* Makes E the end, or a gap up to the next PSB, after packet_next() failed with RESULT. */
void event_unreadable(struct event_reader *r, int result, struct event *e);
/* Puts back P, the packet read last, which is not valid at its place, and makes E a gap. */
void event_misplaced(struct event_reader *r, const struct packet *p, struct event *e);
/* Whether a packet says nothing but time. Such packets may stand between any two packets. */
bool event_is_timing(uint8_t type);
/* The mode and the interrupt flag of a MODE.Exec. */
uint8_t event_mode_of(const struct packet *p);
bool event_iflag_of(const struct packet *p);

/* --- event_psb.c: PSB+ and overflows. The PSB or OVF is the packet read last --- */

void event_read_psb(struct event_reader *r);
void event_read_overflow(struct event_reader *r);

/* The last TNT and TIP packets that have only PAD and CYC between them. SDM 33.4.2.3, "Deferred
 * TIPs": a processor may write TIPs behind a TNT that also holds decisions behind the TIPs'
 * branches. */
enum event_order {
	ORDER_OTHER,
	ORDER_FULL,	   /* a full TNT */
	ORDER_PARTIAL,	   /* another TNT */
	ORDER_FULL_TIP,	   /* TIPs behind a full TNT */
	ORDER_PARTIAL_TIP, /* TIPs behind another TNT */
};

/* --- event_time.c: time that runs backwards --- */

/* Whether TSC is earlier than THAN, and not behind a wrap. */
bool event_is_earlier(uint64_t tsc, uint64_t than);
/* At the PSB that was read last. True: the segment behind the PSB is doubted; the gap was pushed,
 * and the reader is behind it. */
bool event_doubt_psb(struct event_reader *r);
/* Makes E a gap at the TSC that was read last, which is earlier than the one before. */
void event_doubt_tsc(struct event_reader *r, struct event *e);

/* --- event_mark.c: packets that do not branch --- */

/* The packets for which a mark waits. A packet's own FUP is the FUP that binds to the packet. */
enum event_rule {
	RULE_BEFORE,  /* for its FUP; the mark is before the instruction at the FUP's IP */
	RULE_BEHIND,  /* for its FUP; the mark is behind the instruction at the FUP's IP */
	RULE_NOTHING, /* for its FUP, and there is no mark */
	RULE_TSX,     /* for a FUP, which is its own unless the transaction aborts */
	RULE_CFE,     /* for the event's FUP, TIP, TIP.PGE or TIP.PGD, which is not its own */
	RULE_MWAIT,   /* for an EXSTOP, and then for the EXSTOP's FUP */
	RULE_PWRE,    /* for an EXSTOP, behind which the mark stands */
};

/* Queues the mark of a packet that does not branch, or makes it wait. False: the packet is not
 * valid at its place. */
bool event_note(struct event_reader *r, const struct packet *p);
/* The same between packets that belong together: marks do not wait. */
bool event_note_within(struct event_reader *r, const struct packet *p);
/* The same within a PSB+: there are marks only for what changed. */
bool event_note_psb(struct event_reader *r, const struct packet *p);
/* Queues the marks that wait, before the packet read last. */
void event_settle(struct event_reader *r);
/* Queues the marks that wait, at a FUP. Returns whether the FUP is theirs; *ret_abort: a
 * transaction aborts. */
bool event_settle_fup(struct event_reader *r, bool has_from, uint64_t from, bool *ret_abort);
/* Queues the marks that wait, behind the branch whose event was pushed last. OFF: the branch ended
 * tracing. */
void event_settle_branch(struct event_reader *r, bool off);
/* Makes the mode that waits the current mode, and queues marks for what changed. AT: the event that
 * says where the mode changes; NULL: at a branch. */
void event_take_mode(struct event_reader *r, const struct event *at);
/* Drops everything that waits. */
void event_forget(struct event_reader *r);

/* --- event_ahead.c: questions about what follows, and passing by --- */

/* Skips a series of MTCs as if they had been read. */
void event_pass_mtcs(struct event_reader *r);
/* For erratum BDM70: whether nothing but status packets comes before a TIP.PGE. */
bool event_enable_ahead(struct event_reader *r);
/* Whether a TIP or TIP.PGD belongs to the FUP read last. */
bool event_tip_ahead(struct event_reader *r);
/* For erratum SKD010: whether a TIP or TIP.PGD follows the FUP read last, without a TNT between. */
bool event_branch_ahead(struct event_reader *r);
/* Whether a FUP belongs to the OVF read last. */
bool event_fup_ahead(const struct event_reader *r);
