/*
 * Functions for writing packets, shared by ptscript_trace.c (the section, branches, state, time)
 * and ptscript_event.c (packets that are not control flow).
 */
#pragma once

#include "tests/support/ptscript_line.h"

#define BITS(n) (UINT64_MAX >> (64 - (n)))

struct packet_writer {
	struct ptscript_line line;
	struct bytes_out *out;
	uint64_t last_ip;
	unsigned item; /* bytes of a BIP's payload; 0: not between BBP and BEP */
};

struct packet_kind {
	const char *name;
	size_t min, max; /* number of arguments */
	int (*write)(struct packet_writer *w, const struct packet_kind *kind);
	const char *bytes; /* the packet, or its first bytes */
	size_t size;
};

/* Sets the error to the line's name, WHY and the word WHAT. Returns -EINVAL. */
int packet_wrong(struct packet_writer *w, const char *why, const char *what);
/* Appends the N lowest bytes of VALUE, lowest first. */
void packet_put(struct packet_writer *w, uint64_t value, unsigned n);
void packet_put_opcode(struct packet_writer *w, const struct packet_kind *kind);
/* Parses the arguments from AT on as words of WORDS (NULL-terminated; each at most once). Bit i of
 * *ret: words[i] occurs. */
int packet_take_words(struct packet_writer *w, size_t at, const char *const *words, unsigned *ret);

int packet_write_ptw(struct packet_writer *w, const struct packet_kind *kind);
int packet_write_exstop(struct packet_writer *w, const struct packet_kind *kind);
int packet_write_mwait(struct packet_writer *w, const struct packet_kind *kind);
int packet_write_pwre(struct packet_writer *w, const struct packet_kind *kind);
int packet_write_pwrx(struct packet_writer *w, const struct packet_kind *kind);
int packet_write_bbp(struct packet_writer *w, const struct packet_kind *kind);
int packet_write_bip(struct packet_writer *w, const struct packet_kind *kind);
int packet_write_bep(struct packet_writer *w, const struct packet_kind *kind);
int packet_write_cfe(struct packet_writer *w, const struct packet_kind *kind);
int packet_write_evd(struct packet_writer *w, const struct packet_kind *kind);
int packet_write_trig(struct packet_writer *w, const struct packet_kind *kind);
